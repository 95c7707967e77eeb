"""The store that several processes share, opened once: a script that is loaded anew goes on with it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from ..routing.config import Config
from ..routing.storage.contract import DAY_S, Store
from ..routing.storage.shared_file import SharedFile
from .disk_threads import in_thread

logger = logging.getLogger("routecodex")

_OPENED: dict[str, Store] = {}


def opened(config: Config, folder: Path) -> Store:
    """As the configuration says: a Redis, or the file that all processes of this machine share."""
    name = config.store if config.store != "files" else str(folder)
    if name not in _OPENED:
        if config.store == "files":
            _OPENED[name] = SharedFile(folder, in_thread, wall=time.time, heard=logger.warning)
        else:
            from .redis_store import RedisStore  # an extra, for whoever wants it

            _OPENED[name] = RedisStore(config.store, heard=logger.warning)
    store = _OPENED[name]
    store.retention_s = config.retention_days * DAY_S
    return store
