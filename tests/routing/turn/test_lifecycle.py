"""The stages of a turn, in order, whatever its plugins do. Named by the cases L01 … L16 where there is one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from routecodex.routing.dialects.calls.growing import with_messages
from routecodex.routing.errors import BadCall
from routecodex.routing.turn.lifecycle import Lifecycle
from routecodex.routing.turn.plugins import (
    AfterRequest,
    Appending,
    CleanUp,
    Plugin,
    PluginFailed,
    Refused,
    Request,
    Said,
    TurnInfo,
    UserText,
)
from routecodex.routing.turn.roster import takers
from routecodex.routing.values import Dialect, Kind, ProviderError, ToolCall
from tests.routing.turn.acting import EAGER, Actor, Scene, event, hanging, raising, run, tcall, tsaid, tturn, until

CANARY = "sk-canary-0123456789abcdef"


def saying(text: str, **options: Any) -> Callable[..., Any]:
    """An on_after_request that appends this in the first round."""

    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        if turn.rounds == 1:
            after.append_message(UserText(text), **options)

    return after


async def whole(scene: Scene) -> None:
    """A turn of one round, but for its clean-ups."""
    await scene.begin()
    await scene.life.after_request(tsaid())
    await scene.life.end()


# The order


@pytest.mark.parametrize("eager", EAGER)
def test_l01_two_plugins_and_one_more_round(eager: bool) -> None:
    scene = Scene([Actor("A", after=saying("more", request=True)), Actor("B")])

    async def turn() -> None:
        await scene.begin()
        scene.life.stream_data(event("hello"))
        following = await scene.life.after_request(tsaid())
        assert following is not None
        await scene.life.before_request(with_messages(scene.turn.call, following.items))
        scene.life.stream_data(event("again"))
        assert await scene.life.after_request(tsaid("again")) is None
        await scene.life.end()
        await scene.life.clean_up()

    run(turn(), eager=eager)
    one_round = ["before A", "before B", "chunk A", "chunk B", "after A", "after B"]
    assert scene.log == ["start A", "start B", *one_round, *one_round, "end A", "end B"]
    assert (scene.turn.status, scene.turn.rounds, scene.warnings) == ("completed", 2, [])


@pytest.mark.parametrize("eager", EAGER)
def test_l01_on_after_request_runs_in_parallel(eager: bool) -> None:
    met = asyncio.Event()

    async def waits(turn: TurnInfo, after: AfterRequest) -> None:
        await met.wait()

    async def lets_go(turn: TurnInfo, after: AfterRequest) -> None:
        met.set()

    scene = Scene([Actor("A", after=waits), Actor("B", after=lets_go)], limit_s=1)

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())

    run(turn(), eager=eager)
    assert scene.warnings == []


def test_what_the_next_round_is_asked() -> None:
    scene = Scene([Actor("A", after=saying("more", request=True))])

    async def turn() -> None:
        await scene.begin()
        following = await scene.life.after_request(tsaid())
        assert following is not None
        more = {"role": "user", "content": [{"type": "text", "text": "more"}]}
        assert following.messages == (more,)
        assert following.items == (*tsaid().native, more)
        assert (following.plugin, following.suffix) == ("A", ":A_followup")

    run(turn())


@pytest.mark.parametrize(
    "messages, request_it, asked",
    [([], True, False), (["x"], False, False), (["x"], True, True), (["x", "y"], True, True)],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_another_round_takes_new_messages_and_the_wish(
    messages: list[str], request_it: bool, asked: bool, is_async: bool
) -> None:
    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        after.append_message([UserText(text) for text in messages], request=request_it, is_async=is_async)

    scene = Scene([Actor("A", after=after)])

    async def turn() -> None:
        await scene.begin()
        assert (await scene.life.after_request(tsaid()) is not None) is asked

    run(turn())
    assert scene.texts() == ["hello", *messages]


def test_the_wish_of_one_plugin_and_the_message_of_another() -> None:
    async def wishes(turn: TurnInfo, after: AfterRequest) -> None:
        after.append_and_request([], suffix=":mine")

    scene = Scene([Actor("A", after=wishes), Actor("B", after=saying("x"))])

    async def turn() -> None:
        await scene.begin()
        following = await scene.life.after_request(tsaid())
        assert following is not None
        assert (following.plugin, following.suffix) == ("A", ":mine")

    run(turn())


def test_no_round_behind_an_answer_that_calls_tools_of_the_client() -> None:
    scene = Scene([Actor("A", after=saying("more", request=True))])

    async def turn() -> None:
        await scene.begin()
        assert await scene.life.after_request(tsaid(calls=[ToolCall("t1", "bash", "{}")])) is None

    run(turn())


# Clean-ups


def cleaning(log: list[str], name: str, error: Exception | None = None, *, is_async: bool = False) -> Callable[..., Any]:
    def clean_up() -> None:
        log.append(f"clean {name}")
        if error is not None:
            raise error

    async def slowly() -> None:
        await asyncio.sleep(0.01)
        clean_up()

    async def start(turn: TurnInfo) -> CleanUp:
        return slowly if is_async else clean_up

    return start


def test_l02_clean_ups_run_last_in_first_out_and_one_after_another() -> None:
    log: list[str] = []
    scene = Scene([Actor(name, start=cleaning(log, name, is_async=name != "B")) for name in "ABC"])

    async def turn() -> None:
        await scene.begin()
        await scene.life.end()
        await scene.life.clean_up()
        await scene.life.clean_up()

    run(turn())
    assert log == ["clean C", "clean B", "clean A"]


def test_l03_an_error_in_on_turn_start() -> None:
    log: list[str] = []
    scene = Scene([Actor("A", start=cleaning(log, "A")), Actor("B", start=raising(ValueError(CANARY))), Actor("C")])

    async def turn() -> None:
        with pytest.raises(PluginFailed) as raised:
            await scene.life.start()
        assert isinstance(raised.value.original, ValueError)
        assert scene.life.error is raised.value
        await scene.life.end()
        await scene.life.clean_up()

    run(turn())
    assert (scene.log, log) == (["start A", "start B"], ["clean A"])
    assert scene.turn.status == "error"


def test_errors_of_clean_ups_are_collected_behind_the_turns_own() -> None:
    log: list[str] = []
    broken = [
        Actor("A", start=cleaning(log, "A", KeyError(CANARY))),
        Actor("B", start=cleaning(log, "B")),
        Actor("C", start=cleaning(log, "C", OSError(CANARY), is_async=True), before=raising(ValueError(CANARY))),
    ]
    scene = Scene(list(broken))

    async def turn() -> None:
        await scene.life.start()
        with pytest.raises(PluginFailed) as main:
            await scene.life.before_request(scene.turn.call)
        with pytest.raises(ExceptionGroup) as group:
            await scene.life.clean_up()
        assert group.value.exceptions[0] is main.value
        assert [type(error.original).__name__ for error in group.value.exceptions] == ["ValueError", "OSError", "KeyError"]  # type: ignore[attr-defined]

    run(turn())
    assert log == ["clean C", "clean B", "clean A"]
    assert CANARY not in "".join(scene.warnings)


@pytest.mark.parametrize("count, raised", [(1, PluginFailed), (2, ExceptionGroup)])
def test_errors_of_clean_ups_alone(count: int, raised: type[Exception]) -> None:
    log: list[str] = []
    scene = Scene([Actor(str(place), start=cleaning(log, str(place), ValueError())) for place in range(count)])

    async def turn() -> None:
        await scene.begin()
        await scene.life.end()
        with pytest.raises(raised):
            await scene.life.clean_up()

    run(turn())
    assert scene.turn.status == "completed"


def test_clean_ups_come_to_their_end_though_their_task_is_cancelled() -> None:
    log: list[str] = []
    scene = Scene([Actor("A", start=cleaning(log, "A")), Actor("B", start=cleaning(log, "B", is_async=True))])

    async def turn() -> None:
        await scene.begin()
        cleaner = asyncio.ensure_future(scene.life.clean_up())
        await asyncio.sleep(0)
        cleaner.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cleaner
        await until(lambda: len(log) == 2)

    run(turn())
    assert log == ["clean B", "clean A"]


def test_a_round_that_failed_elsewhere_is_the_main_error() -> None:
    log: list[str] = []
    scene = Scene([Actor("A", start=cleaning(log, "A", ValueError()))])
    upstream = RuntimeError("the provider")

    async def turn() -> None:
        await scene.begin()
        scene.life.fail(upstream)
        await scene.life.end()
        with pytest.raises(ExceptionGroup) as group:
            await scene.life.clean_up()
        assert group.value.exceptions[0] is upstream

    run(turn())
    assert "end A" not in scene.log


# Abort


def test_l05_abort_in_the_stream() -> None:
    log: list[str] = []
    scene = Scene([Actor("A", start=cleaning(log, "A")), Actor("B")])

    async def turn() -> None:
        await scene.begin()
        scene.life.stream_data(event("hel"))
        scene.life.abort()
        scene.life.stream_data(event("lo"))
        assert await scene.life.after_request(tsaid()) is None
        await scene.life.end()
        await scene.life.clean_up()

    run(turn())
    assert scene.log[-4:] == ["chunk A", "chunk B", "end A", "end B"]
    assert (scene.turn.status, scene.turn.aborted, log, scene.warnings) == ("aborted", True, ["clean A"], [])


@pytest.mark.parametrize("stage", ["start", "before", "after"])
@pytest.mark.parametrize("behaviour", ["hangs", "raises", "is deaf"])
def test_l06_an_error_because_of_the_abort_is_an_abort(stage: str, behaviour: str) -> None:
    seen: list[str] = []

    async def hook(*arguments: Any) -> None:
        seen.append("begun")
        try:
            await hanging(deaf=behaviour == "is deaf")()
        except asyncio.CancelledError:
            seen.append("cancelled")
            if behaviour == "raises":
                raise ValueError("the signal said so") from None
            raise

    scene = Scene([Actor("A", **{stage: hook})])  # type: ignore[arg-type]

    async def turn() -> None:
        asyncio.get_running_loop().call_later(0.05, scene.life.abort)
        began = asyncio.get_running_loop().time()
        await scene.begin()
        assert await scene.life.after_request(tsaid()) is None
        assert asyncio.get_running_loop().time() - began < 0.5
        await scene.life.end()
        await scene.life.clean_up()
        await asyncio.sleep(0.01)

    run(turn())
    assert scene.turn.status == "aborted"
    assert seen == (["begun"] if behaviour == "is deaf" else ["begun", "cancelled"])
    assert scene.warnings == []
    assert ("end A" in scene.log) is (stage != "start")


def test_l06_a_plugin_that_looks_at_aborted_and_raises() -> None:
    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        scene.life.abort()
        if turn.aborted:
            raise RuntimeError("aborted, so I raise")

    scene = Scene([Actor("A", after=after)])

    async def turn() -> None:
        await scene.begin()
        assert await scene.life.after_request(tsaid()) is None
        await scene.life.end()

    run(turn())
    assert (scene.turn.status, scene.log[-1]) == ("aborted", "end A")


def test_l06_an_abort_at_the_very_end_of_a_hook_leaves_no_wish() -> None:
    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        after.append_and_request(UserText("now"))
        after.append_message(UserText("waits"), is_async=True)
        scene.life.abort()

    scene = Scene([Actor("A", after=after)])

    async def turn() -> None:
        await scene.begin()
        assert await scene.life.after_request(tsaid()) is None
        await scene.life.end()

    run(turn())
    assert (scene.texts(), scene.turn.status, scene.log[-1]) == (["hello", "now"], "aborted", "end A")


def test_an_abort_before_anything_began_runs_nothing() -> None:
    scene = Scene([Actor("A")])

    async def turn() -> None:
        scene.life.abort()
        await scene.begin()
        await scene.life.end()
        await scene.life.clean_up()

    run(turn())
    assert (scene.log, scene.turn.status) == ([], "aborted")


def test_a_clean_up_that_was_returned_as_the_client_left_still_runs() -> None:
    log: list[str] = []

    async def start(turn: TurnInfo) -> CleanUp:
        scene.life.abort()
        return partial(log.append, "clean")

    scene = Scene([Actor("A", start=start), Actor("B")])

    async def turn() -> None:
        await scene.life.start()
        await scene.life.end()
        await scene.life.clean_up()

    run(turn())
    assert (log, scene.log) == (["clean"], ["start A"])


@pytest.mark.parametrize("cause", ["abort", "limit", "cancelled"])
def test_a_clean_up_that_comes_when_nobody_waits_any_more_runs_too(cause: str) -> None:
    log: list[str] = []

    async def start(turn: TurnInfo) -> CleanUp:
        await hanging(deaf=True)()
        return partial(log.append, "clean")

    scene = Scene([Actor("A", start=start)], limit_s=0.05 if cause == "limit" else 5)

    async def turn() -> None:
        driver = asyncio.ensure_future(scene.life.start())
        await asyncio.sleep(0.02)
        if cause == "abort":
            scene.life.abort()
        elif cause == "cancelled":
            driver.cancel()
        await asyncio.wait([driver])
        assert cause != "limit" or isinstance(driver.exception(), PluginFailed)
        await scene.life.clean_up()
        assert log == []
        await until(lambda: log)

    run(turn())
    assert log == ["clean"]


def test_a_client_that_leaves_while_the_turn_ends_stops_nothing() -> None:
    done: list[str] = []

    async def end(turn: TurnInfo) -> None:
        await asyncio.sleep(0.05)
        done.append("committed")

    scene = Scene([Actor("A", end=end)])

    async def turn() -> None:
        await scene.begin()
        asyncio.get_running_loop().call_later(0.01, scene.life.abort)
        await scene.life.end()

    run(turn())
    assert (done, scene.turn.status) == (["committed"], "completed")


@pytest.mark.parametrize("eager", EAGER)
def test_nothing_of_a_turn_is_left_behind(eager: bool) -> None:
    scene = Scene([Actor("A", after=hanging()), Actor("B", after=hanging())])

    async def turn() -> set[asyncio.Task[Any]]:
        await scene.begin()
        asyncio.get_running_loop().call_later(0.02, scene.life.abort)
        await scene.life.after_request(tsaid())
        await scene.life.end()
        await scene.life.clean_up()
        for _ in range(3):
            await asyncio.sleep(0)
        return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]

    assert run(turn(), eager=eager) == set()


def test_a_driver_that_is_cancelled_takes_its_hooks_with_it() -> None:
    scene = Scene([Actor("A", after=hanging())])

    async def turn() -> int:
        await scene.begin()
        driver = asyncio.ensure_future(scene.life.after_request(tsaid()))
        await asyncio.sleep(0.02)
        driver.cancel()
        await asyncio.gather(driver, return_exceptions=True)
        for _ in range(3):
            await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert run(turn()) == 1


# What plugins append


def test_l08_a_message_appended_at_once_stands_before_one_that_waits() -> None:
    scene = Scene([Actor("A", after=saying("waits", is_async=True)), Actor("B", after=saying("at once"))])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())

    run(turn())
    assert scene.texts() == ["hello", "at once", "waits"]


def test_l08_the_order_of_the_plugins_as_the_seed_has_it() -> None:
    scene = Scene([Actor("A", after=saying("at once")), Actor("B", after=saying("waits", is_async=True))])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())

    run(turn())
    assert scene.texts() == ["hello", "at once", "waits"]


@pytest.mark.parametrize(
    "priorities, order",
    [
        ([0, 0, 0], ["A1", "B1", "C1", "A2", "B2", "C2"]),
        ([0, 5, 9], ["A1", "B1", "C1", "C2", "B2", "A2"]),
        ([99, 77, -1], ["A2", "A1", "B1", "B2", "C1", "C2"]),
    ],
)
def test_priorities(priorities: list[int], order: list[str]) -> None:
    """Each message has its own; equal ones keep the order of the plugins, whoever was first in time."""

    def plugin(name: str, priority: int, wait_s: float) -> Actor:
        async def after(turn: TurnInfo, after: AfterRequest) -> None:
            await asyncio.sleep(wait_s)
            after.append_message(UserText(name + "1"), is_async=True, priority=77)
            after.append_message(UserText(name + "2"), is_async=True, priority=priority)

        return Actor(name, after=after)

    scene = Scene([plugin(name, priorities[place], 0.03 - place / 100) for place, name in enumerate("ABC")])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())

    run(turn())
    assert scene.texts() == ["hello", *order]


def test_l09_one_error_in_on_after_request() -> None:
    async def both(turn: TurnInfo, after: AfterRequest) -> None:
        after.append_message(UserText("stays"))
        after.append_message(UserText("dropped"), is_async=True, request=True)

    async def late(turn: TurnInfo, after: AfterRequest) -> None:
        await asyncio.sleep(0.05)
        raise ValueError(CANARY)

    scene = Scene([Actor("A", after=both), Actor("B", after=late), Actor("C", after=hanging())])

    async def turn() -> None:
        await scene.begin()
        with pytest.raises(PluginFailed):
            await scene.life.after_request(tsaid())
        await scene.life.end()

    run(turn())
    assert scene.texts() == ["hello", "stays"]
    assert (scene.turn.status, "end A" in scene.log) == ("error", False)
    assert len(scene.warnings) == 1
    assert re.fullmatch(r"Plugin B failed: on_after_request raised ValueError \(acting\.py:\d+\)", scene.warnings[0])


def test_l10_prevent_default() -> None:
    def filters(turn: TurnInfo, appending: Appending) -> None:
        if appending.message == UserText("secret"):
            appending.prevent_default()

    heard: list[str] = []

    def hears(turn: TurnInfo, appending: Appending) -> None:
        heard.append(getattr(appending.message, "text", ""))

    scene = Scene([Actor("A", after=saying("secret", request=True), append=filters), Actor("B", append=hears)])

    async def turn() -> None:
        await scene.begin()
        assert await scene.life.after_request(tsaid()) is None

    run(turn())
    assert scene.turn.messages == (tsaid(),)
    assert scene.turn.current_turn == [tsaid(), UserText("secret")]
    assert heard == ["hello", "secret"]


def test_on_message_append_edits_what_goes_along_in_the_order_of_the_plugins() -> None:
    def wraps(mark: str) -> Callable[..., None]:
        def append(turn: TurnInfo, appending: Appending) -> None:
            if isinstance(appending.message, UserText):
                appending.message = UserText(f"{mark}{appending.message.text}{mark}")

        return append

    scene = Scene([Actor("A", after=saying("x"), append=wraps("a")), Actor("B", append=wraps("b"))])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())

    run(turn())
    assert scene.texts() == ["hello", "baxab"]


def test_on_message_append_may_put_a_message_where_it_wants() -> None:
    def first(turn: TurnInfo, appending: Appending) -> None:
        if appending.message == UserText("b"):
            appending.prevent_default()
            appending.messages.insert(1, UserText("b, before a"))

    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        after.append_and_request([UserText("a"), UserText("b")])

    scene = Scene([Actor("A", after=after, append=first)])

    async def turn() -> None:
        await scene.begin()
        following = await scene.life.after_request(tsaid())
        assert following is not None
        assert [item["content"][0]["text"] for item in following.messages] == ["b, before a", "a"]  # type: ignore[index]

    run(turn())


def test_the_models_answer_passes_on_message_append_too() -> None:
    def edits(turn: TurnInfo, appending: Appending) -> None:
        if isinstance(appending.message, Said):
            appending.message = replace(appending.message, native=({"role": "assistant", "content": "shorter"},))

    scene = Scene([Actor("A", after=saying("x", request=True), append=edits)])

    async def turn() -> None:
        await scene.begin()
        following = await scene.life.after_request(tsaid())
        assert following is not None
        assert following.items[0] == {"role": "assistant", "content": "shorter"}

    run(turn())


@pytest.mark.parametrize("wrong", ["raises", "is no message"])
def test_an_error_in_on_message_append_fails_the_turn_and_names_its_own_plugin(wrong: str) -> None:
    def append(turn: TurnInfo, appending: Appending) -> None:
        if isinstance(appending.message, UserText):
            if wrong == "raises":
                raise ValueError(CANARY)
            appending.message = 5  # type: ignore[assignment]

    scene = Scene([Actor("A", after=saying("x", request=True)), Actor("B", append=append)])

    async def turn() -> None:
        await scene.begin()
        with pytest.raises(PluginFailed) as raised:
            await scene.life.after_request(tsaid())
        assert raised.value.details == {"plugin": "B", "hook": "on_message_append"}

    run(turn())
    assert (scene.texts(), len(scene.warnings)) == (["hello"], 1)


@pytest.mark.parametrize("message", ["text", 5, None, [5]])
def test_what_is_no_message_is_not_appended(message: Any) -> None:
    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        after.append_message(message)

    scene = Scene([Actor("A", after=after)])

    async def turn() -> None:
        await scene.begin()
        with pytest.raises(PluginFailed, match="on_after_request raised TypeError"):
            await scene.life.after_request(tsaid())

    run(turn())


def test_appending_when_everything_is_over() -> None:
    kept: list[AfterRequest] = []

    async def after(turn: TurnInfo, after: AfterRequest) -> None:
        kept.append(after)

    scene = Scene([Actor("A", after=after)])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())
        with pytest.raises(RuntimeError, match="too late"):
            kept[0].append_message(UserText("x"))

    run(turn())
    assert scene.texts() == ["hello"]


@pytest.mark.parametrize("eager", EAGER)
def test_earlier_plugins(eager: bool) -> None:
    """A plugin can give those before it the first word."""
    heard: list[bool] = []

    async def slowly(turn: TurnInfo, after: AfterRequest) -> None:
        await asyncio.sleep(0.05)
        if turn.rounds == 1:
            after.append_and_request(UserText("stop message"))

    async def hold(turn: TurnInfo, after: AfterRequest) -> None:
        heard.append(await after.earlier_plugins())

    scene = Scene([Actor("stop", after=slowly), Actor("clock", after=hold), Actor("last", after=saying("x", is_async=True))])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())
        await scene.life.after_request(tsaid())

    run(turn(), eager=eager)
    assert heard == [True, False]


@given(
    st.lists(
        st.tuples(st.sampled_from(["sync", "async", "nothing", "raise", "prevented"]), st.integers(-2, 2), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
def test_whatever_plugins_append(acts: list[tuple[str, int, bool]]) -> None:
    def plugin(place: int, act: str, priority: int, request: bool) -> Actor:
        async def after(turn: TurnInfo, after: AfterRequest) -> None:
            if act == "raise":
                raise ValueError
            if act != "nothing":
                text = f"{act} {place}"
                after.append_message(UserText(text), request=request, priority=priority, is_async=act == "async")

        return Actor(str(place), after=after)

    def prevents(turn: TurnInfo, appending: Appending) -> None:
        if getattr(appending.message, "text", "").startswith("prevented"):
            appending.prevent_default()

    scene = Scene([*(plugin(place, *act) for place, act in enumerate(acts)), Actor("filter", append=prevents)])
    fails = any(act == "raise" for act, _, _ in acts)
    at_once = [f"sync {place}" for place, (act, _, _) in enumerate(acts) if act == "sync"]
    waits = sorted((-priority, place) for place, (act, priority, _) in enumerate(acts) if act == "async")

    async def turn() -> None:
        await scene.begin()
        try:
            following = await scene.life.after_request(tsaid())
        except PluginFailed:
            assert fails
            assert scene.texts()[1:] == at_once
            return
        assert not fails
        assert scene.texts()[1:] == [*at_once, *(f"async {place}" for _, place in waits)]
        wished = any(request and act in ("sync", "async", "prevented") for act, _, request in acts)
        assert (following is not None) is (wished and len(scene.texts()) > 1)

    run(turn())


# Plugins that misbehave


@pytest.mark.parametrize(
    "stage, hook",
    [("start", "on_turn_start"), ("before", "on_before_request"), ("after", "on_after_request"), ("end", "on_turn_end")],
)
@pytest.mark.parametrize("deaf", [False, True])
def test_a_hook_that_hangs_is_given_up(stage: str, hook: str, deaf: bool) -> None:
    scene = Scene([Actor("A", **{stage: hanging(deaf=deaf)})], limit_s=0.05)  # type: ignore[arg-type]

    async def turn() -> None:
        began = asyncio.get_running_loop().time()
        with pytest.raises(PluginFailed):
            await whole(scene)
        assert asyncio.get_running_loop().time() - began < 0.5

    run(turn())
    assert scene.warnings == [f"Plugin A failed: {hook} did not end within 0.05 seconds"]
    assert scene.turn.status == "error"


def test_a_clean_up_that_hangs_is_given_up_and_the_next_one_runs() -> None:
    log: list[str] = []

    async def start(turn: TurnInfo) -> CleanUp:
        return hanging()

    scene = Scene([Actor("A", start=cleaning(log, "A")), Actor("B", start=start)], limit_s=0.05)

    async def turn() -> None:
        await scene.begin()
        with pytest.raises(PluginFailed):
            await scene.life.clean_up()

    run(turn())
    assert log == ["clean A"]


def test_a_plugin_may_have_a_limit_of_its_own() -> None:
    slow = Actor("A", after=lambda *_: asyncio.sleep(0.1))
    slow.hook_limit_s = 1.0
    scene = Scene([slow], limit_s=0.02)

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())

    run(turn())
    assert scene.warnings == []


@pytest.mark.parametrize(
    "error", [ValueError(CANARY), SystemExit(CANARY), asyncio.CancelledError(CANARY), TimeoutError(CANARY), StopIteration(CANARY)]
)
@pytest.mark.parametrize("stage", ["start", "before", "after", "end"])
def test_whatever_a_hook_raises_stays_in_its_turn_and_its_words_in_nobodys_log(error: BaseException, stage: str) -> None:
    scene = Scene([Actor("A", **{stage: raising(error)})])  # type: ignore[arg-type]

    async def turn() -> None:
        with pytest.raises(PluginFailed) as raised:
            await whole(scene)
        assert CANARY not in raised.value.message
        assert raised.value.__suppress_context__

    run(turn())
    assert len(scene.warnings) == 1
    assert CANARY not in scene.warnings[0]


@pytest.mark.parametrize("error", [Refused("not on a Sunday"), BadCall("no")])
def test_a_refusal_reaches_the_person_in_the_plugins_own_words(error: Exception) -> None:
    scene = Scene([Actor("A", start=raising(error))])

    async def turn() -> None:
        with pytest.raises(type(error)) as raised:
            await scene.life.start()
        assert raised.value is error

    run(turn())


def test_an_error_in_on_stream_data_costs_its_plugin_the_stream_of_this_round_only() -> None:
    heard: list[str] = []

    def stream(turn: TurnInfo, data: Any) -> None:
        heard.append(data.current_message.text)
        if len(heard) == 2:
            raise ValueError(CANARY)

    scene = Scene([Actor("A", stream=stream), Actor("B")])

    async def turn() -> None:
        await scene.begin()
        for text in "abc":
            scene.life.stream_data(event(text))
        await scene.life.before_request(scene.turn.call)
        scene.life.stream_data(event("d"))

    run(turn())
    assert heard == ["a", "ab", "d"]
    assert scene.log.count("chunk B") == 4
    assert (len(scene.warnings), scene.turn.status) == (1, "processing")


def test_a_clean_up_must_be_callable() -> None:
    async def start(turn: TurnInfo) -> Any:
        return 5

    scene = Scene([Actor("A", start=start)])

    async def turn() -> None:
        with pytest.raises(PluginFailed, match="on_turn_start"):
            await scene.life.start()

    run(turn())


def test_takers() -> None:
    class Wants(Plugin):
        def __init__(self, answer: object) -> None:
            self.answer = answer

        def wants(self, turn: TurnInfo) -> bool:
            if isinstance(self.answer, BaseException):
                raise self.answer
            return bool(self.answer)

    plugins = [Wants(True), Wants(False), Wants(ValueError(CANARY)), Wants(SystemExit()), Plugin()]
    warnings: list[str] = []
    assert takers(plugins, tturn(), warnings.append) == (plugins[0], plugins[4])
    assert len(warnings) == 2
    assert re.fullmatch(r"Plugin wants failed: wants raised ValueError \(test_lifecycle\.py:\d+\)", warnings[0])


@pytest.mark.parametrize(
    "said", [replace(tsaid(), complete=False), replace(tsaid(), error=ProviderError(529, "overloaded"))], ids=["cut", "error"]
)
def test_an_answer_that_is_not_complete_has_no_on_after_request(said: Said) -> None:
    scene = Scene([Actor("A")])

    async def turn() -> None:
        await scene.begin()
        with pytest.raises(ValueError):
            await scene.life.after_request(said)

    run(turn())
    assert "after A" not in scene.log


def test_plugins_that_override_nothing_cost_no_task() -> None:
    """Not even a turn of the loop."""
    life = Lifecycle(tturn(), [Plugin(), Plugin()])
    call = tcall()

    async def turn() -> None:
        await life.start()
        assert await life.before_request(call) is call
        life.stream_data(event("x"))
        assert await life.after_request(tsaid()) is None
        await life.end()

    work = turn()
    with pytest.raises(StopIteration):
        work.send(None)


# What plugins see


def test_the_state_of_the_turn_as_its_plugins_see_it() -> None:
    seen: list[tuple[str, int]] = []

    async def note(turn: TurnInfo, *_: object) -> None:
        seen.append((turn.status, turn.rounds))

    scene = Scene([Actor("A", start=note, before=note, after=note, end=note)])

    async def turn() -> None:
        await scene.begin()
        await scene.life.after_request(tsaid())
        await scene.life.end()

    run(turn())
    assert seen == [("processing", 0), ("processing", 0), ("processing", 1), ("completed", 1)]


def test_hints_hold_for_the_first_round_only() -> None:
    async def before(turn: TurnInfo, request: Request) -> None:
        request.hint(route="thinking")
        request.hint(disable_sticky=True, session="other")

    scene = Scene([Actor("A", before=before)])

    async def turn() -> None:
        await scene.begin()
        assert (scene.life.hints.route, scene.life.hints.disable_sticky, scene.life.hints.session) == ("thinking", True, "other")
        await scene.life.after_request(tsaid())
        with pytest.raises(PluginFailed, match="on_before_request raised RuntimeError"):
            await scene.life.before_request(scene.turn.call)

    run(turn())


def test_hints_stay_known_through_retries_and_later_rounds() -> None:
    async def before(turn: TurnInfo, request: Request) -> None:
        if not request.round:
            request.hint(session="other")

    scene = Scene([Actor("A", before=before)])

    async def turn() -> None:
        await scene.begin()
        await scene.life.before_request(scene.turn.call)
        await scene.life.after_request(tsaid())
        await scene.life.before_request(scene.turn.call)

    run(turn())
    assert scene.life.hints.session == "other"


@pytest.mark.parametrize("kind", list(Kind))
def test_the_kind_of_the_call(kind: Kind) -> None:
    turn = tturn(kind=kind)
    assert (turn.kind, turn.kind == str(kind)) == (kind, True)


@pytest.mark.parametrize(
    "dialect, stream, last",
    [
        (Dialect.MESSAGES, b'event: a\ndata: {"n": 1}\n\nevent: b\ndata: {"n": 2}\n\n', {"n": 2}),
        (Dialect.MESSAGES, b'data: {"n": 1}\n\ndata: {"n": 2}', {"n": 2}),
        (
            Dialect.CHAT,
            b'data: {"choices":[{"n":1}]}\n\ndata: {"choices":[{"n":2}]}\n\ndata: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n',
            {"choices": [{"n": 2}]},
        ),
        (Dialect.GEMINI, b'data: {"candidates":[]}\r\n\r\n: comment\r\n\r\n', {"candidates": []}),
        (Dialect.RESPONSES, b"", None),
    ],
)
@pytest.mark.parametrize("listens", [True, False])
def test_last_choice_chunk(dialect: Dialect, stream: bytes, last: object, listens: bool) -> None:
    assert chunk_behind(stream, dialect, listens) == last


@pytest.mark.parametrize("listens", [True, False])
@pytest.mark.parametrize("size", [1000, 65_536, 10_000_000])
def test_last_choice_chunk_of_a_long_stream(listens: bool, size: int) -> None:
    long = b"".join(b'data: {"n": %d, "text": "data: {}%s"}\n\n' % (n, b"x" * 500) for n in range(1500))
    assert chunk_behind(long + b'data: {"n": "last"}\n\n', Dialect.MESSAGES, listens, size) == {"n": "last"}


def chunk_behind(stream: bytes, dialect: Dialect, listens: bool, size: int = 7) -> object:
    found: list[object] = []

    class Quiet(Plugin):
        async def on_after_request(self, turn: TurnInfo, after: AfterRequest) -> None:
            found.append(after.last_choice_chunk)
            assert after.last_choice_chunk == found[0]

    scene = Scene([Quiet(), *([Actor("A")] if listens else [])], turn=tturn(tcall(dialect)))

    async def turn() -> None:
        await scene.begin()
        for place in range(0, len(stream), size):
            scene.life.stream_data(stream[place : place + size])
        await scene.life.after_request(tsaid())

    run(turn())
    return found[0]


def test_an_answer_in_one_json_document_is_no_stream() -> None:
    scene = Scene([Actor("A")], turn=tturn(tcall(stream=False)))

    async def turn() -> None:
        await scene.begin()
        scene.life.stream_data(event("x"))
        await scene.life.after_request(tsaid())

    run(turn())
    assert "chunk A" not in scene.log
