"""The configuration file: `load` it, `read` its text, `find` it."""

from ..which_config import FILE_NAME
from .hosts import OFFICIAL_HOSTS
from .load import find, load, read
from .values import Clock, Config, FinishReasons, Ntp, StopSettings

__all__ = [
    "FILE_NAME",
    "OFFICIAL_HOSTS",
    "Clock",
    "Config",
    "FinishReasons",
    "Ntp",
    "StopSettings",
    "find",
    "load",
    "read",
]
