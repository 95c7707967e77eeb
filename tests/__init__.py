"""The tests: the tree mirrors the product; `rig/` holds the fake provider, the real proxy and the clients.

Here too the product's modules are called `routecodex.` and their path, as `addons/routecodex.py` has it.
"""

import sys
from pathlib import Path
from types import ModuleType

house = sys.modules.setdefault("routecodex", ModuleType("routecodex"))
house.__path__ = [str(Path(__file__).resolve().parent.parent)]
