"""Takes credentials out of what is shown, logged or passed on in an error."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .secret_names import is_secret_param, is_secret_text

MASK = "***"
SHORTEST = 6
"""A shorter secret would mask ordinary words."""
_LONG = 16

_SHAPES = re.compile(
    rb"sk-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|AQ\.[A-Za-z0-9_-]{30,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}"
    rb"|ya29\.[A-Za-z0-9._-]{20,}|pplx-[A-Za-z0-9_-]{20,}|nvapi-[A-Za-z0-9_-]{20,}|csk-[A-Za-z0-9_-]{20,}|glpat-[A-Za-z0-9_-]{20,}"
    rb"|hf_\w{20,}|r8_\w{20,}|fw_\w{20,}|tgp_v1_\w{20,}|gh[opsur]_\w{20,}|github_pat_\w{20,}"
    rb"|xox[a-z]-[A-Za-z0-9-]{20,}|rk_live_[A-Za-z0-9]{16,}|sk_live_[A-Za-z0-9]{16,}"
)
"""What the common providers' credentials look like, and those of what tools reach besides. Each begins with a letter that is
told, and none stands in a bracket: so one look at a letter passes over it, where each would be tried (four times as long)."""
_SIGNED = re.compile(rb"(?<![A-Za-z0-9_-])(?>([A-Za-z0-9_-]*?)eyJ)[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{5,}")
"""A signed token. Only the first `eyJ` of a word is tried: trying each of very many is quadratic work."""
_QUOTED = re.compile(
    r"(\bbytearray\()?(?:\bb|(?<=: ))(?:'(?:[^'\\]|\\.)*+(?:'|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\Z))(?(1)\)?)", re.DOTALL
)
"""Bytes as Python writes them, and a text behind a colon."""
_LOGIN = re.compile(r"(?:bearer|basic|token)\s+[A-Za-z0-9+/._~=-]{8,}", re.IGNORECASE)
_FIELD = re.compile(rb'"([A-Za-z][A-Za-z0-9_.-]{0,63})"(\s{0,8}:\s{0,8})"((?:[^"\\]|\\.)+)"')
_NAMES = re.compile(rb'"([A-Za-z][A-Za-z0-9_.-]{0,63})"(?=\s{0,8}:\s{0,8}")')
"""Of fields that hold texts."""
_PAIR = re.compile(rb"(?<![^&\s?;])([A-Za-z][A-Za-z0-9_.%-]{0,63})=([^&\s;]+)")


def looks_secret(text: str) -> bool:
    """The whole text is what a credential looks like, or the value of an `authorization` header."""
    raw = text.encode("utf-8", "surrogatepass")
    return _LOGIN.fullmatch(text) is not None or any(shape.fullmatch(raw) is not None for shape in (_SHAPES, _SIGNED))


def is_like_a_key(text: str) -> bool:
    """Of a known shape, or long and with digits among its letters: no word that an answer may well hold."""
    if looks_secret(text):
        return True
    return len(text) >= _LONG and not any(map(str.isspace, text)) and any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def unquoted(message: str) -> str:
    """What somebody else's words made fail, without those words: a credential may stand among them."""
    return _QUOTED.sub("…", message) if "'" in message or '"' in message else message


def mask_body(body: bytes) -> bytes:
    """A body that is only shown (JSON or a form), without the values of fields whose names are those of credentials."""

    def masked(found: re.Match[bytes]) -> bytes:
        if not is_secret_text(found[1].decode()):
            return found[0]
        return b'"%s"%s"%s"' % (found[1], found[2], MASK.encode())

    def masked_pair(found: re.Match[bytes]) -> bytes:
        return b"%s=%s" % (found[1], MASK.encode()) if is_secret_param(found[1].decode()) else found[0]

    shown = _without_shapes(body)
    if any(is_secret_text(name.decode()) for name in set(_NAMES.findall(shown))):
        shown = _FIELD.sub(masked, shown)
    return _PAIR.sub(masked_pair, shown) if b"=" in shown else shown


def _without_shapes(text: bytes) -> bytes:
    shown = _SHAPES.sub(MASK.encode(), text)
    return _SIGNED.sub(rb"\g<1>" + MASK.encode(), shown) if b"eyJ" in shown else shown


class Redactor:
    """Knows the configured secrets by heart and the usual shapes by sight."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True)
        pattern = b"|".join(re.escape(secret.encode("utf-8", "surrogatepass")) for secret in known)
        self._known = re.compile(pattern) if pattern else None

    def known(self, text: bytes) -> bytes:
        """Only the configured secrets: what else looks like one may be the answer's own text."""
        return self._known.sub(MASK.encode(), text) if self._known is not None else text

    def bytes(self, text: bytes) -> bytes:
        return _without_shapes(self.known(text))

    def text(self, text: str) -> str:
        if not text:
            return text
        return self.bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
