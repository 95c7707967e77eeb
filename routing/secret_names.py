"""Names of credentials: of headers, of a query's parameters, of fields in a call's body.

A name is judged by its words (`cf-aig-authorization`, `apiKeyString`, `aws_session_token`). What is only shown is masked
sooner than not, for the wire has it back; what would be lost for good (a field of a body) is asked about more closely.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

from .short_cache import of_short

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[^A-Za-z0-9]+")
_STRONG = (
    r"(?:\w*(?:apikey|accesskey|secretkey|authkey|password|passwd|passphrase|passcode|passkey|secret|secrets|authorization|bearer|jwt)"
    r"|authz?|oauth2?|authentication|credentials?|cookies?|cookie2|byok|api-keys?|secret-keys?|access-keys?|private-keys?"
    r"|connection-?string|pat)\d{0,3}"
)
_WEAK = r"(?:\w*token|key)"
"""`tokens` are counted; a `token` is somebody's."""
_SIGNED = r"(?:signature|sig|hmac|assertion|dpop|bypass|code-verifier|otp|pwd|(?:access|mfa|verification|security)-code)"
"""What stands in for a credential: in an address that is signed, or in the steps of a login."""
_LOGIN = frozenset({"code", "auth-code", "device-code", "user-code", "ticket", "pass", "saml-response"})


def _any_of(*kinds: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|-)(?:{'|'.join(kinds)})(?=-|$)")


_SHOWN = _any_of(_STRONG, _WEAK, _SIGNED)
_FIELD = _any_of(_STRONG)
_FIELD_OF_TEXT = re.compile(r"(?:^|-)(?:\w*token(?:-(?:string|value))?|key|key-(?:string|material))$")
_HEADERS = re.compile(r"(?:^|-)headers$")
_NO_HEADER = re.compile(r"^(?:sec-websocket-key\d?|(?:x-)?idempotency-key|surrogate-key)$")
_ALSO_HEADERS = frozenset({"sec-websocket-protocol"})
"""Browsers can set no other header of a WebSocket, so keys stand there."""
_NO_FIELD = re.compile(
    r"(?:^|-)(?:(?:cache|sort|partition|group|primary|foreign|routing|idempotency|dedupe?|metadata|field)-key"
    r"|(?:eos|bos|pad|unk|sep|stop|end|start|mask|page|max|min|first|last|next|new|special|of-\w+)-token)$"
)
"""Names of other things, which are texts as well."""


@of_short(2048)
def _as_words(name: str) -> str:
    return _BETWEEN.sub("-", _HUMP.sub("-", name[:200])).strip("-").lower()


@of_short(2048)
def is_secret_header(name: str) -> bool:
    lower = name.lower()
    return lower in _ALSO_HEADERS or (_SHOWN.search(_as_words(lower)) is not None and _NO_HEADER.match(lower) is None)


def is_secret_param(name: str) -> bool:
    """As it stands in an address: what is percent-encoded means the same, however often it is."""
    plain = name[:400]
    while "%" in plain and (once := unquote_plus(plain)) != plain:
        plain = once
    words = _as_words(plain)
    return words in _LOGIN or _SHOWN.search(words) is not None


@of_short(4096)
def is_secret_field(name: str) -> bool:
    """Whatever it holds is a credential, or a bundle of them."""
    words = _as_words(name)
    return (_FIELD.search(words) is not None or _HEADERS.search(words) is not None) and _NO_FIELD.search(words) is None


@of_short(4096)
def is_secret_text(name: str) -> bool:
    """A text in this field is a credential; an object, a number or a switch is none."""
    words = _as_words(name)
    return is_secret_field(name) or (_FIELD_OF_TEXT.search(words) is not None and _NO_FIELD.search(words) is None)
