"""Finding tags and taking them out: what is a tag, what stays, and what hostile text costs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.tags.scan import find_tags, in_code, strip
from tests.rig.work import assert_linear
from tests.sheet import seen

LONG_TEXT = "z" * 16_000

TAKEN_OUT = [
    pytest.param("<**clear**> continue", "continue", id="X02"),
    pytest.param("say hi <**x**> now", "say hi now", id="between-words"),
    pytest.param("<**glm.glm-4.7**>\n请帮我写一段代码", "请帮我写一段代码", id="line-of-its-own"),
    pytest.param("<**glm**>\r\nhi", "hi", id="windows-line"),
    pytest.param("<**!glm**> text <**#openai.1**>", "text", id="P18"),
    pytest.param("a<**x**>b", "ab", id="inside-a-word"),
    pytest.param("hi\n<**x**>", "hi", id="last-line"),
    pytest.param("hi\r\n<**x**>", "hi", id="last-windows-line"),
    pytest.param("a\n<**x**>\nb", "a\nb", id="line-between"),
    pytest.param("a\n\n<**x**>\n\nb", "a\n\n\nb", id="one-break-only"),
    pytest.param("a <**x**>\nb", "a \nb", id="lines-are-not-joined"),
    pytest.param("a  <**x**>  b", "a   b", id="one-space-only"),
    pytest.param("<**a**><**b**> <**c**>\n<**d**>\nhi", "hi", id="many-in-a-row"),
    pytest.param("hi <**a**> <**b**>", "hi", id="many-at-the-end"),
    pytest.param("<**!glm**> <**#openai.1**>\nhi", "hi", id="two-on-a-line"),
    pytest.param("x<**a**> <**b**>y", "x y", id="words-are-not-joined"),
    pytest.param("x <**a**>\n<**b**> y", "x \ny", id="end-and-start-of-line"),
    pytest.param("<**x**>", "", id="X03"),
    pytest.param("<**123**><****><** **>", "", id="P23"),
    pytest.param("<**foo:bar**>", "", id="P29"),
    pytest.param('"<**x**>"', '""', id="quotes-stay"),
    pytest.param("```\n<**x**>\n``` `<**y**>`", "```\n``` ``", id="P19"),
    pytest.param("<**!glm\n,openai**>ok", "ok", id="over-two-lines"),
    pytest.param("<**a*b**>ok <**<c**> <**>d**> <**e***>", "ok", id="stars-and-brackets-inside"),
    pytest.param("<**><**>ok<**a<**>", "ok", id="marks-that-overlap-and-close"),
    pytest.param('<**stopMessage:"say **> and <**!glm**> \\"x\\"",2**> hi', "hi", id="Q19"),
    pytest.param("<**stopMessage:<file://stopMessage/m.md>,3**> hi", "hi", id="Q20"),
    pytest.param('<**stopMessage:"never closed**> hi', "hi", id="Q07"),
    pytest.param('<**stopMessage:"a "quoted" b",3**> hi', "hi", id="quotes-without-backslash"),
    pytest.param('<** stopMessage : "a **> b" , 3 **> hi', "hi", id="spaces-around-the-text"),
    pytest.param(f'<**stopMessage:"{LONG_TEXT}",2**> hi', "hi", id="quoted-16KB"),
    pytest.param("<*<**a**>*!evil.model**>", "", id="F23"),
    pytest.param("x " + "<*" * 300 + "<**a**>" + "*a**>" * 300 + " y", "x y", id="nest-of-300"),
    pytest.param('<**stopMes<**a**>sage:"' + "x" * 600 + '"**>', "", id="quotes-put-together"),
    pytest.param("x <**broken <**!glm**> y", "x <**broken y", id="broken-then-a-tag"),
    pytest.param("é<**é**>é 日<**本**>語 \ud800<**x**>", "éé 日語 \ud800", id="not-ascii"),
    pytest.param("<**" + "a" * 506 + "**>", "", id="512-bytes"),
    pytest.param("a ＜＊＊！glm＊＊＞ b", "a b", id="full-width-marks"),
    pytest.param("＜**!glm**>\n＊ stays ＜ and ＞", "＊ stays ＜ and ＞", id="mixed-marks"),
    pytest.param("<**\x11a**> <**glm＊＊＞ b", "b", id="what-kept-them-from-being-marks-is-gone"),
    pytest.param("<**stopMessage：“a **> b”，3**> hi", "hi", id="curly-quotes"),
    pytest.param("<**stopMessage:'a **> b',3**> hi", "hi", id="single-quotes"),
    pytest.param("<**stopmessage «a **> b»**> hi", "hi", id="other-quotes-and-case"),
    pytest.param("<**" + "é" * 253 + "**>", "", id="512-bytes-not-ascii"),
]

STAYS = [
    pytest.param("x <**broken y", id="P24"),
    pytest.param("", id="empty"),
    pytest.param("a ** b > c < ** d", id="no-marks"),
    pytest.param("**> <**", id="wrong-order"),
    pytest.param("<**>", id="marks-that-overlap"),
    pytest.param("<***>", id="marks-that-share-a-star"),
    pytest.param("<**" + "a" * 507 + "**>", id="513-bytes"),
    pytest.param("<**" + "é" * 254 + "**>", id="514-bytes-not-ascii"),
    pytest.param('<**stopMessage:"' + "a" * 16_400 + '"**>', id="quoted-too-long"),
    pytest.param("<**a" + " b" * 600 + "**>", id="a-page-between"),
    pytest.param('<**Message:"' + "**" * 300 + '"**>', id="quotes-elsewhere-count-for-nothing"),
]


@pytest.mark.parametrize("text, expected", TAKEN_OUT)
def test_tags_are_taken_out(text: str, expected: str) -> None:
    assert strip(text) == expected
    assert strip(expected) == expected


@pytest.mark.parametrize("text", STAYS)
def test_what_is_no_tag_stays(text: str) -> None:
    assert strip(text) is text
    assert find_tags(text) == []


def test_the_place_and_body_of_tags() -> None:
    text = 'é <**a**> 日 <** b **> <**stopMessage:"**>"**> <**c <**d**> **>'
    found = find_tags(text)
    assert [tag.body for tag in found] == ["a", " b ", 'stopMessage:"**>"', "d"]
    assert [text[tag.start : tag.end] for tag in found] == [f"<**{tag.body}**>" for tag in found]
    assert find_tags(text, 2) == found[:2]


PIECES = st.sampled_from(
    [
        "<**",
        "**>",
        "<*",
        "*",
        ">",
        "<",
        '"',
        '\\"',
        "\\",
        "stopMessage:",
        "stopMes",
        "sage",
        ":",
        ",",
        " ",
        "\n",
        "\r\n",
        "a",
        "é",
        "glm",
    ]
)
HOSTILE = st.lists(PIECES | st.text(max_size=3) | st.just("x" * 520), max_size=60).map("".join)
PLAIN_TAG = re.compile(r"<\*\*(?:(?!<\*\*[^>])[\s\S]){0,100}?\*\*>")
"""Within which no other opens."""


@given(HOSTILE)
def test_nothing_is_left_that_is_a_tag(text: str) -> None:
    once = strip(text)
    assert find_tags(once) == []
    assert PLAIN_TAG.search(once) is None
    assert strip(once) is once


@given(HOSTILE)
def test_taking_out_only_takes(text: str) -> None:
    left = iter(text)
    assert all(char in left for char in strip(text))


@given(
    st.lists(st.text(alphabet="ab é\n`\"'", max_size=12), min_size=1, max_size=8),
    st.sampled_from(["x", "!glm", 'stopMessage:"a **> b",3']),
)
def test_text_outside_is_untouched(words: list[str], body: str) -> None:
    left = strip(f"<**{body}**>".join(words))
    assert re.sub(r"[ \n]", "", left) == re.sub(r"[ \n]", "", "".join(words))
    assert len(left) >= len("".join(words)) - (len(words) - 1) - 1


def test_500_hostile_placements() -> None:
    """However a tag is cut up by other tags, nothing of it comes through whole and no other word is lost."""
    rng = random.Random(23)
    for _ in range(500):
        text = "<**!evil.model**>"
        for _ in range(rng.randrange(1, 12)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(["<**a**>", "<**!glm**>", "<****>", "<**", "**>", "*", " ", "`"]) + text[at:]
        text = f"keep1 {text} keep2"
        left = strip(text)
        assert find_tags(left) == []
        assert strip(left) == left
        assert left.startswith("keep1")
        assert left.endswith("keep2")
    seen("S4", "500 tags cut up by others: 0 left whole, 0 other words lost")


MIB = 1 << 20
HOSTILE_TEXTS = {
    "opening": "<**",
    "opening-and-quote": '<**"',
    "nests": "<*<**a**>*!b**>",
    "tags": "<**a**>",
    "tags-and-words": "<**a**>x ",
    "closing": "a**>",
    "overlapping": "<**>",
    "unclosed": "<**" + "x" * 500,
    "stop-opening": '<**stopMessage:"',
    "stop-unclosed": '<**stopMessage:"' + "x" * 16_300,
    "stop-escapes": '<**stopMessage:"\\\\\\"',
    "stop-cut-up": '<**stopMes<**a**>sage:"' + "x" * 600 + '"**>',
    "lines": "\n<**x",
    "backticks": "`",
    "fences": "```\n",
    "wide-openings": "＜＊＊",
    "wide-tags": "＜**a＊＊>",
    "wide-marks": "＊",
    "curly-quotes": "<**stopMessage:“",
    "openings-before-tags": "<**" * 11_000 + "<**a**>",
    "words-before-tags": "<**x " * 2_000 + "<**a**>",
}


def _filled(unit: str, size: int) -> str:
    return "<**a**>" + (unit * (size // len(unit) + 1))[:size] + " **>"


def _deep(size: int) -> str:
    return "<*" * (size // 7) + "<**a**>" + "*a**>" * (size // 7)


@pytest.mark.parametrize("work", [pytest.param(strip, id="strip"), pytest.param(lambda text: find_tags(text, 1000), id="find")])
@pytest.mark.parametrize("unit", [pytest.param(unit, id=f"F14-{name}") for name, unit in HOSTILE_TEXTS.items()])
def test_hostile_text_costs_little(unit: str, work: Callable[[str], object]) -> None:
    assert_linear(work, lambda size: _filled(unit, size), MIB // 4)


def test_a_few_tags_behind_many_openings_cost_no_more_than_the_openings() -> None:
    """What a tag leaves behind is looked at; not each opening before it, for each tag."""
    texts = {1: "<**" * (MIB // 3), 4: HOSTILE_TEXTS["openings-before-tags"] * (MIB // 33_007)}
    assert_linear(strip, texts.__getitem__, 1)


def closed_at_last(size: int) -> str:
    """Each tag that goes makes another one."""
    return "<**" * (size // 3) + "**>" * 60


def test_tags_that_each_make_another_are_all_gone_in_linear_time() -> None:
    assert_linear(strip, closed_at_last, MIB // 4)
    assert find_tags(strip(closed_at_last(MIB))) == []
    assert strip("<**" * 40 + "x" + "**>" * 40) == ""


def test_a_nest_of_a_million_costs_little() -> None:
    assert_linear(strip, _deep, MIB // 4)
    left = strip(_deep(MIB))
    assert find_tags(left) == []
    assert strip(left) is left


CODE = [
    pytest.param("no code", [], id="none"),
    pytest.param("a `b` c", ["`b`"], id="inline"),
    pytest.param("a ``b ` c`` d", ["``b ` c``"], id="inline-two"),
    pytest.param("a ` b", [], id="unclosed-tick"),
    pytest.param("a ` b\n\nc ` d", [], id="ticks-of-two-paragraphs"),
    pytest.param("a\n```py\nb\n```\nc", ["```py\nb\n```"], id="fence"),
    pytest.param("~~~\nb\n```\n~~~ x\n~~~~\nc", ["~~~\nb\n```\n~~~ x\n~~~~"], id="tilde-fence"),
    pytest.param("a\n```\nb", ["```\nb"], id="unclosed-fence"),
    pytest.param("```\r\nb\r\n```\r\nc", ["```\r\nb\r\n```"], id="windows-fence"),
    pytest.param("```b``` c", ["```b```"], id="three-ticks-in-line"),
    pytest.param("`a\n```\nb\n```\n`", ["```\nb\n```"], id="fence-ends-a-paragraph"),
]


def _code(text: str) -> list[str]:
    """The stretches of the text that are code, letter by letter."""
    flags = in_code(text, range(len(text)))
    found = "".join(char if flag else "\0" for char, flag in zip(text, flags, strict=True))
    return [stretch for stretch in found.split("\0") if stretch]


@pytest.mark.parametrize("text, expected", CODE)
def test_code(text: str, expected: list[str]) -> None:
    assert [stretch.rstrip("\r") for stretch in _code(text)] == expected


def test_each_paragraph_has_its_own_inline_code() -> None:
    text = "`x` <**a**>\n\nuse `<**b**>` here\n\n<**c**> `d` `<**e**>`"
    places = [text.index(f"<**{name}**>") for name in "abce"]
    assert in_code(text, places) == [False, True, False, True]


@given(st.text(alphabet="`~ \na", max_size=80), st.integers(0, 80))
def test_a_place_is_code_whoever_else_is_asked_about(text: str, place: int) -> None:
    if place < len(text):
        assert in_code(text, [place]) == [in_code(text, range(len(text)))[place]]


def test_code_far_away_is_of_no_matter() -> None:
    """A backtick that stands a page before a tag, and one a page behind it, make no code of it."""
    page = "word " * 4000
    assert in_code(f"` {page}<**x**>{page} `", [2 + len(page)]) == [False]
    assert in_code(f"{page}`<**x**>`{page}", [1 + len(page)]) == [True]


def test_more_fences_than_anybody_writes_are_all_code() -> None:
    """In doubt text gives no orders."""
    text = "```\nx\n```\n\n" * 30_000 + "<**x**>"
    assert in_code(text, [len(text) - 7]) == [True]
    few = "```\nx\n```\n\n" * 300 + "<**x**>"
    assert in_code(few, [len(few) - 7]) == [False]


@pytest.mark.parametrize("unit", ["` ", "```\n", "`a ``b ```c ", " \n", "a\n\n", "` <**a**> ", "```\n<**a**>\n", "`"])
def test_looking_for_code_costs_little(unit: str) -> None:
    def look(text: str) -> None:
        in_code(text, [tag.start for tag in find_tags(text, 1000)])

    assert_linear(look, lambda size: f"<**a**>{(unit * size)[:size]}\n<**b**>", MIB // 4)
