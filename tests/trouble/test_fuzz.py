"""Any bytes to each parser: a value, or an error that has a name. Real samples, spoiled, and bytes that nobody wrote.

The short profile searches with Hypothesis, which makes a failure small; the long one tries a hundred thousand for each parser,
made by chance from a seed that is told.

What has searches of its own is not tried again here: translation (`test_spoiled_translations.py`), HTTP/1 on the wire
(`test_trailers.py`), configurations with known keys (`tests/routing/config/test_garbage.py`).
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routecodex.addons import hello
from routecodex.routing import codings, config, jsonbytes
from routecodex.routing import headers as fields
from routecodex.routing.clock.offset import from_bytes
from routecodex.routing.clock.record import read_record, write_record
from routecodex.routing.clock.tasks import Task
from routecodex.routing.codex.conversation import Conversation, Past, Post
from routecodex.routing.codex.telling import Telling
from routecodex.routing.config.secrets import look_beside
from routecodex.routing.control.moving import read_lines, to_line
from routecodex.routing.control.overlay import Overlay
from routecodex.routing.control.verbs import Served, verb_of
from routecodex.routing.dialects.calls import read_call
from routecodex.routing.dialects.endpoints import endpoint_of
from routecodex.routing.dialects.failures import failure_of_page, read_failure
from routecodex.routing.dialects.sse import ArrayItems, Events
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.masking import Mask
from routecodex.routing.sessions.state import EMPTY
from routecodex.routing.sessions.store import FileStore, SessionKey, StateForm
from routecodex.routing.storage.contract import Key, Kind, Put
from routecodex.routing.tags.grammar import parse
from routecodex.routing.tags.scan import find_tags, in_code, strip
from routecodex.routing.turn.hidden_store import HiddenStore
from routecodex.routing.usage.flight import FlightRecorder, Flown
from routecodex.routing.usage.prefix import text_at
from routecodex.routing.usage.spending import Tokens
from routecodex.routing.values import Dialect, Endpoint, Target
from routecodex.routing.window.page import answer_lines, request_lines
from tests.conftest import LONG
from tests.rig.proxy import ROOT
from tests.routing.clock.test_tool import ITEM, Model
from tests.routing.dialects.answer.own import answer_for
from tests.routing.dialects.calls.recorded import CALLS
from tests.routing.dialects.translation.vendor_streams import hand_made
from tests.routing.house import House
from tests.sheet import seen
from tests.system.test_encodings import PACKERS
from tests.system.tool import write

ASKED = 100_000
SCALED = {"configuration": 10_000, "files of state": 20_000, "in a cache": 5_000, "shown": 20_000}
"""A whole configuration takes some milliseconds, files take a disk, what is shown is written line by line: all of them would take
longer than all others together."""
EXAMPLES = 25
KEY = SessionKey("session", "abc")
SECRET = "sk-a-secret-of-somebody-1234"
_ODD = [
    b"\x00",
    b"\xff",
    b"\n\n",
    b"\r",
    b'"',
    b"\\u",
    b"\\ud83d",
    b"{",
    b"[",
    b"]",
    b"}",
    b",",
    b":",
    b"null",
    b"1e999",
    b"<**",
    b"**>",
    b"9" * 30,
]


@st.composite
def spoiled(draw: st.DrawFn, samples: tuple[bytes, ...]) -> bytes:
    """One of the samples with some places changed, or bytes of no kind at all."""
    data = draw(st.sampled_from(samples) | st.binary(max_size=40))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(data))))
        piece = draw(st.sampled_from(_ODD) | st.binary(max_size=4))
        cut = draw(st.sampled_from([0, 1, 2, len(piece), 40]))
        data = data[:at] + piece + data[at + cut :]
    return data


def spoiled_by_chance(chance: random.Random, samples: tuple[bytes, ...]) -> bytes:
    """The same, in a hundredth of the time."""
    data = chance.choice(samples) if chance.random() < 0.9 else chance.randbytes(chance.randrange(41))
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(data) + 1)
        how = chance.random()
        if how < 0.5:
            piece = chance.choice(_ODD)
        elif how < 0.7:
            piece = chance.randbytes(chance.randrange(5))
        else:  # what belongs elsewhere, or stands there twice
            other = chance.choice(samples)
            begin = chance.randrange(len(other) + 1)
            piece = other[begin : begin + chance.randrange(60)]
        data = data[:at] + piece + data[at + chance.choice((0, 0, 1, 2, len(piece), 40)) :]
    return data


def json_by_chance(chance: random.Random, leaves: tuple[object, ...], depth: int = 0) -> object:
    how = chance.random()
    if depth < 3 and how < 0.15:
        return [json_by_chance(chance, leaves, depth + 1) for _ in range(chance.randrange(4))]
    if depth < 3 and how < 0.3:
        keys = [chance.choice(("a", "", "é", "__proto__", str(chance.random()))) for _ in range(chance.randrange(4))]
        return {key: json_by_chance(chance, leaves, depth + 1) for key in keys}
    if how < 0.6:
        return chance.choice((None, True, False, 0, -1, 1 << 70, 1e308, float("nan"), float("-inf"), "", "\ud800", "x" * 5_000))
    return chance.choice(leaves)


def as_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def tags(data: bytes) -> None:
    text = as_text(data)
    for span in find_tags(text):
        assert parse(span.body)
    assert not find_tags(strip(text))
    in_code(text, range(0, len(text), 7))
    parse(text)


def header_values(data: bytes) -> None:
    text = data.decode("latin-1")
    masked = fields.mask_query(text)
    assert fields.fill_query(masked, fields.query_secrets(text)) == text
    for name in ("cookie", "location", "x-other", text):
        fields.shown(name, text)


def pieces_of(made: type[Events] | type[ArrayItems]) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        reader = made()
        found = reader.feed(data[: len(data) // 2]) + reader.feed(data[len(data) // 2 :]) + reader.close()
        assert b"".join(event.raw for event in found) == data

    return read


def call_of(path: str) -> Callable[[bytes], None]:
    endpoint = endpoint_of("POST", path)
    assert endpoint is not None
    return lambda data: (read_call(data, endpoint), None)[1]


def answer_of(dialect: Dialect, stream: bool) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        for quiet in (False, True):
            merger = answer_for(Endpoint(dialect, stream=stream), stream=stream, quiet=quiet)
            merger.begin_round()
            pieces = (data[: len(data) // 3], data[len(data) // 3 :])
            out = b"".join(map(merger.feed, data.splitlines(keepends=True) if quiet else pieces))
            said = merger.end_round()
            out += b"".join(merger.finish()) if said.complete else b""
            assert isinstance(out, bytes)

    return read


def shown_answer(dialect: Dialect) -> Callable[[bytes], None]:
    return lambda data: _all(answer_lines({}, data, dialect))


def shown_call(endpoint: Endpoint) -> Callable[[bytes], None]:
    return lambda data: _all(request_lines({}, data, endpoint))


def _all(lines: Iterable[str]) -> None:
    for line in lines:
        assert "\n" not in line


def cached(dialect: Dialect, sample: bytes) -> Callable[[bytes], None]:
    """As a provider's cache sees it: why it was lost."""
    tokens = Tokens(90_000, 10, 20_000, 60_000)

    def look(data: bytes) -> None:
        recorder = FlightRecorder()
        for body in (sample, data, sample):
            suspicion = recorder.heard(Flown("c", Target("p", "m", "k"), body, dialect, body, dialect, tokens, 1e9))
            str(suspicion and suspicion.loss())
        for at in range(3):
            text_at(data, dialect, at)

    return look


