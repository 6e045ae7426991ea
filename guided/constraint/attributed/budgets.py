"""Budgets: the tokens of a mask behind which so many others are enough to end the text.

What is far from the budget is told by prices, which are found without a search, and far above what an end takes
(`guided.grammar.attributed.pricing`).  Of what is near, ends are searched for (`guided.grammar.attributed.closing`) and
spelled: one for each listed lexeme, and one for all free names of a place, in which the name itself is left open.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.attributed.counts import A_NAME
from guided.constraint.attributed.parts import Free, Group
from guided.constraint.attributed.rows import UNHEARD, Rows
from guided.errors import LimitError
from guided.grammar.attributed.kept import Kept
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.nodes import UNKNOWN
from guided.grammar.attributed.pricing import Pricing
from guided.grammar.attributed.states import ANY, At, Reading
from guided.grammar.attributed.threads import Place
from guided.vocab.spelled import spell

__all__ = ["Budgets"]

_KEPT = 1024
"""States of which it is remembered how far their tokens lead."""
_ENDS = 1 << 14
"""States of which it is remembered how many tokens end them."""
_STEPS = 500
"""Choices that one search for an end looks at; along Spider's and everyday queries most take 10 to 60."""
_STEPS_OF_MASK = 20_000
"""Choices after which a mask begins no more searches for listed lexemes: some tenths of a second.

Those of remembered ends count as well, so that a mask depends on the state and the budget alone.
"""
_A_BYTE = 6
"""Bytes that one of a token adds to what is enough for an end: three while it is read, three as a name that waits."""
_FEW = 8
"""Tokens that are judged one by one, a millisecond each, rather than by the places to which they lead; and how many
names that no bound takes may fail before those of more bytes are left out unseen."""
_OPEN = {Reading.NUMBER: 1, Reading.STRING: 5, Reading.WORD: 1, Reading.NAME: 5}
"""Tokens that are enough to end a free lexeme anywhere: a digit; the rest of a character, of an escape, and a quote; a
letter that makes a name one that means nothing."""


