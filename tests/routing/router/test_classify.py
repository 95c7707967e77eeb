"""Which routes a call is a candidate for."""

from __future__ import annotations

from time import perf_counter

import pytest

from routecodex.routing.router.classify import classify, wants_web
from routecodex.routing.router.features import Features
from routecodex.routing.router.registry import Classifier
from routecodex.routing.router.tools import ToolCategory

RULES = Classifier(
    thinking_keywords=("think step",),
    coding_keywords=("refactor",),
    background_keywords=("上下文",),
    vision_keywords=("diagram",),
    background_models=("*haiku*", "GPT-?-mini"),
)


def hop(last: ToolCategory | None, **changes: object) -> Features:
    return Features(role="tool", tool_hop=True, last_tool=last, used_tools=last is not None, **changes)  # type: ignore[arg-type]


def user(**changes: object) -> Features:
    return Features(**changes)  # type: ignore[arg-type]


def quiet(**changes: object) -> Features:
    """The newest message is the model's own."""
    return Features(role="assistant", **changes)  # type: ignore[arg-type]


IMAGE, VIDEO, FILE = frozenset({"image"}), frozenset({"image", "video"}), frozenset({"file"})


@pytest.mark.parametrize(
    "features, routes",
    [
        pytest.param(user(media=IMAGE, tokens=200_000), ("vision", "multimodal", "default"), id="image"),
        pytest.param(user(media=VIDEO), ("multimodal", "vision", "default"), id="video"),
        pytest.param(user(media=FILE), ("thinking", "default"), id="file"),
        pytest.param(user(media=FILE, text="the diagram"), ("vision", "multimodal", "default"), id="file to look at"),
        pytest.param(user(tokens=180_000), ("longcontext", "default"), id="V10 at the threshold"),
        pytest.param(user(tokens=179_999), ("thinking", "default"), id="V10 below it"),
        pytest.param(hop(ToolCategory.WRITE, tokens=180_000), ("longcontext", "default"), id="V10 in a hop"),
        pytest.param(user(text="search the web for cats"), ("web_search", "default"), id="web wish"),
        pytest.param(
            user(text="search the web for cats", last_tool=ToolCategory.WRITE),
            ("web_search", "default"),
            id="web wish after old work",
        ),
        pytest.param(hop(ToolCategory.READ, text="search the web"), ("thinking", "default"), id="web wish, now reading"),
        pytest.param(hop(ToolCategory.WEB, text="search the web"), ("web_search", "default"), id="web wish, searching the web"),
        pytest.param(user(text="hi", tools=("web_search",)), ("thinking", "default"), id="V12 a declared tool alone"),
        pytest.param(user(text="hi"), ("thinking", "default"), id="any user turn"),
        pytest.param(hop(ToolCategory.READ), ("thinking", "default"), id="read"),
        pytest.param(hop(ToolCategory.WRITE), ("coding", "default"), id="V15 write"),
        pytest.param(hop(ToolCategory.WRITE, text="think step by step"), ("coding", "default"), id="V15 write, keyword"),
        pytest.param(hop(ToolCategory.SEARCH, text="refactor"), ("search", "default"), id="search"),
        pytest.param(hop(ToolCategory.OTHER), ("tools", "default"), id="other"),
        pytest.param(hop(ToolCategory.OTHER, text="refactor it"), ("coding", "default"), id="other, keyword"),
        pytest.param(hop(ToolCategory.WEB), ("tools", "default"), id="web without a wish"),
        pytest.param(quiet(text="think step by step"), ("thinking", "default"), id="thinking keyword"),
        pytest.param(quiet(tools=("Read",)), ("tools", "default"), id="tools declared"),
        pytest.param(quiet(text="压缩上下文"), ("background", "default"), id="background keyword"),
        pytest.param(quiet(), ("default",), id="V17 nothing declared"),
        pytest.param(user(text="x" * 2000), ("thinking", "default"), id="V10 long text, few tokens"),
    ],
)
def test_routes(features: Features, routes: tuple[str, ...]) -> None:
    found = classify(features, RULES, "claude-opus")
    assert found.routes == routes
    assert found.reason


@pytest.mark.parametrize(
    "model, background",
    [
        ("claude-haiku-4-5", True),
        ("CLAUDE-HAIKU", True),
        ("gpt-5-mini", True),
        ("gpt-55-mini", False),
        ("opus", False),
        ("", False),
    ],
)
def test_background_models_come_first(model: str, background: bool) -> None:
    found = classify(user(media=IMAGE, tokens=10**9), RULES, model)
    assert found.routes == (("background", "default") if background else ("vision", "multimodal", "default"))


@pytest.mark.parametrize(
    "hint, routes",
    [
        ("coding", ("coding", "thinking", "default")),
        ("thinking", ("thinking", "default")),
        ("mine", ("mine", "thinking", "default")),
        ("default", ("thinking", "default")),
        ("", ("thinking", "default")),
        (None, ("thinking", "default")),
    ],
)
def test_route_hint_goes_first(hint: str | None, routes: tuple[str, ...]) -> None:
    assert classify(user(), RULES, "x", route_hint=hint).routes == routes


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("please search the web for cats", True),
        ("do a web search", True),
        ("use web-search please", True),
        ("look it up online", True),
        ("google it", True),
        ("find the latest news on X", True),
        ("No, search the web for it", True),
        ("联网搜索一下", True),
        ("请上网查一下", True),
        ("搜索今天的新闻", True),
        ("don't do a web search", False),
        ("answer without searching the web", False),
        ("do not look this up online", False),
        ("不要联网搜索", False),
        ("别上网查", False),
        ("无需联网查资料", False),
        ("implement the web search feature", False),
        ("fix the web server", False),
        ("find the web-app bug", False),
        ("search the code", False),
        ("", False),
    ],
)
def test_wish_for_a_web_search(text: str, wanted: bool) -> None:
    assert wants_web(text) is wanted


@pytest.mark.parametrize("text", ["search " * 300, "don't " * 400, "google the " * 200, "搜索" * 1000, "look up " * 250])
def test_hostile_text_is_read_quickly(text: str) -> None:
    started = perf_counter()
    wants_web(text[:2000])
    assert perf_counter() - started < 0.2
