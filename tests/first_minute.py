"""From `pip install WHEEL` to the first tag, for each tool and each Python: `python -m tests.first_minute TOOLS [PYTHON …]`.

TOOLS is a folder with the tools: any `node_modules/.bin` and `bin` below it is searched. For each Python a fresh home, a fresh
environment, the wheel of this clone with what it needs (from pip's cache, where it is there), then each tool through
`routecodex run`, with a message that `echo` answers. The vendors are played by the fake provider, behind a proxy such as
companies have; nothing leaves this machine but pip's questions. Behind each time stands what of it was spent on a processor: on
a machine that does other things, too, that is what counts. Exit code 1 where a line fails, or takes longer than a minute.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hatchling import build

from tests.record.stage import beside
from tests.rig.behaviour import Behaviour
from tests.rig.door import Door
from tests.rig.provider import FakeProvider
from tests.rig.proxy import ROOT, Mitmdump
from tests.rig.reply import Reply

LIMIT_S = 60.0
TAG = "<**echo**> the first minute"
ANSWER = "the first minute"
FROM_ELSEWHERE = "no tag was read"
_ANTHROPIC, _OPENAI, _GEMINI = {"ANTHROPIC_API_KEY": "sk-ant-dummy"}, {"OPENAI_API_KEY": "sk-dummy"}, {"GEMINI_API_KEY": "dummy"}
_SDK = (
    "import anthropic; print(anthropic.Anthropic().messages.create(model='claude-sonnet-4-5', max_tokens=99, "
    f"messages=[{{'role': 'user', 'content': {TAG!r}}}]).content[0].text)"
)


@dataclass(frozen=True, slots=True)
class Tool:
    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


TOOLS: Mapping[str, Tool] = {
    "claude": Tool(("claude", "-p", TAG), {**_ANTHROPIC, "IS_SANDBOX": "1"}),
    "codex": Tool(("codex", "exec", "--skip-git-repo-check", TAG), {**_OPENAI, "CODEX_API_KEY": "sk-dummy"}),
    "gemini": Tool(("gemini", "--skip-trust", "-m", "gemini-2.5-flash", "-p", TAG), _GEMINI),
    "opencode": Tool(("opencode", "run", "-m", "anthropic/claude-sonnet-4-5", TAG), _ANTHROPIC),
    "qwen": Tool(
        ("qwen", "--auth-type", "openai", "-m", "gpt-5", "-p", TAG), {**_OPENAI, "OPENAI_BASE_URL": "https://api.openai.com/v1"}
    ),
    "aider": Tool(
        (
            *(
                "aider",
                "--no-check-update",
                "--no-show-model-warnings",
                "--yes-always",
                "--no-git",
                "--no-analytics",
                "--no-stream",
            ),
            *("--model", "anthropic/claude-sonnet-4-5", "--message", TAG),
        ),
        _ANTHROPIC,
    ),
    "llm": Tool(("llm", "-m", "gpt-4o", TAG), _OPENAI),
    "python SDK": Tool(("python", "-c", _SDK), _ANTHROPIC),
}


class Watch:
    """Seconds since it was made, and those of them that the children who have ended spent on a processor."""

    def __init__(self) -> None:
        self._began = self._now()

    def read(self) -> tuple[float, float]:
        wall, spent = self._now()
        return wall - self._began[0], spent - self._began[1]

    def _now(self) -> tuple[float, float]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic(), children.ru_utime + children.ru_stime


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=Path)
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    parser.add_argument("--only", default="", help="some of the tools, with commas")
    given = parser.parse_args(argv)
    names = given.only.split(",") if given.only else list(TOOLS)
    path = os.pathsep.join(str(one) for one in _folders(given.tools))
    good = True
    print("| Python | Tool | installed | first tag | together | |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="minute-", dir="/var/tmp") as folder:
        wheel = _wheel(Path(folder))
        for number, python in enumerate(given.pythons):
            good &= _one_python(Path(folder) / str(number), python, wheel, path, names)
    return 0 if good else 1


def _folders(tools: Path) -> list[Path]:
    """A Node of the tools' own goes before the system's; environments of Python last, for their `python`."""
    node = sorted(tools.glob("*/node_modules/node/node_modules/*/bin"))
    return [*node, *sorted(tools.glob("*/node_modules/.bin")), *sorted(tools.glob("*/bin"), key=lambda one: "aider" in one.parts)]


def _wheel(folder: Path) -> Path:
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        return folder / build.build_wheel(str(folder))
    finally:
        os.chdir(before)


def _one_python(folder: Path, python: str, wheel: Path, path: str, names: Sequence[str]) -> bool:
    good = True
    watch = Watch()
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    bin = folder / "venv" / "bin"
    pip = subprocess.run([str(bin / "python"), "-m", "pip", "install", "-q", str(wheel)], stderr=subprocess.PIPE, text=True)
    if pip.returncode:
        sys.exit(pip.stderr)
    installed = watch.read()
    ask = [python, "-c", "import platform; print(platform.python_version())"]
    version = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    with FakeProvider() as provider, Mitmdump(upstream=provider, folder=folder / "company", start_s=90) as company:
        provider.standing = Behaviour(reply=Reply(FROM_ELSEWHERE))
        provider.script(beside)
        for name in names:
            tool = TOOLS[name]
            env = {**company.client_env, "PATH": os.pathsep.join([path, os.environ["PATH"]])}
            with Door(folder / name.replace(" ", "-"), (str(bin / "routecodex"),), **env) as door:
                watch = Watch()
                try:
                    done = door.run("run", *tool.words, env=tool.env)
                    said, code = done.stdout + done.stderr, done.returncode
                except subprocess.TimeoutExpired:
                    said, code = "nothing within its time", -1
                took = watch.read()
                is_answered = code == 0 and ANSWER in said.replace(TAG, "") and FROM_ELSEWHERE not in said
                verdict = "" if is_answered else f"**ended with {code}: {' '.join(said.split())[-300:]}**"
                verdict = verdict or ("" if installed[0] + took[0] <= LIMIT_S else "longer than a minute")
                good &= not verdict
                both = (installed[0] + took[0], installed[1] + took[1])
                cells = (version, name, *(f"{wall:.1f} s ({spent:.1f})" for wall, spent in (installed, took, both)), verdict)
                print(f"| {' | '.join(cells)} |", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
