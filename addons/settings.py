"""The configuration in force: found, loaded, watched; and what outlives a change of it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from mitmproxy import ctx, exceptions, http, version

from ..routing import config as configuration
from ..routing.clock.plugin import ClockPlugin
from ..routing.config import Config
from ..routing.config.values import TelemetrySettings
from ..routing.control.elsewhere import Elsewhere
from ..routing.control.overlay import Overlay
from ..routing.control.verbs import Served
from ..routing.desk.desk import Carrier, Desk
from ..routing.desk.learned import Learned
from ..routing.desk.meeting import Met
from ..routing.dialects.translation import going_up
from ..routing.errors import ConfigError, StoreError
from ..routing.router.health import Healthy
from ..routing.sessions.store import FileStore, States
from ..routing.stop_message.plugin import StopMessagePlugin
from ..routing.storage.contract import DAY_S
from ..routing.turn.empty_reply import EmptyReply
from ..routing.turn.hidden import HiddenRounds
from ..routing.turn.hidden_store import HiddenStore
from ..routing.turn.loading import load_plugins
from ..routing.turn.plan import Clocks
from ..routing.turn.plugins import Plugin, TurnInfo
from ..routing.turn.upstream import Received
from ..routing.usage.prices import Price, Prices
from ..routing.usage.spending import FILE_NAME, Row, Spent
from ..routing.values import Target
from . import allocator, clockwork, garbage, intercept, people, stand_in, worker
from .clockwork import Clockwork
from .disk_threads import breathe, in_thread, short_turns
from .journal import DebugFile, Journal
from .work_state import WorkStateProbe

if TYPE_CHECKING:
    from ..routing.storage.contract import Store
    from ..routing.telemetry.meter import Labels, Named
    from .cache_losses import CacheLosses
    from .shared import Shared
    from .telemetry import Telemetry
    from .usage_writer import UsageWriter

logger = logging.getLogger("routecodex")

FINISH_LOG = "finish-reason-debug.log"
WITHHELD = (
    "mitmweb of mitmproxy {} asks nobody who they are (CVE-2025-23217), so RouteCodex uses no configured key under it. Run "
    "mitmdump instead, or install RouteCodex with Python 3.12 or newer, where pip finds a mitmproxy that asks. "
    "origin and echo work here as well."
)
_POLL_S = 1.0
_SWEEP_S = 3600.0
_Stamp = tuple[int, int]
_UNUSED = "The changed configuration is not used, the old one stays in force"
_CLOCKS = Clocks(time.monotonic, time.time, lambda: float(time.localtime().tm_gmtoff))


class Settings:
    """An invalid new file is reported, and the old one stays in force."""

    def __init__(self, root: Path, journal: Journal) -> None:
        self.root = root
        self.journal = journal
        self._option = ""
        self.path: Path | None = None
        self.learned = Learned()
        self.probe = WorkStateProbe()
        self._plugins: tuple[Plugin, ...] = ()
        self.hosts = intercept.Hosts(())
        self._config: Config | None = None
        self._unused = ""
        """Why the configuration as it stands in its file is not the one that holds."""
        self._desk: Desk | None = None
        self._overlay = Overlay()
        self._clockwork: Clockwork | None = None
        self._finish_log: DebugFile | None = None
        self._usage: UsageWriter | None = None
        self._losses: CacheLosses | None = None
        self.telemetry: Telemetry | None = None
        self._shared: Shared | None = None
        self._store: Store | None = None
        self._opened_store = ""
        self._stamps: dict[Path, _Stamp | None] = {}
        """When the configuration and its plugins were written, as they were read last."""
        self._task: asyncio.Task[None] | None = None

    @property
    def loaded(self) -> bool:
        return self._config is not None

    @property
    def config(self) -> Config:
        assert self._config is not None
        return self._config

    @property
    def allows_remote_clients(self) -> bool:
        return self._config is not None and self._config.allow_remote_clients

    @property
    def desk(self) -> Desk:
        """Made at the first call: only then is it known where the proxy listens, and so which folder is its own."""
        if self._desk is None:
            folder = session_folder()
            self._overlay = Overlay(folder, server_id(), worker.here.shared.orders if worker.here is not None else None)
            self._opened_store = self.config.store
            self._shared = shared = self._new_shared(folder)
            if shared is None:
                self._clockwork = clockwork.shared(folder)
                self._desk = self._new_desk(FileStore(folder), HiddenStore(folder))
            else:
                self._clockwork = clockwork.shared(folder, shared.tasks, shared.claims)
                shared.adopt(self._clockwork.store, self._clockwork.claims)
                self._desk = self._new_desk(shared.states, shared.hidden)
        return self._desk

    def _new_shared(self, folder: Path) -> Shared | None:
        """What is shared with other processes; None where there are none."""
        in_files = self.config.store == "files"
        if in_files and worker.here is None:
            return None
        from . import shared, stores  # for whoever is not alone

        self._store = stores.opened(self.config, folder)
        return shared.Shared(
            self._store,
            self.learned,
            _CLOCKS,
            folder,
            everything=not in_files,
            refuses=self._refuses,
            note=self.journal.note,
        )

    @property
    def _refuses(self) -> bool:
        """No call of a session goes on without the store."""
        return self.config.store != "files" and self.config.on_store_lost == "refuse"

    async def meet(self, received: Received, carrier: Carrier) -> Met:
        """A call as it came in; what others know of it is known here from now on. `Lost` where nothing may go on without."""
        met = await carrier.compute(partial(allocator.reading, len(received.body), partial(self.desk.meet, received)))
        if self._shared is not None:
            await self._shared.fetch(met)
        return met

    def say(self) -> None:
        """A call leaves: what is known of it others may know now."""
        if self._shared is not None:
            self._shared.say()

    def unsaid(self, call: str = "") -> Awaitable[object] | None:
        """What an answer's end waits for: others know of it, and a file that flows are written to says all of the call. None:
        nothing."""
        shared = self._shared.unsaid() if self._shared is not None else None
        verdict = self._losses.verdict(call) if self._losses is not None and ctx.options.save_stream_file else None
        return asyncio.gather(shared, verdict) if shared is not None and verdict is not None else shared or verdict

    def load(self, option: str) -> None:
        self._option = option
        self.path = self._found()
        self._use(*self._read(self.path))

    def admins(self) -> frozenset[str]:
        return self._config.admins if self._config is not None else frozenset()

    def check_people(self) -> None:
        """Whom mitmproxy asks who they are is about to change."""
        if self._config is None:
            return
        try:
            people.check(allow_remote_clients=self._config.allow_remote_clients)
        except ConfigError as error:
            raise exceptions.OptionsError(f"RouteCodex: {error.message}") from None

    def _found(self) -> Path:
        return configuration.find(self._option, os.environ, Path.home(), self.root)

    async def learn_variables(self, told: Mapping[str, str]) -> None:
        """Variables that were set after the proxy's start."""
        os.environ.update(told)
        await self._reload()

    @property
    def certificate(self) -> Path:
        """What tools must trust."""
        return Path(ctx.options.confdir).expanduser() / "mitmproxy-ca-cert.pem"

    def hello(self) -> http.Response:
        """Who listens here, for those who look for a proxy of ours."""
        certificate = self.certificate
        said = {
            "name": "RouteCodex",
            "server": server_id(),
            "pid": worker.server_pid(),
            "certificate": certificate.read_text() if certificate.is_file() else "",
            "hosts": self.config.intercept_hosts if self.loaded else (),
            "config": str(self.path),
            "serves": self.serves,
        }
        return http.Response.make(200, orjson.dumps(said), {"content-type": "application/json"})

    @property
    def serves(self) -> bool:
        """Whether a call that comes now would not be refused for want of the store: what a load balancer looks at."""
        lost = self._store is not None and bool(self._store.gone)
        return self.loaded and not (lost and self._refuses)

    def served(self) -> Served:
        """This server, for its verbs."""
        listening = tuple((str(address[0]), int(address[1])) for address in ctx.master.addons.get("proxyserver").listen_addrs())
        pid, folder, desk = worker.server_pid(), session_folder(), self.desk
        elsewhere = self._elsewhere()  # known from the desk on
        return Served(server_id(), pid, listening, str(self.path), folder, desk, os.environ, elsewhere=elsewhere)

    def _elsewhere(self) -> Elsewhere | None:
        shared = self._shared
        return Elsewhere(shared.store, shared.bridge) if shared is not None and shared.everything else None

    def watch(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())

    async def metrics(self) -> str | None:
        """What Prometheus reads; None where nobody is to."""
        telemetry = self.telemetry
        return await telemetry.text() if telemetry is not None and telemetry.settings.prometheus else None

    def _watch_calls(self, wanted: TelemetrySettings) -> None:
        """What was counted goes on as long as nobody wants it otherwise."""
        old = self.telemetry
        if old is not None and old.settings == wanted:
            return
        self.telemetry = None
        if wanted.enabled:
            from .telemetry import Beside, Telemetry  # nothing of it is loaded where nobody wants it

            here = worker.here
            beside = Beside(session_folder, worker.server_pid(), here.number) if here is not None else None
            self.telemetry = Telemetry(wanted, server_id(), self._gauges, beside=beside)
        if old is not None:
            old.close(0)

    def _gauges(self) -> Mapping[Named, Mapping[Labels, float]]:
        from ..routing.telemetry.meter import RESTING

        now, health = time.monotonic(), self.learned.health
        found: dict[Labels, float] = {}
        for provider in self.config.registry.providers.values():
            for key in provider.keys:
                states = [health.state(Target(provider.id, key.alias, model), now) for model in ("", *provider.models)]
                labels = (("key", key.alias), ("provider", provider.id))
                found[labels] = float(any(not isinstance(state, Healthy) for state in states))
        return {RESTING: found}

    def _close_usage(self, wait_s: float = 2.0) -> None:
        """It writes what it has; the next one works with the configuration that holds then."""
        writer, self._usage = self._usage, None
        if writer is not None:
            writer.close(wait_s)

    def close(self) -> None:
        self._close_usage()
        if self.telemetry is not None:
            self.telemetry.close()
            self.telemetry = None
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._clockwork is not None:
            self._clockwork.close()
        if self._finish_log is not None:
            self._finish_log.close()

    async def _watch(self) -> None:
        swept = time.monotonic() - _SWEEP_S
        with short_turns(), garbage.resting():  # what the first call in another dialect needs, before it comes
            await in_thread(going_up.load)
        while True:
            await asyncio.sleep(_POLL_S)
            if self.loaded and self._desk is None and self.config.store != "files":
                assert self.desk is not None  # the first call finds a connection
            if self._appeared() or any(_stamp(path) not in (None, stamp) for path, stamp in self._stamps.items()):
                await self._reload()
            if self.loaded and worker.leads() and time.monotonic() - swept >= _SWEEP_S:
                swept = time.monotonic()
                await in_thread(self._sweep, self.desk)
                if self._store is not None:
                    with contextlib.suppress(StoreError):
                        await self._store.expire()
            if self._shared is not None:
                await self._shared.tick()
            if self._clockwork is not None:
                await self._clockwork.sweep(self.config.clock)
            self._report_stores()

    def _appeared(self) -> bool:
        """One's own file takes the place of the shipped one as soon as it is there."""
        if self.path != self.root / configuration.FILE_NAME:
            return False
        try:
            self.path = self._found()
        except ConfigError:  # ours is being replaced: what holds, holds
            return False
        return self.path not in self._stamps

    def _sweep(self, desk: Desk) -> None:
        for store in (desk.store, desk.hidden):
            if store is not None:
                store.sweep(time.time(), self.config.retention_days, breathe)

    async def _reload(self) -> None:
        """Reading a large file takes longer than calls should wait."""
        assert self.path is not None
        path = self.path
        try:
            with short_turns(), garbage.resting():
                config, plugins = await in_thread(self._read, path)
            if path != self.path:  # another one was chosen meanwhile
                self._stamps = self._stamps_of([self.path, *map(Path, (*self.config.plugins, *self.config.secret_files))])
                return
            self._use(config, plugins)
        except (ConfigError, OSError) as error:
            first, *others = str(error).splitlines() or [""]
            more = f" (and {len(others)} more: `routecodex check`)" if others else ""
            self._unused = f"{_UNUSED}: {first}{more}"
            if worker.leads():
                logger.warning("%s: %s", _UNUSED, error)
        else:
            if worker.leads():
                logger.info("Configuration reloaded: %s", path.name)

    def _read(self, path: Path) -> tuple[Config, tuple[Plugin, ...]]:
        """Also where what stands there cannot be used, it is looked at again only when it changes."""
        self._stamps = seen = self._stamps_of([path, *self._stamps])
        config = configuration.load(path, os.environ)
        wanted = self._stamps_of([path, *map(Path, (*config.plugins, *config.secret_files))])
        self._stamps = {one: seen.get(one, stamp) for one, stamp in wanted.items()}
        people.check(allow_remote_clients=config.allow_remote_clients)
        if config.store != "files":
            try:
                importlib.import_module(f"{__package__}.redis_store").check(config.store)
            except ImportError as error:
                needs = "redis needs its client for Python: pip install 'routecodex[redis]'"
                raise ConfigError(f"sessions.store: {needs} ({error})") from None
            except ValueError as error:
                raise ConfigError(f"sessions.store: Redis' client does not take this address ({error})") from None
        return config, load_plugins(config.plugins)

    def _stamps_of(self, paths: Iterable[Path]) -> dict[Path, _Stamp | None]:
        """A file that is gone for a moment, as it is while some editors save it, keeps its stamp."""
        return {path: _stamp(path) or self._stamps.get(path) for path in paths}

    def _use(self, config: Config, plugins: tuple[Plugin, ...]) -> None:
        self._plugins = plugins
        self._config = config
        self._unused = ""
        self._close_usage(wait_s=0)
        self._watch_calls(config.telemetry)
        self.hosts = intercept.Hosts(config.intercept_hosts)
        if self._desk is not None:
            if config.store != self._opened_store:
                logger.warning("sessions.store has changed: until the proxy is started anew, the old one is used")
            if self._shared is not None:
                self._shared.refuses = self._refuses
                self._shared.store.retention_s = config.retention_days * DAY_S
            self._desk = self._new_desk(self._desk.store, self._desk.hidden)
        stand_in.lift()
        for warning in config.warnings if worker.leads() else ():
            logger.warning("%s", warning)

    def _new_desk(self, store: States, hidden: HiddenRounds | None) -> Desk:
        note = self.journal.note

        def tell(turn: TurnInfo, line: str) -> None:
            turn.notes.append(line)
            note(f"{turn.id[:8]}: {line}")

        assert self._clockwork is not None
        stop = StopMessagePlugin(store, self.config.stop, self.probe, tell, in_thread, refuses=self._refuses)
        clock = self._clockwork.plugin(self.config, tell, note)
        return Desk(
            self.config,
            store,
            self.learned,
            _CLOCKS,
            user_folder(),
            note=note,
            hidden=hidden,
            plugins=(*([EmptyReply()] if self.config.empty_reply else []), stop, clock, *self._plugins),
            reminders=clock if isinstance(clock, ClockPlugin) else None,
            withheld=WITHHELD.format(version.VERSION) if web_is_open() else "",
            overlay=self._overlay,
            spend=self._spend if self.config.usage.enabled else None,
            settle_usage=self._settle_usage,
            finish_log=self._new_finish_log() if self.config.finish_reasons.log else None,
            on_seals=self._shared.sharing.seals if self._shared is not None else lambda key, maker, digests: None,
            on_departs=self._shared.sharing.departs if self._shared is not None else lambda key, mark, target: None,
            ill=self._ill,
        )

    def _ill(self) -> str:
        """What is not well with this server as a whole, for who asks how it is."""
        gone = f"{self.path} is gone: what stood in it stays in force" if self.path and not self.path.exists() else self._unused
        return "\n".join(filter(None, (self._store.gone if self._store is not None else "", gone)))

    def _spend(self, spent: Spent) -> None:
        if self._usage is None or self._losses is None:
            from ..routing.usage.ledger import Ledger  # a database, once there is something to write
            from .cache_losses import CacheLosses
            from .usage_writer import UsageWriter

            used = self.config.usage
            ledger = Ledger(user_folder() / FILE_NAME, retention_days=used.retention_days, note=self.journal.note)
            self._usage = UsageWriter(ledger, self._price)
            self._losses = self._losses or CacheLosses(self._price)
        self._usage.note(spent.row, spent.url)
        self._losses.hear(spent)

    def _settle_usage(self) -> None:
        if (writer := self._usage) is not None:
            writer.settle()

    def _price(self, row: Row, url: str) -> Price | None:
        return Prices(self.config.usage.prices).price(row.provider, row.model, url)

    def _new_finish_log(self) -> Callable[[str], None]:
        self._finish_log = self._finish_log or DebugFile(session_folder() / FINISH_LOG)
        return self._finish_log.note

    def _report_stores(self) -> None:
        if self._desk is None or self._clockwork is None:
            return
        for store in (self._desk.store, self._desk.hidden, self._clockwork.store, self._overlay):
            if store is not None:
                for warning in store.warnings.taken():
                    logger.warning("%s", warning)


