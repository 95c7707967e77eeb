"""Legs of a call that have no flow of their own: a flow has one answer, and the client's shows what the client got.

An attempt that failed before, and what a provider said in another dialect than the client's, are copies of that flow: in
mitmweb's list and in a file that is written, with a marker and a comment that say what they are. They are there to be read, not
to be repeated.
"""

from __future__ import annotations

from typing import Any

from mitmproxy import ctx, http
from mitmproxy import flow as mitmflow

from ...routing.values import JsonObject
from ...routing.window.record import of_error, of_loss
from ..flows import RECORD, Marker, add_to_record

_EVIDENCE = "leg"
_WHY = "RouteCodex shows here what a provider answered; the call itself can be repeated, this cannot."


def are_seen() -> bool:
    """Whether anybody may look: a window is open, or flows are written to a file. Else no leg is made."""
    return ctx.master.addons.get("view") is not None or bool(ctx.options.save_stream_file)


def failed(flow: http.HTTPFlow, response: http.Response | None, error: str, comment: str) -> None:
    """An attempt that failed; the flow goes on with another."""
    _leave(flow, response, Marker.FAILED, comment, {_EVIDENCE: "failed", **of_error(error)}, error)


def fail(flow: http.HTTPFlow, error: str, *, later: bool = False) -> None:
    """A call, or a later attempt, which has a flow of its own."""
    flow.marked = Marker.FAILED
    add_to_record(flow, of_error(error))
    if later:
        keep_error(flow)


def keep_error(flow: http.HTTPFlow) -> None:
    """That we left a later attempt which had failed is not why it failed."""
    record = flow.metadata.get(RECORD)
    if flow.marked != Marker.FAILED or not isinstance(record, dict) or not isinstance(error := record.get("error"), str):
        return
    if flow.error is None or flow.error.msg != error:  # a flow that was loaded has it already
        flow.error = mitmflow.Error(error)


def hold(flow: http.HTTPFlow, comment: str, *, held: bool) -> None:
    """A call whose answer is complete, and is kept open."""
    flow.comment, flow.marked = comment, Marker.HELD
    add_to_record(flow, {"held": "now" if held else "was"})
    if (view := _addon("view")) is not None and view.get_by_id(flow.id) is not None:
        view.update([flow])


def said(flow: http.HTTPFlow, response: http.Response, comment: str, more: JsonObject) -> None:
    """What the provider of a translated answer said itself."""
    _leave(flow, response, Marker.LEG, comment, {_EVIDENCE: "provider", **more}, "")


def lost(flow: http.HTTPFlow, loss: str) -> None:
    """It is known a little after the last word: where flows are written to a file the answer's end waits for it."""
    add_to_record(flow, of_loss(loss))
    if (view := _addon("view")) is not None and view.get_by_id(flow.id) is not None:
        view.update([flow])


def is_leg(flow: mitmflow.Flow) -> bool:
    record = flow.metadata.get(RECORD)
    return isinstance(record, dict) and _EVIDENCE in record


def _leave(
    flow: http.HTTPFlow, response: http.Response | None, marker: Marker, comment: str, more: dict[str, object], error: str
) -> None:
    leg = flow.copy()
    leg.live = False
    leg.response, leg.marked, leg.comment = response, marker, comment
    leg.error = mitmflow.Error(error) if error else None
    add_to_record(leg, {"parent": flow.id, **more})
    if (view := _addon("view")) is not None:
        view.add([leg])
    for name in ("save", "dumper"):
        if (listener := _addon(name)) is not None:
            listener.error(leg)


def _addon(name: str) -> Any:
    return ctx.master.addons.get(name)


def refuse_replays() -> None:
    """Repeating a leg would erase what it shows."""
    playback = _addon("clientplayback")
    if playback is None or hasattr(playback.check, "routecodex"):
        return
    check = playback.check

    def asked(flow: mitmflow.Flow) -> str | None:
        known: str | None = check(flow)
        return known or (_WHY if is_leg(flow) else None)

    asked.routecodex = True  # type: ignore[attr-defined]
    playback.check = asked
