"""aider: no session and no marks; it glues instructions behind the person's text and sends messages of its own in their name.
cecli, which came of it, joins all that goes up between two answers into one text."""

from __future__ import annotations

from msgspec.structs import replace

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

_TELLS = (
    '<context name="',
    "here are summaries of some files present in my git repo",
    "original file contents for:\n",
    "current file contents for:\n",
    "id-prefixed context for:\n",
    "rules defined in ",
)
_COMPACTS = "---\n# instruction: context compaction & state preservation"

CECLI = replace(
    AIDER,
    name="cecli",
    title="cecli",
    tried="1.10.0",
    # How it is recognised
    agents=("cecli/",),
    introductions=(),
    # The kinds of its calls
    signatures=(*AIDER.signatures, Signature("last", _COMPACTS, Kind.COMPACTION)),
    # Which text a person typed: as an agent it puts their words into a wrapper, and no raw text of a file beside them
    sentences=(
        *(one for one in AIDER.sentences if not one.startswith(_TELLS)),
        *("--- background commands output ---", "continue with your task. if you have completed it", _COMPACTS),
    ),
    retellings=("i have processed the results of the previous tool calls.",),
    contexts=_TELLS,
    requests=('<context name="user_input" from="agent">\n',),
    behind=(*(f"\n\n---\n{one.lstrip()}" for one in AIDER.behind), "\n\n---\nYou are diligent and tireless!"),
    joins=True,
    # How it repeats the history
    history="as it was; what got no answer stands in front of the next message's own text",
    # What brings it to the proxy
    programs=("cecli", "aider-ce"),
    bases={"ANTHROPIC_API_BASE": ANTHROPIC["ANTHROPIC_BASE_URL"], "OPENAI_API_BASE": OPENAI["OPENAI_BASE_URL"]},
)
