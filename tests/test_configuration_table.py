"""What docs/configuration.md says of the configuration is what its models say."""

from __future__ import annotations

from tests.configuration_table import PAGE, with_tables


def test_the_page_shows_what_the_models_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page), "python -m tests.configuration_table writes it anew"
