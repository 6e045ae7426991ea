"""What samplers that work in rounds tell their caller after each: attempts from the prompt, or moves of chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from guided.infer.result import Cost, Particle

__all__ = ["Round", "RoundProgress"]


@dataclass(frozen=True)
class Round:
    """One round of sequences that were drawn side by side, before anything was learned from them."""

    number: int
    """Counted from 1."""
    particles: tuple[Particle, ...]
    """What was drawn, failures included: those are not finished, end with the token that failed, and weigh nothing."""
    kept: int
    """Sequences kept so far, over all rounds."""
    wanted: int
    """Sequences that are wanted in all; for chains, the moves of each."""
    log_bound: float | None
    """The logarithm of the bound on ``Z`` that has been learned; None where nothing learns."""
    cost: Cost
    """All that was asked for so far."""


RoundProgress = Callable[[Round], None]
"""Called after each round; what it raises stops the sampler, and what was learned so far stays valid."""
