"""What a running sampler tells its caller after each step: enough for a progress line, and for a replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from guided.infer.result import Cost

__all__ = ["Progress", "Step"]


@dataclass(frozen=True)
class Step:
    """One step of a population of sequences: every unfinished one has got a token, or died."""

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
