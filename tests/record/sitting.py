"""A person at each tool's terminal, the product in between: `python -m tests.record.sitting` (after `python -m tests.record`).

    python -m tests.record.sitting                   each that is installed
    python -m tests.record.sitting codex --talk      this one, with its screen and what the provider got behind each row

The same rows for each: what is typed, what the screen shows of it, and what the provider received. A fake provider plays every
host; every wait is bounded, so that one tool takes some three minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.record.stage import EVIL, Stage
from tests.rig.behaviour import Behaviour
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.received import Received
from tests.rig.reply import Reply, ToolUse

GLM = "open.bigmodel.cn"
CONFIG = """
virtualrouter:
  providers:
    glm:
      protocol: openai-chat
      baseURL: https://open.bigmodel.cn/api/paas/v4
      auth: {type: apikey, keys: [{alias: primary, value: sk-glm-1}, {alias: backup, value: sk-glm-2}]}
      models: {glm-4.7: {maxContext: 200000}}
  routing: {default: [origin]}
  clock: {enabled: true, dueWindowMs: 1000, ntp: {enabled: false}}
  stopMessage: {enabled: true}
"""
STOP = '<**stopMessage:"go on",2**>'
FILE = f"first\n```\n{EVIL}\n"
"""It ends the fence that a tool may put around it."""
_SIDE = ("[SUGGESTION MODE", "managed memory extraction", "complexity_score", "state_snapshot>", "title generator")
_SIDE += (
    '"call_type":"title_generation"',
    "Please create a detailed summary",
    "<conversation>",
    "CRITICAL: Respond with TEXT ONLY",
    "single-line task title",
    "Write the title in the predominant",
)
"""What stands in calls beside the conversation."""


@dataclass(frozen=True)
class Seat:
    """How a person sits down at a tool, and what is called how there."""

    start: tuple[str, ...]
    ready: str
    home: str
    """The host it asks by itself."""
    reads: ToolUse
    """With which it shows its model `notes.txt`."""
    env: Mapping[str, str]
    resume: tuple[str, ...]
    compact: str = "/compact"
    welcome: tuple[str, ...] = ()
    """Keys for what it asks at its first start."""
    welcomes_again: bool = False
    """And at each later one."""
    rewind: tuple[str, ...] = ()
    """Keys that bring the last message back and send it again; empty where it has none."""
    has_clock: bool = True
    """Codex's newest model brings a clock of its own; Gemini CLI names no session to keep a reminder for."""
    names_session: bool = True
    """Else it is known by its beginning, which a compaction takes: behind it nothing holds that was set before."""
    files: Mapping[str, str] = field(default_factory=dict)
    """In its home; `{project}` is the folder."""


