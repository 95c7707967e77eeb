"""Rounds → one answer. Knows no dialect: it looks at events and their ranks alone.

1. What opens an answer waits for its first content: a round that breaks off before that leaves nothing behind.
2. What ends a round, and the end of a text, wait until it is known what follows; what comes behind them waits too.
3. A text of a later round goes on in the text that is open, behind a blank line. Its thoughts are not shown, and calls of ours
   never are.
4. As long as nothing had to change, chunks leave as they came. Only a reason that does not fit what was said is written anew.
5. No round's end is the answer's: where something was altered, or the last round came in another dialect or form, the end is
   put together from what all rounds said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...values import Dialect
from ..finish import AS_USUAL, Endings, holds_calls, is_cut, is_whole_call, read_finish
from ..translation.neutral import Feature, LeftOut
from .events import (
    Aside,
    Began,
    Block,
    Chunk,
    Cited,
    Closed,
    Closing,
    Counted,
    Done,
    Ended,
    Event,
    Extra,
    Failed,
    Field,
    Lost,
    Opened,
    Piece,
    Rank,
    is_content,
)
from .repeated import LONG
from .said import Content, keep_nothing

BLANK_LINE = "\n\n"
"""Stands in front of the first visible text of a later round."""
BOM = b"\xef\xbb\xbf"
HELD_BYTES = 1 << 20
"""So much may wait. More than that without content is content all the same."""


class _Round(Struct):
    """One that counts."""

    content: Content
    end: list[Chunk]
    """What ended it, and was held back."""
    foreign: bool
    """It came in another dialect than the client's."""


_MOST_UNMEASURED = 64
"""Texts that may still grow; of more of them the first counts as it is."""


class _Lengths:
    """How much text stands before a block. What is over is measured once, however many sources of it are told."""

    def __init__(self) -> None:
        self._known: dict[Block, tuple[int, int]] = {}
        self._all, self._into = 0, dict[Block, int]()
        self._content = self._place = 0
        """Where the first text stands that is not measured."""

    def before(self, own: Block, contents: Sequence[Content]) -> tuple[int, int] | None:
        """In the whole answer, and of that in the block where the client sees it; None where it is no text of these."""
        if own in self._known:
            return self._known[own]
        self._measure(contents, own)
        into = own.into or own
        total, inside = self._all, self._into.get(into, 0)
        for place, content in enumerate(contents[self._content :]):
            for block in content.texts[0 if place else self._place :]:
                if block is own:
                    return total, inside
                size = _size(block, content)
                total, inside = total + size, inside + (size if (block.into or block) is into else 0)
        return None

    def _measure(self, contents: Sequence[Content], up_to: Block) -> None:
        """Not further: where the client sees a block is known when it was shown."""
        while self._content < len(contents):
            content, is_last = contents[self._content], self._content == len(contents) - 1
            texts = content.texts
            while self._place < len(texts):
                block = texts[self._place]
                is_open = is_last and not content.is_over(block)
                if block is up_to or (is_open and len(texts) - self._place <= _MOST_UNMEASURED):
                    return
                into, size = block.into or block, _size(block, content)
                inside = self._into.get(into, 0)
                self._known[block] = self._all, inside
                self._all, self._into[into] = self._all + size, inside + size
                self._place += 1
            if is_last:
                return
            self._content, self._place = self._content + 1, 0


def _size(block: Block, content: Content) -> int:
    return len(block.glue) + len(str(content.blocks[block]))


