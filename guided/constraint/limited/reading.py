"""Where tokens and bytes lead in a grammar with limited texts; see `guided.constraint.limited.machine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.limited.spans import Groups, Machine, Spans
from guided.constraint.limited.token_tree import ROOT, TokenTree
from guided.constraint.product import COUNT, STRIDE, FarStates, ProductMachine
from guided.kernels.data.layout import DEAD, FINISHED

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

__all__ = ["ANY", "Begun", "Counted", "LimitedReading", "Place", "Side"]


class Place(NamedTuple):
    """Where tokens have led."""

    whole: int
    """The inner machine's state, with all threads."""
    outside: int
    """The same with those outside of spans; `DEAD` for none."""
    groups: Groups


class Counted(NamedTuple):
    """What a pair has beside the state with all threads, where some are in spans."""

    outside: int
    groups: Groups


class Begun(NamedTuple):
    """Behind bytes that need not be whole tokens: what the pair has beside the state of the bytes alone."""

    ended: int
    """The state where a token has ended, `DEAD` where none can have."""
    begun: tuple[tuple[int, int], ...]
    """The states in which tokens may have begun that go on, each with the node of the trie."""


Side: TypeAlias = "Counted | Begun"


_MOST = (1 << COUNT) - 1
"""The tokens left of which a state's number tells, a million.  With more left, states are pairs like others."""
ANY = 1 << 40
"""More tokens left than any limit."""


