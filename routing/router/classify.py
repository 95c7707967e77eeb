"""Which routes a call is a candidate for, and why.

1. The first rule that fits decides; the candidates are what it names, and always end with `default`.
2. Only what the newest message says counts, and a tool's work counts only in the hop that brings its result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from .features import Features
from .registry import Classifier
from .tools import ToolCategory

DEFAULT = "default"

EXPLICIT = frozenset({"vision", "multimodal", "web_search", "longcontext"})
"""Routes that a call asks for by what it is: they come before a session's sticky target."""


@dataclass(frozen=True, slots=True)
class Classified:
    routes: tuple[str, ...]
    """Candidates, best first, `default` last."""
    reason: str


def classify(features: Features, classifier: Classifier, client_model: str, *, route_hint: str | None = None) -> Classified:
    """`route_hint` is the host's own wish (`x-routecodex-route`); it goes before everything."""
    routes, reason = _first_rule(features, classifier, client_model)
    if route_hint:
        routes, reason = (route_hint, *routes), f"route hint {route_hint}; {reason}"
    ordered = dict.fromkeys((*(route for route in routes if route != DEFAULT), DEFAULT))
    return Classified(tuple(ordered), reason)


def _first_rule(features: Features, classifier: Classifier, client_model: str) -> tuple[tuple[str, ...], str]:
    pattern = _matching(client_model, classifier.background_models)
    if pattern is not None:
        return ("background",), f"the client's model fits {pattern}"
    for routes, rule in _RULES:
        if reason := rule(features, classifier):
            return routes, reason
    return (), "nothing special"


def _matching(model: str, patterns: Iterable[str]) -> str | None:
    lowered = model.casefold()
    return next((pattern for pattern in patterns if fnmatchcase(lowered, pattern.casefold())), None)


def _keyword(text: str, keywords: tuple[str, ...]) -> str | None:
    lowered = text.casefold()
    return next((word for word in keywords if word and word.casefold() in lowered), None)


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

_RULES: tuple[tuple[tuple[str, ...], Rule], ...] = (
    (("multimodal", "vision"), _sound_or_video),
    (("vision", "multimodal"), _image),
    (("longcontext",), _long),
    (("web_search",), _web),
    (("thinking",), _thinking),
    (("coding",), _coding),
    (("search",), _search),
    (("tools",), _tools),
    (("background",), _background),
)


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


def wants_web(text: str) -> bool:
    """The text asks for a web search, and does not ask for none."""
    return any(_REFUSAL.search(text, max(0, wish.start() - 60), wish.start()) is None for wish in _WEB_WISHES.finditer(text))
