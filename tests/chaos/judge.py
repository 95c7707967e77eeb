"""Judges recorded histories by what clients were told and what the provider received; knows nothing of how anything is done.

One history is one client's session. It asks three kinds of things, each with a word that nothing else has: `say`, `go on` (to be
told to go on so many times, never more) and `remind` (with a later answer that must have been reminded, once).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["say", "go on", "remind"]
ROUNDS = 2
"""So many times a client asks to go on."""


@dataclass(frozen=True, slots=True)
class Told:
    """One call of a client: what it asked, and whether it was answered."""

    kind: Kind
    word: str
    ok: bool
    answer: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Got:
    """One request that the provider received: the last message's texts, and whose call it was for."""

    typed: str
    """The word of what the client had typed last."""
    went_on: str = ""
    """The word that it was told to go on with."""
    reminded: tuple[str, ...] = ()
    opens: bool = True
    """It begins the answer to what was typed: the last message holds that."""


@dataclass(slots=True)
class Verdict:
    lost: list[str] = field(default_factory=list)
    """Reminders that no call brought at all."""
    gone: list[str] = field(default_factory=list)
    """… that a call had brought whose answer never came, and no other brought again."""
    doubled: list[str] = field(default_factory=list)
    """Reminders that two answered calls brought."""
    exceeded: list[str] = field(default_factory=list)
    """Who was told to go on more often than asked for."""
    short: list[str] = field(default_factory=list)
    """… whose call was answered at once although it was told less often."""
    strange: list[str] = field(default_factory=list)
    """Answers that are none to what was asked, or another's."""

    @property
    def holds(self) -> bool:
        return not (self.lost or self.doubled or self.exceeded or self.short or self.strange)


def judge(history: Sequence[Told], got: Iterable[Got]) -> Verdict:
    """`got`: of all clients; words tell whose they are."""
    verdict = Verdict()
    mine = {told.word for told in history}
    requests = [one for one in got if one.typed in mine or one.went_on in mine or mine & set(one.reminded)]
    answered = {told.word: told for told in history if told.ok}
    repeated = {told.word for told in history if not told.ok}
    went_on = Counter(one.went_on for one in requests if one.went_on)
    for word, count in went_on.items():
        if count > ROUNDS:
            verdict.exceeded.append(f"{word}: {count}")
    last = {one.typed: one for one in requests if one.opens and not one.went_on}
    """Of a call that was repeated, the one that was answered in the end."""
    carried: dict[str, set[str]] = {}
    for typed, one in last.items():
        for word in one.reminded:
            carried.setdefault(word, set()).add(typed)
    for place, told in enumerate(history):
        if not told.ok:
            continue
        if told.word not in told.answer:
            verdict.strange.append(f"{told.word}: {told.answer[:80]}")
        if told.kind == "go on" and went_on[told.word] < ROUNDS and told.word not in repeated:
            verdict.short.append(f"{told.word}: {went_on[told.word]}")
        if told.kind == "remind":
            later = {one.word for one in history[place + 1 :] if one.ok and one.word != told.word}
            brought = carried.get(told.word, set()) & later
            if later and not brought:
                began = any(told.word in one.reminded for one in requests)
                (verdict.gone if began else verdict.lost).append(told.word)
            if len(brought) > 1:
                verdict.doubled.append(f"{told.word}: {sorted(brought)}")
    for one in requests:
        foreign = [word for word in one.reminded if (word in mine) != (one.typed in mine)]
        if foreign and one.typed:
            verdict.strange.append(f"{one.typed} was reminded of {foreign}")
    assert set(answered) <= mine
    return verdict
