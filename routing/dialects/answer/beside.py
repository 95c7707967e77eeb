"""What stands beside what a model says, in no dialect's form: where a text has it from, and what tools of the provider's did.

1. A reader for clients of other dialects says it (`Cited`), beside whatever is native; a writer makes of it what its dialect has.
2. Places are counted in characters of the text that the client is shown: the join moves them there.
3. What a writer has no place for it names: `LeftOut`, which stands in the flow's comment.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ...values import JsonObject
from ..fields import object_of, text_of
from ..translation.neutral import Feature, LeftOut, Media

_KINDS = {"image": Feature.ASSISTANT_MEDIA, "audio": Feature.AUDIO, "video": Feature.VIDEO, "file": Feature.FILES}


class Citation(Struct, frozen=True):
    """One source."""

    url: str
    """Empty for what has no address: a document of the call's own."""
    title: str = ""
    quoted: str = ""
    """What the source says."""
    start: int = -1
    end: int = -1
    """Which characters of its block's text rest on it. -1: all that it says so far."""


class Trace(Struct):
    """One use of a tool that the provider ran. Known as a whole when its block is over."""

    tool: Literal["search", "fetch", "code", "mcp"]
    given: JsonObject
    """Asked by the model: `query`, `url`, `code`, or the arguments of an MCP server's tool."""
    name: str = ""
    server: str = ""
    """Of an MCP server's tool."""
    found: list[Citation] = field(default_factory=list)
    """By a search, or the page that was fetched."""
    output: str = ""
    """Of code or an MCP server's tool."""
    failed: bool = False


def name_media(left: LeftOut, media: Media) -> None:
    """What an answer can only be told in a word."""
    left.add(_KINDS[media.kind], "told as a word")


def name_tool(left: LeftOut, name: str, native: JsonObject | None) -> None:
    """What a tool of the provider's did, where it has no place at all."""
    left.add(Feature.SERVER_RESULTS, name or text_of(object_of(native).get("type")).removesuffix("_call"))
