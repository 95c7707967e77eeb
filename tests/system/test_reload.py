"""Changing things under a running proxy: the configuration, and the addon's own file. Whatever happens, no call passes unread."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig.behaviour import Behaviour
from tests.rig.client import Answer, Http1, Route, call
from tests.rig.provider import FakeProvider
from tests.rig.proxy import ROOT, Mitmdump
from tests.rig.wire import Reply
from tests.system.tool import CONFIG

pytestmark = pytest.mark.system

ANTHROPIC = "https://api.anthropic.com"
SLOW = Behaviour(reply=Reply(tuple(f"w{n} " for n in range(40))), delay_s=0.05)
HEADERS = {"x-api-key": "sk-client-secret"}


def body(text: str = "hello", *, stream: bool = False) -> dict[str, object]:
    return {"model": "claude-x", "max_tokens": 9, "stream": stream, "messages": [{"role": "user", "content": text}]}


@dataclass
class Installed:
    """A copy of the project of its own, with a proxy that runs it, and looks at its files oftener than usual."""

    root: Path
    proxy: Mitmdump
    provider: FakeProvider

    @property
    def script(self) -> Path:
        return self.root / "addons" / "routecodex.py"

    @property
    def config(self) -> Path:
        return self.root / "mitm-config.yaml"

    def ask(self, text: str = "hello", url: str = ANTHROPIC) -> Answer:
        return call(url, "/v1/messages", body(text), proxy=self.proxy, ca=self.provider.ca, headers=HEADERS, within=90)

    def host_of(self, text: str = "hello") -> str:
        """Which host a call goes to now."""
        self.provider.forget()
        assert self.ask(text).status == 200
        return self.provider.calls[-1].host or ""

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"{what}:\n{self.proxy.log[-3000:]}"
            time.sleep(0.05)

    def until_logged(self, words: str, before: int) -> None:
        self.until(lambda: words in self.proxy.log[before:], f"not logged: {words}")

    def saved(self) -> bytes:
        """What the proxy has written of all flows so far; it is stopped for it."""
        self.proxy.stop()
        assert self.proxy.flows_path is not None
        saved = self.proxy.flows_path.read_bytes()
        assert saved
        assert b"sk-client-secret" not in saved + self.proxy.log.encode()
        return saved

    def save(self, path: Path, text: str) -> None:
        """As an editor does it: another file takes the name."""
        part = path.with_suffix(".part")
        part.write_text(text)
        part.replace(path)


@pytest.fixture(scope="module")
def running(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    root = tmp_path_factory.mktemp("installed")
    for folder in ("addons", "routing"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "mitm-config.yaml").write_text(CONFIG)
    for module in ("settings.py", "stand_in.py"):
        path = root / "addons" / module
        text = path.read_text()
        assert "_POLL_S = 1.0" in text
        path.write_text(text.replace("_POLL_S = 1.0", "_POLL_S = 0.1"))
    (root / "sooner.py").write_text("from mitmproxy.addons import script\nscript.ReloadInterval = 0.1\n")
    scripts = [root / "sooner.py", root / "addons" / "routecodex.py"]
    with Mitmdump(script=scripts, upstream=provider, folder=root / "files", flows=True) as proxy:
        installed = Installed(root, proxy, provider)
        yield installed
        installed.saved()


@pytest.fixture
def installed(running: Installed) -> Iterator[Installed]:
    """Each test leaves the files as they were, and waits until that is in force."""
    running.provider.forget()
    script = running.script.read_text()
    yield running
    running.provider.forget()
    if running.config.read_text() != CONFIG:
        before = len(running.proxy.log)
        running.save(running.config, CONFIG)
        running.until_logged("Configuration reloaded", before)
    if not running.script.exists() or running.script.read_text() != script:
        before = len(running.proxy.log)
        running.save(running.script, script)
        running.until_logged(f"Loading script {running.script}", before)
    running.until(lambda: running.ask("<**status**>").status == 200, "not in force again")


# ---- the configuration ----


def test_a_changed_configuration_holds_for_the_next_call(installed: Installed) -> None:
    assert installed.host_of() == "api.anthropic.com"
    before = len(installed.proxy.log)
    installed.save(installed.config, CONFIG.replace("default: [origin]", "default: [six.m]"))
    installed.until_logged("Configuration reloaded", before)
    assert installed.host_of() == "six.example"


def test_a_configuration_that_is_wrong_is_reported_and_the_old_one_stays(installed: Installed) -> None:
    before = len(installed.proxy.log)
    installed.save(installed.config, CONFIG.replace("default: [origin]", "default: [nobody.m]"))
    installed.until_logged("the old one stays in force", before)
    line = 1 + CONFIG.count("\n", 0, CONFIG.index("default:"))
    assert f"mitm-config.yaml:{line}" in installed.proxy.log[before:]
    assert "nobody" in installed.proxy.log[before:]
    assert installed.host_of("<**six.m**> hello") == "six.example"
    told = installed.ask("<**status**>").body.decode()
    assert f"The changed configuration is not used, the old one stays in force: mitm-config.yaml:{line}: " in told
    before = len(installed.proxy.log)
    installed.config.unlink()
    time.sleep(0.3)
    assert "mitm-config.yaml is gone: what stood in it stays in force." in installed.ask("<**status**>").body.decode()
    assert installed.host_of("<**six.m**> hello") == "six.example"
    installed.save(installed.config, CONFIG.replace("default: [origin]", "default: [six.m]"))
    installed.until_logged("Configuration reloaded", before)
    assert installed.host_of() == "six.example"
    assert "in force:" not in installed.ask("<**status**>").body.decode()


def test_a_host_that_is_added_is_opened_from_then_on(installed: Installed) -> None:
    assert installed.ask("<**echo**> hi", "https://llm.example").status == 200
    assert b"<**echo**>" in installed.provider.calls[-1].body, "tunnelled, so not read"
    before = len(installed.proxy.log)
    installed.save(installed.config, CONFIG.replace("interceptHosts: [", "interceptHosts: [llm.example, "))
    installed.until_logged("Configuration reloaded", before)
    installed.provider.forget()
    assert installed.ask("<**echo**> hi", "https://llm.example").status == 200
    assert installed.provider.calls == []


def test_an_answer_in_flight_outlives_a_change(installed: Installed) -> None:
    async def both() -> Answer:
        async with Http1(Route(ANTHROPIC, installed.proxy)) as client:
            installed.provider.enqueue(SLOW)
            going = asyncio.create_task(
                client.send("POST", "/v1/messages", body=body("<**six.m**> x", stream=True), headers=HEADERS)
            )
            await asyncio.to_thread(installed.provider.wait_for, 1)
            before = len(installed.proxy.log)
            installed.save(
                installed.config, CONFIG.replace("    six:", "    seven:").replace("default:", "# changed\n    default:")
            )
            await asyncio.to_thread(installed.until_logged, "Configuration reloaded", before)
            return await going

    answer = asyncio.run(both())
    assert answer.ended == "complete"
    assert answer.events[-1][0] == "message_stop"
    assert b"w39 " in answer.body


# ---- the addon's own file ----

BREAKAGES = {
    "a syntax error": lambda script: script + "\ndef broken(:\n",
    "a module that is not there": lambda script: script.replace("import asyncio\n", "import asyncio\nimport no_such_module\n", 1),
    "an exception while it loads": lambda script: script.replace("\nimport sys\n", "\nraise RuntimeError\nimport sys\n", 1),
    "an exception in load": lambda script: script.replace(
        "def load(self, loader: Loader) -> None:", "def load(self, loader: Loader) -> None:\n        raise RuntimeError", 1
    ),
    "an exception in configure": lambda script: script.replace(
        "def configure(self, updated: set[str]) -> None:",
        "def configure(self, updated: set[str]) -> None:\n        raise RuntimeError",
        1,
    ),
    "an empty file": lambda script: "",
    "no file": None,
}


@pytest.mark.parametrize("name", BREAKAGES)
def test_while_the_addon_is_broken_our_hosts_are_refused(installed: Installed, name: str) -> None:
    """503 for our hosts, whatever the connection; the rest is tunnelled; mended, it works again."""
    script, breakage = installed.script.read_text(), BREAKAGES[name]

    async def kept() -> list[Answer]:
        """A client that keeps one connection all the time."""
        answers = []
        async with Http1(Route(ANTHROPIC, installed.proxy)) as client:

            async def again() -> None:
                answers.append(await client.send("POST", "/v1/messages", body=body("<**six.m**> hello"), headers=HEADERS))

            await again()
            if breakage is None:
                installed.script.unlink()
            else:
                installed.save(installed.script, breakage(script))
            await asyncio.to_thread(installed.until, lambda: installed.ask().status == 503, "not refused")
            installed.provider.forget()
            await again()
            other = await asyncio.to_thread(installed.ask, "in the tunnel", "https://github.com")
            assert other.status == 200
            assert [received.host for received in installed.provider.requests] == ["github.com"]
            installed.save(installed.script, script)
            await asyncio.to_thread(installed.until, lambda: installed.ask("<**echo**> x").status == 200, "not back")
            installed.provider.forget()
            await again()
        return answers

    before, during, after = asyncio.run(kept())
    assert (before.status, during.status, after.status) == (200, 503, 200)
    assert "RouteCodex is not loaded" in during.text
    assert during.header("x-should-retry") == "false"
    assert [received.host for received in installed.provider.calls] == ["six.example"]
    assert b"<**" not in installed.provider.all_bytes()


def test_nothing_secret_is_saved_while_the_addon_is_broken(installed: Installed) -> None:
    script = installed.script.read_text()
    installed.save(installed.script, script + "\ndef broken(:\n")
    installed.until(lambda: installed.ask("a refused one").status == 503, "not refused")
    installed.save(installed.script, script)
    installed.until(lambda: installed.ask("<**six.m**> a mended one").status == 200, "not back")
    saved = installed.saved()
    installed.proxy.start()
    assert b"RouteCodex is not loaded" in saved
    assert b"a refused one" in saved
    assert b"a mended one" in saved


def test_an_answer_in_flight_outlives_a_broken_addon(installed: Installed) -> None:
    """Also one that still has to fail over to another key."""
    script = installed.script.read_text()

    async def both() -> list[Answer]:
        async with Http1(Route(ANTHROPIC, installed.proxy)) as one, Http1(Route(ANTHROPIC, installed.proxy)) as two:
            installed.provider.enqueue(SLOW, Behaviour(status=500, error="down", wait_s=1))
            text = "<**six.m**> hello"
            going = []
            for count, client in enumerate((one, two), start=1):
                going.append(
                    asyncio.create_task(client.send("POST", "/v1/messages", body=body(text, stream=True), headers=HEADERS))
                )
                await asyncio.to_thread(installed.provider.wait_for, count)
            installed.save(installed.script, script + "\ndef broken(:\n")
            await asyncio.to_thread(installed.until, lambda: installed.ask().status == 503, "not refused")
            return list(await asyncio.gather(*going))

    first, second = asyncio.run(both())
    for answer in (first, second):
        assert answer.ended == "complete"
        assert answer.status == 200
        assert answer.events[-1][0] == "message_stop"
    assert b"w39 " in first.body
    assert len([received for received in installed.provider.calls if received.host == "six.example"]) == 3


def test_a_broken_configuration_and_then_a_reload_of_the_addon(installed: Installed) -> None:
    """The new addon has nothing to work with: refused, until the configuration is mended."""
    script = installed.script.read_text()
    before = len(installed.proxy.log)
    installed.save(installed.config, "proxy: [")
    installed.until_logged("the old one stays in force", before)
    installed.save(installed.script, script + "\n")
    installed.until(lambda: installed.ask().status == 503, "not refused")
    installed.provider.forget()
    assert installed.ask("<**six.m**> hello").status == 503
    assert installed.ask("in the tunnel", "https://github.com").status == 200
    assert [received.host for received in installed.provider.requests] == ["github.com"]
    installed.save(installed.config, CONFIG)
    installed.until(lambda: installed.ask("<**six.m**> hello").status == 200, "not back")


def test_a_key_that_is_put_into_env_is_used_at_once(installed: Installed) -> None:
    """Nobody starts anything anew: the file appears, changes, and each next call has its key."""
    keyed = CONFIG.replace("glm-key-1", '"${GLM_KEY_OF_ENV}"').replace(", {alias: backup, value: glm-key-2}", "")
    before = len(installed.proxy.log)
    installed.save(installed.config, keyed)
    installed.until_logged("GLM_KEY_OF_ENV is not set", before)
    env = installed.root / ".env"
    for key in ("sk-first-of-env", "sk-second-of-env"):
        before = len(installed.proxy.log)
        part = installed.root / "part"
        part.write_text(f"GLM_KEY_OF_ENV={key}\n")
        part.chmod(0o600)
        part.replace(env)
        installed.until_logged("Configuration reloaded", before)
        assert installed.host_of("<**glm.glm-4.7**> go") == "open.bigmodel.cn"
        assert key in str(installed.provider.calls[-1].headers)
        assert key not in installed.proxy.log
        # the next key is not kept waiting because this one was refused
        installed.provider.always(Behaviour(status=401, error="no such key"), host="open.bigmodel.cn")
        assert installed.ask("<**glm.glm-4.7**> go").status == 400
        assert "glm.primary is down for 10 min (key refused)" in installed.ask("<**glm.glm-4.7**> go").text
    env.unlink()
