"""Where tokens lead from the states of one constraint: tokens that lead from one state to another, as one group.

From inside a string nearly all of a vocabulary leads back to the same state, and from most other states few tokens
live. So a state has few edges, each a group and the state behind it, and states have groups in common: a group is
interned by its tokens, and its best token and its mass at a position are worked out once for all states.  Nothing here
knows a position or a probability.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.diffusion.lattice.selection import Runs, Selection
from guided.errors import LimitError

__all__ = ["Edges", "Layer", "Successors"]

_PEELED = 24
"""States behind a token that are looked for one by one, before the rest of the tokens are sorted by them: a comparison
with all tokens costs a hundredth of sorting them."""

_MOST_TOKENS = 1 << 26
"""Tokens of all groups together at which everything is forgotten: 256 MB."""

_MOST_EDGES = 1 << 23
"""Edges of the layers that are remembered, 40 bytes each: those of 128 positions in JSON with Llama 3's tokens are five
million."""

_SELECTIONS = 64
"""Selections of groups that are remembered, each as long as a vocabulary or a few."""


@dataclass(frozen=True, eq=False)
class Edges:
    """What follows one state: by the tokens of group ``groups[i]`` comes the state ``after[i]``."""

    groups: NDArray[np.int64]
    after: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layer:
    """The edges between the states of two neighbouring places, sorted by the state behind."""

    before: NDArray[np.int64]
    """``[n]``: states before the position."""
    after: NDArray[np.int64]
    """``[m]``: states behind it, ascending."""
    source: NDArray[np.int64]
    """``[e]``: places in ``before``."""
    target: NDArray[np.int64]
    """``[e]``: places in ``after``, ascending."""
    group: NDArray[np.int64]
    """``[e]``: places in ``selection.groups``."""
    selection: Selection

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """``[m + 1]``: the edges into each state behind."""
        return np.searchsorted(self.target, np.arange(self.after.size + 1))

    @cached_property
    def by_source(self) -> Runs:
        """The edges by the state before."""
        return Runs.of(self.source)

    @cached_property
    def by_group(self) -> Runs:
        """The edges by their group."""
        return Runs.of(self.group)

    def keeping(self, kept: NDArray[np.bool_]) -> Layer:
        """The layer with only some of the states behind."""
        edges = kept[self.target]
        renumbered = np.cumsum(kept) - 1
        return Layer(
            self.before,
            self.after[kept],
            self.source[edges],
            renumbered[self.target[edges]],
            self.group[edges],
            self.selection,
        )


class Successors:
    """The edges of one constraint's states, made when they are asked for and kept.  For one thread at a time.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_ids=[3])
    >>> constraint = guided.compile(guided.regex("[ab]c"), vocabulary)
    >>> found = Successors.of(constraint).edges(constraint.start)
    >>> [Successors.of(constraint).tokens(group).tolist() for group in found.groups]
    [[0, 1]]
    """

    _all: ClassVar[weakref.WeakKeyDictionary[Any, dict[int | None, Successors]]] = weakref.WeakKeyDictionary()

    def __init__(self, constraint: Constrains, pad_id: int | None = None) -> None:
        """With ``pad_id`` an id that may stand behind an end-of-text id, as such ids may."""
        # Those that `of` keeps would else keep their constraint.
        self._constraint = weakref.ref(constraint)
        self._eos = np.array(sorted({*constraint.vocabulary.eos_ids, *([] if pad_id is None else [pad_id])}), np.int64)
        self._ends_at = constraint.end
        self.is_fast = _states_behind(constraint, constraint.start) is not None
        """Does the constraint tell the states after all tokens at once?"""
        self._forget()

    @classmethod
    def of(cls, constraint: Constrains, pad_id: int | None = None) -> Successors:
        """Those of a constraint, which all of its lattices share."""
        kept = cls._all.setdefault(constraint, {})
        if pad_id not in kept:
            kept[pad_id] = cls(constraint, pad_id)
        return kept[pad_id]

    @property
    def constraint(self) -> Constrains:
        """Whose states these are."""
        found = self._constraint()
        assert found is not None, "whoever asks for edges holds the constraint"
        return found

    def _forget(self) -> None:
        self._edges: dict[int, Edges | None] = {}
        self._fits: dict[int, int | None] = {}
        self._quick: dict[int, int] = {}
        self._groups: list[NDArray[np.int64]] = []
        self._numbers: dict[bytes, int] = {}
        self._singles: dict[int, int] = {}
        self._layers: OrderedDict[tuple[int, bytes], Layer] = OrderedDict()
        self._selections: OrderedDict[bytes, Selection] = OrderedDict()
        self._n_tokens = self._n_edges = 0

    def make_room(self) -> None:
        """Forget everything where that has become too much; what was handed out before stays right."""
        if self._n_tokens > _MOST_TOKENS:
            self._forget()

    def tokens(self, group: int) -> NDArray[np.int64]:
        """The tokens of a group, in the constraint's order."""
        return self._groups[group]

    def group(self, tokens: NDArray[np.int64]) -> int:
        """The number of a group of tokens, at least one and in the constraint's order."""
        if tokens.size == 1:
            return self.single(int(tokens[0]))
        key = blake2b(tokens.tobytes(), digest_size=16).digest()
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._add(tokens)
        return found

    def single(self, token: int) -> int:
        """The number of the group of one token."""
        found = self._singles.get(token)
        if found is None:
            found = self._singles[token] = self._add(np.array([token], np.int64))
        return found

    def _add(self, tokens: NDArray[np.int64]) -> int:
        tokens.setflags(write=False)
        self._groups.append(tokens)
        self._n_tokens += tokens.size
        return len(self._groups) - 1

    def edges(self, state: int) -> Edges:
        """All edges of a live state."""
        found = self._edges.get(state)
        if found is None:
            found = self._edges[state] = self._edges_of(state)
        return found

    def _edges_of(self, state: int) -> Edges:
        if state == self._ends_at:
            return Edges(np.array([self.group(self._eos.copy())]), np.array([state], np.int64))
        constraint = self.constraint
        after = _states_behind(constraint, state) if self.is_fast else None
        if after is None:
            tokens = self.allowed(state)
            behind = np.array([constraint.advance(state, token) for token in tokens.tolist()], np.int64)
        else:
            tokens, behind = after
        return self._grouped(tokens, behind)

    def _grouped(self, tokens: NDArray[np.int64], behind: NDArray[np.int64]) -> Edges:
        groups: list[int] = []
        states: list[int] = []
        for _ in range(_PEELED):
            if not tokens.size:
                break
            common = behind[behind.size // 2]
            same = behind == common
            groups.append(self.group(tokens[same]))
            states.append(int(common))
            tokens, behind = tokens[~same], behind[~same]
        if tokens.size:
            order = np.argsort(behind, kind="stable")
            tokens, behind = tokens[order], behind[order]
            cuts = np.flatnonzero(np.diff(behind)) + 1
            groups += [self.group(part) for part in np.split(tokens, cuts)]
            states += behind[np.concatenate(([0], cuts))].tolist()
        return Edges(np.array(groups, np.int64), np.array(states, np.int64))

    def allowed(self, state: int) -> NDArray[np.int64]:
        """The tokens of a state's mask."""
        row = np.empty(self.constraint.vocabulary.n_words, np.uint32)
        self.constraint.fill_mask(state, row)
        return tokenset.ids(row)

    @property
    def searches(self) -> bool:
        """Are shortest ends of the constraint found by a search?"""
        return self._bound is not None

    @property
    def _bound(self) -> Callable[[int], int] | None:
        """A constraint's quick bound on what `shortest` searches for, where it has one."""
        found: Callable[[int], int] | None = getattr(self.constraint, "completion_bound", None)
        return found

    def near(self, state: int) -> NDArray[np.int64]:
        """Tokens that begin a shortest way to an end."""
        fits = self.shortest(state)
        row = np.empty(self.constraint.vocabulary.n_words, np.uint32)
        self.constraint.fill_budget_mask(state, row, 1 + (fits or 0))
        return tokenset.ids(row)

    def shortest(self, state: int) -> int | None:
        """So many tokens lead to an end; None where the constraint cannot tell within its limits."""
        if state == self._ends_at:
            return 0
        # A search is remembered by its constraint, which may find a shorter one on the way of another state's.
        if state not in self._fits or self.searches:
            try:
                self._fits[state] = self.constraint.shortest_completion(state)
            except LimitError:
                self._fits[state] = None
        return self._fits[state]

    def fits(self, state: int, left: int, *, search: bool = True) -> bool:
        """Do ``left`` tokens surely lead to an end?  Without ``search`` it may be no where they do."""
        if state != self._ends_at and self._bound is not None:
            bound = self._quick.get(state)
            if bound is None:
                bound = self._quick[state] = self._bound(state)
            if bound <= left or not (search or state in self._fits):
                return bound <= left
        shortest = self.shortest(state)
        return shortest is not None and shortest <= left

    def layer(self, states: NDArray[np.int64], known: int = -1) -> Layer:
        """All edges from some states, or with ``known`` those of this token alone; remembered."""
        key = (known, states.tobytes())
        found = self._layers.get(key)
        if found is None:
            if known >= 0:
                step = self.constraint.advance
                after = np.array([self._after_known(step, state, known) for state in states.tolist()], np.int64)
                source = np.flatnonzero(after)
                found = self.made(states, source, np.full(source.size, self.single(known)), after[source])
            else:
                found = self.made(states, *self.joined([self.edges(state) for state in states.tolist()]))
            self._layers[key] = found
            self._n_edges += found.source.size
            while self._n_edges > _MOST_EDGES and len(self._layers) > 1:
                self._n_edges -= self._layers.popitem(last=False)[1].source.size
        else:
            self._layers.move_to_end(key)
        return found

    def _after_known(self, step: Any, state: int, token: int) -> int:
        if state == self._ends_at:
            return state if token in self._eos else 0
        return int(step(state, token)) if token < self.constraint.vocabulary.size else 0

    @staticmethod
    def joined(edges: Sequence[Edges]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The edges of several states as columns: the state's place, the group, the state behind."""
        sizes = [each.groups.size for each in edges]
        source = np.repeat(np.arange(len(edges)), sizes)
        if not source.size:
            return source, source.copy(), source.copy()
        return source, np.concatenate([e.groups for e in edges]), np.concatenate([e.after for e in edges])

    def made(
        self,
        states: NDArray[np.int64],
        source: NDArray[np.int64],
        groups: NDArray[np.int64],
        behind: NDArray[np.int64],
    ) -> Layer:
        """A layer of edges as columns."""
        after, target = np.unique(behind, return_inverse=True)
        order = np.argsort(target, kind="stable")
        chosen, group = np.unique(groups, return_inverse=True)
        return Layer(states, after, source[order], target[order], group[order], self.selection(chosen))

    def selection(self, groups: NDArray[np.int64]) -> Selection:
        """Several groups together; remembered."""
        key = groups.tobytes()
        found = self._selections.get(key)
        if found is None:
            found = self._selections[key] = Selection(groups, [self._groups[group] for group in groups.tolist()])
            if len(self._selections) > _SELECTIONS:
                self._selections.popitem(last=False)
        else:
            self._selections.move_to_end(key)
        return found


def _states_behind(constraint: Any, state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """All tokens and the states after them (`guided.constraint.constraint.Constraint.advance_all`), None: not told."""
    ask = getattr(constraint, "advance_all", None)
    found: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None if ask is None else ask(state)
    return found
