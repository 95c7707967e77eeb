"""A mitmproxy script for tests: the proxy's clock is ahead of the machine's by the seconds that a file says.

`GET http://clock.rig/` answers, and by that wakes the loop: what had been sent to the proxy before is read by then.
"""

import mmap
import os
import struct
import time

from mitmproxy import http

with open(os.environ["RIG_AHEAD"], "rb") as file:
    AHEAD = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
usual = time.monotonic
time.monotonic = lambda: float(usual() + struct.unpack("d", AHEAD)[0])


class Leap:
    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.host == "clock.rig":
            flow.response = http.Response.make(200, b"")


addons = [Leap()]
