"""What is tried only where the program for it is installed."""

from __future__ import annotations

from tests.rig.redis_server import IS_THERE

collect_ignore = [] if IS_THERE else ["test_redis.py"]
