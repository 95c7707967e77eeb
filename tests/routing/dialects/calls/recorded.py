"""The recorded requests of real clients that ask for a model's answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.values import Endpoint

FOLDER = Path(__file__).parents[3] / "fixtures"


@dataclass(frozen=True)
class Recorded:
    name: str
    method: str
    path: str
    endpoint: Endpoint | None
    raw: bytes
    host: str = ""


def recorded() -> list[Recorded]:
    found = []
    for file in sorted(FOLDER.glob("*/[0-9][0-9]-*.json")):
        data = json.loads(file.read_text(encoding="utf-8"))
        if "method" not in data:
            continue  # a WebSocket frame
        name = f"{file.parent.name}/{file.stem}"
        # spaces, and text beyond ASCII as it is: as unlike our own writing as clients' bodies are
        raw = json.dumps(data.get("body"), indent=1, ensure_ascii=False).encode()
        found.append(Recorded(name, data["method"], data["path"], endpoint_of(data["method"], data["path"]), raw, data["host"]))
    return found


ALL = recorded()
CALLS = [(request, request.endpoint) for request in ALL if request.endpoint is not None]
