"""OpenAI Chat Completions: read, write, history."""

from ..openai_errors import write_error
from .abroad import Abroad
from .history import history
from .read import Reader, is_content
from .write import Whole, Writer

__all__ = ["Abroad", "Reader", "Whole", "Writer", "history", "is_content", "write_error"]
