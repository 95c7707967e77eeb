"""What recorded requests of real clients are read as: who sent them, what for, and what a person typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecodex.routing.clients.claude_code import CLAUDE_CODE
from routecodex.routing.clients.client import Client
from routecodex.routing.clients.identify import client_of, identify, workdir_of
from routecodex.routing.clients.typed import editable_texts, typed_messages
from routecodex.routing.clients.unknown import KNOWN
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.tags.unheard import answered_up_to, unheard_tags
from routecodex.routing.values import Call, Caller, Dialect, Kind, Text

FIXTURES = Path(__file__).parents[2] / "fixtures"
TAG = "<**!glm.glm-4.7**>"
EVIL = "<**!evil.evil**>"
NOT_A_CALL = {
    "claude-code/14-side-eval.json",
    "claude-code/15-side-bootstrap.json",
    "codex/03-responses-websocket-handshake.json",
    "codex/04-responses-ws-warmup-frame.json",
    "codex/05-responses-ws-turn-frame.json",
    "codex/06-responses-ws-tool-output-frame-incremental.json",
    "codex/13-side-chatgpt-accounts-check.json",
    "gemini-cli/08-v1internal-loadCodeAssist.json",
}

HI = f"say hi {TAG} now"
QUOTES = f"{TAG} say hi & 'quotes' ünï"
MESSAGES, CHAT, RESPONSES, GEMINI = Dialect.MESSAGES, Dialect.CHAT, Dialect.RESPONSES, Dialect.GEMINI
MAIN = Kind.MAIN

# file: dialect, client, kind, session, prompt, working directory, what was typed (… where it goes on)
TABLE: dict[str, tuple[Dialect, str, Kind, str | None, str | None, str | None, list[str]]] = {
    "aider/01-messages-anthropic.json": (MESSAGES, "aider", MAIN, None, None, None, [HI]),
    "aider/02-chat-openai-last-message-is-system.json": (CHAT, "aider", MAIN, None, None, None, [HI]),
    "claude-code/01-messages-print-mode-first-turn.json": (
        *(MESSAGES, "claude-code", MAIN, "10eef47d-15c9-42f4-9eaf-4170de80610a", "b251cbf5-9a6a-44a7-a4cb-b2b16a19d318"),
        *("/home/dev/project/cwd", ["hi there"]),
    ),
    "claude-code/02-messages-title-side-request.json": (
        *(MESSAGES, "claude-code", Kind.TITLE, "c9ff965c-1b04-42e1-8cbe-880a35301430", None, None),
        ["Write the title in the predominant language of the session…"],
    ),
    "claude-code/03-messages-interactive-first-turn-with-tag.json": (
        *(MESSAGES, "claude-code", MAIN, "c9ff965c-1b04-42e1-8cbe-880a35301430", "2b1e36c5-6764-4f39-985c-31c03a1bffe4"),
        *("/home/dev/project", [f"{TAG} say hi"]),
    ),
    "claude-code/04-messages-interactive-second-turn-tag-in-history.json": (
        *(MESSAGES, "claude-code", MAIN, "c9ff965c-1b04-42e1-8cbe-880a35301430", "9ab016fe-9da2-4321-b237-c55c3e34aa17"),
        *("/home/dev/project", [f"{TAG} say hi", "second <**!sticky**> question & <b>html</b>"]),
    ),
    "claude-code/05-messages-tool-result-turn.json": (
        *(MESSAGES, "claude-code", MAIN, "09c9184f-fd5e-4a5d-ad30-ed5d6de2e63f", "b9fce828-e4ef-4934-a012-7c211223eed0"),
        *("/home/dev/project/cwd", ["please run the tool"]),
    ),
    "claude-code/06-messages-after-undeclared-tool.json": (
        *(MESSAGES, "claude-code", MAIN, "713ef586-2461-4935-ae63-9efd4525179d", "4e1cf00a-93f1-43e4-ad5f-4abfaf19a50a"),
        *("/home/dev/project/cwd", ["hi"]),
    ),
    "claude-code/07-messages-subagent.json": (
        *(MESSAGES, "claude-code", Kind.SUBAGENT, "dcc87f5e-dc87-441a-afe6-be17b8fa5184", "72cd4411-5c36-4fda-9fb2-a55e3800b773"),
        *(None, [f"{TAG} sub task"]),
    ),
    "claude-code/08-messages-compaction.json": (
        *(MESSAGES, "claude-code", Kind.COMPACTION, "a22f6714-f59f-4690-b567-92c671111fee", None, "/home/dev/project"),
        [f"{TAG} say hi", "second plain question"],
    ),
    "claude-code/09-messages-first-after-compaction.json": (
        *(MESSAGES, "claude-code", MAIN, "a22f6714-f59f-4690-b567-92c671111fee", "80d2a6db-1b09-415b-aa95-a61649c5e9d0"),
        *(None, ["third after compact"]),
    ),
    "claude-code/10-messages-client-resume-after-cut-off.json": (
        *(MESSAGES, "claude-code", MAIN, "3d3eb3e8-c6b2-4d2a-9df6-d2ec7ee25620", "aad43d35-6431-4e4e-9ebb-dac3b8b254b9"),
        *("/home/dev/project/cwd", ["hi"]),
    ),
    "claude-code/11-messages-nonstream-fallback.json": (
        *(MESSAGES, "claude-code", MAIN, "256c9340-3d9a-4935-926a-b53adc46ee38", "3267fb01-35ba-4a72-a7ad-5930ab33dd87"),
        *("/home/dev/project/cwd", ["hi"]),
    ),
    "claude-code/12-messages-oauth-bearer.json": (
        *(MESSAGES, "claude-code", MAIN, "7719ce6e-f696-4716-addb-93fc1a1bc4ff", "9cbec398-809e-4641-8e53-feb3c7d2e4a3"),
        *("/home/dev/project/cwd", [f"hi {TAG}"]),
    ),
    "claude-code/13-count_tokens.json": (
        *(MESSAGES, "claude-code", Kind.SIDE, "c8d756a1-1246-443d-9c84-5d20fe51153a", None, None),
        ["When you use a pronoun for someone…"],
    ),
    "claude-code/16-messages-continued-session.json": (
        *(MESSAGES, "claude-code", MAIN, "4bf07f6a-2d89-43a0-80e4-05db155e8eb0", "286a55f1-bdc1-4440-9fa5-1809a786f5c9"),
        *("/home/dev/project", [f"{TAG} first", "second turn"]),
    ),
    "cline/01-messages.json": (MESSAGES, "cline", MAIN, None, None, None, [HI]),
    "codex/01-responses-http-after-426-lite-shape.json": (
        *(RESPONSES, "codex", MAIN, "01a1eda3-e479-7550-8613-377fafc48b9e", "01a1eda3-e483-7512-8e96-2c53791717e6"),
        *("/home/dev/project/cwd", [HI]),
    ),
    "codex/02-responses-http-classic-tools-shape.json": (
        *(RESPONSES, "codex", MAIN, "01a1eda8-dc33-7c31-9d70-8c7fe761548d", "01a1eda8-dc43-7602-b77f-fd7f5ae11f4d"),
        *("/home/dev/project/cwd", [HI]),
    ),
    "codex/07-responses-chatgpt-mode-was-zstd.json": (
        *(RESPONSES, "codex", MAIN, "01a1edaa-cdbf-7161-833c-fcc4a7479b63", "01a1edaa-cdd9-7bd1-92dc-69db50e35f91"),
        *("/home/dev/project/cwd", [HI]),
    ),
    "codex/08-responses-tool-output-turn.json": (
        *(RESPONSES, "codex", MAIN, "01a1edbd-e765-7bf1-8b11-b14b859b9cb8", "01a1edbd-e777-7b90-8d94-c0fe87d8ef42"),
        *("/home/dev/project/cwd", ["hi"]),
    ),
    "codex/09-responses-resumed-second-turn-tag-in-history.json": (
        *(RESPONSES, "codex", MAIN, "01a1edda-455f-7b93-a080-70ef056b6ab6", "01a1edda-4e7b-7321-8019-177ab77256d9"),
        *("/home/dev/project", [f"{TAG} first turn", "second turn <**sticky**>"]),
    ),
    "codex/10-responses-thread-title-side-request.json": (
        *(RESPONSES, "codex", Kind.TITLE, "01a1eddd-c7d8-7282-8891-1f2211c197bd", "01a1eddd-c7f0-7dc3-9632-cbf52d24142c"),
        *(None, ["Generate a concise, single-line task title…"]),
    ),
    "codex/11-responses-compaction-trigger.json": (
        *(RESPONSES, "codex", Kind.COMPACTION, "01a1eddd-b5b0-7b81-ae0f-173a2165e5d6", "01a1eddd-e49f-7762-9936-01016b712828"),
        *("/home/dev/project", [f"{TAG} say hi"]),
    ),
    "codex/12-responses-retry-after-missing-completed.json": (
        *(RESPONSES, "codex", MAIN, "01a1edbd-bf5a-7bd1-bb08-b705e9536219", "01a1edbd-bf7e-7252-ba86-a6eed419318b"),
        *("/home/dev/project/cwd", ["hi"]),
    ),
    "continue-cn/01-messages.json": (MESSAGES, "continue", MAIN, None, None, None, [HI]),
    "gemini-cli/01-streamGenerateContent-first-turn.json": (GEMINI, "gemini-cli", MAIN, None, None, None, [HI]),
    "gemini-cli/02-generateContent-router-side-request.json": (GEMINI, "gemini-cli", Kind.ROUTER, None, None, None, [HI]),
    "gemini-cli/03-streamGenerateContent-function-response.json": (GEMINI, "gemini-cli", MAIN, None, None, None, ["hi"]),
    "gemini-cli/04-streamGenerateContent-resumed-second-turn.json": (
        *(GEMINI, "gemini-cli", MAIN, None, None, None),
        [f"{TAG} first turn", "second turn <**sticky**>"],
    ),
    "gemini-cli/05-generateContent-compress.json": (
        *(GEMINI, "gemini-cli", Kind.COMPACTION, None, None, None),
        [f"{TAG} say hi", "Generate a new <state_snapshot> based on the provided history.…"],
    ),
    "gemini-cli/06-generateContent-startup-summary.json": (
        *(GEMINI, "gemini-cli", Kind.SUMMARY, None, None, None),
        ["Summarize the user's primary intent or goal in this conversation…"],
    ),
    "gemini-cli/07-v1internal-streamGenerateContent-oauth.json": (
        *(GEMINI, "gemini-cli", MAIN, "4e7a0e75-5a76-4a49-8c68-7a2320910ccc", None, None),
        [f"hi {TAG}"],
    ),
    "kimi-code/01-chat-user-text-not-last.json": (
        *(CHAT, "kimi-code", MAIN, "session_4c9d9d92-2157-4c14-bc19-cf942b9a53dd", None, None),
        [HI],
    ),
    "llm/01-chat.json": (CHAT, "openai/python", MAIN, None, None, None, [HI]),
    "llm/02-messages.json": (MESSAGES, "anthropic/python", MAIN, None, None, None, [HI]),
    "llm/03-streamGenerateContent-json-array.json": (GEMINI, "python-httpx", MAIN, None, None, None, [HI]),
    "node-sdk/01-anthropic-messages.json": (MESSAGES, "anthropic/js", MAIN, None, None, None, [QUOTES]),
    "node-sdk/02-openai-chat.json": (CHAT, "openai/js", MAIN, None, None, None, [QUOTES]),
    "node-sdk/03-openai-responses.json": (RESPONSES, "openai/js", MAIN, None, None, None, [QUOTES]),
    "opencode/01-messages-title-side-request.json": (
        *(MESSAGES, "opencode", Kind.TITLE, "ses_e12549e63ffe1oE5cLL7a4J5bB", None, None),
        ["Generate a title for this conversation:…"],
    ),
    "opencode/02-messages-first-turn.json": (
        *(MESSAGES, "opencode", MAIN, "ses_e12549e63ffe1oE5cLL7a4J5bB", None, None),
        [f'"{HI}"'],
    ),
    "opencode/03-messages-second-turn.json": (
        *(MESSAGES, "opencode", MAIN, "ses_e12258807ffeCCgK4ePpHaR8Jv", None, None),
        [f'"{TAG} first turn"', '"second turn <**sticky**>"'],
    ),
    "opencode/04-messages-compaction.json": (
        *(MESSAGES, "opencode", Kind.COMPACTION, "ses_e121f7779ffex5Vd22ufdheXjU", None, None),
        ["Here is the conversation so far:…"],
    ),
    "opencode/05-responses-openai-provider.json": (
        *(RESPONSES, "opencode", MAIN, "ses_e121cfa09ffe3S6KZj3s5vgO0B", None, None),
        ["hi"],
    ),
    "opencode/06-messages-after-undeclared-tool.json": (
        *(MESSAGES, "opencode", MAIN, "ses_e12418b16ffe2rLHLAW3Yecyyn", None, None),
        ["hi"],
    ),
    "pi/01-messages.json": (MESSAGES, "pi", MAIN, None, None, None, [HI]),
    "python-sdk/01-anthropic-messages.json": (MESSAGES, "anthropic/python", MAIN, None, None, None, [QUOTES]),
    "python-sdk/02-openai-chat.json": (CHAT, "openai/python", MAIN, None, None, None, [QUOTES]),
    "python-sdk/03-openai-responses.json": (RESPONSES, "openai/python", MAIN, None, None, None, [QUOTES]),
    "python-sdk/04-google-genai-v1.json": (GEMINI, "google-genai-sdk", MAIN, None, None, None, [QUOTES]),
    "qwen-code/01-chat-first-turn-dashscope.json": (
        *(CHAT, "qwen-code", MAIN, "dcd8b1aa-a7d4-4b4b-a09f-1543922e15fe", "dcd8b1aa-a7d4-4b4b-a09f-1543922e15fe########0"),
        *("/home/dev/project", [HI]),
    ),
    "qwen-code/02-chat-memory-extractor-side-request.json": (
        *(CHAT, "qwen-code", Kind.MEMORY, "dcd8b1aa-a7d4-4b4b-a09f-1543922e15fe"),
        *("dcd8b1aa-a7d4-4b4b-a09f-1543922e15fe#managed-auto-memory-extractor-09b47a2c#0", "/home/dev/project"),
        [HI, "Managed memory has TWO directories.…"],
    ),
    "qwen-code/03-chat-continued-second-turn-openai-host.json": (
        *(CHAT, "qwen-code", MAIN, "38dd2136-3c8e-4b2f-bc30-ac71ec583894", None, "/home/dev/project"),
        [f"{TAG} first turn", "second turn <**sticky**>"],
    ),
}


# name: client, kind, whether it names a session and a prompt, what was typed (… where it goes on); made by tests.record
RECORDED: dict[str, tuple[str, Kind, bool, bool, list[str]]] = {
    "aider/reflected-lint": ("aider", MAIN, False, False, [f"break it {TAG}"]),
    "aider/first": ("aider", MAIN, False, False, [f"break it {TAG}"]),
    "aider/reflected-test": ("aider", MAIN, False, False, [f"mend it {TAG}"]),
    "claude-code/print-at-file": ("claude-code", MAIN, True, True, [f"@notes.md say hi {TAG}"]),
    "claude-code/command-with-arguments": ("claude-code", MAIN, True, False, [""]),
    "claude-code/compaction-with-instructions": ("claude-code", Kind.COMPACTION, True, False, [""]),
    "claude-code/first-after-compaction": ("claude-code", MAIN, True, True, [f"and {TAG} now"]),
    "claude-code/stop-hook": ("claude-code", MAIN, True, True, [f"say hi {TAG}"]),
    "claude-code/background-agent": ("claude-code", Kind.SUBAGENT, True, True, [f"look around {EVIL}"]),
    "claude-code/notification-of-a-background-agent": ("claude-code", MAIN, True, True, [f"delegate it {TAG}"]),
    "claude-code/message-of-another-agent": ("claude-code", MAIN, True, True, [f"ask your mate {TAG}"]),
    "claude-code/message-to-a-teammate": ("claude-code", Kind.SUBAGENT, True, False, []),
    "claude-code/message-of-a-teammate": ("claude-code", MAIN, True, False, [f"ask your mate {TAG}"]),
    "claude-code/message-of-a-channel": ("claude-code", MAIN, True, True, []),
    "kilo/run-quotes-its-argument": ("kilo", MAIN, True, False, ['<**stopMessage:"go on",3**> hi']),
    "kilo/run-with-file": ("kilo", MAIN, True, False, ['<**stopMessage:"go on",3**> hi', f"hi {TAG} there"]),
    "kilo/title": ("kilo", Kind.TITLE, True, False, ["Generate a title for this conversation:…"]),
    "kilo/terminal-at-file": ("kilo", MAIN, True, False, ['say "hi" <**glm.glm-4.7**> @notes.md']),
    "kilo/compaction": ("kilo", Kind.COMPACTION, True, False, ["Here is the conversation so far:…"]),
    "kilo/first-after-compaction": ("kilo", MAIN, True, False, [f"behind it {TAG}"]),
    "vibe/at-file": ("vibe", MAIN, True, False, [f"@notes.md say hi {TAG}"]),
    "vibe/behind-a-tool": ("vibe", MAIN, True, False, [f"read it for me {TAG}"]),
    "vibe/terminal-at-file": ("vibe", MAIN, True, False, [f"look @notes.md and say hi {TAG}"]),
    "vibe/title": ("vibe", Kind.TITLE, True, False, [f"user: look @notes.md and say hi {TAG}…"]),
    "vibe/behind-a-shell-command": ("vibe", MAIN, True, False, [f"look @notes.md and say hi {TAG}", f"and now {TAG}"]),
    "vibe/compaction": (
        *("vibe", Kind.COMPACTION, True, False),
        [f"look @notes.md and say hi {TAG}", f"and now {TAG}", "CRITICAL: Respond with text only.…"],
    ),
    "vibe/first-after-compaction": (
        *("vibe", MAIN, True, False),
        [f"look @notes.md and say hi {TAG}", f"and now {TAG}", f"behind it {TAG}"],
    ),
    "copilot/print": ("copilot", MAIN, False, False, [f"@notes.md say hi {TAG}"]),
    "copilot/responses": ("copilot", MAIN, True, False, [f"say hi {TAG}"]),
    "copilot/messages": ("copilot", MAIN, False, False, [f"say hi {TAG}"]),
    "copilot/subagent": ("copilot", Kind.SUBAGENT, False, False, [f"look around {EVIL}"]),
    "copilot/behind-a-tool": ("copilot", MAIN, False, False, [f"delegate it {TAG}"]),
    "copilot/notification-of-a-background-agent": ("copilot", MAIN, False, False, [f"send it off {TAG}"]),
    "copilot/autopilot": ("copilot", MAIN, False, False, [f"say hi {TAG}"]),
    "copilot/terminal-at-file": ("copilot", MAIN, False, False, [f"look @notes.md and say hi {TAG}"]),
    "copilot/behind-a-shell-command": (
        *("copilot", MAIN, False, False),
        [f"look @notes.md and say hi {TAG}", f"and now {TAG}"],
    ),
    "copilot/skill": (
        *("copilot", MAIN, False, False),
        [f"look @notes.md and say hi {TAG}", f"and now {TAG}", 'The user explicitly invoked the "/demo" skill…'],
    ),
    "copilot/compaction": (
        *("copilot", Kind.COMPACTION, False, False),
        [
            *(f"look @notes.md and say hi {TAG}", f"and now {TAG}", 'The user explicitly invoked the "/demo" skill…'),
            "Please create a detailed summary of the conversation so far.…",
        ],
    ),
    "copilot/first-after-compaction": ("copilot", MAIN, False, False, [f"behind it {TAG}"]),
    "cline/at-file": ("cline", MAIN, False, False, [f"@notes.md say hi {TAG}"]),
    "codex/exec-with-instruction-file": ("codex", MAIN, True, True, [f"@notes.md say hi {TAG}"]),
    "codex/exec-resumed": ("codex", MAIN, True, True, [f"@notes.md say hi {TAG}", f"and now {TAG}"]),
    "codex/prompt-hook": ("codex", MAIN, True, True, [f"say hi {TAG}"]),
    "codex/stop-hook": ("codex", MAIN, True, True, [f"say hi {TAG}"]),
    "codex/compaction": ("codex", Kind.COMPACTION, True, True, [f"say hi {TAG}"]),
    "codex/first-after-compaction": ("codex", MAIN, True, True, [f"say hi {TAG}", f"and now {TAG}"]),
    "codex/first-after-a-summary": ("codex", MAIN, True, True, [f"say hi {TAG}", f"and now {TAG}"]),
    "codex/terminal-after-a-shell-command": ("codex", MAIN, True, True, [f"say hi {TAG}"]),
    "continue-cn/print": ("continue", MAIN, False, False, [f"@notes.md say hi {TAG}"]),
    "continue-cn/terminal-at-file": ("continue", MAIN, False, False, [f"@notes.md say hi {TAG}"]),
    "gemini-cli/at-file": ("gemini-cli", MAIN, False, False, [f"@notes.md say hi {TAG}"]),
    "gemini-cli/at-folder": ("gemini-cli", MAIN, False, False, [f"look @lib/** and {TAG}"]),
    "gemini-cli/at-resource": ("gemini-cli", MAIN, False, False, [f"look @shelf:shelf://notes and {TAG}"]),
    "gemini-cli/function-response": ("gemini-cli", MAIN, False, False, [f"read it for me {TAG}"]),
    "kimi-code/at-file": ("kimi-code", MAIN, True, False, [f"@notes.md say hi {TAG}"]),
    "llm/with-fragment": ("openai/python", MAIN, False, False, ["notes…"]),
    "opencode/run-quotes-its-argument": ("opencode", MAIN, True, False, ['<**stopMessage:"go on",3**> hi']),
    "opencode/title": ("opencode", Kind.TITLE, True, False, ["Generate a title for this conversation:…"]),
    "opencode/run-with-file": (
        "opencode",
        MAIN,
        True,
        False,
        ['<**stopMessage:"go on",3**> hi', f'"hi {TAG} there" "more words" one'],
    ),
    "opencode/run-with-folder": ("opencode", MAIN, True, False, [f"{TAG} look"]),
    "opencode/terminal-at-file": ("opencode", MAIN, True, False, ['say "hi" <**glm.glm-4.7**> @notes.md']),
    "opencode/terminal-at-resource": ("opencode", MAIN, True, False, [f"look @notes and {TAG}"]),
    "pi/at-file": ("pi", MAIN, False, False, [f"say hi {TAG}"]),
    "qwen-code/at-file": ("qwen-code", MAIN, True, False, [f"@notes.md say hi {TAG}"]),
    "qwen-code/memory-extractor": (
        "qwen-code",
        Kind.MEMORY,
        True,
        False,
        [f"@notes.md say hi {TAG}", "Managed memory has TWO directories. Choose which one to writ…"],
    ),
    "qwen-code/at-folder": ("qwen-code", MAIN, True, False, [f"look @lib and {TAG}"]),
    "qwen-code/compaction": (
        "qwen-code",
        Kind.COMPACTION,
        True,
        False,
        [f"look @lib and {TAG}", "First, reason in your <analysis> block. Then, produce the <state_snapshot> XML."],
    ),
    "qwen-code/fetched-page": ("qwen-code", Kind.SIDE, True, False, []),
    "qwen-code/summary": (
        "qwen-code",
        Kind.SUMMARY,
        True,
        False,
        [
            f"hello {TAG}",
            "Please analyze the conversation history above and generate a comprehensive project summary in markdown…",
        ],
    ),
    "cecli/agent-with-files": ("cecli", MAIN, False, False, [f"say hi {TAG}"]),
    "cecli/diff": ("cecli", MAIN, False, False, [f"say hi {TAG}"]),
    "cecli/goes-on-by-itself": ("cecli", MAIN, False, False, [f"look at it {TAG}"]),
    "cecli/behind-an-added-file": ("cecli", MAIN, False, False, [f"look at it {TAG}", f"and now {TAG}"]),
    "cecli/compaction": ("cecli", Kind.COMPACTION, False, False, [f"look at it {TAG}", f"and now {TAG}"]),
    "gptme/with-file": ("gptme", MAIN, False, False, [f"say hi {TAG}\n\nfence.md"]),
    "gptme/goes-on-by-itself": ("gptme", MAIN, False, False, [f"say hi {TAG}\n\nfence.md"]),
    "gptme/title": ("gptme", Kind.TITLE, False, False, ["Assistant: ok"]),
    "gptme/messages-with-file": ("gptme", MAIN, False, False, [f"say hi {TAG}\n\nfence.md"]),
    "gptme/messages-title": ("gptme", Kind.TITLE, False, False, ["Assistant: ok"]),
    "gptme/compaction": ("gptme", Kind.COMPACTION, False, False, [f"say hi {TAG}", "Context budget has been reached…"]),
    "code-puppy/print": ("code-puppy", MAIN, False, False, [f"say hi {TAG}"]),
    "code-puppy/title": ("code-puppy", Kind.TITLE, False, False, ["Conversation digest:…"]),
    "code-puppy/looks-at-an-answer": ("code-puppy", Kind.SIDE, False, False, ["Classify this assistant response:…"]),
    "code-puppy/messages-print": ("code-puppy", MAIN, False, False, [f"say hi {TAG}"]),
    "code-puppy/messages-title": ("code-puppy", Kind.TITLE, False, False, ["Conversation digest:…"]),
    "code-puppy/messages-looks-at-an-answer": ("code-puppy", Kind.SIDE, False, False, ["Classify this assistant response:…"]),
    "openhands/task": ("openhands", MAIN, True, False, [f"say hi {TAG}"]),
    "openhands/begun-with-a-file": ("openhands", MAIN, True, False, []),
    "deepagents-code/print": ("deepagents-code", MAIN, False, False, [f"say hi {TAG}"]),
    "deepagents-code/terminal-at-file": ("deepagents-code", MAIN, False, False, [f"look at @notes.md and say hi {TAG}"]),
    "deepagents-code/title": ("deepagents-code", Kind.TITLE, False, False, [f"human: look at @notes.md and say hi {TAG}"]),
    "deepagents-code/behind-a-shell-command": (
        *("deepagents-code", MAIN, False, False),
        [f"look at @notes.md and say hi {TAG}", f"and now {TAG}"],
    ),
    "mini-swe-agent/task": ("mini-swe-agent", MAIN, False, False, [f"say hi {TAG}"]),
    "mini-swe-agent/behind-an-answer-without-a-call": ("mini-swe-agent", MAIN, False, False, [f"say hi {TAG}"]),
    "aider/commit": ("aider", Kind.SIDE, False, False, [f"USER: change it {TAG}…"]),
    "pi/behind-a-shell-command": ("pi", MAIN, False, False, [f"and now {TAG}"]),
    "gemini-cli/behind-a-shell-command": ("gemini-cli", MAIN, False, False, [f"and now {TAG}"]),
    "qwen-code/behind-a-shell-command": ("qwen-code", MAIN, True, False, [f"and now {TAG}"]),
    "opencode/compaction-with-a-file": ("opencode", Kind.COMPACTION, True, False, ["Here is the conversation so far:…"]),
    "qwen-code/side-question": ("qwen-code", Kind.SIDE, True, False, [f"what is up {TAG}"]),
}
QUOTED_FILES = {"claude-code/command-with-arguments", "claude-code/compaction-with-instructions", "claude-code/background-agent"}
QUOTED_FILES |= {"aider/commit", "copilot/subagent"}
"""A command's file holds what the person typed behind the command; an agent's task, or what a commit is named after, is all that
its call holds."""
CANNOT_BE_TOLD = {"llm/with-fragment"}
"""The file stands in front of the typed text, in one text, with no mark between them."""


def is_of_recorder(path: Path) -> bool:
    return "version" in json.loads(path.read_text(encoding="utf-8"))


def recorded(file: str) -> tuple[Call, Caller]:
    request = json.loads((FIXTURES / file).read_text(encoding="utf-8"))
    endpoint = endpoint_of(request["method"], request["path"])
    assert endpoint is not None
    call = read_call(json.dumps(request["body"]).encode(), endpoint)
    headers = {name.lower(): value for name, value in request["headers"]}
    return call, identify(call, headers, request["path"], request["host"])


@pytest.mark.parametrize("file", TABLE)
def test_recorded_request(file: str) -> None:
    dialect, client, kind, session, prompt, workdir, words = TABLE[file]
    call, caller = recorded(file)
    typed = typed_messages(call, client_of(caller))

    assert call.endpoint.dialect is dialect
    assert (caller.client, caller.kind, caller.session, caller.prompt) == (client, kind, session, prompt)
    assert workdir_of(call) is None if workdir is None else str(workdir_of(call)).startswith(workdir)
    assert [message.ordinal for message in typed] == list(range(len(words)))
    for message, expected in zip(typed, words, strict=True):
        assert message.words == expected or (expected.endswith("…") and message.words.startswith(expected[:-1]))


@pytest.mark.parametrize("file", TABLE)
def test_every_typed_span_is_editable(file: str) -> None:
    call, caller = recorded(file)
    client = client_of(caller)
    editable = {id(one.part): one.spans for one in editable_texts(call, client)}
    for message in typed_messages(call, client):
        for text in message.texts:
            for start, end in text.commands:
                assert any(left <= start and end <= right for left, right in editable[id(text.part)])


NEWEST = {f"{path.parent.name}/{path.stem.partition('-')[2]}": path for path in FIXTURES.glob("*/*.json") if is_of_recorder(path)}


@pytest.mark.parametrize("name", RECORDED)
def test_newest_recording(name: str) -> None:
    who, kind, has_session, has_prompt, words = RECORDED[name]
    call, caller = recorded(NEWEST[name].relative_to(FIXTURES).as_posix())
    typed = typed_messages(call, client_of(caller))
    assert (caller.client, caller.kind) == (who, kind)
    assert (caller.session is not None, caller.prompt is not None) == (has_session, has_prompt)
    assert len(typed) == len(words)
    for message, expected in zip(typed, words, strict=True):
        assert message.words == expected or (expected.endswith("…") and message.words.startswith(expected[:-1]))


@pytest.mark.parametrize("name", sorted(RECORDED.keys() - CANNOT_BE_TOLD))
def test_what_nobody_typed_gives_no_orders_and_passes_as_it_came(name: str) -> None:
    call, caller = recorded(NEWEST[name].relative_to(FIXTURES).as_posix())
    client = client_of(caller)
    typed = typed_messages(call, client)
    if name not in QUOTED_FILES:
        assert not any(EVIL in message.words for message in typed)
        assert not any(EVIL in one.part.text[start:end] for one in editable_texts(call, client) for start, end in one.spans)
    if caller.kind is MAIN and EVIL in json.dumps([part.text for part in texts_of(call, client)]):
        assert EVIL in {one.tag for one in unheard_tags(call, client)} | {EVIL if name in QUOTED_FILES else ""}


def texts_of(call: Call, client: Client) -> list[Text]:
    """The user's, behind the model's last answer."""
    users = [message for message in call.messages[answered_up_to(call, client) + 1 :] if message.role == "user"]
    return [part for message in users for part in message.parts if isinstance(part, Text)]


def test_every_recorded_call_is_in_a_table() -> None:
    files = {path.relative_to(FIXTURES).as_posix() for path in FIXTURES.glob("*/*.json") if not is_of_recorder(path)}
    assert files == TABLE.keys() | NOT_A_CALL
    assert NEWEST.keys() == RECORDED.keys()


def test_the_newest_recordings_say_what_was_tried() -> None:
    tried: dict[str, set[str]] = {}
    for path in NEWEST.values():
        _, caller = recorded(path.relative_to(FIXTURES).as_posix())
        if client_of(caller) in KNOWN:
            tried.setdefault(client_of(caller).name, set()).add(json.loads(path.read_text(encoding="utf-8"))["version"])
    assert tried == {client.name: {client.tried} for client in KNOWN if client.name in tried}
    assert len(tried) == len(KNOWN) - 1  # llm is a library's user agent


def test_a_title_request_quotes_the_tag_without_obeying_it() -> None:
    call, _ = recorded("claude-code/02-messages-title-side-request.json")
    [message] = typed_messages(call, CLAUDE_CODE)
    assert TAG not in message.words
    [one] = editable_texts(call, CLAUDE_CODE)
    assert any(TAG in one.part.text[start:end] for start, end in one.spans)
