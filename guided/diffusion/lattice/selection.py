"""Groups of tokens beside the distribution of one position: the mass and the greatest probability of each.

Groups overlap: where a string may still have ten characters its tokens are those where it may have nine, and more.  So
a selection of groups is cut into atoms, tokens that are in the same groups, and a position's distribution is read once
for each atom, not for each group.  Nothing here knows a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.lattice.sums import log_sums, run_maxima
from guided.kernels.tokens.log_masses import run_masses, spread

__all__ = ["Atoms", "Runs", "Selection"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_OVERLAP = 1.2
"""Tokens of all groups for each that there is, above which they are cut: to cut them costs what to read them thrice."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Things in the order of some number of theirs: those with the number ``value[i]`` begin at ``start[i]``."""

    order: Places
    start: Places
    value: Places

    @classmethod
    def of(cls, numbers: Places) -> Runs:
        """The runs of equal numbers."""
        order = np.argsort(numbers, kind="stable")
        value, start = np.unique(numbers[order], return_index=True)
        return cls(order, start, value)


@dataclass(frozen=True, eq=False)
class Atoms:
    """Tokens, atom after atom, and of which atoms the groups are."""

    tokens: Places
    starts: Places
    """Where the tokens of each atom begin."""
    members: Places
    """The atoms of each group, group after group."""
    first: Places
    """Where those of each group begin."""

    @classmethod
    def of_groups(cls, parts: Sequence[Places]) -> Atoms:
        """Each group an atom, whatever they have in common."""
        sizes = np.array([part.size for part in parts], np.int64)
        numbers = np.arange(len(parts))
        tokens = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return cls(tokens, np.cumsum(sizes) - sizes, numbers, numbers)

    @classmethod
    def cut(cls, parts: Sequence[Places]) -> Atoms:
        """The fewest atoms: tokens that are in the same groups."""
        label = np.zeros(1 + max(int(part.max()) for part in parts), np.int64)
        n_labels = 1
        for part in parts:
            # Whatever has one label so far and is in this group gets a new one.
            old = label[part]
            met = np.flatnonzero(np.bincount(old, minlength=n_labels))
            renamed = np.zeros(n_labels, np.int64)
            renamed[met] = n_labels + np.arange(met.size)
            label[part] = renamed[old]
            n_labels += met.size
        tokens = np.flatnonzero(label)
        runs = Runs.of(label[tokens])
        tokens = tokens[runs.order]
        atom_of = np.zeros(label.size, np.int64)
        atom_of[tokens] = np.repeat(np.arange(runs.start.size), np.diff(runs.start, append=tokens.size))
        members = [np.flatnonzero(np.bincount(atom_of[part])) for part in parts]
        sizes = np.array([each.size for each in members], np.int64)
        return cls(tokens, runs.start, np.concatenate(members), np.cumsum(sizes) - sizes)

    @cached_property
    def groups(self) -> Places:
        """Of each of ``members`` the group."""
        return np.repeat(np.arange(self.first.size), np.diff(self.first, append=self.members.size))

    @cached_property
    def _by_atom(self) -> Runs:
        return Runs.of(self.members)

    def read(self, row: NDArray[np.floating]) -> tuple[Floats, Floats]:
        """The mass and the greatest probability of each group, as logarithms."""
        mass, most = np.empty(self.starts.size), np.empty(self.starts.size)
        run_masses(_readable(row), self.tokens, self.starts, mass, most)
        if self.members.size == self.first.size:
            return mass, most
        return log_sums(mass[self.members], self.first), run_maxima(most[self.members], self.first)

    def having(self, token: int) -> Places:
        """The groups that have a token."""
        atoms = np.searchsorted(self.starts, np.flatnonzero(self.tokens == token), side="right") - 1
        return np.unique(self.groups[np.isin(self.members, atoms)])

    def spread(self, row: NDArray[np.floating], weights: Floats, onto: Floats) -> None:
        """Add to ``onto``, for each token, its probability times the ``weights`` of its groups, logarithms, summed."""
        runs = self._by_atom
        of_atoms = log_sums(weights[self.groups][runs.order], runs.start)
        spread(_readable(row), self.tokens, self.starts, of_atoms, onto)


class Selection:
    """Several groups of tokens."""

    def __init__(self, groups: Places, parts: Sequence[Places]) -> None:
        """``groups`` are their numbers, ``parts`` their tokens, of each at least one."""
        self.groups = groups
        self.parts = parts
        self.atoms = Atoms.of_groups(parts)
        self._is_fresh = True

    def read(self, row: NDArray[np.floating]) -> tuple[Floats, Floats]:
        """The mass and the greatest probability of each group, as logarithms.

        A selection that is read a second time is cut into atoms where that pays: many are read once.
        """
        if self._is_fresh:
            self._is_fresh = False
        elif self.atoms.first.size == self.atoms.members.size and self._overlaps:
            self.atoms = Atoms.cut(self.parts)
        return self.atoms.read(row)

    @cached_property
    def _overlaps(self) -> bool:
        tokens = self.atoms.tokens
        return bool(tokens.size > _OVERLAP * np.count_nonzero(np.bincount(tokens)))

    def likeliest(self, row: NDArray[np.floating], group: int, most: float) -> int:
        """The token of a group that has its greatest probability, the first of equals."""
        found = np.flatnonzero(row == row.dtype.type(most))
        if found.size > 1:
            found = found[np.isin(found, self.parts[group])]
        return int(found[0])


def _readable(row: NDArray[np.floating]) -> NDArray[np.floating]:
    """The row as kernels take it: in one piece, in single or double precision."""
    return np.require(row, None if row.dtype in (np.float32, np.float64) else np.float64, ("C", "A"))
