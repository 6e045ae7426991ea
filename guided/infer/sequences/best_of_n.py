"""The best of n masked samples by some score: not a sample from any stated distribution, and not meant to be one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError
from guided.html import card, facts, number, table
from guided.infer.chance import Random, chance_of
from guided.infer.errors import PotentialError
from guided.infer.potentials.potential import Potential
from guided.infer.result import Cost, Particle
from guided.infer.runs.rounds import Round, RoundProgress
from guided.infer.sequences.exploration import MEMORY, Exploration
from guided.infer.sequences.masked import continued
from guided.infer.sequences.visited import ROOT
from guided.lm.model import LanguageModel

__all__ = ["Ranked", "best_of_n"]

_SHOWN = 10
"""Candidates that a notebook shows."""

Scorer = Callable[[Sequence[Particle]], Sequence[float]]
"""Scores of many finished sequences at once; higher is better, NaN is refused."""


@dataclass(frozen=True)
class Ranked:
    """Candidates, the best first; equal ones stay in the order in which they were drawn.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> ranked = infer.best_of_n(0, model, [0], language, n=4, max_tokens=4)
    >>> [(particle.text, round(score, 2)) for particle, score in zip(ranked.particles, ranked.scores)]
    [('ab', -4.02), ('ab', -4.02), ('ab', -4.02), ('ab', -4.02)]
    """

    particles: tuple[Particle, ...]
    """``logw`` is the importance weight of masked sampling; what did not end comes last."""
    scores: tuple[float, ...]
    """Minus infinity for what did not end."""
    log_probs: tuple[float, ...]
    """The model's log-probability of each, times what the potential adds."""
    cost: Cost = field(default_factory=Cost)

    def _repr_html_(self) -> str:
        pairs = list(zip(self.scores, self.log_probs, self.particles, strict=True))
        rows = [
            (number(score), number(log_prob), repr(each.data) if each.text is None else each.text)
            for score, log_prob, each in pairs[:_SHOWN]
        ]
        return card(
            "Ranked",
            table(("score", "log probability", "text"), rows, len(pairs) - len(rows)),
            facts(self.cost.shown()),
        )

    @property
    def best(self) -> Particle:
        """The candidate with the highest score."""
        return self.particles[0]


def best_of_n(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    score: Scorer | None = None,
    batch: int = 16,
    memory: int = MEMORY,
    progress: RoundProgress | None = None,
) -> Ranked:
    """Draw ``n`` sequences under the mask and rank them by ``score``, by the model's own probability if that is None.

    ``score`` is asked once, about all sequences that ended.  Raises `LimitError` when none of ``n`` ended within
    ``max_tokens``, and `PotentialError` when a score is NaN.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> def lengths(drawn):
    ...     return [len(each.data) for each in drawn]
    >>> infer.best_of_n(0, model, [0], language, n=8, max_tokens=4, score=lengths).best.text
    'ab'
    """
    if n < 1:
        raise GuidedError(f"{n} candidates", remedy="Ask for at least 1.")
    exploration = Exploration(model, prompt, potential, max_tokens=max_tokens, memory=memory, batch=batch)
    chance = chance_of(rng)
    nodes: list[int] = []
    while len(nodes) < n:
        new = continued(exploration, chance, [ROOT] * min(batch, n - len(nodes)))
        nodes += new
        if progress is not None:
            drawn = tuple(_candidate(exploration, node) for node in new)
            progress(Round(math.ceil(len(nodes) / batch), drawn, len(nodes), n, None, exploration.cost))
    candidates = [_candidate(exploration, node) for node in nodes]
    log_probs = [sum(float(exploration.trie.log_weight[at]) for at in exploration.trie.path(node)) for node in nodes]
    ended = [i for i, particle in enumerate(candidates) if particle.finished]
    if not ended:
        raise LimitError(
            f"none of {n} sequences under the mask ended within {max_tokens} tokens", remedy="Raise max_tokens or n."
        )
    scores = [-math.inf] * n
    given = [log_probs[i] for i in ended] if score is None else list(score([candidates[i] for i in ended]))
    if len(given) != len(ended):
        raise PotentialError(
            f"the score gave {len(given)} numbers for {len(ended)} sequences", remedy="Give one for each."
        )
    for i, value in zip(ended, given, strict=True):
        if math.isnan(value):
            raise PotentialError(
                f"the score of {candidates[i].text!r} is NaN", remedy="Return a number; minus infinity is the worst."
            )
        scores[i] = float(value)
    order = sorted(range(n), key=lambda i: (not candidates[i].finished, -scores[i]))
    return Ranked(
        tuple(candidates[i] for i in order),
        tuple(scores[i] for i in order),
        tuple(log_probs[i] for i in order),
        exploration.cost,
    )


def _candidate(exploration: Exploration, node: int) -> Particle:
    """The sequence of a node, weighed by what the masks kept along it."""
    trie = exploration.trie
    if not exploration.is_end(node):
        return exploration.particle(node, logw=-math.inf, finished=False)
    kept = tuple(float(trie.log_kept[at]) for at in trie.path(node)[:-1])
    found = exploration.particle(node, logw=sum(kept))
    return Particle(found.tokens, found.data, found.logw, True, kept)
