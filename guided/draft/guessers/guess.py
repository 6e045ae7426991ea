"""Guesses at one next token: what drafts without a model are made of.

A guesser says what may come at one place, and how sure it is; `guided.draft.BestFirst` puts the guesses of several
guessers together into one tree.  Nothing here draws at random, so every guess is a draft by rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from guided.draft.drafter import Context, Observed
from guided.draft.masks import after

__all__ = ["Guess", "Guesser", "Path"]


@dataclass(frozen=True)
class Path:
    """A place in a draft: a row's text and some drafted tokens after it.

    >>> from guided.draft import Context, Path
    >>> place = Path(Context(0, [0, 1, 2], 1, None, 1, budget=4), drafted=(0,), state=1)
    >>> place.last(2), place.then(1).drafted
    ((2, 0), (0, 1))
    """

    context: Context
    drafted: tuple[int, ...]
    state: int
    """The constraint's state there; not 0."""

    def last(self, n: int) -> tuple[int, ...]:
        """The last ``n`` tokens, or all where there are fewer."""
        missing = n - len(self.drafted)
        if missing <= 0:
            return self.drafted[len(self.drafted) - n :]
        tokens = self.context.tokens
        return (*tokens[max(0, len(tokens) - missing) :], *self.drafted)

    def then(self, token: int) -> Path | None:
        """The place after one more token; None where the constraint forbids it."""
        state = after(self.context.constraint, self.state, token)
        return None if state == 0 else Path(self.context, (*self.drafted, token), state)


@dataclass(frozen=True)
class Guess:
    """A token that may come next.

    >>> from guided.draft import Guess
    >>> best = max([Guess(5, share=0.2), Guess(7, share=0.7)], key=lambda guess: guess.share)
    >>> best.token
    7
    """

    token: int
    share: float
    """How often the guesser expects to be right, until experience says so."""
    level: int = 0
    """What kind of guess it is: those of one level are expected to be right equally often."""


class Guesser(Protocol):
    """Guesses next tokens, and learns from what the model made of them.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> class NextNumber:
    ...     def guess(self, path):
    ...         return [draft.Guess((path.last(1)[0] + 1) % 3, share=0.9)]
    ...     def learn(self, observed):
    ...         pass
    ...     def leave(self, rows):
    ...         pass
    >>> _, counts = draft.speculate(0, model, [[0]], [None], draft.BestFirst(NextNumber()), greedy=True, max_tokens=16)
    >>> counts.acceptance, counts.passes
    (1.0, 2)
    """

    def guess(self, path: Path) -> Sequence[Guess]:
        """What may come at a place, the best guess first; none where nothing comes to mind."""

    def learn(self, observed: Sequence[Observed]) -> None:
        """See what came of the last proposals."""

    def leave(self, rows: Sequence[int]) -> None:
        """Forget what was kept for rows that have ended."""
