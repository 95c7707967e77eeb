"""Which client is typed in the shell, how it is begun there, and what to type for one that cannot use a proxy."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import PurePath

from ..values import Dialect
from .client import ANTHROPIC, GEMINI, OPENAI, Client
from .sdk import SDKS
from .unknown import KNOWN, UNKNOWN

_BASES = {Dialect.MESSAGES: ANTHROPIC, Dialect.CHAT: OPENAI, Dialect.RESPONSES: OPENAI, Dialect.GEMINI: GEMINI}
_PORT = 8081
_BY_PROGRAM = {program: client for client in (*KNOWN, *SDKS) for program in client.programs}


def client_of_program(command: str) -> Client:
    """A program that nobody knows gets whatever any client needs."""
    name = PurePath(command).name.lower().removesuffix(".exe").removesuffix(".cmd")
    return _BY_PROGRAM.get("python" if name.startswith("python") else name, UNKNOWN)


def nearest_programs(command: str) -> list[str]:
    """Those that may have been meant."""
    return get_close_matches(command.lower(), _BY_PROGRAM)


def arguments(client: Client, given: Sequence[str]) -> list[str]:
    return [*(word for word in client.first if word not in given), *given]


def base_url_line(agent: str, dialect: Dialect | None) -> str:
    """For whoever asked us in the place of a provider: the command, and the same by hand."""
    asked = agent.strip().lower()
    known = next((one for one in (*KNOWN, *SDKS) if one.agents and one.programs and asked.startswith(one.agents)), None)
    program = known.programs[0] if known is not None and known.bases else "TOOL"
    ((name, (host, path)),) = _BASES[dialect or Dialect.MESSAGES].items()
    own = next(
        (own for own, where in (known.bases if known is not None else {}).items() if where == (host, path)), f"{name}={{}}"
    )
    leads = own if "{}" in own else f"{own}={{}}"
    return (
        f"`routecodex run --base-url {program}`; or mitmdump --mode reverse:{host}@127.0.0.1:{_PORT} -s addons/routecodex.py, "
        f"and {leads.format(f'http://127.0.0.1:{_PORT}{path}')}"
    )
