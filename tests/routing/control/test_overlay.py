"""Orders for all sessions of a server: read as tags are, kept whole, and under what each session says itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecodex.routing.config import read
from routecodex.routing.control.overlay import BadOrder, Order, Overlay, described, ordered, over
from routecodex.routing.errors import RouteCodexError
from routecodex.routing.sessions.state import EMPTY, SessionState, Sticky
from routecodex.routing.tags import changes
from routecodex.routing.values import Named
from tests.routing.house import config_text

REGISTRY = read(config_text(), name="mitm-config.yaml", env={}).registry
GLM = Sticky("glm", model="glm-4.7")


def after(*orders: Order, state: SessionState = EMPTY) -> SessionState:
    return ordered(orders, state, REGISTRY)[0]


@pytest.mark.parametrize("text", ["glm.glm-4.7", "!glm.glm-4.7", "！glm.glm-4.7", " ! glm.glm-4.7 "])
def test_d02_a_target_is_read_with_its_mark_and_without(text: str) -> None:
    assert after(("sticky", text)) == EMPTY.with_(sticky=GLM)


@pytest.mark.parametrize("text, key", [("openai.1", "primary"), ("openai.primary", "primary"), ("#openai.3", "third")])
def test_d03_a_key_is_disabled_by_its_place_and_by_its_name(text: str, key: str) -> None:
    assert after(("disable", text)) == EMPTY.with_(disabled_keys=(("openai", key),))


def test_d03_a_list_replaces_the_one_before_it_and_one_command_is_one_list() -> None:
    first = after(("disable", "openai.1"), ("disable", "glm"))
    assert described(first) == ["Disabled: glm, openai key primary."]
    assert after(("disable", "anthropic.primary"), state=first) == EMPTY.with_(disabled_keys=(("anthropic", "primary"),))


def test_d03_enable_lifts_and_clear_takes_all_back() -> None:
    state = after(("sticky", "glm.glm-4.7"), ("allow", "glm,openai"), ("disable", "anthropic"))
    assert state.allowed == ("glm", "openai")
    assert after(("enable", "@anthropic"), state=state).disabled_providers == ()
    assert after(("clear", ""), state=state) == EMPTY
    assert after(("clear", ""), ("disable", "glm"), state=state) == EMPTY.with_(disabled_providers=("glm",))


class Changes:
    def __init__(self) -> None:
        self.count = 0

    def now(self) -> int:
        return self.count

    def up(self) -> None:
        self.count += 1


def test_another_process_of_the_same_server_hears_of_a_change(tmp_path: Path) -> None:
    """And reads the file only then."""
    changes = Changes()
    one, other = (Overlay(tmp_path, "user", changes) for _ in range(2))
    one.change([("sticky", "glm.glm-4.7")], REGISTRY)
    assert other.state == one.state == EMPTY.with_(sticky=GLM)
    (tmp_path / "routing-user.json").unlink()
    assert other.state == EMPTY.with_(sticky=GLM)
    other.change([("clear", "")], REGISTRY)
    assert one.state == EMPTY


@pytest.mark.parametrize(
    "orders",
    [
        [("sticky", "glm")],
        [("sticky", "glm.glm-4.7,openai.gpt-4")],
        [("allow", "glm.glm-4.7")],
        [("disable", "")],
        [("disable", "#")],
        [("disable", "glm now")],
        [("disable", "glm"), ("disable", "nobody")],
        [("clear", ""), ("sticky", "glm.gpt-9")],
    ],
)
def test_what_cannot_be_read_or_found_changes_nothing(orders: list[Order], tmp_path: Path) -> None:
    overlay = Overlay(tmp_path, "127.0.0.1_8080")
    overlay.change([("disable", "openai.1")], REGISTRY)
    before = overlay.state
    with pytest.raises(RouteCodexError):
        overlay.change(orders, REGISTRY)
    assert overlay.state == before == Overlay(tmp_path, "127.0.0.1_8080").state


def test_a_wrong_form_says_which_one_is_right() -> None:
    with pytest.raises(BadOrder, match="--allow glm"):
        after(("sticky", "!glm"))
    with pytest.raises(BadOrder, match=r"--sticky glm\.glm-4\.7"):
        after(("allow", "glm.glm-4.7"))


def test_d06_it_outlives_the_server_and_nothing_is_left_of_what_was_cleared(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path / "made", "a")
    overlay.change([("sticky", "glm.glm-4.7"), ("disable", "openai.2")], REGISTRY)
    assert Overlay(tmp_path / "made", "a").state == overlay.state
    assert Overlay(tmp_path / "made", "b").state == EMPTY, "another server's"
    overlay.change([("clear", "")], REGISTRY)
    assert not list((tmp_path / "made").glob("routing-*"))


def test_a_damaged_file_costs_the_orders_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "routing-a.json").write_bytes(b'{"state": {"sti')
    overlay = Overlay(tmp_path, "a")
    assert overlay.state == EMPTY
    assert overlay.warnings
    overlay.change([("disable", "glm")], REGISTRY)
    assert Overlay(tmp_path, "a").state.disabled_providers == ("glm",)


# --- under the sessions' own states -----------------------------------------------------------------------------------

OPENAI = Sticky("openai", model="gpt-4")


@pytest.mark.parametrize(
    "overlay, session, expected",
    [
        (EMPTY, EMPTY.with_(sticky=GLM), EMPTY.with_(sticky=GLM)),
        (EMPTY.with_(sticky=GLM), EMPTY, EMPTY.with_(sticky=GLM)),
        (EMPTY.with_(sticky=GLM), EMPTY.with_(sticky=OPENAI), EMPTY.with_(sticky=OPENAI)),
        (EMPTY.with_(sticky=GLM), EMPTY.with_(allowed=("openai",)), EMPTY.with_(allowed=("openai",))),
        (EMPTY.with_(allowed=("glm",)), EMPTY, EMPTY.with_(allowed=("glm",))),
        (EMPTY.with_(allowed=("glm",)), EMPTY.with_(allowed=("openai",)), EMPTY.with_(allowed=("openai",))),
        (
            EMPTY.with_(disabled_providers=("glm",)),
            EMPTY.with_(disabled_keys=(("openai", "backup"),)),
            EMPTY.with_(disabled_providers=("glm",), disabled_keys=(("openai", "backup"),)),
        ),
    ],
)
def test_what_a_session_says_itself_comes_first(overlay: SessionState, session: SessionState, expected: SessionState) -> None:
    assert over(overlay, session, REGISTRY) == expected


def test_a_session_enables_what_is_disabled_for_all_and_only_for_itself() -> None:
    overlay = after(("disable", "openai"))
    lifted = changes.enabled_over(EMPTY, Named("openai", key="backup"), REGISTRY.providers["openai"], overlay)
    assert not lifted.idle
    held = over(overlay, lifted, REGISTRY)
    assert held.disabled_providers == ()
    assert held.disabled_keys == (("openai", "primary"), ("openai", "third"))
    assert over(overlay, EMPTY, REGISTRY) == overlay
    again = changes.disabled(lifted, Named("openai"))
    assert over(overlay, again, REGISTRY).disabled_providers == ("openai",)
    assert over(overlay, changes.cleared(lifted), REGISTRY) == overlay


def test_enabling_what_nobody_disabled_leaves_nothing_to_store() -> None:
    assert changes.enabled_over(EMPTY, Named("glm"), REGISTRY.providers["glm"], EMPTY).empty


@pytest.mark.parametrize(
    "overlay, session, spared",
    [
        (EMPTY, EMPTY.with_(sticky=GLM), False),
        (EMPTY.with_(sticky=GLM), EMPTY, True),
        (EMPTY.with_(disabled_providers=("glm",)), EMPTY.with_(sticky=GLM), True),
        (EMPTY.with_(disabled_providers=("openai",)), EMPTY.with_(sticky=GLM), False),
    ],
)
def test_d04_no_call_costs_anybody_what_another_set(overlay: SessionState, session: SessionState, spared: bool) -> None:
    holds = Overlay()
    holds._state = overlay
    assert holds.spares(session) is spared
