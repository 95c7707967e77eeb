"""RouteCodex: steer LLM tools by typing tags in the chat.   mitmdump -s addons/routecodex.py

What happens to a request? Read the hooks of `RouteCodex` from top to bottom: they stand in the order of a call's life.
This file stays thin: mitmproxy loads it again whenever it changes; the modules it imports are loaded once.
"""

import asyncio
import gc
import logging
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - where it matters, nobody has asked for our minimum
    sys.exit(f"RouteCodex needs Python 3.11 or newer; this mitmproxy runs on {sys.version.split()[0]}.")

gc.disable()  # until all is loaded: to look through it again and again takes as long as a fifth of reading it

import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, assert_never

from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent
house = sys.modules.setdefault("routecodex", ModuleType("routecodex"))
house.__path__ = [str(ROOT)]  # a module is called `routecodex.` and its path: nobody else's `settings` is ours

from mitmproxy import connection, ctx, exceptions, http, tls, version
from mitmproxy.addonmanager import Loader
from mitmproxy.proxy import layer, server_hooks

from routecodex.addons import (
    allocator,
    flows,
    garbage,
    intercept,
    internals,
    journal,
    people,
    quick_checks,
    quick_hooks,
    quick_reads,
    relay,
    rounds,
    sealing,
    settings,
    stand_in,
    window,
    worker,
)
from routecodex.addons.by_hand import ByHand
from routecodex.addons.control import leash, panel
from routecodex.addons.disk_threads import computed, if_possible, in_thread
from routecodex.addons.fail_closed import guarded
from routecodex.addons.flows import Marker
from routecodex.addons.in_turn import InTurn
from routecodex.addons.intercept import Comes, Later, TurnedAway
from routecodex.addons.journal import CallLine, Journal
from routecodex.addons.layers import lift_connection_limit
from routecodex.addons.sealing import Sealed
from routecodex.addons.shown_flows import ShownFlows
from routecodex.addons.turns import CarriedTurn
from routecodex.addons.untrusted import Untrusted
from routecodex.addons.window.commands import Commands
from routecodex.routing.desk.desk import Departure, Reading
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.errors import ConfigError, RouteCodexError
from routecodex.routing.storage import disk
from routecodex.routing.turn.replies import Reply
from routecodex.routing.values import Endpoint
from routecodex.routing.window import record

garbage.loaded()
logger = logging.getLogger("routecodex")

NEEDED_OPTIONS = {"connection_strategy": "lazy", "upstream_cert": False}
"""No connection to the host that a client names before it is decided where its call goes."""


T = TypeVar("T")


class Waiting(Struct, frozen=True):
    """One call's `Carrier`: what it waits for while the desk decides."""

    relay: relay.Relay
    flow: http.HTTPFlow
    line: CallLine
    takes_long: bool = False
    """To compute anything about the call."""

    async def in_thread(self, work: Callable[[], T], /) -> T:
        return await in_thread(work)

    async def compute(self, work: Callable[[], T], /) -> T:
        return await computed(work) if self.takes_long else work()

    async def sleep(self, seconds: float) -> None:
        self.line.rested(seconds)
        await asyncio.sleep(seconds)

    def when_gone(self, hear: Callable[[], None]) -> None:
        self.relay.when_gone(self.flow, hear)

    def has_left(self) -> bool:
        return self.relay.has_left(self.flow)


