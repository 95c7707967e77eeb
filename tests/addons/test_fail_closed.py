"""A hook or a turn that fails says where, never what, and leaves nothing half-done."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from routecodex.addons import fail_closed

SECRET = "Bearer sk-very-secret"


class Hooks:
    @fail_closed.guarded
    def requestheaders(self, flow: http.HTTPFlow) -> None:
        raise ValueError(SECRET)

    @fail_closed.guarded
    async def request(self, flow: http.HTTPFlow) -> None:
        await asyncio.sleep(0)
        raise ValueError(SECRET)

    @fail_closed.guarded
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        raise ValueError(SECRET)

    @fail_closed.guarded
    def response(self, flow: http.HTTPFlow) -> None:
        flow.comment = "well"


def flow() -> http.HTTPFlow:
    made = tflow.tflow(resp=False)
    made.live = True
    made.request.headers["authorization"] = SECRET
    made.request.path = f"/v1/x?key={SECRET}"
    return made


@pytest.mark.parametrize("hook", ["requestheaders", "request"])
def test_a_request_is_refused(hook: str, caplog: pytest.LogCaptureFixture) -> None:
    refused = flow()
    outcome = getattr(Hooks(), hook)(refused)
    if hook == "request":
        asyncio.run(outcome)
    assert refused.response is not None
    assert refused.response.status_code == 502
    assert json.loads(refused.response.content or b"")["error"]["code"] == "INTERNAL"
    assert refused.response.headers["x-should-retry"] == "false"
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith(f"RouteCodex failed in {hook} at test_fail_closed.py:")
    assert "ValueError" in record.getMessage()
    assert SECRET not in caplog.text
    assert record.exc_info is None


def test_credentials_that_could_not_be_taken_off_are_not_shown() -> None:
    refused = flow()
    Hooks().requestheaders(refused)
    assert SECRET not in str(refused.get_state())


def test_an_answer_that_breaks_is_not_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    broken = flow()
    Hooks().responseheaders(broken)
    assert broken.error is not None
    assert SECRET not in caplog.text


def test_what_does_not_fail_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    whole = flow()
    Hooks().response(whole)
    assert (whole.comment, whole.response, whole.error, caplog.records) == ("well", None, None, [])


class Turn:
    def __init__(self) -> None:
        self.bursts = 0

    def burst(self) -> None:
        self.bursts += 1

    @fail_closed.contained
    def good(self, value: int) -> None:
        assert value == 1

    @fail_closed.contained
    def bad(self, value: int) -> None:
        raise KeyError(SECRET)


def test_a_turn_that_fails_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    turn = Turn()
    turn.good(1)
    assert (turn.bursts, caplog.records) == (0, [])
    turn.bad(1)
    assert turn.bursts == 1
    assert "RouteCodex failed in bad at test_fail_closed.py:" in caplog.text
    assert SECRET not in caplog.text


def test_being_cancelled_is_no_failure() -> None:
    """A hook that is cancelled must not answer."""

    class Cancelled:
        @fail_closed.guarded
        async def request(self, flow: http.HTTPFlow) -> None:
            raise asyncio.CancelledError

    cancelled = flow()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(Cancelled().request(cancelled))
    assert cancelled.response is None
