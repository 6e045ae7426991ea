"""`ForcedBytes`: the bytes that the constraint leaves no choice about, in the likeliest tokens.

Where only one *token* may come, decoding takes it without asking the model.  Forced *bytes* can be split into tokens in
several ways, and the model has a say in which: committing to one would change the law, so it is a draft.
"""

from __future__ import annotations

from collections.abc import Sequence

from guided.constraint.protocol import Constrains
from guided.draft.drafter import Observed
from guided.draft.guessers.by_state import ByState
from guided.draft.guessers.guess import Guess, Path
from guided.vocab import Vocabulary
from guided.vocab.encoding import Encode, longest_first

__all__ = ["ForcedBytes"]

VOCABULARIES = 4


class ForcedBytes:
    """Guesses the first token of what must come; ``encode`` splits bytes into tokens, by default the longest first.

    >>> import numpy as np
    >>> import guided
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> words = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
    >>> language = guided.compile(guided.regex("abab"), words)
    >>> drafter = draft.BestFirst(draft.ForcedBytes())
    >>> _, counts = draft.speculate(0, model, [[0]], [language], drafter, greedy=True)
    >>> counts.accepted > 0  # "ab" has two spellings, but what it says is certain
    True
    """

    def __init__(self, encode: Encode | None = None) -> None:
        self._encode = encode
        self._known = ByState[Guess | None]()
        self._encoders: dict[int, tuple[Vocabulary, Encode]] = {}

    def guess(self, path: Path) -> Sequence[Guess]:
        """One token, where any byte is forced."""
        constraint = path.context.constraint
        if constraint is None:
            return ()
        states = self._known.of(constraint)
        if path.state not in states:
            states[path.state] = self._first(constraint, path.state)
        guess = states[path.state]
        return () if guess is None else (guess,)

    def _first(self, constraint: Constrains, state: int) -> Guess | None:
        forced = constraint.forced(state)
        if not forced:
            return None
        tokens = (self._encode or self._longest_first(constraint.vocabulary))(forced)
        # The last token may well be a longer one that begins in the forced bytes and goes on after them.
        return Guess(tokens[0], 0.9 if len(tokens) > 1 else 0.5, min(len(tokens), 2)) if tokens else None

    def _longest_first(self, vocabulary: Vocabulary) -> Encode:
        found = self._encoders.get(id(vocabulary))
        if found is None:
            if len(self._encoders) >= VOCABULARIES:
                self._encoders.clear()
            found = self._encoders[id(vocabulary)] = (vocabulary, longest_first(vocabulary))
        return found[1]

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing: the grammar does not change."""

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""
