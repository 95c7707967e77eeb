"""What is written down about a flow while it lives, so that whoever opens it later, saved or not, reads what happened.

Plain JSON and small: mitmproxy saves it with the flow, and searches it (`~meta`). Nothing of it is a credential.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import orjson

from ..turn.plan import Plan
from ..usage.spending import Paid
from ..values import Call, Dialect, JsonObject, Text
from ..visible import first_words

_TYPED = 900
_WORDS = 300
_FAILED = 160
_LISTED = 6
_BEGUN_BYTES, _ENDED_BYTES, _MORE_BYTES = 2300, 1100, 300
"""Of what is written down at a time, so that all of it together is no more than 4 KiB, in whatever script it is."""
_SHORT = 16
_LONGEST = {
    **dict.fromkeys(("session", "user", "asked", "model"), 100),
    "client": 40,
    "target": 200,
    **dict.fromkeys(("why", "leftOut"), _WORDS),
}
"""Characters of what is written down of a round; a person's own texts have their own measure."""
NOBODY = "RouteCodex"
"""Whom a call went to that we answered."""


def of_round(plan: Plan, name: str, *, parent: str = "", local: bool = False) -> JsonObject:
    """When a round begins. `name`: `first`, `retry`, `round 2`; `parent`: the flow that the client sees."""
    target, received = plan.target, plan.received
    spoken, shown = plan.spoken, _shown_by(plan)
    typed = shown(plan.typed)
    sent = _newest_text(plan.call) if plan.typed else ""
    record: JsonObject = {
        "call": received.id,
        "session": plan.session,
        "user": received.user,
        "client": plan.client,
        "round": name,
        "parent": parent,
        "target": str(target),
        "why": f"{plan.decision.route} · {plan.decision.reason.removesuffix(f': {plan.decision.route}')}",
        "asked": plan.asked,
        "model": target.model or plan.call.model,
        "dialects": [str(received.endpoint.dialect), str(spoken)],
        "spoken": str(received.endpoint.dialect if not parent else spoken),
        "typed": typed,
        "sent": typed if sent == plan.typed else shown(sent),
        "added": list(plan.added),
        "attempts": _listed(plan.faults),
        "leftOut": plan.left_out,
    }
    for name, most in _LONGEST.items():
        if isinstance(text := record[name], str) and len(text) > most:
            record[name] = _cut(text, most)
    return _within({key: value for key, value in record.items() if value not in ("", [])}, _BEGUN_BYTES)


def of_end(plan: Plan, *, rounds: int, paid: Paid | None, words: tuple[str, str]) -> JsonObject:
    """What is added when the answer is over. `words`: why it ended, the provider's and the client's."""
    record: JsonObject = {"rounds": rounds, "attempts": _listed(plan.faults), "unsaid": _cut(", ".join(plan.unsaid), _WORDS)}
    if plan.tried and plan.settled:
        record["answered"] = _cut(str(plan.target), 200)
    return _within({key: value for key, value in record.items() if value not in ("", [], 0)} | of_cost(paid, words), _ENDED_BYTES)


def of_cost(paid: Paid | None, words: tuple[str, str]) -> JsonObject:
    """Of a round, or of all of them."""
    record: JsonObject = {"stop": [_cut(word, 60) for word in words]} if any(words) else {}
    if paid is None:
        return record
    if (tokens := paid.tokens) is not None:
        told = {"in": tokens.input, "cached": tokens.cached, "written": tokens.written}
        told |= {"out": tokens.output, "reasoning": tokens.reasoning}
        record["usage"] = {name: number for name, number in told.items() if number or name in ("in", "out")}
    if paid.dollars is not None:
        record["dollars"] = round(paid.dollars, 6)
    if paid.unknown:
        record["unpriced"] = paid.unknown
    return record


def of_loss(loss: str) -> JsonObject:
    """Why the provider's cache was lost: known a little after the answer."""
    return _within({"cacheLost": _cut(loss, _WORDS)}, _MORE_BYTES)


def of_error(error: str) -> JsonObject:
    """Why it failed."""
    return _within({"error": first_words(error, _WORDS)}, _MORE_BYTES)


def of_reply(comment: str, about: Mapping[str, str], dialect: Dialect) -> JsonObject:
    """An answer of our own. `about`: call, session, client, asked, typed."""
    record: JsonObject = {name: _cut(text, _TYPED if name == "typed" else 100) for name, text in about.items()}
    record |= {"target": NOBODY, "why": _cut(comment, _WORDS), "spoken": str(dialect)}
    return _within({key: value for key, value in record.items() if value}, _BEGUN_BYTES)


def _newest_text(call: Call) -> str:
    for message in reversed(call.messages):
        if message.role == "user" and Text in map(type, message.parts) and (text := message.text):
            return text
    return ""


def _shown_by(plan: Plan) -> Callable[[str], str]:
    return lambda text: _cut(plan.hide.text(text[: 2 * _TYPED]), _TYPED)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _within(record: JsonObject, most: int) -> JsonObject:
    """With its longest texts cut, where it is more than so many bytes; halves of pairs can be written to no file."""
    try:
        size = len(orjson.dumps(record))
    except orjson.JSONEncodeError:
        record = {key: _whole(value) for key, value in record.items()}
        size = len(orjson.dumps(record))
    while size > most:
        sizes = {key: len(orjson.dumps(value)) for key, value in record.items() if isinstance(value, str | list)}
        longest = max(sizes, key=sizes.__getitem__)
        if sizes[longest] <= _SHORT:
            break
        keep = max(0.5, 1 - (size - most + _SHORT) / sizes[longest])
        record[longest] = _shorter(record[longest], keep)
        size = len(orjson.dumps(record))
    return record


def _shorter(value: object, keep: float) -> object:
    if isinstance(value, list):
        return value[1:] if len(value) > 2 else [_shorter(one, keep) for one in value]
    return _cut(value, int(len(value) * keep)) if isinstance(value, str) else value


def _whole(value: object) -> object:
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _listed(faults: Sequence[str]) -> list[str]:
    return [first_words(fault, _FAILED) for fault in faults[-_LISTED:]]
