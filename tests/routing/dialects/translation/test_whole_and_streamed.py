"""An answer says the same whether the provider or the client has it whole or in events: text, thinking, calls, end, usage."""

from __future__ import annotations

import dataclasses
import json
from itertools import permutations, product

import pytest

from routecodex.routing.values import Dialect, Endpoint
from tests.rig.asked import Asked
from tests.rig.reply import Asked as RigAsked
from tests.rig.reply import Reply, ToolUse
from tests.rig.spoken import EVENTS, WHOLE
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.translation.vendor_streams import REPLIES
from tests.system.grammar import Told, read

PAIRS = [pytest.param(client, spoken, id=f"{client}-on-{spoken}") for client, spoken in permutations(Dialect, 2)]
MORE = {
    "no-ids": Reply(text="", calls=(ToolUse("Bash", {"a": [1, {"b": "中"}]}), ToolUse("Bash", {}), ToolUse("Read", {"p": "é"}))),
    "nothing": Reply(text="", output_tokens=1),
    "thinks-and-calls": Reply(text="so", thinking="因为", calls=(ToolUse("Bash", {"x": 'q"\\'}, id="i"),), cached_tokens=20),
}


def told(client: Dialect, spoken: Dialect, raw: bytes, *, stream: bool) -> Told:
    endpoint = Endpoint(client, stream=stream if client is Dialect.GEMINI else None)
    asked = Asked(endpoint, stream, "round-1", "asked-model", 1, maker="acme", include_usage=True)
    translation = Translation(spoken, asked)
    return read(client, translation.feed(raw) + translation.close(), stream)


def comparable(answer: Told) -> Told:
    """Thinking of several pieces is one; how many texts there are and keep-alives are no content."""
    return dataclasses.replace(
        answer, thinking=["".join(answer.thinking)], texts=0, alive=0, signatures=sorted(set(answer.signatures))
    )


@pytest.mark.parametrize("name", [*REPLIES, *MORE])
@pytest.mark.parametrize("client, spoken", PAIRS)
def test_four_forms_say_the_same(client: Dialect, spoken: Dialect, name: str) -> None:
    reply = (REPLIES | MORE)[name]
    asked = RigAsked(spoken, "generate", stream=True, usage_chunk=True)
    events = b"".join(EVENTS[spoken](reply, asked))
    whole = json.dumps(WHOLE[spoken](reply, asked), ensure_ascii=False).encode()
    forms = [told(client, spoken, raw, stream=stream) for raw, stream in product((events, whole), (True, False))]
    first = comparable(forms[0])
    assert all(comparable(form) == first for form in forms)
    assert first.text == reply.joined
    assert "".join(first.thinking) == reply.thinking
    assert first.calls == [(call.name, call.arguments) for call in reply.calls]
    given = [call.id for call in reply.calls]
    assert first.ids == given or not all(given)
    assert len(set(first.ids)) == len(reply.calls), "every call has an id of its own"
    assert first.output == reply.tokens
    cached = reply.cached_tokens if client is Dialect.MESSAGES else 0  # counted beside the rest there
    assert first.input == reply.input_tokens - cached