class LimitedReading(ProductMachine[Side]):
    """The steps of a machine with limited texts.

    Nearly always all threads in spans have as many tokens left.  States that differ in that number alone are a row of
    numbers, one after another, and far from the limit a token leads from each to the one with one less in some row
    (`FarStates`).
    """

    def __init__(self, inner: Machine, base: ConstraintMachine) -> None:
        super().__init__(inner)
        self.base = base
        self.start = inner.start
        self.spans = Spans(inner, base)
        self._tree = TokenTree.of(inner.vocabulary)
        self._spelled: dict[int, bytes] = {}
        self._first_row = self.first_pair << 1
        """A number whose lower bits are 0."""
        self._rows: list[tuple[int, int, int]] = []
        """The inner machine's states with all threads, and outside of spans, and the automaton's of those in spans."""
        self._row_ids: dict[tuple[int, int, int], int] = {}
        self._beyond: list[int] = []
        """By row, the tokens left of which there must be more, so that the limit has no say."""
        self.far: FarStates = FarStates({}, {})

    # States.

    def split(self, state: int) -> tuple[int, Side | None]:
        """The inner machine's state, and what is counted."""
        at = state - self._first_row
        if at < 0:
            return super().split(state)
        whole, outside, group = self._rows[at >> COUNT]
        return whole, Counted(outside, ((group, at & _MOST),))

    def has_state(self, state: int) -> bool:
        """Is this a state that was made here, or one that differs from such in the tokens left?"""
        at = state - self._first_row
        return super().has_state(state) if at < 0 else at >> COUNT < len(self._rows)

    def join(self, state: int, side: Side | None) -> int:
        """The one state of a pair; `DEAD` where nothing can follow."""
        return self.state_of(Place(state, *side)) if isinstance(side, Counted) else super().join(state, side)

    def place(self, state: int) -> Place:
        """What a state behind tokens is made of."""
        if state < self.first_pair:
            return Place(state, state, ())
        own, side = self.split(state)
        if isinstance(side, Begun):
            return self.place(side.ended)
        assert side is not None
        return Place(own, *side)

    def state_of(self, place: Place) -> int:
        """The state of a place; `DEAD` where there is no way on."""
        whole, outside, groups = place
        if not groups:
            return outside
        if len(groups) > 1 or groups[0][1] > _MOST:
            return self.pair(whole, Counted(outside, groups))
        group, left = groups[0]
        if outside == DEAD and not self.goes_on(whole, Counted(outside, groups)):
            return DEAD
        key = (whole, outside, group)
        row = self._row_ids.get(key)
        if row is None:
            row = self._row_ids[key] = len(self._rows)
            self._rows.append(key)
            self._beyond.append(max(self.spans.widest(group), 1))
        return self._first_row + (row << COUNT) + left

    def advance_token(self, state: int, token: int) -> int:
        """The state after a token's bytes (not an end-of-text id)."""
        known = self.far.steps.get((state >> COUNT) * STRIDE + token)
        if known is not None and state & _MOST > known[1]:
            return state + known[0]
        with self.lock:
            if state < self.first_pair:
                after = self.inner.advance_token(state, token)
                if after == DEAD or not self.spans.parted(after).by_limit:
                    return after
            place = self.place(state)
            if place.whole == DEAD:
                return DEAD
            data = self.spelled(token)
            if not data:
                return DEAD
            if state < self._first_row:
                return self.state_of(self.after(place, data))
            ((own, left),) = place.groups
            whole, outside, groups = self.moved(place._replace(groups=((own, ANY),)), data)
            behind = [(group, left - 1 if most == ANY - 1 else most) for group, most in groups]
            found = DEAD if whole == DEAD else self.state_of(self.joined(whole, outside, behind))
            if found >= self._first_row and len(groups) == 1 and groups[0][1] == ANY - 1:
                steps = self.far.steps
                if len(steps) >= self.limits.steps:
                    steps.clear()
                beyond = self._beyond[state - self._first_row >> COUNT]
                steps[(state >> COUNT) * STRIDE + token] = (found - state, beyond)
            return found

    def spelled(self, token: int) -> bytes:
        """A token's bytes."""
        found = self._spelled.get(token)
        if found is None:
            found = self._spelled[token] = self.vocabulary.spelled(token) or b""
        return found

    def after(self, place: Place, data: bytes) -> Place:
        """Where one token leads with these bytes, whether or not spans can be ended in time from there."""
        whole, outside, groups = self.moved(place, data)
        return _NOWHERE if whole == DEAD else self.joined(whole, outside, groups)

    def moved(self, place: Place, data: bytes) -> tuple[int, int, list[tuple[int, int]]]:
        """The inner machine's state behind one token, that of the threads outside, and groups in spans.

        A thread may be in several groups, and in some without any tokens left.
        """
        spans = self.spans
        step, parted = spans.step, spans.parted
        whole, outside = place.whole, place.outside
        groups = [(group, left - 1) for group, left in place.groups]
        first = 1
        for byte in data:
            entered = parted(step(outside, byte)).by_limit if outside != DEAD else ()
            groups = [(on, left) for group, left in groups if (on := parted(step(group, byte)).inside) != DEAD]
            # A token that begins with the span counts, one that comes to it later does not.
            groups += [(group, most - first) for group, most in entered]
            first = 0
            whole = step(whole, byte)
            if whole == DEAD:
                return DEAD, DEAD, []
            outside = parted(whole).outside
        return whole, outside, groups

    def joined(self, whole: int, outside: int, groups: list[tuple[int, int]]) -> Place:
        """The place with some threads outside and in spans; ``whole`` is a state that has them, and perhaps others."""
        spans = self.spans
        if len(groups) == 1 and groups[0][1] > 0 and groups[0][0] == spans.parted(whole).inside:
            # All that is in a span has as many tokens left.
            return Place(whole, outside, tuple(groups))
        most = spans.most_left(groups)
        found = spans.grouped(most)
        if not found:
            return Place(outside, outside, ())
        inside = [thread for thread, left in most.items() if left > 0]
        own = spans.threads(outside) if outside != DEAD else []
        return Place(spans.within(whole, sorted([*own, *inside])), outside, found)

    # Where bytes lead.

    def advance(self, state: int, data: bytes) -> int:
        """The state after the bytes ``data``, cut into tokens in any way."""
        if state <= FINISHED:
            return DEAD if data else state
        with self.lock:
            for byte in data:
                state = self._behind(state, byte)
                if state == DEAD:
                    break
            return state

    advance_text = advance

    def read(self, state: int, side: Side | None, data: bytes) -> tuple[int, Side | None]:
        """The pair after some bytes."""
        return self.split(self.advance(self.join(state, side), data))

    def reads(self, state: int, data: bytes) -> bool:
        """Can some bytes come next?"""
        return self.advance(state, data) != DEAD

    def _behind(self, state: int, byte: int) -> int:
        own, side = self.split(state)
        ended, begun = side if isinstance(side, Begun) else (state, ())
        natural = self.inner.advance_text(own, bytes((byte,)))
        if natural == DEAD:
            return DEAD
        reached: dict[int, None] = {}
        on: list[tuple[int, int]] = []
        for first, node in [*begun, (ended, ROOT)]:
            child = self._tree.child(node, byte) if first != DEAD else ROOT
            if child == ROOT:
                continue
            token = self._tree.token(child)
            if token is not None:
                after = self.advance_token(first, token)
                if after != DEAD:
                    reached[after] = None
            if not self._tree.is_leaf(child):
                on.append((first, child))
        found = self._united(natural, list(reached))
        if found == DEAD:
            on = [(first, node) for first, node in on if self.ways(first, node).size]
        if not on:
            return found
        return self.pair(natural, Begun(found, tuple(sorted(on))))

    def begun(self, state: int) -> list[tuple[int, int, int]]:
        """The states in which tokens may have begun, with the nodes of the trie and the bytes that they have read."""
        side = self.split(state)[1]
        return [(first, node, self._tree.depth(node)) for first, node in side.begun] if isinstance(side, Begun) else []

    def fewest(self, state: int, text: bytes) -> list[int] | None:
        """The fewest tokens that join to a text which is read to an end; None where that cannot be."""
        layers: list[dict[int, list[int]]] = [{} for _ in range(len(text) + 1)]
        layers[0][state] = []
        for at in range(len(text)):
            for before, path in layers[at].items():
                node, end = ROOT, at
                while end < len(text):
                    node = self._tree.child(node, text[end])
                    if node == ROOT:
                        break
                    end += 1
                    token = self._tree.token(node)
                    after = DEAD if token is None else self.advance_token(before, token)
                    if token is not None and after != DEAD:
                        known = layers[end].get(after)
                        if known is None or len(known) > len(path) + 1:
                            layers[end][after] = [*path, token]
        found = [path for after, path in layers[-1].items() if self.is_accepting(after)]
        return min(found, key=len, default=None)

    def ways(self, state: int, node: int) -> NDArray[np.int64]:
        """The tokens of a state's mask that go on from a node of the trie."""
        longer = self._tree.longer(node)
        return longer[tokenset.are_in(self.mask(state), longer)]

    def _united(self, natural: int, states: list[int]) -> int:
        """The state of which each thread is in one of several, which the same bytes led to."""
        if len(states) < 2:
            return states[0] if states else DEAD
        spans = self.spans
        places = [self.place(state) for state in states]
        outside = {place.outside for place in places} - {DEAD}
        if len(outside) > 1:
            threads = {thread for state in outside for thread in spans.threads(state)}
            outside = {spans.within(natural, sorted(threads))}
        groups = [group for place in places for group in place.groups]
        return self.state_of(self.joined(natural, next(iter(outside), DEAD), groups))


_NOWHERE = Place(DEAD, DEAD, ())
