"""Libraries that read a host's dialect more strictly than it says: `python -m tests.record.libraries [NAME…]`.

    python -m tests.record.libraries                 all packages, through a real proxy, answered in each dialect by others
    python -m tests.record.libraries xai --installed  this one, as it lies in the folder

Each asks for a tool call and goes on behind it, streamed and not. It needs `npm` and its registry; nothing else leaves this
machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.record.__main__ import NODE, npm
from tests.record.stage import Stage
from tests.rig.proxy import SCRIPT, Mitmdump
from tests.rig.reply import Reply, ToolUse

PROGRAM = Path(__file__).with_suffix(".mjs")
PACKAGES = {
    **{name: f"@ai-sdk/{name}" for name in ("alibaba", "anthropic", "cerebras", "deepseek", "fireworks", "google")},
    **{name: f"@ai-sdk/{name}" for name in ("huggingface", "mistral", "openai", "xai")},
    "minimax": "vercel-minimax-ai-provider",
    "moonshot": "@ai-sdk/moonshotai",
    "openai-chat": "@ai-sdk/openai",
    "openrouter": "@openrouter/ai-sdk-provider",
    "together": "@ai-sdk/togetherai",
    "zhipu": "zhipu-ai-provider",
}
BESIDE = ("ai", "zod", "undici")
TARGETS = {"chat": "openai-chat", "msg": "anthropic-messages", "resp": "openai-responses", "gem": "gemini-chat"}
CONFIG = "virtualrouter:\n  routing: {default: [origin]}\n  providers:\n" + "".join(
    f'    {name}: {{protocol: {dialect}, baseURL: "https://{name}.example/v1",'
    f" auth: {{keys: [{{value: sk-{name}-1}}]}}, models: {{m: {{}}}}}}\n"
    for name, dialect in TARGETS.items()
)
REPLY = Reply("let me see, ", thinking="hmm", calls=(ToolUse("look", {"path": "a.txt"}),))


def install(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"type": "module"}')
    packages = [f"{package}@latest" for package in (*BESIDE, *sorted(set(PACKAGES.values())))]
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--legacy-peer-deps", *packages]
    subprocess.run(command, cwd=folder, check=True)


def ask(stage: Stage, folder: Path, name: str, how: str, target: str) -> dict[str, Any]:
    stage.on("look for me", REPLY)
    before = len(stage.provider.requests)
    command = ["node", PROGRAM.name, name, how, f"<**!{target}.m**> look for me"]
    done = subprocess.run(command, cwd=folder, env=stage.environment, capture_output=True, text=True, timeout=90, check=False)
    lines = done.stdout.strip().splitlines()
    told: dict[str, Any] = json.loads(lines[-1]) if lines else {"errors": [done.stderr[-600:]]}
    sent = stage.provider.requests[before:]
    told["asked"] = sorted({f"{request.host}" for request in sent})
    told["repeated"] = bool(sent) and b"let me see," in sent[-1].body
    return told


def wrong_with(told: dict[str, Any], target: str) -> str:
    expected: dict[str, Any] = {"calls": [["look", {"path": "a.txt"}]], "finish": "stop", "errors": [], "repeated": True}
    expected["asked"] = [f"{target}.example"]
    wrong = {field: told.get(field) for field, value in expected.items() if told.get(field) != value}
    if not str(told.get("text", "")).endswith("ok"):
        wrong["text"] = told.get("text")
    if not told.get("tokens"):
        wrong["tokens"] = told.get("tokens")
    return json.dumps(wrong) if wrong else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.record.libraries", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", choices=[*PACKAGES, []], metavar="NAME", help="all, where none is named")
    kept = os.environ.get("ROUTECODEX_CLIENTS", Path.home() / ".cache" / "routecodex-clients")
    parser.add_argument("--folder", type=Path, default=Path(kept))
    parser.add_argument("--installed", action="store_true", help="as they lie there")
    asked = parser.parse_args()
    folder = asked.folder.resolve() / "libraries"
    if not asked.installed:
        npm(asked.folder.resolve() / "node", NODE)
        install(folder)
    shutil.copyfile(PROGRAM, folder / PROGRAM.name)
    stage = Stage([asked.folder.resolve() / "node" / "node_modules" / ".bin"])
    stage.proxy = Mitmdump(script=SCRIPT, config=CONFIG, upstream=stage.provider, folder=stage.root / "proxy", start_s=90)
    failed = 0
    with stage:
        for name in asked.name or sorted(PACKAGES):
            described = json.loads((folder / "node_modules" / PACKAGES[name] / "package.json").read_text(encoding="utf-8"))
            found = {
                f"{target}, {how}": wrong
                for target in TARGETS
                for how in ("stream", "json")
                if (wrong := wrong_with(ask(stage, folder, name, how, target), target))
            }
            failed += len(found)
            print(f"== {name} {described['version']}: {2 * len(TARGETS) - len(found)} of {2 * len(TARGETS)} held", flush=True)
            for where, wrong in found.items():
                print(f"   {where}: {wrong}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
