"""Tiny problems that are solved by brute force: a random model, a grammar, and every token sequence with its weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

import guided
from guided.infer.potentials.potential import Potential, as_potential
from guided.lm import TableModel

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])


@dataclass(frozen=True)
class Problem:
    """What samplers are given, and what must come out."""

    model: TableModel
    potential: Potential
    max_tokens: int
    prompt: tuple[int, ...] = (0,)

    @property
    def arguments(self):
        return self.model, self.prompt, self.potential

    def weights(self):
        """Each token sequence that ends in time with ``p(x) potential(x)``."""
        found = {}
        self._collect((), 0.0, found)
        return found

    def _collect(self, tokens, logp, found):
        logs = self.model.logprobs(self.prompt + tokens)
        for token in range(VOCABULARY.size):
            if token in VOCABULARY.eos_ids:
                weight = logp + logs[token] + self.potential.complete(tokens)
                if weight > -math.inf:
                    found[(*tokens, token)] = math.exp(weight)
            elif len(tokens) < self.max_tokens - 1 and self.potential.prefix((*tokens, token)) > -math.inf:
                self._collect((*tokens, token), logp + logs[token], found)

    def target(self):
        """Each token sequence with its probability under the target."""
        weights = self.weights()
        total = math.fsum(weights.values())
        return {tokens: weight / total for tokens, weight in weights.items()}

    def masked(self):
        """Each token sequence with its probability under masking; what the limit cuts off is left out."""
        found = {}
        self._mask((), 1.0, found)
        return found

    def _mask(self, tokens, probability, found):
        last = len(tokens) == self.max_tokens - 1
        steps = self.potential.logw_next(tokens)
        logs = self.model.logprobs(self.prompt + tokens)
        shares = {
            token: math.exp(logs[token] + steps[token])
            for token in range(VOCABULARY.size)
            if steps[token] > -math.inf and (not last or token in VOCABULARY.eos_ids)
        }
        for token, share in shares.items():
            after = probability * share / math.fsum(shares.values())
            if token in VOCABULARY.eos_ids:
                found[(*tokens, token)] = after
            else:
                self._mask((*tokens, token), after, found)


def problem(pattern: str, seed: int = 0, max_tokens: int = 4, scale: float = 1.5) -> Problem:
    """A regular expression over a and b under a random model."""
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    return Problem(TableModel.random(seed, width=4, scale=scale), as_potential(constraint), max_tokens)


class Soft(Potential[int]):
    """A constraint times weights that rise and fall with the number of letters: neither Boolean nor monotone."""

    def __init__(self, constraint, factors=(0.0, 0.7, -0.4, 0.2, -1.1)):
        self.inner, self.factors = as_potential(constraint), factors
        self.vocabulary = constraint.vocabulary

    def start(self):
        return self.inner.start(), 0

    def advance(self, state, token):
        return self.inner.advance(state[0], token), state[1] + len(self.vocabulary.token_bytes(token) or b"")

    def prefix_at(self, state):
        return self.inner.prefix_at(state[0]) + self.factors[state[1] % len(self.factors)]

    def complete_at(self, state):
        return self.inner.complete_at(state[0]) - self.factors[state[1] % len(self.factors)]


def soft_problem(pattern: str, seed: int = 0, max_tokens: int = 4) -> Problem:
    """The same with weights between."""
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    return Problem(TableModel.random(seed, width=4), Soft(constraint), max_tokens)


PATTERNS = ["a*b", "ab|ba|b", "(ab)*", "[ab]*", "a{1,2}b?"]
