"""What kind of work a tool call was: reading, writing, searching, the web, or something else.

1. A shell tool is judged by the command it was given, never by its own name.
2. Whatever the arguments hold, the answer is a category: broken JSON and broken quoting are `OTHER`, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from ..errors import BadCall
from ..jsonbytes import loads
from ..values import ToolCall


class ToolCategory(StrEnum):
    """In the order in which one answer's calls outrank each other."""

    WEB = "web"
    READ = "read"
    WRITE = "write"
    SEARCH = "search"
    OTHER = "other"


WEB, READ, WRITE, SEARCH, OTHER = ToolCategory

ALWAYS_DECLARED = frozenset({"exec_command"})
"""Codex declares it in every call, so it says nothing about the call."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SHELLS = _set(
    "shell shell_command bash exec exec_command local_shell container.exec run_shell_command run_terminal_cmd run_command "
    "execute_command execute_shell terminal powershell"
)

_NAMED: dict[str, ToolCategory] = {
    name: category
    for category, names in {
        WEB: "websearch web_search webfetch web_fetch google_web_search googlesearch google_search web_search_preview "
        "url_context web_search_20250305 browser_search fetch_url",
        READ: "read read_file read_files readfile view view_file open_file read_many_files notebookread",
        WRITE: "edit write multiedit multi_edit apply_patch applypatch write_file create_file str_replace_editor "
        "str_replace_based_edit_tool notebookedit replace",
        SEARCH: "search_files find_files code_search codebase_search list_directory list_files list_dir list ls glob grep "
        "grep_search file_search",
        # Plans and notes of the tool itself: their names speak of writing, but no file is touched.
        OTHER: "update_plan update_topic todowrite todo_write todoread todo_read write_todos taskcreate taskupdate write_stdin",
    }.items()
    for name in names.split()
}

_WORDS: tuple[tuple[ToolCategory, frozenset[str]], ...] = (
    (WEB, frozenset({"websearch", "webfetch", "web"})),
    (READ, _set("read view download open show fetch inspect")),
    (WRITE, _set("write patch modify edit create update append replace save")),
    (SEARCH, _set("search find grep glob lookup locate")),
)

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_LIMIT = 200
_COMMAND_LIMIT = 4000


def categorize(name: str, arguments: str) -> ToolCategory:
    """The category of one tool call."""
    name = name[:_NAME_LIMIT].rsplit("__", 1)[-1]
    lowered = name.lower()
    if lowered in _SHELLS:
        return shell_category(_command(arguments))
    if lowered in _NAMED:
        return _NAMED[lowered]
    words = [word.lower() for word in _WORD.findall(name)]
    for category, keywords in _WORDS:
        if not keywords.isdisjoint(words):
            return category
    if len(words) == 1:
        for category, keywords in _WORDS:
            if words[0].startswith(tuple(keywords)):
                return category
    return OTHER


def strongest(calls: Iterable[ToolCall]) -> ToolCategory | None:
    """The category that stands for all calls of one assistant message."""
    found = {categorize(call.name, call.arguments) for call in calls}
    return next((category for category in ToolCategory if category in found), None)


def _command(arguments: str) -> str:
    """The command line in a shell tool's arguments: a string, or a list as for `execvp`."""
    try:
        value = loads(arguments.encode("utf-8", "surrogatepass"))
    except BadCall:
        return arguments[:_COMMAND_LIMIT]
    if isinstance(value, dict):
        named = (value.get(key) for key in ("command", "cmd", "script", "input"))
        value = next((found for found in named if isinstance(found, str | list)), "")
    if isinstance(value, list):
        return " ".join(_quoted(word) for word in value[:64] if isinstance(word, str))[: 2 * _COMMAND_LIMIT]
    return value[:_COMMAND_LIMIT] if isinstance(value, str) else ""


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


_PROGRAMS: dict[str, ToolCategory] = {
    program: category
    for category, programs in {
        READ: "cat head tail awk less more nl bat sed jq wc get-content",
        SEARCH: "rg grep egrep fgrep ag find fd ls tree select-string get-childitem dir",
        WRITE: "apply_patch applypatch tee touch patch cp mv rm mkdir ln set-content add-content new-item",
    }.items()
    for program in programs.split()
}
_INSTALLERS = _set("npm pnpm yarn pip pip3 uv brew cargo go make apt apt-get")
_SUBCOMMANDS: dict[tuple[str, str], ToolCategory] = {
    (program, word): category
    for program, category, words in (
        ("git", SEARCH, "grep log blame"),
        ("git", READ, "show diff"),
        ("git", WRITE, "add commit apply am rebase checkout merge"),
        ("bd", SEARCH, "search"),
        *((installer, WRITE, "install add i ci get update upgrade uninstall remove") for installer in _INSTALLERS),
    )
    for word in words.split()
}
_WRAPPERS: dict[str, frozenset[str]] = {
    "sudo": frozenset({"-u", "-g"}),
    "env": frozenset({"-u", "-C"}),
    "nice": frozenset({"-n"}),
    "timeout": frozenset({"-s", "-k"}),
    **dict.fromkeys(_set("time nohup command builtin exec stdbuf xargs then do else if while !"), frozenset[str]()),
}
"""Words before the real command, each with its options that take a value."""
_SUBSHELLS = frozenset({"bash", "sh", "zsh", "dash", "powershell", "pwsh", "cmd"})
_NESTING_LIMIT = 3
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NOWHERE = frozenset({"/dev/null", "/dev/stderr", "/dev/stdout", "$null", "nul"})


