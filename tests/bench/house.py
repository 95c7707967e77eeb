"""The house in numbers, of one tree or of several: `python -m tests.bench.house [TREE…]` (without any: this one).

*Lines* of the answer side at equal function: what read and wrote answers before they were one machine, and what does so now; what
answers can do today and could not then is counted apart (`BROUGHT`).
*One traced call*: a Messages client, a Chat provider whose first key fails, stopMessage and clock on, two rounds of two pieces of
text each: how many calls of our functions, how many JSON parses, how often execution passes from one of our files to another.
Some of our functions stand where mitmproxy's own would be called (`quick_…`): so the same is told of both together.
A tree is a checkout of any commit: `git worktree add ../before c221ee6`.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import io
import json
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.load import GO_ON
from tests.rig.behaviour import Behaviour
from tests.rig.client import Http1, Route
from tests.rig.provider import FakeProvider
from tests.rig.proxy import ROOT, Mitmdump
from tests.rig.reply import Reply

ANSWER_SIDE = (
    "routing/dialects/answer",
    "routing/dialects/answers",
    "routing/dialects/merging",
    "routing/dialects/translation/hearing",
    "routing/dialects/translation/telling",
    *(f"routing/turn/{name}.py" for name in ("edges", "forms", "left_out", "peek", "so_far", "terminal")),
    "routing/dialects/calls/without_tools.py",
)
"""The packages that go, what takes their place, and the tables per dialect that stood outside `dialects`."""
ELSEWHERE = ("routing/dialects/translation/coming_down.py", "routing/turn/said.py")
"""What of the answer side stood in rooms that stayed: not counted, but told."""


@dataclass(frozen=True)
class Brought:
    """What an issue brought in that answers could not do before. `modules` hold nothing else, `whole` are functions and classes
    (`file:Class.function`) that do nothing else; elsewhere the lines and `case`s that speak of it by one of its `names`."""

    what: str
    modules: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


BROUGHT = (
    Brought(
        "sources of a text, and what tools of the provider's did, told in other dialects; what has no place is named",
        ("beside.py", "chat/abroad.py", "messages/abroad.py", "gemini/abroad.py", "responses/abroad.py"),
        (
            "events.py:Cited",
            "events.py:Lost",
            "join.py:Join._placed",
            "join.py:Join._contents",
            "machine.py:Answer.left_out",
            "written.py:Document._lose",
            "chat/history.py:annotation",
            "chat/write.py:_Writer._name_lost",
            "chat/write.py:Whole._lose",
            "chat/write.py:Writer._cite",
            "messages/history.py:citation",
            "messages/history.py:served",
            "messages/history.py:_SERVED",
            "messages/write.py:_Writer._name_lost",
            "messages/write.py:Whole._lose",
            "messages/write.py:Writer._cite",
            "messages/write.py:Writer._trace",
            "gemini/write.py:_Writer._name_lost",
            "gemini/write.py:Whole._lose",
            "responses/history.py:served",
            "responses/write.py:_Writer._cite",
            "responses/write.py:_Writer._write_trace",
        ),
        (
            *("Cited", "Citation", "Lost", "LeftOut", "Trace", "Feature", "left_out", "cited", "citation", "trace", "served"),
            *("name_media", "name_tool", "abroad", "_abroad", "_lose", "_name_lost", "_cite", "_trace", "_cited"),
        ),
    ),
    Brought(
        "a key that its provider repeats over several events is masked",
        ("echoes.py", "kept.py"),
        (
            "machine.py:Answer.due",
            "machine.py:Answer.tick",
            "stream.py:Source._tell_newest",
        ),
        ("Echoes", "echoes", "_echoes", "secrets", "_secrets", "_tell_newest", "texts_behind", "_told", "_long", "_marker"),
    ),
    Brought("a conversation is compacted in words", ("responses/compaction.py",), (), ("Summary", "NOTHING", "compacts")),
    Brought(
        "a line of ours stands before the first text",
        (),
        ("machine.py:Answer.notice_sent",),
        ("notice", "_notice", "notice_sent"),
    ),
    Brought(
        "a count that we ask for stays with us; counts of tokens are no answer",
        ("counting.py",),
        ("stream.py:without_empty_count", "machine.py:_only_counts"),
        ("hides_count", "strips", "counting", "without_empty_count", "_only_counts", "_COUNTS", "_NO_COUNT"),
    ),
    Brought(
        "Google's thoughts in Chat's texts, signatures of whole messages",
        (),
        ("chat/read.py:Reader._sign",),
        ("MARKED", "_MARK", "_MARK_END", "marked", "_sign", "_signed", "signed"),
    ),
    Brought(
        "half a call, which an answer was cut off in, is told as none: nobody may run it",
        (),
        (
            "said.py:Content._is_half",
            "said.py:Content.settle",
            "said.py:Content.leaves_out",
            "events.py:Block.is_nobodys",
            "join.py:Join._is_half",
            "join.py:Join._broke_off_unread",
        ),
        ("half", "_is_half", "settle", "is_nobodys", "leaves_out", "as_document", "is_cut", "_broke_off_unread"),
    ),
    Brought("an error object that says nothing is none, and is taken out", (), (), ("without_empty_error", "settled")),
    Brought(
        "what is no UTF-8 is made it; half an event of a translated stream is an error; nothing passes behind the end",
        (),
        ("stream.py:Source._word",),
        ("as_utf8", "mended", "_said_all", '"behind"'),
    ),
    Brought(
        "what Copilot and Bedrock part or number in their own ways, calls that never say whose they are, lists with numbers",
        (),
        (
            "chat/read.py:_with_calls",
            "chat/write.py:Writer._listed",
            "responses/read.py:Reader._same_part",
            "serial.py:_Waiting.is_somebodys",
        ),
        ("_with_calls", "_listed", "_lists", "_same_part", "_counts_on", "is_somebodys"),
    ),
    Brought(
        "lists of sources beside Chat's choices",
        (),
        ("chat/write.py:_beside_choices",),
        ("SOURCES", "_beside", "_beside_choices"),
    ),
)

CONFIG = """
virtualrouter:
  providers:
    glm:
      protocol: openai-chat
      baseURL: https://glm.example/v1
      auth: {type: apikey, keys: [{alias: a, value: key-of-glm-a}, {alias: b, value: key-of-glm-b}]}
      models: {m: {}}
  routing: {default: [glm.m]}
  clock: {enabled: true, ntp: {enabled: false}}
