"""One person of a team tries to reach another's session by every id that a tool may send, and by what a server may be asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from routecodex.routing.control.verbs import VERBS, Served, run
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.sessions.store import SessionKey
from routecodex.routing.sessions.whose import owned
from routecodex.routing.values import Dialect
from tests.routing.house import Handled, House, Tool, config_text

HEADERS = (
    *("x-routecodex-session", "session_id", "session-id", "sessionid", "x-session-id", "anthropic-session-id", "thread-id"),
    *("x-session-affinity", "thread_id", "x-claude-code-session-id", "conversation_id", "conversation-id"),
    *("openai-conversation-id", "x-conversation-id"),
)
FIELDS = (
    *("session_id", "conversation", "prompt_cache_key", "metadata.user_id", "metadata.sessionId", "metadata.session_id"),
    *("metadata.conversation_id", "metadata.conversationId", "client_metadata.session_id", "client_metadata.thread_id"),
    *("request.session_id", "conversation.id"),
)
UUID = "0b5e2c1e-3a52-4a7e-9d0c-5a0d4f7b1c11"
IDS = (UUID, f"session_{UUID}", f"qwen-code:{UUID}", json.dumps({"session_id": UUID}), "@bob:x")
TEXTS = ("<**clear**> hello", "<**status**>", "<**stopMessage:clear**>", "<**!openai.gpt-4**>", "<**clock:clear**> <**why**>")
PLAN = "the plan of alice"
ORDERS = f'<**!glm.glm-4.7**> <**stopMessage:"{PLAN}",5**> go'


@dataclass(frozen=True)
class Way:
    """Where a tool says which session it is."""

    name: str
    in_header: bool

    def tool(self, house: House, dialect: Dialect, id: str) -> Tool:
        tool = Tool(house, dialect, None)
        if self.in_header:
            tool.headers = {self.name: id}
        else:
            outer, _, inner = self.name.partition(".")
            tool.more = {outer: {inner: id} if inner else id}
        return tool


WAYS = [*(Way(name, in_header=True) for name in HEADERS), *(Way(name, in_header=False) for name in FIELDS)]


def ask(house: House, tool: Tool, text: str, user: str) -> Handled:
    tool.history.clear()
    return house.handle(replace(tool.handed(text), user=user))


def guesses(id: str) -> Iterator[str]:
    yield from (
        id,
        owned("alice", id),
        f"alice:{id}",
        f"@alice:@alice:{id}",
        f" @alice:{id}",
        f"@:{id}",
        f"%40alice:{id}",
        id.upper(),
    )


def kept(house: House, *keys: SessionKey) -> list[bytes]:
    """What lies on the disk of these sessions."""
    paths = [house.folder / "sessions" / key.place.file for key in keys if key.place.file]
    return [path.read_bytes() if path.is_file() else b"" for path in paths]


def test_a_thousand_guesses_reach_nobody(tmp_path: Path) -> None:
    house = House(tmp_path, config_text())
    reached, tried, hers_alone = [], 0, 0
    for place, way in enumerate(WAYS):
        for number, id in enumerate(IDS):
            dialect = list(Dialect)[(place + number) % 4]
            tool = way.tool(house, dialect, id)
            hers = ask(house, tool, ORDERS, "alice")
            lies_at_home = dialect is Dialect.RESPONSES and bool(tool.more.get("conversation"))  # nobody else has its history
            assert hers.target == ("origin.client.client-model" if lies_at_home else "glm.key1.glm-4.7")
            assert hers.reading is not None
            key = hers.reading.key
            before = kept(house, key)
            hers_alone += key.prefix != "chain"
            for turn, (guess, somebody) in enumerate(product(guesses(id), ("bob", ""))):
                his = ask(house, way.tool(house, dialect, guess), TEXTS[turn % len(TEXTS)], somebody)
                said = his.target if his.sent else his.reply.body.decode()
                same = his.reading is not None and his.reading.key == key
                told = PLAN in said or "Sticky: glm" in said or said.startswith("glm")
                tried += 1
                if same or told or kept(house, key) != before:
                    reached.append((way.name, guess, somebody, said))
    assert tried >= 2000
    assert hers_alone > 100, "most of these ids name a session"
    assert reached == []


def test_without_a_name_what_looks_like_a_persons_is_ones_own(tmp_path: Path) -> None:
    """A proxy that asks nobody who they are may share a Redis with one that does."""
    house = House(tmp_path, config_text())
    tool = Tool(house, Dialect.RESPONSES, owned("alice", UUID))
    first = ask(house, tool, "<**!glm.glm-4.7**> go", "")
    assert first.reading is not None
    assert first.reading.key == SessionKey("session", f"@:@alice:{UUID}")
    first.answered("resp_of_nobody")
    tool.more = {"previous_response_id": "resp_of_nobody"}
    assert ask(house, tool, "and then?", "").target == "glm.key1.glm-4.7"
    assert ask(house, tool, "and then?", "alice").error[0] == "previous_response_not_found"


def test_nobody_goes_on_from_anothers_answer(tmp_path: Path) -> None:
    house = House(tmp_path, config_text())
    hers = ask(house, Tool(house, Dialect.RESPONSES, None), "<**!glm.glm-4.7**> go", "alice")
    hers.answered("resp_of_alice")
    hers.plan.on_answer(hers.plan.target, "resp_later", "resp_routecodex_begun_" + "0" * 32)
    ours = "resp_routecodex_" + "a" * 32
    for id in ("resp_of_alice", "resp_later", "resp_routecodex_begun_" + "0" * 32, f"{ours}.resp_of_alice", f"{ours}.resp_later"):
        tool = Tool(house, Dialect.RESPONSES, None, more={"previous_response_id": id})
        assert ask(house, tool, "and then?", "bob").error[0] == "previous_response_not_found", id
        assert ask(house, tool, "and then?", "").error[0] == "previous_response_not_found", id
        assert ask(house, tool, "and then?", "alice").target == "glm.key1.glm-4.7", id


def test_what_a_server_is_asked_by_one_person_is_theirs(tmp_path: Path) -> None:
    house = House(tmp_path, config_text())
    for user in ("alice", "bob", ""):
        ask(house, Tool(house, session=UUID), f'<**stopMessage:"of {user or "nobody"}",5**> go', user)
    for person, hidden in (("bob", ["alice", "nobody"]), ("carol", ["alice", "bob", "nobody"])):
        served = Served("a", 7, (), "c.yaml", tmp_path / "sessions", house.desk, person=person)
        theirs = [SessionKey("session", owned(name, UUID)) for name in ("alice", "bob", "") if name != person]
        for id in ("", UUID, UUID[:4], owned("alice", UUID), "@", "@alice", "@:"):
            for name, verb in VERBS.items():
                before = kept(house, *theirs)
                try:
                    said = json.dumps(run(verb, served, {"verb": name, "id": id, "session": id, "by": "user"}))
                except RouteCodexError as error:
                    said = error.message.replace(id[:40], "") if id else error.message  # as it was asked, shortened
                assert not [name for name in hidden if f"of {name}" in said or f"@{name}" in said], (person, name, id, said)
                assert kept(house, *theirs) == before, (person, name, id)
    assert len(VERBS["sessions"].run(Served("a", 7, (), "", tmp_path / "sessions", house.desk), {})["sessions"]) == 2  # type: ignore[arg-type]


def test_texts_of_another_are_not_read(tmp_path: Path) -> None:
    house = House(tmp_path, config_text())
    base: Any = house.desk.user_folder
    for folder, text in ((base, "everybody's"), (base / "users" / "user-alice", "hers")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "go.md").write_text(text)
    tag = "<**stopMessage:<file://{}>,5**> go"
    hers = ask(house, Tool(house), tag.format("go.md"), "alice")
    assert hers.orders is not None
    assert hers.orders.state.stop is not None
    assert hers.orders.state.stop.text == "hers"
    for name in ("go.md", "../user-alice/go.md", "users/user-alice/go.md"):
        assert "The stopMessage file" in ask(house, Tool(house), tag.format(name), "bob").error[1]
        assert "The stopMessage file" in ask(house, Tool(house), tag.format(name), "..").error[1]
