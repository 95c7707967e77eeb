"""What is tried only where HAProxy and Redis are installed."""

from __future__ import annotations

from tests.chaos.stage import HAPROXY
from tests.rig.redis_server import IS_THERE

collect_ignore = [] if IS_THERE and HAPROXY else ["test_chaos.py"]
