"""`routecodex daemon`, `sessions` and `statusline`, as they are typed, against real servers."""

from __future__ import annotations

import json
import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.provider import FakeProvider
from tests.rig.proxy import ROOT, SCRIPT, Mitmdump
from tests.system.tool import CONFIG, Tool

pytestmark = pytest.mark.system

HOME_HOST, GLM_HOST = "api.anthropic.com", "open.bigmodel.cn"


class Person:
    """Somebody with two servers, who types commands."""

    def __init__(self, provider: FakeProvider, servers: list[Mitmdump], user: Path) -> None:
        self.provider, self.servers, self.user = provider, servers, user

    def types(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROUTECODEX")}
        return subprocess.run(
            [sys.executable, str(ROOT / "addons" / "control" / "__main__.py"), *words],
            env={**kept, "ROUTECODEX_USER_DIR": str(self.user), "HOME": str(self.user)},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def does(self, *words: str, stdin: str = "") -> str:
        done = self.types(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def asks(self, *words: str, stdin: str = "") -> Any:
        return json.loads(self.does(*words, "--json", stdin=stdin))

    def tool(self, which: int = 0) -> Tool:
        return Tool(self.provider, self.servers[which])

    def goes_to(self, tool: Tool, text: str = "hello") -> str:
        self.provider.forget()
        answer = tool.ask(text)
        assert answer.status == 200, answer.body
        return self.provider.requests[-1].host or ""

    def id(self, which: int) -> str:
        return f"127.0.0.1_{self.servers[which].port}"

    def socket(self, which: int) -> Path:
        return self.user / "sessions" / self.id(which) / f"{self.id(which)}.sock"


@pytest.fixture(scope="module")
def two(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """A short path: a socket's is limited."""
    user = tmp_path_factory.mktemp("u")
    env = {"ROUTECODEX_USER_DIR": str(user), "ROUTECODEX_SESSION_DIR": ""}
    folders = [tmp_path_factory.mktemp("s") for _ in range(2)]
    with (
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folders[0], env=env) as first,
        Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folders[1], env=env) as second,
    ):
        yield Person(provider, [first, second], user)


@pytest.fixture
def person(two: Person) -> Iterator[Person]:
    two.provider.forget()
    yield two
    two.does("daemon", "set", "routing", "--clear")


def test_d01_every_server_is_shown_with_its_id(person: Person) -> None:
    said = person.does("daemon", "status", "routing")
    assert f"{person.id(0)}:" in said
    assert f"{person.id(1)}:" in said
    one = person.asks("daemon", "status", "routing", "--server", person.id(1))
    assert [entry["server"] for entry in one["servers"]] == [person.id(1)]


def test_d02_one_server_is_told_and_its_next_call_goes_there(person: Person) -> None:
    here, there = person.tool(0), person.tool(1)
    assert person.goes_to(here) == HOME_HOST
    person.does("daemon", "set", "routing", "--sticky", "!glm.glm-4.7", "--server", person.id(0))
    assert person.goes_to(here) == GLM_HOST
    assert person.goes_to(there) == HOME_HOST


def test_without_a_server_all_are_told(person: Person) -> None:
    person.does("daemon", "set", "routing", "--sticky", "glm.glm-4.7")
    assert [person.goes_to(person.tool(which)) for which in (0, 1)] == [GLM_HOST, GLM_HOST]


def test_d03_what_is_disabled_is_used_by_nobody_until_it_is_enabled(person: Person) -> None:
    tool = person.tool()
    person.does("daemon", "set", "routing", "--disable", "glm")
    refused = tool.ask("<**glm.glm-4.7**> go")
    assert refused.status == 400
    assert b"Requested provider glm is disabled" in refused.body
    person.does("daemon", "set", "routing", "--enable", "glm")
    assert person.goes_to(person.tool(), "<**glm.glm-4.7**> go") == GLM_HOST


def test_d03_a_key_by_its_place_or_its_name(person: Person) -> None:
    person.does("daemon", "set", "routing", "--disable", "glm.1")
    tool = person.tool()
    assert person.goes_to(tool, "<**!glm.glm-4.7**> go") == GLM_HOST
    assert "glm-key-2" in str(person.provider.requests[-1].headers)
    person.does("daemon", "set", "routing", "--disable", "glm.backup")
    assert person.goes_to(tool, "and on") == GLM_HOST
    assert "glm-key-1" in str(person.provider.requests[-1].headers)


def test_d04_clear_leaves_the_sessions_their_own(person: Person) -> None:
    tool = person.tool()
    person.does("daemon", "set", "routing", "--disable", "glm")
    assert person.goes_to(tool, "<**!six.m**> go") == "six.example"
    person.does("daemon", "set", "routing", "--clear")
    assert person.goes_to(tool, "and on") == "six.example"


def test_a_sessions_own_word_comes_first(person: Person) -> None:
    tool, other = person.tool(), person.tool()
    person.does("daemon", "set", "routing", "--disable", "glm", "--sticky", "six.m")
    assert person.goes_to(tool, "<**@glm**><**!glm.glm-4.7**> go") == GLM_HOST
    assert person.goes_to(tool, "and on") == GLM_HOST
    assert person.goes_to(other) == "six.example"


def test_the_chat_says_what_holds_for_all(person: Person) -> None:
    person.does("daemon", "set", "routing", "--sticky", "six.m")
    answer = person.tool().ask("<**status**>")
    assert b"For all sessions" in answer.body
    assert b"six.m" in answer.body


@pytest.mark.parametrize(
    "words",
    [
        ["--sticky", "glm.glm-4.7", "--server", "nobody"],
        ["--sticky", "glm.gpt-9"],
        ["--disable", "glm", "--disable", "nobody"],
        ["--sticky", "glm"],
        [],
    ],
)
def test_what_cannot_be_done_changes_nothing_anywhere(person: Person, words: list[str]) -> None:
    before = person.asks("daemon", "status", "routing")
    done = person.types("daemon", "set", "routing", *words)
    assert done.returncode != 0
    assert done.stderr.startswith("routecodex: ")
    assert person.asks("daemon", "status", "routing") == before


def test_a_target_that_only_one_server_knows_changes_none(person: Person, tmp_path: Path, provider: FakeProvider) -> None:
    env = {"ROUTECODEX_USER_DIR": str(person.user), "ROUTECODEX_SESSION_DIR": ""}
    plain = "virtualrouter: {routing: {default: [origin]}}"
    with Mitmdump(script=SCRIPT, config=plain, upstream=provider, folder=tmp_path / "third", env=env):
        assert person.types("daemon", "set", "routing", "--sticky", "glm.glm-4.7").returncode == 1
        assert all(not entry["routing"]["lines"] for entry in person.asks("daemon", "status", "routing")["servers"])


def test_d06_many_write_while_both_servers_serve(person: Person) -> None:
    """Every answer is whole, every call is answered, and each file is one of those that were written."""
    ends: list[int] = []

    def write(target: str) -> None:
        ends.extend(person.types("daemon", "set", "routing", "--disable", target).returncode for _ in range(3))

    writers = [threading.Thread(target=write, args=(target,)) for target in ("glm.1", "six.1", "claude", "glm")]
    for writer in writers:
        writer.start()
    tools = [person.tool(which) for which in (0, 1)]
    while any(writer.is_alive() for writer in writers):
        assert [person.goes_to(tool) for tool in tools] == [HOME_HOST, HOME_HOST]
    for writer in writers:
        writer.join()
    assert ends == [0] * 12
    for id in (person.id(0), person.id(1)):
        told = person.asks("daemon", "status", "routing", "--server", id)["servers"][0]["routing"]
        assert len(told["disabled"]) == 1
        kept = json.loads((person.user / "sessions" / id / f"routing-{id}.json").read_text())
        assert kept["state"]


def test_only_the_owner_may_ask(person: Person) -> None:
    assert stat.S_IMODE(person.socket(0).stat().st_mode) == 0o600
    assert stat.S_IMODE(person.socket(0).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "question", [b"\n", b"not json\n", b"[1]\n", b'{"verb": 1}\n', b'{"verb": "rm"}\n', b"x" * 100_000 + b"\n", b""]
)
def test_odd_questions_do_no_harm(person: Person, question: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(60)
        link.connect(str(person.socket(0)))
        try:
            link.sendall(question)
            link.shutdown(socket.SHUT_WR)
            heard = link.recv(65_536)
        except OSError:
            heard = b""
    assert not heard or "error" in json.loads(heard)
    assert person.goes_to(person.tool()) == HOME_HOST
    assert "Traceback" not in person.servers[0].log


def test_the_overlay_and_the_socket_are_there_again_after_a_crash(person: Person, provider: FakeProvider, tmp_path: Path) -> None:
    env = {"ROUTECODEX_USER_DIR": str(person.user), "ROUTECODEX_SESSION_DIR": ""}
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path / "x", env=env) as crashing:
        id, port = f"127.0.0.1_{crashing.port}", crashing.port
        person.does("daemon", "set", "routing", "--sticky", "six.m", "--server", id)
        crashing.kill()
        left = person.user / "sessions" / id / f"{id}.sock"
        assert left.exists(), "nobody cleaned up"
        assert person.types("daemon", "status", "routing", "--server", id).returncode == 1
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path / "x", port=port, env=env) as again:
        assert person.asks("daemon", "status", "routing", "--server", id)["servers"][0]["routing"]["sticky"] == "six.m"
        provider.forget()
        assert Tool(provider, again).ask("hello").status == 200
        assert provider.requests[-1].host == "six.example"
    assert not left.exists(), "a server that ends takes its socket away"


def test_sessions_are_listed_shown_and_erased(person: Person) -> None:
    tool = person.tool()
    assert tool.session is not None
    person.goes_to(tool, "<**!six.m**> build me a very long ladder, longer than any other")
    listed = {one["id"]: one for one in person.asks("sessions")["sessions"]}
    assert listed[tool.session]["begins"] == "build me a very long ladder, longer than"[:40]
    assert listed[tool.session]["inForce"] == ["Sticky: six.m (all keys)."]
    assert tool.session[:24] in person.does("sessions")
    shown = person.asks("sessions", "show", tool.session[:13])
    assert shown["server"] == person.id(0)
    assert all(Path(path).is_file() for path in shown["files"])
    person.does("sessions", "clear", tool.session)
    assert not [path for path in shown["files"] if Path(path).exists()]
    assert person.goes_to(tool, "and on") == HOME_HOST, "effective on the next call"
    assert person.types("sessions", "show", tool.session).returncode == 1
    assert person.types("sessions", "clear").returncode == 2


def test_the_status_line_says_where_the_last_call_went(person: Person) -> None:
    tool = person.tool(1)
    told = json.dumps({"session_id": tool.session, "model": {"id": "claude-x"}})
    person.goes_to(tool, "<**!glm.backup.glm-4.7**> go")
    person.does("daemon", "set", "routing", "--disable", "six", "--server", person.id(1))
    line = person.does("statusline", stdin=told)
    assert line == "glm[backup].glm-4.7 · Sticky: glm[backup].glm-4.7 · all: Disabled: six\n"
    assert person.does("statusline", stdin="not json").startswith("no call yet")


def test_the_status_line_loads_little(person: Person) -> None:
    """It is drawn many times a minute: no parser of the command line's frame, no mitmproxy, no pydantic."""
    code = (
        "import sys; sys.argv = ['routecodex', 'statusline']; import runpy; import atexit;"
        "atexit.register(lambda: print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr));"
        f"runpy.run_path({str(ROOT / 'addons' / 'control' / '__main__.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], input="{}", capture_output=True, text=True, timeout=60, check=False)
    loaded = set(json.loads(done.stderr.splitlines()[-1].replace("'", '"')))
    assert loaded <= set(sys.stdlib_module_names) | {"routecodex", "__mp_main__"} | _from_the_environment()


def test_the_status_line_costs_little(person: Person) -> None:
    """In all, Python's own start and the question to the server: its own time on a processor, the best of a few."""
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert "not running" not in person.does("statusline", stdin="{}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) <= 0.050


def _from_the_environment() -> set[str]:
    """What this Python loads by itself."""
    code = "import sys; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    said = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    return set(json.loads(said.replace("'", '"')))


def test_why_a_call_went_where_it_went(two: Person) -> None:
    tool = two.tool()
    two.goes_to(tool, "<**glm**> hello")
    said = two.asks("why", tool.session)
    assert said["server"] == two.id(0)
    assert "glm" in said["lines"][0]
    assert any(line.startswith("It cost: ") for line in said["lines"])
    assert "It ended so: answered." in two.does("why", tool.session[:12])
    nobody = two.types("why", "nosuch")
    assert nobody.returncode == 1
    assert "no call of a session 'nosuch'" in nobody.stderr
