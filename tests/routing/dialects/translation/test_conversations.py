"""Tricky conversations of each client, in each provider's dialect: nothing in them is lost, doubled or told to somebody else.

What a provider reads is read here by its own shape (`as_sent`), and once more by our reader of that dialect.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import pytest

from routecodex.routing.dialects.translation.going_up import READ, translate
from routecodex.routing.dialects.translation.neutral import Feature, Text, ToolName, ToolResult, ToolUse, Written
from routecodex.routing.jsonbytes import dumps, loads
from routecodex.routing.values import Dialect, Endpoint
from tests.conftest import LONG
from tests.routing.dialects.translation.as_calls import call_of, endpoint_of
from tests.routing.dialects.translation.as_sent import Sent, read_sent
from tests.routing.dialects.translation.conversations import Meant, Result, Said, Shown, Thinking, Turn, Use, meant
from tests.sheet import seen

SHORT = 20
COUNT = 10_000 if LONG else SHORT
"""Conversations for each pair."""
HISTORIES = 1_000 if LONG else SHORT
"""Each is written several times."""

PAIRS = [pytest.param(client, spoken, id=f"{client}-to-{spoken}") for client, spoken in product(Dialect, Dialect)]
MODELS: dict[Dialect, tuple[tuple[str, str], ...]] = {
    Dialect.MESSAGES: (("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-opus-4-8"), ("acme", "some-model")),
    Dialect.CHAT: (
        ("openai", "gpt-5"),
        ("openai", "gpt-4o"),
        ("mistral", "mistral-large-latest"),
        ("moonshot", "kimi-k2"),
        ("deepseek", "deepseek-chat"),
        ("minimax", "minimax-m2"),
        ("openrouter", "org/model"),
        ("acme", "llama-4"),
    ),
    Dialect.RESPONSES: (("openai", "gpt-5"), ("acme", "other")),
    Dialect.GEMINI: (("google", "gemini-3-pro"), ("google", "gemini-2.5-flash")),
}
_NOT_SHOWN = {Feature.FILES, Feature.FILE_LINKS, Feature.IMAGE_LINKS, Feature.OTHER, Feature.ASSISTANT_MEDIA}


def target_of(seed: int, spoken: Dialect) -> tuple[str, str]:
    models = MODELS[spoken]
    return models[seed % len(models)]


def written(given: Meant, client: Dialect, spoken: Dialect, maker: str, model: str) -> Written:
    body = loads(dumps(call_of(given, client)))
    assert isinstance(body, dict)
    stream = given.settings.stream
    return translate(body, endpoint_of(given, client), spoken, model=model, stream=stream, session="s-1", maker=maker)


@pytest.mark.parametrize(("client", "spoken"), PAIRS)
def test_names_ids_arguments_and_texts_arrive(client: Dialect, spoken: Dialect) -> None:
    for seed in range(COUNT):
        given, (maker, model) = meant(seed, client), target_of(seed, spoken)
        out = written(given, client, spoken, maker, model)
        body = json.loads(dumps(out.body))
        try:
            sent = read_sent(body, spoken)
            check_texts(given, sent)
            check_calls(given, sent, out)
            check_results(given, sent)
            check_media(given, sent, out)
            check_tools(given, sent, out)
            check_wishes(given, body, out)
            check_thinking(given, body, same=client is spoken)
            check_read_back(given, sent, body, spoken)
            if model.startswith("mistral"):
                assert all(len(id) == 9 and id.isascii() and id.isalnum() for id, _, _ in sent.calls)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {client} to {model} of {maker}")
            raise
    seen("R5", f"{COUNT:,} conversations in each pair of dialects")


@pytest.mark.parametrize(("client", "spoken"), PAIRS)
def test_the_same_history_has_the_same_bytes_and_a_longer_one_begins_with_them(client: Dialect, spoken: Dialect) -> None:
    compared = 0
    for seed in range(HISTORIES):
        given, (maker, model) = meant(seed, client), target_of(seed, spoken)
        whole = written(given, client, spoken, maker, model)
        assert dumps(whole.body) == dumps(written(meant(seed, client), client, spoken, maker, model).body)
        for count in ends_of_calls(given):
            earlier = written(given.until(count), client, spoken, maker, model)
            try:
                check_prefix(earlier, whole, spoken, tools=bool(given.tools))
            except AssertionError as error:
                error.add_note(f"seed {seed}: {client} to {model} of {maker}, {count} of {len(given.turns)} turns")
                raise
            compared += 1
    assert compared > HISTORIES // 2
    seen("R17", f"{HISTORIES:,} histories and all their beginnings, in each pair of dialects: the same bytes")


def ends_of_calls(given: Meant) -> Iterator[int]:
    """After how many turns a client asked its model: the next turn is what it answered."""
    for count in range(1, len(given.turns)):
        last, following = given.turns[count - 1], given.turns[count]
        if last.role != "assistant" and following.role == "assistant" and any(one.role == "user" for one in given.turns[:count]):
            missing = {use.number for use in given.until(count).calls} - {one.number for one in given.until(count).results}
            if missing <= {use.number for use in given.calls} - {one.number for one in given.results}:
                yield count


_HISTORY = {Dialect.MESSAGES: "messages", Dialect.CHAT: "messages", Dialect.RESPONSES: "input", Dialect.GEMINI: "contents"}
_BEFORE = ("system", "instructions", "systemInstruction", "tools")


def check_prefix(earlier: Written, later: Written, spoken: Dialect, *, tools: bool) -> None:
    field = _HISTORY[spoken]
    old, new = unmarked(earlier.body[field]), unmarked(later.body[field])
    assert isinstance(old, list)
    assert isinstance(new, list)
    assert dumps(new[: len(old)]) == dumps(old)
    for name in _BEFORE:
        if name != "tools" or tools:  # without any declared, those of the history's calls stand in
            assert dumps(earlier.body.get(name)) == dumps(later.body.get(name))


def unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if isinstance(value, dict):
        return {name: unmarked(one) for name, one in value.items() if name != "cache_control"}
    return value


# --- what must be there -------------------------------------------------------------------------------------------------


def check_texts(given: Meant, sent: Sent) -> None:
    """Each once, in their order, as said by whoever said it. Later instructions may be reminders in the user's message."""
    order: list[int] = []
    begun = False
    for turn in given.turns:
        begun = begun or turn.role != "system"
        for part in turn.parts:
            if not isinstance(part, Said) or not part.core:
                continue
            places = [place for place, (_, text) in enumerate(sent.said) for _ in range(text.count(part.core))]
            assert len(places) == 1, f"{part.core[:40]!r} is there {len(places)} times"
            role = sent.said[places[0]][0]
            assert role == turn.role or (turn.role == "system" and begun and role == "user"), (
                f"{part.core[:40]!r} is the {role}'s"
            )
            if turn.role != "system":
                order.append(places[0])
    assert order == sorted(order)


