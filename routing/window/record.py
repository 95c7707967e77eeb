"""What is written down about a flow while it lives, so that whoever opens it later, saved or not, reads what happened.

Plain JSON and small: mitmproxy saves it with the flow, and searches it (`~meta`). Nothing of it is a credential.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..turn.plan import Plan
from ..usage.spending import Paid
from ..values import Call, Dialect, JsonObject
from .text import first_words

_TYPED = 900
_WORDS = 300
_FAILED = 160
_LISTED = 6
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
        "session": _cut(plan.session, 100),
        "user": _cut(received.user, 100),
        "client": _cut(plan.client, 40),
        "round": name,
        "parent": parent,
        "target": _cut(str(target), 200),
        "why": _cut(f"{plan.decision.route} · {plan.decision.reason.removesuffix(f': {plan.decision.route}')}", _WORDS),
        "asked": _cut(plan.asked, 100),
        "model": _cut(target.model or plan.call.model, 100),
        "dialects": [str(received.endpoint.dialect), str(spoken)],
        "spoken": str(received.endpoint.dialect if not parent else spoken),
        "typed": typed,
        "sent": typed if sent == plan.typed else shown(sent),
        "attempts": _listed(plan.faults),
        "leftOut": _cut(plan.left_out, _WORDS),
    }
    return {key: value for key, value in record.items() if value not in ("", [])}


def of_end(plan: Plan, *, rounds: int, paid: Paid | None, words: tuple[str, str]) -> JsonObject:
    """What is added when the answer is over. `words`: why it ended, the provider's and the client's."""
    record: JsonObject = {"rounds": rounds, "attempts": _listed(plan.faults), "unsaid": _cut(", ".join(plan.unsaid), _WORDS)}
    if plan.tried and plan.settled:
        record["answered"] = _cut(str(plan.target), 200)
    return {key: value for key, value in record.items() if value not in ("", [], 0)} | of_cost(paid, words)


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
    return {"cacheLost": _cut(loss, _WORDS)}


def of_reply(comment: str, about: Mapping[str, str], dialect: Dialect) -> JsonObject:
    """An answer of our own. `about`: call, session, client, asked, typed."""
    record: JsonObject = {name: _cut(text, _TYPED if name == "typed" else 100) for name, text in about.items()}
    record |= {"target": NOBODY, "why": _cut(comment, _WORDS), "spoken": str(dialect)}
    return {key: value for key, value in record.items() if value}


def _newest_text(call: Call) -> str:
    for message in reversed(call.messages):
        if message.role == "user" and (text := message.text):
            return text
    return ""


def _shown_by(plan: Plan) -> Callable[[str], str]:
    return lambda text: _cut(plan.hide.text(text[: 2 * _TYPED]), _TYPED)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _listed(faults: Sequence[str]) -> list[str]:
    return [first_words(fault, _FAILED) for fault in faults[-_LISTED:]]
