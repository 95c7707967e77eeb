"""Small builders for router tests: configuration A of the cases, and calls, wishes and errors with everything usual filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from routecodex.routing.router.candidates import Wish
from routecodex.routing.router.classify import EXPLICIT, Classified
from routecodex.routing.router.features import Features
from routecodex.routing.router.registry import ECHO, ORIGIN, Key, Model, Pool, Provider, Registry
from routecodex.routing.sessions.state import EMPTY, SessionState
from routecodex.routing.values import Call, Dialect, Endpoint, Message, Named, Part, ProviderError, Role, Target


def provider(id: str, keys: Iterable[str], models: Iterable[str | Model], **changes: object) -> Provider:
    declared = [Model(model) if isinstance(model, str) else model for model in models]
    plain = Provider(
        id=id,
        dialect=Dialect.CHAT,
        endpoints={},
        keys=tuple(Key(alias, place) for place, alias in enumerate(keys, 1)),
        models={model.id: model for model in declared},
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def targets(found: Provider, model: str, *keys: str) -> tuple[Target, ...]:
    return tuple(Target(found.id, key, model) for key in keys or tuple(key.alias for key in found.keys))


GLM = provider("glm", ["key1"], [Model("glm-4.7", aliases=("glm-latest",))])
OPENAI = provider("openai", ["primary", "backup", "third"], ["gpt-4", "gpt-5.2"])
ANTHROPIC = provider("anthropic", ["primary"], ["claude-sonnet-4-5"])
ANTIGRAVITY = provider("antigravity", ["sonnetkey", "sonnetbackup", "geminikey"], ["claude-sonnet-4-5", "gemini-3-pro-high"])
BUILT_IN = {
    ORIGIN: Provider(ORIGIN, None, {}, (Key("client", 1),), {}, auth="client"),
    ECHO: Provider(ECHO, None, {}, (Key("none", 1),), {}, auth="none"),
}

GLM_47 = Target("glm", "key1", "glm-4.7")
GPT_4 = targets(OPENAI, "gpt-4")
CLAUDE = Target("anthropic", "primary", "claude-sonnet-4-5")
SONNET = targets(ANTIGRAVITY, "claude-sonnet-4-5", "sonnetkey", "sonnetbackup")
GEMINI = Target("antigravity", "geminikey", "gemini-3-pro-high")


def pool(*members: Target, id: str = "default:pool0", priority: int = 1, **changes: object) -> Pool:
    return replace(Pool(id, members, priority), **changes)  # type: ignore[arg-type]


def registry(routes: Mapping[str, Iterable[Pool]] | None = None, *more: Provider, **changes: object) -> Registry:
    """Configuration A. Without routes, `default` holds glm and openai, `thinking` and `vision` antigravity's models."""
    found = {**BUILT_IN, **{one.id: one for one in (GLM, OPENAI, ANTHROPIC, ANTIGRAVITY, *more)}}
    usual = {
        "default": [pool(GLM_47, *GPT_4)],
        "thinking": [pool(*SONNET, id="thinking:pool0")],
        "vision": [pool(GEMINI, id="vision:pool0")],
    }
    plain = Registry(found, {name: tuple(pools) for name, pools in (routes or usual).items()})
    return replace(plain, **changes)  # type: ignore[arg-type]


def wish(
    *routes: str,
    state: SessionState = EMPTY,
    force: Named | None = None,
    image: bool = False,
    tokens: int = 100,
    **changes: object,
) -> Wish:
    ordered = (*(route for route in routes if route != "default"), "default")
    features = Features(media=frozenset({"image"}) if image else frozenset(), tokens=tokens)
    plain = Wish(
        features,
        Classified(ordered, "because", frozenset(ordered) & EXPLICIT),
        state,
        force,
        client_model="claude-test",
        tokens=tokens,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def call(*messages: tuple[Role, list[Part]], tools: tuple[str, ...] = (), model: str = "claude-test") -> Call:
    view = [Message(role, parts, place) for place, (role, parts) in enumerate(messages)]
    return Call(Endpoint(Dialect.CHAT), b"{}", {}, model, False, view, tools=tools)


def error(status: int, **changes: object) -> ProviderError:
    return replace(ProviderError(status, f"error {status}", f"HTTP_{status}"), **changes)  # type: ignore[arg-type]
