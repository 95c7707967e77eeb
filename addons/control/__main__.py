"""`python addons/control/__main__.py COMMAND …`: the command in a clone. In the package too the supervisor starts this way."""

import sys
from pathlib import Path
from types import ModuleType

if sys.version_info < (3, 11):  # noqa: UP036 - where it matters, nobody has asked for our minimum
    sys.exit(f"RouteCodex needs Python 3.11 or newer; this is {sys.version.split()[0]}.")

ROOT = Path(__file__).resolve().parents[2]
house = sys.modules.setdefault("routecodex", ModuleType("routecodex"))
house.__path__ = [str(ROOT)]  # a module is called `routecodex.` and its path

if __name__ == "__main__":
    if sys.argv[1:] == ["supervise"]:
        from routecodex.addons.control.supervisor import main as supervise

        sys.exit(supervise())
    if sys.argv[1:2] == ["prefork"]:
        from routecodex.addons.control.prefork import main as prefork

        sys.exit(prefork(sys.argv[2:]))
    from routecodex.addons.control.cli import main

    sys.exit(main())
