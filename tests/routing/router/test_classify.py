"""Which routes a call is a candidate for."""

from __future__ import annotations

import pytest

from routecodex.routing.router.classify import classify, wants_web
from routecodex.routing.router.features import Features
from routecodex.routing.router.registry import Classifier
from routecodex.routing.router.tools import ToolCategory
from routecodex.routing.values import Kind
from tests.rig.work import assert_linear

RULES = Classifier(
    thinking_keywords=("think step",),
    coding_keywords=("refactor",),
    background_keywords=("上下文",),
    vision_keywords=("diagram",),
    background_models=("*haiku*", "GPT-?-mini"),
)


def hop(last: ToolCategory | None, **changes: object) -> Features:
    return Features(role="tool", tool_hop=True, last_tool=last, **changes)  # type: ignore[arg-type]


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
    found = classify(features, RULES)
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
    found = classify(user(media=IMAGE, tokens=10**9, model=model), RULES)
    assert found.routes == (("background", "default") if background else ("vision", "multimodal", "default"))


@pytest.mark.parametrize(
    "hint, routes",
    [
        ("coding", ("coding", "thinking", "default")),
        ("thinking", ("thinking", "default")),
        ("mine", ("mine", "thinking", "default")),
        ("nobody's", ("thinking", "default")),
        ("default", ("default",)),
        ("", ("thinking", "default")),
        (None, ("thinking", "default")),
    ],
)
def test_route_hint_goes_first(hint: str | None, routes: tuple[str, ...]) -> None:
    assert classify(user(), RULES, route_hint=hint, configured=("mine", "coding", "thinking")).routes == routes


EXPLORER = Features(kind=Kind.SUBAGENT, agent="explore", media=IMAGE, structured=True)
PLANNING = Features(plan=True, model="haiku")
OWN = "subagent.explore"


@pytest.mark.parametrize(
    "features, configured, routes",
    [
        pytest.param(Features(kind=Kind.TITLE), ("side",), ("side", "default"), id="a title"),
        pytest.param(Features(kind=Kind.ROUTER, model="haiku"), ("side",), ("side", "default"), id="before background"),
        pytest.param(Features(structured=True), ("side",), ("side", "default"), id="structured output"),
        pytest.param(Features(kind=Kind.TITLE), (), ("thinking", "default"), id="no such route"),
        pytest.param(Features(kind=Kind.TITLE), ("subagent", "plan"), ("thinking", "default"), id="a title is no subagent"),
        pytest.param(EXPLORER, ("side",), ("vision", "multimodal", "default"), id="a subagent is never side"),
        pytest.param(EXPLORER, ("side", "subagent"), ("subagent", "default"), id="a subagent"),
        pytest.param(EXPLORER, ("subagent.explore",), ("subagent.explore", "default"), id="by its type"),
        pytest.param(
            EXPLORER, ("subagent", "subagent.explore"), ("subagent.explore", "subagent", "default"), id="its type first"
        ),
        pytest.param(EXPLORER, ("subagent.plan",), ("vision", "multimodal", "default"), id="of another type"),
        pytest.param(
            Features(plan=True, model="haiku"), ("plan", "background"), ("plan", "default"), id="plan before background"
        ),
        pytest.param(Features(plan=True), ("background",), ("thinking", "default"), id="plan is not configured"),
    ],
)
def test_what_a_tool_says_of_its_call(features: Features, configured: tuple[str, ...], routes: tuple[str, ...]) -> None:
    assert classify(features, RULES, configured=configured).routes == routes


@pytest.mark.parametrize(
    "features, explicit",
    [
        (Features(kind=Kind.TITLE), {"side"}),
        (EXPLORER, {"subagent.explore", "subagent"}),
        (Features(media=IMAGE), {"vision", "multimodal"}),
        (Features(plan=True), set()),
        (Features(), set()),
    ],
)
def test_what_goes_before_a_sticky_target(features: Features, explicit: set[str]) -> None:
    configured = ("side", "subagent", "subagent.explore", "plan", "thinking")
    if features.kind is Kind.MAIN:
        configured = configured[-2:]
    assert classify(features, RULES, configured=configured).explicit == explicit


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


@pytest.mark.parametrize("word", ["search ", "don't ", "google the ", "搜索", "look up "])
def test_hostile_text_is_linear_work(word: str) -> None:
    assert_linear(wants_web, lambda size: (word * size)[:size], 20_000)
