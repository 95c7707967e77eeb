"""What the live relay leans on inside mitmproxy, looked at when it starts: better no proxy than one that misbehaves."""

from __future__ import annotations

import inspect
from typing import Any

from mitmproxy.addons import clientplayback, next_layer, proxyserver
from mitmproxy.proxy import layer, server
from mitmproxy.proxy.layers import http as layers
from mitmproxy.proxy.layers.http import _http1

CALLED: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    (layers.HttpStream, "state_wait_for_request_headers", ("self", "event")),
    (layers.HttpStream, "state_consume_request_body", ("self", "event")),
    (layers.HttpStream, "state_wait_for_response_headers", ("self", "event")),
    (layers.HttpStream, "state_consume_response_body", ("self", "event")),
    (layers.HttpStream, "state_stream_response_body", ("self", "event")),
    (layers.HttpStream, "state_done", ("self", "_")),
    (layers.HttpStream, "state_errored", ("self", "_")),
    (layers.HttpStream, "start_request_stream", ("self",)),
    (layers.HttpStream, "start_response_stream", ("self",)),
    (layers.HttpStream, "send_response", ("self", "already_streamed")),
    (layers.HttpStream, "handle_protocol_error", ("self", "event")),
    (layers.HttpStream, "check_invalid", ("self", "request")),
    (layers.HttpStream, "check_killed", ("self", "emit_error_hook")),
    (layers.HttpStream, "make_server_connection", ("self",)),
    (layers.HttpStream, "flow_done", ("self",)),
    (layers.HttpStream, "passthrough", ("self", "event")),
    (layers.HttpLayer, "get_connection", ("self", "event", "reuse")),
    (layers.HttpLayer, "make_stream", ("self", "stream_id")),
    (layers.HttpLayer, "event_to_child", ("self", "child", "event")),
    (layers.HttpLayer, "register_connection", ("self", "command")),
    (layers.GetHttpConnection, "connection_spec_matches", ("self", "connection")),
    (_http1.Http1Connection, "read_body", ("self", "event")),
    (_http1.Http1Server, "send", ("self", "event")),
    (_http1.Http1Server, "read_headers", ("self", "event")),
    (_http1.Http1Client, "send", ("self", "event")),
    (_http1.Http1Client, "read_headers", ("self", "event")),
    (clientplayback.ReplayHandler, "__init__", ("self", "flow", "options")),
    (clientplayback.ReplayHandler, "handle_hook", ("self", "hook")),
    (clientplayback.MockServer, "__init__", ("self", "flow", "context")),
    (server.ConnectionHandler, "server_event", ("self", "event")),
    (server.ConnectionHandler, "drain_writers", ("self",)),
    (next_layer.NextLayer, "next_layer", ("self", "nextlayer")),
)
"""What is called, or called by mitmproxy in our place, and with what."""
LOOKED_AT: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (layers.HttpLayer, ("waiting_for_establishment", "command_sources", "streams", "connections")),
    (layers.HttpStream, ("request_body_buf", "flow", "stream_id")),
    (layer.Layer, ("_paused_event_queue",)),
    (_http1.Http1Connection, ("stream_id", "request", "response", "state", "body_reader")),
    (server.ConnectionHandler, ("transports", "max_conns", "client")),
    (proxyserver.Proxyserver, ("connections",)),
)


def unknown() -> list[str]:
    """What the installed mitmproxy does not have, or has otherwise."""
    changed = [f"{owner.__name__}.{name}" for owner, name, given in CALLED if _parameters(getattr(owner, name, None)) != given]
    for owner, names in LOOKED_AT:
        changed += [f"{owner.__name__}.{name}" for name in names if name not in inspect.get_annotations(owner)]
    return changed


def _parameters(found: Any) -> tuple[str, ...] | None:
    return tuple(inspect.signature(found).parameters) if callable(found) else None
