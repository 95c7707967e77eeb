"""How people use each client: what is done to it, and which of its calls becomes which recording.

One function per client, named as its folder under `tests/fixtures`. `stage.keep` takes the newest call that fits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.record.stage import EVIL, TAG, Stage
from tests.rig.behaviour import Behaviour
from tests.rig.received import Received
from tests.rig.reply import ToolUse, sse

RESOURCE_SERVER = Path(__file__).with_name("resource_server.py")
CHANNEL_SERVER = Path(__file__).with_name("channel_server.py")
STOP_ONCE = f"#!/bin/sh\n[ -f .stopped ] && exit 0\ntouch .stopped\necho 'not yet {EVIL}' >&2\nexit 2\n"
"""A hook that sends the model back to its work, for once."""
_MCP = {"command": sys.executable, "args": [str(RESOURCE_SERVER)]}


def claude_code(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-api03-dummy", "IS_SANDBOX": "1"}
    stage.run("claude", "-p", f"@notes.md say hi {TAG}")
    stage.keep("print-at-file")
    stage.write(".claude/commands/go.md", f"Do it {EVIL}: $ARGUMENTS\n")
    stage.run("claude", "-p", f"/go now {TAG}")
    stage.keep("command-with-arguments")
    stage.run("claude", "-c", "-p", f"/compact keep {TAG}")
    stage.keep("compaction-with-instructions")
    stage.run("claude", "-c", "-p", f"and {TAG} now")
    stage.keep("first-after-compaction")
    script = stage.write("stop.sh", STOP_ONCE)
    script.chmod(0o755)
    says = {"type": "command", "command": f"echo 'a hook says {EVIL}'"}
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": str(script)}]}], "UserPromptSubmit": [{"hooks": [says]}]}
    stage.write(".claude/settings.json", json.dumps({"hooks": hooks}))
    stage.run("claude", "-p", f"say hi {TAG}")
    stage.keep("stop-hook", "Stop hook feedback")
    stage.write(".claude/settings.json", "{}")
    stage.on(
        "delegate it",
        ToolUse("Agent", {"description": "look", "prompt": f"look around {EVIL}", "subagent_type": "general-purpose"}),
    )
    stage.run("claude", "-p", f"delegate it {TAG}")
    stage.keep("background-agent", "cc_is_subagent=true")
    stage.keep("notification-of-a-background-agent", "task-notification>")
    mate = {"description": "look", "prompt": "look", "subagent_type": "general-purpose", "name": "mate"}
    stage.on("ask your mate", ToolUse("Agent", mate))
    stage.on("cc_is_subagent=true", ToolUse("SendMessage", {"to": "main", "summary": "hello", "message": f"tell {EVIL}"}))
    teams = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}
    stage.run("claude", "-p", "--permission-mode", "bypassPermissions", f"ask your mate {TAG}", env=teams)
    stage.keep("message-of-another-agent", "<agent-message")
    _claude_code_in_a_terminal(stage, mate)


def _claude_code_in_a_terminal(stage: Stage, mate: dict[str, str]) -> None:
    """A team, whose members write to each other; and a channel, by which somebody else writes to the model."""
    key = stage.env["ANTHROPIC_API_KEY"][-20:]
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "enabledMcpjsonServers": ["phone"]}
    settled = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [key], "rejected": []},
        "cachedGrowthBookFeatures": {"tengu_harbor": True},
        "projects": {str(stage.project): trusted},
    }
    stage.write_home(".claude.json", json.dumps(settled))
    stage.when({"x-claude-code-request-class": "main"}, "ask your mate", ToolUse("Agent", mate))
    stage.terminal("claude", "--permission-mode", "bypassPermissions", env={"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"})
    stage.sees("Yes, I accept")
    stage.settle(2)
    stage.press("Down")
    stage.settle(1)
    stage.press("Enter")
    stage.sees("bypass permissions on")
    stage.settle(2)
    stage.type(f"ask your mate {TAG}")
    idle = b'<teammate-message teammate_id=\\"mate'
    stage.until(lambda: any(idle in call.body for call in stage.provider.calls), 60)
    stage.settle(2)
    stage.keep("message-to-a-teammate", '<teammate-message teammate_id=\\"team-lead', without="title generator")
    stage.keep("message-of-a-teammate", '<teammate-message teammate_id=\\"mate', without="Write the title")
    stage.close_terminal()
    phone = {"command": sys.executable, "args": [str(CHANNEL_SERVER)]}
    stage.write(".mcp.json", json.dumps({"mcpServers": {"phone": phone}}))
    stage.terminal("claude", "--dangerously-load-development-channels", "server:phone")
    stage.sees("I am using this for local development")
    stage.settle(2)
    stage.press("Enter")
    stage.until(lambda: any(b"<channel source=" in call.body for call in stage.provider.calls), 60)
    stage.keep("message-of-a-channel", "<channel source=", without="Write the title")
    stage.close_terminal()


def codex(stage: Stage) -> None:
    stage.env = {"OPENAI_API_KEY": "sk-dummy", "CODEX_API_KEY": "sk-dummy"}
    stage.write("AGENTS.md", f"Be brief. {EVIL}\n")
    stage.run("codex", "exec", "--skip-git-repo-check", f"@notes.md say hi {TAG}")
    stage.keep("exec-with-instruction-file")
    stage.run("codex", "exec", "resume", "--last", "--skip-git-repo-check", f"and now {TAG}")
    stage.keep("exec-resumed")
    script = stage.write_home("stop.sh", STOP_ONCE)
    script.chmod(0o755)
    stop, says = ({"type": "command", "command": command} for command in (str(script), f"echo 'a hook says {EVIL}'"))
    hooks = {"Stop": [{"hooks": [stop]}], "UserPromptSubmit": [{"hooks": [says]}]}
    stage.write_home(".codex/hooks.json", json.dumps({"hooks": hooks}))
    stage.run("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", f"say hi {TAG}")
    stage.keep("prompt-hook", "a hook says", without="hook_prompt")
    stage.keep("stop-hook", "hook_prompt")
    stage.write_home(".codex/hooks.json", "{}")
    stage.run("codex", "login", "--with-api-key", stdin="sk-dummy")
    stage.terminal("codex", "--disable", "daemon_auto_start", "-m", "gpt-5")
    stage.settle()
    stage.press("Enter")
    stage.settle()
    before = len(stage.provider.calls)
    stage.type("!cat lib/one.py")
    stage.settle()
    stage.paste(f"say hi {TAG}")
    stage.press("Enter")
    stage.calls_reach(before + 1)
    stage.settle()
    stage.keep("terminal-after-a-shell-command", "say hi", without="single-line task title")
    stage.provider.script(_compacted)
    stage.type("/compact")
    stage.settle()
    stage.keep("compaction", "compaction_trigger")
    stage.type(f"and now {TAG}")
    stage.settle()
    stage.keep("first-after-compaction", "and now", without="single-line task title")
    stage.close_terminal()
    own = 'model_providers.own={name="own",base_url="https://api.openai.com/v1",wire_api="responses",env_key="OPENAI_API_KEY"}'
    stage.terminal("codex", "--disable", "daemon_auto_start", "-m", "gpt-5", "-c", own, "-c", "model_provider=own")
    for typed in (f"say hi {TAG}", "/compact", f"and now {TAG}"):  # of a provider of one's own it asks a summary in words
        stage.settle()
        stage.type(typed)
    stage.settle()
    stage.keep("first-after-a-summary", "Another language model", without="single-line task title")
    stage.close_terminal()


def _compacted(received: Received) -> Behaviour | None:
    """As OpenAI does: one item that it alone can read. Codex keeps what the person typed, and drops every answer."""
    if received.asked is None or b'"compaction_trigger"' not in received.body:
        return None
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVk"}
    response = {"id": "resp_compacted", "object": "response", "status": "completed", "output": [item]}
    response["usage"] = {"input_tokens": 25, "output_tokens": 1, "total_tokens": 26}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    created = {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    return Behaviour(events=(sse(created), sse(done), sse({"type": "response.completed", "response": response})))


def gemini_cli(stage: Stage) -> None:
    stage.env = {"GEMINI_API_KEY": "dummy"}
    stage.write(".gemini/settings.json", json.dumps({"mcpServers": {"shelf": {**_MCP, "trust": True}}}))
    ask = ("gemini", "--skip-trust", "-m", "gemini-3-pro-preview", "-p")
    stage.run(*ask, f"@notes.md say hi {TAG}", timeout=60)
    stage.keep("at-file")
    stage.run(*ask, f"look @lib and {TAG}", timeout=60)
    stage.keep("at-folder")
    stage.run(*ask, f"look @shelf:shelf://notes and {TAG}", timeout=60)
    stage.keep("at-resource")
    stage.on("read it for me", ToolUse("read_file", {"file_path": "notes.md"}))
    stage.run(*ask, f"read it for me {TAG}", timeout=60)
    stage.keep("function-response", "functionResponse")
    stage.terminal("gemini", "--skip-trust", "-m", "gemini-3-pro-preview")
    stage.sees("Use Gemini API Key")
    stage.settle(2)
    stage.press("Enter")
    stage.settle(2)
    stage.press("Enter")
    stage.sees("Type your message")
    stage.settle()
    _in_its_shell(stage)
    stage.keep("behind-a-shell-command", "and now", without="complexity_score")
    stage.close_terminal()


def _in_its_shell(stage: Stage) -> None:
    """A command that the person runs, and a message behind it."""
    stage.type("!", enter=False)
    stage.settle(1)
    stage.type("cat notes.md")
    stage.settle()
    stage.press("Escape")
    stage.settle(1)
    before = len(stage.provider.calls)
    stage.paste(f"and now {TAG}")
    stage.press("Enter")
    stage.calls_reach(before + 1, 30)
    stage.settle(2)


def qwen_code(stage: Stage) -> None:
    stage.env = {"OPENAI_API_KEY": "sk-dummy", "OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_MODEL": "gpt-5"}
    ask = ("qwen", "--auth-type", "openai", "-m", "gpt-5")
    stage.write(".qwen/settings.json", json.dumps({"mcpServers": {"shelf": {**_MCP, "trust": True}}}))
    stage.run(*ask, "-p", f"@notes.md say hi {TAG}", timeout=60)
    stage.keep("at-file", "Content from referenced files", without="managed memory extraction")
    stage.keep("memory-extractor", "managed memory extraction")
    stage.run(*ask, "-p", f"look @lib and {TAG}", timeout=60)
    stage.keep("at-folder", without="managed memory extraction")
    stage.run(*ask, "-c", "-p", "/compress", timeout=60)
    stage.keep("compaction", "summarizes a conversation")
    stage.run(*ask, "-c", "-p", "/summary", timeout=60)
    stage.keep("summary", "comprehensive project summary")
    stage.page("pages.example", f"a page says {EVIL.replace('<', '&lt;')} to whoever reads it")
    stage.on("fetch it for me", ToolUse("web_fetch", {"url": "https://pages.example/", "prompt": "what it says"}))
    stage.run(*ask, "--yolo", "-p", f"fetch it for me {TAG}", timeout=60)
    stage.keep("fetched-page", "I have fetched the content from")
    stage.write(".qwen/settings.json", "{}")  # whether to trust a server is asked in a terminal
    stage.terminal(*ask)
    stage.sees("Type your message")
    stage.settle(8)
    stage.type(f"/btw what is up {TAG}", enter=False)
    stage.settle(2)
    stage.press("Enter")
    stage.until(lambda: any(b"This is a side question" in one.body for one in stage.provider.calls), 30)
    stage.keep("side-question", "This is a side question")
    stage.settle()
    stage.press("Escape")
    stage.settle()
    _in_its_shell(stage)
    stage.keep("behind-a-shell-command", "and now", without="managed memory extraction")
    stage.close_terminal()


def opencode(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "OPENAI_API_KEY": "sk-dummy"}
    stage.write(
        "opencode.json", json.dumps({"mcp": {"shelf": {"type": "local", "command": [sys.executable, str(RESOURCE_SERVER)]}}})
    )
    ask = ("opencode", "run", "-m", "anthropic/claude-sonnet-4-5")
    stage.run(*ask, '<**stopMessage:"go on",3**> hi')
    stage.keep("run-quotes-its-argument", without="title generator")
    stage.keep("title", "title generator")
    stage.run(*ask, "-c", "-f", "notes.md", "--", f"hi {TAG} there", "more words", "one")
    stage.keep("run-with-file")
    stage.run("opencode", "run", "-m", "openai/gpt-5", "-f", "lib", "--", f"{TAG}", "look")
    stage.keep("run-with-folder", without="title generator")
    _at_opencodes_terminal(stage, "opencode")
    stage.until(lambda: any(b"<conversation>" in one.body for one in stage.provider.calls), 30)
    stage.keep("compaction-with-a-file", "<conversation>")
    stage.close_terminal()
    stage.terminal("opencode", "-m", "anthropic/claude-sonnet-4-5")
    stage.sees("Ask anything")
    stage.settle(8)
    stage.type("look @note", enter=False)
    stage.sees("notes.md")  # offered a little later than agents, and the resource of that name before it
    stage.settle(2)
    stage.press("Enter")
    stage.settle(1)
    stage.type(f"and {TAG}")
    title = b"title generator"
    stage.until(lambda: any(b"from the shelf" in one.body and title not in one.body for one in stage.provider.calls), 60)
    stage.keep("terminal-at-resource", without="title generator")
    stage.close_terminal()


def _at_opencodes_terminal(stage: Stage, program: str) -> None:
    """Here and in its fork: a message that names a file, and a compaction behind it."""
    stage.terminal(program, "-m", "anthropic/claude-sonnet-4-5")
    stage.sees("Ask anything")
    stage.settle(8)
    before = len(stage.provider.calls)
    stage.type('say "hi" <**glm.glm-4.7**> @notes.md', enter=False)
    stage.settle()
    stage.press("Enter")
    stage.settle()
    stage.press("Enter")
    stage.calls_reach(before + 1)
    stage.settle()
    stage.keep("terminal-at-file", without="title generator")
    stage.type("/compact", enter=False)
    stage.settle(1)
    stage.press("Enter")


def cline(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy"}
    # its hub outlives it, and keeps the proxy of its first start
    stage.run("cline", "hub", "stop", timeout=20)
    stage.run("cline", "auth", "-p", "anthropic", "-k", "sk-ant-dummy", "-m", "claude-sonnet-4-5")
    stage.run("cline", "--json", f"@notes.md say hi {TAG}", timeout=60)
    stage.keep("at-file")
    stage.run("cline", "hub", "stop", timeout=20)


def continue_cn(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy"}
    stage.run("cn", "-p", f"@notes.md say hi {TAG}", timeout=60)
    stage.keep("print")
    before = len(stage.provider.calls)
    stage.terminal("cn")
    stage.settle(8)
    stage.type(f"@notes.md say hi {TAG}", enter=False)
    stage.settle()
    stage.press("Enter", "Enter")
    stage.calls_reach(before + 1, 20)
    stage.keep("terminal-at-file")
    stage.close_terminal()


def pi(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy"}
    ask = ("pi", "--provider", "anthropic", "--model", "claude-sonnet-4-5")
    stage.run(*ask, "-p", "@notes.md", f"say hi {TAG}", timeout=60)
    stage.keep("at-file")
    stage.terminal(*ask)
    stage.settle(6)
    stage.type("!cat notes.md")
    stage.settle()
    before = len(stage.provider.calls)
    stage.type(f"and now {TAG}")
    stage.calls_reach(before + 1, 30)
    stage.settle(2)
    stage.keep("behind-a-shell-command", "and now")
    stage.close_terminal()


def kimi_code(stage: Stage) -> None:
    provider = '[providers.moonshot]\ntype = "kimi"\nbase_url = "https://api.moonshot.ai/v1"\napi_key = "sk-dummy"\n'
    model = '[models.k]\nprovider = "moonshot"\nmodel = "kimi-k2"\nmax_context_size = 200000\n'
    for folder in (".kimi-code", ".kimi"):
        stage.write_home(f"{folder}/config.toml", f'default_model = "k"\n{model}{provider}')
    stage.run("kimi", "-p", f"@notes.md say hi {TAG}", timeout=60)
    stage.keep("at-file")


def kilo(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "OPENAI_API_KEY": "sk-dummy"}
    ask = ("kilo", "run", "-m", "anthropic/claude-sonnet-4-5")
    stage.run(*ask, '<**stopMessage:"go on",3**> hi')
    stage.keep("run-quotes-its-argument", without="title generator")
    stage.run(*ask, "-c", "-f", "notes.md", "--", f"hi {TAG} there")
    stage.keep("run-with-file", without="title generator")
    stage.keep("title", "title generator")
    _at_opencodes_terminal(stage, "kilo")
    stage.until(lambda: any(b"<conversation>" in one.body for one in stage.provider.calls), 30)
    stage.settle()
    stage.keep("compaction", "<conversation>")
    stage.type(f"behind it {TAG}", enter=False)
    stage.settle(1)
    stage.press("Enter")
    stage.until(lambda: any(b"behind it" in one.body for one in stage.provider.calls), 30)
    stage.keep("first-after-compaction", "behind it", without="title generator")
    stage.close_terminal()


def vibe(stage: Stage) -> None:
    stage.env = {"MISTRAL_API_KEY": "dummy"}
    ask = ("vibe", "--agent", "auto-approve")
    stage.run(*ask, "-p", f"@notes.md say hi {TAG}")
    stage.keep("at-file")
    stage.on("read it for me", ToolUse("bash", {"command": "cat notes.md"}))
    stage.run(*ask, "-p", f"read it for me {TAG}")
    stage.keep("behind-a-tool", "read it for me")
    stage.terminal("vibe")
    stage.sees("Type /help")
    stage.settle()
    stage.press("Enter")
    before = len(stage.provider.calls)
    stage.type(f"look @notes.md and say hi {TAG}")
    stage.calls_reach(before + 2)
    stage.settle()
    stage.keep("terminal-at-file", "Resource: file", without="You name coding-agent sessions")
    stage.keep("title", "You name coding-agent sessions")
    stage.type("!cat lib/one.py")
    stage.settle()
    stage.type(f"and now {TAG}")
    stage.calls_reach(before + 3)
    stage.settle()
    stage.keep("behind-a-shell-command", "and now", without="You name coding-agent sessions")
    stage.type("/compact", enter=False)
    stage.settle(1)
    stage.press("Enter")
    stage.until(lambda: any(b"CONTEXT CHECKPOINT COMPACTION" in one.body for one in stage.provider.calls), 30)
    stage.settle()
    stage.keep("compaction", "CONTEXT CHECKPOINT COMPACTION")
    stage.type(f"behind it {TAG}")
    stage.until(lambda: any(b"behind it" in one.body for one in stage.provider.calls), 30)
    stage.keep("first-after-compaction", "behind it")
    stage.close_terminal()


def copilot(stage: Stage) -> None:
    """With a model of one's own: nothing is asked of its maker."""
    chat = {
        "COPILOT_PROVIDER_BASE_URL": "https://api.openai.com/v1",
        "COPILOT_PROVIDER_API_KEY": "sk-dummy",
        "COPILOT_MODEL": "gpt-5",
    }
    claude = {"COPILOT_PROVIDER_BASE_URL": "https://api.anthropic.com", "COPILOT_MODEL": "claude-sonnet-4-5"}
    stage.env = chat
    stage.write(".github/copilot-instructions.md", f"Be brief. {EVIL}\n")
    stage.write(".github/skills/demo/SKILL.md", f"---\nname: demo\ndescription: shows {EVIL}\n---\nDo it {EVIL}\n")
    ask = ("copilot", "--allow-all-tools", "-p")
    stage.run(*ask, f"@notes.md say hi {TAG}")
    stage.keep("print")
    stage.run(*ask, f"say hi {TAG}", env={"COPILOT_PROVIDER_WIRE_API": "responses"})
    stage.keep("responses")
    stage.run(*ask, f"say hi {TAG}", env={**claude, "COPILOT_PROVIDER_TYPE": "anthropic"})
    stage.keep("messages")
    looks = {"description": "look", "prompt": f"look around {EVIL}", "agent_type": "explore", "name": "looker"}
    stage.on("delegate it", ToolUse("task", {**looks, "mode": "sync"}))
    stage.run(*ask, f"delegate it {TAG}")
    stage.keep("subagent", "look around", without="delegate it")
    stage.keep("behind-a-tool", "delegate it")
    stage.on("send it off", ToolUse("task", {**looks, "mode": "background"}))
    stage.run(*ask, f"send it off {TAG}")
    stage.keep("notification-of-a-background-agent", "has finished processing")
    stage.run(*ask, f"say hi {TAG}", "--autopilot", "--max-autopilot-continues", "1")
    stage.keep("autopilot", "You have not yet marked the task as complete")
    stage.terminal("copilot")
    stage.sees("Do you trust the files")
    stage.settle(2)
    stage.press("Enter")
    stage.sees("/ commands")
    stage.settle()
    before = len(stage.provider.calls)
    stage.type(f"look @notes.md and say hi {TAG}", enter=False)
    stage.settle(2)
    stage.press("Enter")
    stage.calls_reach(before + 1)
    stage.settle()
    stage.keep("terminal-at-file", "tagged_files")
    stage.type("!cat lib/one.py")
    stage.settle()
    stage.type(f"and now {TAG}")
    stage.calls_reach(before + 2)
    stage.settle()
    stage.keep("behind-a-shell-command", "and now")
    stage.type(f"/demo now {TAG}", enter=False)
    stage.settle(2)
    stage.press("Enter")
    stage.settle()
    stage.keep("skill", "skill-context")
    stage.type("/compact", enter=False)
    stage.settle(2)
    stage.press("Enter")
    stage.until(lambda: any(b"Please create a detailed summary" in one.body for one in stage.provider.calls), 30)
    stage.keep("compaction", "Please create a detailed summary")
    stage.settle()
    stage.type(f"behind it {TAG}")
    stage.until(lambda: any(b"behind it" in one.body for one in stage.provider.calls), 30)
    stage.keep("first-after-compaction", "behind it")
    stage.close_terminal()


