"""Install the newest version of each client, record what it sends, and say what changed: `python -m tests.record`.

    python -m tests.record                       all clients: install, play, compare with tests/fixtures
    python -m tests.record codex pi --write      … these only, and keep what was recorded
    python -m tests.record --installed           with what is installed already

It needs `npm` and the registries; clients lie in `--folder` (or $ROUTECODEX_CLIENTS). Nothing else leaves this machine.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.record.fixtures import FOLDER, number_of, shape_of, write, write_index
from tests.record.stage import Stage
from tests.record.ways import CLIENTS, Recorded

NODE = "node@22"
"""Newer than many machines' own: with an older Node, npm silently picks older clients."""


def install(folder: Path, recorded: Recorded) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if recorded.python:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--upgrade", *recorded.python]
        subprocess.run(pip, check=True)
        return
    npm(folder, f"{recorded.package}@latest")


def npm(folder: Path, package: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text("{}")
    path = os.pathsep.join([str(folder.parent / "node" / "node_modules" / ".bin"), os.environ.get("PATH", "")])
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent", package]
    subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True)


def version_of(folder: Path, recorded: Recorded) -> str:
    if recorded.python:
        ask = f"import importlib.metadata as m; print(m.version({recorded.package!r}))"
        return subprocess.run(
            [str(folder / "bin" / "python"), "-c", ask], capture_output=True, text=True, check=True
        ).stdout.strip()
    described = folder / "node_modules" / recorded.package / "package.json"
    return str(json.loads(described.read_text(encoding="utf-8"))["version"])


def record(client: str, folder: Path, *, keep: bool, talk: bool) -> bool:
    """Whether everything was recorded, and reads as before."""
    recorded = CLIENTS[client]
    version = version_of(folder / client, recorded)
    programs = [folder / client / "bin", folder / client / "node_modules" / ".bin", folder / "node" / "node_modules" / ".bin"]
    same = True
    with Stage(programs, client=client, version=version) as stage:
        recorded.play(stage)
        print(f"== {client} {version}: {len(stage.kept)} recorded" + (f", MISSING {stage.missing}" if stage.missing else ""))
        if talk or stage.missing:
            print("\n".join(stage.log))
        for name, found in stage.kept.items():
            path = number_of(FOLDER / client, name)
            before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
            if before is None:
                print(f"   {name}: new")
            elif changes := [
                line
                for line in difflib.unified_diff(shape_of(before), shape_of(found), lineterm="", n=0)
                if not line.startswith(("---", "+++", "@@"))
            ]:
                same = False
                print(f"   {name}: changed since {before.get('version', '?')}", *changes, sep="\n      ")
            else:
                print(f"   {name}: as it was in {before.get('version', '?')}")
            if keep:
                write(path, found)
        return same and not stage.missing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.record", description=__doc__.splitlines()[0])
    parser.add_argument("client", nargs="*", choices=[*CLIENTS, []], help="all, where none is named")
    parser.add_argument(
        "--folder", type=Path, default=Path(os.environ.get("ROUTECODEX_CLIENTS", Path.home() / ".cache" / "routecodex-clients"))
    )
    parser.add_argument("--installed", action="store_true", help="play what is installed already")
    parser.add_argument("--write", action="store_true", help="keep what was recorded under tests/fixtures")
    parser.add_argument("--talk", action="store_true", help="print what the clients printed")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    if not asked.installed:
        npm(folder / "node", NODE)
    same = True
    for client in asked.client or CLIENTS:
        if not asked.installed:
            install(folder / client, CLIENTS[client])
        same &= record(client, folder, keep=asked.write, talk=asked.talk)
    if asked.write:
        write_index()
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
