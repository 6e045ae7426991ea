"""Which positions are decoded next: blocks of one length, or blocks that end where a part of the text ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.policies.policy import check_share
from guided.errors import GuidedError

__all__ = ["AdaptiveBlocks", "Blocks", "FixedBlocks"]


class Blocks(Protocol):
    """Cuts the canvas into blocks, from left to right, each when the one before is finished.

    >>> import numpy as np
    >>> from guided import diffusion
    >>> class Halves:
    ...     def end(self, start, probabilities):
    ...         return max(start + 1, (start + len(probabilities)) // 2)
    >>> blocks: diffusion.Blocks = Halves()
    >>> how = diffusion.Denoising(blocks=blocks)
    >>> denoiser = diffusion.TableDenoiser(np.ones((2, 2, 2)) + np.eye(2))
    >>> len(diffusion.denoise(denoiser, [diffusion.Job((), 3)], how)[0].tokens)
    3
    """

    def end(self, start: int, probabilities: NDArray[np.float64]) -> int:
        """Where the block from ``start`` ends, ``start < end <= L``, by the laws ``[L, width]`` at that moment."""


@dataclass(frozen=True)
class FixedBlocks:
    """Blocks of ``length`` positions; None: the whole canvas is one (LLaDA's semi-autoregressive remasking).

    >>> import numpy as np
    >>> from guided.diffusion import FixedBlocks
    >>> shares = np.full((6, 3), 1 / 3)
    >>> [FixedBlocks(4).end(start, shares) for start in (0, 4)], FixedBlocks().end(0, shares)
    ([4, 6], 6)
    """

    length: int | None = None

    def __post_init__(self) -> None:
        if self.length is not None and self.length < 1:
            raise GuidedError(f"blocks of {self.length} positions", remedy="Ask for at least one.")

    def end(self, start: int, probabilities: NDArray[np.float64]) -> int:
        """The block's end."""
        return len(probabilities) if self.length is None else min(len(probabilities), start + self.length)


@dataclass(frozen=True)
class AdaptiveBlocks:
    """A block ends after the delimiter that is surest among its next ``length`` positions, if one has ``least``.

    AdaBlock-dLLM (2025): blocks that follow the text's own parts commit neither too early
    what depends on the next part, nor too late what is sure.  ``delimiters`` are token ids, such as those of commas and
    line ends.

    >>> import numpy as np
    >>> from guided.diffusion import AdaptiveBlocks
    >>> shares = np.full((6, 3), 1 / 3)
    >>> shares[3] = [0.1, 0.1, 0.8]  # a comma (2) is sure to stand there
    >>> AdaptiveBlocks(frozenset({2}), length=6).end(0, shares)  # the block ends behind it
    4
    """

    delimiters: frozenset[int]
    length: int = 32
    least: float = 0.3

    def __post_init__(self) -> None:
        check_share("least", self.least)
        object.__setattr__(self, "delimiters", frozenset(self.delimiters))
        if self.length < 1 or not self.delimiters or min(self.delimiters) < 0:
            raise GuidedError(
                f"blocks of {self.length} positions that end at ids {sorted(self.delimiters)}",
                remedy="Pass a length of at least one, and at least one id.",
            )

    def end(self, start: int, probabilities: NDArray[np.float64]) -> int:
        """The block's end."""
        last = min(len(probabilities), start + self.length)
        ids = [token for token in sorted(self.delimiters) if token < probabilities.shape[1]]
        sure = probabilities[start:last][:, ids].max(1, initial=0.0)
        best = int(sure.argmax())
        return start + best + 1 if sure[best] >= self.least else last