def aider(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "OPENAI_API_KEY": "sk-dummy"}
    ask = ("aider", "--no-check-update", "--no-show-model-warnings", "--yes-always", "--no-stream", "--no-git", "--no-analytics")
    stage.write("test.sh", f"echo 'failed {EVIL}'; exit 1\n")
    good = "one.py\n```python\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n```\n"
    edit = "one.py\n```python\n<<<<<<< SEARCH\n=======\nx = (\n>>>>>>> REPLACE\n```\n"
    stage.on("break it", edit)
    common = ("--model", "anthropic/claude-sonnet-4-5", "--file", "one.py", "--read", "notes.md")
    stage.run(*ask, *common, "--auto-test", "--test-cmd", "sh test.sh", "--message", f"break it {TAG}")
    stage.keep("reflected-lint", "Fix any errors below")
    stage.keep("first", without="Fix any errors below")
    stage.write("one.py", "")
    stage.on("mend it", good)
    stage.run(*ask, *common, "--auto-test", "--test-cmd", "sh test.sh", "--message", f"mend it {TAG}")
    stage.keep("reflected-test", "And got this output")
    commits = tuple(word for word in ask if word != "--no-git")
    stage.write("one.py", "")
    stage.on("change it", good.replace("x = 1", f"x = 1  # {EVIL}"))
    stage.run(*commits, *common, "--message", f"change it {TAG}")
    stage.keep("commit", "one-line Git commit messages")