class RouteCodex(quick_hooks.Own):
    """One proxy's addon."""

    def __init__(self) -> None:
        self.relay = relay.shared(flows.REQUEST_BYTES)
        self.journal = Journal(worker.here.tell if worker.here is not None else None, _keeps_records)
        self.settings = settings.Settings(ROOT, self.journal)
        self.leash: leash.Leash | None = None
        self.untrusted = Untrusted()
        self.shown = ShownFlows()
        self.in_turn = InTurn()
        self.spent = garbage.Spent(self.relay.running)
        self.panel = panel.Panel(self.settings)
        self.by_hand = ByHand(self.relay)
        self.addons = [Commands(self.settings.served, self.by_hand.begin)]
        """mitmproxy finds their commands."""
        self.sealed = self.relay.sealed
        """The credentials taken off our flows; no flow that is shown or saved holds any."""

    # Start and stop

    def load(self, loader: Loader) -> None:
        loader.add_option(
            "routecodex_config", str, "", "RouteCodex: the configuration file (default: your own, else the shipped one)."
        )
        loader.add_option("routecodex_server", str, "", "RouteCodex: whose sessions these are (default: address and port).")
        loader.add_option("routecodex_http2", bool, False, "RouteCodex: offer HTTP/2 to clients.")
        loader.add_option(
            "routecodex_web_flows", int, 500, "RouteCodex: so many flows stay in mitmweb (0: all, as in mitmproxy)."
        )
        loader.add_option(
            "routecodex_page", int, 0, "RouteCodex: serve its page at this port of this machine (0: only mitmweb shows it)."
        )
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
        verbosity = "termlog_verbosity" if "termlog_verbosity" in ctx.options else "console_eventlog_verbosity"
        self.journal.verbose = getattr(ctx.options, verbosity, "info") == "debug"
        journal.tell_connections(self.journal.verbose)
        if "proxyauth" in updated and "routecodex_config" not in updated:
            self.settings.check_people()
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
            quick_reads.install()
        elif quick is not None:
            quick.remove()
            quick_checks.remove()
            quick_reads.remove()

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
        garbage.settle()
        self.leash = leash.hold(self.settings) or self.leash
        if worker.leads():
            self.panel.open()
        window.open_(self.panel.answer, lambda: list(reversed(self.journal.calls)), self.settings.metrics, self.settings.admins)

    def done(self) -> None:
        window.close()
        self.panel.close()
        self.settings.close()
        self.spent.stop()
        self.take_shortcuts(False)
        self.journal.write()
        journal.forget_connections()
        if self.settings.loaded and not ctx.master.should_exit.is_set():
            stand_in.leave_behind(self, Path(__file__))

    # A connection comes in

    def client_connected(self, client: connection.Client) -> None:
        if not (intercept.is_from_here(client) or (self.settings.allows_remote_clients and people.are_asked())):
            client.error = "RouteCodex serves only this machine (proxy.allowRemoteClients, docs/team.md)"
            self.journal.note(f"refused {client.peername and client.peername[0]}: {client.error}")
        elif ctx.options.http2:
            lift_connection_limit(client)

    def http_connect(self, flow: http.HTTPFlow) -> None:
        people.forget_password(flow)

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
        """Take the credentials off the flow before anything can show or save it; they join again on the wire."""
        people.forget_password(flow)
        if flow.response is not None and not self.relay.is_loaded(flow):  # mitmproxy has turned away who did not say who they are
            sealing.seal(flow.request)
            return
        if intercept.is_reverse(flow.client_conn) and (behind := intercept.proxy_behind(ctx.options.mode)) is not None:
            flow.server_conn = connection.Server(address=flow.server_conn.address, via=(behind.scheme, behind.address))
        if self.by_hand.target(flow) is not None:
            self.seal(flow)
            self.relay.read_whole(flow)
            return
        match intercept.what_comes(flow, self.relay, self.settings.hosts):
            case Later(later):
                self.relay.set_wire(flow, later.wire)
            case TurnedAway(why):
                flows.turn_away(flow, why)
                self.journal.note(f"refused {flow.client_conn.peername}: {why}")
            case Comes.HELLO:
                flow.response = self.settings.hello()
            case Comes.AGAIN:
                self.again(flow)
            case Comes.CALL:
                intercept.name_host(flow.request, self.settings.hosts)
                self.seal(flow)
                self.relay.read_whole(flow)
            case Comes.PASSING:
                self.seal(flow)
                flow.request.stream = True
            case Comes.FOREIGN:
                flow.request.stream = True
            case Comes.FROM_FILE | Comes.FOREIGN_AGAIN:
                pass
            case never:
                assert_never(never)

    def seal(self, flow: http.HTTPFlow) -> None:
        self.sealed[flow] = sealed = self.sealed.get(flow) or sealing.seal(flow.request)
        self.relay.set_wire(flow, sealed.wire)

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
        if (target := self.by_hand.target(flow)) is not None:
            await self.once_more(flow, target, endpoint, sealed)
            return
        desk = self.settings.desk
        reading: Reading | None = None
        line = CallLine.begin(flow.id, time.monotonic(), self.settings.telemetry)
        await self.in_turn.wait(len(flow.request.raw_content or b""))
        try:
            received = await flows.read_request(flow, endpoint, sealed, call_id=str(uuid.uuid4()))
            carrier = Waiting(self.relay, flow, line, received.takes_long)
            met = await self.settings.meet(received, carrier)
            reading = await carrier.compute(partial(desk.read, met))
            line.of(reading, desk.hide)
            orders = await desk.obey(reading, carrier)
            outcome = await desk.decide(reading, orders, carrier)
        except RouteCodexError as error:
            line.refused(error.code)
            outcome = desk.refuse(endpoint, error, reading.caller.client if reading is not None else "")
        if isinstance(outcome, Reply):
            await self.reply(flow, outcome, endpoint, line)
            return
        try:
            self.send(flow, outcome, sealed, line)
        except Exception as error:
            await outcome.call_off(error)
            raise

    async def once_more(self, flow: http.HTTPFlow, target: str, endpoint: Endpoint, sealed: Sealed) -> None:
        """A person sends what a flow shows to a target of theirs."""
        desk, line = self.settings.desk, CallLine(began=time.monotonic(), client="by hand", flow=flow.id)
        try:
            received = await flows.read_request(flow, endpoint, sealed, call_id=str(uuid.uuid4()))
            departure = await desk.once_more(received, target, Waiting(self.relay, flow, line, received.takes_long))
        except RouteCodexError as error:
            await self.reply(flow, desk.refuse(endpoint, error), endpoint, line)
            return
        line.call, line.asked = received.id, departure.plan.asked
        self.send(flow, departure, sealed, line)
        flow.marked = Marker.AGAIN

    def answer_upgrade(self, flow: http.HTTPFlow, sealed: Sealed) -> None:
        """A WebSocket that is served asks in flows of its own."""
        if self.settings.config.codex_web_socket == "serve":
            from routecodex.addons import codex_socket  # nothing of it is loaded where nobody wants it

            if codex_socket.can_serve(flow.request):
                codex_socket.serve(self.relay, flow, sealed)
                return
        flow.response = http.Response.make(426, b"", {"upgrade": "HTTP/1.1", "connection": "Upgrade"})
        flow.comment = "WebSocket refused: the tool falls back to HTTP"

    async def reply(self, flow: http.HTTPFlow, reply: Reply, endpoint: Endpoint, line: CallLine) -> None:
        """An answer of our own."""
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.before is not None:
            await if_possible(reply.before, self.journal.note)
        if (unsaid := self.settings.unsaid()) is not None:
            await unsaid
        flows.write_reply(flow, reply)
        flows.add_to_record(flow, record.of_reply(reply.comment, line.about, endpoint.dialect))
        self.journal.answered(line, reply.comment, str(reply.status), time.monotonic(), rounds=0)

    def send(self, flow: http.HTTPFlow, departure: Departure, sealed: Sealed, line: CallLine) -> None:
        """To a provider. Round 1 is the client's own flow, rewritten in place; the turn hears what becomes of it."""
        plan = departure.plan
        self.relay.set_wire(flow, flows.write_request(flow.request, departure.request, sealed))
        if flow.server_conn.via is not None and intercept.is_this_machine(flow.request.host):
            flow.server_conn = connection.Server(address=(flow.request.host, flow.request.port))
        flows.mark(flow, plan.long_comment, Marker.CALL, record.of_round(plan, "first"))
        unsaid = partial(self.settings.unsaid, plan.received.id)
        CarriedTurn(self.relay, flow, departure.turn, plan, sealed, self.journal, line, departure.participants, unsaid).start()
        self.settings.say()
        self.journal.detail(lambda: f"{plan.received.host} -> {plan.comment}")

    # An answer comes back

    @guarded
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Quick: the turn hears the head, and every chunk that follows goes through it."""
        assert flow.response is not None
        if (later := self.relay.later_round(flow)) is not None:
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
        if (later := self.relay.later_round(flow)) is not None:
            later.end(flow.response)
        elif flow in self.sealed:
            self.seal_all(flow)
        self.over(flow)

    @guarded
    def error(self, flow: http.HTTPFlow) -> None:
        message = flow.error.msg if flow.error is not None else "unknown"
        if (later := self.relay.later_round(flow)) is not None:
            later.broke(message)
        elif (carried := self.relay.carried(flow)) is not None:
            carried.gone()
        window.legs.keep_error(flow)
        if flow in self.sealed:
            self.seal_all(flow)
        self.over(flow)

    def seal_all(self, flow: http.HTTPFlow) -> None:
        """What is kept of a flow that is over."""
        self.relay.backs.seal(flow, flow.response)
        sealing.seal_trailers(flow.request)
        sealing.seal_stored(flow.request)
        sealing.seal_stored(flow.response)

    def over(self, flow: http.HTTPFlow) -> None:
        self.shown.add(flow, ctx.options.routecodex_web_flows)
        self.spent.add(len(flow.request.raw_content or b""))


def _keeps_records() -> bool:
    return ctx.master.addons.get("eventstore") is not None


addons: list[Any] = [RouteCodex()]
