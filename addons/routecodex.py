"""RouteCodex: steer LLM tools by typing tags in the chat.   mitmdump -s addons/routecodex.py

What happens to a request? Read the hooks of `RouteCodex` from top to bottom: they stand in the order of a call's life.
This file stays thin: mitmproxy loads it again whenever it changes; the modules it imports are loaded once.
"""

import asyncio
import logging
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - where it matters, nobody has asked for our minimum
    sys.exit(f"RouteCodex needs Python 3.11 or newer; this mitmproxy runs on {sys.version.split()[0]}.")

import time
import uuid
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
house = sys.modules.setdefault("routecodex", ModuleType("routecodex"))
house.__path__ = [str(ROOT)]  # a module is called `routecodex.` and its path: nobody else's `settings` is ours

from mitmproxy import connection, ctx, exceptions, http, tls, version
from mitmproxy.addonmanager import Loader
from mitmproxy.proxy import layer, server_hooks

from routecodex.addons import (
    allocator,
    codex_socket,
    collector,
    flows,
    guard,
    intercept,
    internals,
    journal,
    quick_checks,
    quick_hooks,
    relay,
    rounds,
    sealing,
    settings,
)
from routecodex.addons.control import leash, panel
from routecodex.addons.disk_threads import in_thread, in_thread_if_possible
from routecodex.addons.guarded import guarded
from routecodex.addons.journal import CallLine, Journal
from routecodex.addons.layers import lift_connection_limit
from routecodex.addons.loaded import is_loaded, later_round
from routecodex.addons.sealing import Sealed
from routecodex.addons.turns import CarriedTurn
from routecodex.addons.untrusted import Untrusted
from routecodex.routing.desk import Desk, Plan, Reading, Rest
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.errors import ConfigError, RouteCodexError
from routecodex.routing.replies import Reply
from routecodex.routing.sessions import disk
from routecodex.routing.tags.obey import Orders
from routecodex.routing.turn.company import Company, merger_of
from routecodex.routing.turn.echoing import converse
from routecodex.routing.turn.request import Hints
from routecodex.routing.turn.turn import Turn
from routecodex.routing.values import Call

logger = logging.getLogger("routecodex")

NEEDED_OPTIONS = {"connection_strategy": "lazy", "upstream_cert": False}
"""No connection to the host that a client names before it is decided where its call goes."""


