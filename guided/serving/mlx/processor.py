"""`MlxProcessor`: a logits processor of MLX-LM for one text.

MLX-LM 0.32.2 calls processors with the ids so far (the prompt's first, and behind them those generated, drafts among
them) and the logits of one row, ``[1, width]``; before it looks whether a token ended the text, it asks once more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from guided.constraint.protocol import Constrains
from guided.serving.continuation import Continuation
from guided.vocab import Vocabulary, vocabulary_of

__all__ = ["MlxProcessor", "vocabulary_of_mlx"]


def vocabulary_of_mlx(tokenizer: Any) -> Vocabulary:
    """The vocabulary of a tokenizer as `mlx_lm.load` gives it, with all ids that end a text there."""
    inner = getattr(tokenizer, "_tokenizer", tokenizer)
    return vocabulary_of(inner, getattr(tokenizer, "eos_token_ids", None))


class MlxProcessor:
    """Keeps one text in its language: ``mlx_lm.generate(..., logits_processors=[MlxProcessor(constraint)])``.

    One object for one text; in a batch, one for each row.  ``most_tokens`` steers it to its end within that many
    tokens; pass the same number as ``max_tokens``.  The first call's ids are the prompt, unless ``prompt_length`` says
    otherwise.
    """

    def __init__(
        self, constraint: Constrains, most_tokens: int | None = None, *, prompt_length: int | None = None
    ) -> None:
        import mlx.core as mx

        self._text = Continuation(constraint, most_tokens, prompt_length)
        self._mx = mx
        self._shifts = mx.arange(32, dtype=mx.uint32)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """``logits`` (``[1, width]``) with ``-inf`` for what the grammar forbids after ``tokens``."""
        mx = self._mx
        width = logits.shape[-1]
        row = mx.array(self._text.mask(np.asarray(tokens), width))
        # A bit a token goes to the device, and is spread out there.
        allowed = ((row[:, None] >> self._shifts) & 1).reshape(-1)[:width] != 0
        return mx.where(allowed, logits, mx.array(-mx.inf, logits.dtype))
