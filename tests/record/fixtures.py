"""Recordings as they lie in `tests/fixtures`: cut, without anybody's keys and places; and what two of them have in common.

1. Long strings are cut, lists of tools to two; what stands in messages keeps its end, since wrappers close there.
2. Keys are masked; the stage's folders become `/home/dev`, the machine's system one of no machine in particular.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.rig.received import Received

FOLDER = Path(__file__).parents[1] / "fixtures"
_LONG = 220
_LONG_IN_MESSAGES = 2200
_MASKED = re.compile(r"(?i)^(authorization|x-api-key|x-goog-api-key)$")
_SAID = ("messages", "input", "contents")


def as_recorded(received: Received, *, client: str, version: str, note: str, places: dict[str, str]) -> dict[str, Any]:
    headers = [[name, _masked(name, value)] for name, value in received.headers if name.lower() != "host"]
    text = received.body.decode("utf-8", "replace")
    head, path = json.dumps(headers), received.target
    for place, instead in places.items():
        text, head, path = (piece.replace(place, instead) for piece in (text, head, path))
    return {
        "client": client,
        "version": version,
        "note": note,
        "method": received.method,
        "host": (received.host or "").partition(":")[0],
        "path": re.sub(r"([?&]key=)[^&]+", r"\1***", path),
        "headers": json.loads(head),
        "body_size": len(received.body),
        "body": _cut_body(json.loads(text)),
    }


def _masked(name: str, value: str) -> str:
    return f"{value[:12]}***" if _MASKED.match(name) else value


def _cut_body(body: Any) -> Any:
    if isinstance(body, dict):
        return {
            key: _cut(value, _LONG_IN_MESSAGES)
            if key in _SAID
            else _cut_body(value)
            if key == "request"
            else _cut(value[:2] if key == "tools" and isinstance(value, list) else value, _LONG)
            for key, value in body.items()
        }
    return _cut(body, _LONG)


def _cut(value: Any, longest: int) -> Any:
    match value:
        case str() if len(value) > longest:
            keep_end = 200 if longest > _LONG else 0
            end = value[-keep_end:] if keep_end else ""
            start = value[:_LONG]
            return f"{start}…[trimmed {len(value) - len(start) - len(end)} chars]{end}"
        case dict():
            # what tools and instructions say is long and of no interest here
            inner = _LONG if value.get("role") in ("system", "developer") or "functionDeclarations" in value else longest
            return {
                key: _cut(child[:2] if key in ("tools", "functionDeclarations") and isinstance(child, list) else child, inner)
                for key, child in value.items()
            }
        case list():
            return [_cut(child, longest) for child in value]
    return value


def number_of(folder: Path, name: str) -> Path:
    """The recording of that name, or the next free number for it."""
    taken = sorted(folder.glob("*.json"))
    for path in taken:
        if path.stem.partition("-")[2] == name:
            return path
    last = max((int(path.stem.partition("-")[0]) for path in taken), default=0)
    return folder / f"{last + 1:02}-{name}.json"


def write(path: Path, recorded: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(recorded, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_index() -> None:
    """A line for each recording: file, method, host and path, size. Lines of others stay as they are."""
    index = FOLDER / "INDEX.tsv"
    recorded = {path.relative_to(FOLDER).as_posix(): json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*/*.json")}
    mine = {name: one for name, one in recorded.items() if "version" in one}
    lines = [line for line in index.read_text("utf-8").splitlines() if line.partition("\t")[0] in recorded.keys() - mine.keys()]
    lines += [
        "\t".join((name, one["method"], one["host"] + one["path"], str(one["body_size"]))) for name, one in sorted(mine.items())
    ]
    index.write_text("\n".join(lines) + "\n", encoding="utf-8")


_CHANGES = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27,}|\b(?:ses|msg|resp|toolu|call|prompt|at)_[\w-]{8,}|\d[\d.:TZ-]{3,}|\b[0-9a-f]{16,}\b"
)


def shape_of(recorded: dict[str, Any]) -> list[str]:
    """A line for each trait by which a client's calls are read: headers' names, fields, and how each text begins."""
    body = recorded["body"]
    lines = [f"{recorded['method']} {recorded['host']}{recorded['path']}"]
    lines += [f"header {name.lower()}" for name, _ in sorted(recorded["headers"])]
    lines += [f"field {key}" for key in sorted(body)]
    inner = body.get("request", body)
    for key in _SAID:
        for item in inner.get(key) or ():
            lines += _item_shape(item)
    return [_CHANGES.sub("#", line) for line in lines]


def _item_shape(item: Any) -> list[str]:
    if not isinstance(item, dict):
        return [f"item {str(item)[:80]!r}"]
    content = item.get("content", item.get("parts"))
    lines = [f"item {item.get('role', '')} {item.get('type', '')}".rstrip()]
    parts = content if isinstance(content, list) else [{"text": content}] if isinstance(content, str) else []
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else None
        lines.append(f"  text {text[:80]!r}" if isinstance(text, str) else f"  part {','.join(sorted(part))}")
    return lines
