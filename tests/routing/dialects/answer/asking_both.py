"""The tests of the old answer side ask the new one as well: each of them runs twice, `old` and `new`.

What the two say differently on purpose stands here by name, with the reason; such a test must fail on the new one.
"""

from __future__ import annotations

import re
import sys

import pytest

from routecodex.routing.dialects.translation import coming_down
from tests.routing.dialects.answer import both, neutral_both

ASKED = frozenset(
    (
        "tests/routing/dialects/translation/hearing/test_gemini.py",
        "tests/routing/dialects/translation/telling/test_gemini.py",
        "tests/routing/dialects/translation/test_carried.py",
        "tests/routing/dialects/translation/test_coming_down.py",
        "tests/routing/dialects/translation/test_finishes.py",
        "tests/routing/dialects/translation/test_half_calls.py",
        "tests/routing/dialects/translation/test_whole_and_streamed.py",
        "tests/trouble/test_spoiled_translations.py",
        "tests/trouble/test_translated_streams.py",
    )
)

DIFFERENCES: dict[str, str] = {
    r"translation/hearing/test_gemini.py::test_a_stream_that_breaks_off_has_no_end\[new": (
        "a call without an id is told with its end, so that one that never ends is not told at all"
    ),
    r"translation/test_coming_down.py::test_a_document_without_end_is_not_kept\[new": (
        "it is an error of the round, like every other one: nothing is raised"
    ),
    r"translation/test_coming_down.py::test_the_providers_own_word_is_logged\[new": (
        "the same machine writes the client's word, and says so, too"
    ),
}


def ask_both(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.nodeid.partition("::")[0] in ASKED:
        metafunc.parametrize("answer_side", ["old", "new"], indirect=True)


def is_different(item: pytest.Item) -> bool:
    return any(re.search(pattern, item.nodeid) for pattern in DIFFERENCES)


def mark_difference(item: pytest.Item) -> None:
    for pattern, reason in DIFFERENCES.items():
        if re.search(pattern, item.nodeid):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(autouse=True)
def answer_side(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    side = getattr(request, "param", "old")
    if side == "new":
        for module in [module for name, module in sys.modules.items() if name.startswith("tests.")]:
            for name, old, new in (
                ("Translation", coming_down.Translation, both.Translation),
                ("hear", neutral_both.OLD[0], neutral_both.hear),
                ("hear_documents", neutral_both.OLD[1], neutral_both.hear_documents),
                ("tell", neutral_both.OLD[2], neutral_both.tell),
                ("tell_whole", neutral_both.OLD[3], neutral_both.tell_whole),
            ):
                if getattr(module, name, None) is old:
                    monkeypatch.setattr(module, name, new)
    return side
