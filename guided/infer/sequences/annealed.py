"""Whole texts that are led to a critic step by step: tempering with moves that rejuvenate what resampling has copied.

An SMC sampler over texts of full length (Del Moral, Doucet and Jasra, JRSS B 68, 2006), with annealed importance
sampling (Neal, Statistics and Computing 11, 2001) as the case without resampling.  `guided.infer.smc` grows prefixes
instead; this one is for critics that say nothing of prefixes, such as unit tests with partial credit and rewards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.infer.chance import Random, chance_of
from guided.infer.populations.resampling import Resample, systematic
from guided.infer.potentials.potential import Potential, as_potential
from guided.infer.result import Cost, Population
from guided.infer.sequences.exploration import MEMORY, Exploration
from guided.infer.sequences.masked import continued
from guided.infer.sequences.mcmc import Cut, Ratios, moved
from guided.infer.sequences.visited import ROOT
from guided.infer.weights import effective_sample_size, family_shares, log_mean_exp, relative_error
from guided.lm.model import LanguageModel

__all__ = ["annealed"]

_NEVER = -math.inf

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def annealed(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    critic: Potential[Any] | Constrains | None = None,
    powers: Sequence[float] = POWERS,
    moves: int = 1,
    cut: Cut = Cut.PRIORITY,
    ess_threshold: float = 0.5,
    resample: Resample = systematic,
    batch: int = 16,
    memory: int = MEMORY,
) -> Population:
    """Draw ``n`` weighted texts of ``p(x) potential(x) critic(x)``, by way of its critic's ``powers``.

    Texts are drawn under the mask of the potential and weighed for what it took away.  Then, for each power, weights
    grow by ``critic**(power - the one before)``, and particles are resampled where the effective sample size is below
    ``ess_threshold * n``.  Each particle makes ``moves`` moves of `mcmc` that keep ``p potential critic**power``, so
    that copies part again.  ``powers`` ascend from 0 to 1; ``(0, 1)`` without moves is sampling and ranking by weight.
    The target is on condition that texts have at most ``max_tokens`` tokens, the end counted.  ``log_ml`` is the
    logarithm of an unbiased estimate of ``Z`` of the whole product, ``resampled`` the numbers of the powers, and
    ``families`` those of the texts that were drawn first.  The critic is asked about whole texts alone, each once.
    Raises `GuidedError` for powers that do not ascend from 0 to 1, and for counts that mean nothing.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> partial_credit = infer.TextScorer(letters, lambda texts: [2.0 * ("a" in text) for text in texts])
    >>> found = infer.annealed(0, model, [0], language, critic=partial_credit, n=40, max_tokens=4)
    >>> found.posterior()["ab"] > 0.7  # 0.82 in truth, and 0.375 without the critic
    True
    """
    if n < 1 or moves < 0 or not 0 <= ess_threshold <= 1:
        raise GuidedError(f"{n} particles, {moves} moves, a threshold of {ess_threshold}", remedy="Ask for some.")
    steps = [float(power) for power in powers]
    if len(steps) < 2 or steps[0] != 0 or steps[-1] != 1 or any(b <= a for a, b in pairwise(steps)):
        raise GuidedError(f"the powers are {steps}", remedy="Ascend from 0 to 1, such as (0, 0.5, 1).")
    chance = chance_of(rng)
    exploration = Exploration(model, prompt, potential, max_tokens=max_tokens, memory=memory, batch=batch)
    judge = _Judge(exploration, None if critic is None else as_potential(critic))
    nodes: list[int] = []
    for start in range(0, n, batch):
        nodes += continued(exploration, chance, [ROOT] * min(batch, n - start))
    logw = [judge.masked(node) for node in nodes]
    families = list(range(n))
    resampled: list[int] = []
    for number in range(1, len(steps)):
        power, change = steps[number], steps[number] - steps[number - 1]
        alive = [i for i, weight in enumerate(logw) if weight > _NEVER]
        for i, value in zip(alive, judge.values([nodes[i] for i in alive]), strict=True):
            logw[i] += change * value
        if 0 < effective_sample_size(logw) < ess_threshold * n:
            ancestors, logw = resample(chance, logw, n)
            nodes, families = [nodes[i] for i in ancestors], [families[i] for i in ancestors]
            resampled.append(number)
        alive = [i for i, weight in enumerate(logw) if weight > _NEVER]
        for _ in range(moves):
            for start in range(0, len(alive), batch):
                part = alive[start : start + batch]
                after, _ = moved(exploration, chance, [nodes[i] for i in part], cut, judge.ratios(power))
                for i, node in zip(part, after, strict=True):
                    nodes[i] = node
    return Population(
        tuple(
            exploration.particle(node, logw=weight, finished=exploration.is_end(node))
            for node, weight in zip(nodes, logw, strict=True)
        ),
        log_mean_exp(logw),
        judge.cost,
        tuple(resampled),
        relative_error(family_shares(logw, families)),
        tuple(families),
    )


class _Judge:
    """What texts weigh, by the leaves of an exploration."""

    def __init__(self, exploration: Exploration, critic: Potential[Any] | None) -> None:
        self._exploration = exploration
        self._critic = critic
        self._known: dict[int, float] = {}

    @property
    def cost(self) -> Cost:
        """All that was asked for."""
        return self._exploration.cost

    def masked(self, node: int) -> float:
        """The importance weight of a text that was drawn under the mask; minus infinity for one that did not end."""
        if not self._exploration.is_end(node):
            return _NEVER
        trie = self._exploration.trie
        start = self._exploration.potential
        return float(np.sum(trie.log_kept[trie.path(node)[:-1]])) + start.prefix_at(start.start())

    def values(self, nodes: Sequence[int]) -> list[float]:
        """The critic's log weights of texts, those not met before asked about in one batch."""
        critic, exploration = self._critic, self._exploration
        if critic is None:
            return [0.0] * len(nodes)
        fresh = [node for node in dict.fromkeys(nodes) if node not in self._known]
        states = [critic.state_of(exploration.trie.tokens(node)[:-1]) for node in fresh]
        exploration.counts.potential += len(fresh)
        for node, value in zip(fresh, critic.complete_each(states), strict=True):
            self._known[node] = critic.checked(value)
        return [self._known[node] for node in nodes]

    def ratios(self, power: float) -> Ratios:
        """How much more proposed texts weigh than those that the particles are at, by the critic to this power."""

        def of(olds: Sequence[int], news: Sequence[int]) -> list[float]:
            ended = [self._exploration.is_end(node) for node in news]
            values = iter(self.values([node for node, ends in zip(news, ended, strict=True) if ends]))
            after = [next(values) if ends else _NEVER for ends in ended]
            return [power * (new - old) for new, old in zip(after, self.values(olds), strict=True)]

        return of
