# ruff: noqa: E501 (one row of a table is one line)
"""The same calls and answers through llm-rosetta: where it and we differ, it is written down here why.

Both results are read by the reader of their dialect, and what they say is compared by kind. What is neither equal nor in a table
fails, and so does a row that nothing needs any more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.calls.editing import inner_body
from routecodex.routing.dialects.finish import read_finish
from routecodex.routing.dialects.translation import going_up
from routecodex.routing.errors import BadCall
from routecodex.routing.values import Dialect, Endpoint
from tests.everything import ENDPOINTS, EVERYTHING
from tests.pairs_table import MODELS, PAIRS, alone, sayings
from tests.rig.asked import Asked
from tests.rig.reply import Asked as Told
from tests.rig.reply import Reply, ToolUse
from tests.rig.spoken import EVENTS, WHOLE
from tests.routing.dialects.answer.abroad import Translation
from tests.routing.dialects.answer.plain import (
    Broken,
    CallPiece,
    CallStarted,
    Event,
    Finished,
    Hearer,
    TextPiece,
    ThoughtPiece,
    hear_whole,
)
from tests.routing.dialects.calls.recorded import CALLS
from tests.sdk.environment import ROSETTA, NoSdks
from tests.sdk.lines import Lines

Body = dict[str, Any]
_LETTERS = dict(zip("mcrg", Dialect, strict=True))
GENERATED = [(one, endpoint) for one, endpoint in CALLS if endpoint.action == "generate" and b"compaction_trigger" not in one.raw]


@pytest.fixture(scope="module")
def rosetta() -> Iterator[Lines]:
    try:
        python = ROSETTA.python()
    except NoSdks as error:
        pytest.skip(str(error))
    started = Lines([python, ROSETTA.requirements.with_name("rosetta.py")])
    yield started
    started.close()


# --- calls --------------------------------------------------------------------------------------------------------------

DIFFERENT_CALLS: tuple[tuple[str, str, str], ...] = (
    ("refused", "mcr", "it fails on pictures and files by id, on code that Google ran, and on thinkingLevel in capitals, as Google writes it"),
    ("nothing said", "crg", "it sends a message without content where it has left out all of it: audio, files, search results"),
    ("media, media of results", "m", "it puts sound and `data:` addresses into documents, and loses pictures in Google's results"),
    ("media", "crg", "it loses PDFs towards Chat and pictures by address towards Google, and sends sound and videos as files"),
    ("media of results", "rg", "it loses pictures in Google's results, and makes them text in Google's"),
    ("text of files", "g", "it loses text files"),
    ("names of files", "mcr", "it has no name for a file, or `unknown`"),
    ("text of user", "mcrg", "ours has lines for what could not be passed on, keeps documents' context and search results, and system "
        "messages in their place as reminders; it sends several texts as parts where ours, which some hosts demand, joins them"),
    ("text of system", "mcrg", "it moves late system messages to the beginning, which spoils the cache; passes Claude Code's billing line "
        "on to the model; joins texts with a space; ours asks for JSON in words where the dialect demands it"),
    ("text of assistant", "mcrg", "it loses refusals and what a provider's search brought; joins texts with a space"),
    ("results", "mcrg", "it loses the mark of a failed result, results of the older `functions`, and turns lists of parts into JSON text"),
    ("calls", "mcrg", "it knows no `function_call`; to it a provider's own search is a call of the client's, which nobody answers"),
    ("thoughts", "cg", "it shows one provider's thinking to another as its own"),
    ("tools", "mcrg", "it declares tools that the provider runs as functions of the client's, and drops `functions`; ours keeps to the names "
        "that are allowed, and sends no tools but those that may be chosen"),
    ("descriptions of tools", "mcrg", "the same; ours describes the tools whose schema only their maker knows"),
    ("schemas", "mcrg", "the same; it drops `$schema` (and limits towards Google), ours moves limits that strict schemas refuse into descriptions"),
    ("server tools", "mrg", "ours says web search and running code in the provider's own way where it has one"),
    ("strict tools", "mcr", "it loses the mark"),
    ("custom tools", "r", "it loses the older sort of Chat's"),
    ("choice", "mrg", "it knows no `function_call`"),
    ("a choice among tools", "mrg", "it takes any choice among several for no choice"),
    ("format, what the format is for", "mcrg", "it knows the answer's schema in none of these dialects, or loses it on the way"),
    ("name of the format", "cr", "the same"),
    ("strict format", "cr", "the same"),
    ("cache marks", "m", "ours sets them where Anthropic caches only what is marked"),
    ("max_tokens", "m", "it sets 4096 where none is given, which cuts answers short; ours the room that a budget of thinking needs"),
    ("max_tokens", "g", "it passes on limits that Google's models refuse"),
    ("temperature, top_p", "r", "it passes on what OpenAI's reasoning models refuse"),
    ("temperature, top_p", "m", "it passes on what Claude refuses together, and loses Google's"),
    ("top_p", "c", "it loses Google's"),
    ("top_k", "m", "it loses Google's"),
    ("stops", "cg", "it sends more than the API takes"),
    ("presence_penalty, frequency_penalty", "g", "it passes on what Google's models refuse"),
    ("reasoning.budget, reasoning.effort", "mg", "it says effort to models that know budgets, and budgets to models that know efforts"),
    ("reasoning.adaptive", "mg", "the same"),
    ("reasoning.effort", "c", "it sends an effort to a host of which nobody knows whether it takes one"),
    ("reasoning.effort, reasoning.on", "r", "it loses that thinking is off, budgets, and efforts over high"),
    ("reasoning.on", "m", "it switches thinking on behind a call that was made without, which Anthropic refuses"),
    ("reasoning.on", "g", "it switches thinking off for models that always think"),
    ("reasoning.shown", "rg", "it loses whether the client wants to read the thinking"),
)  # fmt: skip
"""Kinds of sayings (`tests/pairs_table.py`), the provider's dialects (by their first letters), and why."""


