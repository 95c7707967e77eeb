"""The page without mitmweb: at a port of its own, for whoever has the token, and for nobody else."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.rig.provider import FakeProvider
from tests.rig.proxy import SCRIPT, Mitmdump, free_port
from tests.system.tool import CONFIG, Tool

pytestmark = pytest.mark.system


@dataclass
class Visitor:
    port: int
    host: str = ""
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(self, path: str, question: object = None, **headers: str) -> tuple[int, str]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {
            "Host": self.host or f"127.0.0.1:{self.port}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = None if question is None else json.dumps(question).encode()
        link.request("GET" if body is None else "POST", path, body, sent)
        answer = link.getresponse()
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                assert "HttpOnly" in value
                assert "SameSite=Strict" in value
                self.cookies[key] = rest.partition(";")[0]
        return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def served(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mitmdump, int, str]]:
    port, folder = free_port(), tmp_path_factory.mktemp("page")
    options = [f"routecodex_page={port}"]
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=folder, options=options) as proxy:
        deadline = time.monotonic() + 60
        while not (found := re.search(rf"http://127.0.0.1:{port}(/routecodex\?token=\S+)", proxy.log)):
            assert time.monotonic() < deadline, proxy.log
            time.sleep(0.05)
        yield proxy, port, found[1]
        assert proxy.alive
        assert "Traceback" not in proxy.log


def test_nobody_without_the_token_gets_anything(served: tuple[Mitmdump, int, str]) -> None:
    _, port, entrance = served
    for path in ("/routecodex", "/routecodex/state", "/routecodex/page.js", "/routecodex?token=", "/routecodex?token=x"):
        status, said = Visitor(port).ask(path)
        assert (status, "token" in said) == (403, False)
    assert Visitor(port).ask("/routecodex/ask", {"verb": "status"})[0] == 403
    assert Visitor(port).ask("/")[0] in (403, 404)
    assert Visitor(port, host=f"evil.example:{port}").ask(entrance)[0] == 403, "a name of somebody else's"


def test_who_has_it_sees_the_page_and_its_buttons_work(provider: FakeProvider, served: tuple[Mitmdump, int, str]) -> None:
    proxy, port, entrance = served
    visitor = Visitor(port)
    assert visitor.ask(entrance)[0] == 302
    status, page = visitor.ask("/routecodex")
    xsrf = re.search(r'name="xsrf" content="([^"]+)"', page)
    assert status == 200
    assert xsrf is not None
    assert "script-src" not in page
    assert all(visitor.ask(f"/routecodex/{name}")[0] == 200 for name in ("page.js", "page.css"))
    tool = Tool(provider, proxy)
    tool.ask("what is this?")
    told = json.loads(visitor.ask("/routecodex/state")[1])
    assert told["showsFlows"] is False
    assert told["calls"][0]["title"] == "what is this?"
    order = {"verb": "set routing", "orders": [["sticky", "glm.glm-4.7"]]}
    assert visitor.ask("/routecodex/ask", order)[0] == 403, "another page's form would come without it"
    status, said = visitor.ask("/routecodex/ask", order, X_XSRFToken=xsrf[1])
    assert (status, json.loads(said)["routing"]["sticky"]) == (200, "glm.glm-4.7")
    provider.forget()
    tool.ask("and now?")
    assert {call.host for call in provider.calls} == {"open.bigmodel.cn"}
    visitor.ask("/routecodex/ask", {"verb": "set routing", "orders": [["clear", ""]]}, X_XSRFToken=xsrf[1])


@pytest.mark.parametrize(
    "about",
    [{"Origin": "http://127.0.0.1:3000"}, {"Origin": "null"}, {"Sec_Fetch_Site": "same-site"}, {"Sec_Fetch_Site": "cross-site"}],
    ids=str,
)
def test_a_page_at_another_port_of_this_machine_changes_nothing(served: tuple[Mitmdump, int, str], about: dict[str, str]) -> None:
    """Cookies know no ports: it comes with ours, and with one of its own making against forged forms."""
    _, port, entrance = served
    visitor = Visitor(port)
    assert visitor.ask(entrance)[0] == 302
    visitor.cookies["_xsrf"] = "ab" * 16
    order = {"verb": "set routing", "orders": [["sticky", "glm.glm-4.7"]]}
    assert visitor.ask(f"/routecodex/ask?_xsrf={'ab' * 16}", order, Content_Type="text/plain", **about)[0] == 403
    assert visitor.ask("/routecodex/state", **about)[0] == 403
    assert visitor.ask("/routecodex/state", Origin=f"http://127.0.0.1:{port}", Sec_Fetch_Site="same-origin")[0] == 200


def test_a_port_that_is_taken_is_said_and_calls_go_on(
    provider: FakeProvider, served: tuple[Mitmdump, int, str], tmp_path: Path
) -> None:
    _, port, _ = served
    with Mitmdump(script=SCRIPT, config=CONFIG, upstream=provider, folder=tmp_path, options=[f"routecodex_page={port}"]) as proxy:
        assert Tool(provider, proxy).ask("hello").status == 200
        assert f"cannot be served at port {port}" in proxy.log