def cecli(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "OPENAI_API_KEY": "sk-dummy"}
    stage.write("CONVENTIONS.md", f"Be brief. {EVIL}\n")
    claude, gpt = ("--model", "anthropic/claude-sonnet-4-5"), ("--model", "openai/gpt-4o")
    quiet = ("--no-check-update", "--no-show-model-warnings", "--no-analytics", "--no-gitignore", "--yes-always")
    ask = ("cecli", *quiet, "--no-stream")
    files = ("--file", "lib/one.py", "--read", "notes.md", "--rules", "CONVENTIONS.md")
    stage.run(*ask, *claude, *files, "--message", f"say hi {TAG}")
    stage.keep("agent-with-files", "user_input")
    stage.run(*ask, *gpt, "--no-git", "--edit-format", "diff", "--message", f"say hi {TAG}")
    stage.keep("diff", "SEARCH/REPLACE")
    stage.terminal("cecli", *quiet, *claude)
    stage.sees("Type your message")
    stage.settle()
    stage.on("look at it", ToolUse("Local--Command", {"command": "cat notes.md"}))
    stage.type(f"look at it {TAG}")
    stage.until(lambda: any(b"Your original question was" in one.body for one in stage.provider.calls), 40)
    stage.settle()
    stage.keep("goes-on-by-itself", "Your original question was", without="Continue with your task")
    stage.type("/add notes.md")
    stage.settle()
    stage.type(f"and now {TAG}")
    stage.until(lambda: any(b"and now" in one.body for one in stage.provider.calls), 40)
    stage.settle()
    stage.keep("behind-an-added-file", "and now")
    stage.type("/compact")
    stage.until(lambda: any(b"Context Compaction" in one.body for one in stage.provider.calls), 40)
    stage.keep("compaction", "Context Compaction")
    stage.close_terminal()


