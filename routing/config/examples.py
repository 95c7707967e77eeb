"""The examples of the shipped configuration: found in its text, and taken out of their comments.

Only text is edited: every other line stays as it is, its spacing and its ends of lines too. Whoever writes what comes of it
reads it first.
"""

from __future__ import annotations

import re

from msgspec import Struct

_TITLE = re.compile(r"(?P<indent>[ ]*)# --- example")
_NAME = re.compile(r"(?P<indent>[ ]*)# (?P<name>[A-Za-z0-9_-]+):\s*")
_COMMENT = re.compile(r"(?P<indent>[ ]*)# ?(?P<rest>.*)", re.S)
_PROVIDERS = re.compile(r"(?P<indent>[ ]+)providers:[ ]*(?:#.*)?")
_KEYS = re.compile(r"keys: \[(?P<keys>.*)\]")
_VALUE = re.compile(r'"\$\{(?P<variable>[A-Za-z_]\w*)\}"')


class NoExample(Exception):
    """There is none of that name, or no place for it; the message says which."""


class Example(Struct, frozen=True):
    name: str
    start: int
    end: int
    """Lines, from 0."""


def examples(text: str) -> dict[str, Example]:
    """Those of providers: a comment that begins with a title, then `# name:` and what is indented below it."""
    lines = text.splitlines(keepends=True)
    found: dict[str, Example] = {}
    for place, line in enumerate(lines):
        if _TITLE.match(line) is None or place + 1 >= len(lines):
            continue
        named = _NAME.fullmatch(lines[place + 1])
        if named is None:
            continue
        end = place + 2
        while end < len(lines) and re.match(rf"{named['indent']}#   ", lines[end]):
            end += 1
        if end > place + 2 and any("protocol:" in body for body in lines[place + 2 : end]):
            found.setdefault(named["name"], Example(named["name"], place + 1, end))
    return found


def uncommented(text: str, example: Example, key_files: list[str]) -> list[str]:
    """The example's lines as YAML; with key files, its keys come from these and there are as many."""
    lines = text.splitlines(keepends=True)[example.start : example.end]
    bare = [f"{match['indent']}{match['rest']}" for line in lines if (match := _COMMENT.fullmatch(line)) is not None]
    return [_with_keys(line, key_files) for line in bare] if key_files else bare


def added(text: str, name: str, shipped: str, key_files: list[str]) -> str:
    """`text` with the provider of that name: its own example out of the comment, else the shipped one put in."""
    own = examples(text).get(name)
    if own is not None:
        lines = text.splitlines(keepends=True)
        return "".join([*lines[: own.start], *uncommented(text, own, key_files), *lines[own.end :]])
    known = examples(shipped)
    if name not in known:
        raise NoExample(f"there is no example {name} (there are: {', '.join(known)})")
    lines = text.splitlines(keepends=True)
    places = [(place, match) for place, line in enumerate(lines) if (match := _PROVIDERS.fullmatch(line.rstrip("\r\n")))]
    if len(places) != 1:
        raise NoExample("the file has no line `providers:` of its own below virtualrouter, under which it could be put")
    place, match = places[0]
    ending = "\r\n" if lines[place].endswith("\r\n") else "\n"
    block = [f"{line.rstrip()}{ending}" for line in uncommented(shipped, known[name], key_files)]
    usual = len(block[0]) - len(block[0].lstrip())
    wanted = _indent_below(lines, place, len(match["indent"]))
    moved = [" " * max(0, wanted + len(line) - len(line.lstrip()) - usual) + line.lstrip() for line in block]
    head = lines[place] if lines[place].endswith("\n") else lines[place] + ending
    return "".join([*lines[:place], head, *moved, *lines[place + 1 :]])


def variables(lines: list[str]) -> list[str]:
    """Those that an example names."""
    return [match["variable"] for line in lines for match in _VALUE.finditer(line)]


def _with_keys(line: str, key_files: list[str]) -> str:
    keys = _KEYS.search(line)
    if keys is None:
        return line
    aliases = re.findall(r"alias: ([A-Za-z0-9_-]+)", keys["keys"])
    names = [aliases[place] if place < len(aliases) else f"key{place + 1}" for place in range(len(key_files))]
    listed = ", ".join(f"{{alias: {name}, value: {_quoted(path)}}}" for name, path in zip(names, key_files, strict=True))
    return f"{line[: keys.start()]}keys: [{listed}]{line[keys.end() :]}"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"${{file:{escaped}}}"'


def _indent_below(lines: list[str], place: int, above: int) -> int:
    """As the providers that are there stand; two more than their heading where none is."""
    for line in lines[place + 1 :]:
        bare = line.strip()
        if bare and not bare.startswith("#"):
            indent = len(line) - len(line.lstrip())
            return indent if indent > above else above + 2
    return above + 2
