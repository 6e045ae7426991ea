"""Masks where names or items must not repeat: the automaton's, less the tokens that can only come to a duplicate.

A token is refused somewhere along its bytes.  While what is being read may become a duplicate
(`guided.constraint.distinct.collisions`), the tokens that make it one are looked up by what is left of the used names
and strings (`guided.constraint.distinct.used_strings`); where something else is read, the vocabulary's trie is walked
(`guided.constraint.distinct.trie_walk`).  Elsewhere only a token that goes on to the next name or item can be refused;
those whose verdict the state alone does not tell (`guided.constraint.distinct.next_items`) are tried.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import Level, Mode, Text
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.next_items import NextItems
from guided.constraint.distinct.steps import Steps
from guided.constraint.distinct.supply import Supply
from guided.constraint.distinct.token_texts import NO_TOKENS, Place, Reach
from guided.constraint.distinct.trie_walk import TrieWalk
from guided.constraint.distinct.used_keys import UsedKeys
from guided.constraint.distinct.used_strings import UsedStrings
from guided.kernels.data.layout import DEAD

_ROWS = 256
"""Masks of the automaton alone that are kept, since states that differ in what they hold share them."""


class Follows(Enum):
    """What `guided.kernels.masking.tracks` may go on with by itself."""

    ALL = "all"
    UNCOMPARED = "where no items are compared, up to the opening bracket of an array"
    IDLE = "where nothing is remembered, up to a name that may be undeclared"
    """Such names are few, so that one may lead to none that is left."""
    NOTHING = "nothing"


class Refusals:
    """Masks of one machine's states; a state stands for its pair ``(own, text)``."""

    def __init__(self, steps: Steps, supply: Supply, liveness: Liveness) -> None:
        self._steps = steps
        self._automaton = steps.automaton
        self._liveness = liveness
        self._texts = steps.tokens
        self._byte_complete = self._automaton.vocabulary.byte_complete
        self._next = NextItems(steps, supply, liveness)
        self._strings = UsedStrings(steps, supply, liveness)
        self._rows: OrderedDict[int, NDArray[np.uint32]] = OrderedDict()
        self._fingerprints: dict[int, int] = {}
        self._ends: dict[int, bool] = {}
        self._refused: dict[int, NDArray[np.int64]] = {}
        self._free: dict[int, bool] = {}
        self._undecided: dict[int, NDArray[np.int64]] = {}
        self._begun = _BEGUN_OR_ARRAY if steps.compares else _BEGUN
        self._reaching: dict[tuple[int, Place, frozenset[Reach]], list[int]] = {}

    def mask(self, state: int, own: int, text: Text | None) -> NDArray[np.uint32]:
        """See `DistinctMachine.mask`."""
        refused = NO_TOKENS if text is None and self.never_idle else self.refused(state, own, text)
        row = self.row(own)
        return tokenset.without(row, refused) if refused.size else row

    def visit(self, state: int, own: int, text: Text | None) -> tuple[NDArray[np.uint32], bool, int]:
        """See `DistinctMachine.visit`."""
        row = self.mask(state, own, text)
        kept, ends = self.row(own), self._ends[own]
        if row is not kept:
            return row, ends, -1
        return row.copy() if ends else row, ends, self._fingerprints[own]

    @cached_property
    def trusts_idle(self) -> bool:
        """Is nothing refused where nothing is remembered, since no token holds two names of one object?"""
        return self._steps.only_names and not self._texts.spanning

    @cached_property
    def follows(self) -> Follows:
        """How far kernels may go on with texts by themselves."""
        if self.trusts_idle:
            return Follows.ALL
        if self._texts.spanning or not self._byte_complete:
            return Follows.NOTHING
        return Follows.UNCOMPARED if self._steps.room >= 0 else Follows.IDLE

    @cached_property
    def suspects(self) -> NDArray[np.uint32] | None:
        """The row of the tokens that may be refused where kernels go on, and of which only the state tells."""
        if self.follows is Follows.UNCOMPARED and self._steps.compares:
            tokens = np.concatenate([self._texts.that_reach(_ARRAYS, place) for place in Place])
        elif self.follows is Follows.IDLE:
            tokens = self._texts.that_reach(self._begun, Place.IDLE)
        else:
            return None
        return tokenset.of_ids(tokens.tolist(), self._automaton.vocabulary.n_words) if tokens.size else None

    @cached_property
    def never_idle(self) -> bool:
        """Is no token refused where nothing is remembered, since none holds two names, or two items, by itself?"""
        texts = self._texts
        idle = texts.that_reach(self._begun, Place.IDLE).size == 0
        return idle and not texts.spanning and self._byte_complete

    @cached_property
    def _trusts_names(self) -> bool:
        """Is nothing refused within a name but what ends it, since no token goes on to two items or another name?"""
        texts = self._texts
        if not (self._steps.open_names and self._byte_complete) or texts.spanning:
            return False
        return not self._steps.compares or texts.that_reach(_ARRAYS, Place.STRING).size == 0

    def frees_name(self, text: Text) -> bool:
        """Is nothing refused within a name, whatever characters it goes on by, since no used one begins like it?"""
        level = text.level
        if text.pending or not self._trusts_names:
            return False
        return level is None or not (level.repeating or level.gathers or level.used.begins(text.text))

    def shares_mask(self, state: int, own: int, text: Text) -> bool:
        """Has the pair the mask of the automaton's state, both as it is and taken for one that remembers nothing?"""
        if self.trusts_idle:
            level = text.level
            if level is None or not (text.mode is Mode.NAME or level.repeating):
                return True
            return not self.refused(state, own, text).size
        free = self.never_idle or self._free.get(own)
        if free is None:
            free = self._free[own] = not self.refused(own, own, None).size
        return free and not self.refused(state, own, text).size

    def refused(self, state: int, own: int, text: Text | None) -> NDArray[np.int64]:
        """The tokens that the automaton allows and the checker does not; and some that neither allows."""
        found = self._refused.get(state)
        if found is None:
            if self._repeats_names(text):
                found = self._repeating(own, text)
            else:
                found = self._find(own, text)[0]
            if found.size:
                self._refused[state] = found
        return found

    def _repeats_names(self, text: Text | None) -> bool:
        """Can a token only be refused for a name that it ends, or for what it holds as a whole?"""
        if not (self._steps.open_names and self._byte_complete):
            return False
        return text is None or not (text.pending or (text.level is not None and text.level.gathers))

    def _repeating(self, own: int, text: Text | None) -> NDArray[np.int64]:
        """The tokens that end a name which the object holds already, or hold names or items that repeat others."""
        level = None if text is None else text.level
        tried = self._texts.spanning
        if self._steps.compares:
            tried = (*tried, *self._allowed(own, _place(text), _ARRAYS))
        if level is None:
            if not tried:
                return NO_TOKENS
            found: list[int] = []
        else:
            assert text is not None
            found = self._closing(own, text, level.used) if text.mode is Mode.NAME else []
            tried = (*level.repeating, *tried)
        if tried:
            found += [token for token in self.in_row(own, tried) if not self._lives(own, text, token)]
        return _tokens(found)

    def _closing(self, own: int, text: Text, used: UsedKeys) -> list[int]:
        """Of a name that has begun, the tokens that make it one that is used."""
        begun, closing = text.text, self._texts.closing
        found: list[int] = []
        if used.size > len(closing):
            rests = [rest for rest in closing if begun + rest in used] if used.begins(begun) else []
        else:
            size = len(begun)
            rests = [rest for name in used.beginning(begun) if (rest := name[size:]) in closing]
        if not rests:
            return found
        row = self.row(own)
        for rest in rests:
            for ways in closing[rest]:
                tokens = ways.within(row)
                if tokens:
                    after = self._automaton.advance_text(own, ways.spelling)
                    left = after if after == DEAD else self._steps.frames.without_undeclared_name(after)
                    if left == DEAD:
                        found += tokens
                    elif left != after:
                        found += [token for token in tokens if not self._lives(own, text, token)]
        return found

    def undecided(self, state: int, own: int, text: Text | None) -> NDArray[np.int64]:
        """Allowed tokens after which the automaton's own shortest text may repeat something, and a few more."""
        found = self._undecided.get(state)
        if found is None:
            self._refused[state], found = self._find(own, text, doubts=True)
            self._undecided[state] = found
        return found

    def row(self, own: int) -> NDArray[np.uint32]:
        """The automaton's own mask, kept for a while."""
        row = self._rows.get(own)
        if row is None:
            row, self._ends[own], self._fingerprints[own] = self._automaton.visit(own)
            row = self._rows[own] = row.copy()
            if len(self._rows) > _ROWS:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(own)
        return row

    def _lives(self, own: int, text: Text | None, token: int) -> bool:
        return self._liveness.lives(own, text, self._texts.spelled(token))

    def _find(
        self, own: int, text: Text | None, *, doubts: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        refused: list[int] = []
        undecided: list[int] = []
        told: NDArray[np.int64] | None = None
        if not self._byte_complete:
            tried = tokenset.ids(self.row(own)).tolist()
        else:
            tried = self._tried(own, text, doubts)
            if text is not None and self._steps.collisions.may_collide(text):
                told = None if doubts else self._told(own, text)
                if told is None:
                    TrieWalk(self._steps, self._liveness, self.row(own), refused, undecided, doubts).run(own, text)
        for token in tried:
            (undecided if self._lives(own, text, token) else refused).append(token)
        found = _tokens(refused)
        if told is not None and told.size:
            found = np.concatenate((told, found)) if refused else told
        return found, _tokens(undecided)

    def _told(self, own: int, text: Text) -> NDArray[np.int64] | None:
        """The tokens that repeat something or can only come to that, where it takes no walk to find them."""
        told = self._strings.refused(own, self.row(own), text)
        return NO_TOKENS if told is None and self._strings.stays_free(own, self.row(own), text) else told

    def _tried(self, own: int, text: Text | None, doubts: bool) -> list[int]:
        """The tokens that the automaton allows and that reach a next name or item, having left what was seen."""
        place, row = _place(text), self.row(own)
        level = None if text is None else text.level
        if text is not None and level is not None and level.gathers:
            if doubts:
                if level.is_array or _holds_any(level):
                    return self._allowed(own, place, _ITEMS)
                # In an object, and nothing is there to be repeated but what the token itself ends.
                return [*self.in_row(own, self._texts.spanning), *self._allowed(own, place, _NEXT_ITEMS)]
            if level.is_array or not self._steps.open_names:
                return self._next.undecided(own, text, place, _ITEMS, row)
            # Within an object that is an item only names can repeat; then come other items.
            named = self.in_row(own, (*level.repeating, *self._texts.spanning))
            found = self._next.undecided(own, text, place, _NEXT_ITEMS, row)
            return [*named, *(token for token in found if token not in named)] if named else found
        if text is not None and not doubts and not self._steps.open_names:
            return self._next.undecided(own, text, place, self._begun, row)
        found = self._allowed(own, place, self._begun)
        if found and not doubts and self._steps.open_names:
            return self._allowed(own, place, _ENDED_OR_ARRAY if self._steps.compares else _ENDED)
        return found

    def most_opened(self, own: int, text: Text | None) -> int:
        """The most arrays that an allowed token may open of which it may hold two items."""
        found = self._allowed(own, _place(text), _ARRAYS)
        return max((self._texts.spelled(token).count(b"[") for token in found), default=0)

    def in_row(self, own: int, tokens: Sequence[int]) -> list[int]:
        """Those of some tokens that the automaton allows."""
        row = self.row(own)
        return [token for token in tokens if tokenset.contains(row, token)]

    def _allowed(self, own: int, place: Place, reaches: frozenset[Reach]) -> list[int]:
        key = (own, place, reaches)
        found = self._reaching.get(key)
        if found is None:
            found = self._reaching[key] = self._texts.reaching(reaches, place, self.row(own))
        return found


_ITEMS = frozenset((Reach.ITEM,))
_NEXT_ITEMS = frozenset((Reach.NEXT_ITEM, Reach.ARRAY))
_ARRAYS = frozenset((Reach.ARRAY,))
_ENDED = frozenset((Reach.NAME_ENDED,))
_ENDED_OR_ARRAY = frozenset((Reach.NAME_ENDED, Reach.ARRAY))
_BEGUN = frozenset((Reach.NAME_BEGUN,))
_BEGUN_OR_ARRAY = frozenset((Reach.NAME_BEGUN, Reach.ARRAY))


def _holds_any(level: Level | None) -> bool:
    """Does a container hold names or items that may not be repeated, or one around it?"""
    while level is not None and not level.used.size:
        level = level.parent
    return level is not None


def _place(text: Text | None) -> Place:
    if text is None:
        return Place.IDLE
    return Place.BETWEEN if text.mode in (Mode.BETWEEN, Mode.SCALAR) else Place.STRING


def _tokens(found: list[int]) -> NDArray[np.int64]:
    return np.asarray(sorted(set(found)), np.int64) if found else NO_TOKENS
