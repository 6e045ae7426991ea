"""`Continuation`: the masks of one text, for engines that hand over all ids so far, the prompt's among them.

MLX-LM, llama-cpp-python and the processors of other engines are called with ids and scores and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.prefixes import PrefixStates
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, VocabularyError

__all__ = ["Continuation"]


class Continuation:
    """One text under a constraint, behind a prompt; what it gives is a function of the ids.

    ``prompt_length`` is how many of the ids are the prompt's; None: those of the first call.  With ``most_tokens`` the
    text, its end-of-text token included, is whole within that many tokens; raises `guided.LimitError` where none fits.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([b"yes", b"no", b"y", None], eos_ids=[3])
    >>> text = Continuation(guided.compile(guided.choice(["yes", "no"]), vocabulary))
    >>> text.mask([2, 2], 4).tolist(), text.mask([2, 2, 1], 4).tolist()
    ([3], [8])
    """

    def __init__(
        self, constraint: Constrains, most_tokens: int | None = None, prompt_length: int | None = None
    ) -> None:
        self.constraint = constraint
        self.most_tokens = most_tokens
        self.prompt_length = prompt_length
        self._states = PrefixStates(constraint)
        self._row = np.empty(constraint.vocabulary.n_words, np.uint32)
        if most_tokens is not None:
            constraint.fill_budget_mask(constraint.start, self._row, most_tokens)

    def mask(self, ids: Any, width: int) -> NDArray[np.uint32]:
        """What may come after ``ids``, ``uint32[words]`` for ``width`` scores; ids beyond the vocabulary may not.

        Raises `GuidedError` where the ids are none that this could have allowed, such as those of another text.
        Raises `VocabularyError` where the model scores fewer ids than can be asked for.
        """
        tokens = np.asarray(ids, np.int64).reshape(-1)
        if self.prompt_length is None:
            self.prompt_length = len(tokens)
        generated = tokens[self.prompt_length :]
        state = self._states.after(generated)
        if not state or len(tokens) < self.prompt_length:
            raise GuidedError(
                "these ids do not continue the text: its grammar does not allow them",
                remedy="Take a new processor for each text, and no other that forces tokens.",
            )
        row = np.zeros(tokenset.n_words(width), np.uint32)
        own = self.constraint.vocabulary.n_words
        self._fill(state, len(generated))
        row[:own] = self._row[: len(row)]
        if self._row[len(row) :].any() or (width % 32 and own >= len(row) and int(row[-1]) >> (width % 32)):
            raise VocabularyError(
                f"the model scores {width} ids, and the grammar asks for one beyond them",
                remedy="Use the tokenizer that belongs to this model.",
            )
        return row

    def end_mask(self, width: int) -> NDArray[np.uint32]:
        """Only end-of-text ids: what is left where no mask can be made."""
        ends = [token for token in self.constraint.vocabulary.eos_ids if token < width]
        return tokenset.of_ids(ends, tokenset.n_words(width))

    def _fill(self, state: int, n_tokens: int) -> None:
        left = None if self.most_tokens is None else self.most_tokens - n_tokens
        if left is None:
            self.constraint.fill_mask(state, self._row)
        elif left > 0 and state != self.constraint.end:
            self.constraint.fill_budget_mask(state, self._row, left)
        else:
            # Engines ask once more behind the last token, before they look at it.
            self.constraint.fill_mask(self.constraint.end, self._row)
