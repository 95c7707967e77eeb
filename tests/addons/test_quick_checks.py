"""What mitmproxy refuses is refused still, in its own words; what is right costs no error."""

from __future__ import annotations

from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.utils import typecheck

from routecodex.addons import quick_checks

GOOD: dict[str, Any] = {
    "host": "a",
    "port": 1,
    "method": b"GET",
    "scheme": b"http",
    "authority": b"",
    "path": b"/",
    "http_version": b"HTTP/1.1",
    "headers": http.Headers(),
    "content": b"",
    "trailers": None,
    "timestamp_start": 1.0,
    "timestamp_end": None,
}


@pytest.fixture(params=["mitmproxy's own", "ours"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    own = vars(http.MessageData)["__post_init__"]
    while hasattr(own, "__wrapped__"):  # another test has made a whole addon
        own = own.__wrapped__
    monkeypatch.setattr(http.MessageData, "__post_init__", own)
    if request.param == "ours":
        quick_checks.install()
        assert vars(http.MessageData)["__post_init__"] is not own


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    "fields",
    [{}, {"content": None}, {"trailers": http.Headers()}, {"timestamp_end": 2.0}, {"timestamp_start": 1}, {"port": True}],
)
def test_what_fits(fields: dict[str, Any]) -> None:
    """Where a float is wanted an integer will do."""
    made = http.RequestData(**{**GOOD, **fields})
    assert all(getattr(made, name) == value for name, value in fields.items())


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    "name, value", [("port", "1"), ("host", b"a"), ("path", "/"), ("content", "x"), ("trailers", {}), ("timestamp_start", None)]
)
def test_what_does_not_fit(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"for {name}, but got {type(value)}"):
        http.RequestData(**{**GOOD, name: value})


@pytest.mark.usefixtures("either")
def test_a_subclass_fits() -> None:
    class Mine(http.Headers): ...

    assert http.ResponseData(b"HTTP/1.1", Mine(), b"", None, 1.0, None, 200, b"OK").headers == http.Headers()


def test_what_fits_costs_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_checks.install()
    judged: list[str] = []
    monkeypatch.setattr(typecheck, "check_option_type", lambda name, value, kind: judged.append(name))
    http.Response.make(200, b"x", {"a": "b"})
    http.Request.make("POST", "http://a/b", b"x", {"a": "b"})
    assert judged == []


def test_installed_once() -> None:
    quick_checks.install()
    standing = vars(http.MessageData)["__post_init__"]
    quick_checks.install()
    assert vars(http.MessageData)["__post_init__"] is standing


def test_where_mitmproxy_checks_nothing_nothing_is_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under `python -O`."""
    monkeypatch.delattr(http.MessageData, "__post_init__")
    quick_checks.install()
    assert "__post_init__" not in vars(http.MessageData)


def test_taken_out() -> None:
    quick_checks.install()
    quick_checks.remove()
    assert vars(http.MessageData)["__post_init__"].__module__ == http.__name__
    assert not hasattr(vars(http.MessageData)["__post_init__"], "__wrapped__")
    quick_checks.remove()
    quick_checks.install()
    assert hasattr(vars(http.MessageData)["__post_init__"], "__wrapped__")
