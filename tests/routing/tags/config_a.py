"""Config A of the behaviour cases, and a session in it."""

from __future__ import annotations

from collections.abc import Sequence

from routecodex.routing.router.registry import ECHO, ORIGIN, Key, Model, Provider, Registry
from routecodex.routing.sessions.state import EMPTY, SessionState
from routecodex.routing.tags.grammar import Tag, parse
from routecodex.routing.tags.obey import Means, Orders, obey
from routecodex.routing.tags.scan import find_tags
from routecodex.routing.tags.texts import TextRefused
from routecodex.routing.values import Dialect

NOW = 1_700_000_000_000


def provider(id: str, keys: Sequence[str], models: Sequence[Model | str], **fields: object) -> Provider:
    declared = [Model(model) if isinstance(model, str) else model for model in models]
    return Provider(
        id,
        Dialect.CHAT,
        {},
        tuple(Key(alias, index) for index, alias in enumerate(keys, 1)),
        {model.id: model for model in declared},
        **fields,  # type: ignore[arg-type]
    )


REGISTRY = Registry(
    {
        one.id: one
        for one in (
            provider("glm", ["key1"], ["glm-4.7"]),
            provider("openai", ["primary", "backup", "third"], [Model("gpt-4", aliases=("four",)), "gpt-5.2"]),
            provider("anthropic", ["primary"], ["claude-sonnet-4-5"]),
            provider("antigravity", ["sonnetkey", "sonnetbackup", "geminikey"], ["claude-sonnet-4-5", "gemini-3-pro-high"]),
            provider("odd", ["a", "2"], ["org/m:free@v1", "1", "a", "glm-4.7:passthrough"]),
            provider(ORIGIN, ["client"], []),
            provider(ECHO, ["none"], []),
        )
    },
    {},
)


def no_file(relative: str) -> str:
    raise TextRefused(relative, "is not there")


def tags(text: str) -> tuple[Tag, ...]:
    return tuple(tag for span in find_tags(text) for tag in parse(span.body))


def say(text: str, state: SessionState = EMPTY, **options: object) -> Orders:
    return obey(tags(text), state, means(**options))


def means(**options: object) -> Means:
    given: dict[str, object] = {"now_ms": NOW, "client_model": "gpt-5.2", "read_text": no_file, **options}
    return Means(**{"registry": REGISTRY, **given})  # type: ignore[arg-type]
