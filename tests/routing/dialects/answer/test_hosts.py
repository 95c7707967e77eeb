"""How the samples of hosts end that do not leave as they came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from routecodex.routing.dialects.sse import Events
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.hosts import test_hosts as hosts
from tests.routing.dialects.hosts.sample import Sample

WRITTEN_ANEW = {
    "Google: a signed call, whole, without an index in order": "tool_calls",
    "Google: parallel calls all with index 0, the first one signed": "tool_calls",
    "Google: the reason says of what kind it is": "content_filter",
    "Google: a malformed call named as a filter": "stop",
    "DeepSeek: out of resources": "error",
    "Mistral: its own word for the limit": "length",
    "Perplexity: a stream without [DONE]": "stop",
    "Bedrock: a guardrail stepped in": "content_filter",
    "Z.ai: the filter's own word": "content_filter",
    "MiniMax: the whole message once more at the end": "stop",
    "Ollama: a whole call in one chunk, then stop": "tool_calls",
    "vLLM: the plain reason behind a call": "tool_calls",
    "Z.ai: a call with the plain reason": "tool_use",
    "a gateway: a stream that stops behind its reason": "end_turn",
}
"""Decision 17, in the same dialect: the reason as it is told, where the host's does not fit what was said, or is no word of its
dialect; and the end behind it, where that is missing. All else leaves as it came."""
SAMPLES = (*hosts.chat.SAMPLES, *hosts.messages.SAMPLES, *hosts.responses.SAMPLES, *hosts.gemini.SAMPLES)


@pytest.mark.parametrize(
    "sample", [one for one in SAMPLES if f"{one.host}: {one.trait}" in WRITTEN_ANEW], ids=lambda one: one.name
)
def test_d17_a_wrong_reason_is_all_that_is_written_anew(sample: Sample) -> None:
    word = WRITTEN_ANEW[f"{sample.host}: {sample.trait}"]
    merger = answer_for(sample.endpoint, stream=True, include_usage=True)
    merger.begin_round()
    out = merger.feed(sample.raw)
    said = merger.end_round()
    out += b"".join(merger.finish())
    assert (said.complete, said.text) == (True, sample.expected.text)
    before, reasons = _without_reason(sample.raw)
    behind, told = _without_reason(out)
    end = [one for one in behind if one in (b"[DONE]", {"type": "message_stop"})]
    assert [one for one in behind if one not in end] == [one for one in before if one not in end]
    assert (len(end), told) == (1, [word])
    assert told != reasons or before[-1] not in end


def _without_reason(raw: bytes) -> tuple[list[Any], list[str]]:
    """The documents of a stream but for why it ended, and that."""
    reader = Events()
    documents: list[Any] = []
    reasons: list[str] = []
    for event in [*reader.feed(raw), *reader.close()]:
        document = event.data if event.data == b"[DONE]" else json.loads(event.data)
        if isinstance(document, dict):
            for holder, name in [(one, "finish_reason") for one in document.get("choices", ())] + [
                (document.get("delta", {}), "stop_reason")
            ]:
                if reason := holder.pop(name, None):
                    reasons.append(reason)
                    holder.pop("delta", None) if holder.get("delta") == {} else None
        documents.append(document)
    return documents, reasons
