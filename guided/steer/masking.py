"""`Masked`: a hard constraint as a steerer, so that what comes after it in a stack sees allowed tokens only.

Sets of likely tokens, candidates and nuclei of later steerers are then of allowed tokens, as they are in transformers
with the grammar's processor first.  The searches of this package that look beyond one token mask with it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from guided.constraint.protocol import Constrains
from guided.errors import VocabularyError
from guided.lm.model import LanguageModel
from guided.steer.declaration import Declaration, Seen, Tokens, checked_number

__all__ = ["Masked"]

_REMEMBERED = 65_536
"""Texts whose states are kept; those of the rows at hand are a few, one longer at each step."""
_DEAD = 0


@dataclass(frozen=True, eq=False)
class Masked:
    """Excludes the tokens after which no whole text of ``constraint`` fits within ``max_tokens``; the end counts.

    A masked model is renormalised: to what weighs texts by it, such as `guided.infer.smc`, it is a model that follows
    the constraint token by token, and not ``model(x)`` on the language.  After tokens that no text of the language
    begins with (of a draft, say) nothing is excluded: they were.
    """

    constraint: Constrains
    max_tokens: int
    _states: dict[Tokens, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        checked_number("max_tokens", self.max_tokens, least=1, of="Masked")

    def declare(self, model: LanguageModel) -> Declaration:
        """The text, and where the prompt ends; raises `VocabularyError` for a constraint over more ids."""
        self.check_width(model.width)
        return Declaration(text=True, prompt_end=True)

    def check_width(self, width: int) -> None:
        """Raise `VocabularyError` where no end of a text is among ``width`` ids."""
        if not any(end < width for end in self.constraint.vocabulary.eos_ids):
            raise VocabularyError(
                f"the model scores {width} ids, and the constraint's ends are {self.constraint.vocabulary.eos_ids}",
                where="Masked",
                remedy="Compile the constraint for the vocabulary of the model's tokenizer.",
            )

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The logits with the forbidden tokens at ``-inf``."""
        texts = [text[length:] for text, length in zip(seen.texts, seen.prompt_lengths, strict=True)]
        return self.excluded(logits, texts)

    def excluded(self, scores: torch.Tensor, texts: Sequence[Tokens]) -> torch.Tensor:
        """``[n, V]`` scores with ``-inf`` for what may not follow each text, prompts left out; a new tensor.

        Raises `LimitError` where the shortest text of the language is longer than ``max_tokens``.
        """
        vocabulary = self.constraint.vocabulary
        rows = np.zeros((len(texts), vocabulary.n_words), np.uint32)
        for row, text in zip(rows, texts, strict=True):
            state = self._state(tuple(text))
            if state == _DEAD:
                row[:] = ~np.uint32(0)
            else:
                self.constraint.fill_budget_mask(state, row, self.max_tokens - len(text))
        bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")[:, : scores.shape[1]]
        allowed = torch.zeros(scores.shape, dtype=torch.bool)
        allowed[:, : bits.shape[1]] = torch.from_numpy(bits.astype(np.bool_))
        return scores.masked_fill(~allowed.to(scores.device), float("-inf"))

    def _state(self, text: Tokens) -> int:
        """The constraint's state after a text; one step from the state of the text without its last token."""
        found = self._states.get(text)
        if found is not None:
            return found
        known = len(text) - 1
        while known > 0 and text[:known] not in self._states:
            known -= 1
        state = self._states[text[:known]] if known > 0 else self.constraint.start
        if len(self._states) >= _REMEMBERED:
            self._states.clear()
        for place in range(max(known, 0), len(text)):
            if state == _DEAD:
                break
            state = self.constraint.advance(state, text[place])
        self._states[text] = state
        return state