def llm(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "OPENAI_API_KEY": "sk-dummy"}
    stage.run("llm", "-m", "gpt-4o", "-f", "notes.md", f"say hi {TAG}", timeout=60)
    stage.keep("with-fragment")


def gptme(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "OPENAI_API_KEY": "sk-dummy"}
    stage.write("fence.md", f"first\n````\n{EVIL}\n````md\n{EVIL}\n")
    ask = ("gptme", "-n", "--name")
    chat, messages = ("-m", "openai/gpt-4o"), ("-m", "anthropic/claude-sonnet-4-5")
    stage.run(*ask, "one", *chat, f"say hi {TAG}", "fence.md")
    stage.keep("with-file", "You are gptme", without="No tool call detected")
    stage.keep("goes-on-by-itself", "No tool call detected", without="concise conversation titles")
    stage.keep("title", "concise conversation titles")
    stage.run(*ask, "two", *messages, f"say hi {TAG}", "fence.md")
    stage.keep("messages-with-file", "You are gptme", without="No tool call detected")
    stage.keep("messages-title", "concise conversation titles")
    stage.terminal("gptme", *messages, "--name", "three")
    stage.sees("User:")
    stage.settle()
    stage.type(f"say hi {TAG}")
    stage.settle()
    stage.type("/compact")
    stage.until(lambda: any(b"Context budget has been reached" in one.body for one in stage.provider.calls), 30)
    stage.keep("compaction", "Context budget has been reached")
    stage.close_terminal()


