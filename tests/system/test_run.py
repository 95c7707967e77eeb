"""`routecodex run TOOL`: one proxy for one person, there when it is needed, gone with the last tool."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from routecodex.addons.control.places import Places
from tests.rig.behaviour import Behaviour
from tests.rig.door import ASKS, LIMIT_S, Door, until
from tests.rig.provider import FakeProvider

pytestmark = pytest.mark.system

LOCAL = """
virtualrouter:
  providers:
    local:
      protocol: anthropic-messages
      baseURL: {url}
      auth: {{type: apikey, keys: [{{alias: late, value: "${{LATE_KEY}}"}}]}}
      models: {{m: {{}}}}
  routing:
    default: [origin]
"""


@pytest.fixture
def door(tmp_path: Path, provider: FakeProvider) -> Iterator[Door]:
    provider.forget()
    with Door(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One whose proxy runs already, for what a tool and its caller have to do with each other."""
    with Door(tmp_path_factory.mktemp("kept")) as opened:
        assert opened.run("start").returncode == 0
        yield opened


def own_config(door: Door, text: str) -> Path:
    path = door.home / ".config" / "routecodex" / "mitm-config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"


# ---- the first minute ----


def test_a_tool_is_answered_and_the_proxy_ends_with_it(door: Door) -> None:
    said = door.ask("<**echo**> hello")
    assert said["told"] == ["hello"]
    assert said["proxy"].startswith("http://127.0.0.1:")
    until(lambda: is_gone(said["pid"]), "the proxy outlived its last tool")
    assert door.run("status").returncode == 3
    assert list(door.work.iterdir()) == []


def test_sessions_and_the_port_are_there_next_time(door: Door) -> None:
    first = door.ask("<**!echo**> hello")
    until(lambda: is_gone(first["pid"]), "the proxy outlived its last tool")
    second = door.ask("and now?")
    assert second["told"] == ["and now?"]
    assert second["pid"] != first["pid"]
    assert second["proxy"] == first["proxy"]
    assert [path.name for path in (door.home / ".routecodex" / "sessions").iterdir()] == ["user"]


def test_ten_cold_starts_at_once_give_one_proxy(door: Door) -> None:
    begun = [door.begin("run", sys.executable, str(ASKS), f"s-{n}", "<**echo**> hello", "-") for n in range(10)]
    waiting = [json.loads(process.stdout.readline()) for process in begun if process.stdout]
    assert len({said["proxy"] for said in waiting}) == 1
    assert len({said["pid"] for said in waiting}) == 1
    assert door.status()["tools"] == 10
    for process in begun:
        out, err = process.communicate("go on\n", timeout=LIMIT_S)
        assert json.loads(out)["told"] == ["hello"], err
    until(lambda: is_gone(waiting[0]["pid"]), "the proxy outlived its last tool")


@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_is_the_tools(kept: Door, code: int) -> None:
    assert kept.run("run", sys.executable, "-c", f"raise SystemExit({code})").returncode == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_signals_are_the_tools(kept: Door, number: int, code: int) -> None:
    """A tool that does not mind them dies of them; nothing is left behind."""
    source = (
        "import signal, sys; [signal.signal(n, signal.SIG_DFL) for n in (1, 2, 15)]; print('up', flush=True); sys.stdin.read()"
    )
    process = kept.begin("run", sys.executable, "-c", source)
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    assert process.wait(LIMIT_S) == code


def test_a_hang_up_that_another_thread_is_handed_reaches_the_tool(kept: Door) -> None:
    """The kernel chooses the thread; the one that waits for the tool must hear of it all the same."""
    process = kept.begin("run", sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()")
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    (other,) = (int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir() if task.name != str(process.pid))
    assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGHUP) == 0
    assert process.wait(LIMIT_S) == 129