class RouteCodex(quick_hooks.Own):
    """One proxy's addon."""

    def __init__(self) -> None:
        self.relay = relay.shared(flows.REQUEST_BYTES)
        self.journal = Journal()
        self.settings = settings.Settings(ROOT, self.journal)
        self.leash: leash.Leash | None = None
        self.untrusted = Untrusted()
        self.panel = panel.Panel(self.settings)
        self.sealed = self.relay.sealed
        """The credentials taken off our flows; no flow that is shown or saved holds any."""

    # Start and stop

    def load(self, loader: Loader) -> None:
        loader.add_option("routecodex_config", str, "", "RouteCodex: the configuration file (default: mitm-config.yaml).")
        loader.add_option("routecodex_server", str, "", "RouteCodex: whose sessions these are (default: address and port).")
        loader.add_option("routecodex_http2", bool, False, "RouteCodex: offer HTTP/2 to clients.")
        loader.add_option("routecodex_shortcuts", bool, True, "RouteCodex: take shortcuts through mitmproxy where it is alone.")
        if changed := internals.unknown():
            logger.error("RouteCodex does not know mitmproxy %s: %s", version.VERSION, ", ".join(changed))
        rounds.adopt_replays(self.relay)

    def configure(self, updated: set[str]) -> None:
        if ctx.options.stream_large_bodies:
            raise exceptions.OptionsError(
                "RouteCodex cannot work with stream_large_bodies: bodies would leave before they are read."
            )
        if "routecodex_shortcuts" in updated:
            self.take_shortcuts(ctx.options.routecodex_shortcuts)
        self.journal.verbose = ctx.options.termlog_verbosity == "debug"
        journal.tell_connections(self.journal.verbose)
        if "routecodex_config" in updated:
            self.read_config(ctx.options.routecodex_config)
        needed = {**NEEDED_OPTIONS, "http2": ctx.options.routecodex_http2}
        if any(getattr(ctx.options, name) != value for name, value in needed.items()):
            ctx.options.update(**needed)

    def take_shortcuts(self, wanted: bool) -> None:
        quick = quick_hooks.installed(ctx.master.addons)
        if wanted:
            quick_hooks.QuickHooks(ctx.master.addons).install()
            quick_checks.install()
        elif quick is not None:
            quick.remove()
            quick_checks.remove()

    def read_config(self, option: str) -> None:
        """With nothing to work with, an error in the log ends mitmproxy's start; later the option is simply refused."""
        try:
            self.settings.load(option)
        except ConfigError as error:
            if self.settings.loaded:
                raise exceptions.OptionsError(f"RouteCodex: {error.message}") from None
            logger.error("RouteCodex: %s", error.message)

    def running(self) -> None:
        disk.never_wait()
        self.settings.watch()
        if settings.web_is_open():
            logger.warning("%s", settings.WITHHELD.format(version.VERSION))
        allocator.settle()
        collector.settle()
        self.leash = leash.hold(self.settings) or self.leash
        self.panel.open()

    def done(self) -> None:
        self.panel.close()
        self.settings.close()
        self.take_shortcuts(False)
        self.journal.write()
        journal.forget_connections()
        if self.settings.loaded and not ctx.master.should_exit.is_set():
            guard.leave_behind(self, Path(__file__))

    # A connection comes in

    def client_connected(self, client: connection.Client) -> None:
        if not (intercept.is_loopback(client) or self.settings.allows_remote_clients):
            client.error = "RouteCodex serves only this machine (proxy.allowRemoteClients)"
            self.journal.note(f"refused {client.peername and client.peername[0]}: {client.error}")
        elif ctx.options.http2:
            lift_connection_limit(client)

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        if self.settings.loaded and not intercept.opens(data, self.settings.hosts):
            data.ignore_connection = True

    def tls_failed_client(self, data: tls.TlsData) -> None:
        host = data.conn.sni or ""
        if self.settings.loaded and host in self.settings.hosts and (line := self.untrusted.say(host, self.settings.certificate)):
            logger.warning("%s", line)

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        self.relay.next_layer(nextlayer)

    async def server_connect(self, data: server_hooks.ServerConnectionHookData) -> None:
        """A proxy that can be sent to itself, or to mitmweb beside it, lets in who was to stay outside."""
        host, port = (data.server.address or ("", 0))[:2]
        try:
            place = await intercept.address_beside(settings.listening(), host, port)
        except OSError as error:
            data.server.error = str(error)
        else:
            data.server.address = place or data.server.address

    # A request comes in

    @guarded
    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Take the credentials off the flow before anything can show or save it; they join again on the wire.

        A flow that comes from a file is nobody's call; the hooks that follow know only what this one took in. What no model is
        asked, and what a web page asks, goes where it was going: both ways as it comes.
        """
        if is_loaded(self.relay, flow):
            return
        if (later := later_round(self.relay, flow)) is not None:
            self.relay.set_wire(flow, later.wire)
            return
        arrival, hosts = self.relay.arrival(flow), self.settings.hosts
        if (why := intercept.refusal(flow.request, arrival, flow.client_conn, hosts)) is not None:
            flows.turn_away(flow, why)
            self.journal.note(f"refused {flow.client_conn.peername}: {why}")
            return
        if intercept.asks_who(flow.request):
            flow.response = self.settings.hello()
            return
        ours = intercept.is_ours(flow, hosts)
        if ours and flow.is_replay:
            self.again(flow)
            return
        if ours:
            sealed = self.sealed.get(flow) or sealing.seal(flow.request)
            self.sealed[flow] = sealed
            self.relay.set_wire(flow, sealed.wire)
        if not flow.is_replay and not (ours and intercept.is_read(flow.request, arrival)):
            flow.request.stream = True

    def again(self, flow: http.HTTPFlow) -> None:
        """A person repeats a flow: to the same place, with the same credential, and nothing is decided anew."""
        if (wire := self.relay.sent(flow)) is not None and not settings.web_is_open():
            self.relay.set_wire(flow, wire)
        else:
            flow.response = http.Response.make(409, flows.NOT_AGAIN, {"content-type": "text/plain"})

    @guarded
    async def request(self, flow: http.HTTPFlow) -> None:
        """What a model is asked is decided on."""
        sealed = self.sealed.get(flow)
        if sealed is None or flow.response is not None or flow.is_replay or flow.request.stream:
            return
        if intercept.refuses_websocket(flow.request):
            self.answer_upgrade(flow, sealed)
            return
        endpoint = endpoint_of(flow.request.method, flow.request.path)
        if endpoint is None:
            return
        desk = self.settings.desk
        reading: Reading | None = None
        line = CallLine(began=time.monotonic())
        try:
            received = await flows.read_request(flow, endpoint, sealed, call_id=str(uuid.uuid4()))
            reading = desk.read(received)
            line.session, line.client, line.asked = reading.key.id, reading.caller.client, reading.call.model
            # Only what changes something makes a call wait for the disk, in a thread.
            orders = desk.obey_at_once(reading)
            if orders is None:
                orders = await in_thread(desk.obey, reading)
            reply = desk.prepare(reading, orders)
            if reply is None:
                await self.route(flow, desk, reading, orders, sealed, line)
                return
        except RouteCodexError as error:
            reply = desk.refuse(endpoint, error, reading.caller.client if reading is not None else "")
        await self.reply(flow, reply, line)

    def answer_upgrade(self, flow: http.HTTPFlow, sealed: Sealed) -> None:
        """A WebSocket that is served asks in flows of its own."""
        if self.settings.config.codex_web_socket == "serve" and codex_socket.can_serve(flow.request):
            codex_socket.serve(self.relay, flow, sealed)
            return
        flow.response = http.Response.make(426, b"", {"upgrade": "HTTP/1.1", "connection": "Upgrade"})
        flow.comment = "WebSocket refused: the tool falls back to HTTP"

    async def route(
        self, flow: http.HTTPFlow, desk: Desk, reading: Reading, orders: Orders, sealed: Sealed, line: CallLine
    ) -> None:
        """To a target, or to `echo`. Plugins that take part see the call first, and hear that the turn is over."""
        company = desk.company(reading, orders, in_thread)
        sent = reading.call
        hints: Hints | None = None
        try:
            if company is not None:
                self.relay.when_gone(flow, company.life.abort)
                sent, hints = await company.begin(), company.life.hints
            outcome = await self.decide(desk, reading, orders, hints, sent)
            if isinstance(outcome, Plan):
                if outcome.decision.clear_sticky:
                    await in_thread(desk.forget_sticky, reading, orders.state.sticky)
                self.send(flow, desk, outcome, sealed, company, line)
                return
            if company is not None:
                call = company.offer(sent, able=True)
                endings = self.settings.endings
                said = await converse(company, call, lambda call: desk.echo(replace(reading, call=call)), endings)
                outcome = replace(said, comment=outcome.comment, before=outcome.before)
                await company.leave(aborted=False)
        except Exception as error:
            if company is not None:
                await company.leave(aborted=False, error=type(error).__name__)
            raise
        await self.reply(flow, outcome, line)

    async def decide(
        self, desk: Desk, reading: Reading, orders: Orders, hints: Hints | None, sent: Call, since: float | None = None
    ) -> Reply | Plan:
        """Where it goes. While all its keys rest for a moment the call waits: nothing has left for its client yet."""
        outcome = desk.route(reading, orders, hints, sent=sent, waits_since=since)
        if not isinstance(outcome, Rest):
            return outcome
        await asyncio.sleep(outcome.seconds)
        return await self.decide(desk, reading, orders, hints, sent, outcome.since)

    async def reply(self, flow: http.HTTPFlow, reply: Reply, line: CallLine) -> None:
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.before is not None:
            await in_thread_if_possible(reply.before, self.journal.note)
        flows.write_reply(flow, reply)
        self.journal.note(line.say(reply.comment, str(reply.status), time.monotonic()))

    def send(self, flow: http.HTTPFlow, desk: Desk, plan: Plan, sealed: Sealed, company: Company | None, line: CallLine) -> None:
        """Round 1 is the client's own flow, rewritten in place; the turn hears what becomes of it."""
        merger, endings = None, self.settings.endings
        if company is not None:
            plan.call = company.offer(plan.call, able=plan.provider.server_tools)
            company.life.turn.target = plan.target
            merger = company.merger(plan.call, endings)
        elif endings.matter and plan.received.endpoint.action == "generate":
            merger = merger_of(plan.call, endings.named(plan.received.id[:8]))
        try:
            request = plan.request()
        except RouteCodexError:
            plan.over()
            raise
        self.relay.set_wire(flow, flows.write_request(flow.request, request, sealed))
        if flow.server_conn.via is not None and intercept.is_this_machine(flow.request.host):
            flow.server_conn = connection.Server(address=(flow.request.host, flow.request.port))
        plan.endings = endings.named(plan.received.id[:8])
        flows.mark(flow, plan.told, plan.target, plan.received.id)
        limits = desk.limits(plan, alone=company is None)
        turn = Turn(plan.received.endpoint, plan.call.stream, plan, limits, time.monotonic(), merger, alone=company is None)
        CarriedTurn(self.relay, flow, turn, plan, sealed, self.journal, line, company)
        self.journal.detail(f"{plan.received.host} -> {plan.comment}")

    # An answer comes back

    @guarded
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Quick: the turn hears the head, and every chunk that follows goes through it."""
        assert flow.response is not None
        if (later := later_round(self.relay, flow)) is not None:
            flow.response.stream = later.hear(flow.response)
        elif (carried := self.relay.carried(flow)) is not None:
            carried.current.head(flow.response)
            flow.response.stream = True
            return  # the turn has read the head as it is; it is sealed when it leaves
        elif flow.request.stream:
            flow.response.stream = flow.response.stream or True
        if later is not None or flow in self.sealed:
            self.relay.backs.seal(flow, flow.response)

    @guarded
    def response(self, flow: http.HTTPFlow) -> None:
        if (later := later_round(self.relay, flow)) is not None:
            later.end(flow.response)
        elif flow in self.sealed:
            self.relay.backs.seal(flow, flow.response)
            sealing.seal_stored(flow.request)
            sealing.seal_stored(flow.response)

    @guarded
    def error(self, flow: http.HTTPFlow) -> None:
        message = flow.error.msg if flow.error is not None else "unknown"
        if (later := later_round(self.relay, flow)) is not None:
            later.listener.broke(message)
        elif (carried := self.relay.carried(flow)) is not None:
            carried.gone()


addons: list[Any] = [RouteCodex()]
