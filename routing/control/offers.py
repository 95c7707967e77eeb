"""Which models a provider offers: how it is asked, and what its answer says."""

from __future__ import annotations

from msgspec import Struct

from .. import headers
from ..dialects.endpoints import models_path
from ..dialects.fields import list_of, read_object, text_of
from ..router.registry import Key, Provider
from ..values import Dialect


class Asked(Struct, frozen=True):
    url: str
    headers: tuple[tuple[str, str], ...]


class Offer(Struct, frozen=True):
    """A provider's models beside those that the configuration declares."""

    declared: tuple[str, ...]
    offered: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Declared, but not offered."""
        return tuple(name for name in self.declared if name not in self.offered)

    @property
    def further(self) -> tuple[str, ...]:
        return tuple(name for name in self.offered if name not in self.declared)


def question(provider: Provider, key: Key) -> Asked | None:
    """None where the provider has no address."""
    dialect = provider.dialect
    url = provider.endpoints.get(dialect) if dialect is not None else None
    if dialect is None or url is None:
        return None
    usual = 443 if url.scheme == "https" else 80
    host = f"[{url.host}]" if ":" in url.host else url.host
    place = host if url.port == usual else f"{host}:{url.port}"
    built = headers.build({}, dialect, key.value, provider.headers, foreign=True, stream=False)
    return Asked(f"{url.scheme}://{place}{models_path(dialect, url.path)}", (*built.shown, *built.secret))


def read_offer(dialect: Dialect, raw: bytes) -> tuple[str, ...] | None:
    """The names of the models; None where that is no list of models."""
    document = read_object(raw)
    if document is None:
        return None
    field = "models" if dialect is Dialect.GEMINI else "data"
    if not isinstance(document.get(field), list):
        return None
    entries = [entry for entry in list_of(document[field]) if isinstance(entry, dict)]
    name = "name" if dialect is Dialect.GEMINI else "id"
    names = [text_of(entry.get(name)).removeprefix("models/") for entry in entries]
    return tuple(dict.fromkeys(name for name in names if name))
