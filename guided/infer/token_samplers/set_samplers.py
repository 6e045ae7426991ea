"""Token samplers that draw a weighted set of tokens first, and one of them then: for potentials that know bytes.

A set S in which each member v weighs ``p(v) exp(logw_next(v)) / P(v in S)`` gives a properly weighted token: drawn by
those weights, and weighing their sum.  Both kinds walk the trie of the vocabulary's bytes, asking the potential about
bytes instead of tokens, as in the token-set samplers of genlm-control.
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guided.errors import UnsupportedError
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.distribution import SMALLEST, TokenDistribution
from guided.infer.potentials.potential import Potential
from guided.infer.token_samplers.token_sampler import Draw, dead_draw
from guided.infer.weights import log_sum_exp, normalised
from guided.special_bytes import SENTINEL

__all__ = ["EagerSets", "SetTokenSampler", "TopKSets"]

_NEVER = -math.inf


class _Walk:
    """The trie over one distribution, and what was asked of the potential."""

    def __init__(self, distribution: TokenDistribution, potential: Potential[Any], state: Any) -> None:
        self.distribution = distribution
        self.potential = potential
        self.state = state
        self.trie = potential.vocabulary.trie
        # Log probabilities, not weights: those of rare tokens underflow, and may be all that is allowed.
        self.logprobs = distribution.logprobs[self.trie.token_ids]
        self._weights = distribution.weights[self.trie.token_ids]
        self._log_scale = distribution.shift - distribution.log_norm
        self.calls = 0

    def tokens(self, node: int) -> list[int]:
        """The ids that spell a node."""
        first, last = self.trie.token_offset[node], self.trie.token_offset[node + 1]
        found: list[int] = self.trie.token_ids[first:last].tolist()
        return found

    def below(self, node: int) -> slice:
        """The places of a subtree's tokens in ``logprobs``."""
        return slice(int(self.trie.token_offset[node]), int(self.trie.token_offset[self.trie.end[node]]))

    def log_mass(self, node: int) -> float:
        """The log probability of a subtree's tokens."""
        tokens = self.below(node)
        total = float(self._weights[tokens].sum())
        return math.log(total) + self._log_scale if total >= SMALLEST else log_sum_exp(self.logprobs[tokens])

    def highest(self, node: int) -> float:
        """The highest log probability of a subtree's tokens; minus infinity for none."""
        return float(self.logprobs[self.below(node)].max(initial=_NEVER))

    def children(self, node: int, state: Any) -> Iterator[tuple[int, Any, float]]:
        """The child nodes with any probability that the potential allows, with its state and change of weight."""
        child, end = node + 1, int(self.trie.end[node])
        while child < end:
            data = bytes([self.trie.byte[child]])
            # A special token's name is not text: those tokens are asked about whole, at the root.
            name = node == 0 and data == SENTINEL and self.potential.vocabulary.has_special
            if not name and self.highest(child) > _NEVER:
                self.calls += 1
                found = self.potential.step_bytes(state, data)
                if found is None:
                    raise UnsupportedError(
                        f"{self.potential!r} cannot be asked about bytes", remedy="Sample with AWRS() or Direct()."
                    )
                if found[1] > _NEVER:
                    yield child, found[0], self.potential.checked(found[1])
            child = int(self.trie.end[child])

    def whole(self) -> Iterator[tuple[int, float]]:
        """The tokens that are no bytes, end-of-text ids and special ones, that the potential allows."""
        vocabulary = self.potential.vocabulary
        for token in sorted({*vocabulary.eos_ids, *vocabulary.special_tokens.values()}):
            if self.distribution.logprob(token) > _NEVER:
                self.calls += 1
                value = self.potential.step(self.state, token)[1]
                if value > _NEVER:
                    yield token, value


