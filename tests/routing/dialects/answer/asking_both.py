"""The tests of the old answer side ask the new one as well: each of them runs twice, `old` and `new`.

What the two say differently on purpose stands here by name, with the reason; such a test must fail on the new one.
"""

from __future__ import annotations

import re
import sys

import pytest

from routecodex.routing.dialects import merging
from routecodex.routing.dialects.translation import coming_down
from tests.routing.dialects.answer import both

ASKED = frozenset(
    (
        "tests/routing/dialects/merging/test_common.py",
        "tests/routing/dialects/merging/test_messages.py",
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
    r"merging/test_common.py::test_without_a_round_that_counts_the_bytes_are_the_providers\[new": (
        "what is no answer ends in an error of the client's dialect, not in the provider's bytes"
    ),
    r"merging/test_chat.py::test_a_refusal_is_no_plain_stop\[new": "a refusal is text that a person reads",
    r"merging/test_chat.py::test_refusals_of_two_rounds\[new": "a refusal goes on behind a blank line, like any text",
    r"merging/test_messages.py::test_m34_live\[new": "the blank line leaves in the first event of the text it stands before",
    r"merging/test_messages.py::test_d17_nor_where_its_own_end_is_odd\[new-\\n\\n: and a comment": (
        "only `message_stop` is taken out: a comment behind it stays"
    ),
    r"merging/test_messages.py::test_noise_behind_a_held_stop_is_bounded\[new": "one limit for all dialects: 1 MiB, was 64 KiB",
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
                ("merger_for", merging.merger_for, both.merger_for),
                ("Translation", coming_down.Translation, both.Translation),
            ):
                if getattr(module, name, None) is old:
                    monkeypatch.setattr(module, name, new)
    return side