def test_calls(rosetta: Lines) -> None:
    equal, different = 0, set()
    for client, spoken, body in _calls():
        theirs = _their_call(rosetta, client, spoken, body)
        if isinstance(theirs, str):
            different.add((theirs, spoken))
            continue
        ours = _said(
            spoken,
            going_up.translate(
                body, ENDPOINTS[client], spoken, model=MODELS[spoken], stream=True, session="s", maker="them"
            ).body,
        )
        for kind in {*ours, *theirs}:
            if sorted(ours.get(kind, [])) == sorted(theirs.get(kind, [])):
                equal += 1
            else:
                different.add((kind, spoken))
    assert equal > 1500
    assert different == _expanded(DIFFERENT_CALLS)


def _calls() -> Iterator[tuple[Dialect, Dialect, Body]]:
    """The calls that say everything, each thing that they say in a call of its own, and what real tools have sent."""
    for client, spoken in PAIRS:
        for body in EVERYTHING[client]:
            yield client, spoken, body
            for meant in alone(going_up.READ[client](body, ENDPOINTS[client])):
                yield client, spoken, going_up.WRITE[client](meant, model=MODELS[client], session="s", maker="them").body
        for one, endpoint in GENERATED:
            if endpoint.dialect is client:
                yield client, spoken, inner_body(read_call(one.raw, endpoint))


def _their_call(rosetta: Lines, client: Dialect, spoken: Dialect, body: Body) -> dict[str, list[str]] | str:
    named = {"model": "client-model"} if client is Dialect.GEMINI else {}
    found = rosetta.ask({"client": client.value, "spoken": spoken.value, "call": named | body})
    if "error" in found:
        return "refused"
    try:
        return _said(spoken, found["call"])
    except BadCall:
        return "nothing said"


def _said(spoken: Dialect, body: Body) -> dict[str, list[str]]:
    return sayings(going_up.READ[spoken](body, Endpoint(spoken, model=MODELS[spoken], stream=True)), {})


def _expanded(rows: tuple[tuple[str, str, str], ...]) -> set[tuple[str, Dialect]]:
    found = [
        (kind, _LETTERS[letter]) for kinds, letters, reason in rows for kind in kinds.split(", ") for letter in letters if reason
    ]
    assert len(found) == len(set(found))
    return set(found)


# --- answers ------------------------------------------------------------------------------------------------------------

REPLIES = {
    "words": Reply(("Let me ", "look — ünï ", "🎉 here."), input_tokens=300, output_tokens=12),
    "thinking": Reply(
        "words", thinking="Where is it?", signature="c2lnbmVk", input_tokens=300, cached_tokens=21, output_tokens=12
    ),
    "calls": Reply(
        "words", calls=(ToolUse("read", {"path": 'ü "a"'}, "call_1"), ToolUse("list", {}, "call_2")), output_tokens=12
    ),
    "calls alone": Reply("", calls=(ToolUse("read", {"path": "a"}, "call_1"),), output_tokens=12),
    "cut short": Reply("cut", stop="length", output_tokens=12),
    "filtered": Reply("cut", stop="content_filter", output_tokens=12),
}
QUESTIONS: dict[Dialect, Body] = {
    Dialect.MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
    Dialect.CHAT: {"model": "m", "messages": [{"role": "user", "content": "x"}]},
    Dialect.RESPONSES: {"model": "m", "input": "x"},
    Dialect.GEMINI: {"model": "m", "contents": [{"role": "user", "parts": [{"text": "x"}]}]},
}
DIFFERENT_ANSWERS: tuple[tuple[str, str, str], ...] = (
    ("text in streams", "g>m g>c g>r", "it loses the text of the chunk that tells the end, as Google sends it"),
    ("text", "m>g m>c m>r", "it puts words of its own into an answer that was refused"),
    ("stop", "g>m g>c r>m r>c", "an answer with calls ends as if it had none: clients do not run them"),
    ("stop in streams", "g>m g>c", "the same"),
    ("stop", "m>g", "a refusal is a plain end"),
    ("stop in streams", "m>g m>c m>r", "the same"),
    ("stop in streams, tokens in streams", "r>m r>g r>c", "a stream that ends in `response.incomplete` has no end at all"),
    ("tokens", "m>g m>c m>r", "Anthropic's input does not hold what was cached, all others' does: it adds nothing"),
    ("tokens in streams", "m>g m>c m>r", "the same"),
    ("tokens", "g>m c>m r>m", "and takes nothing away"),
    ("tokens in streams", "c>m", "the same"),
    ("tokens in streams", "g>m g>c g>r", "it adds up what Google tells in every chunk"),
)
"""What is told (whole, or in streams), from which provider's dialect to which client's, and why."""


