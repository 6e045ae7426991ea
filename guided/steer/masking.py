"""`Masked`: a hard constraint as a steerer, so that what comes after it in a stack sees allowed tokens only.

Sets of likely tokens, candidates and nuclei of later steerers are then of allowed tokens, as they are in transformers
with the grammar's processor first.  The searches of this package that look beyond one token mask with it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.errors import LimitError, VocabularyError
from guided.lm.model import LanguageModel
from guided.steer.declaration import Declaration, Seen, Tokens
from guided.steer.fields import Checked, Count

__all__ = ["Masked", "StatesOfTexts", "mask_and_ends", "only_allowed"]

_REMEMBERED = 1 << 20
"""Tokens in the texts whose states are kept: 8 MB.  A text that grows by one token a step leaves all its beginnings, so
one of 4,000 tokens fills this eight times on its way, and is then read again from its start."""
_DEAD = 0


@dataclass(frozen=True, eq=False)
class Masked(Checked):
    """Excludes the tokens after which no whole text of ``constraint`` fits within ``max_tokens``; the end counts.

    A masked model is renormalised: to what weighs texts by it, such as `guided.infer.smc`, it is a model that follows
    the constraint token by token, and not ``model(x)`` on the language.  After tokens that no text of the language, or
    none that ends in time, begins with (of a draft, say) nothing is excluded: they were.

    >>> import guided
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Masked, Stack
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> rows = Stack([Masked(language, max_tokens=3)]).over(model).start([[0]])
    >>> rows.last.logits.softmax(-1).numpy().round(2).tolist()
    [[0.67, 0.33, 0.0]]
    >>> rows.extend([[0]])[0].logits.softmax(-1).numpy().round(2).tolist()  # after "a"
    [[0.0, 1.0, 0.0]]
    """

    constraint: Constrains
    max_tokens: Count
    _memo: StatesOfTexts = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_memo", StatesOfTexts(self.constraint))

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
            state = self._memo.after(tuple(text))
            try:
                if state == _DEAD:
                    row[:] = ~np.uint32(0)
                else:
                    self.constraint.fill_budget_mask(state, row, self.max_tokens - len(text))
            except LimitError:
                if not text:
                    raise
                row[:] = ~np.uint32(0)
        return only_allowed(scores, rows)


def only_allowed(scores: torch.Tensor, rows: NDArray[np.uint32]) -> torch.Tensor:
    """``[n, V]`` scores with ``-inf`` where the bit of packed masks ``[n, words]`` is 0; a new tensor."""
    flags = tokenset.flags(rows)[:, : scores.shape[1]]
    allowed = torch.zeros(scores.shape, dtype=torch.bool)
    allowed[:, : flags.shape[1]] = torch.from_numpy(flags)
    return scores.masked_fill(~allowed.to(scores.device), float("-inf"))


def mask_and_ends(
    model: LanguageModel, constraint: Constrains | None, max_tokens: int
) -> tuple[Masked | None, frozenset[int]]:
    """What a search over a model masks with, None without a constraint, and the ids that end its texts.

    Raises `VocabularyError` for a constraint over more ids than the model scores.
    """
    if constraint is None:
        return None, model.eos_ids
    masked = Masked(constraint, max_tokens)
    masked.check_width(model.width)
    return masked, model.eos_ids | set(constraint.vocabulary.eos_ids)


class StatesOfTexts:
    """A bounded memo of a constraint's states; what is forgotten is only slower.  For any number of threads."""

    def __init__(self, constraint: Constrains) -> None:
        self._constraint = constraint
        self._states: dict[Tokens, int] = {}
        self._size = 0

    def after(self, text: Tokens) -> int:
        """The state after a text; one step from the state of the text without its last token, if that is known."""
        states = self._states
        found = states.get(text)
        if found is not None:
            return found
        known = len(text)
        while known > 0 and found is None:
            known -= 1
            found = states.get(text[:known]) if known else self._constraint.start
        state = self._constraint.start if found is None else found
        for token in text[known:]:
            if state == _DEAD:
                break
            state = self._constraint.advance(state, token)
        if self._size > _REMEMBERED:
            # Other threads go on with the dictionary that they have.
            states = self._states = {}
            self._size = 0
        states[text] = state
        self._size += len(text)
        return state
