"""What mitmproxy tells of headers and options is the same with and without what stands in for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mitmproxy import http, options, optmanager

from routecodex.addons import quick_reads
from tests.rig.work import assert_linear

PLACES = ((http.Headers, "get_all"), (http.Headers, "get"), (http.Headers, "__init__"), (optmanager.OptManager, "__getattr__"))


@pytest.fixture(params=["mitmproxy's own", "ours"], autouse=True)
def either(request: pytest.FixtureRequest) -> Iterator[None]:
    quick_reads.remove()
    own = [vars(kind).get(name) for kind, name in PLACES]
    if request.param == "ours":
        quick_reads.install()
        quick_reads.install()
        assert all(vars(kind).get(name) is not one for (kind, name), one in zip(PLACES, own, strict=True))
    yield
    quick_reads.remove()
    assert [vars(kind).get(name) for kind, name in PLACES] == own


def test_headers() -> None:
    headers = http.Headers([(b"Cookie", b"a"), (b"X-\xc4", b"\xff"), (b"cookie", b"b")], content_type="text/plain")
    assert (headers["COOKIE"], headers.get("cookie"), headers.get(b"cookie")) == ("a, b",) * 3
    assert headers.get_all("Cookie") == headers.get_all(b"COOKIE") == ["a", "b"]
    assert (headers.get("x"), headers.get("x", 1), "x" in headers, headers.get_all("x")) == (None, 1, False, [])
    assert headers.get("x-\udcc4") == "\udcff"
    assert headers["Content-Type"] == "text/plain"
    assert headers.copy() == headers
    assert http.Headers([[b"a", b"b"]]).fields == ((b"a", b"b"),)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="must be bytes"):
        http.Headers([("a", "b")])  # type: ignore[list-item]
    with pytest.raises((TypeError, AttributeError)):
        headers.get(1)  # type: ignore[call-overload]


def test_a_name_that_somebody_repeats_without_end_costs_linear_work() -> None:
    def repeated(times: int) -> http.Headers:
        return http.Headers([(b"a", b"0123456789")] * times)

    assert_linear(lambda headers: headers.get("a"), repeated, 20_000)


def test_a_subclass_has_its_own() -> None:
    class Loud(http.Headers):
        def __getitem__(self, name: str | bytes) -> str:
            return "loud"

    assert Loud([(b"a", b"b")]).get("a") == "loud"


def test_options() -> None:
    known = options.Options()
    known.update(listen_port=1234, ignore_hosts=["a"])
    assert (known.listen_port, known.mode, known.client_certs) == (1234, ["regular"], None)
    known.ignore_hosts.append("b")
    known.mode.append("b")
    assert (known.ignore_hosts, known.mode) == (["a"], ["regular"])
    known.reset()
    assert known.listen_port is None
    with pytest.raises(AttributeError, match="No such option: unknown"):
        _ = known.unknown
