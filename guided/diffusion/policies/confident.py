"""Policies by confidence alone: a number of positions a step, all above a threshold, a bound on entropy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.policies.policy import View, check_share, most_confident
from guided.errors import GuidedError

__all__ = ["EntropyBound", "LowConfidence", "Threshold"]


@dataclass(frozen=True)
class LowConfidence:
    """A block in ``steps`` steps: each commits the most confident positions, as many as keep the steps even.

    What LLaDA calls low-confidence remasking (Nie et al. 2025, arXiv 2502.09992): all positions are
    predicted, and those of low confidence are masked again.  With one step all positions are committed at once.
    """

    steps: int = 16
    memory = 0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise GuidedError(f"a block in {self.steps} steps", remedy="Ask for at least one.")

    def commits(self, view: View) -> NDArray[np.bool_]:
        """The most confident positions."""
        left = max(1, self.steps - view.step)
        return most_confident(view.confidence, view.open, -(-view.n_open // left))


@dataclass(frozen=True)
class Threshold:
    """All positions whose confidence is at least ``least``, or the most confident one.

    Fast-dLLM (Wu et al. 2025, arXiv 2505.22618) and Dimple's confident decoding.  With 1.0 one position a
    step is committed, and those that are certain.
    """

    least: float = 0.9
    memory = 0

    def __post_init__(self) -> None:
        check_share("least", self.least)

    def commits(self, view: View) -> NDArray[np.bool_]:
        """The confident positions."""
        return (view.open & (view.confidence >= self.least)) | most_confident(view.confidence, view.open, 1)


@dataclass(frozen=True)
class EntropyBound:
    """The positions of lowest entropy whose entropies, the greatest left out, sum to ``bound`` nats at most.

    Their sum bounds what the positions say about each other (arXiv 2505.24857); DiffusionGemma's
    own sampler.
    """

    bound: float = 0.1
    memory = 0

    def __post_init__(self) -> None:
        if not self.bound >= 0:
            raise GuidedError(f"bound is {self.bound}", remedy="It must be 0 or more.")

    def commits(self, view: View) -> NDArray[np.bool_]:
        """The positions that say little about each other."""
        ordered = np.sort(view.entropy[view.open])
        n = int((np.cumsum(ordered) - ordered <= self.bound).sum())
        return most_confident(-view.entropy, view.open, max(1, n))
