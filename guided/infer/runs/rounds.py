"""What samplers that work in rounds tell their caller after each: attempts from the prompt, or moves of chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from guided.infer.result import Cost, Particle

__all__ = ["Round", "RoundProgress"]


@dataclass(frozen=True)
class Round:
    """One round of sequences that were drawn side by side, before anything was learned from them.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> found = infer.rejection(0, model, [0], language, n=4, max_tokens=4, batch=16,
    ...     progress=lambda told: print(told.number, len(told.particles), told.kept, told.wanted))
    1 4 1 4
    2 12 2 4
    3 16 3 4
    4 11 4 4
    """

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
