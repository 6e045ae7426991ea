"""Learned twists: what prefixes are worth, fitted from samples, so that resampling looks ahead.

A twist is an estimate of the expected weight that is still to come.  Resampling by weight times twist keeps what will
do well, and since twists are taken back (`guided.infer.smc`), no estimate makes a sample wrong; a bad one costs time.
Twisted SMC of language models is Zhao et al. (ICML 2024, arXiv 2404.17546), which trains a network; the iteration over
populations is that of Guarniero, Johansen and Lee (JASA 112, 2017).  The table of contexts here is ours: small, fitted
in one pass, and without a network.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from guided.infer.potentials.potential import Potential
from guided.infer.result import Population
from guided.infer.weights import log_add_exp, log_sum_exp

__all__ = ["LearnedTwist", "learned_twist"]

_NEVER = -math.inf

Tokens = tuple[int, ...]

Feature = Callable[[Tokens], Hashable]
"""What of a prefix the weight to come depends on."""


class LearnedTwist(Potential[tuple[Tokens, Any]]):
    """A critic whose prefixes weigh what was learned; made by `learned_twist` and passed as ``critic``.

    Texts weigh what ``critic`` gives them, 0 without one, and what it forbids of prefixes stays forbidden.

    >>> import guided
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> def last(tokens):
    ...     return tokens[-1:]
    >>> twist = infer.LearnedTwist(infer.Anything(letters), {(0,): -1.5}, last)  # prefixes that end in "a"
    >>> twist.prefix([1, 0]), twist.prefix([0, 1]), twist.complete([1, 0])
    (-1.5, 0.0, 0.0)
    """

    def __init__(
        self,
        base: Potential[Any],
        values: Mapping[Hashable, float],
        feature: Feature,
        *,
        critic: Potential[Any] | None = None,
        otherwise: float = 0.0,
    ) -> None:
        self.vocabulary = base.vocabulary
        self.values = dict(values)
        self.otherwise = otherwise
        """The log weight of prefixes whose feature was not met."""
        self._feature = feature
        self._critic = critic

    def content(self) -> Any:
        """What was learned, and what of prefixes."""
        return (self.vocabulary, self.values, self.otherwise, self._feature, self._critic)

    def start(self) -> tuple[Tokens, Any]:
        """No tokens, and the critic's state."""
        return (), None if self._critic is None else self._critic.start()

    def advance(self, state: tuple[Tokens, Any], token: int) -> tuple[Tokens, Any]:
        """One more token."""
        tokens, inner = state
        return (*tokens, token), None if self._critic is None else self._critic.advance(inner, token)

    def prefix_at(self, state: tuple[Tokens, Any]) -> float:
        """What was learned of the prefix's feature; minus infinity where the critic forbids it."""
        tokens, inner = state
        if self._critic is not None and self._critic.prefix_at(inner) == _NEVER:
            return _NEVER
        return self.values.get(self._feature(tokens), self.otherwise)

    def complete_at(self, state: tuple[Tokens, Any]) -> float:
        """The critic's weight of the text."""
        return self.complete_each([state])[0]

    def complete_each(self, states: Sequence[tuple[Tokens, Any]]) -> list[float]:
        """The critic's weights, in one batch."""
        return [0.0] * len(states) if self._critic is None else self._critic.complete_each([each for _, each in states])

    def __repr__(self) -> str:
        return f"<LearnedTwist of {len(self.values)} features>"


def last_two(tokens: Tokens) -> Hashable:
    """The default feature: the last two tokens, and whether there are others before."""
    return tokens[-2:], len(tokens) > 2


def learned_twist(
    populations: Sequence[Population],
    potential: Potential[Any],
    *,
    critic: Potential[Any] | None = None,
    feature: Feature = last_two,
    prior: float = 2.0,
    floor: float = -8.0,
) -> LearnedTwist:
    """Fit a twist to populations of `importance` that were drawn with the same potential and without its twist.

    Of each prefix of a particle the weight to come is the product of its later increments and of its text's ``critic``.
    The twist of a feature is the logarithm of the mean over all prefixes that have it, shrunk towards the mean of all
    by ``prior`` samples.  It is at least ``floor`` below that, so that no prefix is given up for lack of luck.  Raises
    `ValueError` for populations that were resampled, whose particles are no independent draws, or without particles.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> pilot = infer.importance(0, model, [0], language, n=50, max_tokens=4)
    >>> twist = infer.learned_twist([pilot], infer.as_potential(language))
    >>> twist.prefix([0]) < twist.prefix([0, 1])  # after "a" the step to "b" is still to pay
    True
    >>> found = infer.smc(1, model, [0], language, critic=twist, n=50, max_tokens=4)
    >>> abs(found.posterior()["b"] - 0.625) < 0.15
    True
    """
    if not populations or any(population.resampled for population in populations):
        raise ValueError("a twist is learned from populations of importance(), none of which was resampled")
    future: dict[Hashable, list[float]] = defaultdict(list)
    whole: list[float] = []
    for population in populations:
        for particle in population:
            ended = particle.logw > _NEVER and particle.finished
            tokens = particle.tokens[:-1] if particle.finished else particle.tokens
            rest = _NEVER if not ended else 0.0 if critic is None else critic.complete(tokens)
            for place in range(len(particle.increments) - 1, 0, -1):
                rest = rest + particle.increments[place] if rest > _NEVER else _NEVER
                future[feature(tokens[:place])].append(rest)
                whole.append(rest)
    if not whole:
        raise ValueError("no particle has two tokens or more: there is nothing to look ahead to")
    mean = log_sum_exp(whole) - math.log(len(whole))
    values = {}
    for each, weights in future.items():
        total = log_add_exp(log_sum_exp(weights), mean + math.log(prior) if prior > 0 else _NEVER)
        values[each] = max(total - math.log(len(weights) + prior), mean + floor) if mean > _NEVER else 0.0
    return LearnedTwist(potential, values, feature, critic=critic, otherwise=mean if mean > _NEVER else 0.0)