_CLAUDE = {
    "hasCompletedOnboarding": True,
    "theme": "dark",
    "customApiKeyResponses": {"approved": ["dummy-dummy-dummy-20"], "rejected": []},
    "projects": {"{project}": {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
}
SEATS: Mapping[str, Seat] = {
    "claude-code": Seat(
        ("claude",),
        "auto mode",
        "api.anthropic.com",
        ToolUse("Bash", {"command": "cat notes.txt"}),
        {"ANTHROPIC_API_KEY": "sk-ant-api03-dummy-dummy-dummy-20", "IS_SANDBOX": "1"},
        ("claude", "-c"),
        rewind=("Escape Escape", "Up", "Enter", "Enter", "Enter"),
        files={".claude.json": json.dumps(_CLAUDE)},
    ),
    "codex": Seat(
        ("codex", "--no-daemon"),
        "Ask Codex",
        "api.openai.com",
        ToolUse("exec_command", {"cmd": "cat notes.txt"}),
        {"OPENAI_API_KEY": "sk-dummy", "CODEX_API_KEY": "sk-dummy"},
        ("codex", "resume", "--last", "--no-daemon"),
        welcome=("Enter",),
        has_clock=False,
        rewind=("Escape Escape", "Enter", "Enter"),
        files={".codex/auth.json": json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-dummy"})},
    ),
    "gemini-cli": Seat(
        ("gemini", "--skip-trust", "-m", "gemini-3-pro-preview"),
        "Type your message",
        "generativelanguage.googleapis.com",
        ToolUse("read_file", {"file_path": "notes.txt"}),
        {"GEMINI_API_KEY": "dummy"},
        ("gemini", "--skip-trust", "-m", "gemini-3-pro-preview", "--resume", "latest"),
        compact="/compress",
        rewind=("Escape Escape", "Up", "Enter", "Enter", "Enter"),
        has_clock=False,
        names_session=False,
        files={".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})},
    ),
    "qwen-code": Seat(
        ("qwen", "--auth-type", "openai", "-m", "gpt-5"),
        "Type your message",
        "api.openai.com",
        ToolUse("run_shell_command", {"command": "cat notes.txt", "is_background": False}),
        {"OPENAI_API_KEY": "sk-dummy", "OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_MODEL": "gpt-5"},
        ("qwen", "--auth-type", "openai", "-m", "gpt-5", "-c"),
        compact="/compress",
        rewind=("Escape Escape", "Enter", "Enter", "Enter"),
    ),
    "opencode": Seat(
        ("opencode", "-m", "anthropic/claude-sonnet-4-5"),
        "Ask anything",
        "api.anthropic.com",
        ToolUse("bash", {"command": "cat notes.txt", "description": "look"}),
        {"ANTHROPIC_API_KEY": "sk-ant-dummy", "OPENAI_API_KEY": "sk-dummy"},
        ("opencode", "-m", "anthropic/claude-sonnet-4-5", "-c"),
        rewind=("/undo", "Enter", "Enter"),
    ),
    "kilo": Seat(
        ("kilo", "-m", "anthropic/claude-sonnet-4-5"),
        "Ask anything",
        "api.anthropic.com",
        ToolUse("bash", {"command": "cat notes.txt", "description": "look"}),
        {"ANTHROPIC_API_KEY": "sk-ant-dummy"},
        ("kilo", "-m", "anthropic/claude-sonnet-4-5", "-c"),
        rewind=("/undo", "Enter", "Enter"),
    ),
    "vibe": Seat(
        ("vibe", "--agent", "auto-approve"),
        "Type /help",
        "api.mistral.ai",
        ToolUse("bash", {"command": "cat notes.txt"}),
        {"MISTRAL_API_KEY": "dummy"},
        ("vibe", "--agent", "auto-approve", "-c"),
        welcome=("Enter",),
    ),
    "copilot": Seat(
        ("copilot", "--allow-all-tools"),
        "/ commands",
        "api.openai.com",
        ToolUse("bash", {"command": "cat notes.txt", "description": "look"}),
        {
            "COPILOT_PROVIDER_BASE_URL": "https://api.openai.com/v1",
            "COPILOT_PROVIDER_API_KEY": "sk-dummy",
            "COPILOT_PROVIDER_WIRE_API": "responses",
            "COPILOT_MODEL": "gpt-5",
        },
        ("copilot", "--allow-all-tools", "--continue"),
        welcome=("Enter",),
        welcomes_again=True,
    ),
}


class Sitting:
    def __init__(self, client: str, folder: Path, *, talk: bool) -> None:
        self.seat = SEATS[client]
        self.talk = talk
        programs = [folder / client / "bin", *(folder / one / "node_modules" / ".bin" for one in (client, "node"))]
        self.stage = stage = Stage(programs, client=client)
        stage.proxy = Mitmdump(script=SCRIPT, config=CONFIG, upstream=stage.provider, folder=stage.root / "proxy", start_s=120)
        stage.env = dict(self.seat.env)
        self._mark = 0

    def begin(self, *command: str) -> None:
        stage = self.stage
        for name, text in self.seat.files.items():
            if command == self.seat.start:
                stage.write_home(name, text.replace("{project}", str(stage.project)))
        stage.terminal(*command)
        stage.settle(4)
        for key in self.seat.welcome if command == self.seat.start or self.seat.welcomes_again else ():
            stage.press(key)
            stage.settle(2)
        if command == self.seat.start and not stage.sees(self.seat.ready, 40):
            raise RuntimeError(f"it is not ready:\n{stage.screen}")
        stage.settle(3)

    def say(self, text: str, *, pasted: bool = False) -> list[Received]:
        """The calls of the conversation that it leads to."""
        self._mark = len(self.stage.provider.calls)
        if pasted:
            self.stage.paste(text)
            self.stage.press("Enter")
        else:
            self.stage.type(text, slowly_s=0.02)
        self.stage.settle(2.5)
        return self.asked

    @property
    def asked(self) -> list[Received]:
        return [one for one in self.stage.provider.calls[self._mark :] if not any(word.encode() in one.body for word in _SIDE)]

    def model(self, phrase: str, behaviour: Behaviour) -> None:
        """What it says to the next call of the conversation that holds the phrase."""
        left = [behaviour]

        def rule(received: Received) -> Behaviour | None:
            main = received.asked is not None and not any(word.encode() in received.body for word in _SIDE)
            return left.pop() if left and main and phrase.encode() in received.body else None

        self.stage.provider.script(rule)

    def restart(self) -> None:
        """The tool, and the proxy."""
        self.stage.close_terminal()
        self.stage.proxy.stop()
        self.stage.proxy.start()
        self.begin(*self.seat.resume)

    # ---- the rows: each says what is wrong, or nothing ----

    def rows(self) -> Iterator[tuple[str, Callable[[], str]]]:
        home = self.seat.home
        yield "echo", lambda: self._nobody_asked("<**echo**> hello there", "hello there")
        yield "status", lambda: self._nobody_asked("<**status**>", "The next message goes to origin")
        yield "sticky", lambda: self._nobody_asked("<**!glm.glm-4.7**>", "From now on everything goes to glm.glm-4.7")
        yield "a plain message", lambda: self._went("a plain message", GLM)
        yield "mistyped", lambda: self._nobody_asked("<**!glm.glm-4.77**> and more", "nearest known")
        yield "clear", lambda: self._nobody_asked("<**clear**>", "Everything is cleared")
        yield "at home again", lambda: self._went("at home again", home)
        yield "stopMessage", lambda: self._went(f"{STOP} do it", home, 3)
        yield "stopMessage once more", lambda: self._went(f"{STOP} do it", home, 3)
        yield "stopMessage sent again after a rewind", self._rewound
        yield "a tool's result", self._hop
        yield "a file that is named", lambda: self._went("look into @notes.txt please", home)
        yield "a command of the person's", self._shell
        yield "a reminder", self._reminded
        yield "pasted", lambda: self._went("three lines\n<**!glm.glm-4.7**>\nin one", GLM, pasted=True)
        yield "interrupted", self._interrupted
        yield "much", lambda: self._went("what is behind all this? " + "much " * 4000, GLM, pasted=True)
        yield "compacted", self._compacted
        behind = GLM if self.seat.names_session else home
        yield "behind the compaction", lambda: self._went("what comes behind it", behind, unseen="gave no orders")
        yield "resumed, the proxy started anew", self._resumed
        yield "no typed tag reached the provider", self._leaks

    def _nobody_asked(self, text: str, shown: str) -> str:
        asked = self.say(text)
        if asked:
            return f"the provider was asked: {_ends(asked)}"
        return "" if shown in " ".join(self.stage.screen.split()) else f"the screen does not say {shown!r}"

    def _went(self, text: str, host: str, count: int = 1, *, pasted: bool = False, unseen: str = "") -> str:
        return self._are(self.say(text, pasted=pasted), host, count, unseen)

    def _are(self, asked: list[Received], host: str, count: int, unseen: str = "") -> str:
        if [one.host for one in asked] != [host] * count:
            return f"{count} to {host} expected: {_ends(asked)}"
        if unseen and unseen in self.stage.screen:
            return f"the screen says {unseen!r}"
        return ""

    def _rewound(self) -> str:
        if not self.seat.rewind:
            return "-"
        self._mark = len(self.stage.provider.calls)
        for key in self.seat.rewind:
            if key.startswith("/"):
                self.stage.type(key, enter=False)
            else:
                self.stage.press(*key.split())
            self.stage.settle(1.5)
        self.stage.settle(2.5)
        return self._are(self.asked, self.seat.home, 3)

    def _hop(self) -> str:
        self.model("show me the notes", Behaviour(reply=Reply("", calls=(self.seat.reads,))))
        asked = self.say("show me the notes")
        if wrong := self._are(asked, self.seat.home, 2):
            return wrong
        return "" if EVIL.encode() in asked[-1].body else "what the tool said was changed"

    def _shell(self) -> str:
        self.stage.type("!", enter=False)
        self.stage.settle(1)
        self.say("cat notes.txt")
        self.stage.press("Escape")
        self.stage.settle(1)
        asked = self.say("behind the command")[-1:]
        if wrong := self._are(asked, self.seat.home, 1):
            return wrong
        return "" if b"**!evil.evil**" in asked[0].body else "what the command printed was changed"  # some escape the brackets

    def _reminded(self) -> str:
        """Due so soon that the answer is held for it."""
        if not self.seat.has_clock:
            return "-"
        due = (datetime.now(UTC) + timedelta(seconds=10)).isoformat()
        wishes = {"action": "schedule", "items": [{"dueAt": due, "task": "look", "tool": "", "arguments": ""}], "taskId": ""}
        self.model("remind me of it", Behaviour(reply=Reply("", calls=(ToolUse("clock", wishes),))))
        self.say("remind me of it")
        self.stage.until(lambda: any(b"[Clock Reminder]" in one.body for one in self.asked), 40)
        self.stage.settle(2.5)
        return self._are(self.asked, self.seat.home, 3)

    def _interrupted(self) -> str:
        words = Reply(tuple(f"word{number} " for number in range(60)))
        self.model("take your time", Behaviour(reply=words, delay_s=0.5))
        self.stage.type("take your time", slowly_s=0.02)
        self.stage.sees("word3", 20)
        for _ in range(2 if self.stage.client in ("opencode", "kilo", "copilot") else 1):  # they ask whether that was meant
            self.stage.press("Escape")
        self.stage.settle(2)
        slow = [one for one in self.stage.provider.calls if one.behaviour is not None and one.behaviour.delay_s]
        if not self.stage.until(lambda: bool(slow) and all(one.left_early for one in slow), 10):
            return "the answer went on"
        if self.stage.client == "qwen-code":  # it brings the message back
            self.stage.press("C-u")
        return self._went("and on we go", GLM)

    def _compacted(self) -> str:
        before = len(self.stage.provider.calls)
        self.stage.type(self.seat.compact, enter=False)
        self.stage.settle(1)
        self.stage.press("Enter")
        self.stage.calls_reach(before + 1, 20)
        self.stage.settle(4)
        asked = self.stage.provider.calls[before:]
        if "not beneficial" in self.stage.screen:
            return "it was not compacted"
        return "" if asked and {one.host for one in asked} == {GLM} else f"only {GLM} expected: {_ends(asked)}"

    def _resumed(self) -> str:
        self.restart()
        return self._went("still there", GLM if self.seat.names_session else self.seat.home)

    def _leaks(self) -> str:
        typed = [b"<**!glm", b"<**status", b"<**clear", b"<**echo", b"<**stopMessage"]
        leaks = [one for one in self.stage.provider.calls if any(tag in one.body for tag in typed)]
        return f"in {len(leaks)}: {_ends(leaks)}" if leaks else ""

    def play(self) -> int:
        wrong = 0
        with self.stage as stage:
            stage.provider.standing = Behaviour(reply=Reply("ok", input_tokens=50_000))  # some compact only what is long
            stage.write("notes.txt", FILE)
            self.begin(*self.seat.start)
            for name, row in self.rows():
                began = time.monotonic()
                outcome = row()
                wrong += outcome not in ("", "-")
                told = {"": "held", "-": "cannot be tried"}.get(outcome, f"WRONG: {outcome}")
                print(f"   {name}: {told} ({time.monotonic() - began:.0f} s)", flush=True)
                if self.talk or outcome not in ("", "-"):
                    lines = [line.rstrip() for line in stage.screen.splitlines() if line.strip(" ─│┃▀╹█")]
                    print("\n".join(f"      | {line}" for line in (*lines[-22:], *map(_end, self.asked))), flush=True)
        return wrong


def _ends(asked: list[Received]) -> str:
    return "; ".join(map(_end, asked)) or "nothing"


def _end(one: Received) -> str:
    """Where a call went, and the end of what it says."""
    return f"{one.host} …{one.body[-160:].decode('utf-8', 'replace')}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.record.sitting", description=__doc__.splitlines()[0])
    parser.add_argument("client", nargs="*", choices=[*SEATS, []], metavar="CLIENT", help="all, where none is named")
    kept = os.environ.get("ROUTECODEX_CLIENTS", Path.home() / ".cache" / "routecodex-clients")
    parser.add_argument("--folder", type=Path, default=Path(kept))
    parser.add_argument("--talk", action="store_true", help="print screens, and what the provider received")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    wrong = 0
    for client in asked.client or SEATS:
        if not (folder / client).exists():
            print(f"== {client}: not installed")
            continue
        print(f"== {client}", flush=True)
        wrong += Sitting(client, folder, talk=asked.talk).play()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