def name_of(sent_name: str, out: Written) -> ToolName:
    return out.tools.get(sent_name, ToolName(sent_name))


def check_calls(given: Meant, sent: Sent, out: Written) -> None:
    assert len(sent.calls) == len(given.calls)
    for use, (_, name, arguments) in zip(given.calls, sent.calls, strict=True):
        assert arguments == ({"input": use.arguments} if use.custom else use.arguments)
        if is_declared(use, given):
            assert name_of(name, out) == ToolName(use.name, use.namespace, use.custom)
            assert name in sent.tools or given.settings.named
    ids: dict[str, set[str]] = {}
    for use, (id, _, _) in zip(given.calls, sent.calls, strict=True):
        ids.setdefault(id, set()).add(use.id)
    assert all(len(own) == 1 for own in ids.values()), "two ids became one"


def is_declared(use: Use, given: Meant) -> bool:
    return any((tool.name, tool.namespace) == (use.name, use.namespace) for tool in given.tools)


def check_results(given: Meant, sent: Sent) -> None:
    """Every result under the id of its call."""
    assert len(sent.results) == len(sent.calls)
    texts = {}
    remaining = list(sent.results)
    for use, (id, _, _) in zip(given.calls, sent.calls, strict=True):
        place = next(place for place, one in enumerate(remaining) if one[0] == id)
        texts[use.number] = remaining.pop(place)
    for result in given.results:
        _, text, failed = texts[result.number]
        for part in result.parts:
            if isinstance(part, Said):
                assert part.core in text
        assert not result.error or failed
    for use in given.calls:
        if use.number not in {result.number for result in given.results}:
            assert "«" not in texts[use.number][1]


def check_media(given: Meant, sent: Sent, out: Written) -> None:
    shown = [part for turn in given.turns for part in turn.parts if isinstance(part, Shown)]
    shown += [part for result in given.results for part in result.parts if isinstance(part, Shown)]
    texts = [text for _, text in sent.said] + [text for _, text, _ in sent.results]
    for part in shown:
        if part.kind == "plain":
            encoded = base64.b64encode(part.data.encode()).decode()
            found = sum(part.data in one or encoded in one for one in (*sent.media, *texts))
        else:
            found = sum(part.data in one for one in sent.media)
        assert found == 1 or (found == 0 and out.left_out.found.keys() & _NOT_SHOWN), f"{part.kind} is there {found} times"


