"""Masks where names or items must not repeat: the automaton's, less the tokens that can only come to a duplicate.

A token is refused somewhere along its bytes.  While what is being read may become a duplicate
(`guided.constraint.distinct.collisions`), the tokens that make it one are looked up by what is left of the used names
and strings (`guided.constraint.distinct.used_strings`) and objects (`guided.constraint.distinct.used_members`); where
something else is read, the vocabulary's trie is walked.  Elsewhere only a token that goes on to the next name or item
can be refused; those whose verdict the state alone does not tell (`guided.constraint.distinct.next_items`) are tried.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import Mode, Text
from guided.constraint.distinct.next_items import NextItems
from guided.constraint.distinct.token_shapes import Place
from guided.constraint.distinct.token_texts import NO_TOKENS, Reach, TokenTexts
from guided.constraint.distinct.used_keys import Link, UsedKeys
from guided.constraint.distinct.used_members import UsedMembers
from guided.constraint.distinct.used_strings import UsedStrings
from guided.kernels.layout import DEAD, FAR

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine

_ROWS = 256
"""Masks of the automaton alone that are kept, since states that differ in what they hold share them."""


class Refusals:
    """Masks of one machine's states."""

    def __init__(self, machine: DistinctMachine) -> None:
        self._machine: DistinctMachine = weakref.proxy(machine)
        self._texts = TokenTexts.of(machine.vocabulary)
        self._next = NextItems(machine)
        self._strings = UsedStrings(machine)
        self._members = UsedMembers(machine)
        self._rows: OrderedDict[int, NDArray[np.uint32]] = OrderedDict()
        self._fingerprints: dict[int, int] = {}
        self._ends: dict[int, bool] = {}
        self._refused: dict[int, NDArray[np.int64]] = {}
        self._free: dict[int, bool] = {}
        self._doubtful: dict[int, NDArray[np.int64]] = {}
        self._judged: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self._begins: dict[int, tuple[Link, list[int], list[int]]] = {}
        self._near: dict[int, tuple[NDArray[np.int64], NDArray[np.int64] | None, int]] = {}
        """By state what is refused, `again`, and `DistinctCompletions.apart`."""
        self._begun = _BEGUN_OR_ARRAY if machine.compares else _BEGUN
        self._reaching: dict[tuple[int, Place, frozenset[Reach]], list[int]] = {}

    def mask(self, state: int) -> NDArray[np.uint32]:
        """See `DistinctMachine.mask`."""
        machine = self._machine
        own, text = machine.split(state)
        refused = NO_TOKENS if text is None and self.never_idle else self.refused(state)
        row = self._row(own)
        return tokenset.without(row, refused) if refused.size else row

    def near(self, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int]:
        """See `DistinctMachine.near`."""
        machine = self._machine
        own, text = machine.split(state)
        told = self._near.get(state)
        if told is None:
            refused = NO_TOKENS if text is None and self.never_idle else self.refused(state)
            told = self._near[state] = refused, self.again(state), machine.completions.apart(text)
        refused, again, apart = told
        row, need = machine.inner.near(own, limit)
        if row is not None and again is None:
            judged = self.judged(state)
            if judged is None:
                row = machine.completions.less_far(state, tokenset.without(row, refused), limit)
            else:
                row = tokenset.without(row, np.concatenate((refused, judged[0][judged[1] > limit])))
        elif row is not None and again is not None:
            dear = again[tokenset.are_in(row, again)] if again.size else again
            if dear.size:
                row = row.copy()
                less = limit - machine.completions.evasion(text)
                near = machine.inner.near(own, less)[0] if less >= 0 else None
                refused = np.concatenate((refused, dear if near is None else dear[~tokenset.are_in(near, dear)]))
            if refused.size:
                row = tokenset.without(row, refused)
        return None if row is None or not row.max() else row, min(need + apart, FAR)

    def visit(self, state: int) -> tuple[NDArray[np.uint32], bool, int]:
        """See `DistinctMachine.visit`."""
        row, own = self.mask(state), self._machine.split(state)[0]
        kept, ends = self._row(own), self._ends[own]
        if row is not kept:
            return row, ends, -1
        return row.copy() if ends else row, ends, self._fingerprints[own]

    @cached_property
    def trusts_idle(self) -> bool:
        """Is nothing refused where nothing is remembered, since no token holds two names of one object?"""
        return self._machine.only_names and not self._texts.spanning

    @cached_property
    def never_idle(self) -> bool:
        """Is no token refused where nothing is remembered, since none holds two names, or two items, by itself?"""
        texts = self._texts
        idle = texts.that_reach(self._begun, Place.IDLE).size == 0
        return idle and not texts.spanning and self._machine.vocabulary.byte_complete

    def shares_mask(self, state: int, own: int, text: Text) -> bool:
        """Has the pair the mask of the automaton's state, both as it is and taken for one that remembers nothing?"""
        if self.trusts_idle:
            level = text.level
            if level is None or not (text.mode is Mode.NAME or level.repeating):
                return True
            return not self.refused(state).size
        free = self.never_idle or self._free.get(own)
        if free is None:
            free = self._free[own] = not self.refused(own).size
        return free and not self.refused(state).size

    def refused(self, state: int) -> NDArray[np.int64]:
        """The tokens that the automaton allows and the checker does not; and some that neither allows."""
        found = self._refused.get(state)
        if found is None:
            own, text = self._machine.split(state)
            if self._repeats_names(text):
                found = self._repeating(state, own, text)
            else:
                found = self._find(state)[0]
            if found.size:
                self._refused[state] = found
        return found

    def _repeats_names(self, text: Text | None) -> bool:
        """Can a token only be refused for a name that it ends, or for what it holds as a whole?"""
        machine = self._machine
        if not (machine.open_names and machine.vocabulary.byte_complete):
            return False
        return text is None or not (text.pending or (text.level is not None and text.level.gathers))

    def _repeating(self, state: int, own: int, text: Text | None) -> NDArray[np.int64]:
        """The tokens that end a name which the object holds already, or hold names or items that repeat others."""
        level = None if text is None else text.level
        tried = self._texts.spanning
        if self._machine.compares:
            tried = (*tried, *self._allowed(own, _place(text), _ARRAYS))
        if level is None:
            if not tried:
                return NO_TOKENS
            found: list[int] = []
        else:
            assert text is not None
            found = self._closing(state, own, text.text, level.seen) if text.mode is Mode.NAME else []
            tried = (*level.repeating, *tried)
        if tried:
            found += [token for token in self._in_row(own, tried) if not self._machine.lives(state, token)]
        return _tokens(found)

    def _closing(self, state: int, own: int, begun: bytes, seen: UsedKeys) -> list[int]:
        """Of a name that has begun, the tokens that make it one of those seen."""
        machine, closing = self._machine, self._texts.closing
        found: list[int] = []
        if seen.size > len(closing):
            rests = [rest for rest in closing if begun + rest in seen] if seen.begins(begun) else []
        else:
            size = len(begun)
            rests = [rest for name in seen.beginning(begun) if (rest := name[size:]) in closing]
        if not rests:
            return found
        row = self._row(own)
        for rest in rests:
            for ways in closing[rest]:
                tokens = ways.within(row)
                if tokens:
                    after = machine.inner.advance_text(own, ways.spelling)
                    left = after if after == DEAD else machine.frames.without_undeclared_name(after)
                    if left == DEAD:
                        found += tokens
                    elif left != after:
                        found += [token for token in tokens if not machine.lives(state, token)]
        return found

    def again(self, state: int) -> NDArray[np.int64] | None:
        """Allowed tokens behind which a name has begun that the object holds already, and a few more; None if not told.

        So the automaton's way on, to end it there, would repeat it.  Only where any names may come and nothing else is
        compared.
        """
        machine, texts = self._machine, self._texts
        text = machine.split(state)[1]
        if not machine.completions.any_names or (text is None and not self.never_idle):
            return None
        if text is None:
            return NO_TOKENS
        if text.pending or not machine.only_names:
            return None
        level = around = text.level
        found: list[int] = []
        while around is not None:
            begins, follows = self._beginning(around.seen.link)
            found += follows if around is not level or text.mode is Mode.NAME else begins
            around = around.parent
        if text.mode is Mode.NAME:
            found += texts.following.get(text.text, ())
            size = len(text.text)
            for name in () if level is None else level.seen.beginning(text.text):
                if rest := name[size:]:
                    found += texts.beginning(rest, len(rest) - 1)
                    found += [token for token, _ in texts.escaping.get(rest, ())]
        return np.asarray(found, np.int64) if found else NO_TOKENS

    def judged(self, state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Allowed tokens behind which a name has begun as another of its object begins, and what is enough behind each.

        Only where nothing but names is compared; None elsewhere.  Tokens that lead the automaton to one state, and
        begin one name, are judged by one of them.
        """
        machine, texts = self._machine, self._texts
        own, text = machine.split(state)
        if not machine.only_names or machine.completions.forces or (text is not None and text.pending):
            return None
        known = self._judged.get(state)
        if known is not None:
            return known
        level = None if text is None else text.level
        tried = [token for some in texts.following.values() for token in some]
        size = len(text.text) if text is not None and text.mode is Mode.NAME else -1
        for name in () if level is None else level.seen.beginning(text.text if text is not None and size > 0 else b""):
            rest = name[max(size, 0) :]
            ways = texts.opening if size < 0 else texts.escaping
            for n in range(len(rest) + 1):
                tried += [token for token, _ in ways.get(rest[:n], ())]
            if size >= 0:
                tried += texts.beginning(rest)
        tried = self._in_row(own, list(dict.fromkeys(tried)))
        prices: dict[tuple[int, bytes], int] = {}
        found = []
        for token, after in zip(tried, machine.inner.advance_each(own, tried), strict=True):
            data = texts.spelled(token)
            kind = after, data[data.rfind(b'"') + 1 :]
            if kind not in prices:
                prices[kind] = machine.completions.enough(machine.advance_token(state, token))
            found.append(prices[kind])
        known = self._judged[state] = np.asarray(tried, np.int64), np.asarray(found, np.int64)
        return known

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

    def doubtful(self, state: int) -> NDArray[np.int64]:
        """Allowed tokens after which the automaton's own shortest text may repeat something, and a few more."""
        found = self._doubtful.get(state)
        if found is None:
            self._refused[state], found = self._find(state, doubts=True)
            self._doubtful[state] = found
        return found

    def ends(self, state: int) -> bool:
        """May the text end in a state?"""
        own = self._machine.split(state)[0]
        if own not in self._ends:
            self._row(own)
        return self._ends[own]

    def _row(self, own: int) -> NDArray[np.uint32]:
        row = self._rows.get(own)
        if row is None:
            with self._machine.lock:
                row, self._ends[own], self._fingerprints[own] = self._machine.inner.visit(own)
                row = self._rows[own] = row.copy()
            if len(self._rows) > _ROWS:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(own)
        return row

    def _find(self, state: int, *, doubts: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        machine = self._machine
        own, text = machine.split(state)
        refused: list[int] = []
        doubtful: list[int] = []
        told: NDArray[np.int64] | None = None
        if not machine.vocabulary.byte_complete:
            tried = tokenset.ids(self._row(own)).tolist()
        else:
            tried = self._tried(own, text, doubts)
            if text is not None and machine.likeness.consistent(text):
                told = None if doubts else self._strings.refused(state, own, self._row(own), text)
                members = None if doubts or told is not None else self._members.doubtful(own, self._row(own), text)
                if members is not None:
                    tried = list(dict.fromkeys((*tried, *self._in_row(own, members))))
                    if text.mode is Mode.NAME and text.level is not None:
                        refused += self._closing(state, own, text.text, text.level.seen)
                elif told is None:
                    _Walk(machine, state, self._row(own), self._texts, refused, doubtful, doubts).run(own, text)
        for token in tried:
            (doubtful if machine.lives(state, token) else refused).append(token)
        found = _tokens(refused)
        if told is not None and told.size:
            found = np.concatenate((told, found)) if refused else told
        return found, _tokens(doubtful)

    def _tried(self, own: int, text: Text | None, doubts: bool) -> list[int]:
        """The tokens that the automaton allows and that reach a next name or item, having left what was seen."""
        place, row = _place(text), self._row(own)
        level = None if text is None else text.level
        if text is not None and level is not None and level.gathers:
            if doubts:
                return self._allowed(own, place, _ITEMS)
            if level.is_array or not self._machine.open_names:
                return self._next.doubtful(own, text, place, _ITEMS, row)
            # Within an object that is an item only names can repeat; then come other items.
            named = self._in_row(own, (*level.repeating, *self._texts.spanning))
            found = self._next.doubtful(own, text, place, _NEXT_ITEMS, row)
            return [*named, *(token for token in found if token not in named)] if named else found
        if text is not None and not doubts and not self._machine.open_names:
            return self._next.doubtful(own, text, place, self._begun, row)
        found = self._allowed(own, place, self._begun)
        if found and not doubts and self._machine.open_names:
            return self._allowed(own, place, _ENDED_OR_ARRAY if self._machine.compares else _ENDED)
        return found

    def _in_row(self, own: int, tokens: Sequence[int]) -> list[int]:
        row = self._row(own)
        return [token for token in tokens if tokenset.contains(row, token)]

    def _allowed(self, own: int, place: Place, reaches: frozenset[Reach]) -> list[int]:
        key = (own, place, reaches)
        found = self._reaching.get(key)
        if found is None:
            found = self._reaching[key] = self._texts.reaching(reaches, place, self._row(own))
        return found


_ITEMS = frozenset((Reach.ITEM,))
_NEXT_ITEMS = frozenset((Reach.NEXT_ITEM, Reach.ARRAY))
_ARRAYS = frozenset((Reach.ARRAY,))
_ENDED = frozenset((Reach.NAME_ENDED,))
_ENDED_OR_ARRAY = frozenset((Reach.NAME_ENDED, Reach.ARRAY))
_BEGUN = frozenset((Reach.NAME_BEGUN,))
_BEGUN_OR_ARRAY = frozenset((Reach.NAME_BEGUN, Reach.ARRAY))


class _Walk:
    """Follows the trie as long as the text stays consistent with something seen; adds tokens to the lists."""

    def __init__(
        self,
        machine: DistinctMachine,
        state: int,
        row: NDArray[np.uint32],
        texts: TokenTexts,
        refused: list[int],
        doubtful: list[int],
        doubts: bool,
    ) -> None:
        self._machine = machine
        self._state = state
        self._row = row
        self._texts = texts
        self._refused = refused
        self._doubtful = doubtful
        self._doubts = doubts
        self._possible: dict[tuple[int, Text], Collection[int]] = {}
        self._steps: dict[tuple[int, Text, int], tuple[int, Text | None, bool]] = {}
        self._alive: dict[tuple[int, Text], bool] = {}

    def run(self, state: int, text: Text) -> None:
        """Fill the lists with the tokens that begin in a pair."""
        machine, end = self._machine, self._texts.end
        first, ids = self._texts.first, machine.vocabulary.trie.token_ids
        stack = [(0, state, text)]
        while stack:
            parent, at, now = stack.pop()
            children = self._texts.children(parent)
            possible = self._ways(at, now)
            for value in possible if len(possible) < len(children) else children.keys() & possible:
                node = children.get(value)
                if node is None:
                    continue
                after, then, whole = self._step(at, now, value)
                last = end[node]
                if not whole:
                    # Some threads, or all, were dropped, of which the automaton's mask knows nothing.
                    below = self._in_row(ids[first[node] : first[last]])
                    self._refused.extend(below if after == DEAD else self._dead(below))
                elif then is not None:
                    self._judge(stack, node, last, after, then)

    def _ways(self, at: int, now: Text) -> Collection[int]:
        """Bytes that may come, among them all behind which the text is consistent; remembered, as white space loops."""
        found = self._possible.get((at, now))
        if found is None:
            ways = self._machine.likeness.ways_on(now)
            found = self._possible[at, now] = self._machine.look.next_byte_set(at) if ways is None else ways
        return found

    def _step(self, at: int, now: Text, value: int) -> tuple[int, Text | None, bool]:
        """The pair after a byte, None for a text that is not consistent or not possible; are these all threads?"""
        key = (at, now, value)
        found = self._steps.get(key)
        if found is None:
            machine = self._machine
            # Inside a name, string or number no automaton is needed to see that a byte leads away.
            inside = None if now.mode is Mode.BETWEEN else machine.reader.inside(now, value)
            if inside is not None and not machine.likeness.consistent(inside):
                found = (at, None, True)
            else:
                after, then = machine.step(at, now, value)
                consistent = after != DEAD and machine.likeness.consistent(then)
                found = (after, then if consistent else None, after == machine.byte_step(at, value))
            self._steps[key] = found
        return found

    def _judge(self, stack: list[tuple[int, int, Text]], node: int, last: int, after: int, then: Text) -> None:
        """The tokens at a node, behind which the text is consistent, and perhaps those below it."""
        first, ids = self._texts.first, self._machine.vocabulary.trie.token_ids
        if first[node] < first[node + 1]:
            alive = self._alive.get((after, then))
            if alive is None:
                alive = self._alive[after, then] = self._machine.look.alive(after, then)
            if not alive:
                self._refused.extend(self._in_row(ids[first[node] : first[last]]))
                return
            if self._doubts:
                self._doubtful.extend(ids[first[node] : first[node + 1]].tolist())
        if last > node + 1:
            if self._matters(after, then, node, last):
                stack.append((node, after, then))
            elif self._doubts:
                self._doubtful.extend(ids[first[node] : first[last]].tolist())

    def _in_row(self, tokens: NDArray[np.int32]) -> list[int]:
        """Those that the automaton allows: below an opened container a few of tens of thousands."""
        found: list[int] = tokens[tokenset.are_in(self._row, tokens)].tolist()
        return found

    def _dead(self, tokens: list[int]) -> list[int]:
        return [token for token in tokens if not self._machine.lives(self._state, token)]

    def _matters(self, state: int, text: Text, node: int, last: int) -> bool:
        """Can a token below a node do more than go on in what is open, or in white space between names and items?"""
        texts = self._texts
        if text.mode is Mode.BETWEEN:
            if text.level is not None and text.level.gathers:
                return texts.is_visible_below(node, last)
            return texts.has_quote_below(node, last)
        only = texts.is_digits_below if text.mode is Mode.SCALAR else texts.is_letters_below
        return not (self._machine.look.is_uniform(state, text) and only(node, last))


def _place(text: Text | None) -> Place:
    if text is None:
        return Place.IDLE
    return Place.BETWEEN if text.mode in (Mode.BETWEEN, Mode.SCALAR) else Place.STRING


def _tokens(found: list[int]) -> NDArray[np.int64]:
    return np.asarray(sorted(set(found)), np.int64) if found else NO_TOKENS