"""
TRACE = Path(__file__).with_name("trace.py")


def lines(tree: Path) -> dict[str, int]:
    """Of what is left in this tree."""
    counted = {place: sum(_lines_of(tree / place)) for place in ANSWER_SIDE}
    return {place: count for place, count in counted.items() if count}


def brought(tree: Path) -> dict[str, int]:
    """Lines of what was not there before there was one machine; each counts once."""
    room = tree / "routing/dialects/answer"
    sources = {str(path.relative_to(room)): path.read_text(encoding="utf-8") for path in sorted(room.rglob("*.py"))}
    known = {f"{file}:{name}" for file, source in sources.items() for name in _defined(source)} if sources else None
    counted: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for one in BROUGHT:
        gone = [name for name in (*one.modules, *one.whole) if known is not None and name not in known and name not in sources]
        assert not gone, f"{one.what}: {gone} are not there any more"
        found = {(file, line) for file, source in sources.items() for line in _speaking(one, file, source)} - seen
        counted[one.what] = len(found)
        seen |= found
    return counted if sources else {}


def code(tree: Path) -> int:
    """Without blank lines, comments, docstrings and imports."""
    return sum(_code_of(path) for place in ANSWER_SIDE for path in _files_of(tree / place))


def _code_of(path: Path) -> int:
    source = path.read_text(encoding="utf-8")
    beside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        told = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if told or isinstance(node, ast.Import | ast.ImportFrom):
            beside |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(map(str.strip, source.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and number not in beside for number, line in lines)


@functools.cache
def _defined(source: str) -> dict[str, tuple[int, int]]:
    """Functions, classes and names of a module: from which line to which."""
    found: dict[str, tuple[int, int]] = {}

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            first, last = node.lineno, node.end_lineno or node.lineno
            match node:
                case ast.FunctionDef(name=name, decorator_list=decorators) | ast.ClassDef(name=name, decorator_list=decorators):
                    found[prefix + name] = min([first, *(one.lineno for one in decorators)]), last
                    if isinstance(node, ast.ClassDef):
                        look(node.body, f"{prefix}{name}.")
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    found[prefix + name] = first, last

    look(ast.parse(source).body, "")
    return found


def _speaking(one: Brought, file: str, source: str) -> set[int]:
    if file in one.modules:
        return set(range(1, source.count("\n") + 1))
    defined = _defined(source)
    spans = [defined[name.partition(":")[2]] for name in one.whole if name.startswith(f"{file}:")]
    told = {line for word, line in _words(source) if word in one.names}
    for node in _imports_and_cases(source):
        if isinstance(node, ast.ImportFrom):
            if node.lineno == node.end_lineno and not {imported.name for imported in node.names} <= set(one.names):
                told.discard(node.lineno)  # it would stand there without, too
        elif told & set(range(node.pattern.lineno, (node.pattern.end_lineno or 0) + 1)):
            alternatives = node.pattern.patterns if isinstance(node.pattern, ast.MatchOr) else [node.pattern]
            if all(any(name in ast.unparse(each) for name in one.names) for each in alternatives):
                spans.append((node.pattern.lineno, node.body[-1].end_lineno or node.body[-1].lineno))
    return told | {line for first, last in spans for line in range(first, last + 1)}


@functools.cache
def _words(source: str) -> list[tuple[str, int]]:
    return [(token.string, token.start[0]) for token in tokenize.generate_tokens(io.StringIO(source).readline)]


@functools.cache
def _imports_and_cases(source: str) -> list[ast.ImportFrom | ast.match_case]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom | ast.match_case)]


def _files_of(place: Path) -> Iterator[Path]:
    return place.rglob("*.py") if place.is_dir() else place.parent.glob(place.name)


def _lines_of(place: Path) -> Iterator[int]:
    return (path.read_bytes().count(b"\n") for path in _files_of(place))


def traced(tree: Path) -> dict[str, Any]:
    """The least of three: a busy machine looks anew at what it looks at after a while."""
    return min((_traced_once(tree) for _ in range(3)), key=lambda counted: counted["function calls"])


def _traced_once(tree: Path) -> dict[str, Any]:
    """What `trace.py` counted of the third such call: by then nothing is met for the first time."""
    scripts = (tree / "addons" / "routecodex.py", TRACE)
    with (
        FakeProvider() as provider,
        Mitmdump(script=scripts, config=CONFIG, upstream=provider, env={"ROUTECODEX_TRACED": str(tree)}) as proxy,
    ):
        return asyncio.run(_traced(proxy, provider))


async def _traced(proxy: Mitmdump, provider: FakeProvider) -> dict[str, Any]:
    said = [Behaviour(reply=Reply((f"round {number}", " ends"))) for number in (1, 2)]
    for session in ("one", "two"):
        provider.enqueue(*said)
        await _call(proxy, session)
    await _switch(proxy, "/on")
    provider.enqueue(Behaviour(status=503), *said)
    answer = await _call(proxy, "three")
    counted: dict[str, Any] = json.loads(await _switch(proxy, "/off"))
    assert b"round 1" in answer, answer
    assert b"round 2" in answer, answer
    assert len(provider.calls) == 2 + 2 + 3, [call.raw[:200] for call in provider.calls]
    return counted


async def _call(proxy: Mitmdump, session: str) -> bytes:
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1024,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": GO_ON}]}],
    }
    headers = (("x-api-key", "sk-ant-bench"), ("x-claude-code-session-id", session), ("content-type", "application/json"))
    async with Http1(Route("https://api.anthropic.com", proxy)) as client:
        answer = await client.send("POST", "/v1/messages", headers=headers, body=body)
    return answer.body


async def _switch(proxy: Mitmdump, path: str) -> bytes:
    async with Http1(Route("http://trace.invalid", proxy)) as client:
        return (await client.send("GET", path)).body


def told(tree: Path) -> str:
    counted, trace, more = lines(tree), traced(tree), brought(tree)
    rows = [f"== {tree}", f"{sum(counted.values()):7,} lines of the answer side"]
    rows += [f"{count:11,} {place}" for place, count in counted.items()]
    rows.append(f"{code(tree):7,} of them are code: no blank line, comment, docstring or import")
    if elsewhere := sum(count for place in ELSEWHERE for count in _lines_of(tree / place)):
        rows.append(f"{elsewhere:7,} more lines of it stand in rooms that have other things to do, and are not counted")
    if more:
        rows.append(
            f"{sum(counted.values()) - sum(more.values()):7,} of them for what it could do before; the rest was brought in:"
        )
        rows += [f"{count:11,} {what}" for what, count in more.items()]
    rooms = trace.pop("calls by room")
    rows += [f"{count:7,} {name} of one traced call" for name, count in trace.items()]
    rows += [f"{count:11,} calls in {room}" for room, count in rooms.items()]
    return "\n".join(rows)


def main(trees: Sequence[str]) -> None:
    for tree in trees or (str(ROOT),):
        print(told(Path(tree).resolve()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
