"""The configuration in force, for commands that work without a proxy too."""

from __future__ import annotations

import os
from pathlib import Path

from ...routing.config import Config, load
from ...routing.errors import ConfigError
from .places import config_file
from .say import Failed


def config(option: str = "") -> tuple[Path, Config]:
    path = config_file(option)
    try:
        return path, load(path, os.environ)
    except ConfigError as error:
        raise Failed(error.message, "`routecodex check` reads it again when it is mended") from None
