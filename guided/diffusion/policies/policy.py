"""What a policy is: `View`, what it sees of a step; `Policy`, which positions it commits.

A policy is a pure function of what it sees, so the same one decodes with and without a constraint, many texts share it,
and a run may ask it twice about one step.  No policy knows a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from guided.errors import GuidedError

__all__ = ["Policy", "View", "check_share", "most_confident"]

Flags = NDArray[np.bool_]
Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class View:
    """One step: the law of each position, and the tokens proposed.

    >>> import numpy as np
    >>> from guided.diffusion import View
    >>> shares = np.array([[0.95, 0.05], [0.8, 0.2], [0.6, 0.4], [0.55, 0.45]])  # four positions, two tokens
    >>> view = View(shares, shares.argmax(1), np.array([True] * 4), step=0)
    >>> view.n_open, view.confidence.tolist(), view.entropy.round(2).tolist()
    (4, [0.95, 0.8, 0.6, 0.55], [0.2, 0.5, 0.67, 0.69])
    """

    probabilities: NDArray[np.float64]
    """``[L, width]``: the model's, or under a constraint the marginals of whole texts, where these are nearly exact."""
    proposed: NDArray[np.int64]
    """``[L]``: the tokens that commits write; under a constraint together a text of its language."""
    open: Flags
    """``[L]``: the positions of the present block that are not known."""
    step: int
    """How many steps this block has had."""
    before: tuple[View, ...] = ()
    """The views of the block's last steps, the latest last; their own ``before`` is empty."""

    @property
    def n_open(self) -> int:
        """How many positions are left in the block."""
        return int(self.open.sum())

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """``[L]``: the probability of the proposed token."""
        found: NDArray[np.float64] = self.probabilities[np.arange(len(self.proposed)), self.proposed]
        return found

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """``[L]``, in nats."""
        found: NDArray[np.float64] = -(self.probabilities * np.log(np.maximum(self.probabilities, 1e-300))).sum(1)
        return found


class Policy(Protocol):
    """Which open positions of a step get their proposed token.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> class LeftToRight:
    ...     memory = 0
    ...     def commits(self, view):
    ...         return np.arange(len(view.open)) == view.open.argmax()
    >>> policy: diffusion.Policy = LeftToRight()
    >>> denoiser = diffusion.TableDenoiser(np.array([[0.4, 0.1], [0.1, 0.4]]))
    >>> diffusion.denoise(denoiser, [diffusion.Job((), 2)], diffusion.Denoising(policy))[0].passes
    2
    """

    @property
    def memory(self) -> int:
        """How many views of earlier steps it reads."""

    def commits(self, view: View) -> Flags:
        """``bool[L]``, True at open positions only, at least one of them: every step gets on."""


def most_confident(scores: NDArray[np.float64], among: Flags, n: int) -> Flags:
    """The ``n`` best of some positions, all of them if they are fewer; of equal scores the leftmost."""
    chosen = np.zeros(len(among), bool)
    places = np.flatnonzero(among)
    chosen[places[np.argsort(-scores[places], kind="stable")[:n]]] = True
    return chosen


def check_share(name: str, value: float) -> None:
    """Raise `GuidedError` for a probability outside [0, 1]."""
    if not 0 <= value <= 1:
        raise GuidedError(f"{name} is {value}", remedy="It must be from 0 to 1.")
