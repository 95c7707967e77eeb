"""What was used, added up: by day, month, session, key, model. The verbs and the names in JSON are those of
`ccusage TOOL …`, its form for one tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from .ledger import Ledger

By: TypeAlias = Literal["daily", "weekly", "monthly", "session", "key", "model", "provider", "client", "user"]
VERBS: tuple[By, ...] = get_args(By)

_LOCAL = "time/1000, 'unixepoch', 'localtime'"
_KEYS: Mapping[By, tuple[str, str]] = {
    "daily": ("date", f"date({_LOCAL})"),
    "weekly": ("week", f"date({_LOCAL}, 'weekday 0', '-6 days')"),
    "monthly": ("month", f"strftime('%Y-%m', {_LOCAL})"),
    "session": ("sessionId", "session"),
    "key": ("key", "provider || '.' || key"),
    "model": ("model", "provider || '.' || model"),
    "provider": ("provider", "provider"),
    "client": ("client", "client"),
    "user": ("user", "user"),
}
_SUMS = """
    count(*) as requests, sum(input is null) as unknown,
    coalesce(sum(input - cached - written), 0) as fresh, coalesce(sum(output), 0) as output,
    coalesce(sum(written), 0) as written, coalesce(sum(cached), 0) as cached, coalesce(sum(reasoning), 0) as reasoning,
    sum(dollars) as dollars, sum(dollars is null) as unpriced, max(time) as last
"""


def of_file(
    path: Path, by: By, *, since_ms: int = 0, until_ms: int = 1 << 62, session: str = "", user: str | None = None
) -> dict[str, Any]:
    """The same; nothing is made where nothing was written yet."""
    if not path.exists():
        return {"sessions" if by == "session" else by: [], "totals": _sums([])}
    ledger = Ledger(path, retention_days=1)
    try:
        return report(ledger, by, since_ms=since_ms, until_ms=until_ms, session=session, user=user)
    finally:
        ledger.close()


def report(
    ledger: Ledger, by: By, *, since_ms: int = 0, until_ms: int = 1 << 62, session: str = "", user: str | None = None
) -> dict[str, Any]:
    """`{by: [group, …], "totals": group}`; groups of time in their order, the others by what they cost. `user`: of them alone."""
    name, key = _KEYS[by]
    where, values = "where time >= ? and time < ?", list[object]([since_ms, until_ms])
    for column, value in (("session", session or None), ("user", user)):
        if value is not None:
            where, values = f"{where} and {column} = ?", [*values, value]
    models = ledger.read(f"select {key} as key, model, {_SUMS} from rounds {where} group by 1, 2 order by 1", values)
    groups: dict[str, list[Any]] = {}
    for row in models:
        groups.setdefault(row["key"], []).append(row)
    listed = [_group(name, key_, rows) for key_, rows in groups.items()]
    if by not in ("daily", "weekly", "monthly"):
        listed.sort(key=lambda one: (one["totalCost"] or 0, one["totalTokens"]), reverse=True)
    totals = _sums(row for rows in groups.values() for row in rows)
    return {"sessions" if by == "session" else by: listed, "totals": totals}


def _group(name: str, key: str, rows: list[Any]) -> dict[str, Any]:
    breakdowns = [{"modelName": row["model"], **_sums([row])} for row in rows]
    for one in breakdowns:
        one["cost"] = one.pop("totalCost")
    last = datetime.fromtimestamp(max(row["last"] for row in rows) / 1000, UTC)
    return {
        name: key,
        **_sums(rows),
        "lastActivity": last.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "modelsUsed": [row["model"] for row in rows],
        "modelBreakdowns": breakdowns,
    }


def _sums(rows: Iterable[Any]) -> dict[str, Any]:
    rows = list(rows)

    def total(field: str) -> int:
        return sum(row[field] or 0 for row in rows)

    tokens = total("fresh") + total("output") + total("written") + total("cached")
    priced = [row["dollars"] for row in rows if row["dollars"] is not None]
    return {
        "inputTokens": total("fresh"),
        "outputTokens": total("output"),
        "cacheCreationTokens": total("written"),
        "cacheReadTokens": total("cached"),
        "reasoningTokens": total("reasoning"),
        "totalTokens": tokens,
        "totalCost": round(sum(priced), 6) if priced else None,
        "requests": total("requests"),
        "unpricedRequests": total("unpriced"),
        "unknownRequests": total("unknown"),
    }
