"""`python addons/control/__main__.py COMMAND …`: the command in a clone. The supervisor starts this way too, from the package as well."""

import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
house = sys.modules.setdefault("routecodex", ModuleType("routecodex"))
house.__path__ = [str(ROOT)]  # a module is called `routecodex.` and its path

if __name__ == "__main__":
    if sys.argv[1:] == ["supervise"]:
        from routecodex.addons.control.supervisor import main as supervise

        sys.exit(supervise())
    from routecodex.addons.control.cli import main

    sys.exit(main())
