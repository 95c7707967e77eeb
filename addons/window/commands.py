"""Commands for mitmproxy's console and mitmweb: what `routecodex daemon` asks, asked here. Flows are named `@ID`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mitmproxy import command, exceptions, flow, http

from ...routing.control.verbs import Served, run, verb_of
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
    def status(self, *more: str) -> Sequence[str]:
        """What holds for everybody, and which keys rest."""
        _nothing_more("status", more)
        told = self._ask("status")
        lines = _texts(object_of(told.get("routing")), "lines")
        return [*(lines or ["Nothing is in force for everybody."]), *_texts(told, "keys"), *_texts(told, "warnings")]

    @_command("routecodex.models")
    def models(self, provider: str = "", *more: str) -> Sequence[str]:
        """Which providers and models can be named; those of one provider where it is named."""
        _nothing_more("models", more)
        told = self._ask("models", provider=provider)
        found = [object_of(one) for one in list_of(told.get("providers"))]
        return [f"{text_of(one.get('name'))}: {', '.join(_texts(one, 'models'))}" for one in found]

    @_command("routecodex.sticky")
    def sticky(self, target: str = "", *more: str) -> Sequence[str]:
        """Every session without a word of its own goes there: PROVIDER.MODEL, or PROVIDER.KEY.MODEL."""
        _nothing_more("sticky", more)
        if not target.strip():
            raise _refused("which target? routecodex.sticky PROVIDER.MODEL")
        return self._order("sticky", _bare(target))

    @_command("routecodex.clear")
    def clear(self, *more: str) -> Sequence[str]:
        """Nothing holds for everybody any more."""
        _nothing_more("clear", more)
        return self._order("clear", "")

    @_command("routecodex.why")
    def why(self, flows: Sequence[flow.Flow] = (), *more: str) -> Sequence[str]:
        """Where these calls went, and why. Flows are named @ID, as their addresses show it."""
        _nothing_more("why", more)
        if not flows:
            raise _refused("which flow? routecodex.why @ID, as the address of a flow shows it")
        lines = []
        for one in flows:
            record = record_of(one)
            if not record:
                lines.append(f"{one.id[:8]}: no model was asked by it")
                continue
            asked, why = (str(record.get(key) or "") for key in ("asked", "why"))
            lines.append(f"{one.id[:8]}: {asked} → {record.get('answered') or record.get('target') or ''} · {why}")
            lines += [f"  failed before: {failed}" for failed in _texts(record, "attempts")]
            lines += [f"  failed: {error}"] if (error := record.get("error")) else []
            lines += [f"  {loss}"] if (loss := record.get("cacheLost")) else []
        return lines

    @_command("routecodex.again")
    def again(self, flows: Sequence[flow.Flow] = (), target: str = "", *more: str) -> Sequence[str]:
        """Send these calls once more, to a target with a key here: the answer stands in a flow of its own."""
        _nothing_more("again", more)
        found = [one for one in flows if isinstance(one, http.HTTPFlow)]
        if not found:
            raise _refused("which flow? routecodex.again @ID PROVIDER.MODEL, as the address of a flow shows it")
        if not target.strip():
            raise _refused("which target? routecodex.again @ID PROVIDER.MODEL")
        try:
            named = self._served().desk.named_by_hand(_bare(target))
            sent = [(one, self._again(one, _bare(target))) for one in found]
        except RouteCodexError as error:
            raise _refused(error.message) from None
        return [f"{one.id[:8]} goes to {named} as @{new.id}" for one, new in sent]

    def _order(self, word: str, target: str) -> Sequence[str]:
        told = self._ask("set routing", orders=[[word, target]])
        return [*_texts(told, "changed"), *_texts(told, "notes")]

    def _ask(self, name: str, **given: object) -> JsonObject:
        question = {"verb": name, **given}
        try:
            return run(verb_of(question), self._served(), question)
        except RouteCodexError as error:
            raise _refused(error.message) from None


def _refused(why: str) -> exceptions.CommandError:
    return exceptions.CommandError(f"RouteCodex: {why}")


def _nothing_more(name: str, more: Sequence[str]) -> None:
    """mitmproxy's own word for it is a line of Python."""
    if more:
        raise _refused(f"routecodex.{name} takes nothing more: {' '.join(more)}")


def _bare(target: str) -> str:
    """What people know as a tag is taken as what stands in it."""
    text = target.strip()
    return text.removeprefix("<**").removesuffix("**>") if text.startswith("<**") and text.endswith("**>") else text


def _texts(told: Mapping[str, object], key: str) -> list[str]:
    return [one for one in list_of(told.get(key)) if isinstance(one, str)]