def code_puppy(stage: Stage) -> None:
    """At Anthropic it passes for Claude Code."""
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy", "OPENAI_API_KEY": "sk-dummy"}
    gpt = {"type": "openai", "name": "gpt-4o", "provider": "openai", "context_length": 128000}
    claude = {"type": "anthropic", "name": "claude-sonnet-4-5", "provider": "anthropic", "context_length": 200000}
    stage.write_home(".code_puppy/extra_models.json", json.dumps({"gpt": gpt, "claude": claude}))
    stage.write_home(".code_puppy/puppy.cfg", "[puppy]\npuppy_name = Rex\nowner_name = Me\nmodel = gpt\n")
    for name, model in (("", "gpt"), ("messages-", "claude")):
        stage.run("code-puppy", "-m", model, "-p", f"say hi {TAG}")
        stage.keep(f"{name}print")
        stage.terminal("code-puppy", "-i", "-m", model)
        stage.sees(">>>")
        stage.settle()
        before = len(stage.provider.calls)
        stage.type(f"say hi {TAG}")
        stage.calls_reach(before + 3)
        stage.settle()
        stage.keep(f"{name}title", "You name coding-agent chat sessions")
        stage.keep(f"{name}looks-at-an-answer", "Decide whether the assistant")
        stage.close_terminal()


