"""Policies that look at more than a position's own confidence: its neighbours, earlier steps, what would be learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.policies.policy import View, check_share, most_confident
from guided.errors import GuidedError

__all__ = ["Coherence", "Exploration", "LocalDeterminism"]


@dataclass(frozen=True)
class LocalDeterminism:
    """Confident positions are anchors; within ``radius`` of one a lower confidence is enough.

    After "Accelerating Diffusion LLM Inference via Local Determinism Propagation" (LocalLeap, 2025): what is near
    a token that is sure is soon sure too.

    >>> import numpy as np
    >>> from guided.diffusion import View
    >>> from guided.diffusion import LocalDeterminism
    >>> shares = np.array([[0.95, 0.05], [0.8, 0.2], [0.6, 0.4], [0.55, 0.45]])  # four positions, two tokens
    >>> view = View(shares, shares.argmax(1), np.array([True] * 4), step=0)
    >>> LocalDeterminism(anchor=0.9, least=0.75, radius=1).commits(view).tolist()  # the anchor and its neighbour
    [True, True, False, False]
    """

    anchor: float = 0.9
    least: float = 0.75
    radius: int = 4
    memory = 0

    def __post_init__(self) -> None:
        check_share("anchor", self.anchor)
        check_share("least", self.least)
        if self.radius < 0:
            raise GuidedError(f"radius is {self.radius}", remedy="It must be 0 or more.")

    def commits(self, view: View) -> NDArray[np.bool_]:
        """Anchors and what is near them."""
        anchors = view.open & (view.confidence >= self.anchor)
        near = np.convolve(anchors, np.ones(2 * self.radius + 1), "full")[self.radius : self.radius + len(anchors)] > 0
        chosen: NDArray[np.bool_] = anchors | (view.open & near & (view.confidence >= self.least))
        return chosen | most_confident(view.confidence, view.open, 1)


@dataclass(frozen=True)
class Coherence:
    """Confidence is that of the proposed token on average over the last ``memory`` steps and this one.

    The average over steps is one over contexts that were partly known, so a token that only one of them makes likely
    waits.  After "Beyond Confidence: Adaptive and Coherent Decoding for Diffusion Language Models"
    (2025); its budget, which follows the agreement of the steps, is here the number of positions at or above ``least``.

    >>> import numpy as np
    >>> from guided.diffusion import View
    >>> from guided.diffusion import Coherence
    >>> shares = np.array([[0.95, 0.05], [0.8, 0.2], [0.6, 0.4], [0.55, 0.45]])  # four positions, two tokens
    >>> view = View(shares, shares.argmax(1), np.array([True] * 4), step=0)
    >>> wavering = View(shares[::-1], shares.argmax(1), np.array([True] * 4), step=0)  # a step ago it was otherwise
    >>> now = View(shares, shares.argmax(1), np.array([True] * 4), step=1, before=(wavering,))
    >>> Coherence(least=0.75).commits(view).tolist(), Coherence(least=0.75).commits(now).tolist()
    ([True, True, False, False], [True, False, False, True])
    """

    least: float = 0.8
    memory: int = 2

    def __post_init__(self) -> None:
        check_share("least", self.least)
        if self.memory < 0:
            raise GuidedError(f"memory is {self.memory}", remedy="It must be 0 or more.")

    def commits(self, view: View) -> NDArray[np.bool_]:
        """The positions that several steps agree on."""
        places = np.arange(len(view.proposed))
        said = [view.confidence] + [old.probabilities[places, view.proposed] for old in view.before]
        average = np.mean(said, axis=0)
        agreed: NDArray[np.bool_] = view.open & (average >= self.least)
        return agreed | most_confident(average, view.open, 1)


@dataclass(frozen=True)
class Exploration:
    """Confident positions, and one of which the model knows little: what it turns out to be tells most of the rest.

    Confident tokens carry few bits, and a text has so many, so a decoder that only commits those needs many rounds
    ("From Bits to Rounds: Parallel Decoding with Exploration for Diffusion Language Models", 2025).  Explored is
    the position of greatest entropy of which the proposed token has at least ``floor``.

    >>> import numpy as np
    >>> from guided.diffusion import View
    >>> from guided.diffusion import Exploration
    >>> shares = np.array([[0.95, 0.05], [0.8, 0.2], [0.6, 0.4], [0.55, 0.45]])  # four positions, two tokens
    >>> view = View(shares, shares.argmax(1), np.array([True] * 4), step=0)
    >>> Exploration(least=0.9, floor=0.5).commits(view).tolist()  # the sure one, and the one that would tell most
    [True, False, False, True]
    """

    least: float = 0.9
    floor: float = 0.4
    memory = 0

    def __post_init__(self) -> None:
        check_share("least", self.least)
        check_share("floor", self.floor)

    def commits(self, view: View) -> NDArray[np.bool_]:
        """The confident positions and the one that tells most."""
        sure = view.open & (view.confidence >= self.least)
        chosen = sure | most_confident(view.confidence, view.open, 1)
        return chosen | most_confident(view.entropy, view.open & ~chosen & (view.confidence >= self.floor), 1)
