"""What stands for something that a dialect has no place for."""

from __future__ import annotations

from ...jsonbytes import dumps
from ..fields import read_json
from ..translation.neutral import Media


def free_text(arguments: str) -> str:
    """What the model wrote for a custom tool: the field `input` of its arguments; arguments of any other form as they are."""
    value = read_json(arguments.encode("utf-8", "surrogatepass"))
    text = value.get("input") if isinstance(value, dict) else None
    return text if isinstance(text, str) else arguments


def told_media(media: Media) -> str:
    """What stands for something that the dialect's answers have no place for."""
    return f"[{media.kind}: {media.url or media.name or media.media_type or 'made by the model'}]"


def written_text(arguments: object) -> str:
    """Arguments as text; some hosts give the object itself."""
    return arguments if isinstance(arguments, str) else dumps(arguments).decode() if arguments else ""
