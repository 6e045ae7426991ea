"""Exact, independent samples by rejection that learns: RS, ARS and CARS.

Parys et al., "Constrained adaptive rejection sampling", 2025 (arXiv:2510.01902).  A sequence is drawn from the model,
token by token, and starts over where it leaves the language; what failed is remembered in a trie of prefixes and is
not drawn again.  What is kept is exactly ``p(x) 1[x in L] / Z``, because a whole attempt is drawn from one fixed trie:
its probability is ``p(x)`` divided by what the trie has not excluded, the same for every text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.infer.chance import Chance, Random
from guided.infer.potentials.potential import Potential
from guided.infer.result import Samples
from guided.infer.runs.rounds import RoundProgress
from guided.infer.sequences.attempts import Attempt, Learned, Run, require_boolean
from guided.infer.sequences.exploration import MEMORY, Exploration
from guided.infer.sequences.visited import ROOT, Row
from guided.lm.model import LanguageModel

__all__ = ["Learning", "Unmasked", "cars"]


class Learning(Enum):
    """What a failure teaches.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> for learning in infer.Learning:
    ...     found = infer.cars(0, model, [0], language, n=20, max_tokens=4, learning=learning)
    ...     print(learning.value, round(found.acceptance, 2))
    rs 0.05
    ars 0.61
    cars 0.61
    """

    NOTHING = "rs"
    """Rejection sampling: each attempt begins with the model's own distribution."""
    FAILURES = "ars"
    """The token that failed is not drawn again after that prefix.  The potential is asked about drawn tokens alone, so
    this is the level for potentials without masks."""
    MASKS = "cars"
    """All tokens that the language forbids after a visited prefix are not drawn again.  While the prefix is new they
    are: to mask at once would draw from the wrong distribution."""


def cars(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    learning: Learning = Learning.MASKS,
    batch: int = 16,
    max_attempts: int = 10_000,
    memory: int = MEMORY,
    learned: Learned | None = None,
    progress: RoundProgress | None = None,
    save: str | Path | None = None,
    save_every: int = 16,
    resume: str | Path | None = None,
) -> Samples:
    """Draw ``n`` independent sequences from ``p(x) 1[x in L] / Z``, exactly, of at most ``max_tokens`` tokens.

    The end-of-text token counts among ``max_tokens``, and what is longer counts as outside of the language.  Up to
    ``batch`` attempts are drawn side by side from what was learned before; all are finished before anything is learned
    from them, and kept in the order in which they began, so that short sequences have no advantage.  ``learned`` holds
    what earlier calls learned, and learns more; ``memory`` bounds the bytes of remembered probabilities, beyond which
    the model is asked again.  Every ``save_every`` rounds all of it is written to ``save``; ``resume`` goes on from
    there, drawing what the saved run would have drawn (``rng`` is then not used).

    ``log_ml`` of the result is the mean over attempts of the bound on ``Z`` times whether the attempt was kept, without
    the last one kept, which is why they ended: unbiased where nothing is learned, nearly so elsewhere; ``log_ml_error``
    its standard error; None where fewer than two were kept.  ``acceptance`` is the share of attempts kept.  Stops with
    fewer than ``n`` samples after ``max_attempts``: a `FewSamplesWarning`, and ``missing`` says how many.  Raises
    `LimitError` when it has none by then, `UnsatisfiableError` when it has found that there is no text of
    ``max_tokens``, and `UnsupportedError` for potentials that are not Boolean.
    """
    run = Run(
        learning.value,
        rng,
        model,
        prompt,
        potential,
        max_tokens=max_tokens,
        memory=memory,
        batch=batch,
        learned=learned,
        resume=resume,
    )
    require_boolean(run.exploration.potential, "cars")
    walk = Unmasked(run.exploration, learning, run.chance)
    return run.samples(walk.attempts, n, max_attempts=max_attempts, progress=progress, save=save, save_every=save_every)