def openhands(stage: Stage) -> None:
    stage.env = {"LLM_API_KEY": "sk-dummy", "LLM_MODEL": "openai/gpt-4o", "OPENHANDS_SUPPRESS_BANNER": "1"}
    ask = ("openhands", "--override-with-envs", "--headless")
    stage.run(*ask, "-t", f"say hi {TAG}", timeout=120)
    stage.keep("task")
    stage.run(*ask, "-f", "notes.md", timeout=120)
    stage.keep("begun-with-a-file")


def deepagents_code(stage: Stage) -> None:
    stage.env = {"ANTHROPIC_API_KEY": "sk-ant-dummy"}
    ask = ("dcode", "-M", "anthropic:claude-sonnet-4-5")
    stage.run(*ask, "-q", "-n", f"say hi {TAG}")
    stage.keep("print")
    stage.terminal(*ask)
    stage.settle(8)
    for _ in range(3):  # a name, a model, a key for the search
        stage.press("Enter")
        stage.settle(3)
    before = len(stage.provider.calls)
    stage.paste(f"look at @notes.md and say hi {TAG}")
    stage.press("Enter")
    stage.calls_reach(before + 2)
    stage.settle()
    stage.keep("terminal-at-file", "Referenced Files", without="Name this coding conversation")
    stage.keep("title", "Name this coding conversation")
    stage.type("!cat lib/one.py")
    stage.settle()
    stage.type(f"and now {TAG}")
    stage.calls_reach(before + 3)
    stage.settle()
    stage.keep("behind-a-shell-command", "and now")
    stage.close_terminal()


