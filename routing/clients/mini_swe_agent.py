"""mini-swe-agent: the task stands in the middle of its instructions, in the same text.

It drops answers that call no tool, and says so to the model in their place.
"""

from __future__ import annotations

from .client import Client

_NOTES = ("tool call error:", "your previous response reached the output token limit")

MINI_SWE_AGENT = Client(
    name="mini-swe-agent",
    title="mini-swe-agent",
    tried="2.4.6",
    # How it is recognised
    introductions=("you are a helpful assistant that can interact with a computer.",),
    # Which text a person typed
    sentences=_NOTES,
    before=r"Please solve this issue: |The user added a new task: |Interrupted by user: |"
    r"Commands not executed\. The user rejected your commands with the following message: ",
    behind=("\n\nYou can execute bash commands and edit files to implement the necessary changes.\n",),
    cuts=_NOTES,
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=600.0,
    # What brings it to the proxy
    programs=("mini",),
    trusts=("SSL_CERT_FILE",),
)
