"""The README's table of tools, made from their modules: `python -m tests.clients_table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from routecodex.routing.clients.client import Client
from routecodex.routing.clients.identify import ALL
from routecodex.routing.clients.unknown import UNKNOWN

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- clients -->", "<!-- /clients -->"


def table() -> str:
    return "\n".join(
        [
            "| Tool | tried | begins with | by hand, beside `HTTPS_PROXY` | with `run --base-url` | on later calls |",
            "|---|---|---|---|---|---|",
            *(_line(client) for client in ALL if client is not UNKNOWN),
        ]
    )


def _line(client: Client) -> str:
    begins = f"`routecodex run {client.programs[0]}`" if client.programs else "its program"
    trusts = " or ".join(f"`{name}`" for name in client.trusts)
    also = "".join(f", and `{name}`" for name in client.trusts_also)
    settings = "".join(f", and `{name}={value}`" for name, value in client.settings.items())
    bases = ", ".join(f"`{name.format('…')}`" for name in client.bases) or "no"
    loses = f"; it {client.loses} then" if client.loses else ""
    cells = (client.title, client.tried, begins, f"{trusts}{also}{settings}", f"{bases}{loses}", client.history)
    return f"| {' | '.join(cells)} |"


def with_table(readme: str) -> str:
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin
    assert end
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
