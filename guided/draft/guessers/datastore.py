"""`Datastore`: drafts from a collection of texts: what follows the longest suffix of the text that occurs in it.

As REST (He et al., 2024) does; the index is `guided.monitor.fm_index.FmIndex`, a few bytes a token, so that every
length of suffix is found in time linear in that length and continuations come with exact counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from guided.draft.drafter import Context, Observed
from guided.draft.guessers.best_first import BestFirst
from guided.draft.guessers.guess import Guess, Path
from guided.draft.proposal import Proposal
from guided.infer.chance import Chance
from guided.monitor.fm_index import FmIndex

__all__ = ["Datastore"]

BRANCHES = 4
"""Continuations that are guessed at one place."""


class Datastore:
    """Guesses what followed the longest matching suffix, by how often it did.

    ``longest`` is the most tokens that are matched.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Datastore.of([[0, 1, 2, 0, 1, 2, 0], [2, 2, 1]])
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=12)
    >>> counts.passes
    2
    """

    def __init__(self, index: FmIndex, longest: int = 16) -> None:
        self.index = index
        self.longest = longest
        self._own = BestFirst(self)

    @classmethod
    def of(cls, documents: Iterable[Sequence[int]], longest: int = 16) -> Datastore:
        """Index token sequences; raises as `FmIndex.build` does where there are none."""
        return cls(FmIndex.build(documents), longest)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The likeliest continuations first."""
        return self._own.draft(chance, contexts)

    def guess(self, path: Path) -> Sequence[Guess]:
        """The commonest tokens after the longest suffix that has any."""
        last = path.last(self.longest)
        low, high = 0, len(last)
        # A suffix of a suffix that occurs occurs too, so the longest one is found by halving.
        while low < high:
            middle = (low + high + 1) // 2
            if self._followed(last[len(last) - middle :]):
                low = middle
            else:
                high = middle - 1
        if not low:
            return ()
        tokens, counts = self.index.following(self.index.interval(last[len(last) - low :]))
        total = int(counts.sum())
        order = counts.argsort(kind="stable")[::-1][:BRANCHES].tolist()
        return [
            Guess(int(tokens[i]), float(counts[i]) / (total + 1), 8 * low + min(int(8 * counts[i] / total), 7))
            for i in order
        ]

    def _followed(self, ngram: Sequence[int]) -> bool:
        low, high = self.index.interval(ngram)
        return high > low and self.index.following((low, high))[0].size > 0

    def learn(self, observed: Sequence[Observed]) -> None:
        """The documents stay; how far to trust them is learned."""
        self._own.count(observed)

    def leave(self, rows: Sequence[int]) -> None:
        """Forget the last guesses."""
        self._own.forget(rows)