def test_answers(rosetta: Lines) -> None:
    equal, different = 0, set()
    for client, spoken in PAIRS:
        for reply in REPLIES.values():
            told = Told(spoken, "generate", model="m", stream=True, usage_chunk=True)
            whole, stream = WHOLE[spoken](reply, told), b"".join(EVENTS[spoken](reply, told))
            found = rosetta.ask(
                {
                    "client": client.value,
                    "spoken": spoken.value,
                    "call": QUESTIONS[client],
                    "answer": whole,
                    "events": _documents(stream),
                }
            )
            assert "error" not in found, found
            for theirs, ours, form in (
                (_heard_whole(client, found["answer"]), _heard_whole(client, _ours(client, spoken, whole)), ""),
                (_heard(client, found["events"]), _heard(client, _documents(_our_stream(client, spoken, stream))), " in streams"),
            ):
                for kind in ours:
                    if ours[kind] == theirs[kind]:
                        equal += 1
                    else:
                        different.add((kind + form, f"{_letter(spoken)}>{_letter(client)}"))
    assert equal > 650
    rows = [(kind, way) for kinds, ways, _ in DIFFERENT_ANSWERS for kind in kinds.split(", ") for way in ways.split()]
    assert len(rows) == len(set(rows))
    assert different == set(rows)


def _letter(dialect: Dialect) -> str:
    return next(letter for letter, one in _LETTERS.items() if one is dialect)


def _translation(client: Dialect, spoken: Dialect, *, stream: bool) -> Translation:
    asked = Asked(Endpoint(client, stream=stream), stream, "id-1", "m", 1, maker="them", include_usage=True)
    return Translation(spoken, asked)


def _ours(client: Dialect, spoken: Dialect, whole: Body) -> Body:
    translation = _translation(client, spoken, stream=False)
    found = json.loads(translation.feed(json.dumps(whole).encode()) + translation.close())
    assert isinstance(found, dict)
    return found


def _our_stream(client: Dialect, spoken: Dialect, stream: bytes) -> bytes:
    translation = _translation(client, spoken, stream=True)
    return translation.feed(stream) + translation.close()


def _documents(stream: bytes) -> list[Body]:
    return [json.loads(line[6:]) for line in stream.decode().splitlines() if line.startswith("data: {")]


def _heard_whole(client: Dialect, answer: Body) -> dict[str, object]:
    return _told(hear_whole(client, json.dumps(answer).encode(), "them", "id-1"))


def _heard(client: Dialect, documents: list[Body]) -> dict[str, object]:
    hearer = Hearer(client, "them", "id-1")
    events = [event for one in documents for event in hearer.hear(json.dumps(one).encode(), str(one.get("type", "")))]
    return _told([*events, *hearer.close()])


def _told(events: list[Event]) -> dict[str, object]:
    pieces: defaultdict[str, list[str]] = defaultdict(list)
    calls: list[list[str]] = []
    for event in events:
        match event:
            case TextPiece():
                pieces["text"].append(event.text)
            case ThoughtPiece():
                pieces["thinking"].append(event.text)
            case CallStarted():
                calls.append([event.name, ""])
            case CallPiece():
                calls[-1][1] += event.arguments
            case Broken():
                pieces["broken"].append(event.error.message)
    ends = [event for event in events if isinstance(event, Finished)]
    return {
        **{kind: "".join(pieces[kind]) for kind in ("text", "thinking", "broken")},
        "calls": [(name, json.loads(arguments or "{}")) for name, arguments in calls],
        "stop": [read_finish(end.word) for end in ends],
        "tokens": [end.tokens for end in ends],
    }
