"""What a running sampler tells its caller after each step: enough for a progress line, and for a replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from guided.infer.result import Cost

__all__ = ["Progress", "Step"]


@dataclass(frozen=True)
class Step:
    """One step of a population of sequences: every unfinished one has got a token, or died.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> found = infer.smc(0, model, [0], language, n=4, max_tokens=4,
    ...     progress=lambda step: print(step.number, step.tokens, round(step.ess, 1), step.finished))
    1 (0, 0, 0, 0) 4.0 0
    2 (1, 1, 1, 1) 4.0 0
    3 (2, 2, 2, 2) 4.0 4
    """

    number: int
    """Counted from 1; the length of the unfinished sequences, but where they grow by units and wait for each other."""
    limit: int
    """The longest that a sequence may be: the last number there can be, but with units."""
    tokens: tuple[int | None, ...]
    """The token that each particle got, before any resampling; None for one that had finished."""
    increments: tuple[float, ...]
    """What the token's draw added to each log weight; 0 for particles that had finished."""
    logw: tuple[float, ...]
    """The log weights after the step and before any resampling."""
    ess: float
    """Effective sample size of ``logw``."""
    ancestors: tuple[int, ...] | None
    """Where the population was resampled: new particle i continues old particle ``ancestors[i]``."""
    finished: int
    """How many particles have ended or died, after resampling."""
    cost: Cost
    """All that was asked for so far."""
    parents: tuple[int, ...] | None = None
    """Where the step began with copies: entry i of the tuples above continues old particle ``parents[i]``."""


Progress = Callable[[Step], None]
"""Called after each step; what it raises stops the sampler, whose last checkpoint stays valid."""
