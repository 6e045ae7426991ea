"""`drawn`: the next token of rows that are drawn by their masked law as it is, by one call of a kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from guided.constraint.effects.shared_rows import KeptRow
from guided.server.scheduling.jobs import Job

__all__ = ["Chosen", "Refused", "drawn", "read"]


@dataclass(frozen=True)
class Chosen:
    """The next token of a row; see `guided.server.scheduling.events.Token`."""

    id: int
    logprob: float
    model_logprob: float
    removed: float
    alternatives: tuple[tuple[int, float, float, bool], ...] = ()
    """Ids with both log probabilities, and whether the mask has them."""


class Refused(str):
    """Why no token can be chosen in a row."""


def drawn(
    logits: torch.Tensor,
    masks: Sequence[KeptRow] | None,
    jobs: Sequence[Job],
    numbers: Sequence[float],
    shifts: Sequence[Mapping[int, float]] = (),
) -> list[Chosen | Refused]:
    """As `guided.server.scheduling.laws.choose`, for jobs without truncation and alternatives, on a processor."""
    from guided.kernels.masking.draws import draw_rows

    n, width = logits.shape
    if masks is None:
        table = np.zeros((n, 3), np.int64)
    else:
        table = np.array([(where, 1, row.size) for where, row in masks], np.int64)
    laws = np.array([(job.temperature, number) for job, number in zip(jobs, numbers, strict=True)], np.float64)
    starts = np.zeros(n + 1, np.int64)
    tokens, amounts = np.zeros(0, np.int64), np.zeros(0)
    if any(shifts):
        np.cumsum([len(shift) for shift in shifts], out=starts[1:])
        tokens = np.array([token for shift in shifts for token in shift], np.int64)
        amounts = np.array([amount for shift in shifts for amount in shift.values()], np.float64)
    found = np.zeros((n, 6))
    draw_rows(
        logits.contiguous().numpy(), table, laws, starts, tokens, amounts, np.empty((3, width)),
        np.empty(width, np.int64), found,
    )  # fmt: skip
    return [
        read(int(token), logprob, own, -math.expm1(min(kept - shifted, 0.0)) if kept > -math.inf else 1.0, norm, kept)
        for token, logprob, own, kept, norm, shifted in found.tolist()
    ]


def read(
    token: int,
    logprob: float,
    own: float,
    removed: float,
    norm: float,
    kept: float,
    alternatives: tuple[tuple[int, float, float, bool], ...] = (),
) -> Chosen | Refused:
    """What was found of a row; ``norm`` and ``kept`` are logarithms of what all scores and the allowed ones come to."""
    if not math.isfinite(norm):
        return Refused("the model's scores are not numbers")
    if kept == -math.inf:
        return Refused("the model gives no probability at all to what the constraint allows")
    return Chosen(token, min(logprob, 0.0), min(own, 0.0), removed, alternatives)
