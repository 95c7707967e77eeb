"""What is tried only where its readers are installed."""

from __future__ import annotations

from tests.rig.readers import ARE_THERE

collect_ignore = [] if ARE_THERE else ["test_telemetry.py"]
