"""`SchedulerLimits`: how much a scheduler takes at once."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SchedulerLimits"]


@dataclass(frozen=True)
class SchedulerLimits:
    """How much a scheduler takes at once; what goes beyond waits, and what finds no room to wait is `Busy`."""

    rows: int = 64
    """Texts that grow at once."""
    cached_tokens: int = 1 << 17
    """Tokens for which keys and values are kept: prompts and ``max_new_tokens`` of all texts that grow at once."""
    waiting: int = 512
    """Jobs that wait."""
    job_tokens: int | None = None
    """Prompt and ``max_new_tokens`` of one job; None: what the model has positions for, or ``cached_tokens``."""
    seconds: float | None = 600.0
    """How long a job may take from its first token on; then its text is cut (`Reason.TIME`)."""
    alternatives: int = 20
    """Most alternatives that a job may ask for."""
    prompt_tokens: int | None = None
    """Tokens of prompts that are read between two tokens of everybody else; longer prompts are read in pieces.  None:
    128 on a processor, where that takes about as long as a token of 64 texts, and 2048 on an accelerator."""
    runs: int = 2
    """Functions that `Scheduler.run` runs at once."""
    waiting_runs: int = 32