def shell_category(command: str, depth: int = 0) -> ToolCategory:
    """What a command line does: writing outranks all else in it, then its first telling command counts."""
    found: list[ToolCategory] = []
    for words, piped in _commands(_tokens(command[:_COMMAND_LIMIT])):
        category = _simple_command(words, depth)
        # What a pipe feeds only shapes the output (`rg x | head`), unless it writes (`| tee`).
        if category is not OTHER and (category is WRITE or not piped):
            found.append(category)
    return WRITE if WRITE in found else found[0] if found else OTHER


_TOKEN = re.compile(r"""(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;&|<>()'"\\])+)|(?P<sign>[;&|<>()\n]+)""", re.DOTALL)
_QUOTED = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""", re.DOTALL)


def _tokens(command: str) -> list[tuple[str, bool]]:
    """Words without their quotes, and signs (`&&`, `>`) marked True. A quote never closed is left out."""
    return [
        (match["sign"], True)
        if match["sign"]
        else (_QUOTED.sub(lambda quoted: quoted[quoted.lastindex or 0], match["word"]), False)
        for match in _TOKEN.finditer(command)
    ]


def _commands(tokens: list[tuple[str, bool]]) -> Iterable[tuple[list[str], bool]]:
    """The simple commands, each with whether a pipe feeds it. A redirect into a file reads as one more command, `tee`."""
    words: list[str] = []
    piped = redirected = False
    for place, (token, is_sign) in enumerate(tokens):
        if not is_sign:
            if not redirected:
                words.append(token)
            redirected = False
        elif "<" in token or ">" in token:
            following = tokens[place + 1][0] if place + 1 < len(tokens) else ""
            here_document = "<<" in token and "<<<" not in token
            to_file = ">" in token and not token.endswith("&") and following.lower() not in _NOWHERE
            if to_file or here_document:
                yield ["tee"], False
            if here_document:
                break
            redirected = True
        else:
            yield words, piped
            words, piped = [], token == "|"
    yield words, piped


def _simple_command(words: list[str], depth: int) -> ToolCategory:
    words = _unwrapped(words)
    if not words:
        return OTHER
    program = re.split(r"[/\\]", words[0])[-1].lower().removesuffix(".exe")
    arguments = words[1:]
    if program in _SUBSHELLS:
        inner = next((place for place, word in enumerate(arguments) if word.lower() in _COMMAND_FLAGS), None)
        if inner is None or depth >= _NESTING_LIMIT:
            return OTHER
        return shell_category(" ".join(arguments[inner + 1 : inner + 2] or [""]), depth + 1)
    if program.startswith("python") and arguments[:1] == ["-m"]:
        return _simple_command(arguments[1:], depth)
    if program == "sed" and any(word.startswith(("-i", "--in-place")) for word in arguments):
        return WRITE
    if program in _PROGRAMS:
        return _PROGRAMS[program]
    return _SUBCOMMANDS.get((program, _subcommand(program, arguments)), OTHER)


_COMMAND_FLAGS = frozenset({"-c", "-lc", "-ic", "-lic", "-command", "/c"})


def _unwrapped(words: list[str]) -> list[str]:
    """Without `VAR=x`, `sudo -u me`, `timeout 10` and the like in front."""
    place = 0
    wrapper: frozenset[str] | None = None
    while place < len(words):
        word = words[place]
        if word in _WRAPPERS:
            wrapper = _WRAPPERS[word]
        elif wrapper is not None and word in wrapper:
            place += 1
        elif not (_ASSIGNMENT.match(word) or (wrapper is not None and (word.startswith("-") or word[:1].isdigit()))):
            break
        place += 1
    return words[place:]


def _subcommand(program: str, arguments: list[str]) -> str:
    takes_value = {"-C", "-c"} if program == "git" else set[str]()
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word in takes_value:
            skip = True
        elif not word.startswith("-"):
            return word
    return ""
