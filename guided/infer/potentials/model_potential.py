"""A language model as a potential: texts weigh what it gives them after a prompt of its own.

The product with another model's texts is the intersection of two prompts: ``p(x | prompt) q(x | other prompt) / Z``,
over whole texts, which no normalisation of single tokens gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from guided.infer.errors import PotentialError
from guided.infer.potentials.potential import Potential
from guided.infer.weights import log_sum_exp
from guided.lm.given import language_model
from guided.lm.model import LanguageModel, Sequences
from guided.vocab.vocabulary import Vocabulary

__all__ = ["ModelPotential"]

_NEVER = -math.inf

Tokens = tuple[int, ...]

REMEMBERED = 512
"""Rows of log probabilities that are kept: two steps of a population of 256.  Those dropped are computed again."""


class ModelPotential(Potential[Tokens]):
    """``log q(tokens | prompt)`` of a `LanguageModel`, for prefixes and, with the end of the text, for whole texts.

    Rows of all states of a step are computed in one pass (`logw_next_each`), from the caches of the step before.  A
    state is its tokens.  The ends of the text that the vocabulary has are one event, and each scores as it.  Raises
    `PotentialError` where the model's scores are not numbers.

    >>> import numpy as np
    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> potential = infer.ModelPotential(model, [0], letters)
    >>> round(float(np.exp(potential.prefix([0]))), 2), round(float(np.exp(potential.complete([0]))), 2)
    (0.6, 0.06)
    """

    has_rows = True

    def __init__(self, model: LanguageModel, prompt: Sequence[int], vocabulary: Vocabulary) -> None:
        self.model = language_model(model)
        self.prompt = tuple(int(token) for token in prompt)
        self.vocabulary = vocabulary
        self._sequences: Sequences | None = None
        self._held: dict[Tokens, int] = {}
        self._rows: dict[Tokens, NDArray[np.float64]] = {}
        self._sums: dict[Tokens, float] = {(): 0.0}

    def start(self) -> Tokens:
        """No tokens."""
        return ()

    def advance(self, state: Tokens, token: int) -> Tokens:
        """One more; the model is asked when the weight is."""
        return (*state, token)

    def prefix_at(self, state: Tokens) -> float:
        """The log probability of the tokens."""
        return self.prefix_each([state])[0]

    def complete_at(self, state: Tokens) -> float:
        """The log probability of the tokens and an end."""
        return self.complete_each([state])[0]

    def prefix_each(self, states: Sequence[Tokens]) -> list[float]:
        """Log probabilities, in one pass of the model."""
        paths = [self._unknown(state) for state in states]
        self._read([parent for path in paths for parent in path])
        for state, path in zip(states, paths, strict=True):
            for parent in path:
                grown = state[: len(parent) + 1]
                self._sums[grown] = self._sums[parent] + float(self._rows[parent][grown[-1]])
        found = [self._sums[state] for state in states]
        self._forget(states)
        return found

    def complete_each(self, states: Sequence[Tokens]) -> list[float]:
        """Log probabilities with an end, in one pass of the model or two."""
        rows = self.logw_next_each(states)
        end = next(iter(self.eos_ids), None)
        if end is None:
            return [_NEVER] * len(states)
        return [before + float(row[end]) for before, row in zip(self.prefix_each(states), rows, strict=True)]

    def step(self, state: Tokens, token: int) -> tuple[Tokens, float]:
        """The next tokens and what they add."""
        return (state if token in self.eos_ids else (*state, token)), float(self.logw_next_at(state)[token])

    def logw_next_at(self, state: Tokens) -> NDArray[np.float64]:
        """The model's log probabilities after the tokens."""
        row: NDArray[np.float64] = self.logw_next_each([state])[0]
        return row

    def logw_next_each(self, states: Sequence[Tokens]) -> NDArray[np.float64]:
        """``float64[n, vocabulary.size]``: log probabilities after each state, in one pass of the model."""
        before = self.prefix_each(states)
        self._read(states)
        rows = np.stack([self._rows[state] for state in states])
        ends = sorted(self.eos_ids)
        if ends:
            rows[:, ends] = np.array([[log_sum_exp(row[ends])] for row in rows])
        rows[:, self.silent] = _NEVER
        rows[np.array(before) == _NEVER] = _NEVER
        self._forget(states)
        return rows

    def _unknown(self, state: Tokens) -> list[Tokens]:
        """The prefixes whose rows the sum of a state needs, shortest first."""
        found: list[Tokens] = []
        while state not in self._sums:
            state = state[:-1]
            found.append(state)
        return found[::-1]

    def _read(self, wanted: Sequence[Tokens]) -> None:
        """Have the rows of these states; one pass, unless rows were forgotten that lie on the way to others."""
        while missing := [state for state in dict.fromkeys(wanted) if state not in self._rows]:
            if self._sequences is None:
                self._sequences = self.model.start([self.prompt])
                self._held = {(): 0}
                self._keep((), self._sequences.last.logits)
            else:
                self._extend(self._sequences, missing)

    def _extend(self, sequences: Sequences, missing: Sequence[Tokens]) -> None:
        # Of prefixes that others begin with the longest alone is extended, and gives the rows of all on its way.
        ends = sorted(missing, key=len, reverse=True)
        covered: set[Tokens] = set()
        leaves = []
        for state in ends:
            if state not in covered:
                leaves.append(state)
                covered.update(state[:k] for k in range(len(state)))
        sources = [self._nearest(leaf) for leaf in leaves]
        sequences.select([self._held[()], *(self._held[source] for source in sources)])
        scores = sequences.extend(
            [[], *(list(leaf[len(source) :]) for leaf, source in zip(leaves, sources, strict=True))]
        )
        self._held = {(): 0, **{leaf: row for row, leaf in enumerate(leaves, start=1)}}
        for leaf, source, scored in zip(leaves, sources, scores[1:], strict=True):
            for number in range(len(leaf) - len(source)):
                self._keep(leaf[: len(source) + number + 1], scored.logits[number : number + 1])

    def _nearest(self, state: Tokens) -> Tokens:
        """The longest proper prefix that has a row of the model's batch."""
        state = state[:-1]
        while state not in self._held:
            state = state[:-1]
        return state

    def _keep(self, state: Tokens, logits: torch.Tensor) -> None:
        values: NDArray[np.float64] = torch.log_softmax(logits[0].double(), -1).cpu().numpy()
        if np.isnan(values).any():
            raise PotentialError(
                f"{self!r}: the scores of the next token are not numbers",
                remedy="NaN or plus infinity came out of the model: look there.",
            )
        row = np.full(self.vocabulary.size, _NEVER)
        row[: values.size] = np.minimum(values[: self.vocabulary.size], 0.0)
        self._rows[state] = row

    def _forget(self, needed: Sequence[Tokens]) -> None:
        if len(self._rows) > REMEMBERED + len(needed):
            # But not that of the prompt, whose row is never read again.
            for state in list(self._rows)[1 : len(self._rows) - REMEMBERED]:
                del self._rows[state]
        if len(self._sums) > 16 * REMEMBERED:
            self._sums = {(): 0.0} | {state: self._sums[state] for state in needed}

    def __repr__(self) -> str:
        return f"<ModelPotential of {type(self.model).__name__}>"
