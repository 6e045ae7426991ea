"""Which positions a trajectory commits next, before anything is drawn for them: part of a denoiser's law over texts.

LLaDA's remasking draws first and keeps what came out likely; its law over texts has no weights that a step could know.
The orders here look at the canvas and at the model's distributions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.denoiser import Canvas
from guided.errors import GuidedError
from guided.infer.chance import Chance

__all__ = ["Confident", "Forward", "Order", "Shuffled"]


class Order(Protocol):
    """How trajectories go."""

    def places(self, canvas: Canvas, logp: NDArray[np.float64], chance: Chance) -> list[int]:
        """At least one unknown position of the canvas; ``logp`` are the model's distributions, without constraint."""


@dataclass(frozen=True)
class _Counted:
    each: int = 1
    """Positions that one step commits."""

    def __post_init__(self) -> None:
        if self.each < 1:
            raise GuidedError(f"{self.each} positions a step", remedy="Commit at least one.")


@dataclass(frozen=True)
class Forward(_Counted):
    """From the first position on."""

    def places(self, canvas: Canvas, logp: NDArray[np.float64], chance: Chance) -> list[int]:
        """The first unknown positions."""
        return _unknown(canvas)[: self.each]


@dataclass(frozen=True)
class Shuffled(_Counted):
    """In random order: the law that masked denoisers are trained for (MDLM, arXiv 2406.07524)."""

    def places(self, canvas: Canvas, logp: NDArray[np.float64], chance: Chance) -> list[int]:
        """Unknown positions, each as likely."""
        left = _unknown(canvas)
        return sorted(left.pop(chance.index(np.ones(len(left)))) for _ in range(min(self.each, len(left))))


@dataclass(frozen=True)
class Confident(_Counted):
    """Where the model is surest first: by the probability of the likeliest token."""

    def places(self, canvas: Canvas, logp: NDArray[np.float64], chance: Chance) -> list[int]:
        """The surest unknown positions, the first of equals."""
        best = logp.max(1)
        return sorted(sorted(_unknown(canvas), key=lambda place: (-best[place], place))[: self.each])


def _unknown(canvas: Canvas) -> list[int]:
    found: list[int] = np.flatnonzero(~canvas.known).tolist()
    return found
