"""`TableDenoiser`: a denoiser that knows a joint distribution over whole canvases, for tests and enumerations.

Its scores at a position are the distribution's own conditional law given what is known, in closed form: what a trained
denoiser approximates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guided.diffusion.denoiser import Canvas, Noise, check_canvases
from guided.errors import GuidedError

__all__ = ["TableDenoiser"]


class TableDenoiser:
    """A masked denoiser given by the probabilities of all texts of one length, ``joint[t0, t1, ...]``.

    The mask is the id after the table's: tokens are ``0 .. joint.shape[0] - 1``.  The prompt changes nothing.  Known
    tokens of probability 0 together leave every token as likely.  Raises `GuidedError` for a table whose axes differ,
    or that holds no probability.

    >>> denoiser = TableDenoiser([[0.5, 0.0], [0.1, 0.4]])
    >>> np.exp(denoiser.scores([Canvas([1, 2], [True, False])])[0, 1].astype(float)).round(2).tolist()
    [0.2, 0.8, 0.0]
    """

    noise = Noise.MASKED
    pad_id = None
    window = None
    longest = None

    def __init__(self, joint: ArrayLike, eos_ids: Iterable[int] = ()) -> None:
        table = np.asarray(joint, np.float64)
        if table.ndim == 0 or len(set(table.shape)) > 1:
            raise GuidedError(f"the table's axes are {table.shape}", remedy="Give each position the same tokens.")
        if not (np.isfinite(table).all() and (table >= 0).all() and table.sum() > 0):
            raise GuidedError("the table holds no probabilities", remedy="Pass finite numbers from 0, not all 0.")
        self._joint = table / table.sum()
        self.width = table.shape[0] + 1
        self.mask_id = table.shape[0]
        self.eos_ids = frozenset(int(end) for end in eos_ids)
        self.calls = 0
        """Canvases scored so far."""

    @property
    def block(self) -> int:
        """The length of the table's texts."""
        return int(self._joint.ndim)

    def scores(self, canvases: Sequence[Canvas]) -> NDArray[np.float32]:
        """Logarithms of the conditional probabilities; see `Denoiser.scores`."""
        check_canvases(self, canvases)
        self.calls += len(canvases)
        found = np.full((len(canvases), self.block, self.width), -np.inf, np.float32)
        for row, canvas in enumerate(canvases):
            left = self._joint
            for place in np.flatnonzero(canvas.known).tolist():
                keep = np.zeros(self.mask_id)
                keep[canvas.tokens[place]] = 1.0
                left = left * keep.reshape([-1 if axis == place else 1 for axis in range(self.block)])
            if left.sum() == 0:
                left = np.ones_like(left)
            with np.errstate(divide="ignore"):
                for place in range(self.block):
                    rest = tuple(axis for axis in range(self.block) if axis != place)
                    found[row, place, : self.mask_id] = np.log(left.sum(rest) / left.sum())
        return found