def check_tools(given: Meant, sent: Sent, out: Written) -> None:
    settings = given.settings
    by_name = {name_of(name, out): name for name in sent.tools}
    expected = [tool for tool in given.tools if not settings.named or tool.name in settings.named]
    for tool in expected:
        name = by_name[ToolName(tool.name, tool.namespace, tool.custom)]
        assert tool.description in sent.tools[name]
    if not given.tools:
        return
    assert len(sent.tools) <= len(given.tools)
    if settings.choice == "required" and sent.mode != "required":
        assert Feature.ALLOWED_TOOLS in out.left_out.found
    else:
        assert sent.mode == (settings.choice or "auto")
    if settings.named:
        allowed = {name_of(name, out).name for name in sent.callable}
        assert allowed == set(settings.named)


def check_wishes(given: Meant, body: dict[str, Any], out: Written) -> None:
    """There, or named as left out."""
    settings, left, text = given.settings, out.left_out.found, json.dumps(body, ensure_ascii=False)
    config = {**body, **body.get("generationConfig", {})}
    stops = config.get("stop_sequences") or config.get("stop") or config.get("stopSequences") or []
    if list(settings.stops) != stops:
        assert left.keys() & {Feature.STOPS, Feature.MANY_STOPS}
    if settings.temperature is not None and config.get("temperature") != settings.temperature:
        assert Feature.TEMPERATURE in left or settings.temperature == 1.0
    if settings.seed is not None and 7 not in (config.get("seed"), config.get("random_seed")):
        assert Feature.SEED in left
    if settings.format is not None:
        assert "answer_in_full" in text or not settings.format
        assert "json" in text.lower()
    if settings.parallel is False and given.tools:
        choice = body.get("tool_choice")
        told = choice.get("disable_parallel_tool_use") if isinstance(choice, dict) else False
        assert told or body.get("parallel_tool_calls") is False or Feature.PARALLEL in left or settings.choice == "none"
    limits = [config.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")]
    assert any(limits) or settings.max_tokens is None


def check_thinking(given: Meant, body: dict[str, Any], *, same: bool) -> None:
    text = json.dumps(body, ensure_ascii=False)
    for turn in given.turns:
        for part in turn.parts:
            if isinstance(part, Thinking) and not same:
                assert json.dumps(part.core, ensure_ascii=False)[1:-1] not in text
                assert not part.signature or part.signature not in text


def check_read_back(given: Meant, sent: Sent, body: dict[str, Any], spoken: Dialect) -> None:
    read = READ[spoken](body, Endpoint(spoken))
    blocks = [block for turn in read.messages for block in turn.blocks]
    uses = [block for block in blocks if isinstance(block, ToolUse)]
    assert [use.name for use in uses] == [name for _, name, _ in sent.calls]
    assert [{"input": use.arguments} if use.custom else json.loads(use.arguments) for use in uses] == [
        arguments for _, _, arguments in sent.calls
    ]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    assert {use.id for use in uses} == {result.id for result in results}
    told = "\n".join(block.text for block in blocks if isinstance(block, Text))
    for part in (part for turn in given.turns for part in turn.parts if isinstance(part, Said)):
        assert part.core in told


def test_the_generator_makes_what_it_promises() -> None:
    """A test of nothing shows nothing: each trick is there, and often."""
    for client in Dialect:
        made = [meant(seed, client) for seed in range(300)]
        turns = [turn for one in made for turn in one.turns]
        assert sum(len(one.calls) > 1 for one in made) > 100
        assert sum(not use.arguments for one in made for use in one.calls) > 20
        assert sum(len(use.id) > 64 for one in made for use in one.calls) > 10
        assert sum(isinstance(part, Shown) for turn in turns for part in turn.parts) > 50
        assert sum(isinstance(part, Shown) for one in made for result in one.results for part in result.parts) > 50
        assert sum(isinstance(part, Thinking) for turn in turns for part in turn.parts) > 30
        assert sum(has_late_system(one.turns) for one in made) > 20 or client is Dialect.GEMINI
        assert sum(one.settings.format is not None for one in made) > 20
        assert any(isinstance(part, Result) and part.error for turn in turns for part in turn.parts) or client in (
            Dialect.CHAT,
            Dialect.RESPONSES,
        )


def has_late_system(turns: tuple[Turn, ...]) -> bool:
    return any(before.role != "system" and turn.role == "system" for before, turn in pairwise(turns))