def mini_swe_agent(stage: Stage) -> None:
    stage.env = {"OPENAI_API_KEY": "sk-dummy", "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}
    done = ToolUse("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})
    stage.on("say hi", done, times=3)
    stage.on("say hi", "there is nothing to do")
    stage.run("mini", "-m", "openai/gpt-4o", "-y", "--exit-immediately", "-t", f"say hi {TAG}")
    stage.keep("task", without="Tool call error")
    stage.keep("behind-an-answer-without-a-call", "Tool call error")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A client's package, and what is done with it."""

    package: str
    play: Callable[[Stage], None]
    python: tuple[str, ...] = ()
    """Packages beside it, where it comes from the Python index."""


CLIENTS: Mapping[str, Recorded] = {
    "claude-code": Recorded("@anthropic-ai/claude-code", claude_code),
    "codex": Recorded("@openai/codex", codex),
    "gemini-cli": Recorded("@google/gemini-cli", gemini_cli),
    "qwen-code": Recorded("@qwen-code/qwen-code", qwen_code),
    "opencode": Recorded("opencode-ai", opencode),
    "cline": Recorded("cline", cline),
    "continue-cn": Recorded("@continuedev/cli", continue_cn),
    "pi": Recorded("@mariozechner/pi-coding-agent", pi),
    "kimi-code": Recorded("@moonshot-ai/kimi-code", kimi_code),
    "kilo": Recorded("@kilocode/cli", kilo),
    "vibe": Recorded("mistral-vibe", vibe, python=("mistral-vibe",)),
    "copilot": Recorded("@github/copilot", copilot),
    "aider": Recorded("aider-chat", aider, python=("aider-chat",)),
    "cecli": Recorded("cecli-dev", cecli, python=("cecli-dev",)),
    "gptme": Recorded("gptme", gptme, python=("gptme",)),
    "code-puppy": Recorded("code-puppy", code_puppy, python=("code-puppy",)),
    "openhands": Recorded("openhands", openhands, python=("openhands",)),
    "deepagents-code": Recorded("deepagents-code", deepagents_code, python=("deepagents-code",)),
    "mini-swe-agent": Recorded("mini-swe-agent", mini_swe_agent, python=("mini-swe-agent", "mcp")),
    "llm": Recorded("llm", llm, python=("llm", "llm-anthropic", "llm-gemini")),
}
