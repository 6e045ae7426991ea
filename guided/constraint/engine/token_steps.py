"""The states after all tokens from one state: a walk of `guided.kernels.tokens.all_tokens`, and what it remembers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["TokenSteps"]

_SLOTS = 1 << 16
"""Steps by a byte that are remembered, 1 MB: a walk through all of Llama 3's tokens from inside a JSON string comes to
fewer different ones."""


class TokenSteps:
    """The walks of one machine, under its lock."""

    def __init__(self, longest: int, size: int) -> None:
        """For a vocabulary of ``size`` ids whose longest token has ``longest`` bytes."""
        self._keys, self._steps = np.zeros(_SLOTS, np.int64), np.zeros(_SLOTS, np.int64)
        self._path, self._ends = np.zeros(longest + 2, np.int64), np.zeros(longest + 2, np.int64)
        self._tokens, self._states = np.zeros(size, np.int64), np.zeros(size, np.int64)

    def after(
        self, run: Callable[..., int], lexed: bool, root: int, state: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tokens that are read in a state, and the states after them; ``run`` runs a kernel of the machine."""
        from guided.kernels.tokens.all_tokens import advance_all

        memory = (self._keys, self._steps, self._path, self._ends, self._tokens, self._states)
        n = run(advance_all, lexed, root, state, *memory)
        return self._tokens[:n].copy(), self._states[:n].copy()
