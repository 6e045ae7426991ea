"""`Lattice`: the mean field of a canvas times a constraint, as layers of states, solved by dynamic programming.

Let ``p_i(t)`` be the distribution of position ``i``, a point mass where its token is known, ``q' = advance(q, t)``.

* The likeliest text of the product (DINGO, arXiv 2505.23061): ``V_{i+1}(q') = max V_i(q) p_i(t)``.
* Its mass, samples and marginals: ``F_{i+1}(q') = sum F_i(q) p_i(t)``, ``B_i(q) = sum p_i(t) B_{i+1}(q')``,
  ``M_i(t) = sum_q F_i(q) p_i(t) B_{i+1}(q') / Z``; samples are drawn from the end by ``F``.

Tokens that lead from one state to another are one edge (`Successors`).  Layers are made from the first position on, of
states that are reached; where they would have more states than the limits allow, the likeliest are kept, first those
from which the text surely fits into what is left.  What was cut is bounded: a text through a state that was cut has at
most the mass of the state times the mass of all distributions behind it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.constraint import Constraint
from guided.constraint.protocol import Constrains
from guided.diffusion.lattice.limits import LatticeLimits
from guided.diffusion.lattice.successors import Edges, Layer, Successors
from guided.diffusion.lattice.sums import log_sum, pair_maxima, pair_sums
from guided.errors import GuidedError, LimitError, UnsatisfiableError
from guided.infer.chance import Chance, Random, chance_of

__all__ = ["Lattice"]

Floats = NDArray[np.float64]

_WIDER = 4
"""Times as many states and tokens are kept where no text was found among fewer."""

_SLACK = 5
"""Tokens to spare below which tokens on the way to an end are followed."""

_HURRYING = 3
"""States of a layer with fewer to spare from which they are, the likeliest."""

_NEAR = 16
"""Tokens on the way to an end that are followed besides the likeliest ones."""


@dataclass(frozen=True, eq=False)
class _Step:
    """One position: its edges, and of each group of tokens the mass and the greatest probability, as logarithms."""

    layer: Layer
    mass: Floats
    most: Floats


class Lattice:
    """All texts of a constraint that fit a canvas, weighted by the product of its positions' distributions.

    ``logp`` ``float[L, width]`` are logarithms of the distributions (of weights, where they are not normalised);
    ``known`` are tokens by position, whose rows of ``logp`` then do not count.  ``start`` is the state before the
    canvas, or several with the logarithms of their weights.  Behind an end-of-text id stand only such ids and
    ``pad_id``.  At the end of the canvas the text is over or may end there; with ``room`` it is enough that it can be
    completed in so many more tokens, and with ``room=None`` that it goes on at all (a block with others behind it).
    ``keep`` are tokens of a text that is known to fit, such as an earlier solution: it stays in the lattice whatever is
    cut.

    Raises `UnsatisfiableError` where no text fits, and `LimitError` where none was found within the limits.  Arrays
    that do not fit together raise `GuidedError`, and so do states that the constraint does not have.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_ids=[3])
    >>> constraint = guided.compile(guided.regex("a+b"), vocabulary)
    >>> lattice = Lattice(constraint, np.log([[0.5, 0.3, 0.1, 0.1]] * 4), {3: 3})
    >>> lattice.best()[0].tolist(), round(float(np.exp(lattice.log_z)), 6)
    ([0, 0, 1, 3], 0.09)
    """

    def __init__(
        self,
        constraint: Constrains,
        logp: Any,
        known: Mapping[int, int] | None = None,
        *,
        start: int | Mapping[int, float] | None = None,
        room: int | None = 0,
        pad_id: int | None = None,
        limits: LatticeLimits | None = None,
        keep: Sequence[int] | None = None,
    ) -> None:
        self.constraint = constraint
        self.limits = limits or LatticeLimits()
        self.room = room
        self._rows = _rows_of(logp)
        self._known = dict(known or {})
        for name, value in (("room", room), ("pad_id", pad_id)):
            if value is not None and value < 0:
                raise GuidedError(f"{name} is {value}", remedy="It must be 0 or more, or None.")
        self._successors = Successors.of(constraint, pad_id)
        self._successors.make_room()
        self._needs = max(constraint.vocabulary.size, -1 if pad_id is None else pad_id + 1)
        self._check(keep)
        begins = {constraint.start if start is None else start: 0.0} if not isinstance(start, Mapping) else dict(start)
        self._begins = {state: weight for state, weight in begins.items() if state != 0 and weight > -np.inf}
        for state in self._begins:
            if not _is_known(constraint, state):
                raise GuidedError(
                    f"the canvas begins in state {state}, which the constraint never made",
                    remedy="Pass states of this very constraint: its start, or what its advance returned.",
                )
        if not self._begins:
            raise UnsatisfiableError("the canvas begins in no live state", remedy="Pass states after accepted tokens.")
        self._witness = self._states_along(keep)
        self._find()

    def _check(self, keep: Sequence[int] | None) -> None:
        if self._rows.ndim != 2 or not len(self._rows):
            raise GuidedError(
                f"distributions of shape {self._rows.shape}", remedy="Pass float[L, width], for at least one position."
            )
        for place, token in self._known.items():
            if not 0 <= place < len(self) or token < 0:
                raise GuidedError(
                    f"token {token} is known at position {place} of {len(self._rows)}",
                    remedy="Count positions from 0, in the canvas, and leave out those that are not known.",
                )
        if keep is not None and len(keep) != len(self._rows):
            raise GuidedError(
                f"a text of {len(keep)} tokens is to be kept in {len(self._rows)} positions",
                remedy="Pass a token for each position.",
            )

    def _check_place(self, place: int) -> None:
        if not 0 <= place < len(self):
            raise GuidedError(f"there is no position {place} of {len(self)}", remedy="Count positions from 0.")

    def _states_along(self, keep: Sequence[int] | None) -> list[int]:
        """The states of a text that is to be kept, from the first position on; those behind a dead one are left out."""
        if keep is None or len(self._begins) > 1:
            return []
        found = []
        (state,) = self._begins
        for token in keep:
            layer = self._successors.layer(np.array([state]), int(token))
            if not layer.after.size:
                return []
            state = int(layer.after[0])
            found.append(state)
        return found

    def __len__(self) -> int:
        return len(self._rows)

    # Forward: layers.

    def _find(self) -> None:
        """Make the layers, wider where nothing was found."""
        n_states, n_tokens = self.limits.states, self.limits.tokens
        if self._successors.searches:
            n_states = min(n_states, self.limits.searched_states)
        while True:
            stuck = self._forward(n_states, n_tokens)
            if stuck is None:
                return
            if not self.is_cut:
                raise UnsatisfiableError(
                    f"no text of the constraint fits {len(self)} positions with what is known of them",
                    where=f"no text comes past position {stuck}" if stuck < len(self) else "at the end of the canvas",
                    remedy="Give the canvas another length, or fix fewer or other tokens.",
                )
            if n_states >= self.limits.most_states:
                raise LimitError(
                    f"no text was found among {n_states} states a position",
                    where=f"no text comes past position {stuck}" if stuck < len(self) else "at the end of the canvas",
                    remedy="Pass LatticeLimits(most_states=...), a text to keep, or a constraint with fewer states.",
                )
            n_states, n_tokens = min(_WIDER * n_states, self.limits.most_states), _WIDER * n_tokens

    def _forward(self, n_states: int, n_tokens: int) -> int | None:
        """Make all layers; where they end too early the place, None where they do not."""
        self._steps: list[_Step] = []
        self._lost, self._lost_best = -np.inf, -np.inf
        states = np.array(sorted(self._begins), np.int64)
        mass = np.array([self._begins[state] for state in states.tolist()])
        most = mass.copy()
        self._masses, self._mosts = [mass], [most]
        for place in range(len(self)):
            layer = self._layer(place, states, mass, most, n_tokens)
            group_mass, group_most = self._of_groups(place, layer)
            first = layer.first[:-1]
            mass_after = pair_sums(mass, layer.source, group_mass, layer.group, first)
            most_after = pair_maxima(most, layer.source, group_most, layer.group, first)
            kept = self._kept(place, layer, mass_after, most_after, n_states)
            if not kept.all():
                layer, mass_after, most_after = layer.keeping(kept), mass_after[kept], most_after[kept]
            if not layer.after.size:
                return place
            self._steps.append(_Step(layer, group_mass, group_most))
            states, mass, most = layer.after, mass_after, most_after
            self._masses.append(mass)
            self._mosts.append(most)
        self._final = np.array([self._ends(state) for state in states.tolist()], bool)
        return None if self._final.any() else len(self)

    def _ends(self, state: int) -> bool:
        """May the canvas end in this state?"""
        if self.room is None or state == self.constraint.end:
            return True
        if self.room == 0:
            return self.constraint.is_accepting(state)
        fits = self._successors.shortest(state)
        return fits is not None and fits <= self.room

    def _row(self, place: int) -> NDArray[Any]:
        """The distribution of a position, as wide as the vocabulary: ids that are not scored have none."""
        row = self._rows[place]
        missing = self._needs - row.size
        return row if missing <= 0 else np.concatenate([row, np.full(missing, -np.inf, row.dtype)])

    def _of_groups(self, place: int, layer: Layer) -> tuple[Floats, Floats]:
        """The mass and the greatest probability of each group of tokens."""
        selection = layer.selection
        if place in self._known:
            return np.zeros(selection.groups.size), np.zeros(selection.groups.size)
        mass, most = selection.read(self._row(place))
        if np.isnan(mass).any():
            raise GuidedError(f"position {place} has scores that are no numbers", remedy="Pass logarithms of weights.")
        return mass, most

    def _layer(self, place: int, states: NDArray[np.int64], mass: Floats, most: Floats, n_tokens: int) -> Layer:
        """The edges of a position, and a note of the mass that is left out where tokens are read one by one."""
        successors = self._successors
        self._hurried: set[int] = set()
        if place in self._known or successors.is_fast:
            return successors.layer(states, self._known.get(place, -1))
        row = self._row(place)
        witness = self._witness[place - 1 : place] if place else []
        edges = []
        hurrying = self._hurrying(states, mass, place)
        for at, state in enumerate(states.tolist()):
            allowed = np.zeros(0, np.int64) if state == self.constraint.end else successors.allowed(state)
            near = successors.near(state) if at in hurrying and allowed.size else allowed[:0]
            near = near[np.argsort(-row[near], kind="stable")[:_NEAR]]
            self._hurried.update(self.constraint.advance(state, token) for token in near.tolist())
            if allowed.size <= n_tokens:
                edges.append(successors.edges(state))
                continue
            weights = row[allowed].astype(np.float64)
            chosen = np.zeros(allowed.size, bool)
            chosen[np.argpartition(-weights, n_tokens)[:n_tokens]] = True
            chosen[np.searchsorted(allowed, near)] = True
            if state in witness or (not place and self._witness):
                step = self.constraint.advance
                chosen |= np.array([step(state, token) == self._witness[place] for token in allowed.tolist()], bool)
            self._lose(place, mass[at] + log_sum(weights[~chosen]), most[at] + weights[~chosen].max(initial=-np.inf))
            tokens = allowed[chosen].tolist()
            behind = np.array([self.constraint.advance(state, token) for token in tokens], np.int64)
            edges.append(Edges(np.array([successors.single(token) for token in tokens], np.int64), behind))
        return successors.made(states, *successors.joined(edges))

    def _hurrying(self, states: NDArray[np.int64], mass: Floats, place: int) -> set[int]:
        """From which states, by their places, tokens on the way to an end are followed.

        The likeliest that fits goes on to one that does, so no layer is without; and a few others with no time to lose.
        """
        if self.room is None:
            return set()
        left, fits, listed = len(self) - place + self.room, self._successors.fits, states.tolist()
        order = np.argsort(-mass, kind="stable").tolist()
        found = {next((at for at in order if fits(listed[at], left)), order[0])}
        late = (at for at in order if not fits(listed[at], left - _SLACK, search=False))
        return found.union(itertools.islice(late, _HURRYING))

    def _kept(self, place: int, layer: Layer, mass: Floats, most: Floats, n_states: int) -> NDArray[np.bool_]:
        """Which states behind a position are kept; notes the mass of those that are not."""
        alive = mass > -np.inf
        n_alive = int(alive.sum())
        if n_alive <= n_states:
            return alive
        behind = len(self) - 1 - place
        after = layer.after.tolist()
        # The end of the text costs nothing to keep, and what is likelier so far may have a long way to it.
        first = np.isin(layer.after, [*self._witness[place : place + 1], self.constraint.end])
        order = np.lexsort((-mass, ~first, ~alive))[:n_alive]
        kept = np.zeros(mass.size, bool)
        if self.room is not None:
            left, fits = behind + self.room, self._successors.fits
            missing = searches = n_states
            for at in order.tolist():
                # What the quick answer leaves open is searched for so many states as are wanted, no more, and for those
                # of which one is known to fit.
                fitting = bool(first[at]) or fits(after[at], left, search=False)
                if not fitting and (searches or after[at] in self._hurried):
                    searches -= searches > 0
                    fitting = fits(after[at], left)
                kept[at] = fitting
                missing -= fitting
                if not missing:
                    break
        kept[order[~kept[order]][: n_states - int(kept.sum())]] = True
        cut = alive & ~kept
        self._lose(place, log_sum(mass[cut]), float(most[cut].max()))
        return kept

    def _lose(self, place: int, mass: float, most: float) -> None:
        """Note that texts were left out, which have at most so much mass up to a position."""
        self._lost = float(np.logaddexp(self._lost, mass + self._behind[0][place]))
        self._lost_best = max(self._lost_best, float(most + self._behind[1][place]))

    @cached_property
    def _behind(self) -> tuple[Floats, Floats]:
        """The mass of all distributions behind each position, and the product of their greatest probabilities."""
        masses, mosts = np.zeros(len(self)), np.zeros(len(self))
        for place in range(len(self) - 1, 0, -1):
            mass, most = 0.0, 0.0
            if place not in self._known:
                row = self._row(place).astype(np.float64)
                mass, most = log_sum(row), float(row.max())
            masses[place - 1], mosts[place - 1] = masses[place] + mass, mosts[place] + most
        return masses, mosts

    # What it says.

    @property
    def is_cut(self) -> bool:
        """Were texts left out?"""
        return self._lost > -np.inf

    @cached_property
    def log_z(self) -> float:
        """The logarithm of the mass of all texts in the lattice: at most that of the constraint, and see `bound`."""
        return log_sum(self._masses[-1][self._final])

    @property
    def bound(self) -> float:
        """The logarithm of the constraint's mass is at most so much more than `log_z`; 0 where nothing was cut."""
        return float(np.logaddexp(self.log_z, self._lost)) - self.log_z if self.is_cut else 0.0

    @property
    def best_bound(self) -> float:
        """No text has a logarithm more than this above that of `best`; 0 where that is proved to be the likeliest."""
        return max(self._lost_best - float(self._mosts[-1][self._final].max()), 0.0)

    @property
    def n_states(self) -> int:
        """States of all layers together."""
        return sum(step.layer.after.size for step in self._steps) + len(self._begins)

    @property
    def n_edges(self) -> int:
        """Edges of all layers together."""
        return sum(step.layer.source.size for step in self._steps)

    @property
    def ends(self) -> dict[int, float]:
        """The states in which the canvas may end, with the logarithms of their mass: what a next block starts from."""
        states = self._steps[-1].layer.after[self._final].tolist()
        return dict(zip(states, self._masses[-1][self._final].tolist(), strict=True))

    def best(self) -> tuple[NDArray[np.int64], float]:
        """The likeliest text of the lattice, ``int64[L]``, and the logarithm of its weight; one of equals."""
        tokens = np.zeros(len(self), np.int64)
        at = int(np.argmax(np.where(self._final, self._mosts[-1], -np.inf)))
        weight = float(self._mosts[-1][at])
        for place in range(len(self) - 1, -1, -1):
            step = self._steps[place]
            low, high = np.searchsorted(step.layer.target, (at, at + 1))
            values = self._mosts[place][step.layer.source[low:high]] + step.most[step.layer.group[low:high]]
            edge = low + int(np.argmax(values))
            group = int(step.layer.group[edge])
            if place in self._known:
                tokens[place] = step.layer.selection.parts[group][0]
            else:
                tokens[place] = step.layer.selection.likeliest(self._row(place), group, step.most[group])
            at = int(step.layer.source[edge])
        return tokens, weight

    def log_mass(self, tokens: Mapping[int, int]) -> float:
        """The logarithm of the mass of the lattice's texts with some ``tokens`` by position; -inf where none has them.

        Less `log_z` it is the logarithm of their probability.  Cost: the steps between the first and the last of them.
        """
        for place in tokens:
            self._check_place(place)
        places = sorted(set(tokens) - set(self._known))
        if any(tokens[place] != token for place, token in self._known.items() if place in tokens):
            return -np.inf
        if not places:
            return self.log_z
        mass = self._masses[places[0]]
        for place in range(places[0], places[-1] + 1):
            step = self._steps[place]
            of_groups = step.mass
            if place in places:
                having = step.layer.selection.atoms.having(tokens[place])
                of_groups = np.full(step.mass.size, -np.inf)
                if having.size:
                    of_groups[having] = self._row(place)[tokens[place]]
            mass = pair_sums(mass, step.layer.source, of_groups, step.layer.group, step.layer.first[:-1])
        return log_sum(mass + self._backward[places[-1] + 1])

    def sample(self, rng: Random, n: int = 1) -> NDArray[np.int64]:
        """Texts drawn from the lattice by their weight, independently: ``int64[n, L]``."""
        if n < 0:
            raise GuidedError(f"{n} texts are asked for", remedy="Ask for 0 or more.")
        chance = chance_of(rng)
        tokens = np.zeros((n, len(self)), np.int64)
        final = np.flatnonzero(self._final)
        at = final[_draw(chance, self._masses[-1][final], n)]
        for place in range(len(self) - 1, -1, -1):
            step = self._steps[place]
            layer, mass = step.layer, self._masses[place]
            group = np.zeros(n, np.int64)
            before = np.zeros(n, np.int64)
            for state in np.unique(at).tolist():
                here = np.flatnonzero(at == state)
                low, high = np.searchsorted(layer.target, (state, state + 1))
                weights = mass[layer.source[low:high]] + step.mass[layer.group[low:high]]
                edge = low + _draw(chance, weights, here.size)
                group[here], before[here] = layer.group[edge], layer.source[edge]
            for each in np.unique(group).tolist():
                here = np.flatnonzero(group == each)
                listed = layer.selection.parts[each]
                if listed.size == 1:
                    tokens[here, place] = listed[0]
                else:
                    weights = self._row(place)[listed].astype(np.float64)
                    tokens[here, place] = listed[_draw(chance, weights, here.size)]
            at = before
        return tokens

    @cached_property
    def _backward(self) -> list[Floats]:
        """For each place between positions the mass of what may follow each state, as logarithms."""
        found = [np.where(self._final, 0.0, -np.inf)]
        for step in reversed(self._steps):
            layer = step.layer
            runs = layer.by_source
            behind = np.full(layer.before.size, -np.inf)
            target, group = layer.target[runs.order], layer.group[runs.order]
            behind[runs.value] = pair_sums(found[-1], target, step.mass, group, runs.start)
            found.append(behind)
        found.reverse()
        return found

    def marginals(self) -> Floats:
        """The probability of each token at each position given the constraint, ``float64[L, width]``; rows sum to 1.

        Known positions have a point mass, an id beyond the width none.
        """
        found = np.zeros((len(self), max(self._rows.shape[1], self._needs)))
        for place in range(len(self)):
            self._marginal(place, found[place])
        return found[:, : self._rows.shape[1]]

    def marginal(self, place: int) -> Floats:
        """`marginals` of one position, which is counted from 0."""
        self._check_place(place)
        found = np.zeros(max(self._rows.shape[1], self._needs))
        self._marginal(place, found)
        return found[: self._rows.shape[1]]

    def _marginal(self, place: int, row: Floats) -> None:
        if place in self._known:
            if self._known[place] < row.size:
                row[self._known[place]] = 1.0
            return
        step, behind = self._steps[place], self._backward[place + 1]
        layer = step.layer
        runs, selection = layer.by_group, layer.selection
        around = np.full(selection.groups.size, -np.inf)
        source, target = layer.source[runs.order], layer.target[runs.order]
        around[runs.value] = pair_sums(self._masses[place], source, behind, target, runs.start)
        selection.atoms.spread(self._row(place), around - self.log_z, row)


def _is_known(constraint: Constrains, state: int) -> bool:
    """Has the constraint such a state?"""
    if isinstance(constraint, Constraint):
        return constraint.has_state(state)
    try:
        constraint.is_accepting(state)
    except (IndexError, KeyError):
        return False
    return True


def _rows_of(logp: Any) -> NDArray[Any]:
    """The distributions as an array of real numbers."""
    try:
        rows = np.asarray(logp)
    except ValueError:  # Rows of several lengths.
        rows = np.zeros(0, object)
    if rows.dtype.kind not in "fiub":
        raise GuidedError("the distributions are no numbers", remedy="Pass float[L, width], of logarithms.")
    return rows


def _draw(chance: Chance, weights: Floats, n: int) -> NDArray[np.int64]:
    """Places drawn by weights that are given as logarithms."""
    return np.array(chance.indices(np.exp(weights - weights.max()), n), np.int64)
