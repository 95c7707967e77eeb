"""Which routes a call is a candidate for, and why.

1. The first rule that fits decides; the candidates are what it names, and always end with `default`.
2. Only what the newest message says counts, and a tool's work counts only in the hop that brings its result.
3. `CLASSES` is the one table of routes: how each is recognised, in which order, and what it is stronger than.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from typing import TypeAlias

from msgspec import Struct

from ..values import Kind
from .features import Features
from .registry import Classifier
from .tools import ToolCategory

DEFAULT = "default"


class Classified(Struct, frozen=True):
    routes: tuple[str, ...]
    """Candidates, best first, `default` last."""
    reason: str
    explicit: frozenset[str] = frozenset()
    """Those of them that the call asks for by what it is: they come before a session's sticky target."""


def classify(
    features: Features, classifier: Classifier, *, route_hint: str | None = None, configured: Collection[str] = ()
) -> Classified:
    """`route_hint` is the host's own wish (`x-routecodex-route`); it goes before everything, where there is such a route.

    `configured`: the routes that the configuration holds.
    """
    if route_hint == DEFAULT:
        return Classified((DEFAULT,), f"route hint {DEFAULT}")
    routes, reason, explicit = _first_that_fits(features, classifier, configured)
    if route_hint:
        known = route_hint in configured
        routes = (route_hint, *routes) if known else routes
        reason = f"route hint {route_hint}{'' if known else ', which is not configured'}; {reason}"
    ordered = dict.fromkeys((*(route for route in routes if route != DEFAULT), DEFAULT))
    return Classified(tuple(ordered), reason, frozenset(ordered) & (EXPLICIT | explicit))


def _first_that_fits(
    features: Features, classifier: Classifier, configured: Collection[str]
) -> tuple[tuple[str, ...], str, frozenset[str]]:
    for one in CLASSES:
        if not (reason := one.rule(features, classifier)):
            continue
        routes = one.routes(features)
        if one.if_configured:
            routes = tuple(route for route in routes if route in configured)
        if routes:
            return routes, reason, frozenset(routes) if one.explicit else frozenset()
    return (), "nothing special", frozenset()


def _matching(model: str, patterns: Iterable[str]) -> str | None:
    lowered = model.casefold()
    return next((pattern for pattern in patterns if fnmatchcase(lowered, pattern.casefold())), None)


def _keyword(text: str, keywords: tuple[str, ...]) -> str | None:
    lowered = text.casefold()
    return next((word for word in keywords if word and word.casefold() in lowered), None)


def _side(features: Features, _: Classifier) -> str | None:
    """What a tool asks for itself; its subagents are no such thing."""
    if features.kind is Kind.SUBAGENT:
        return None
    if features.kind is not Kind.MAIN:
        return f"a {features.kind} call"
    return "the call demands structured output" if features.structured else None


def _subagent(features: Features, _: Classifier) -> str | None:
    if features.kind is not Kind.SUBAGENT:
        return None
    return f"a subagent, {features.agent}" if features.agent else "a subagent"


def _plan(features: Features, _: Classifier) -> str | None:
    return "the tool is in its plan mode" if features.plan else None


def _background_model(features: Features, classifier: Classifier) -> str | None:
    pattern = _matching(features.model, classifier.background_models)
    return None if pattern is None else f"the client's model fits {pattern}"


def _image(features: Features, classifier: Classifier) -> str | None:
    if features.media and features.media <= {"image", "file"}:
        if features.image:
            return "an image in the newest message"
        if word := _keyword(features.text, classifier.vision_keywords):
            return f"a file in the newest message and the word {word!r}"
    return None


def _sound_or_video(features: Features, _: Classifier) -> str | None:
    return "sound or video in the newest message" if features.media & {"audio", "video"} else None


def _long(features: Features, classifier: Classifier) -> str | None:
    if features.tokens >= classifier.long_context_tokens:
        return f"about {features.tokens} tokens, {classifier.long_context_tokens} or more"
    return None


def _web(features: Features, _: Classifier) -> str | None:
    busy = features.tool_hop and features.last_tool not in (None, ToolCategory.WEB)
    return "the user asks for a web search" if not busy and wants_web(features.text) else None


def _thinking(features: Features, classifier: Classifier) -> str | None:
    if features.from_user:
        return "a new message of the user"
    if features.last_tool is ToolCategory.READ:
        return "the last tool read something"
    word = _keyword(features.text, classifier.thinking_keywords) if features.last_tool is None else None
    return f"the word {word!r}" if word else None


def _coding(features: Features, classifier: Classifier) -> str | None:
    if features.last_tool is ToolCategory.WRITE:
        return "the last tool wrote something"
    if features.last_tool is not ToolCategory.SEARCH and (word := _keyword(features.text, classifier.coding_keywords)):
        return f"the word {word!r}"
    return None


