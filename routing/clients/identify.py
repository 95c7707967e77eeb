"""Who sent a call, and what for: client, kind of call, session, prompt, working directory.

1. What a client says itself decides: headers first, then metadata in the body, then what its texts begin with.
2. The working directory is read only from text that tools wrote.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from ..values import Call, Caller, Headers, Text
from .client import Client
from .homes import tells_whole_calls
from .ids import agent_of, conversation_of, prompt_of, session_of
from .kinds import kind_of, system_head
from .sdk import SDKS
from .unknown import KNOWN, UNKNOWN

ALL = (*KNOWN, *SDKS, UNKNOWN)
_BY_NAME = {client.name: client for client in KNOWN}
NAMES = frozenset(_BY_NAME)
"""Of the tools; a program behind an SDK is named by its user agent."""
_PASS_FOR_OTHERS = tuple(client for client in KNOWN if client.passes_for)


def client_of(caller: Caller) -> Client:
    return _by_name(caller.client)


@functools.lru_cache(maxsize=512)
def _by_name(name: str) -> Client:
    return _BY_NAME.get(name) or next((sdk for sdk in SDKS if f"{name}/".startswith(sdk.agents)), UNKNOWN)


def identify(call: Call, headers: Headers, path: str, host: str) -> Caller:
    """What the headers (lower-case names) and the body of a call tell about its sender."""
    name = _name(call, headers)
    client = _by_name(name)
    session = session_of(call, headers, client)
    return Caller(
        client=name,
        kind=kind_of(call, headers, client),
        session=session,
        conversation=conversation_of(call, headers, session),
        prompt=prompt_of(call, headers, client, session),
        agent=agent_of(call, headers, client),
    )


def _name(call: Call, headers: Headers) -> str:
    for client in KNOWN:
        if any(header in headers for header in client.headers):
            return client.name
    agent = headers.get("user-agent", "").strip().lower()[:200]
    passing = [client for client in _PASS_FOR_OTHERS if agent.startswith(client.passes_for)]
    if passing and (introduced := _introduced(call, passing)) is not None:
        return introduced.name
    for client in KNOWN:
        if client.agents and agent.startswith(client.agents):
            return client.name
    if (introduced := _introduced(call, KNOWN)) is not None:
        return introduced.name
    first_word = agent.split(maxsplit=1)[0] if agent else ""
    return re.sub(r"/[\d.].*$|[^a-z0-9_./-]", "", first_word)[:64] or UNKNOWN.name


def _introduced(call: Call, clients: Iterable[Client]) -> Client | None:
    system = system_head(call)
    return next((client for client in clients if any(phrase in system for phrase in client.introductions)), None)


def asks_again(name: str) -> bool:
    """Whether it bears a 429: waits as `Retry-After` says, tries again, and shows the sentence if that does not help."""
    return _by_name(name).honours_retry_after


def takes_whole_calls(name: str, host: str) -> bool:
    """`host`: where it was going."""
    return tells_whole_calls(host) or _by_name(name).whole_calls


_WORKDIR = re.compile(
    r"(?:\b(?:Primary working directory|Working directory|working in the directory):[ \t]*"
    r"|Workspace Directories:\*{0,2}[ \t]*\n[ \t]*-[ \t]*"
    r"|<cwd>)"
    r"([^\n<>\x00]{1,4096})"
)
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")
_ENVIRONMENTS = ("<environment_context>", "<session_context>", "<system-reminder>\nThis is the ")
"""How parts of a user's message begin in which tools describe where they run."""
_LONGEST_SEARCHED = 100_000


def workdir_of(call: Call) -> str | None:
    """The newest one that a tool states."""
    for text in _environment_texts(call):
        for found in reversed(_WORKDIR.findall(text[:_LONGEST_SEARCHED])):
            if _ABSOLUTE.match(path := str(found).strip()):
                return path
    return None


def _environment_texts(call: Call) -> Iterator[str]:
    """Newest first, the instructions last."""
    for message in reversed(call.messages):
        for part in reversed(message.parts):
            if isinstance(part, Text) and (
                message.role == "system" or (message.role == "user" and part.text.startswith(_ENVIRONMENTS))
            ):
                yield part.text
    yield call.system