class Join:
    def __init__(
        self,
        client: Dialect,
        *,
        own: frozenset[str] = frozenset(),
        endings: Endings = AS_USUAL,
        live: bool = True,
        quiet: bool = False,
        apart: bool = False,
    ) -> None:
        self._client, self.own, self._endings, self._apart = client, own, endings, apart
        self._live = live
        """The client sees what leaves; one that waits for JSON is shown nothing before the end."""
        self._quiet = quiet
        """Nobody takes part: texts are not kept."""
        self._told = False
        """The provider's own error has left."""
        self._unread: Callable[[], list[Event] | None] | None = None
        """What a round that is not read in full says from its first call on."""
        self._exact = False
        """The last round's reason is not corrected, where it is the only one."""
        self.rounds: list[_Round] = []
        """Those that count."""
        self.content = Content(apart=apart)
        """What the running round has said so far."""
        self._lengths = _Lengths()
        self.over = False
        """The running round is."""
        self.later = False
        """A round that counts stands before it."""
        self.visible = False
        """Content of it has left."""
        self.started = False
        """Something of the answer has left."""
        self.altered = False
        """The answer is no longer one round's own."""
        self.composes = self.foreign = False
        """The last round came in another form, or in another dialect as well."""
        self.left_out = LeftOut()
        """What of rounds in other dialects no client but their own can be told."""

        self._opening: list[Chunk] = []
        self._held: list[Chunk] = []
        self._waiting_bytes = 0
        self._ending = False
        """The reason has come, or an error."""
        self._nameless: list[Block] = []
        """Calls whose names have not come: whose they are is not known."""
        self._open: dict[Block, None] = {}
        """What the client was shown, and is not closed."""
        self._text: Block | None = None
        """The shown text that a later one may go on in: nothing stands behind it."""
        self._unclosed: list[Block] = []
        """What earlier rounds left open: closed where something new begins."""
        self._goes_on = False
        """The next text goes on in the open one."""
        self._glue = self._spoke = False
        """The next text needs a blank line before it; there was a text."""
        self._notice = ""
        """What we tell the person before the first text."""
        self.notice_sent = False
        """It has been."""
        self.finish_reason = ""
        """The client's word for why the answer ended, where it is not the provider's."""
        self.plain: Block | None = None
        """What comes of it alone leaves without a second look, once it is kept."""
        self.keep: Callable[[str], None] = keep_nothing

    def open(self) -> None:
        """It began before any round said anything: its texts have to be told again at its end."""
        self.altered = self.started = True
        self._unread = None

    # --- rounds ---------------------------------------------------------------------------------------------------------

    def begin(
        self,
        *,
        foreign: bool = False,
        exact: bool = False,
        notice: str = "",
        calls: Callable[[], list[Event] | None] | None = None,
    ) -> list[Chunk]:
        """A round begins. One that was not complete and showed nothing counts as if it had never been.

        `notice`: what stands before its text, if that is the answer's first. `calls`: where not all of it is read, what it says
        from its first call on.
        """
        out: list[Chunk] = []
        if self.over and self.content.complete:
            if self._live:
                out = self.release()
            else:
                self._opening += self._shown(self._held)
        elif not self.visible and not self.rounds:
            self._opening = []
        self._held, self._waiting_bytes = [], 0
        self.later = bool(self.rounds)
        self._unclosed = [block for block in self._open if not block.closed] if self.later else []
        self.content, self._lengths = Content(apart=self._apart), _Lengths()
        self.over = self.visible = self._ending = False
        self.plain, self._nameless = None, []
        self.foreign = self.composes = foreign
        self._exact, self._unread, self._notice = exact, calls, notice
        if self.later:
            self._goes_on, self._glue = True, self._spoke
            self.altered = self.altered or self._live
        return out

    def hear(self, chunk: Chunk) -> Sequence[Chunk]:
        """What may leave now."""
        events = chunk.events
        if self._unread is not None and not self.composes:
            return self._pass(chunk)
        plain = self.plain
        if (
            plain is not None
            and len(events) == 1
            and type(event := events[0]) is Piece
            and event.block is plain
            and not (self._apart and event.native is not None and not plain.foreign)
        ):
            self.keep(event.text)
            if plain.into is not None:
                event.block = plain.into
            return (chunk,)
        self.plain = None
        if self._keeps_texts:
            self.content.add(events)
        else:
            self.content.add([one for one in events if type(one) is not Piece or one.block.kind == "call"])
        says, rests = self._weigh(events)
        if not self._live:  # nothing of a round counts before it is whole
            self._held.append(Chunk(b"", None, events, chunk.dialect, form=chunk.form) if self.foreign else chunk)
            return ()
        if self._ending or rests or self._nameless:
            before = self._gone_on() if says and self._reasoned and not (self._ending or self._nameless) else []
            return [*before, *self._hold(chunk)]
        if says:
            return self._leave(chunk)
        if self._held:
            return self._hold(chunk)
        return self._left(self._shown((chunk,))) if self.visible else self._hold(chunk, opens=not self.later)

    def _pass(self, chunk: Chunk) -> Sequence[Chunk]:
        """No other round follows: all leaves as it comes, but what opens an answer waits for it."""
        self.overhear(chunk.events)
        if self.content.done and self.content.ended is None and self._broke_off_unread():
            self.content.done = False
            return ()
        failed = any(type(event) is Failed for event in chunk.events)
        if not (self.visible or self._begins(chunk)):
            return self._hold(chunk, opens=True)
        self._told = self._told or failed
        out, self._opening = [*self._opening, chunk], []
        if not self._exact and any(type(event) is Ended for event in chunk.events):
            out[-1] = self._corrected(chunk, self._passed_calls(chunk.events))
        for one in out:
            one.shown = True
        self.visible = self.started = True
        return out

    def _begins(self, chunk: Chunk) -> bool:
        """Content, or the end of an answer that has none."""
        began = self.content.began is not None
        return any(is_content(event) or (type(event) is Done and began) for event in chunk.events)

    def _passed_calls(self, events: Sequence[Event]) -> bool | None:
        """Whether the client is shown calls that it may run. Those are looked at only where the reason says something else."""
        if not any(block.kind == "call" for block in self.content.blocks):
            return self.content.holds_calls
        if self._unread is None:
            return None
        reasons = [read_finish(event.finish_reason) for event in events if type(event) is Ended]
        if all(reason == "tool_calls" for reason in reasons) or (said := self._unread()) is None:
            return None
        content = Content()
        content.add(said)
        return content.holds_calls

    def _broke_off_unread(self) -> bool:
        """A last word without a reason: whether it stands in the middle of a call."""
        if self._unread is None or not any(block.kind == "call" for block in self.content.blocks):
            return False
        if (said := self._unread()) is None:
            return False
        content = Content()
        content.add([*said, Done()])
        return not content.complete

    def overhear(self, events: Iterable[Event]) -> None:
        """What is said, but for the texts of a round that passes."""
        self.content.add(event for event in events if type(event) is not Piece)

    def end(self) -> None:
        """The round is over."""
        self.over, self._nameless, self.plain = True, [], None
        self.content.settle()
        if self.content.complete:
            self.rounds.append(_Round(self.content, [], self.foreign))

    def release(self, *, begins: bool = False) -> list[Chunk]:
        """Another round may follow: what waits leaves, without what ends it. `begins`: how the answer begins leaves even where
        nothing stands behind it."""
        self._opening = self._shown(self._opening)
        held, self._held, self._waiting_bytes = self._held, [], 0
        out: list[Chunk] = []
        for chunk in self._shown(one for one in held if one.form != "behind"):
            kept = _content(chunk.events)
            if len(kept) == len(chunk.events):
                out.append(chunk)
                continue
            self.altered = True
            if any(event.rank >= Rank.SAYS or (type(event) is Field and event.says) for event in kept):
                out.append(_changed(chunk, kept))
            elif not self.later and (began := [event for event in kept if type(event) is Began]):
                self._opening.append(_changed(chunk, began))
        if out or begins:
            out, self._opening = self._left([*self._opening, *out]), []
        if self.rounds:
            self.rounds[-1].end = _ends_of(held)
        return out

    def finish(self) -> list[Chunk]:
        """What waits, and the one end: as the last round that counts ended."""
        last = self.rounds[-1]
        content, is_last = last.content, last.content is self.content
        held = self._held if is_last else []
        shown = self._shown([*self._opening, *held])
        self._opening, self._held = [], []
        calls = self._calls
        if not (self.altered or self.composes or len(self.rounds) > 1):
            out = [self._corrected(chunk, calls) for chunk in shown]
            if content.ended is None and not content.done:
                out.append(self._made([Ended(self._word(None, calls))]))
            return out if content.done else [*out, self._made([Done()])]
        before = self._left(without_ends(shown))
        ends = _ends_of(held) if held else last.end
        ended = Ended(self._word(content.ended, calls), content.ended.stop if content.ended is not None else "")
        out = self._composed(ends, ended, self._summed())
        if before and out[0].native is not None and out[0].native is before[-1].native and not _is_final(content.ended):
            out[0] = _changed(out[0], [*before.pop().events, *out[0].events])  # a unit that says something and ends stays one
        return [*before, *out]

    def broken(self) -> list[Chunk] | None:
        """What the running round said of its own failure, as it came, if that has not left; None where the client would not
        understand it."""
        if self._told:
            return []
        if self.altered or self.composes or not any(_holds(chunk, Failed) for chunk in self._held):
            return None
        waiting, self._opening, self._held = [*self._opening, *self._held], [], []
        return waiting

    # --- what waits -----------------------------------------------------------------------------------------------------

    def _weigh(self, events: Sequence[Event]) -> tuple[bool, bool]:
        """Whether they say something, and whether that waits."""
        says = rests = False
        for event in events:
            match event.rank:
                case Rank.SAYS:
                    says = True
                    if type(event) is Opened and event.block.kind == "call" and not event.block.name:
                        self._nameless.append(event.block)
                case Rank.RESTS:
                    is_text = event.block.kind == "text"  # type: ignore[attr-defined]
                    rests, says = rests or is_text, says or not is_text
                case Rank.ENDS:
                    if type(event) is Ended and not event.final:
                        rests = True
                    else:
                        self._ending = True
                case _:
                    says = says or (type(event) is Field and event.says)
        if self._nameless:
            self._nameless = [block for block in self._nameless if not block.name]
        return says, rests

    def _hold(self, chunk: Chunk, *, opens: bool = False) -> Sequence[Chunk]:
        if self.altered and len(chunk.raw) >= LONG and chunk.native is not None and chunk.rests:
            chunk = chunk.changed(chunk.events)  # it is told anew: its long text need not be kept in bytes as well
        (self._opening if opens else self._held).append(chunk)
        self._waiting_bytes += len(chunk.raw)
        if self._waiting_bytes <= HELD_BYTES or not self._live:
            return ()
        if self._held:
            return self.release()
        out, self._opening, self._waiting_bytes = self._shown(self._opening), [], 0
        return self._left(out)

    def _leave(self, chunk: Chunk) -> Sequence[Chunk]:
        """Content: what waited goes before it, as it came; but a text that goes on was never closed."""
        last = chunk.events[-1]
        block, own = last.block if type(last) is Piece else None, _first_block(chunk)  # before they are moved
        waits = bool(self._held or self._opening)
        if waits:
            self._opening, self._held = self._shown(self._opening), self._shown(self._held)
        out = self._shown((chunk,))
        if not out:
            return ()
        if waits:
            goes_on = _first_block(out[0])
            # a text's own next part is no sign that its end was none
            out = [*self._waited(goes_on if goes_on is not own else None), *out]
        self._left(out)
        if block is None or block.hidden:
            return out
        if block.kind != "text" or (self._spoke and not self._glue):
            self.plain = block
            kept = self._keeps_texts or block.kind == "call"
            self.keep = self.content.text_of(block).add if kept else keep_nothing
        return out

    @property
    def _keeps_texts(self) -> bool:
        """Somebody asks what was said, or the client is told it in our words."""
        return not self._quiet or self.composes or self.altered or bool(self._notice)

    @property
    def _reasoned(self) -> bool:
        """A reason is held that may not be the last."""
        return any(_holds(chunk, Ended) for chunk in self._held)

    def _gone_on(self) -> list[Chunk]:
        """Content follows, beside another reason: what waited was not the end."""
        self._opening, self._held = self._shown(self._opening), self._shown(self._held)
        return self._left(self._waited(None))

    def _left(self, chunks: list[Chunk]) -> list[Chunk]:
        """They leave: what the client was told is over is no longer open."""
        if chunks:
            self.visible = self.started = True
        for chunk in chunks:
            for event in chunk.events:
                if type(event) is Closed:
                    self._open.pop(event.block, None)
                    if event.block is self._text and self._live:
                        self._text = None  # its own end has left: no later text may go on in it
        return chunks

    def _waited(self, text: Block | None) -> list[Chunk]:
        """What waited, as content follows: `text` is not over, if it seemed so."""
        out, held = self._opening, self._held
        self._opening, self._held, self._waiting_bytes = [], [], 0
        for chunk in held:
            kept = self._without_close(chunk.events, text)
            if self.altered or self.composes:
                kept = [event for event in kept if type(event) is not Ended]
            if len(kept) == len(chunk.events):
                out.append(chunk)
            else:
                self.altered = True
                out += [_changed(chunk, kept)] if kept else []
        return out

    def _without_close(self, events: Sequence[Event], text: Block | None) -> list[Event]:
        """The events without those that say that the text is over, which it is not: it goes on."""
        kept = [event for event in events if event.rank is not Rank.RESTS or event.block is not text]  # type: ignore[attr-defined]
        if text is not None and len(kept) < len(events) and text not in self._unclosed:
            self._unclosed.append(text)
        return kept

    # --- what the client sees -------------------------------------------------------------------------------------------

    def _shown(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """The chunks as the client's; those of which nothing is left are gone."""
        return [shown for chunk in chunks if (shown := chunk if chunk.shown else self._show(chunk)) is not None]

    def _show(self, chunk: Chunk) -> Chunk | None:
        if self.started and chunk.raw.startswith(BOM):
            chunk.raw = chunk.raw.removeprefix(BOM)  # it may stand at the very start alone
        events: list[Event] = []
        same = True
        for event in chunk.events:
            match event:
                case Opened(block=block):
                    same = self._open_block(block, events) and same
                    if block.into is not None:
                        events = self._without_close(events, block.into)
                    elif not block.hidden:
                        events.append(event)
                case Piece(block=block) | Extra(block=block) | Cited(block=block) | Closed(block=block) | Closing(block=block):
                    if block.hidden or (type(event) is Closed and self._is_half(block)):
                        same = False
                        continue
                    moved = self._moved(event)
                    same = same and moved is event
                    events.append(moved)
                case Aside() if self.foreign:
                    self.left_out.add(Feature.CANDIDATES)  # another choice is nothing to a client of another dialect
                case Began() | Aside() if self.later:
                    pass
                case Lost():
                    self.left_out.add(event.feature, event.what)
                case Counted() if self.later and not self._ending:
                    pass
                case Field() if self.later and (event.thought or not event.says):
                    pass
                case _:
                    events.append(event)
        if not same or len(events) < len(chunk.events):
            self.altered = True
            if not any(event.rank is not Rank.PASSES or (type(event) is Field and event.says) for event in events):
                return None
            chunk = chunk.changed(events)
        chunk.shown = True
        return chunk

    def _open_block(self, block: Block, events: list[Event]) -> bool:
        """Where the client sees it, if it does. False where something else had to be closed for it, or it is not shown."""
        if self.is_own(block):
            block.hidden = self._goes_on = True
        elif self.later and block.hides:
            block.hidden = True
        elif block.kind == "text" and self._goes_on and self._text is not None and self._text.refusal == block.refusal:
            block.into = self._text
            self._text.onward.append(block)
        else:
            closed = [open_ for open_ in self._unclosed if open_ in self._open and not open_.closed]
            events += map(Closed, closed)
            self._unclosed = []
            self._open[block] = None
            self._text = block if block.kind == "text" else None
            self._goes_on = self.later
            return not closed
        return False

    def is_own(self, block: Block) -> bool:
        return block.kind == "call" and block.name in self.own and not block.theirs

    def _moved(self, event: Piece | Extra | Cited | Closed | Closing) -> Piece | Extra | Cited | Closed | Closing:
        """The event in the block where the client sees it. That changes nothing of what its bytes say, but for the place."""
        block = event.block
        if type(event) is Cited:
            return self._placed(event)
        event.block = into = block.into or block
        if type(event) is Closed:
            self._unclosed = [open_ for open_ in self._unclosed if open_ is not into]  # its end is on its way
        elif type(event) is Piece and block.kind == "text" and (text := event.text):
            if self._notice and not self._spoke and not block.refusal:
                self._spoke = self.notice_sent = True
                block.glue = self._notice
                return Piece(into, self._notice + text, event.native)
            self._spoke = True
            if self._glue and (block.into is not None or not block.refusal):
                self._glue, block.glue = False, BLANK_LINE
                return Piece(into, BLANK_LINE + text, event.native)
        return event

    def _placed(self, cited: Cited) -> Cited:
        """A source of a text as the client sees it."""
        own, citation = cited.block, cited.citation
        place = self._lengths.before(own, self._contents)
        if place is None:
            return cited
        before, lead = place[0] - place[1], place[1] + len(own.glue)
        here = 0 <= citation.start < citation.end
        start, end = (citation.start, citation.end) if here else (0, len(str(own.text or "")))
        return Cited(own.into or own, replace(citation, start=lead + start, end=lead + end), before)

    @property
    def _contents(self) -> list[Content]:
        contents = [one.content for one in self.rounds]
        return contents if self.content in contents else [*contents, self.content]

    def _is_half(self, block: Block) -> bool:
        """A call that may have broken off: whether it ends depends on the reason. In its own dialect it ends as it came."""
        return self.foreign and block.kind == "call" and not is_whole_call(str(self.content.blocks[block]))

    # --- how it ends ----------------------------------------------------------------------------------------------------

    @property
    def _calls(self) -> bool | None:
        """Whether the client is shown calls that it may run; None where that cannot be said."""
        shown: list[str] = []
        for one in self.rounds:
            # where another dialect's answer was not cut, its calls are closed, and whatever was written is what they say
            closed = one.foreign and not is_cut(one.content.ended.finish_reason if one.content.ended is not None else "")
            shown += ["" if closed else call.arguments for block, call in one.content.calls if not block.hidden]
        return holds_calls(shown, served=any(one.content.holds_traces for one in self.rounds))

    def _word(self, ended: Ended | None, calls: bool | None) -> str:
        """The client's word for why the answer ended."""
        word = ended.finish_reason if ended is not None else ""
        if self.composes and read_finish(word) in ("stop", None) and self.rounds[-1].content.refused:
            word = "content_filter"
        self.finish_reason = self._endings.write(word, self._client, calls=calls)
        return self.finish_reason

    def _corrected(self, chunk: Chunk, calls: bool | None) -> Chunk:
        """The only thing of an answer that came as it leaves. A word that nobody knows stays if nothing contradicts it."""
        if self._exact:
            return chunk
        for place, event in enumerate(chunk.events):
            if type(event) is not Ended or (read_finish(event.finish_reason) is None and not calls):
                continue
            if (word := self._word(event, calls)) != event.finish_reason:
                return _changed(chunk, [*chunk.events[:place], Ended(word, event.stop), *chunk.events[place + 1 :]])
        return chunk

    def _composed(self, ends: list[Chunk], ended: Ended, counted: Counted | None) -> list[Chunk]:
        """The end, in the frames of the units that ended the last round where those are the client's dialect's."""
        closers: list[Event] = [Closed(block) for block in self._open if not (block.closed or block.is_nobodys)]
        self._open = {}
        if self.composes:
            return [self._made([*closers, *([counted] if counted is not None else []), ended, Done()])]
        place = max((number for number, chunk in enumerate(ends) if _holds(chunk, Ended)), default=-1)
        counts = max((number for number, chunk in enumerate(ends) if _holds(chunk, Counted)), default=place)
        out: list[Chunk] = []
        if place < 0:
            out.append(self._made([*closers, *([counted] if counted is not None and counts < 0 else []), ended]))
        for number, chunk in enumerate(ends):
            events = list(closers) if number == place else []
            if number == counts and counted is not None:
                events.append(counted)
            if number == place:
                events.append(ended)
            if events:
                out.append(_changed(chunk, events))
        done = next((chunk for chunk in ends if _holds(chunk, Done)), None)
        return [*out, _changed(done, [Done()]) if done is not None else self._made([Done()])]

    def _made(self, events: Sequence[Event]) -> Chunk:
        chunk = Chunk(b"", None, events, self._client)
        chunk.shown = True
        return chunk

    def _summed(self) -> Counted | None:
        """The last round's counts, with the output of all."""
        contents = [one.content for one in self.rounds]
        counts = [content.tokens for content in contents if content.tokens is not None]
        if not counts or len(self.rounds) == 1:
            return contents[-1].counted or (Counted(counts[-1]) if counts and self.composes else None)
        tokens = replace(counts[-1], output=sum(one.output for one in counts), reasoning=sum(one.reasoning for one in counts))
        if any(one.foreign for one in self.rounds):
            return Counted(tokens)
        natives = [one.counted.native for one in contents if one.counted is not None and one.counted.native is not None]
        return Counted(tokens, natives[-1] if natives else None, tuple(natives))


def _first_block(chunk: Chunk) -> Block | None:
    return next((event.block for event in chunk.events if isinstance(event, Opened | Piece | Extra | Cited)), None)


def _ends(event: Event) -> bool:
    if event.rank is Rank.RESTS:
        return event.block.kind == "text"  # type: ignore[attr-defined, no-any-return]
    return event.rank is Rank.ENDS or type(event) is Counted


def _content(events: Sequence[Event]) -> list[Event]:
    """Without what ends the round; what closes in the middle of a whole document stays."""
    last = max((place for place, event in enumerate(events) if event.rank is Rank.SAYS), default=-1)
    return [event for place, event in enumerate(events) if not _ends(event) or (place < last and event.rank is Rank.RESTS)]


def without_ends(chunks: Iterable[Chunk]) -> list[Chunk]:
    """What they say, and nothing of how the answer ends."""
    return [kept for chunk in chunks if (kept := _without_end(chunk)) is not None]


def _without_end(chunk: Chunk) -> Chunk | None:
    if chunk.form == "behind":
        return None
    kept = _content(chunk.events)
    return chunk if len(kept) == len(chunk.events) else _changed(chunk, kept) if kept else None


def _ends_of(chunks: Iterable[Chunk]) -> list[Chunk]:
    return [_changed(chunk, ends) for chunk in chunks if (ends := [event for event in chunk.events if _ends(event)])]


def _is_final(ended: Ended | None) -> bool:
    return ended is None or ended.final


def _holds(chunk: Chunk, kind: type[Event]) -> bool:
    return any(type(event) is kind for event in chunk.events)


def _changed(chunk: Chunk, events: Sequence[Event]) -> Chunk:
    new = chunk.changed(events)
    new.shown = True
    return new
