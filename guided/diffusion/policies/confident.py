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

    >>> import numpy as np
    >>> from guided import diffusion
    >>> joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # two positions that like to agree; the mask is id 2
    >>> denoiser = diffusion.TableDenoiser(joint)
    >>> def passes(steps):
    ...     how = diffusion.Denoising(diffusion.LowConfidence(steps))
    ...     return diffusion.denoise(denoiser, [diffusion.Job((), 2)], how)[0].passes
    >>> passes(1), passes(2)
    (1, 2)
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

    >>> import numpy as np
    >>> from guided.diffusion import View
    >>> from guided.diffusion import Threshold
    >>> shares = np.array([[0.95, 0.05], [0.8, 0.2], [0.6, 0.4], [0.55, 0.45]])  # four positions, two tokens
    >>> view = View(shares, shares.argmax(1), np.array([True] * 4), step=0)
    >>> Threshold(0.75).commits(view).tolist(), Threshold(0.99).commits(view).tolist()  # at least the best one
    ([True, True, False, False], [True, False, False, False])
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

    >>> import numpy as np
    >>> from guided.diffusion import View
    >>> from guided.diffusion import EntropyBound
    >>> shares = np.array([[0.95, 0.05], [0.8, 0.2], [0.6, 0.4], [0.55, 0.45]])  # four positions, two tokens
    >>> view = View(shares, shares.argmax(1), np.array([True] * 4), step=0)
    >>> [int(EntropyBound(bound).commits(view).sum()) for bound in (0.1, 0.3, 2.0)]
    [1, 2, 4]
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