def _search(features: Features, _: Classifier) -> str | None:
    return "the last tool searched" if features.last_tool is ToolCategory.SEARCH else None


def _tools(features: Features, _: Classifier) -> str | None:
    if features.last_tool is not None:
        return "tools were used before"
    return "tools are declared" if features.tools else None


def _background(features: Features, classifier: Classifier) -> str | None:
    word = _keyword(features.text, classifier.background_keywords)
    return f"the word {word!r}" if word else None


Rule: TypeAlias = Callable[[Features, Classifier], str | None]


class RouteClass(Struct, frozen=True):
    """Calls of one kind, and where they go."""

    names: tuple[str, ...]
    """Routes, the best first."""
    rule: Rule
    """Why a call is of this class; None where it is not."""
    explicit: bool = False
    """Goes before a session's sticky target."""
    if_configured: bool = False
    """Where no such route is configured the next class decides; of the others `default` takes the place."""

    def routes(self, features: Features) -> tuple[str, ...]:
        """A subagent's own route, by its type, goes before that of all subagents."""
        own = (f"{SUBAGENT}.{features.agent}",) if self.names == (SUBAGENT,) and features.agent else ()
        return (*own, *self.names)


SUBAGENT = "subagent"
CLASSES = (
    RouteClass(("side",), _side, explicit=True, if_configured=True),
    RouteClass((SUBAGENT,), _subagent, explicit=True, if_configured=True),
    RouteClass(("plan",), _plan, if_configured=True),
    RouteClass(("background",), _background_model),
    RouteClass(("multimodal", "vision"), _sound_or_video, explicit=True),
    RouteClass(("vision", "multimodal"), _image, explicit=True),
    RouteClass(("longcontext",), _long, explicit=True),
    RouteClass(("web_search",), _web, explicit=True),
    RouteClass(("thinking",), _thinking),
    RouteClass(("coding",), _coding),
    RouteClass(("search",), _search),
    RouteClass(("tools",), _tools),
    RouteClass(("background",), _background),
)
"""In order: the first that fits decides."""

ROUTES = frozenset({DEFAULT, *(name for one in CLASSES for name in one.names)})
"""Every route that a call may be sorted into; `subagent.explore` and the like are further ones."""
EXPLICIT = frozenset(name for one in CLASSES if one.explicit for name in one.names)


_PROGRAM_PARTS = (
    r"(?!\W*(?:features?|tools?|functions?|modules?|code|class|components?|apis?|routes?|plugins?|tests?|pages?|boxe?s?)\b)"
)
_WEB_WISHES = re.compile(
    rf"""
      \bweb[\s-]?search\b{_PROGRAM_PARTS}
    | \binternet\s+search\b{_PROGRAM_PARTS}
    | \b(?:search|browse|google|check|look(?:\s+\w+){{0,2}}\s+up|look\s+for|find)\b[^.!?\n;]{{0,60}}?
      \b(?:the\s+web(?!\s*(?:server|site|page|app|socket|hook)|[\w-])|the\s+internet|online|(?:latest|recent|today'?s|current)\s+news)\b{_PROGRAM_PARTS}
    | \bgoogle\s+(?:it|that|this|for)\b
    | 联网(?:搜索|查|检索|搜) | 上网(?:搜|查|找|检索) | 网上(?:搜|查|找|检索) | 网络搜索 | 在线搜索
    | 谷歌一下 | 百度一下 | 搜索网络
    | (?:搜索|搜一下|查找|查询|查一下|检索|找一下)[^。！？\n；，,]{{0,20}}?(?:网上|互联网|网页|新闻|最新消息|最新资讯)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"(?:\b(?:don['’]?t|do\s+not|never|no|not|without|avoid|needn['’]?t|instead\s+of)\b[^.!?\n;,]{0,40}"
    r"|(?:不要|别|不用|无需|不必|不需要|禁止|勿|不能|不准)[^。！？\n；，,]{0,12})\Z",
    re.IGNORECASE,
)


_WEB_WORDS = ("web", "internet", "online", "news", "google", "网", "在线", "谷歌", "百度", "新闻", "最新")
"""Each of those wishes holds one; most texts hold none, which is told much sooner."""


def wants_web(text: str) -> bool:
    """The text asks for a web search, and does not ask for none."""
    lowered = text.lower()
    wishes = _WEB_WISHES.finditer(text) if any(word in lowered for word in _WEB_WORDS) else ()
    return any(_REFUSAL.search(text, max(0, wish.start() - 60), wish.start()) is None for wish in wishes)
