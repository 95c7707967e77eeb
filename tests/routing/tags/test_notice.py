from __future__ import annotations

from typing import Any

import pytest

from routecodex.routing.dialects.calls import read_call
from routecodex.routing.jsonbytes import dumps
from routecodex.routing.tags.notice import Cause, line_of, take_out
from routecodex.routing.values import Dialect, Endpoint

LINE = line_of([Cause("a", "glm is off\nand **so** on"), Cause("b", "openai.gpt-5.2 answers")])


def test_several_causes_are_one_line() -> None:
    assert LINE == "[RouteCodex: glm is off and *so* on; openai.gpt-5.2 answers]\n\n"
    assert line_of([]) == ""
    long = line_of([Cause(str(number), "word " * 100) for number in range(9)])
    assert len(long) < 700
    assert long.count("\n") == 2


SAID: dict[str, tuple[str, str]] = {
    "as it was told": (f"{LINE}Grüße", "Grüße"),
    "blanks folded by the client": (f"\n{LINE.strip()}\n  Grüße", "Grüße"),
    "not at the beginning": (f"so: {LINE}x", f"so: {LINE}x"),
    "no line of ours": ("[RouteCodex] Nothing is in force.", "[RouteCodex] Nothing is in force."),
    "two lines": (f"{LINE}{LINE}x", f"{LINE}x"),
}


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("case", SAID)
def test_only_the_models_own_texts_lose_it(dialect: Dialect, case: str) -> None:
    told, left = SAID[case]
    body = {name: [_item(dialect, "user", told), _item(dialect, "assistant", told)] for name in ("messages", "input", "contents")}
    call = read_call(dumps(body), Endpoint(dialect))
    take_out(call)
    assert [message.text for message in call.messages] == [told, left]
    assert call.changed is (told != left)


def _item(dialect: Dialect, role: str, text: str) -> dict[str, Any]:
    if dialect is Dialect.GEMINI:
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    kind = {"type": "message"} if dialect is Dialect.RESPONSES else {}
    return {**kind, "role": role, "content": text}
