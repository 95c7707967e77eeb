"""What a terminal or a log is told of words from outside."""

import pytest

from routecodex.routing.visible import visible

HOSTILE = {
    "a colour": ("\x1b[31mred", "\\x1b[31mred"),
    "a title": ("\x1b]0;mine\x07", "\\x1b]0;mine\\x07"),
    "a line that is written over": ("real\rfake", "real\\x0dfake"),
    "another line": ("one\n12:00:00 two", "one\\x0a12:00:00 two"),
    "another line by its other names": ("a\x85b\u2028c\u2029d\x0be\x0cf", "a\\x85b\\u2028c\\u2029d\\x0be\\x0cf"),
    "eight bits": ("\x9b31m\x90q\x9c", "\\x9b31m\\x90q\\x9c"),
    "the direction": ("a\u202egnp.exe\u2066", "a\\u202egnp.exe\\u2066"),
    "nothing to be seen": ("\u200b\ufeff\x00\x7f\U000e0041", "\\u200b\\ufeff\\x00\\x7f\\U000e0041"),
    "half a letter": ("\ud800", "\\ud800"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_does_something_is_told_by_its_number(name: str) -> None:
    given, told = HOSTILE[name]
    assert visible(given) == told
    assert visible(f"before {given} behind") == f"before {told} behind"


def test_what_is_kept() -> None:
    for text in ("", "plain", "Grüße, 你好\u3000世界", "👩\u200d💻 ❤️", "non\xa0breaking", "क्\u200dष"):
        assert visible(text) == text
    assert visible("a\n\tb\r", keep="\n\t") == "a\n\tb\\x0d"
