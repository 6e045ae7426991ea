"""`ModelPair` and `PairedModel`: two models that score tokens in turns, as one; first in a stack, and no steerer."""

from __future__ import annotations

from abc import abstractmethod

from guided.lm.model import Calls, LanguageModel
from guided.steer.fields import Checked

__all__ = ["ModelPair", "PairedModel"]


class ModelPair(Checked):
    """What makes a `LanguageModel` of a small model and a large one; not lossless, whichever rule decides.

    >>> from guided.lm import TableModel
    >>> from guided.steer import EntropyAdaptive, FastAndSlow, ModelPair
    >>> small, large = (TableModel.of({}, otherwise=[0.5, 0.5]) for _ in range(2))
    >>> pairs: list[ModelPair] = [FastAndSlow(small), EntropyAdaptive(small, threshold=0.8)]
    >>> [pair.over(large).width for pair in pairs]
    [2, 2]
    """

    @abstractmethod
    def over(self, large: LanguageModel, *, same_tokenizer: bool = False) -> LanguageModel:
        """The two as one; raises `VocabularyError` where they do not score the same ids."""


class PairedModel:
    """What a small and a large model say of themselves together; ``can`` and ``start`` are the rule's own."""

    def __init__(self, large: LanguageModel, small: LanguageModel) -> None:
        self.large = large
        self.small = small
        self.width = min(large.width, small.width)
        self.eos_ids = large.eos_ids

    @property
    def tokenizer(self) -> object | None:
        """The large model's tokenizer, where it has one."""
        return getattr(self.large, "tokenizer", None)

    @property
    def calls(self) -> Calls:
        """What both models have computed so far."""
        one, two = self.large.calls, self.small.calls
        return Calls(one.passes + two.passes, one.rows + two.rows, one.positions + two.positions, one.moved + two.moved)
