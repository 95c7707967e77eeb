"""What the README says of the tools is what their modules say."""

from __future__ import annotations

from tests.clients_table import README, with_table


def test_the_readme_shows_what_the_modules_say() -> None:
    readme = README.read_text(encoding="utf-8")
    assert readme == with_table(readme), "python -m tests.clients_table writes it anew"
