"""Denoisers made of denoisers: their scores combined, position by position.

As `guided.steer` does for models of the next token.  What comes out is a `Denoiser`, so that every law, policy and
sampler takes it; known positions and ids that are never written stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.denoiser import Canvas, Denoiser, Noise
from guided.diffusion.law import log_softmax
from guided.errors import GuidedError

__all__ = ["Contrasted", "Guided"]


class _Wrapped:
    """All but the scores of another denoiser."""

    def __init__(self, denoiser: Denoiser) -> None:
        self.denoiser = denoiser
        self.width: int = denoiser.width
        self.mask_id: int | None = denoiser.mask_id
        self.noise: Noise = denoiser.noise
        self.eos_ids: frozenset[int] = denoiser.eos_ids
        self.pad_id: int | None = denoiser.pad_id
        self.block: int | None = denoiser.block
        self.longest: int | None = denoiser.longest


class Guided(_Wrapped):
    """Classifier-free guidance: ``log p = scale log p(x | prompt) + (1 - scale) log p(x | without)`` plus a constant.

    Equation 4 of "Simple Guidance Mechanisms for Discrete Diffusion Models" (arXiv 2412.10193), for each position.  A
    scale of 1 is the denoiser itself, 0 the one that reads ``without`` in the place of the prompt.  Two passes in one
    batch.  Raises `GuidedError` for a scale that is negative or no number.
    """

    def __init__(self, denoiser: Denoiser, scale: float, without: Sequence[int] = ()) -> None:
        super().__init__(denoiser)
        if not (math.isfinite(scale) and scale >= 0):
            raise GuidedError(f"the scale of guidance is {scale}", remedy="Pass a finite number from 0 on.")
        self.scale = scale
        self.without = tuple(without)

    def scores(self, canvases: Sequence[Canvas]) -> NDArray[np.float32]:
        """See `guided.diffusion.denoiser.Denoiser.scores`."""
        if self.scale == 1:
            return self.denoiser.scores(canvases)
        others = [Canvas(canvas.tokens, canvas.known, self.without) for canvas in canvases]
        found = self.denoiser.scores([*canvases, *others])
        rows = [_combined(found[i], found[len(canvases) + i], self.scale, 1 - self.scale) for i in range(len(canvases))]
        return np.stack(rows).astype(np.float32)


class Contrasted(_Wrapped):
    """Contrast with a weaker denoiser of the same ids: ``(1 + strength) log p - strength log p_weaker``.

    Only tokens of at least ``plausible`` times the likeliest one's probability are left, as in contrastive decoding
    (Li et al., arXiv 2210.15097, with the coefficients of O'Brien and Lewis, arXiv 2309.09117).  A strength of 0 with
    ``plausible=0`` is the denoiser itself.  Raises `GuidedError` for denoisers of other ids, and for numbers out of
    range.
    """

    def __init__(self, denoiser: Denoiser, weaker: Denoiser, strength: float = 0.5, plausible: float = 0.1) -> None:
        super().__init__(denoiser)
        if denoiser.width != weaker.width or denoiser.mask_id != weaker.mask_id:
            raise GuidedError(
                f"denoisers of {denoiser.width} and {weaker.width} ids, masks {denoiser.mask_id} and {weaker.mask_id}",
                remedy="Contrast denoisers of one tokenizer.",
            )
        if not (math.isfinite(strength) and strength >= 0 and 0 <= plausible <= 1):
            raise GuidedError(
                f"a strength of {strength} and {plausible} of the likeliest",
                remedy="Pass a strength from 0 on, and a share between 0 and 1.",
            )
        self.weaker, self.strength, self.plausible = weaker, strength, plausible

    def scores(self, canvases: Sequence[Canvas]) -> NDArray[np.float32]:
        """See `guided.diffusion.denoiser.Denoiser.scores`."""
        strong, weak = self.denoiser.scores(canvases), self.weaker.scores(canvases)
        rows = []
        for one, other in zip(strong, weak, strict=True):
            combined = _combined(one, other, 1 + self.strength, -self.strength)
            if self.plausible > 0:
                least = one.max(1, keepdims=True) + math.log(self.plausible)
                combined[one < least] = -np.inf
            rows.append(combined)
        return np.stack(rows).astype(np.float32)


def _combined(one: NDArray[np.float32], other: NDArray[np.float32], a: float, b: float) -> NDArray[np.float64]:
    """``a log p + b log q`` for each position; what ``one`` never writes is never written.

    Where only ``other`` gives a token no probability, its own does: a logarithm of 0 would be all that counts.
    """
    first, second = log_softmax(one), log_softmax(other)
    second = np.where(np.isfinite(second), second, first)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(first), a * first + b * second, -np.inf)