class SetTokenSampler(ABC):
    """A token sampler over random weighted sets of tokens; a subclass gives `members`.

    >>> import numpy as np
    >>> import guided
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> potential = infer.as_potential(language)
    >>> tokens = infer.TokenDistribution(np.log([0.6, 0.3, 0.1]))
    >>> [draw.token for draw in infer.EagerSets().sample_each(0, [tokens] * 4, potential, [potential.start()] * 4)]
    [0, 0, 1, 0]
    >>> infer.TopKSets(2).sample(0, tokens, potential, potential.state_of([0])).token
    1
    """

    @abstractmethod
    def members(self, chance: Chance, walk: _Walk) -> dict[int, float]:
        """A random set: the log of ``p(v) exp(logw_next(v)) / P(v in the set)`` for each member v."""

    def sample(
        self,
        rng: Random,
        distribution: TokenDistribution,
        potential: Potential[Any],
        state: Hashable,
        proposal: TokenDistribution | None = None,
        before: float = 0.0,
    ) -> Draw:
        """Draw after one state; see `guided.infer.TokenSampler`.  ``proposal`` is not supported.

        Raises `UnsupportedError` where one is given.
        """
        if proposal is not None:
            raise UnsupportedError("set samplers take no proposal", remedy="Use AWRS() or Direct().")
        chance = chance_of(rng)
        walk = _Walk(distribution, potential, state)
        members = self.members(chance, walk)
        total = log_sum_exp(list(members.values()))
        if total == _NEVER:
            return dead_draw(distribution, state, walk.calls)
        token = list(members)[chance.index(normalised(list(members.values())))]
        return Draw(token, total, potential.step(state, token)[0], walk.calls)

    def sample_each(
        self,
        rng: Random,
        distributions: Sequence[TokenDistribution],
        potential: Potential[Any],
        states: Sequence[Hashable],
        proposals: Sequence[TokenDistribution] | None = None,
        before: Sequence[float] | None = None,
    ) -> list[Draw]:
        """Draw after each state, one after the other."""
        chance = chance_of(rng)
        given = [None] * len(states) if proposals is None else proposals
        return [
            self.sample(chance, distribution, potential, state, proposal)
            for distribution, state, proposal in zip(distributions, states, given, strict=True)
        ]


@dataclass(frozen=True)
class EagerSets(SetTokenSampler):
    """The tokens on one random path of bytes: each next byte by the mass below it times the potential's weight."""

    def members(self, chance: Chance, walk: _Walk) -> dict[int, float]:
        """Walk from the root to where no byte can follow; every token passed is a member."""
        members: dict[int, float] = {}
        node, state = 0, walk.state
        # What the potential has added on the way, and the log probability of the way.
        added = chosen = 0.0
        whole = list(walk.whole())
        while True:
            children = list(walk.children(node, state))
            masses = [walk.log_mass(child) + value for child, _, value in children]
            masses += [walk.distribution.logprob(token) + value for token, value in whole]
            if not masses:
                return members
            shares = normalised(masses)
            which = chance.index(shares)
            chosen += math.log(shares[which])
            if which >= len(children):
                token, value = whole[which - len(children)]
                members[token] = walk.distribution.logprob(token) + value - chosen
                return members
            node, state, value = children[which]
            added += value
            for token in walk.tokens(node):
                if (logprob := walk.distribution.logprob(token)) > _NEVER:
                    members[token] = logprob + added - chosen
            whole = []


@dataclass(frozen=True)
class TopKSets(SetTokenSampler):
    """The ``k`` allowed tokens of largest weight, found best first, and one drawn from all others.

    Finds the largest only where the potential's weights never grow along a text; proper in any case.  Raises
    `ValueError` for a negative ``k``.
    """

    k: int = 8

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"k is at least 0, not {self.k}")

    def members(self, chance: Chance, walk: _Walk) -> dict[int, float]:
        """Best-first search by the largest probability in each subtree, then one draw from what was not found."""
        distribution = walk.distribution
        members: dict[int, float] = {}
        order = itertools.count()
        # Entries are (minus a bound, number, token or None, node, state, what the potential has added).
        heap: list[tuple[float, int, int | None, int, Any, float]] = [(0.0, next(order), None, 0, walk.state, 0.0)]
        for token, value in walk.whole():
            heapq.heappush(heap, (-distribution.logprob(token) - value, next(order), token, 0, None, value))
        while heap and len(members) < self.k:
            _, _, found, node, state, added = heapq.heappop(heap)
            if found is not None:
                members[found] = distribution.logprob(found) + added
                continue
            for child, then, value in walk.children(node, state):
                bound = walk.highest(child) + added + value
                heapq.heappush(heap, (-bound, next(order), None, child, then, added + value))
            for token in walk.tokens(node) if node else []:
                if (logprob := distribution.logprob(token)) > _NEVER:
                    heapq.heappush(heap, (-logprob - added, next(order), token, 0, None, added))
        others = np.ones(distribution.size, np.bool_)
        others[list(members)] = False
        rest = distribution.only(others & walk.potential.usable)
        if rest.sum > 0:
            token = chance.token(rest)
            walk.calls += 1
            value = walk.potential.checked(walk.potential.step(walk.state, token)[1])
            if value > _NEVER:
                members[token] = rest.log_mass + value
        return members
