"""`MaskCounts`: what the model wrote where the constraint allowed just these tokens, in whatever grammar that was.

Two places with equal masks are alike whatever schema they are from: between a name and its value, inside of a free
string, at the digits of a date.  So what was counted in one grammar speaks for a text in the next.  Where a mask was
never seen and allows a few tokens only, such as the parts of a member's name and their escapes, the guess is a long
token that did not lose before: under JSON's grammar, whose names may be spelled with escapes, hardly a byte is forced,
and the model takes the plain spelling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.draft.drafter import Observed
from guided.draft.guessers.by_state import ByState
from guided.draft.guessers.guess import Guess, Path
from guided.draft.guessers.successors import Successors
from guided.draft.masks import after

__all__ = ["MaskCounts"]

FEW = 32
"""Tokens of a mask that is small enough to guess at without having seen it."""
NAMED = 4
"""Guesses at one place from one count."""
LEAST = 0.04
"""The least share of a guess: `BestFirst` has no use for nodes of less."""
UNSEEN = 1 << 10
"""Added to the level of guesses at masks that were never seen."""
_ANY = -1
"""Stands for the last token where that does not matter."""


@dataclass(frozen=True)
class _Mask:
    """What one state allows."""

    number: int
    """Equal masks have equal numbers."""
    few: tuple[int, ...]
    """The tokens, where there are at most `FEW`."""


class MaskCounts:
    """Guesses by counts under the mask and the last token, and under the mask alone; stays warm from run to run.

    At most ``limit`` contexts are kept, those used last.  A guess costs one mask the first time that its state is met.

    >>> import numpy as np
    >>> import guided
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(9)[(tokens[-1] + 1) % 8], width=9, eos_ids=[8])  # abcdefghab...
    >>> letters = guided.Vocabulary.from_tokens([*(bytes([97 + i]) for i in range(8)), None], eos_ids=[8])
    >>> language = guided.compile(guided.regex("(a[bc]|c[de]|e[fg]|g[hb]){4}"), letters)
    >>> drafter = draft.BestFirst(draft.MaskCounts())
    >>> for _ in range(2):
    ...     texts, counts = draft.speculate(0, model, [[7]], [language], drafter, greedy=True)
    ...     print(texts[0].tokens, counts.passes)
    (0, 1, 2, 3, 4, 5, 6, 7, 8) 4
    (0, 1, 2, 3, 4, 5, 6, 7, 8) 2
    """

    def __init__(self, *, limit: int = 1 << 16) -> None:
        self._counts = Successors[tuple[int, int]](limit)
        self._masks = ByState[_Mask]()
        self._tried: dict[int, tuple[int, int]] = {}
        """For each token of small masks: how often it was written where it was allowed, and how often it was."""

    def guess(self, path: Path) -> Sequence[Guess]:
        """The tokens that came under this mask, by their shares, or the likeliest of a small mask."""
        constraint = path.context.constraint
        if constraint is None:
            return ()
        mask = self._mask(constraint, path.state)
        (last,) = path.last(1) or (_ANY,)
        found = [*self._counted((mask.number, last), 0), *self._counted((mask.number, _ANY), 1)]
        return found or self._unseen(mask, constraint)

    def _counted(self, key: tuple[int, int], kind: int) -> list[Guess]:
        counts = self._counts.after(key)
        total = sum(counts.values())
        seen = min(int(total).bit_length(), 5)
        best = sorted(counts.items(), key=lambda item: -item[1])[:NAMED]
        return [
            Guess(token, count / (total + 1), 64 * kind + 8 * seen + min(int(8 * count / total), 7))
            for token, count in best
            if count >= LEAST * total
        ]

    def _unseen(self, mask: _Mask, constraint: Constrains) -> list[Guess]:
        """Those that were written most of the times that they could be, and the longest of those never tried."""
        tokens = constraint.vocabulary.tokens
        ranked = sorted(mask.few, key=lambda token: (-self._won(token), -len(tokens[token] or b""), token))
        return [Guess(token, 0.6 / (rank + 1) ** 2, UNSEEN + rank) for rank, token in enumerate(ranked[:NAMED])]

    def _won(self, token: int) -> float:
        won, tried = self._tried.get(token, (0, 0))
        return (won + 1) / (tried + 2)

    def _mask(self, constraint: Constrains, state: int) -> _Mask:
        known = self._masks.of(constraint)
        found = known.get(state)
        if found is None:
            row = np.zeros(constraint.vocabulary.n_words, np.uint32)
            constraint.fill_mask(state, row)
            number = int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest(), "little")
            first = tokenset.first_ids(row, FEW + 1).tolist()
            found = known[state] = _Mask(number, tuple(first) if len(first) <= FEW else ())
        return found

    def learn(self, observed: Sequence[Observed]) -> None:
        """Count the emitted tokens, each under the mask that it came from."""
        for seen in observed:
            context = seen.context
            if context.constraint is None:
                continue
            state, before = context.state, len(context.tokens) - len(seen.emitted) - 1
            last = context.tokens[before] if before >= 0 else _ANY
            for token in seen.emitted:
                if not state:  # A particle may leave the grammar.
                    break
                mask = self._mask(context.constraint, state)
                self._counts.add((mask.number, last), token)
                self._counts.add((mask.number, _ANY), token)
                for other in mask.few:
                    won, tried = self._tried.get(other, (0, 0))
                    self._tried[other] = (won + (other == token), tried + 1)
                state = after(context.constraint, state, token)
                last = token

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""
