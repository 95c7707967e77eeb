"""A mitmproxy script that counts what our code does between `http://trace.invalid/on` and `/off`, which answers with the counts.

Calls of functions of ours, JSON parses (orjson's and the standard library's), and how often execution passes from one file of
ours to another, there and back. Loaded behind the addon; knows nothing of it but where its files are.
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

from mitmproxy import http

TREE = os.path.join(os.environ["ROUTECODEX_TRACED"], "")
OURS = tuple(os.path.join(TREE, room, "") for room in ("routing", "addons"))
HOST = "trace.invalid"
_GOES_ON = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Trace:
    def __init__(self) -> None:
        self.on = False
        self.calls: collections.Counter[str] = collections.Counter()
        self.functions: set[str] = set()
        self.crossings = 0
        self.parses = 0
        self._at: dict[int, str] = {}
        """Thread → the file of ours that runs in it."""
        self._begun: set[FrameType] = set()
        """Generators and coroutines: to go on with one is no call."""

    def profile(self, frame: FrameType, event: str, given: Any) -> None:
        if not self.on:
            return
        if event == "c_call":
            self.parses += getattr(given, "__name__", "") == "loads" and getattr(given, "__module__", "") == "orjson"
        elif event in ("call", "return"):
            file = frame.f_code.co_filename
            if file.startswith(OURS):
                self._ours(frame, event, file)
            elif event == "call" and frame.f_code.co_name == "raw_decode" and file.endswith("json/decoder.py"):
                self.parses += 1

    def _ours(self, frame: FrameType, event: str, file: str) -> None:
        if event == "call":
            self._pass_to(file)
            if frame not in self._begun:
                self.calls[file] += 1
                self.functions.add(f"{file}:{frame.f_code.co_qualname}")
            if frame.f_code.co_flags & _GOES_ON:
                self._begun.add(frame)
            return
        back = frame.f_back
        while back is not None and not back.f_code.co_filename.startswith(OURS):
            back = back.f_back
        if back is not None:
            self._pass_to(back.f_code.co_filename)

    def _pass_to(self, file: str) -> None:
        thread = threading.get_ident()
        if self._at.get(thread, file) != file:
            self.crossings += 1
        self._at[thread] = file

    def counted(self) -> dict[str, Any]:
        rooms: collections.Counter[str] = collections.Counter()
        for file, calls in self.calls.items():
            rooms[os.path.dirname(file.removeprefix(TREE))] += calls
        return {
            "function calls": sum(self.calls.values()),
            "functions": len(self.functions),
            "JSON parses": self.parses,
            "crossings between files": self.crossings,
            "files": len(self.calls),
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
