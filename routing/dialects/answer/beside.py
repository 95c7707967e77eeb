"""What stands beside what a model says, in no dialect's form: where a text has it from.

1. A reader for clients of other dialects says it (`Cited`), beside whatever is native; a writer makes of it what its dialect has.
2. Places are counted in characters of the text that the client is shown: the join moves them there.
3. What a writer has no place for it names: `LeftOut`, which stands in the flow's comment.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..translation.neutral import Feature, LeftOut, Media

_KINDS = {"image": Feature.ASSISTANT_MEDIA, "audio": Feature.AUDIO, "video": Feature.VIDEO, "file": Feature.FILES}


@dataclass(frozen=True, slots=True)
class Citation:
    """One source."""

    url: str
    """Empty for what has no address: a document of the call's own."""
    title: str = ""
    quoted: str = ""
    """What the source says."""
    start: int = -1
    end: int = -1
    """Which characters of its block's text rest on it. -1: all that it says so far."""


def name_media(left: LeftOut, media: Media) -> None:
    """What an answer can only be told in a word."""
    left.add(_KINDS[media.kind], "told as a word")
