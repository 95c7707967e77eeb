"""aider: no session and no marks; it glues instructions behind the person's text and sends messages of its own in their name."""

from __future__ import annotations

from ..values import Kind
from .client import ANTHROPIC, OPENAI, Client, Signature

_COMMITS, _SUMMARIZES = (
    "that generates concise, one-line git commit messages",
    "*briefly* summarize this partial conversation about",
)

AIDER = Client(
    name="aider",
    title="aider",
    tried="0.86.2",
    # How it is recognised
    agents=("litellm/",),
    introductions=("act as an expert software developer", "act as an expert code analyst", _COMMITS, _SUMMARIZES),
    # The kinds of its calls
    signatures=(Signature("system", _COMMITS, Kind.SIDE), Signature("system", _SUMMARIZES, Kind.COMPACTION)),
    # Which text a person typed
    sentences=(
        "i am not sharing any files",
        "i am not sharing the full contents of any files",
        "i switched to a new code base. please don't consider the above files",
        "i have *added these files to the chat*",
        "these files have been *added these files to the chat*",
        "here are summaries of some files present in my git repository",
        "here are some read only files",
        "i am working with you on code in a git repository.",
        "i updated the files.",
        "i committed the changes with git hash ",
        "i didn't see any properly formatted edits in your reply",
        "i edited the files myself.",
        "i added these files to the chat:",
        "i have updated the set of files added to the chat.",
        "i did `git reset --hard head~1` to discard the last edits",
        "i spoke to you previously about a number of things.",
        "i ran this command:",
        "# fix any errors below, if possible.",
        "the llm did not conform to the edit format.",
        *(f"# {count} search/replace block" for count in range(1, 10)),
        "here is the content of http",
    ),
    examples=frozenset({"change get_factorial() to use math.factorial", "refactor hello() into its own file."}),
    behind=(
        "\n\n# *SEARCH/REPLACE block* Rules:",
        "\n\n# File editing rules:",
        "\n\n# V4A Diff Format Rules:",
        "\n\n# *file listing* format:",
        "\n\nTo suggest changes to a file you MUST return the entire content",
        "\n\nHere is the content of http",
    ),
    # How it repeats the history
    history="as it was; the newest message alone carries the instructions behind it",
    # What it bears
    waits_s=600.0,
    # What brings it to the proxy
    programs=("aider",),
    trusts=("SSL_CERT_FILE",),
    trusts_also=("REQUESTS_CA_BUNDLE",),
    bases={**ANTHROPIC, "OPENAI_API_BASE": OPENAI["OPENAI_BASE_URL"]},
)
