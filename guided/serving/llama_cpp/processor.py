"""`LlamaCppProcessor`: a logits processor of llama-cpp-python for one text.

llama-cpp-python 0.3.36 calls processors with the ids so far and the logits in order of id, from inside a callback of
its first sampler.  Three traps, all of which would let any token through without a word: what a callback raises is
printed and forgotten; `create_completion` with ``logit_bias`` replaces the list of processors by what `list.extend`
returns, which is None; and with a draft model the ids are those of the draft to its end, whatever place is asked about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.errors import UnsupportedError
from guided.serving.continuation import Continuation

__all__ = ["LlamaCppProcessor", "Processors"]


class LlamaCppProcessor:
    """Keeps one text in its language: ``llama.generate(..., logits_processor=Processors([processor]))``.

    One object for one text.  ``most_tokens`` steers it to its end within that many tokens; pass the same number as
    ``max_tokens``.  The first call's ids are the prompt.  ``llama`` is asked whether it drafts, which is refused.

    Nothing is raised in a call, since nobody would see it: from an error on, only an end of text is allowed, and the
    error is in `error`.  `check` raises it.
    """

    def __init__(self, llama: Any, constraint: Constrains, most_tokens: int | None = None) -> None:
        if llama.draft_model is not None:
            raise UnsupportedError(
                "with a draft model llama-cpp-python does not say after which ids a token comes",
                remedy="Make the Llama without draft_model.",
            )
        self.error: Exception | None = None
        self._text = Continuation(constraint, most_tokens)

    def __call__(self, ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        """``scores`` with ``-inf`` for what the grammar forbids after ``ids``, as a new array."""
        width = len(scores)
        row = None
        if self.error is None:
            try:
                row = self._text.mask(ids, width)
            except Exception as error:
                self.error = error
        if row is None:
            row = self._text.end_mask(width)
        allowed = tokenset.flags(row, width)
        return np.where(allowed, scores, np.float32(-np.inf))

    def check(self) -> None:
        """Raise what went wrong in a call, if anything did."""
        if self.error is not None:
            raise self.error


class Processors(list[Any]):
    """A list of processors for llama-cpp-python, which `create_completion` does not lose under a ``logit_bias``."""

    def extend(self, more: Iterable[Any]) -> Processors:  # type: ignore[override]
        """Add processors; returns the list itself, which is what `create_completion` goes on with."""
        super().extend(more)
        return self