_SLOW = """
import subprocess, sys, time
from pathlib import Path

begin = subprocess.Popen.__init__

def slowly(self, *given, **more):
    begin(self, *given, **more)
    if "'up'" in str(given[0]):
        while not Path(__file__).with_name("sent").exists():
            time.sleep(0.05)

subprocess.Popen.__init__ = slowly
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_reaches_a_tool_that_has_only_just_begun(kept: Door, tmp_path: Path, number: int, code: int) -> None:
    """It has said its first word, and we have not heard yet that it runs: nobody else hands the signal on."""
    (tmp_path / "sitecustomize.py").write_text(_SLOW)
    source = "import signal, sys; [signal.signal(n, signal.SIG_DFL) for n in (1, 15)]; print('up', flush=True); sys.stdin.read()"
    process = kept.begin("run", sys.executable, "-c", source, env={"PYTHONPATH": str(tmp_path)})
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    time.sleep(0.1)  # it is looked at between two steps of Python's
    (tmp_path / "sent").touch()
    assert process.wait(LIMIT_S) == code


def test_what_is_not_there_is_said(kept: Door) -> None:
    done = kept.run("run", "no-such-tool")
    assert (done.returncode, done.stdout) == (127, "")
    assert "no-such-tool is not installed" in done.stderr
    assert kept.run("run").returncode == 2


def test_a_proxy_that_cannot_start_fails_loudly(door: Door) -> None:
    config = own_config(door, "proxy:\n  intercepthosts: []\n")
    done = door.run("run", sys.executable, "-c", "print('the tool ran')")
    assert done.returncode == 1
    assert "the tool ran" not in done.stdout
    assert f"{config.name}:2" in done.stderr
    assert "intercepthosts" in done.stderr
    config.unlink()
    assert door.ask("<**echo**> hello")["told"] == ["hello"], "the next one may try again"


# ---- when something dies ----


def test_a_killed_proxy_is_back_on_its_port(door: Door) -> None:
    process = door.begin("run", sys.executable, str(ASKS), "s-1", "<**!echo**> one", "-", "two")
    assert process.stdout
    waiting = json.loads(process.stdout.readline())
    os.kill(waiting["pid"], signal.SIGKILL)
    out, err = process.communicate("go on\n", timeout=LIMIT_S)
    said = json.loads(out)
    assert said["told"] == ["one", "two"], err
    assert said["last_pid"] != said["pid"]
    assert "answers that had begun are lost" in door.log


def test_a_killed_supervisor_is_replaced_under_a_running_tool(door: Door) -> None:
    process = door.begin("run", sys.executable, str(ASKS), "s-1", "<**!echo**> one", "-", "two")
    assert process.stdout
    waiting = json.loads(process.stdout.readline())
    os.kill(door.status()["supervisor"], signal.SIGKILL)
    until(lambda: is_gone(waiting["pid"]), "the proxy is orphaned")
    until(lambda: door.status()["running"], "nobody starts it anew")
    out, err = process.communicate("go on\n", timeout=LIMIT_S)
    assert out, err
    assert json.loads(out)["told"] == ["one", "two"], err


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system does not tell who has a file open")
def test_who_replaces_a_supervisor_waits_for_its_proxy(door: Door) -> None:
    """It may take a while to end, and holds the port that the tool knows."""
    process = door.begin("run", sys.executable, str(ASKS), "s-1", "<**!echo**> one", "-", "two")
    assert process.stdout
    waiting = json.loads(process.stdout.readline())
    supervisor = door.status()["supervisor"]
    os.kill(waiting["pid"], signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    port = door.home / ".routecodex" / "run" / "port"
    until(lambda: holder_of(port, waiting["pid"], supervisor) or door.status()["running"], "nobody follows")
    os.kill(waiting["pid"], signal.SIGCONT)
    out, err = process.communicate("go on\n", timeout=LIMIT_S)
    assert out, err
    assert json.loads(out)["told"] == ["one", "two"]


def holder_of(file: Path, *without: int) -> bool:
    """Whether another process has it open."""
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if int(place.parts[2]) not in without and place.readlink() == file:
                return True
    return False


def test_who_stops_it_tells_the_tools_that_run_through_it(door: Door) -> None:
    """Else they would start another one."""
    assert door.run("start").returncode == 0
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(90)
        line.connect(str(Places(door.home / ".routecodex").line))
        line.sendall(b'{"want": "lease"}\n')
        heard = line.makefile()
        assert json.loads(heard.readline())["running"]
        assert door.run("stop").stdout.startswith("1 tool runs through the proxy")
        assert door.run("stop", "--now").stdout == "The proxy ends.\n"
        assert json.loads(heard.readline())["error"] == "the proxy was stopped"
        assert heard.readline() == ""
    until(lambda: not door.status()["running"], "it does not end")
    assert "Traceback" not in door.log


def test_a_terminal_that_closes_does_not_end_the_proxy(door: Door) -> None:
    assert door.run("start").returncode == 0
    before = door.status()
    for number in (signal.SIGHUP, signal.SIGINT):
        os.kill(before["supervisor"], number)
    said = door.ask("<**echo**> hello")
    assert said["pid"] == before["pid"]
    assert said["told"] == ["hello"]
    after = door.status()
    assert (after["running"], after["kept"], after["pid"]) == (True, True, before["pid"]), "it ended with a tool"


# ---- a stranger's folder ----


def test_the_working_directory_decides_nothing(door: Door, provider: FakeProvider) -> None:
    """A clone whose configuration would load its plugins and lead every call to its host."""
    (door.work / "evil.py").write_text(f"open({str(door.folder / 'harm')!r}, 'w')\nplugins = []\n")
    evil = LOCAL.format(url=provider.url).replace("default: [origin]", "default: [local.m]") + "plugins: [evil.py]\n"
    (door.work / "mitm-config.yaml").write_text(evil)
    for module in ("routecodex", "mitmproxy", "msgspec", "addons", "socket"):
        (door.work / f"{module}.py").write_text(f"open({str(door.folder / 'harm')!r}, 'w')\n")
    said = door.ask("<**echo**> hello", env={"LATE_KEY": "k"})
    assert said["told"] == ["hello"]
    assert door.run("try").returncode == 0
    assert provider.calls == []
    assert not (door.folder / "harm").exists()


def test_which_configuration_holds(door: Door) -> None:
    shipped = json.loads(door.run("status", "--json").stdout)["config"]
    assert shipped.endswith("mitm-config.yaml")
    own = own_config(door, "virtualrouter: {routing: {default: [origin]}}\n")
    other = door.folder / "other.yaml"
    other.write_text(own.read_text())
    assert door.status()["config"] == str(own)
    door.env["ROUTECODEX_CONFIG"] = str(other)
    assert door.status()["config"] == str(other)
    assert door.run("start").returncode == 0
    assert door.status()["config"] == str(other)
    done = door.run("run", "--config", str(own), "true")
    assert "started with another --config" in done.stderr
    missing = door.run("run", "--config", "gone.yaml", "true")
    assert missing.returncode == 2
    assert "gone.yaml: there is no such file" in missing.stderr


# ---- keys, proxies, certificates ----


def test_a_key_that_is_exported_later_is_told_to_the_proxy(door: Door, provider: FakeProvider) -> None:
    own_config(door, LOCAL.format(url=provider.url))
    assert door.run("start").returncode == 0
    pid = door.status()["pid"]
    assert "LATE_KEY" in door.ask("<**local.m**> hello")["told"][0] or provider.calls == []
    said = door.ask("<**local.m**> hello", env={"LATE_KEY": "the-late-key"}, session="s-2")
    assert said["pid"] == pid
    (call,) = provider.calls
    assert call.key == "the-late-key"
    other = door.run("run", "true", env={"LATE_KEY": "another"})
    assert "LATE_KEY has another value" in other.stderr
    assert "another" not in other.stderr.replace("another value", "")
    os.kill(pid, signal.SIGKILL)
    until(lambda: door.status()["running"] and door.status()["pid"] != pid, "it does not come back")
    door.ask("<**local.m**> hello", session="s-3")
    assert provider.calls[-1].key == "the-late-key", "forgotten with the proxy"


class CompanyProxy:
    """Asks for a password, and writes down where calls wanted to go."""

    def __init__(self) -> None:

        self.heard: list[str] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listening.accept()
            except OSError:
                return
            with link:
                link.settimeout(30)
                heard = b""
                while b"\r\n\r\n" not in heard and (chunk := link.recv(4096)):
                    heard += chunk
                self.heard.append(heard.decode())
                link.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    @property
    def connects(self) -> list[str]:
        return [heard for heard in self.heard if heard.startswith("CONNECT ")]

    def close(self) -> None:
        self._listening.close()


def test_a_companys_proxy_is_gone_through(door: Door, provider: FakeProvider) -> None:
    """With its password, which stands on no command line; a provider on this machine is asked directly."""
    company = CompanyProxy()
    own_config(door, LOCAL.format(url=provider.url))
    env = {"HTTPS_PROXY": f"http://user:pass%40word@127.0.0.1:{company.port}", "LATE_KEY": "k"}
    process = door.begin("run", sys.executable, str(ASKS), "s-1", "-", "<**local.m**> hello", "<**origin**> and out", env=env)
    assert process.stdout
    waiting = json.loads(process.stdout.readline())
    command = Path(f"/proc/{waiting['pid']}/cmdline").read_bytes()
    assert b"pass" not in command
    assert str(company.port).encode() in command
    assert "pass" not in json.dumps(door.status())
    out, err = process.communicate("go on\n", timeout=LIMIT_S)
    told = json.loads(out)["told"]
    company.close()
    assert [call.key for call in provider.calls] == ["k"], err
    assert "hello" in told[0]
    assert company.connects
    assert all(heard.startswith("CONNECT api.anthropic.com:443 ") for heard in company.connects)
    assert all("dXNlcjpwYXNzQHdvcmQ=" in heard for heard in company.connects), "user:pass@word, as a proxy reads it"


def test_a_proxy_that_is_ours_already_is_used(door: Door) -> None:
    assert door.run("start").returncode == 0
    before = door.status()
    env = {"HTTPS_PROXY": f"http://127.0.0.1:{before['port']}"}
    said = door.ask("<**echo**> hello", env=env)
    assert (said["told"], said["pid"]) == (["hello"], before["pid"])
    assert door.run("stop").returncode == 0
    until(lambda: not door.status()["running"], "it does not end")
    assert door.ask("<**echo**> hello", env=env)["told"] == ["hello"], "an export that outlived our proxy"


def test_exceptions_that_would_lead_around_are_left_out(door: Door) -> None:
    env = {"NO_PROXY": "build.corp,.anthropic.com,10.0.0.0/8", "ANTHROPIC_BASE_URL": "https://gateway.corp/v1"}
    done = door.run("run", sys.executable, str(ASKS), "s-1", "<**echo**> hello", env=env)
    said = json.loads(done.stdout)
    assert said["no_proxy"].split(",") == ["localhost", "127.0.0.1", "::1", "build.corp", "10.0.0.0/8"]
    assert ".anthropic.com in NO_PROXY" in done.stderr
    assert "ANTHROPIC_BASE_URL leads to gateway.corp" in done.stderr


# ---- by hand ----


def test_start_env_stop(door: Door) -> None:
    done = door.run("env", "--shell", "bash")
    assert done.returncode == 0
    assert all(line.startswith("export ") for line in done.stdout.splitlines()), done.stdout
    assert door.status()["kept"]
    shell = f'eval "$({" ".join(door.command)} env)"; exec {sys.executable} {ASKS} s-1 "<**echo**> hello"'

    ran = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, env=door.env, cwd=door.work, timeout=90, check=False
    )
    assert json.loads(ran.stdout)["told"] == ["hello"], ran.stderr
    until(lambda: "s-1 unknown claude-x → echo" in door.run("log").stdout, "the call is not in the log")
    process = door.begin("run", sys.executable, str(ASKS), "s-1", "-")
    assert process.stdout
    process.stdout.readline()
    assert "1 tool runs" in door.run("stop").stdout
    assert door.status()["running"], "a tool still runs"
    process.communicate("go on\n", timeout=LIMIT_S)
    until(lambda: not door.status()["running"], "it does not end with its last tool")


def test_what_lies_where_is_private(door: Door) -> None:
    assert door.run("start", "--web").returncode == 0
    said = door.status()
    assert said["web"].startswith("http://127.0.0.1:")
    assert f"look at each call: {said['web']}" in door.run("run", "true").stderr
    here = Places(door.home / ".routecodex")
    for file in (here.log, here.line, here.port):
        assert file.stat().st_mode & 0o077 == 0, file
    for folder in (here.user, here.run, here.authority):
        assert folder.stat().st_mode & 0o077 == 0, folder


def test_uninstall_leaves_nothing(door: Door) -> None:
    own_config(door, "virtualrouter: {routing: {default: [origin]}}\n")
    door.ask("<**!echo**> hello")
    assert door.run("start").returncode == 0
    pid = door.status()["pid"]
    listed = door.run("uninstall").stdout
    assert str(door.home / ".routecodex") in listed
    assert (door.home / ".routecodex").exists()
    assert door.run("uninstall", "--purge").returncode == 0
    assert is_gone(pid)
    left = [path for path in door.home.rglob("*") if path != door.home / ".config"]
    assert left == []
    assert "Nothing of RouteCodex" in door.run("uninstall").stdout


def test_try(door: Door) -> None:
    done = door.run("try")
    assert done.returncode == 0
    assert "The answer:      hello" in done.stdout
    again = door.run("try", "--json")
    assert (again.returncode, json.loads(again.stdout).get("answer")) == (0, "hello"), again.stderr + door.log
    wrong = door.run("try", "<**nobody.m**> hello")
    assert wrong.returncode == 1
    assert "nobody" in wrong.stderr


BY_ADDRESS = """
import json, os, urllib.request
body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "<**echo**> hello"}]}
headers = {"content-type": "application/json", "x-api-key": "sk-tool"}
asked = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), headers)
with urllib.request.urlopen(asked, timeout=60) as answer:
    print(json.load(answer)["content"][0]["text"], "HTTPS_PROXY" in os.environ)
