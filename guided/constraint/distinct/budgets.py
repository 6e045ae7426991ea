"""Masks under a token budget where names or items must not repeat.

The automaton's prices hold for every token after which its own shortest text repeats nothing.  The others are judged
one by one, where the budget is not known to be enough for them too (`guided.constraint.distinct.item_lengths`).  Where
the grammar itself asks for several distinct names or items, those are all tokens, and beyond `JUDGED` of them only
those that the nearest end needs are allowed: fewer than possible, never too many.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.automata.lexer.distances import shortest
from guided.constraint.distinct.completion import DistinctCompletions
from guided.constraint.distinct.item_lengths import lengths_of_items
from guided.constraint.distinct.json_text import Mode, Text
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.marked_rules import lengths_of_names
from guided.constraint.distinct.refusals import Refusals
from guided.constraint.distinct.steps import Steps
from guided.constraint.distinct.token_texts import NO_TOKENS
from guided.constraint.distinct.used_keys import Link
from guided.constraint.product import ProductMachine
from guided.grammar.regular.lengthening import Lengthening
from guided.kernels.data.layout import DEAD, FAR
from guided.kernels.masking.walks import EVASION

__all__ = ["Budgets"]

JUDGED = 24
"""Tokens whose completions are searched for one mask: about a millisecond each where arrays are long."""

PER_NAME = 2
"""Tokens that a name which the grammar asks for takes at least, as prices count them: its own and its value's; and an
item with the comma behind it."""

FEW = 4
"""Names up to which one more character makes a name none of them: beside those that the automaton counts there are as
many characters (`guided.kernels.masking.walks.CROWDED`)."""


ANY_NAME = Lengthening(EVASION, 1, ways=93)
"""Of names that may be any text but some: with some four letters it is none of those, however it goes on."""


class _Others(NamedTuple):
    """What a text must not repeat."""

    names: int
    """At least how many names a next one must not be, 0 for none that could be."""
    arrays: int = 0
    """Arrays of distinct items in which the text is, or may be behind the next token."""
    items: int = 0
    """At least how many items these hold."""


_NO_OTHERS = _Others(0)


class Budgets:
    """Priced masks of one machine's states; the machine's lock must be held."""

    def __init__(
        self,
        machine: ProductMachine[Text],
        steps: Steps,
        liveness: Liveness,
        refusals: Refusals,
        completions: DistinctCompletions,
    ) -> None:
        self._machine: ProductMachine[Text] = weakref.proxy(machine)
        self._steps = steps
        self._automaton = steps.automaton
        self._texts = steps.tokens
        self._liveness = liveness
        self._refusals = refusals
        self._completions = completions
        self._judged: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self._begins: dict[int, tuple[Link, list[int], list[int]]] = {}
        self._near: dict[int, tuple[NDArray[np.int64], _Others | None]] = {}
        """By state what is refused, and `_used`."""
        self._repeats: dict[int, NDArray[np.int64] | None] = {}
        self._most_used, self._for_any_name = -1, FAR

    def near(self, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int, bool]:
        """See `DistinctMachine.near`."""
        own, text = self._machine.split(state)
        known = self._near.get(state)
        if known is None:
            known = self._near[state] = self._refused(state, own, text), self._used(own, text)
        refused, used = known
        row, need, ends = self._automaton.near(own, limit)
        enough = FAR if used is None or need >= FAR else self._with_others(need, used)
        if row is None:
            return None, enough, ends
        if limit < enough:
            if state not in self._repeats:
                self._repeats[state] = self._repeating(text)
            repeating = self._repeats[state]
            if repeating is None:
                # To judge tokens is to make masks, and the next mask is written to the same row.
                row = self._judged_row(state, own, text, row.copy(), limit)
                return row if row.max() else None, enough, ends
            repeats = repeating[tokenset.are_in(row, repeating)] if repeating.size else repeating
            if repeats.size:
                row = row.copy()
                less = limit - self._evasion(text)
                near = self._automaton.near(own, less)[0] if less >= 0 else None
                refused = np.concatenate(
                    (refused, repeats if near is None else repeats[~tokenset.are_in(near, repeats)])
                )
        if refused.size:
            row = tokenset.without(row, refused)
        return row if row.max() else None, enough, ends

    def _judged_row(
        self, state: int, own: int, text: Text | None, row: NDArray[np.uint32], limit: int
    ) -> NDArray[np.uint32]:
        """A row, priced by the automaton, less what is refused and what may come too late not to repeat anything."""
        refused, used = self._near[state]
        if self._completions.forces and used is not None:
            # What is so near that all names to come fit as well, whatever they must not be.
            within = bisect_right(range(limit + 1), limit, key=lambda need: self._with_others(need, used)) - 1
            near = None if within < 0 else self._automaton.near(own, within)[0]
            found = None if near is None else tokenset.without(near, refused)
            if found is not None and found.max():
                return found
        judged = self._judge(state, own, text)
        if judged is None:
            return self._less_far(state, own, text, tokenset.without(row, refused), limit)
        return tokenset.without(row, np.concatenate((refused, judged[0][judged[1] > limit])))

    def _refused(self, state: int, own: int, text: Text | None) -> NDArray[np.int64]:
        idle = text is None and self._refusals.never_idle
        return NO_TOKENS if idle else self._refusals.refused(state, own, text)

    def _repeating(self, text: Text | None) -> NDArray[np.int64] | None:
        """Allowed tokens that begin a name which the object holds, and a few more; None where that is not known.

        So the automaton's way on, to end it there, would repeat it.  Only where any names may come and nothing else is
        compared.
        """
        texts = self._texts
        if not self._any_names or (text is None and not self._refusals.never_idle):
            return None
        if text is None:
            return NO_TOKENS
        if text.pending or not self._steps.only_names:
            return None
        level = around = text.level
        found: list[int] = []
        while around is not None:
            begins, follows = self._beginning(around.used.link)
            found += follows if around is not level or text.mode is Mode.NAME else begins
            around = around.parent
        if text.mode is Mode.NAME:
            found += texts.following.get(text.text, ())
            size = len(text.text)
            for name in () if level is None else level.used.beginning(text.text):
                if rest := name[size:]:
                    found += texts.beginning(rest, len(rest) - 1)
                    found += [token for token, _ in texts.escaping.get(rest, ())]
        return np.asarray(found, np.int64) if found else NO_TOKENS

    def _judge(self, state: int, own: int, text: Text | None) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Allowed tokens behind which a name has begun as another of its object begins, and what is enough behind each.

        Only where nothing but names is compared; None elsewhere.  Tokens that lead the automaton to one state, and
        begin one name, are judged by one of them; 0 where the automaton's price holds.
        """
        machine, texts = self._machine, self._texts
        if not self._steps.only_names or self._completions.forces or (text is not None and text.pending):
            return None
        known = self._judged.get(state)
        if known is not None:
            return known
        level = None if text is None else text.level
        tried = [token for some in texts.following.values() for token in some]
        size = len(text.text) if text is not None and text.mode is Mode.NAME else -1
        for name in () if level is None else level.used.beginning(text.text if text is not None and size > 0 else b""):
            rest = name[max(size, 0) :]
            ways = texts.opening if size < 0 else texts.escaping
            for n in range(len(rest) + 1):
                tried += [token for token, _ in ways.get(rest[:n], ())]
            if size >= 0:
                tried += texts.beginning(rest)
        tried = self._refusals.in_row(own, list(dict.fromkeys(tried)))
        prices: dict[tuple[int, bytes], int] = {}
        found = []
        for token, after in zip(tried, self._automaton.advance_each(own, tried), strict=True):
            data = texts.spelled(token)
            kind = after, data[data.rfind(b'"') + 1 :]
            if kind not in prices:
                is_new = self._ends_anew(text, after, data)
                prices[kind] = 0 if is_new else self._completions.enough(machine.advance_token(state, token))
            found.append(prices[kind])
        known = self._judged[state] = np.asarray(tried, np.int64), np.asarray(found, np.int64)
        return known

    def _ends_anew(self, text: Text | None, after: int, data: bytes) -> bool:
        """Does the automaton's own way on, behind a token, surely end the name that has begun as none that is there?"""
        if text is None:
            return data.count(b'"') < 2 and b"\\" not in data
        if b"\\" in data or text.mode is Mode.SKIPPED_ESCAPE:
            return False
        pieces = (text.text + data if text.mode is Mode.NAME else data).split(b'"')
        in_string = text.mode in (Mode.NAME, Mode.STRING, Mode.SKIPPED)
        # What quotation marks end in the token may be names that are not there yet.
        strings = pieces if in_string else pieces[1:]
        if len(strings) % 2 == 0:
            return True
        *ended, begun = strings[::2]
        for inside, _, _ in self._automaton.threads(after):
            name = begun + (shortest(self._automaton.states, inside)[:-1] if inside else b"")
            level = text.level
            while level is not None and name not in level.used:
                level = level.parent
            if level is not None or name in ended or b"\\" in name:
                return False
        return True

    def _beginning(self, link: Link | None) -> tuple[list[int], list[int]]:
        """The tokens that begin one of some names and hold no more of the text than that, and those behind a comma."""
        new: list[Link] = []
        while link is not None and id(link) not in self._begins:
            new.append(link)
            link = link[1]
        begins, follows = ([], []) if link is None else self._begins[id(link)][1:]
        for each in reversed(new):
            more = self._texts.following.get(each[0], [])
            opening = [token for token, _ in self._texts.opening.get(each[0], ())]
            begins, follows = [*begins, *opening, *more], [*follows, *more]
            # With the link, so that no other comes to have its number.
            self._begins[id(each)] = each, begins, follows
        return begins, follows

    def enough(self, need: int, own: int, text: Text | None) -> int:
        """Tokens that are enough whichever comes, where ``need`` are if nothing repeats; `FAR` if that is not known."""
        if need >= FAR:
            return FAR
        used = self._used(own, text)
        return FAR if used is None else self._with_others(need, used)

    def _used(self, own: int, text: Text | None) -> _Others | None:
        """What a next name and the items in progress must not be; None where that is not known."""
        if self._lengths is None or not self._automaton.vocabulary.byte_complete:
            return None
        arrays = items = 0
        if self._steps.compares:
            found = self._arrays(own, text)
            if found is None:
                return None
            arrays, items = found
        if text is None and not arrays and self._refusals.never_idle and not self._completions.forces:
            return _NO_OTHERS
        most, level = 0, None if text is None else text.level
        while level is not None:
            most = max(most, level.used.size)
            level = level.parent
        return _Others(most + self._spanned + 1, arrays, items)

    def _arrays(self, own: int, text: Text | None) -> tuple[int, int] | None:
        """Arrays of distinct items in which the text is, and what they hold; None where no bound on that is known."""
        opened = self._refusals.most_opened(own, text)
        level = None if text is None else text.level
        if not opened and (level is None or not level.gathers) and not self._completions.forces:
            return 0, 0
        if self._item_lengths is None:
            return None
        arrays, used = opened, self._spanned_items + 1
        while level is not None:
            arrays += level.compares
            used += level.used.size
            level = level.parent
        return arrays, used

    def _with_others(self, need: int, others: _Others) -> int:
        """As `enough`, with a name that has begun, and all that the grammar asks for, none of those that are there.

        A name that is asked for takes at least `PER_NAME` of the ``need`` tokens, its own quotation marks among them.
        So does an item, but for the last one; it is new if need be, whatever the others are.
        """
        used = others.names
        if used == 0:
            return need
        assert self._lengths is not None
        found = need + max(min(used + 1, ANY_NAME.beyond(used)), self._lengths.beyond(used))
        asked = need // PER_NAME + 1 if self._completions.forces else 0
        each = 2 + max(EVASION, self._lengths.beyond(used + asked)) if asked else 0
        if others.arrays or (asked and self._steps.compares):
            assert self._item_lengths is not None
            new = self._item_lengths.beyond(others.items + asked)
            found += others.arrays * new
            each = max(each, new)
        found += asked * each
        return min(found, FAR)

    @property
    def for_any_name(self) -> int:
        """Tokens more than without names that are used up, enough whatever the text holds; `FAR` if not known."""
        most = self._steps.reader.most_used
        if most > self._most_used:
            self._most_used = most
            self._for_any_name = FAR
            if self._tells_names:
                self._for_any_name = self._with_others(0, _Others(most + self._spanned + 1))
        return self._for_any_name

    @cached_property
    def _tells_names(self) -> bool:
        """Are used names all that a text must evade, and is it known what that takes?"""
        known = self._lengths is not None and self._automaton.vocabulary.byte_complete
        return known and not self._steps.compares and not self._completions.forces

    @cached_property
    def never_idle(self) -> bool:
        """Is the automaton's price enough wherever nothing is remembered?"""
        never = self._refusals.never_idle and not self._steps.compares and not self._completions.forces
        return never and self._lengths is not None

    @cached_property
    def _lengths(self) -> Lengthening | None:
        return lengths_of_names(self._automaton.grammar)

    @cached_property
    def _item_lengths(self) -> Lengthening | None:
        return lengths_of_items(self._automaton, self._lengths if self._steps.open_names else None)

    @cached_property
    def _spanned_items(self) -> int:
        """The most items that one token ends: each takes a comma, and two bytes at least."""
        return max((len(self._texts.spelled(token)) // 2 for token in self._texts.with_commas), default=0)

    @cached_property
    def _any_names(self) -> bool:
        """May all undeclared names be any text but some, and is none asked for?"""
        prepared = self._automaton.grammar.prepared
        return prepared is not None and not prepared.names and not self._completions.forces

    @cached_property
    def _spanned(self) -> int:
        """The most names that one token holds: each takes four bytes at least."""
        texts = self._texts
        return max((len(texts.spelled(token)) // 4 + 1 for token in texts.spanning), default=0)

    def _evasion(self, text: Text | None) -> int:
        """Tokens beyond the automaton's that are enough where a name that has begun is one that its object holds."""
        return 1 if text is None or text.level is None or text.level.used.size <= FEW else EVASION

    def _less_far(
        self, state: int, own: int, text: Text | None, row: NDArray[np.uint32], limit: int
    ) -> NDArray[np.uint32]:
        """A row, priced by the automaton, less the tokens after which ``limit`` tokens are not enough, judged each."""
        machine, forces = self._machine, self._completions.forces
        if forces:
            first = tokenset.ids(row)[:JUDGED]
            row = np.zeros_like(row)
            tokenset.add_all(row, first)
            tried = first.tolist()
        else:
            undecided = self._refusals.undecided(state, own, text).tolist()
            tried = [token for token in undecided if tokenset.contains(row, token)]
        for token in tried:
            after = machine.advance_token(state, token)
            if after != DEAD and not forces:
                then, held = machine.split(after)
                if not self._steps.collisions.may_collide(held):
                    continue
                enough = self._bytes_to_new(then, held)
                if enough is not None and enough <= limit:
                    continue
            if after == DEAD or not self._completions.is_near(after, limit):
                tokenset.remove(row, token)
        return row

    def _bytes_to_new(self, state: int, text: Text | None) -> int | None:
        """A bound on the bytes after which an open name, string or number has gone its own way and the text ended.

        By repeating one byte, once more often than anything seen is long in number; None where nothing is open, or not
        so plainly.
        """
        level = None if text is None else text.level
        if text is None or level is None or level.collects or not self._liveness.is_open(state, text):
            return None
        looping = self._liveness.supply.looping(state, text.mode)
        return None if looping is None else level.used.size + 2 + self._automaton.cost(looping)