def told_to_codex(data: bytes) -> None:
    for kind in ("text/event-stream", "application/json"):
        telling = Telling(Post(b"{}", (), Past(), "lane"))
        frames = telling.head(200, {"content-type": kind})
        frames += telling.data(data[: len(data) // 2]) + telling.data(data[len(data) // 2 :]) + telling.end()
        for frame in frames + telling.broke("x"):
            frame.decode()


def configuration(data: bytes) -> None:
    config.read(as_text(data), name="f.yaml", env={"KEY": SECRET})


def masked(data: bytes) -> None:
    mask, out = Mask([SECRET]), b""
    for number in range(0, len(data), 11):
        out += mask.feed(data[number : number + 11], number / 1000)
    assert SECRET.encode() not in out + mask.end()


def failure(data: bytes) -> None:
    for status in (200, 400, 429, 503):
        read_failure(status, {"retry-after": data[:20].decode("latin-1"), "x-ratelimit-reset": "1"}, data, now=1e9)
    failure_of_page(data)


def packed_as(coding: str) -> Callable[[bytes], None]:
    def unpack(data: bytes) -> None:
        decode = codings.decoder(coding)
        assert decode is not None
        codings.whole(itertools.chain(decode(data[:20]), decode(data[20:])), 1 << 20)

    return unpack


def codex_frame(data: bytes) -> None:
    talk = Conversation(1 << 20)
    for number in range(2):
        talk.ask(as_text(data), new_id=f"r{number}", now=1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("fuzz")
    return Served("a", 7, (("127.0.0.1", 8080),), "c.yaml", folder / "sessions", House(folder).desk, {"KEY": SECRET})


def calls() -> Iterable[tuple[str, tuple[bytes, ...], Callable[[bytes], None]]]:
    for dialect in Dialect:
        path, body = write(dialect, "m", [("user", "<**status**> hi"), ("assistant", "é😀"), ("user", "more")], True)
        endpoint = endpoint_of("POST", path)
        assert endpoint is not None
        fitting = [one.raw for one, asked in CALLS if asked == endpoint and len(one.raw) < 20_000][:4]
        samples = (json.dumps(body).encode(), *fitting)
        yield f"call {dialect}", samples, call_of(path)
        yield f"call {dialect}, shown", samples, shown_call(endpoint)
        yield f"call {dialect}, in a cache", samples, cached(dialect, samples[-1])


def answers() -> Iterable[tuple[str, tuple[bytes, ...], Callable[[bytes], None]]]:
    for dialect in Dialect:
        streams = tuple(stream.raw for stream in hand_made() if stream.spoken is dialect and len(stream.raw) < 20_000)[:12]
        documents = tuple(line[6:] for raw in streams for line in raw.splitlines() if line.startswith(b"data: "))[:40]
        yield f"stream {dialect}", streams, answer_of(dialect, True)
        yield f"answer {dialect}", documents, answer_of(dialect, False)
        yield f"answer {dialect}, shown", (*streams, *documents), shown_answer(dialect)


_TAGS = (
    b'do <**!glm.m**> <**stopMessage:"go on",3**> `<**x**>` now',
    b"<**allow:a,b**> <**disable:a#1**> <**clear**>",
    "＜＊＊glm＊＊＞ 请".encode(),
)
_STATE = EMPTY.with_(allowed=("glm",))
_TASK = Task("id", "abc", 1, 2, 3, "look")
TARGETS: dict[str, tuple[tuple[bytes, ...], Callable[[bytes], None]]] = {
    "tags": (_TAGS, tags),
    "headers": ((b"/v1/m?key=AAA&x=1#access_token=b", b"https://a.example/?code=1;sig=2", b"a=b; Path=/"), header_values),
    "events": ((b"event: a\ndata: {}\n\n: ping\r\n\r\ndata: [DONE]\n\n", b"data: a\rdata: b\r\r"), pieces_of(Events)),
    "array": ((b'[{"a":1},\r\n{"b":[2]}]', b'[{"a":"\\u0022]"}]'), pieces_of(ArrayItems)),
    **{name: (samples, work) for name, samples, work in (*calls(), *answers())},
    "json": ((b'{"a":[1,2.5e3,"\\ud83d\\ude00",null,true],"b":{}}',), lambda data: (jsonbytes.loads(data), None)[1]),
    "configuration": (
        (
            (ROOT / "mitm-config.yaml").read_bytes(),
            b"providers:\n  a: {baseURL: https://a.example, auth: {type: none}}\nrouting: {default: [origin]}\n",
        ),
        configuration,
    ),
    "mask": ((b'x {"k":"' + SECRET.encode() + b'"} y', SECRET.encode()[:20] + b"\\u0031"), masked),
    "failure": ((b'{"error":{"message":"m","code":429,"status":"RESOURCE_EXHAUSTED"}}', b"<html>Bad Gateway</html>"), failure),
    "clock record": ((write_record("abc", (_TASK,), 9),), lambda data: (read_record(data, "abc"), None)[1]),
    "time state": ((b'{"version":1,"offsetMs":-40,"updatedAtMs":5}',), lambda data: (from_bytes(data, 9), None)[1]),
    "codex frame": (
        (b'{"type":"response.create","model":"m","input":[{"type":"message"}],"client_metadata":{"x-codex-a":"b"}}',),
        codex_frame,
    ),
    "frames told to codex": (
        tuple(stream.raw for stream in hand_made() if stream.spoken is Dialect.RESPONSES and len(stream.raw) < 20_000)[:12],
        told_to_codex,
    ),
    "a stranger at a port": (
        (b'HTTP/1.1 200 OK\r\n\r\n{"name":"RouteCodex","server":"a","pid":1,"certificate":"c","hosts":["a"],"config":"x"}',),
        lambda data: (hello._read(data), None)[1],
    ),
    "an import": (
        (
            to_line(Put(Key(Kind.STATE, "session:abc"), "", StateForm().write("abc", _STATE, EMPTY))).encode(),
            to_line(Put(Key(Kind.TASKS, "abc"), "", write_record("abc", (_TASK,), 9))).encode(),
        ),
        lambda data: (read_lines(as_text(data).split("\n")), None)[1],
    ),
    **{f"packed {name}": ((pack(b"hello " * 99),), packed_as(coding)) for name, (coding, pack) in PACKERS.items()},
}


def tried(count: int, target: str) -> None:
    seen("F", f"{target}: {count:,}" + (f" (of {ASKED:,} asked)" if count < ASKED else ""))


def search(
    strategy: st.SearchStrategy[Any], by_chance: Callable[[random.Random], Any], work: Callable[[Any], None], name: str
) -> None:
    count = 0

    def attempt(value: Any) -> None:
        nonlocal count
        count += 1
        try:
            work(value)
        except (RouteCodexError, codings.Damaged, codings.TooMuch):
            pass

    if LONG:
        seed = time.time_ns()
        chance = random.Random(seed)
        for number in range(SCALED.get(name.rpartition(", ")[2], ASKED)):
            value = by_chance(chance)
            try:
                attempt(value)
            except BaseException as error:
                error.add_note(f"{name}, seed {seed}, number {number}: {value!r}")
                raise
    else:
        settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))(
            given(strategy)(attempt)
        )()
    tried(count, name)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes(name: str) -> None:
    samples, work = TARGETS[name]
    assert samples
    for sample in samples:
        try:
            work(sample)
        except RouteCodexError as error:
            pytest.fail(f"a sample is no sample: {error}")
    search(spoiled(samples), lambda chance: spoiled_by_chance(chance, samples), work, name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def test_any_arguments_of_the_clock(tmp_path: Path) -> None:
    model = Model(tmp_path)
    actions = ("get", "schedule", "list", "cancel", "clear")
    leaves: tuple[object, ...] = (ITEM, [ITEM], "2026-01-22T05:30:00Z", *actions, "id1")
    values = JSON | st.sampled_from(leaves)
    item = st.dictionaries(st.sampled_from([*ITEM, "recurrence", "timeRef"]), values, max_size=5)
    arguments = st.fixed_dictionaries(
        {
            "action": st.sampled_from(actions) | JSON,
            "items": st.lists(item, max_size=3) | JSON,
        },
        optional={"taskId": values, "other": values},
    )

    def call(given: dict[str, Any]) -> None:
        assert isinstance(model.call(**given)["ok"], bool)
        model.store.update("s1", lambda tasks: tasks[-3:])

    def by_chance(chance: random.Random) -> dict[str, object]:
        def any_value() -> object:
            return json_by_chance(chance, leaves)

        some = (*ITEM, "recurrence", "timeRef")
        items = [{key: any_value() for key in chance.sample(some, 2)} | chance.choice(({}, ITEM)) for _ in range(2)]
        action = chance.choice(actions) if chance.random() < 0.9 else any_value()
        return {"action": action, "items": items if chance.random() < 0.8 else any_value(), "taskId": any_value()}

    search(arguments, by_chance, call, "the clock's arguments")


def test_any_question_at_the_control_socket(served: Served) -> None:
    leaves = ("glm", "glm.glm-4.7", "abc", [["sticky", "glm.glm-4.7"]], [["disable", "glm"]], [["clear", ""]])
    values = JSON | st.sampled_from(leaves)
    names = ("orders", "session", "id", "try", "values", "all", "name")
    words = ["status", "routing", "set routing", "models", "sessions", "session", "clear session", "line", "compare"]
    questions = st.fixed_dictionaries(
        {"verb": st.sampled_from(words) | JSON},
        optional=dict.fromkeys(names, values),
    )

    def ask(question: dict[str, Any]) -> None:
        said = json.dumps(verb_of(question).run(served, question))
        assert SECRET not in said

    def by_chance(chance: random.Random) -> dict[str, object]:
        more = {name: json_by_chance(chance, leaves) for name in chance.sample(names, 3)}
        return {"verb": chance.choice(words) if chance.random() < 0.9 else json_by_chance(chance, leaves), **more}

    search(questions, by_chance, ask, "questions at the control socket")


def test_any_file_of_state(tmp_path: Path) -> None:
    """Sessions, hidden rounds, orders for all sessions, `.env`: read as they lie on the disk."""
    FileStore(tmp_path).update(KEY, lambda _: EMPTY.with_(allowed=("glm",)))
    (session,) = tmp_path.glob("session-*.json")
    history, orders, dotenv = tmp_path / "history" / session.name, tmp_path / "routing-a.json", tmp_path / ".env"
    history.parent.mkdir(exist_ok=True)
    samples = (session.read_bytes(), b'{"version":1,"entries":[]}', b"A=1\nexport B='x' # c\n")

    def read(data: bytes) -> None:
        for file in (session, history, orders, dotenv):
            file.write_bytes(data)
        dotenv.chmod(0o600)
        FileStore(tmp_path).load(KEY)
        HiddenStore(tmp_path).load(KEY)
        Overlay(tmp_path, "a")
        look_beside("${A}", tmp_path, {})

    search(spoiled(samples), lambda chance: spoiled_by_chance(chance, samples), read, "files of state")
