"""Dynamic programming over the states of a constraint along a canvas: the likeliest text, exact draws, exact marginals.

The target is the product of the positions' laws, restricted to texts of the constraint's language: ``prod p_i(x_i)
[x in L] / Z``.  The likeliest text is DINGO's (arXiv 2505.23061), draws and marginals are forward-backward over the
same layers.  States are made as they are reached, and left out where no whole text fits in what is left of the canvas.
Nothing here knows a model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.errors import LimitError, UnsatisfiableError

__all__ = ["Layers", "Transitions", "check_fits"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Steps:
    """The tokens of one state, ordered by the state they lead to: group g is ``tokens[starts[g]:starts[g + 1]]``."""

    tokens: Ints
    starts: Ints
    after: Ints


MOST_WHOLE = 400
"""States all of whose tokens are followed.  JSON has some dozens; SQL has one for each name that may be meant, and each
of them costs up to a vocabulary of steps."""

MOST_TOKENS = 24
"""Tokens that are followed from each state beyond those."""

NARROW = 32
"""States of a layer that are kept from then on."""


class Transitions:
    """The states that follow each state of a constraint, remembered; for the texts that share it, of one thread.

    Of the first ``most_whole`` states all tokens are followed.
    """

    def __init__(self, constraint: Constrains, *, most_whole: int = MOST_WHOLE) -> None:
        self.constraint = constraint
        self.most_whole = most_whole
        self._allowed: dict[int, Ints] = {}
        self._steps: dict[int, _Steps] = {}
        self._needs: dict[int, int] = {constraint.end: 0}
        self._row = np.zeros(constraint.vocabulary.n_words, np.uint32)

    @property
    def is_large(self) -> bool:
        """Whether there are more states than can all be followed."""
        return len(self._steps) >= self.most_whole

    def steps(self, state: int, law: Floats, most: int) -> tuple[_Steps, float]:
        """The tokens that the state allows, and the probability of those left out: all but the ``most`` likeliest.

        ``law`` are the probabilities of tokens, 0 beyond the width.  Nothing is left out where there is room for all.
        """
        found = self._steps.get(state)
        if found is not None:
            return found, 0.0
        tokens = self._tokens(state)
        if not self.is_large or len(tokens) <= most:
            found = self._steps[state] = self._followed(state, tokens)
            return found, 0.0
        likely = tokens[np.argpartition(-law[tokens], most)[:most]]
        return self._followed(state, likely), float(law[tokens].sum() - law[likely].sum())

    def needs(self, state: int) -> int:
        """How many tokens the nearest end of a text is away."""
        found = self._needs.get(state)
        if found is None:
            found = self._needs[state] = self.constraint.shortest_completion(state)
        return found

    def _tokens(self, state: int) -> Ints:
        found = self._allowed.get(state)
        if found is None:
            self.constraint.fill_mask(state, self._row)
            bits = np.unpackbits(self._row.view(np.uint8), bitorder="little")
            found = self._allowed[state] = np.flatnonzero(bits).astype(np.int64)
        return found

    def _followed(self, state: int, tokens: Ints) -> _Steps:
        advance = self.constraint.advance
        reached = np.fromiter((advance(state, token) for token in tokens.tolist()), np.int64, len(tokens))
        order = np.argsort(reached, kind="stable")
        after, starts = np.unique(reached[order], return_index=True)
        return _Steps(tokens[order], starts.astype(np.int64), after)


@dataclass(frozen=True, eq=False)
class _Layer:
    """The groups of all states of a layer: group g leads from ``origin[g]`` to ``target[g]``, places in two layers."""

    tokens: Ints
    starts: Ints
    origin: Ints
    target: Ints
    weight: Floats
    """The probability of each group."""


def check_fits(constraint: Constrains, state: int, length: int) -> None:
    """Raise `LimitError` where no text of the language from this state has so few tokens."""
    least = constraint.shortest_completion(state)
    if least > length:
        raise LimitError(
            f"the shortest text of the grammar has {least} tokens, but the canvas has {length}",
            remedy=f"Ask for at least {least} new tokens.",
        )


class Layers:
    """The texts from ``start`` over the positions of a canvas, by the laws ``logp`` ``[L, width]`` of its positions.

    ``known[i]`` is a token, or -1.  With ``room`` 0 a text is whole at the canvas's end; else it can still be in so
    many tokens.  At most ``most_states`` of a layer are kept, those that the text so far makes likeliest, and of states
    beyond `MOST_WHOLE` the likeliest tokens; where nothing reaches the end so, twice as many are.  `cut` bounds the
    share of the target that was left out: what is left out has at most the probability of its beginnings.

    Raises `UnsatisfiableError` where no text fits the known tokens, `LimitError` where ``most_states`` had to become
    more than ``1 << 16``.
    """

    def __init__(
        self, transitions: Transitions, start: int, logp: Floats, known: Ints, *, room: int = 0, most_states: int = 512
    ) -> None:
        self._transitions, self._logp, self._known, self._room = transitions, logp, known, room
        self._most_tokens, self._narrow = MOST_TOKENS, NARROW
        check_fits(transitions.constraint, start, len(logp) + room)
        self.width = logp.shape[1]
        while not self._made(start, most_states):
            if not self._lost:
                raise UnsatisfiableError(
                    f"no text of the grammar has the fixed tokens in {len(logp)} positions",
                    remedy="Free some positions, move them, or ask for another length.",
                )
            most_states, self._most_tokens, self._narrow = 2 * most_states, 2 * self._most_tokens, 2 * self._narrow
            if most_states > 1 << 16:
                raise LimitError(
                    f"no text was found among {most_states // 2} states a position",
                    remedy="Ask for a shorter canvas, or a grammar with fewer choices at once.",
                )

    def _made(self, start: int, most_states: int) -> bool:
        """Go forward and back; False where nothing reaches the end."""
        length = len(self._logp)
        self._states, self._layers, self._forward = [np.array([start])], [], [np.ones(1)]
        self.log_z, lost = 0.0, -np.inf
        for place in range(length):
            layer, after, values, missed = self._layer(place, length - place - 1 + self._room)
            most = min(most_states, self._narrow) if self._transitions.is_large else most_states
            if len(after) > most:
                kept = np.sort(np.argpartition(-values, most)[:most])
                missed += float(values.sum() - values[kept].sum())
                after, values, layer = after[kept], values[kept], _restricted(layer, kept, len(after))
            if missed > 0:
                lost = float(np.logaddexp(lost, self.log_z + np.log(missed)))
            scale = float(values.sum())
            if scale <= 0:
                self._lost = lost > -np.inf
                return False
            self.log_z += float(np.log(scale))
            self._layers.append(layer)
            self._states.append(after)
            self._forward.append(values / scale)
        self._lost = lost > -np.inf
        self._backward = [np.array([self._ends(state) for state in self._states[-1].tolist()], float)]
        for layer in reversed(self._layers):
            before = self._states[length - len(self._backward)]
            back = np.bincount(layer.origin, layer.weight * self._backward[0][layer.target], len(before))
            self._backward.insert(0, back / back.max() if back.max() > 0 else back)
        total = float(self._forward[-1] @ self._backward[-1])
        if total <= 0:
            return False
        self.log_z += float(np.log(total))
        self.cut = float(np.exp(lost - np.logaddexp(lost, self.log_z))) if self._lost else 0.0
        return True

    def _layer(self, place: int, left: int) -> tuple[_Layer, Ints, Floats, float]:
        """The groups from one layer, the states they lead to, the weight of the texts up to each, and what is missed.

        Weights are those of the layer before, whose sum is 1, times the position's law.
        """
        law = np.zeros(max(self.width, 32 * self._transitions.constraint.vocabulary.n_words))
        law[: self.width] = np.exp(self._logp[place])
        missed = 0.0
        token = int(self._known[place])
        tokens, starts, origin, target, n = [], [], [], [], 0
        for number, state in enumerate(self._states[-1].tolist()):
            if token >= 0:
                reached = self._transitions.constraint.advance(state, token)
                steps = _Steps(np.array([token]), np.zeros(1, np.int64), np.array([reached]))
                if not reached:
                    continue
            else:
                steps, left_out = self._transitions.steps(state, law, self._most_tokens)
                missed += left_out * self._forward[-1][number]
            tokens.append(steps.tokens)
            starts.append(steps.starts + n)
            origin.append(np.full(len(steps.after), number))
            target.append(steps.after)
            n += len(steps.tokens)
        if not n:
            nothing = np.zeros(0, np.int64)
            return _Layer(nothing, nothing, nothing, nothing, np.zeros(0)), nothing, np.zeros(0), missed
        flat, begin = np.concatenate(tokens), np.concatenate(starts)
        weight = (
            np.ones(len(begin))
            if token >= 0
            else np.add.reduceat(np.append(law, 0.0)[np.minimum(flat, self.width)], begin)
        )
        after, places = np.unique(np.concatenate(target), return_inverse=True)
        layer = _Layer(flat, np.append(begin, n), np.concatenate(origin), places.reshape(-1), weight)
        fits = np.flatnonzero([self._transitions.needs(state) <= left for state in after.tolist()])
        layer = _restricted(layer, fits, len(after))
        values = np.bincount(layer.target, self._forward[-1][layer.origin] * layer.weight, len(fits))
        return layer, after[fits], values.astype(np.float64), missed

    def _ends(self, state: int) -> bool:
        if self._room:
            return self._transitions.needs(state) <= self._room
        return self._transitions.constraint.is_accepting(state)

    def marginals(self) -> Floats:
        """``[L, width]``: the probability of each token at each position, given that the text is in the language."""
        found = np.zeros((len(self._layers), self.width))
        for place, layer in enumerate(self._layers):
            share = self._forward[place][layer.origin] * self._backward[place + 1][layer.target]
            if self._known[place] >= 0:
                found[place, self._known[place]] = 1.0
                continue
            spread = np.repeat(share, np.diff(layer.starts))
            inside = layer.tokens < self.width
            found[place] = np.bincount(layer.tokens[inside], spread[inside], self.width) * np.exp(self._logp[place])
            found[place] /= found[place].sum()
        return found

    def best(self) -> tuple[Ints, float]:
        """The likeliest text, and the logarithm of its probability by the laws, known positions left out.

        Of texts that are equally likely, which one is a function of the arguments.
        """
        value = np.zeros(1)
        chosen: list[Ints] = []
        for place, layer in enumerate(self._layers):
            scores = value[layer.origin] + self._group_best(place, layer)
            order = np.lexsort((-scores, layer.target))
            firsts = order[np.unique(layer.target[order], return_index=True)[1]]
            chosen.append(firsts)
            value = np.full(len(self._states[place + 1]), -np.inf)
            value[layer.target[firsts]] = scores[firsts]
        value = np.where(self._backward[-1] > 0, value, -np.inf)
        at = int(value.argmax())
        best = float(value[at])
        text = np.zeros(len(self._layers), np.int64)
        for place in reversed(range(len(self._layers))):
            layer = self._layers[place]
            group = int(chosen[place][np.searchsorted(layer.target[chosen[place]], at)])
            text[place] = self._best_of(place, group)
            at = int(layer.origin[group])
        return text, best

    def _group_best(self, place: int, layer: _Layer) -> Floats:
        if self._known[place] >= 0:
            return np.zeros(len(layer.origin))
        law = np.append(self._logp[place], -np.inf)
        scores: Floats = np.maximum.reduceat(law[np.minimum(layer.tokens, self.width)], layer.starts[:-1])
        return scores

    def _best_of(self, place: int, group: int) -> int:
        tokens = self._group(place, group)
        return int(tokens[self._logp[place][tokens].argmax()])

    def _group(self, place: int, group: int) -> Ints:
        """The tokens of a group that have a score."""
        layer = self._layers[place]
        tokens: Ints = layer.tokens[layer.starts[group] : layer.starts[group + 1]]
        scored: Ints = tokens[tokens < self.width]
        return scored

    def draw(self, chance: np.random.Generator) -> Ints:
        """A text drawn from the target."""
        text, at = np.zeros(len(self._layers), np.int64), 0
        for place, layer in enumerate(self._layers):
            groups = np.flatnonzero(layer.origin == at)
            share = layer.weight[groups] * self._backward[place + 1][layer.target[groups]]
            group = int(groups[chance.choice(len(groups), p=share / share.sum())])
            tokens = self._group(place, group)
            law = np.ones(1) if self._known[place] >= 0 else np.exp(self._logp[place][tokens])
            text[place] = tokens[chance.choice(len(tokens), p=law / law.sum())]
            at = int(layer.target[group])
        return text


def _restricted(layer: _Layer, kept: Ints, n: int) -> _Layer:
    """The groups that lead to the kept of ``n`` states, which are numbered anew."""
    if len(kept) == n:
        return layer
    number = np.full(n, -1)
    number[kept] = np.arange(len(kept))
    target = number[layer.target]
    groups = np.flatnonzero(target >= 0)
    sizes = np.diff(layer.starts)
    tokens = layer.tokens[np.repeat(target >= 0, sizes)]
    starts = np.append(0, np.cumsum(sizes[groups]))
    return _Layer(tokens, starts, layer.origin[groups], target[groups], layer.weight[groups])
