"""The names that the configuration holds, as tags may mean them: what was meant by a name that is not quite one of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from msgspec import Struct

from ..errors import nearest
from ..router.registry import ECHO, ORIGIN, Registry
from .words import STOP_MESSAGE, WORDS, folded, near

_MOST = 3
_PIECES = re.compile(r"[^A-Za-z0-9_-]+")
_BEGINNINGS = re.compile(r"(?:^|(?<=[:=,;!#|&+>*\"'`(\[]))[\w-]+", re.ASCII)
_BUILT_IN = frozenset({ORIGIN, ECHO})
_SPECIAL = re.compile(r"[A-Za-z].*[0-9]|[0-9].*[A-Za-z]")
_HEAD_ENDS = re.compile(r"[.\[,:]")
_OURS = frozenset((*WORDS, "clock:clear"))
_LONGEST_TORN, _MOST_TORN = 60, 3
_NAME = re.compile(r"[\w-]+(?=[.\[,]|\Z)")
_ENDS = re.compile(r"^[^\w]+|[^\w\]]+$")


class Vocabulary(Struct, frozen=True, dict=True):
    registry: Registry

    def mentions(self, body: str) -> bool:
        """Whether a word of it is a model's name, or begins with a provider's, in whatever case. What a person may well say
        in words of its own (`echo`, `origin`) counts only where nothing else is said."""
        plain = folded(body).lower().strip()
        words = plain.split()
        if any(_ENDS.sub("", word) in self._models for word in words):
            return True
        names = {found[0].strip("-") for word in words for found in _BEGINNINGS.finditer(word)} & self._providers.keys()
        return bool(names - (_BUILT_IN if len(words) > 1 else frozenset()))

    def mixes(self, body: str) -> bool:
        """Whether it begins with a provider's name in which a letter is of another script, or accented."""
        name = _NAME.match(folded(body).lower().lstrip(" !#@"))
        return name is not None and not name[0].isascii() and any(near(name[0], provider) for provider in self._providers)

    def is_torn(self, body: str) -> bool:
        """Whether white space or a sign slipped into a word of ours, or into the provider's name with which it begins."""
        plain = folded(body).lower().strip(" !#@*")
        joined = "".join(plain.split())
        if len(plain) > _LONGEST_TORN or len(plain.split()) > _MOST_TORN:
            return False
        if joined != plain and joined in _OURS:
            return True
        head = _HEAD_ENDS.split(joined, maxsplit=1)[0]
        has_space = not plain.startswith(head) and head in self._providers
        return has_space or (not head.isidentifier() and _letters(head) in self._providers)

    def begins(self, body: str) -> str:
        """The provider with whose name it begins, in whatever case; empty where it begins with none."""
        return self._providers.get(_PIECES.split(folded(body).lower().lstrip(" !#@"))[0].strip("-"), "")

    def meant(self, body: str) -> tuple[str, ...]:
        """What may have been meant, as it is written in a tag; the likeliest first."""
        name = folded(body).strip().lstrip("!#@ ")
        exact = self._by_letters.get(_letters(name))
        if exact:
            return tuple(exact[:_MOST])
        provider = self.begins(name)
        if provider and _letters(name) != _letters(provider):
            of_it = [] if self.registry.providers[provider].shut else list(self.registry.providers[provider].names)
            return nearest(name, of_it) or (provider,)
        words = () if "." in name or "[" in name else (*WORDS, STOP_MESSAGE)
        return nearest(name, [*self.registry.listed, *words])

    @functools.cached_property
    def _providers(self) -> dict[str, str]:
        return {name.lower(): name for name in self.registry.providers}

    @functools.cached_property
    def _models(self) -> frozenset[str]:
        """With letters and digits: a model that is named like a plain word is only known behind its provider."""
        return frozenset(model.lower() for _, model in self._names() if _SPECIAL.search(model))

    @functools.cached_property
    def _by_letters(self) -> dict[str, list[str]]:
        """Names by their letters and digits alone; a model by its own name, and by its provider's with it."""
        found: dict[str, list[str]] = {}
        for word in WORDS:
            found.setdefault(_letters(word), []).append(word)
        for provider in self.registry.listed:
            found.setdefault(_letters(provider), []).append(provider)
        for provider, model in self._names():
            for letters in dict.fromkeys((_letters(model), _letters(provider + model))):
                found.setdefault(letters, []).append(f"{provider}.{model}")
        return found

    def _names(self) -> Iterator[tuple[str, str]]:
        for provider in self.registry.listed.values():
            for model in provider.models.values():
                yield from ((provider.id, name) for name in (model.id, *model.aliases))


def _letters(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())
