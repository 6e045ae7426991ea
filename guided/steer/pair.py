"""`ModelPair`: two models that take turns at scoring tokens, as one; the first of a stack, for it is no steerer."""

from __future__ import annotations

from abc import abstractmethod

from guided.lm.model import LanguageModel
from guided.steer.fields import Checked

__all__ = ["ModelPair"]


class ModelPair(Checked):
    """What makes a `LanguageModel` of a small model and a large one; not lossless, whichever rule decides."""

    @abstractmethod
    def over(self, large: LanguageModel, *, same_tokenizer: bool = False) -> LanguageModel:
        """The two as one; raises `VocabularyError` where they do not score the same ids."""
