"""What a turn said, as whoever carries it would do it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from routecodex.routing.turn.actions import Action, Finish, Forward


def spelled_out(actions: Iterable[Action]) -> Iterator[Action]:
    """The end of an answer is written as it is taken; here it is taken at once."""
    for action in actions:
        if isinstance(action, Finish):
            if end := b"".join(action.end):
                yield Forward(end)
            yield Finish()
        else:
            yield action
