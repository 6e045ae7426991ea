"""`PromptLookup`: the text so far repeats itself, so what followed the same tokens before may follow again.

Saxena (2023); as in transformers: the last n tokens are looked for with the largest n first, and the earliest place is
taken.  What the constraint forbids is left out by whoever drafts, so copying stops by itself where it must.
"""

from __future__ import annotations

from collections.abc import Sequence

from guided.draft.drafter import Context, Observed
from guided.draft.guessers.guess import Guess, Path
from guided.draft.proposal import Proposal, chain
from guided.infer.chance import Chance

__all__ = ["PromptLookup"]

LATEST = 64
"""Added to the level of guesses from the latest place instead of the earliest."""


class _Places:
    """Where each n-gram of one growing text is followed by what: its earliest and its latest place."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.n_read = 0
        self.first: dict[tuple[int, ...], int] = {}
        self.latest: dict[tuple[int, ...], int] = {}

    def read(self, tokens: Sequence[int]) -> None:
        """Enter the n-grams in front of tokens that are new."""
        for at in range(max(1, self.n_read), len(tokens)):
            for n in range(1, min(self.longest, at) + 1):
                ngram = tuple(tokens[at - n : at])
                self.first.setdefault(ngram, at)
                self.latest[ngram] = at
        self.n_read = len(tokens)


class PromptLookup:
    """Copies what followed an earlier occurrence of the last tokens, in the prompt and in the text so far.

    ``longest`` is the most tokens that are compared; memory is ``longest`` entries for each token of the row.
    """

    def __init__(self, longest: int = 3) -> None:
        self.longest = longest
        self._places: dict[int, _Places] = {}

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """A chain from the earliest place, as long as the budget."""
        return [chain(self._copied(context)) for context in contexts]

    def _copied(self, context: Context) -> Sequence[int]:
        found = self._find(Path(context, (), context.state))
        if found is None:
            return ()
        at = self._read(context).first[found]
        return context.tokens[at : at + context.longest]

    def guess(self, path: Path) -> Sequence[Guess]:
        """The token at the earliest place, and the one at the latest where that is another."""
        found = self._find(path)
        if found is None:
            return ()
        places, tokens, n = self._places[path.context.row], path.context.tokens, len(found)
        share = n / (n + 2)
        first, latest = tokens[places.first[found]], tokens[places.latest[found]]
        guesses = [Guess(first, share, n)]
        if latest != first:
            guesses.append(Guess(latest, share / 2, LATEST + n))
        return guesses

    def _find(self, path: Path) -> tuple[int, ...] | None:
        places = self._read(path.context)
        last = path.last(self.longest)
        for n in range(len(last), 0, -1):
            ngram = last[len(last) - n :]
            if ngram in places.first:
                return ngram
        return None

    def _read(self, context: Context) -> _Places:
        places = self._places.get(context.row)
        if places is None or places.n_read > len(context.tokens):
            places = self._places[context.row] = _Places(self.longest)
        if places.n_read < len(context.tokens):
            places.read(context.tokens)
        return places

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing: the text itself is read when a draft is wanted."""

    def leave(self, rows: Sequence[int]) -> None:
        """Forget the places."""
        for row in rows:
            self._places.pop(row, None)
