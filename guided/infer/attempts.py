"""Samplers by repeated attempts from the prompt: what they learn, and the loop that keeps what ends in the language.

How one round of attempts is drawn is up to the sampler: `guided.infer.cars`, `guided.infer.asap`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.infer.exploration import Exploration
from guided.infer.potential import Potential
from guided.infer.result import Particle, Samples
from guided.infer.rounds import Round, RoundProgress
from guided.infer.visited import ROOT, Visited

__all__ = ["Attempt", "Learned", "keep", "require_boolean"]


@dataclass
class Learned:
    """What `cars` or `asap` knows of one model, prompt, constraint and limit of tokens; picklable, continued by a call.

    >>> learned = Learned()
    >>> learned.attempts, learned.log_bound
    (0, 0.0)
    """

    trie: Visited | None = None
    attempts: int = 0
    """Sequences begun so far."""
    log_kept: float = -math.inf
    """The logarithm of the sum over attempts that were kept of the bound at their time; over ``attempts``, an estimate
    of ``Z``."""
    problem: tuple[Any, ...] = field(default=())
    """What the trie is about, so that another problem is refused."""

    @property
    def log_bound(self) -> float:
        """The logarithm of an upper bound on ``Z``: the model's mass that no visited prefix excludes."""
        return 0.0 if self.trie is None else float(self.trie.log_value[ROOT])

    @property
    def log_ml(self) -> float:
        """The logarithm of an estimate of ``Z``; see `cars`."""
        return min(self.log_kept - math.log(self.attempts), 0.0) if self.attempts else -math.inf

    def begin(self, exploration: Exploration, how: str) -> None:
        """Take hold of an exploration's trie; raises `GuidedError` if what is here is about another problem."""
        problem = (how, exploration.prompt, exploration.max_tokens, exploration.vocabulary.digest)
        if self.trie is None:
            self.trie, self.problem = exploration.trie, problem
        elif self.problem != problem:
            raise GuidedError(
                "what was learned belongs to another prompt, vocabulary, sampler or limit of tokens",
                remedy="Pass it to calls with the same arguments only.",
            )


def require_boolean(potential: Potential[Any], name: str) -> None:
    """Raise `UnsupportedError` for a potential with weights between."""
    if not potential.boolean:
        raise UnsupportedError(
            f"{name} draws under constraints, and {potential!r} has other weights than 0 and 1",
            remedy="Use smc or mcmc for soft potentials, or declare the potential Boolean if it is.",
        )


@dataclass(frozen=True)
class Attempt:
    """One sequence drawn from the prompt: the node it reached, and the token that failed there, if one did."""

    node: int
    failed: int | None = None
    kept: bool = True


def keep(
    attempts: Callable[[int], list[Attempt]],
    exploration: Exploration,
    learned: Learned,
    n: int,
    batch: int,
    max_attempts: int,
    progress: RoundProgress | None,
) -> Samples:
    """Repeat rounds of ``attempts(k)`` until ``n`` are kept."""
    if n < 1:
        raise GuidedError(f"{n} samples are wanted", remedy="Ask for at least 1.")
    kept: list[Particle] = []
    tried = number = 0
    while len(kept) < n and tried < max_attempts:
        bound = learned.log_bound
        if bound == -math.inf:
            raise UnsatisfiableError(
                f"no text of at most {exploration.max_tokens} tokens is in the language and has a probability",
                where=f"after {learned.attempts} attempts",
                remedy="Raise max_tokens, or loosen the constraint.",
            )
        # As many as are likely to be needed, and never more than may be tried.
        rate = max(len(kept) / tried, 1 / batch) if tried else 1.0
        size = min(batch, math.ceil((n - len(kept)) / rate), max_attempts - tried)
        found = attempts(size)
        tried += size
        learned.attempts += size
        good = [attempt for attempt in found if attempt.kept]
        if good:
            learned.log_kept = float(np.logaddexp(learned.log_kept, bound + math.log(len(good))))
        kept += [exploration.particle(attempt.node) for attempt in good]
        number += 1
        if progress is not None:
            drawn = tuple(_particle(exploration, attempt) for attempt in found)
            progress(Round(number, drawn, min(len(kept), n), n, learned.log_bound, exploration.cost))
    if not kept:
        raise LimitError(
            f"none of {tried} attempts ended in the language",
            remedy="Raise max_attempts, let failures teach (Learning.MASKS), or use smc or mcmc.",
        )
    # Attempts of the last round that nobody asked for still count as kept: they are as good as the others.
    return Samples(
        particles=tuple(kept[:n]), acceptance=len(kept) / tried, log_ml=learned.log_ml, cost=exploration.cost
    )


def _particle(exploration: Exploration, attempt: Attempt) -> Particle:
    found = exploration.particle(attempt.node, logw=0.0 if attempt.kept else -math.inf, finished=attempt.failed is None)
    if attempt.failed is None or attempt.failed < 0:
        return found
    return Particle((*found.tokens, attempt.failed), found.data, found.logw, finished=False)
