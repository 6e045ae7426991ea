"""Adaptive weighted rejection sampling: an allowed token and its weight by testing a few tokens, not the vocabulary.

After Lipkin et al., "Fast Controlled Generation from Language Models with Adaptive Weighted Rejection Sampling"
(COLM 2025, arXiv 2504.05410), in three forms, each of which is properly weighted:
`guided.infer.token_samplers.token_sampler` says what that means.  The potential is asked about single tokens, and for a
mask, if it has one, where that costs less.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from guided.constraint.protocol import TRIES
from guided.infer.chance import Chance, Pool, Random, chance_of
from guided.infer.distribution import TokenDistribution
from guided.infer.errors import PotentialError
from guided.infer.potentials.potential import Potential
from guided.infer.token_samplers.token_sampler import Direct, Draw, dead_draw
from guided.infer.weights import log_add_exp

__all__ = ["AWRS", "Estimator"]

SURE = 2 / 3
"""From this probability of the likeliest token on, drawing with replacement tests fewer distinct tokens than looking
one token ahead: 1 + 2 (1 - p) / p, which is 2 here, against at least 2."""


NARROW = 2
"""Rejections before the potential is asked what is impossible: see benchmarks/token_samplers.py."""

UNLIKELY = math.log(0.9)
"""A draw that kept less than this share foretells rejections, and a search costs more than a mask then."""

FEW = 16_384
"""In vocabularies up to this size a mask costs less than testing two tokens: 2,048 ids take 8 to 50 us, two tests 60 us
and more, most of it spent before and after them.  At 128,256 ids it is the other way around."""


_DIRECT = Direct()


class Estimator(Enum):
    """How the weight is estimated from the tokens that were tested.

    >>> import math, numpy as np
    >>> import guided
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> tokens = infer.TokenDistribution(np.log([0.6, 0.3, 0.1]))
    >>> potential = infer.as_potential(language)
    >>> after_a = potential.state_of([0])  # only "b" may come, with 0.3
    >>> for estimator in infer.Estimator:
    ...     inner = infer.AWRS(estimator=estimator)
    ...     draws = [inner.sample(seed, tokens, potential, after_a) for seed in range(99)]
    ...     print(estimator.value, abs(sum(math.exp(draw.logw) for draw in draws) / 99 - 0.3) < 0.08)
    adaptive True
    recursive True
    geometric True
    two loops True
    """

    ADAPTIVE = "adaptive"
    """`RECURSIVE` for two accepts where no token has probability 2/3, else `GEOMETRIC`."""
    RECURSIVE = "recursive"
    """One pass without replacement; the token after the accepted one decides between two weights."""
    GEOMETRIC = "geometric"
    """The counts of accepts and rejects that drawing with replacement would give; rejected tokens are not asked again,
    their repetitions are drawn as geometric numbers."""
    TWO_LOOPS = "two loops"
    """The paper's: reject until an accept, twice; the second loop counts.  Where one rejected token has nearly all of
    the mass, half of the expected weight rests on its never coming: far below 1e-9 of allowed mass nobody sees that."""


@dataclass(slots=True)
class _Trial:
    """The tokens tested so far in one draw; an accepted one is not asked about again."""

    potential: Potential[Any]
    state: Any
    narrow_after: int | None
    accepted: dict[int, Any] = field(default_factory=dict)
    tested: int = 0
    rejected: int = 0
    asked: int = 0
    """Other questions than about tokens."""
    all_allowed: bool = False
    """Is every token that is left in the pool allowed?"""
    last: int | None = None

    def allows(self, token: int) -> bool:
        if token in self.accepted:
            return True
        after, value = self.potential.step(self.state, token)
        self.tested += 1
        self.last = token
        if value == 0.0:
            self.accepted[token] = after
            return True
        if value != -math.inf:
            raise PotentialError(
                f"{self.potential!r} weighs token {token} {value}: rejection sampling needs 0 or minus infinity",
                remedy="Pass a potential that weighs texts as the critic, or sample with Direct().",
            )
        return False

    def reject(self, token: int, pool: Pool) -> None:
        """Take a token that is not allowed out of the pool, and in time all that are known not to be."""
        pool.remove(token)
        self.rejected += 1
        if self.rejected != self.narrow_after:
            return
        masks = self.potential.allowed_each([self.state]) if self.potential.has_masks else None
        possible = self.potential.possible_at(self.state) if masks is None else masks[0]
        if possible is not None:
            self.asked += 1
            self.all_allowed = masks is not None
            pool.keep(possible)


@dataclass(frozen=True)
class AWRS:
    """Draw tokens from the model until one is allowed, and weigh it with an unbiased estimate of the allowed mass.

    The potential's weights must be 0 and minus infinity.  Needs no mask: a Python predicate will do.  With
    ``masks=False, narrow_after=None`` it never asks for one.  Raises `ValueError` for limits that leave the estimate
    undefined.
    """

    max_accepts: int = 2
    """More accepts lower the variance of weights; at least 2 when weights are proper."""
    max_rejects: int | None = None
    """Give up, with weight 0, after so many rejections (None: never); still unbiased; at least 2."""
    prune: bool = True
    """Ids that no text can have are dropped before drawing, and the weight makes up for their mass."""
    proper_weights: bool = True
    """False: take the first allowed token, with weight 1.  That is masking token by token, without the mask."""
    estimator: Estimator = Estimator.ADAPTIVE
    narrow_after: int | None = NARROW
    """After so many rejections ask the potential for its mask, or, where it has none, which tokens it knows to be
    impossible, and drop them all (None: never).  Dropping what would be rejected changes no expectation, because both
    weights depend on what is left alone, or on counts that are drawn for what was dropped as well.  Not used by
    `Estimator.TWO_LOOPS`, whose weight counts rejections one by one.  A database's mask takes milliseconds, and is
    asked for behind `TRIES` rejections at the soonest."""
    masks: bool = True
    """Draw from the mask at once, as `Direct` does, where the potential has masks and that is likely to cost less: in
    small vocabularies, after a draw that kept little, and for particles that share a prefix.  Which way is taken
    depends on nothing that is drawn, so the weights stay proper.  Only with `Estimator.ADAPTIVE`."""

    def __post_init__(self) -> None:
        if self.proper_weights and self.max_accepts < 2:
            raise ValueError("max_accepts is at least 2: one accepted token says nothing of the allowed mass")
        if self.max_rejects is not None and self.max_rejects < (2 if self.proper_weights else 1):
            raise ValueError("max_rejects is at least 2 (1 without proper weights)")
        if self.estimator in (Estimator.TWO_LOOPS, Estimator.RECURSIVE) and self.max_accepts != 2:
            raise ValueError(f"the estimator {self.estimator.value!r} takes exactly 2 accepts")
        if self.estimator is Estimator.TWO_LOOPS and self.max_rejects is not None:
            raise ValueError("the estimator of two loops has no limit of rejections")

    def sample(
        self,
        rng: Random,
        distribution: TokenDistribution,
        potential: Potential[Any],
        state: Hashable,
        proposal: TokenDistribution | None = None,
        before: float = 0.0,
    ) -> Draw:
        """Draw after one state; see `guided.infer.TokenSampler`."""
        if self._may_mask_of(potential) and (before < UNLIKELY or potential.vocabulary.size <= FEW):
            return _DIRECT.sample(rng, distribution, potential, state, proposal)
        return self._sample(chance_of(rng), distribution, potential, state, proposal)

    def sample_each(
        self,
        rng: Random,
        distributions: Sequence[TokenDistribution],
        potential: Potential[Any],
        states: Sequence[Hashable],
        proposals: Sequence[TokenDistribution] | None = None,
        before: Sequence[float] | None = None,
    ) -> list[Draw]:
        """Draw after each state; what particles share, the sums of their distribution, is computed once."""
        chance = chance_of(rng)
        given: Sequence[TokenDistribution | None] = [None] * len(states) if proposals is None else proposals
        found: dict[int, Draw] = {}
        masked: list[int] = []
        if before is not None and self._may_mask_of(potential):
            # Particles with one prefix share the distribution, and its mask: that is less work than a search for each.
            few = potential.vocabulary.size <= FEW
            alike = Counter(map(id, distributions))
            masked = [
                i
                for i, (last, distribution) in enumerate(zip(before, distributions, strict=True))
                if few or last < UNLIKELY or alike[id(distribution)] > 1
            ]
        if masked:
            others = None if proposals is None else [proposals[i] for i in masked]
            draws = _DIRECT.sample_each(
                chance, [distributions[i] for i in masked], potential, [states[i] for i in masked], others
            )
            found.update(zip(masked, draws, strict=True))
        return [
            found[i] if i in found else self._sample(chance, distribution, potential, state, proposal)
            for i, (distribution, state, proposal) in enumerate(zip(distributions, states, given, strict=True))
        ]

    def _may_mask_of(self, potential: Potential[Any]) -> bool:
        """May a draw be made from a potential's mask altogether?"""
        allowed = self.masks and self.proper_weights and self.estimator is Estimator.ADAPTIVE
        return allowed and potential.has_masks and not potential.masks_are_dear

    def _sample(
        self,
        chance: Chance,
        distribution: TokenDistribution,
        potential: Potential[Any],
        state: Hashable,
        proposal: TokenDistribution | None,
    ) -> Draw:
        source = distribution if proposal is None else proposal
        if self.prune:
            source = source.pruned(potential.usable, potential.silent)
        narrow_after = self.narrow_after
        if narrow_after is not None and potential.masks_are_dear:
            narrow_after = max(narrow_after, TRIES)
        trial = _Trial(potential, state, narrow_after)
        token, logw = self._estimate(source)(chance, source, trial)
        calls = trial.tested + trial.asked
        if token is None or logw == -math.inf:
            dead = dead_draw(distribution, state, calls, trial.last)
            return dead._replace(tested=trial.tested, accepted=len(trial.accepted))
        if proposal is not None and self.proper_weights:
            logw += distribution.logprob(token) - source.logprob(token)
        return Draw(token, logw, trial.accepted[token], calls, trial.tested, len(trial.accepted))

    def _estimate(
        self, source: TokenDistribution
    ) -> Callable[[Chance, TokenDistribution, _Trial], tuple[int | None, float]]:
        if not self.proper_weights:
            return self._first
        if self.estimator is Estimator.TWO_LOOPS:
            return self._two_loops
        if self.estimator is Estimator.GEOMETRIC or self.max_accepts > 2:
            return self._geometric
        if self.estimator is Estimator.ADAPTIVE and source.has_share(SURE):
            return self._geometric
        return self._recursive

    def _first(self, chance: Chance, source: TokenDistribution, trial: _Trial) -> tuple[int | None, float]:
        pool = Pool(chance, source)
        while (token := pool.draw()) is not None and not trial.allows(token):
            trial.reject(token, pool)
            if trial.rejected == self.max_rejects:
                return None, -math.inf
        return token, 0.0

    def _recursive(self, chance: Chance, source: TokenDistribution, trial: _Trial) -> tuple[int | None, float]:
        """With M the mass rejected before the token x: 1 - M if the next token is allowed too, else p(x).

        For q = p(x) / (1 - M), ``E f = q f(x) + (1 - q) E[f | not x]``; the next token is a draw from the second term.
        """
        pool = Pool(chance, source)
        while (token := pool.draw()) is not None and not trial.allows(token):
            trial.reject(token, pool)
            if trial.rejected == self.max_rejects:
                return None, -math.inf
        if token is None:
            return None, -math.inf
        left = source.log_mass + pool.log_left
        if trial.all_allowed or (self.max_rejects is not None and trial.rejected == self.max_rejects - 1):
            return token, left
        pool.remove(token)
        following = pool.draw()
        return token, left if following is None or trial.allows(following) else source.logprob(token)

    def _two_loops(self, chance: Chance, source: TokenDistribution, trial: _Trial) -> tuple[int | None, float]:
        pool = Pool(chance, source)
        token = left = None
        rejected = 0
        while True:
            candidate = pool.draw()
            if candidate is None:
                return None, -math.inf
            if not trial.allows(candidate):
                pool.remove(candidate)
                rejected += 1
            elif token is None or left is None:
                token, left = candidate, pool.log_left
            else:
                return token, source.log_mass + left - math.log(rejected + 1)

    def _geometric(self, chance: Chance, source: TokenDistribution, trial: _Trial) -> tuple[int | None, float]:
        """Of n draws with replacement the first is excepted, which is the token; the others estimate the allowed mass.

        Stopped by the last accept, that draw is no evidence: ``(accepts - 1) / (n - 1)``; stopped by rejections, which
        are then no evidence, ``accepts / (n - 1)``.
        """
        pool = Pool(chance, source)
        first: int | None = None
        accepts = 0
        # Of any size, so in logarithms; below the limit of rejections, if there is one, a whole number as well.
        log_rejects, rejects = -math.inf, 0
        limit = self.max_rejects
        while accepts < self.max_accepts and (limit is None or rejects < limit):
            # Before each token from the pool come the rejected ones that a draw with replacement would have met again.
            if trial.rejected:
                left = pool.log_left
                if left == -math.inf:
                    break
                again = chance.failures(min(left, 0.0), None if limit is None else limit - rejects)
                log_rejects = log_add_exp(log_rejects, again)
                if limit is not None:
                    rejects += round(math.exp(again))
                    if rejects >= limit:
                        break
            token = pool.draw()
            if token is None:
                break
            if trial.allows(token):
                accepts += 1
                first = token if first is None else first
            else:
                rejects += 1
                log_rejects = log_add_exp(log_rejects, 0.0)
                trial.reject(token, pool)
        if first is None:
            return None, -math.inf
        others = log_add_exp(math.log(accepts - 1) if accepts > 1 else -math.inf, log_rejects)
        return first, source.log_mass + math.log(min(self.max_accepts - 1, accepts)) - others
