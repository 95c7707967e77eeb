"""How the values of a configuration of another spelling are written."""

from __future__ import annotations

import pytest

from routecodex.routing.config.rewrite import rewritten


@pytest.mark.parametrize(
    "value, written",
    [
        ("glm-4.7", "glm-4.7"),
        ("https://glm.example/v1", "https://glm.example/v1"),
        ("has a space", '"has a space"'),
        ("ends:", '"ends:"'),
        ("*star", '"*star"'),
        ("${KEY}", '"${KEY}"'),
        ("off", '"off"'),
        ("1e3", '"1e3"'),
        ("007", "'007'"),
        ("1234567890123456", '"1234567890123456"'),
    ],
)
def test_quotes_stand_where_a_reader_could_see_something_else(value: str, written: str) -> None:
    assert f"note: {written}\n" in rewritten(f'{{"note": "{value}"}}', "config.json")
