"""What a client's module says: the same names in the same order for each, with the strict reading where it says nothing.

1. A module is a table. How it is applied stands once: `ids`, `kinds`, `shapes`, `typed`.
2. All phrases and user agents are in lower case; names of wrappers are as they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field

from ..values import Call, Headers, Kind

Place: TypeAlias = Callable[[Call, Headers], object]
"""Where an id may stand; what is no text is no id."""
Where: TypeAlias = Literal["system", "first", "last"]


class Signature(Struct, frozen=True):
    """`phrase` within the head of the instructions, or at the beginning of the first or last user message."""

    where: Where
    phrase: str
    kind: Kind


def says_nothing(call: Call, headers: Headers) -> Kind | None:
    """Most clients do not say what a call is for."""
    return None


def is_anything(call: Call) -> Kind | None:
    """Most clients' calls look alike."""
    return None


class Client(Struct, frozen=True, kw_only=True, eq=False):
    name: str
    title: str
    """As people call it."""
    tried: str = ""
    """The newest version whose calls were recorded."""

    # How it is recognised
    headers: tuple[str, ...] = ()
    """Headers that only it sends."""
    agents: tuple[str, ...] = ()
    """How its user agent begins."""
    introductions: tuple[str, ...] = ()
    """What its instructions say where the user agent is only a library's."""
    passes_for: tuple[str, ...] = ()
    """How the user agent of another tool begins that it sends as its own: then only its introductions tell."""

    # Its ids
    session: tuple[Place, ...] = ()
    prompt: tuple[Place, ...] = ()

    # The kinds of its calls
    declares: Callable[[Call, Headers], Kind | None] = says_nothing
    """What the client itself says; None where it says nothing."""
    signatures: tuple[Signature, ...] = ()
    """How its side calls begin, where it says nothing; made from recordings."""
    beside: Callable[[Call], Kind | None] = is_anything
    """What a call is that is no part of a conversation, by its shape."""

    agent: tuple[Place, ...] = ()
    """Where it tells the type of a subagent."""
    begins_to_plan: tuple[str, ...] = ()
    """How its own texts begin, behind their wrapper, while it only plans."""
    ends_to_plan: tuple[str, ...] = ()

    # Which text a person typed
    wrappers: tuple[str, ...] = ()
    """Around text of its own: hidden also where the wrapper is never closed, and in the middle of a line where it is."""
    repeats: tuple[str, ...] = ()
    """Around what the person typed elsewhere: gives no orders, and loses its tags."""
    retold: tuple[str, tuple[str, ...]] = ("", ())
    """How a line begins, within `repeats`, in which it retells the person's words; and how the line begins that ends them."""
    transcript: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """How lines begin, up to a colon, in which it retells a conversation: what the person said, and what the model did. Where
    there are both, all from the first of them on is repeated."""
    attached: tuple[tuple[str, str], ...] = ()
    """How a file begins that it puts beside the person's words in the same text, and what ends it, as regular expressions: a file
    may hold such an end, too, so the last one counts."""
    commands: tuple[str, ...] = ()
    """Those of `repeats` behind which the next part is the text of a command, which somebody wrote before."""
    typed_in: tuple[str, ...] = ()
    """Wrappers whose text a person typed."""
    sentences: tuple[str, ...] = ()
    """How whole parts begin that it wrote itself."""
    retellings: tuple[str, ...] = ()
    """… of these, those that may repeat what the person typed: they give no orders, and lose their tags."""
    with_next_part: tuple[str, ...] = ()
    """… those behind which the next part is not typed either."""
    with_all_behind: tuple[str, ...] = ()
    """… those behind which nothing of the message is."""
    printed: str = ""
    """How parts begin, as a regular expression, with what a command printed that the person ran."""
    contexts: tuple[str, ...] = ()
    """How texts begin in which it puts the person's words behind what it tells of an editor, files or pages…"""
    requests: tuple[str, ...] = ()
    """… under the last of these headings, as they are written, or in the wrapper that it opens; without one nothing was typed."""
    examples: frozenset[str] = frozenset()
    """Whole texts that it plays to the model as if a person had typed them."""
    before: str = ""
    """What it puts before the person's words, or its own, in the same part, as a regular expression."""
    behind: tuple[str, ...] = ()
    """How the text begins that it puts behind the person's words in the same part, as it is written."""
    joins: bool = False
    """It puts what got no answer and the newest message into one text, its own notes between: the last alone gives orders."""
    frame: tuple[str, str] | None = None
    """Parts between these hold files; the last end counts."""
    cuts: tuple[str, ...] = ()
    """How the text begins that stands for the answers of a history that it cut, where it keeps what the person typed."""
    typed_kinds: tuple[str, ...] = ("user.text", "unknown", "")
    """What the client calls a typed part, where it says what each part is."""
    quotes_arguments: bool = False
    """It puts arguments of the command line in quotes and escapes the quotes within."""

    # How it repeats the history
    history: str = ""
    """In a sentence."""

    # What it bears
    waits_s: float = 300.0
    """So long it waits for the head of an answer."""
    honours_retry_after: bool = False
    """It waits as long as the `Retry-After` of a 429 says, asks again, and shows in the end what is wrong."""

    whole_calls: bool = False
    """Its library reads each delta of a Chat stream as whole calls, as its maker sends them."""

    # What brings it to the proxy
    programs: tuple[str, ...] = ()
    """What is typed in the shell; for a library, what runs that which uses it."""
    first: tuple[str, ...] = ()
    """Arguments that it needs before its others."""
    trusts: tuple[str, ...] = ("NODE_EXTRA_CA_CERTS",)
    """Variables through which it trusts the proxy's certificate; the first is enough."""
    trusts_also: tuple[str, ...] = ()
    """… and through which a part of it does."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further variables that it needs."""
    bases: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Variables that lead it to another address, and where it goes without them: the host, and the path behind it. Where a tool
    heeds none, the arguments that do: they begin with `-`, and `{}` is the address."""
    loses: str = ""
    """What is different for it at another address than its provider's, in words."""
    avoid: tuple[str, ...] = ()
    """Variables that make it ask in a way that is not read."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables through which all of it trusts the proxy."""
        return (*self.trusts[:1], *self.trusts_also)


ANTHROPIC = {"ANTHROPIC_BASE_URL": ("https://api.anthropic.com", "")}
OPENAI = {"OPENAI_BASE_URL": ("https://api.openai.com", "/v1")}
GEMINI = {"GOOGLE_GEMINI_BASE_URL": ("https://generativelanguage.googleapis.com", "")}
BUNDLES = frozenset({"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
"""These replace the system's certificates; the others add to them."""
