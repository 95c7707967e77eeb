"""What mitmproxy refuses is refused still, in its own words; what is right costs no error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from mitmproxy import http, optmanager
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


PLACES = ((http.MessageData, "__post_init__"), (http.Headers, "__init__"), (http.Headers, "get"), (optmanager._Option, "current"))


@pytest.fixture(params=["mitmproxy's own", "ours"])
def either(request: pytest.FixtureRequest) -> None:
    quick_checks.remove()  # another test has made a whole addon
    own = [getattr(*place) for place in PLACES]
    if request.param == "ours":
        quick_checks.install()
        assert not any(now is before for now, before in zip([getattr(*place) for place in PLACES], own, strict=True))


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


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    "fields, name, said",
    [
        ([(b"Host", b"a")], "hOST", "a"),
        ([(b"x-one", b"a"), (b"y", b"b"), (b"X-One", b""), (b"x-oNe", b"c")], "x-one", "a, , c"),
        ([(b"x", b"")], "x", ""),
        ([(b"x", b"a")], "y", None),
        ([], "x", None),
        ([(b"x", b"\xff\xc3\xa9")], "x", "\udcffé"),
        ([(b"x\xe9", b"1"), ("é".encode(), b"2"), ("É".encode(), b"3")], "É", "3"),
        ([(b"k", b"1")], "\u212a", None),
    ],
)
def test_a_header(fields: list[tuple[bytes, bytes]], name: str, said: str | None) -> None:
    """Names are alike but for the case of ASCII, several are folded, and what is no text stays what it was."""
    headers = http.Headers(iter(fields))
    assert headers.fields == tuple(fields)
    assert headers.get(name) == said
    assert headers.get(name, "other") == ("other" if said is None else said)
    assert (name in headers) is (said is not None)


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("fields", [[("x", b"1")], [(b"x", "1")], [(b"x",)], [(b"x", b"1", b"2")], [b"xy"], ["xy"], 5])
def test_what_no_head_is(fields: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        http.Headers(fields)


@pytest.mark.usefixtures("either")
def test_heads_by_name() -> None:
    made = http.Headers([(b"a", b"1"), (b"B", b"2")], b="3", some_name="4")
    assert made.fields == ((b"a", b"1"), (b"B", b"3"), (b"some-name", b"4"))
    assert made.get("Some-Name") == "4"


@pytest.mark.usefixtures("either")
def test_a_head_of_somebody_elses() -> None:
    class Mine(http.Headers):
        def __getitem__(self, name: str) -> str:
            return name * 2

    assert Mine([(b"a", b"1")]).get("ab") == "abab"


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("value", ["a", 1, True, None, ["a", "b"]])
def test_an_option(value: Any) -> None:
    """What somebody else gets of it is theirs."""
    options = optmanager.OptManager()
    options.add_option("one", Sequence[str] if isinstance(value, list) else type(value) | None, value, "")
    assert options.one == value
    options.reset()
    options.update(one=value)
    got = options.one
    assert got == value
    if isinstance(got, list):
        got.append("c")
        assert options.one == value


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


def test_all_of_it_goes() -> None:
    quick_checks.remove()
    own = [vars(owner).get(name) for owner, name in PLACES]
    quick_checks.install()
    quick_checks.remove()
    assert [vars(owner).get(name) for owner, name in PLACES] == own
