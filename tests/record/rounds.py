"""A stopMessage and a real background agent: `python -m tests.record.rounds` (after `python -m tests.record claude-code`).

Claude Code tells its model of an agent that has finished in a call of its own, under a new prompt id. That is nothing a person
typed: `go on` is said twice and no more, whether the model starts one agent or one for everything that it is told.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from tests.record.stage import Stage
from tests.rig.behaviour import Behaviour
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.received import Received
from tests.rig.reply import Reply, ToolUse

CONFIG = "virtualrouter: {routing: {default: [origin]}, stopMessage: {enabled: true}}\n"
TYPED = '<**stopMessage:"go on",2**> delegate it'
SUBAGENT = b"cc_is_subagent=true"


def said(received: Received) -> list[tuple[str, str]]:
    """Who says what, the last text of each message."""
    found = []
    for message in received.json["messages"]:
        content: Any = message["content"]
        texts = [content] if isinstance(content, str) else [block.get("text", block["type"]) for block in content]
        found.append((message["role"], texts[-1].strip() if texts else ""))
    return found


def play(folder: Path, agents: int) -> tuple[int, int]:
    """How often `go on` was sent, and how many agents worked."""
    programs = [folder / client / "node_modules" / ".bin" for client in ("claude-code", "node")]
    stage = Stage(programs, client="claude-code")
    stage.proxy = Mitmdump(script=SCRIPT, config=CONFIG, upstream=stage.provider, folder=stage.root / "proxy", start_s=120)
    left = [agents]

    def delegate(received: Received) -> Behaviour | None:
        mains = received.asked is not None and SUBAGENT not in received.body and b'"tools"' in received.body
        if not mains or not left[0] or said(received)[-1] == ("user", "tool_result"):
            return None
        left[0] -= 1
        look = {"description": f"look {left[0]}", "prompt": "look around", "subagent_type": "general-purpose"}
        return Behaviour(reply=Reply("", calls=(ToolUse("Agent", look),)))

    with stage:
        stage.env = {"ANTHROPIC_API_KEY": "sk-ant-api03-dummy", "IS_SANDBOX": "1"}
        stage.provider.script(delegate)
        print(stage.run("claude", "-p", TYPED, timeout=300)[-300:])
        calls = [received for received in stage.provider.calls if received.asked is not None]
        return (
            sum(SUBAGENT not in call.body and said(call)[-1] == ("user", "go on") for call in calls),
            sum(SUBAGENT in call.body for call in calls),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    kept = os.environ.get("ROUTECODEX_CLIENTS", Path.home() / ".cache" / "routecodex-clients")
    parser.add_argument("--folder", type=Path, default=kept)
    folder = Path(parser.parse_args().folder).absolute()
    wrong = 0
    for agents in (1, 12):
        rounds, worked = play(folder, agents)
        print(f"== a model that starts {agents}: {worked} worked, {rounds} times `go on`")
        wrong += rounds != 2 or not worked
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
