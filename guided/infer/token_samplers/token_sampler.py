"""One token and its weight: what every token sampler returns, and the one that fills masks.

A sampler is properly weighted: for its token x and weight w, ``E[w 1{x = v}] = p(v) exp(logw_next(v))`` for every v,
where p is the model's distribution before any constraint.  Samplers that test single tokens are in `awrs`, those that
draw sets in `set_samplers`, both beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from guided.infer.chance import Chance, Random, chance_of
from guided.infer.distribution import TokenDistribution
from guided.infer.errors import PotentialError
from guided.infer.potentials.potential import Potential

__all__ = ["Direct", "Draw", "TokenSampler", "dead_draw"]


class Draw(NamedTuple):
    """A token, its log weight, and what is known besides.

    >>> import numpy as np
    >>> import guided
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> potential = infer.as_potential(language)
    >>> tokens = infer.TokenDistribution(np.log([0.6, 0.3, 0.1]))
    >>> draw = infer.Direct().sample(0, tokens, potential, potential.state_of([0]))  # after "a" comes "b"
    >>> draw.token, round(float(np.exp(draw.logw)), 2), draw.calls
    (1, 0.3, 1)
    """

    token: int
    logw: float
    """Minus infinity when no allowed token was found; the token is then one that is not allowed."""
    state: Any
    """The potential's state after the token."""
    calls: int
    """Questions put to the potential: tokens tested, or masks filled."""
    tested: int = 0
    """Tokens tested one by one."""
    accepted: int = 0
    """Of those, allowed ones."""


class TokenSampler(Protocol):
    """Draws one token after a state, with its weight.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> inner = infer.AWRS()  # one of them; so are Direct(), EagerSets() and TopKSets(k)
    >>> round(infer.smc(0, model, [0], language, sampler=inner, n=200, max_tokens=4).log_ml, 1)
    -3.0
    >>> round(infer.exact(model, [0], language, max_tokens=4).log_ml, 1)
    -3.0
    """

    def sample(
        self,
        rng: Random,
        distribution: TokenDistribution,
        potential: Potential[Any],
        state: Hashable,
        proposal: TokenDistribution | None = None,
        before: float = 0.0,
    ) -> Draw:
        """Draw after one state.

        ``distribution`` is the model's, over ``potential.vocabulary.size`` ids; ``proposal`` another one to draw from,
        for which the weight makes up.  ``before`` is the log weight of the draw that led to the state, minus infinity
        where nothing is known: it may choose the way to draw, as every way is properly weighted whatever came before.
        """

    def sample_each(
        self,
        rng: Random,
        distributions: Sequence[TokenDistribution],
        potential: Potential[Any],
        states: Sequence[Hashable],
        proposals: Sequence[TokenDistribution] | None = None,
        before: Sequence[float] | None = None,
    ) -> list[Draw]:
        """Draw after each state; particles with equal prefixes bring the same distribution object."""


def dead_draw(distribution: TokenDistribution, state: Any, calls: int, token: int | None = None) -> Draw:
    """The draw of weight 0: ``token`` was rejected, or, where none was tried, it is the model's likeliest."""
    found = int(distribution.weights.argmax()) if token is None else token
    return Draw(found, -math.inf, state, calls)


@dataclass(frozen=True)
class Direct:
    """Draw from the model's distribution times the potential's ``logw_next``; the weight is the mass that was kept.

    Costs a mask for each distinct state, filled for a batch by one call; for potentials without masks a question for
    each id of the vocabulary.
    """

    def sample(
        self,
        rng: Random,
        distribution: TokenDistribution,
        potential: Potential[Any],
        state: Hashable,
        proposal: TokenDistribution | None = None,
        before: float = 0.0,
    ) -> Draw:
        """Draw after one state; see `TokenSampler`."""
        masks = potential.allowed_each([state])
        if masks is None:
            given = None if proposal is None else [proposal]
            return self.sample_each(rng, [distribution], potential, [state], given)[0]
        target = distribution.only(masks[0])
        source = target if proposal is None else proposal.only(masks[0])
        return _drawn(chance_of(rng), distribution, target, source, potential, state, 1)

    def sample_each(
        self,
        rng: Random,
        distributions: Sequence[TokenDistribution],
        potential: Potential[Any],
        states: Sequence[Hashable],
        proposals: Sequence[TokenDistribution] | None = None,
        before: Sequence[float] | None = None,
    ) -> list[Draw]:
        """Draw after each state; equal states are masked once, and once for each distribution."""
        chance = chance_of(rng)
        numbers: dict[Hashable, int] = {}
        for state in states:
            numbers.setdefault(state, len(numbers))
        masks = potential.allowed_each(list(numbers))
        changes = _checked(potential, list(numbers)) if masks is None else np.zeros((0, 0))
        weighed: dict[tuple[int, int, int], tuple[TokenDistribution, TokenDistribution]] = {}
        asked: set[int] = set()
        draws = []
        for i, (distribution, state) in enumerate(zip(distributions, states, strict=True)):
            number = numbers[state]
            other = None if proposals is None else proposals[i]
            key = (number, id(distribution), id(other))
            found = weighed.get(key)
            if found is None:
                if masks is not None:
                    target = distribution.only(masks[number])
                    source = target if other is None else other.only(masks[number])
                else:
                    change = changes[number]
                    target = TokenDistribution(distribution.logprobs + change, 0.0)
                    source = target if other is None else other.only(change > -math.inf)
                found = weighed[key] = (target, source)
            target, source = found
            calls = 0 if number in asked else (1 if masks is not None else int(potential.usable.sum()))
            asked.add(number)
            draws.append(_drawn(chance, distribution, target, source, potential, state, calls))
        return draws


def _drawn(
    chance: Chance,
    distribution: TokenDistribution,
    target: TokenDistribution,
    source: TokenDistribution,
    potential: Potential[Any],
    state: Any,
    calls: int,
) -> Draw:
    """A token of ``source``, weighed for ``target``."""
    if not target.sum or not source.sum:
        return dead_draw(distribution, state, calls)
    token = chance.token(source)
    logw = target.log_mass
    if source is not target:
        logw = source.log_mass + target.logprob(token) - source.logprob(token)
    after, value = potential.step(state, token)
    if value == -math.inf:
        raise PotentialError(
            f"{potential!r} forbids token {token}, which its mask or logw_next allows",
            remedy="guided.testing.check_potential says which law it breaks, and where.",
        )
    return Draw(token, logw, after, calls)


def _checked(potential: Potential[Any], states: Sequence[Any]) -> NDArray[np.float64]:
    """The potential's next log weights after each state, as they may be used."""
    change = np.asarray(potential.logw_next_each(states), np.float64)
    size = potential.vocabulary.size
    if change.shape != (len(states), size) or not bool((change < math.inf).all()):
        raise PotentialError(
            f"logw_next of {potential!r} is not {size} log weights: its shape is {change.shape[1:]}, "
            f"{int(np.isnan(change).sum())} of them are NaN and {int((change == math.inf).sum())} plus infinity",
            remedy="A potential returns finite numbers, or minus infinity for what is forbidden.",
        )
    return change