def user_folder() -> Path:
    return Path(os.environ.get("ROUTECODEX_USER_DIR") or Path.home() / ".routecodex")


def session_folder() -> Path:
    named = os.environ.get("ROUTECODEX_SESSION_DIR")
    return Path(named) if named else user_folder() / "sessions" / server_id()


def server_id() -> str:
    """`127.0.0.1_8080`: sessions live per listening server; a proxy whose port may change is named instead."""
    if ctx.options.routecodex_server:
        return str(ctx.options.routecodex_server)
    addresses = ctx.master.addons.get("proxyserver").listen_addrs()
    host, port = (str(addresses[0][0]), int(addresses[0][1])) if addresses else ("127.0.0.1", ctx.options.listen_port or 8080)
    plain = "127.0.0.1" if host in ("", "0.0.0.0", "::", "localhost") else host
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in f"{plain}_{port}")


def web_is_open() -> bool:
    """Older versions of mitmweb show and repeat every flow for whoever reaches their port (CVE-2025-23217)."""
    return "web_port" in ctx.options and tuple(map(int, re.findall(r"\d+", version.VERSION)[:3])) < (11, 1, 2)


def listening() -> list[tuple[str, int]]:
    """Where this process is reached: the proxy, the page, and mitmweb."""
    own = [(str(host), int(port)) for host, port, *_ in ctx.master.addons.get("proxyserver").listen_addrs()]
    if page := ctx.options.routecodex_page:
        own.append(("127.0.0.1", page))
    return [*own, (ctx.options.web_host, ctx.options.web_port)] if "web_port" in ctx.options else own


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
