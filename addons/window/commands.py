"""Commands for mitmproxy's console and mitmweb: what `routecodex daemon` asks, asked here. Flows are named `@ID`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mitmproxy import command, exceptions, flow, http

from ...routing.control.verbs import Served, verb_of
from ...routing.dialects.fields import list_of, object_of, text_of
from ...routing.errors import RouteCodexError
from ...routing.values import JsonObject
from .content_view import record_of

F = TypeVar("F", bound=Callable[..., object])


def _command(path: str) -> Callable[[F], F]:
    """mitmproxy's own decorator, with a type."""
    decorated: Callable[[F], F] = command.command(path)
    return decorated


class Commands:
    def __init__(self, served: Callable[[], Served], again: Callable[[http.HTTPFlow, str], http.HTTPFlow]) -> None:
        """`again`: sends the call that a flow shows to another target, as a flow of its own."""
        self._served, self._again = served, again

    @_command("routecodex.status")
    def status(self) -> Sequence[str]:
        """What holds for everybody, and which keys rest."""
        told = self._ask("status")
        lines = _texts(object_of(told.get("routing")), "lines")
        return [*(lines or ["Nothing is in force for everybody."]), *_texts(told, "keys"), *_texts(told, "warnings")]

    @_command("routecodex.models")
    def models(self, provider: str = "") -> Sequence[str]:
        """Which providers and models can be named; those of one provider where it is named."""
        told = self._ask("models", provider=provider)
        found = [object_of(one) for one in list_of(told.get("providers"))]
        return [f"{text_of(one.get('name'))}: {', '.join(_texts(one, 'models'))}" for one in found]

    @_command("routecodex.sticky")
    def sticky(self, target: str) -> Sequence[str]:
        """Every session without a word of its own goes there: a provider, or provider.model."""
        return self._order("sticky", target)

    @_command("routecodex.clear")
    def clear(self) -> Sequence[str]:
        """Nothing holds for everybody any more."""
        return self._order("clear", "")

    @_command("routecodex.why")
    def why(self, flows: Sequence[flow.Flow]) -> Sequence[str]:
        """Where these calls went, and why."""
        lines = []
        for one in flows:
            record = record_of(one)
            if not record:
                lines.append(f"{one.id[:8]}: no model was asked by it")
                continue
            words = [str(record.get(key) or "") for key in ("asked", "target", "why")]
            lines.append(f"{one.id[:8]}: {words[0]} → {words[1]} · {words[2]}")
            lines += [f"  failed before: {failed}" for failed in _texts(record, "attempts")]
        return lines or ["Which flow? Name it as @ID."]

    @_command("routecodex.again")
    def again(self, flows: Sequence[flow.Flow], target: str) -> Sequence[str]:
        """Send these calls once more, to a target with a key here: the answer stands in a flow of its own."""
        try:
            named = self._served().desk.named_by_hand(target)
            found = [one for one in flows if isinstance(one, http.HTTPFlow)]
            sent = [(one, self._again(one, target)) for one in found]
        except RouteCodexError as error:
            raise exceptions.CommandError(f"RouteCodex: {error.message}") from None
        return [f"{one.id[:8]} goes to {named} as @{new.id}" for one, new in sent] or ["Which flow? Name it as @ID."]

    def _order(self, word: str, target: str) -> Sequence[str]:
        told = self._ask("set routing", orders=[[word, target]])
        return [*_texts(told, "changed"), *_texts(told, "notes")]

    def _ask(self, name: str, **given: object) -> JsonObject:
        try:
            return verb_of({"verb": name}).run(self._served(), given)
        except RouteCodexError as error:
            raise exceptions.CommandError(f"RouteCodex: {error.message}") from None


def _texts(told: Mapping[str, object], key: str) -> list[str]:
    return [one for one in list_of(told.get(key)) if isinstance(one, str)]
