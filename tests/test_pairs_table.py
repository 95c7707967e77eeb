"""What docs/dialects.md says of the pairs of dialects is what the code does, and nothing is lost silently."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from routecodex.routing.dialects.translation.neutral import Feature, LeftOut
from routecodex.routing.values import Dialect
from tests import pairs_table
from tests.pairs_table import LEFT_OUT_AS, PAGE, PAIRS, TOLD_OTHERWISE, alone, sayings, tried, tried_alone, with_table

each_pair = pytest.mark.parametrize("client, spoken", PAIRS, ids=[f"{client}-on-{spoken}" for client, spoken in PAIRS])


def test_the_readme_shows_what_the_code_does() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "python -m tests.pairs_table writes it anew"


@each_pair
def test_nothing_is_lost_silently(client: Dialect, spoken: Dialect) -> None:
    for one in tried(client, spoken):
        assert one.silently == {}


@each_pair
def test_nothing_that_is_said_alone_is_lost_silently(client: Dialect, spoken: Dialect) -> None:
    """Beside everything else, what is named for one saying could hide that another is gone."""
    calls = list(tried_alone(client, spoken))
    assert len(calls) > 25
    for one in calls:
        assert one.silently == {}, one.meant


def test_alone_is_everything() -> None:
    for client in Dialect:
        whole = {kind for one in tried(client, client) for kind in sayings(one.meant, {})}
        pieces = {kind for one in tried(client, client) for piece in alone(one.meant) for kind in sayings(piece, {})}
        assert whole <= pieces


def test_no_excuse_that_nobody_needs() -> None:
    calls = [one for pair in PAIRS for one in (*tried(*pair), *tried_alone(*pair))]
    assert {(kind, one.spoken) for one in calls for kind in one.unnamed} == set(TOLD_OTHERWISE)
    assert {kind for one in calls for kind in one.missing if kind not in LEFT_OUT_AS} == {
        kind for kind, _ in TOLD_OTHERWISE if kind not in LEFT_OUT_AS
    }


def test_a_loss_is_seen() -> None:
    """The judge itself: a writer that says nothing of what it leaves out, and one that loses what everybody keeps."""
    (one, _) = tried(Dialect.MESSAGES, Dialect.CHAT)
    assert set(dataclasses.replace(one, written=replace(one.written, left_out=LeftOut())).silently) >= {
        "top_k",
        "thoughts",
        "server tools",
    }
    (last,) = one.read.messages[-1].blocks
    shorter = replace(one.read, messages=one.read.messages[:-1])
    assert dataclasses.replace(one, read=shorter).silently == {"text of user": [last.text]}  # type: ignore[union-attr]
    assert set(dataclasses.replace(one, read=replace(one.read, tools=())).silently) >= {
        "tools",
        "schemas",
        "descriptions of tools",
    }


def test_every_feature_has_its_row_or_is_nobodys() -> None:
    """Those that no call of these needs: an answer of the models above does not lack them."""
    assert set(Feature) - set(pairs_table.left_out()) == NOT_MET


NOT_MET = {
    *(Feature.ALLOWED_TOOLS, Feature.FILES, Feature.IMAGE_LINKS),
    *(Feature.MCP, Feature.CREDENTIALS, Feature.CONTAINER, Feature.COMPACTED),
}
"""What stays at the host the client called is left out before anything is translated. A choice is
told by leaving out the other tools; every file here is of a kind that all read, every address one of the web."""
