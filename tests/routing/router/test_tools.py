"""Tool calls sorted by what they do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecodex.routing.router.tools import ToolCategory, categorize, shell_category, strongest
from routecodex.routing.values import ToolCall

WEB, READ, WRITE, SEARCH, OTHER = ToolCategory


@pytest.mark.parametrize(
    "command, category",
    [
        ("rg foo | head", SEARCH),
        ("cat a.txt", READ),
        ("sed -n 1,5p x", READ),
        ("sed -i s/a/b/ x", WRITE),
        ("ls -la", SEARCH),
        ("cd x && rg foo", SEARCH),
        ("python - <<'EOF'\nprint(1)\nEOF", WRITE),
        ("cat <<EOF > a\nrg\nEOF", WRITE),
        ("cat <<< x", READ),
        ("echo hi > f", WRITE),
        ("echo hi>>f", WRITE),
        ("cmd 2>/dev/null", OTHER),
        ("rg foo >/dev/null 2>&1", SEARCH),
        ("grep x 2>&1 | tail", SEARCH),
        ("grep '>' x", SEARCH),
        ('grep "a > b; touch c" x', SEARCH),
        ("sudo -u me FOO=1 git -C d commit -m x", WRITE),
        ("git log --oneline", SEARCH),
        ("git --no-pager blame x", SEARCH),
        ("git status", OTHER),
        ("git rebase main", WRITE),
        ("bd search open", SEARCH),
        ("bd list", OTHER),
        ("timeout 10 rg x", SEARCH),
        ("env A=1 B=2 nohup time cat x", READ),
        ("bash -lc 'rg foo'", SEARCH),
        ("time bash -c \"sh -c 'touch x'\"", WRITE),
        ("/usr/bin/find . -name '*.py' | xargs grep foo", SEARCH),
        ("make 2>&1 | tail -5", OTHER),
        ("cat a | tee b", WRITE),
        ("npm install x", WRITE),
        ("npm test", OTHER),
        ("python -m pip install y", WRITE),
        ("make install", WRITE),
        ("make", OTHER),
        ("cargo test", OTHER),
        ("ls\napply_patch x", WRITE),
        ("echo 'unclosed", OTHER),
        ("powershell.exe -Command Get-Content x", READ),
        ("", OTHER),
        ("&& ; | >", WRITE),
    ],
)
def test_shell_command(command: str, category: ToolCategory) -> None:
    assert shell_category(command) is category


@pytest.mark.parametrize(
    "name, arguments, category",
    [
        ("Read", "{}", READ),
        ("Edit", "{}", WRITE),
        ("MultiEdit", "{}", WRITE),
        ("NotebookEdit", "{}", WRITE),
        ("apply_patch", "*** Begin Patch", WRITE),
        ("Glob", "{}", SEARCH),
        ("list_directory", "{}", SEARCH),
        ("WebFetch", "{}", WEB),
        ("google_web_search", "{}", WEB),
        ("mcp__fs__read_text_file", "{}", READ),
        ("mcp__notes__save_note", "{}", WRITE),
        ("readfile", "{}", READ),
        ("TodoWrite", "{}", OTHER),
        ("update_plan", "{}", OTHER),
        ("write_stdin", "{}", OTHER),
        ("Agent", "{}", OTHER),
        ("ready_check", "{}", OTHER),
        ("Bash", '{"command":"rg x"}', SEARCH),
        ("shell", '{"command":["bash","-lc","cat \'a b\' && git add x"]}', WRITE),
        ("exec_command", '{"cmd":"cat x"}', READ),
        ("bash", "cat x", READ),
        ("bash", '{"command":', OTHER),
        ("bash", '{"command":{"a":1}}', OTHER),
        ("bash", '{"command":"\ud800 cat"}', OTHER),
        ("bash", "[" * 20_000, OTHER),
        ("", "", OTHER),
    ],
)
def test_tool(name: str, arguments: str, category: ToolCategory) -> None:
    assert categorize(name, arguments) is category


@pytest.mark.parametrize(
    "names, category",
    [
        ((), None),
        (("Agent",), OTHER),
        (("Grep", "Agent"), SEARCH),
        (("Grep", "Edit"), WRITE),
        (("Edit", "Read"), READ),
        (("Read", "WebSearch"), WEB),
    ],
)
def test_the_strongest_call_stands_for_all(names: tuple[str, ...], category: ToolCategory | None) -> None:
    assert strongest(ToolCall("1", name, "{}") for name in names) is category


@given(
    st.text(),
    st.text() | st.builds(json.dumps, st.dictionaries(st.sampled_from(["command", "cmd"]), st.text() | st.lists(st.text()))),
)
def test_any_call_has_a_category(name: str, arguments: str) -> None:
    """A shell's by its command alone, whatever it is called; any other tool's by its name alone."""
    if categorize(name, '{"command": "cat x"}') is categorize(name, '{"command": "rm x"}'):  # no shell
        assert categorize(name, arguments) is categorize(name, "")
    assert len({categorize(shell, arguments) for shell in ("bash", "shell", "mcp__own__Exec")}) == 1