class Budgets:
    """Narrows the rows of a language over a vocabulary."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._language = rows.language
        self._pricing = Pricing(self._language.demands(rows.counts.measure))
        self._reaches: Kept[At, _Reach] = Kept(_KEPT)
        self._far: Kept[At, _Far | None] = Kept(_ENDS)
        self._ends: Kept[At, _End] = Kept(_ENDS)
        self._free_ends: Kept[tuple[Place, Free], _FreeEnd] = Kept(_KEPT)

    def prepare(self, at: At) -> _Reach:
        """Find how far the tokens of a mask lead; the mask is found on the way."""
        reach = self._reaches.get(at)
        if reach is None:
            reach = self._reaches[at] = self._reach_of(at)
        return reach

    def row(self, at: At, limit: int, row: tokenset.Row) -> tokenset.Row:
        """Of a mask, tokens behind which ``limit`` others are enough to end the text: perhaps not all such tokens."""
        doubtful = self._doubtful(at, limit)
        doubtful = row.copy() if doubtful is None else doubtful & row
        free: list[tokenset.Row] = []
        if tokenset.count(doubtful) > _FEW:
            reach = self.prepare(at)
            if limit >= reach.all_tokens:
                return row
            listed = np.zeros_like(row)
            for most, group in reach.groups:
                if not (group.tokens & doubtful).any():
                    continue
                if group.free is not None:
                    doubtful &= ~self._short_enough(at, most, group, limit)
                    free.append(group.tokens)
                elif most <= limit:
                    doubtful &= ~group.tokens
                else:
                    listed |= group.tokens
            free = [tokens & doubtful & ~listed for tokens in free]
        found = row & ~doubtful
        steps = _STEPS_OF_MASK
        for tokens in free:
            doubtful &= ~tokens
            shortest = self._rows.walks.by_length(tokenset.ids(tokens))
            steps = self._fitting(at, shortest, limit, found, steps, _FEW)
        self._fitting(at, tokenset.ids(doubtful).tolist(), limit, found, steps)
        return found

    def _reach_of(self, at: At) -> _Reach:
        """How far the tokens of a mask lead."""
        row, groups = self._rows.groups(at)
        if not groups:
            # Read byte by byte.
            return _Reach(UNKNOWN, ((UNKNOWN, Group(at.place, row, None)),))
        found: list[tuple[int, Group]] = []
        farthest = 0
        measure = self._rows.counts.measure
        read = A_NAME * measure.own(at.text) * _is_free_name(self._language, at)
        behind: dict[Place, int] = {}
        for group in groups:
            place = group.place
            if place not in behind:
                behind[place] = self._behind(place)
            most = read + behind[place]
            found.append((most, group))
            farthest = max(farthest, most + A_NAME * measure.most_names * (group.free is not None))
        return _Reach(farthest, tuple(found))

    def _behind(self, place: Place) -> int:
        """Tokens that are enough behind whatever lexeme begins at a place, but for those of a free name."""
        if not self._pricing.tells_beyond:
            return UNKNOWN
        nodes = self._rows.longest(place)
        return max(self._pricing.beyond({id(one): one for _, one in place.ways}.values(), ((0, 0, nodes),)).values())

    def enough(self, at: At) -> int | None:
        """Tokens that are enough behind any one of a mask, told without a look at places there; None: not known."""
        far = self._far_of(at)
        return None if far is None else max(far.values()) + self._most_excess

    @cached_property
    def _excess(self) -> NDArray[np.int64]:
        """What names that take many tokens within each may add."""
        found: NDArray[np.int64] = A_NAME * self._rows.counts.measure.names[1]
        return found

    @cached_property
    def _most_excess(self) -> int:
        return int(self._excess.max(initial=0))

    def _far_of(self, at: At) -> _Far | None:
        """The same by the lexemes that are over in tokens, but for names of many tokens within one."""
        if not self._pricing.tells_beyond:
            return None
        if at in self._far:
            return self._far[at]
        spans = self._rows.spans(at)
        found: _Far | None = None
        if spans is not None:
            found = {}
            for span in spans:
                for key, most in self._pricing.beyond(*span).items():
                    found[key] = max(found.get(key, 0), most)
            if not found or max(found.values()) >= UNKNOWN:
                found = None
        self._far[at] = found
        return found

    def _doubtful(self, at: At, limit: int) -> tokenset.Row | None:
        """The tokens of which it is not told that so many are enough behind them; None where that is each."""
        far = self._far_of(at)
        if far is None or far.get((0, 0), 0) > limit:
            return None
        counts, of = self._rows.walks.lexemes
        most = np.zeros(counts.shape[1], np.int64)
        for (signs, others), enough in far.items():
            some = (counts[0] >= signs) & (counts[1] >= others)
            most[some] = np.maximum(most[some], enough)
        return tokenset.of_flags(most[of] + self._excess > limit)

    # Listed lexemes ------------------------------------------------------------------------------------------------

    def _fitting(
        self, at: At, tokens: list[int], limit: int, found: tokenset.Row, steps: int, most_failures: int | None = None
    ) -> int:
        """Add the tokens behind which ``limit`` are enough, up to so many failures; what is left of ``steps``."""
        failures = 0
        for token in tokens:
            after = self._rows.after(at, token)
            if after is None:
                continue
            fits = self._language.fits(after, limit)
            if not fits and steps > 0:
                end = self._end(after)
                steps -= end.steps
                fits = end.tokens is not None and len(end.tokens) <= limit
            if fits:
                tokenset.add(found, token)
            else:
                failures += 1
                if failures == most_failures:
                    break
        return steps

    def end(self, at: At) -> tuple[int, ...] | None:
        """Tokens that end a text, None where a search finds none soon."""
        return self._end(at).tokens

    def _end(self, at: At) -> _End:
        found = self._ends.get(at)
        if found is None:
            before = self._language.closing.steps
            try:
                end = self._language.end(at, _STEPS)
            except LimitError:
                end = None
            tokens = None if end is None else tuple(spell(self._rows.vocabulary, end))
            found = self._ends[at] = _End(tokens, self._language.closing.steps - before)
        return found

    def found(self, at: At) -> tuple[int, ...] | None:
        """The same, if it was looked for before."""
        known = self._ends.get(at)
        return None if known is None else known.tokens

    # Free lexemes --------------------------------------------------------------------------------------------------

    def _short_enough(self, at: At, most: int, group: Group, limit: int) -> tokenset.Row:
        """The tokens of a group that are parts of free lexemes and short enough: by bounds first, else by an end."""
        assert group.free is not None
        tokens, place, free = group.tokens, group.place, group.free
        told = tokens & ~self._rows.counts.measure.with_names((limit - most) // A_NAME)
        if (told == tokens).all() or free.reading is Reading.BLANK:
            return told
        is_name = free.reading in (Reading.WORD, Reading.NAME)
        read = at.text if is_name and place is at.place and _is_free_name(self._language, at) else b""
        price = self._language.price(_whole(place, free)) + self._open(free)
        told |= self._no_longer(tokens, (limit - price) // _A_BYTE - len(read))
        if (told == tokens).all():
            return told
        end = self._free_ends.get((place, free))
        if end is None:
            end = self._free_ends[place, free] = self._free_end(place, free)
        if end.tokens > limit:
            return told
        if not end.times:
            return tokens
        each = (limit - end.tokens) // end.times - end.around
        if is_name:
            measure = self._rows.counts.measure
            told |= tokens & ~measure.with_names(each - measure.own(read))
        return told | self._no_longer(tokens, each - len(read))

    def _no_longer(self, tokens: tokenset.Row, most: int) -> tokenset.Row:
        """Some tokens, but for those of more than so many bytes."""
        long = self._rows.walks.longer_than(most)
        return tokens if long is None else tokens & ~long

    def _free_end(self, place: Place, free: Free) -> _FreeEnd:
        """The end behind any free lexeme of a kind that begins at a place."""
        behind = self._language.resolved(_whole(place, free))
        if behind is None:
            return _FreeEnd(UNKNOWN, 0, 0)
        try:
            end = self._language.closing.text(behind, b"a", _STEPS)
        except LimitError:
            end = None
        if end is None:
            return _FreeEnd(UNKNOWN, 0, 0)
        parts = end.split(UNHEARD.encode())
        tokens = sum(len(spell(self._rows.vocabulary, part)) for part in parts if part)
        return _FreeEnd(self._open(free) + tokens, len(parts) - 1, 1)

    def _open(self, free: Free) -> int:
        """Tokens that are enough to end a free lexeme anywhere."""
        if free.held is None:
            return _OPEN[free.reading]
        return self._rows.counts.measure.rest_of_any(free.held) + (free.reading is Reading.STRING)


_Far = dict[tuple[int, int], int]
"""Tokens that are enough behind others, by the signs and the other lexemes that are over in them."""


class _Reach(NamedTuple):
    """How many tokens are enough behind those of a mask."""

    all_tokens: int
    """Behind any of them."""
    groups: tuple[tuple[int, Group], ...]
    """Behind each of some, or, if they are free, but for what the names in a token take `A_NAME` times."""


class _End(NamedTuple):
    """What a search for an end has found."""

    tokens: tuple[int, ...] | None
    steps: int


class _FreeEnd(NamedTuple):
    """An end in which the name is left open that was read before it."""

    tokens: int
    """Those beside the name."""
    times: int
    """How often it has the name."""
    around: int
    """Bytes that the name may have beside those that were read."""


def _is_free_name(language: AttributedLanguage, at: At) -> bool:
    """Is a name in progress that may be any?"""
    return at.reading in (Reading.NAME, Reading.NAME_END) or (
        at.reading is Reading.WORD and language.takes_any_word(at.place)
    )


def _whole(place: Place, free: Free) -> At:
    """The state behind a whole lexeme of a kind, a name that means nothing."""
    match free.reading:
        case Reading.WORD:
            return At(place, Reading.WORD, UNHEARD.encode())
        case Reading.NUMBER:
            return At(place, Reading.NUMBER, b"0" if free.held is None else free.held.sorted[0])
        case Reading.STRING:
            return At(place, Reading.STRING_END, ANY if free.held is None else free.held.sorted[0])
    return At(place, Reading.NAME_END, bytes([free.quote]) + UNHEARD.encode())