class Unmasked:
    """Rounds of attempts that are drawn from the model less what one trie excludes."""

    def __init__(self, exploration: Exploration, learning: Learning, chance: Chance) -> None:
        self.exploration = exploration
        self.learning = learning
        self.chance = chance
        if learning is Learning.MASKS and not exploration.trie.is_expanded(ROOT):
            # Known before the first attempt begins, so it may be masked at once.
            exploration.rows([ROOT])
            exploration.trie.settle([ROOT])

    def attempts(self, n: int) -> list[Attempt]:
        """Draw ``n`` sequences side by side from what was known before, then learn from them."""
        exploration, trie = self.exploration, self.exploration.trie
        found: list[Attempt | None] = [None] * n
        at = [ROOT] * n
        alive = list(range(n))
        while alive:
            drawn = self._draw([at[i] for i in alive])
            for i, (token, row) in zip(alive, drawn, strict=True):
                exploration.counts.tokens += 1
                node = self._next(at[i], row, token)
                if node < 0:
                    found[i] = Attempt(at[i], token, kept=False)
                else:
                    at[i] = node
                    if token in exploration.eos_ids:
                        found[i] = Attempt(node)
            alive = [i for i in alive if found[i] is None]
        done = [attempt for attempt in found if attempt is not None]
        if self.learning is not Learning.NOTHING:
            trie.settle(attempt.node for attempt in done)
        return done

    def _draw(self, nodes: Sequence[int]) -> list[tuple[int, Row]]:
        """A token for each walker, -1 for one that no constraint can speak of; and the row of its node."""
        exploration, trie = self.exploration, self.exploration.trie
        masked = self.learning is Learning.MASKS
        places = list(dict.fromkeys(nodes))
        rows = {node: trie.row(node) for node in places}
        missing = [node for node in places if rows[node] is None]
        choices: dict[int, tuple[NDArray[np.int32], NDArray[np.float64]]] = {}
        known: dict[int, Row] = {}
        for node, log_probs in zip(missing, exploration.log_probs(missing), strict=True):
            new = not trie.is_expanded(node)
            rows[node] = (exploration.expand if masked else exploration.expand_unmasked)(node, log_probs)
            if new:
                # What is met for the first time is drawn from as it is, so that the attempt follows the old trie.
                choices[node] = np.arange(log_probs.size, dtype=np.int32), _whole(log_probs)
        for node, row in rows.items():
            assert row is not None
            known[node] = row
            if node in choices:
                continue
            if self.learning is Learning.NOTHING:
                choices[node] = row.ids, _whole(row.log_weights)
            else:
                logw = trie.weights(node, row)
                choices[node] = row.ids, np.exp(logw - logw.max())
        drawn = []
        for node in nodes:
            ids, shares = choices[node]
            place = self.chance.index(shares)
            drawn.append((int(ids[place]) if place < ids.size else -1, known[node]))
        return drawn

    def _next(self, node: int, row: Row, token: int) -> int:
        """The node after a token, -1 if the sequence fails."""
        exploration, trie = self.exploration, self.exploration.trie
        if token < 0:
            return -1
        known = trie.child(node, token)
        if known >= 0:
            return known if trie.log_value[known] > -math.inf else -1
        state, change = exploration.step(exploration.state(node), token)
        cut = trie.depth[node] >= exploration.max_tokens - 1 and token not in exploration.eos_ids
        if change == -math.inf or cut:
            if self.learning is Learning.FAILURES:
                trie.add(node, row, token, state, log_value=-math.inf)
            return -1
        return trie.add(node, row, token, state)


def _whole(log_probs: NDArray[Any]) -> NDArray[np.float64]:
    """The model's probabilities, and after them that of the ids that no vocabulary has, if it gives them any."""
    shares = np.exp(log_probs.astype(np.float64))
    beyond = 1.0 - float(shares.sum())
    return np.append(shares, beyond) if beyond > _ROUNDING else shares


_ROUNDING = 1e-12
"""What sums of float64 probabilities are off by.  Those of float32 are off by more, and an attempt then fails for
nothing once in a million tokens, which costs little and changes no probability."""
