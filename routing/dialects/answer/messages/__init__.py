"""Anthropic Messages: read, write, history."""

from .abroad import Abroad
from .history import history
from .read import Reader, is_content
from .write import Whole, Writer, write_error

__all__ = ["Abroad", "Reader", "Whole", "Writer", "history", "is_content", "write_error"]
