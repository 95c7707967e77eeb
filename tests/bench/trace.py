"""A mitmproxy script that counts what our code does between `http://trace.invalid/on` and `/off`, which answers with the counts.

Calls of functions of ours, JSON parses (orjson's and the standard library's), and how often execution passes from one file of
ours to another, there and back; and the same of ours and mitmproxy's together, since some of ours stand where mitmproxy's own
would be called. Loaded behind the addon; knows nothing of it but where its files are.
"""

from __future__ import annotations

import collections
import inspect
import json
import os
import sys
import threading
from types import FrameType
from typing import Any

import mitmproxy
from mitmproxy import http

TREE = os.path.join(os.environ["ROUTECODEX_TRACED"], "")
OURS = tuple(os.path.join(TREE, room, "") for room in ("routing", "addons"))
MITMPROXY = os.path.join(os.path.dirname(mitmproxy.__file__), "")
HOST = "trace.invalid"
_GOES_ON = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Within:
    """What the functions of some folders do."""

    def __init__(self, *folders: str) -> None:
        self._folders = folders
        self.calls: collections.Counter[str] = collections.Counter()
        self.functions: set[str] = set()
        self.crossings = 0
        self._at: dict[int, str] = {}
        """Thread → the file of these that runs in it."""
        self._begun: set[FrameType] = set()
        """Generators and coroutines: to go on with one is no call."""

    def hear(self, frame: FrameType, event: str) -> None:
        file = frame.f_code.co_filename
        if not file.startswith(self._folders):
            return
        if event == "call":
            self._pass_to(file)
            if frame not in self._begun:
                self.calls[file] += 1
                self.functions.add(f"{file}:{frame.f_code.co_qualname}")
            if frame.f_code.co_flags & _GOES_ON:
                self._begun.add(frame)
            return
        back = frame.f_back
        while back is not None and not back.f_code.co_filename.startswith(self._folders):
            back = back.f_back
        if back is not None:
            self._pass_to(back.f_code.co_filename)

    def _pass_to(self, file: str) -> None:
        thread = threading.get_ident()
        if self._at.get(thread, file) != file:
            self.crossings += 1
        self._at[thread] = file


class Trace:
    def __init__(self) -> None:
        self.on = False
        self.ours, self.all = Within(*OURS), Within(*OURS, MITMPROXY)
        self.parses = 0

    def profile(self, frame: FrameType, event: str, given: Any) -> None:
        if not self.on:
            return
        if event == "c_call":
            self.parses += getattr(given, "__name__", "") == "loads" and getattr(given, "__module__", "") == "orjson"
        elif event in ("call", "return"):
            self.ours.hear(frame, event)
            self.all.hear(frame, event)
            code = frame.f_code
            if event == "call" and code.co_name == "raw_decode" and code.co_filename.endswith("json/decoder.py"):
                self.parses += 1

    def counted(self) -> dict[str, Any]:
        ours, rooms = self.ours, collections.Counter[str]()
        for file, calls in ours.calls.items():
            rooms[os.path.dirname(file.removeprefix(TREE))] += calls
        return {
            "function calls": sum(ours.calls.values()),
            "functions": len(ours.functions),
            "JSON parses": self.parses,
            "crossings between files": ours.crossings,
            "files": len(ours.calls),
            "function calls, mitmproxy's among them,": sum(self.all.calls.values()),
            "crossings between files, mitmproxy's among them,": self.all.crossings,
            "calls by room": dict(rooms.most_common()),
        }

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        if flow.request.host == HOST:
            self.on = flow.request.path == "/on"
            told = {} if self.on else self.counted()
            flow.response = http.Response.make(200, json.dumps(told), {"content-type": "application/json"})


trace = Trace()
threading.setprofile(trace.profile)
sys.setprofile(trace.profile)
addons = [trace]
