"""`routecodex COMMAND …`: which commands there are. Each is a module of `commands`, imported only when it is asked for.

1. A command imports neither mitmproxy nor anything else of others before it must: a status line is drawn many times a minute.
2. Exit codes: 0 done; 1 could not be done; 2 asked for wrongly; `run` gives its tool's.
3. Where a command goes wrong it raises `Failed` with what is wrong and what to do next; nobody sees a traceback for that, nor
   for what the system refuses (a full disk behind stdout, a folder that is gone) or for Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn, TextIO, cast

from .say import Failed, Readable, fail, unless_full

COMMANDS = {
    "run": "start a tool through the proxy: routecodex run claude",
    "env": "print the exports that bring a tool to the proxy by hand",
    "start": "start the proxy, and keep it until `stop`",
    "stop": "end the proxy",
    "status": "what runs, and where",
    "log": "what the proxy in the background says (-f: and goes on saying)",
    "try": "a first success: a tag, the rewritten call, an answer",
    "daemon": "see and set what holds for all sessions of the running servers",
    "sessions": "which sessions have something in force; clear ID erases one",
    "why": "where a session's last call went, why, and what it cost",
    "usage": "what calls cost, by day, session, key, model",
    "check": "read the configuration: all mistakes at once, and where calls go",
    "doctor": "look for what keeps things from working, and say what to do",
    "models": "which models a provider offers, and which are declared",
    "provider": "add a provider to your configuration: provider add glm --key-file FILE",
    "import": "make a configuration from a RouteCodex config.json",
    "statusline": "one line for Claude Code's status line",
    "uninstall": "say what lies where; --purge: erase it",
}
"""In the order of `--help`."""
MODULES = {"try": "try_", "import": "import_"}
"""Commands whose names are words of Python."""


class Parser(argparse.ArgumentParser):
    """One that says what is wrong as all else is said, and not how everything is written."""

    def error(self, message: str) -> NoReturn:
        raise Failed(message, f"`{self.prog} --help` says how it is written", code=2)


def main(argv: Sequence[str] | None = None) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us: nobody reads it
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as this process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no arrows gets a question mark, not a traceback
    out, errors = cast("TextIO", Readable(sys.stdout)), cast("TextIO", Readable(sys.stderr))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        return _main(list(sys.argv[1:] if argv is None else argv))


def _main(words: list[str]) -> int:
    command = words[0] if words else ""
    as_json = "--json" in words
    try:
        if command not in COMMANDS:
            return _without_command(words)
        module = import_module(f"{__package__}.commands.{MODULES.get(command, command)}")
        parser = Parser(f"routecodex {command}", description=module.__doc__, allow_abbrev=False)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--json", action="store_true", help="for programs: one JSON object on stdout")
        module.arguments(parser)
        given = parser.parse_args(words[1:])
        as_json = given.json
        code: int = module.act(given)
        sys.stdout.flush()
        return code
    except Failed as failed:
        return fail(failed, as_json=as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever read this has left: nothing to say at the end either
        return 1
    except OSError as error:
        heard = _is_heard()
        return fail(_refused(error, heard=heard), as_json=as_json and heard)
    except KeyboardInterrupt:
        return 130


def _refused(error: OSError, *, heard: bool) -> Failed:
    """What the system refused, and no command foresaw."""
    if not heard:
        return Failed(f"stdout cannot be written: {error.strerror}", unless_full(error, "look at what it leads to"))
    if isinstance(error, FileNotFoundError) and not _stands_somewhere():
        return Failed("the folder that this terminal stands in is gone", "cd to one that is there")
    what = error.strerror or type(error).__name__
    return Failed(
        f"{error.filename}: {what}" if error.filename else what, unless_full(error, "`routecodex doctor` looks further")
    )


def _stands_somewhere() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _is_heard() -> bool:
    """Whether stdout still takes anything; where it does not, nothing is said there at the end either."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return False
    return True


def _without_command(words: list[str]) -> int:
    parser = argparse.ArgumentParser("routecodex", description=_overview(), allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--version", action="store_true", help="say which version this is")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    given, unknown = parser.parse_known_args(words)
    if given.version:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(version("routecodex"))
        except PackageNotFoundError:
            print("a clone")
        return 0
    if not words:
        parser.print_help()
        return 0
    name = next((word for word in words if word in COMMANDS), given.command or words[0])
    if unknown and words[0].startswith("-"):
        hint = f"options stand behind the command: routecodex {name if name in COMMANDS else 'COMMAND'} {words[0]}"
        raise Failed(f"{words[0]} stands in the command's place", hint, code=2)
    from difflib import get_close_matches

    near = get_close_matches(name, [*COMMANDS, "--help", "--version"], 1)
    hint = f"did you mean `routecodex {near[0]}`?" if near else "`routecodex --help` names the commands"
    return fail(Failed(f"there is no command {name}", hint, code=2), as_json="--json" in words)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:{width}}  {line}" for name, line in COMMANDS.items())
    return f"Steer LLM command-line tools by typing tags in the chat.\n\n{lines}\n\n`routecodex COMMAND --help` says more."
