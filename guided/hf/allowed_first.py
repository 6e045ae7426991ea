"""`AllowedFirst`: a steerer that takes out what a grammar forbids, so that those after it choose among allowed tokens.

For models steered ahead of a draft's verification.  In transformers' loop a `GuidedLogitsProcessor` in front of the
steering does the same: plausible sets and candidates are then of tokens that may come, and some are always left.
"""

from __future__ import annotations

import numpy as np
import torch

from guided.constraint.protocol import Constrains
from guided.errors import LimitError
from guided.hf.masking import mask_scores, n_words
from guided.hf.states import PrefixStates
from guided.lm.model import LanguageModel
from guided.steer.declaration import Declaration, Seen

__all__ = ["AllowedFirst"]


class AllowedFirst:
    """Masks each position by the state of its own text; positions that no text can reach are left as they are.

    ``max_tokens`` also takes out tokens after which the text could no longer end in time.
    """

    def __init__(self, constraint: Constrains, max_tokens: int) -> None:
        self.constraint = constraint
        self.max_tokens = max_tokens
        self._states = PrefixStates(constraint)

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, and where it begins."""
        return Declaration(text=True, prompt_end=True)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Minus infinity for what is forbidden."""
        own = self.constraint.vocabulary.n_words
        masks = np.zeros((len(logits), max(n_words(logits.shape[1]), own)), np.uint32)
        for row, text, n_prompt in zip(masks, seen.texts, seen.prompt_lengths, strict=True):
            emitted = np.array(text[n_prompt:], np.int64)
            state = self._states.after(emitted)
            try:
                if state == 0:
                    row[:] = ~np.uint32(0)
                else:
                    self.constraint.fill_budget_mask(state, row[:own], self.max_tokens - len(emitted))
            except LimitError:
                row[:] = ~np.uint32(0)
        return mask_scores(logits, masks[:, : n_words(logits.shape[1])])
