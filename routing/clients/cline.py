"""Cline: files and pages follow the person's text in wrappers; older versions put that text itself in one."""

from __future__ import annotations

from .client import Client

CLINE = Client(
    name="cline",
    title="cline",
    tried="3.0.65",
    # How it is recognised
    introductions=("you are cline,",),
    # Which text a person typed
    wrappers=(
        *("file_content", "folder_content", "url_content", "environment_details", "explicit_instructions", "hook_context"),
        *("problems_content", "workspace_diagnostics", "git_working_state", "git_commit", "terminal_output", "mcp_resource"),
        *("file_mentions", "final_file_content", "mode_notice"),
    ),
    repeats=("user_command",),
    typed_in=("task", "feedback", "answer", "user_message", "user_input", "new_message"),
    sentences=(
        "[task resumption]",
        "[error]",
        "note: you made previous changes",
    ),
    behind=("\n[read_file for ", "\n[use_mcp_tool for ", "\n[execute_command for ", "\n[list_files for ", "\n[search_files for "),
    # How it repeats the history
    history="as it was",
    # What it bears
    waits_s=300.0,
    # What brings it to the proxy
    programs=("cline",),
)
