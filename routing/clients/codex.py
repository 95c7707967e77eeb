"""Codex: says in each call whose turn it is, and of each part whether a person typed it.

In an editor or on the desktop a part is what those tell of files, pages and comments, and the person's words under a heading.
"""

from __future__ import annotations

from ..dialects.fields import object_of, text_of
from ..values import Call, Headers, JsonObject, Kind
from .client import OPENAI, Client, Signature
from .ids import at, cache_key, header, object_in

_TURN = "x-codex-turn-metadata"
_REQUESTS = {"compaction": Kind.COMPACTION, "memory": Kind.MEMORY}
_SOURCES = {
    "user": Kind.MAIN,
    "thread_title": Kind.TITLE,
    "subagent": Kind.SUBAGENT,
    "memory_consolidation": Kind.MEMORY,
}


def turn_metadata(call: Call, headers: Headers) -> JsonObject:
    """What it says about a turn: in a header, else the same text in the body."""
    return object_in(headers.get(_TURN) or object_of(call.body.get("client_metadata")).get(_TURN))


def _turn(call: Call, headers: Headers) -> object:
    return turn_metadata(call, headers).get("turn_id")


def _declares(call: Call, headers: Headers) -> Kind | None:
    said = turn_metadata(call, headers)
    if "request_kind" not in said and "thread_source" not in said:
        return None
    request = text_of(said.get("request_kind")) or "turn"
    if request != "turn":
        return _REQUESTS.get(request, Kind.SIDE)
    if text_of(said.get("agent_name")) not in ("", "/root"):
        return Kind.SUBAGENT
    return _SOURCES.get(text_of(said.get("thread_source")) or "user", Kind.SIDE)


CODEX = Client(
    name="codex",
    title="Codex",
    tried="0.169.0",
    # How it is recognised
    headers=(_TURN,),
    agents=("codex",),
    # Its ids
    session=(header("session_id"), header("session-id"), at("client_metadata", "session_id"), cache_key(r".+")),
    prompt=(_turn, at("client_metadata", "turn_id")),
    # The kinds of its calls
    declares=_declares,
    signatures=(
        Signature("last", "generate a concise, single-line task title", Kind.TITLE),
        Signature("last", "you are performing a context checkpoint compaction", Kind.COMPACTION),
    ),
    # Which text a person typed
    wrappers=(
        *("environment_context", "user_instructions", "INSTRUCTIONS", "skills_instructions", "apps_instructions"),
        *("plugins_instructions", "permissions", "collaboration_mode", "multi_agent_role", "multi_agent_mode"),
        *("turn_aborted", "subagent_notification", "user_shell_command", "user_action", "hook_prompt", "goal_context"),
        *("skill", "codex_internal_context", "codex_delegation", "recommended_plugins", "context_window"),
        *("context_window_reminder", "rollout_budget", "token_budget", "personality_spec", "persistent_mode"),
        *("model_switch", "side_conversation", "realtime_delegation", "realtime_conversation"),
        *("user_verification_notice", "startup_context", "resource_access", "managed_developer_instructions"),
        *("untrusted_objective", "transcript_delta"),
    ),
    sentences=(
        "# agents.md instructions for",
        "another language model started to solve this problem",
        "the next image is untrusted page evidence",
        "the next image shows the browser page",
        "the next image shows the pdf page",
        "the next image shows pdf page",
    ),
    contexts=(
        *("# context from my ide setup:", "# files mentioned by the user:", "# files pasted by the user:", "# selected text:"),
        *("# applications mentioned by the user:", "# diff comments:", "# browser comments:", "# response annotations:"),
        *("# mcp app context:", "# failing pr checks:", "# pull request merge conflict:", "# in app browser:"),
        *("# chrome tabs:", "<in-app-browser-context", "## prior conversation with codex:"),
        *("## referenced chats with codex:", "## referenced chatgpt conversation:", "## code review guidelines:"),
        *("## pull request fix:", "## pull request merge task:", "## auto resolve merge:", "## my request:"),
        "## my request for codex:",
    ),
    requests=("## My request for Codex:", "## My request:"),
    cuts=("another language model started to solve this problem",),
    typed_kinds=("user.text", "unknown", ""),
    # How it repeats the history
    history="as it was; a call repeated after a broken answer holds what had come of it",
    # What it bears
    waits_s=600.0,
    # What brings it to the proxy
    programs=("codex",),
    first=("--no-daemon",),
    trusts=("CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"),
    bases={'-c openai_base_url="{}"': OPENAI["OPENAI_BASE_URL"]},
)
