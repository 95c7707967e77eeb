"""An answer whose rounds all speak the client's own dialect; and one that is said by nobody else."""

from __future__ import annotations

from routecodex.routing.dialects.answer.events import Failed
from routecodex.routing.dialects.answer.machine import Answer, writer_for
from routecodex.routing.dialects.answer.ours import told
from routecodex.routing.dialects.finish import AS_USUAL, Endings
from routecodex.routing.dialects.sse import ArrayItems, Events
from routecodex.routing.values import Answer as Said
from routecodex.routing.values import Dialect, Endpoint, ProviderError
from tests.rig.asked import Asked


def answer_for(
    endpoint: Endpoint,
    *,
    stream: bool,
    own_tools: frozenset[str] = frozenset(),
    include_usage: bool = False,
    endings: Endings = AS_USUAL,
    quiet: bool = False,
) -> Answer:
    """`include_usage`: a Chat client asked for the usage of its stream; `quiet`: nobody takes part."""
    asked = Asked(endpoint, stream, "", "", 0, include_usage=include_usage, passes_usage=quiet, endings=endings)
    return Answer(asked, own=own_tools, quiet=quiet)


def write_error_event(dialect: Dialect, status: int, message: str, code: str) -> bytes:
    """The error that ends a stream which has begun."""
    error = ProviderError(status, message, code)
    return writer_for(Asked(Endpoint(dialect, stream=True), True, "resp_1", "m", 0)).made(Failed(error))


def write_answer(dialect: Dialect, answer: Said, *, id: str, model: str, created: int, envelope: bool = False) -> bytes:
    """A whole answer as JSON."""
    return told(Asked(Endpoint(dialect, envelope=envelope), False, id, model, created), answer)


def write_stream(
    dialect: Dialect,
    answer: Said,
    *,
    id: str,
    model: str,
    created: int,
    include_usage: bool = False,
    json_array: bool = False,
    envelope: bool = False,
) -> list[bytes]:
    """A stream, one event (or array item) after another."""
    endpoint = Endpoint(dialect, stream=True, json_array=json_array, envelope=envelope)
    raw = told(Asked(endpoint, True, id, model, created, include_usage=include_usage), answer)
    events = ArrayItems() if json_array else Events()
    return [event.raw for event in (*events.feed(raw), *events.close())]
