"""What every test gets: folders of its own, and the profile that ROUTECODEX_TESTS chooses (`long`, else short)."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import itertools
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import races, rows
from tests.rig.provider import FakeProvider
from tests.sheet import Tally, note_asked, note_outcome

LONG = os.environ.get("ROUTECODEX_TESTS") == "long"
TESTS = Path(__file__).parent
_NUMBERS = itertools.count()
_LARGE = re.compile(
    r"_bounded|_cost|_long_|hostile|ten_thousand|never_there_twice|\[deep\]|cut_files|at_any_moment|nothing_from_outside"
)
"""What is tried with very much, or very often."""

settings.register_profile("fast", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", settings.get_profile("fast"), derandomize=True)
"""Who hands work in is judged by what it changed, not by what a search met this time; every other run searches anew."""
settings.register_profile("deep", max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("deep" if LONG else "gate" if os.environ.get("CI") else "fast")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Tests wait more than they compute; yet each worker has proxies of its own, and many at once make each other late.

    The core waits for nothing, and each worker reads all of it first.
    """
    processors = os.cpu_count() or 1
    return min(6, processors if config.option.markexpr == "quick" else processors + 4)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", type=int, default=1, metavar="N", help="run each test so many times; its rows share them")
    parser.addoption("--rows", action="store_true", help="each row of a parametrised test is an item of its own")


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, Any, Any]:
    made = yield
    return rows.together(made) if isinstance(made, list) else made


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each worker reads a share of the files before all of them: what one has compiled, the others need not."""
    worker, config = getattr(session.config, "workerinput", None), session.config
    if worker is None or sys.dont_write_bytecode:
        return
    folders = [folder for given in config.args if (folder := config.invocation_params.dir / given).is_dir()]
    files = sorted(file for folder in folders for file in folder.rglob("test_*.py") if not pytest_ignore_collect(file, config))
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        with contextlib.suppress(Exception):  # what is wrong with it is said where it is collected
            importlib.import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not rows.wanted_alone(metafunc.config):
        rows.put_together(metafunc)
    if (times := metafunc.config.option.times) > 1:
        times = races.times_of_row(times, len(metafunc._calls))
        metafunc.fixturenames.append("time_number")
        metafunc.parametrize("time_number", range(times), indirect=True, ids=[f"time {number + 1}" for number in range(times)])


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was read stays to the end: nobody looks through it again for what is left over."""
    note_asked([item.nodeid for item in session.items])
    gc.freeze()


def pytest_sessionfinish() -> None:
    Tally.tell()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The sheet hears how each test ended, where it asks."""
    report = yield
    if report.when == "call" or report.failed:
        passing = re.findall(r"(\d+) passing", getattr(item, "hypothesis_statistics", ""))
        cases = getattr(getattr(item, "obj", None), "rows", 1)
        note_outcome(item.nodeid, report.outcome, report.duration, sum(map(int, passing)), cases)
    return report


@pytest.fixture
def time_number(request: pytest.FixtureRequest) -> int:
    """Which of the `--times` this is."""
    return int(request.param)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m quick` reads no other files: that alone would take longer than the tests."""
    if config.option.markexpr != "quick" or collection_path in (TESTS, *TESTS.parents):
        return None
    return not collection_path.is_relative_to(TESTS / "routing") or None


@functools.cache
def _place(path: Path) -> str:
    """Which of the folders here a file lies in."""
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""


def is_quick(item: pytest.Item) -> bool:
    """A core test without a process, a search for counterexamples, or a measuring of work."""
    function, module = getattr(item, "function", None), getattr(item, "module", None)
    return (
        _place(item.path) == "routing"
        and not any(item.get_closest_marker(name) for name in ("system", "long"))
        and not getattr(function, "is_hypothesis_test", False)
        and not any(hasattr(module, name) for name in ("subprocess", "multiprocessing", "assert_linear", "RuleBasedStateMachine"))
        and _LARGE.search(item.name) is None
    )


def waits_or_races(item: pytest.Item) -> bool:
    """By the rule of `tests/races.py`."""
    if _place(item.path) in races.PLACES or item.get_closest_marker("system") is not None:
        return True
    if not isinstance(item, pytest.Function):
        return False
    known = item._fixtureinfo.name2fixturedefs
    given = [
        each.func for name in item.fixturenames for each in known.get(name, ()) if each.func.__module__ == item.module.__name__
    ]
    return races.waits(item.function, given)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marked by rule where that is asked for; long tests are left out, not skipped: a skipped test would look like one that ran.

    What waits is begun first: while one worker waits, others compute, and what is left for the end is short.
    """
    items.sort(key=lambda item: _place(item.path) == "routing")
    for item in items if config.option.markexpr else ():
        if is_quick(item):
            item.add_marker(pytest.mark.quick)
        if waits_or_races(item):
            item.add_marker(pytest.mark.races)
    if LONG:
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the state of the person who runs it. The folders are there once somebody writes into them."""
    own = tmp_path_factory.getbasetemp() / "own" / str(next(_NUMBERS))
    monkeypatch.setenv("ROUTECODEX_SESSION_DIR", str(own / "sessions"))
    monkeypatch.setenv("ROUTECODEX_USER_DIR", str(own / "user"))


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running
