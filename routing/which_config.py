"""Which configuration holds. Standard library only: the command line asks too, before anything else is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "mitm-config.yaml"
VARIABLE = "ROUTECODEX_CONFIG"


def own_file(home: Path) -> Path:
    return home / ".config" / "routecodex" / FILE_NAME


def chosen(option: str, env: Mapping[str, str], home: Path, root: Path) -> Path:
    """What the option names, else what the variable names, else one's own file, else the shipped one; never the one in the
    folder that happens to be the working directory. Whether it is there is not asked of what was named."""
    if named := option or env.get(VARIABLE, ""):
        return Path(named).expanduser().absolute()
    own = own_file(home)
    return own if home.is_absolute() and own.is_file() else root / FILE_NAME