"""


def test_what_an_address_leads_to_us_goes_through_the_companys_proxy(door: Door, provider: FakeProvider) -> None:
    """Round 1, and the one behind a provider on this machine that fails."""
    company = CompanyProxy()
    own_config(door, LOCAL.format(url=provider.url).replace("[origin]", "[local.m, origin]"))
    env = {"HTTPS_PROXY": f"http://user:pass%40word@127.0.0.1:{company.port}"}
    asks = BY_ADDRESS.replace("<**echo**> hello", "<**origin**> hello")
    door.run("run", "--base-url", sys.executable, "-c", asks, env=env)
    first = len(company.connects)
    provider.always(Behaviour(status=500))
    door.run("run", "--base-url", sys.executable, "-c", BY_ADDRESS.replace("<**echo**> ", ""), env={**env, "LATE_KEY": "k"})
    company.close()
    assert provider.calls, door.log
    assert 0 < first < len(company.connects), door.log
    assert all(heard.startswith("CONNECT api.anthropic.com:443 ") for heard in company.connects)
    assert all("dXNlcjpwYXNzQHdvcmQ=" in heard for heard in company.connects)
    assert "RouteCodex failed" not in door.log


def test_a_tool_that_knows_no_proxy_is_led_by_its_address(door: Door) -> None:
    """Also where the proxy runs already, and after it has died."""
    for _ in range(2):
        done = door.run("run", "--base-url", sys.executable, "-c", BY_ADDRESS)
        assert done.stdout == "hello False\n", done.stderr + door.log
        assert door.run("start").returncode == 0
    before = door.status()
    os.kill(before["pid"], signal.SIGKILL)
    until(lambda: door.status()["running"] and door.status()["pid"] != before["pid"], "it does not come back")
    assert door.status()["bases"] == before["bases"]
    assert door.run("run", "--base-url", sys.executable, "-c", BY_ADDRESS).stdout == "hello False\n", door.log
