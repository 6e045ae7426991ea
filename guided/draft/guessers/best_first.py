"""`BestFirst`: one tree from the guesses of several guessers, the likeliest nodes first.

A node's value is the probability that it is accepted: its parent's value times the chance that the guess is right.
That chance is measured: of all guesses of the same guesser and level made at places that the text went through, the
share that came true.  Nodes are added by value until the budget is used or none is worth a place in the pass.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from guided.draft.drafter import Context, Observed, needs_of
from guided.draft.guessers.guess import Guesser, Path
from guided.draft.proposal import Group, Proposal
from guided.infer.chance import Chance
from guided.lm.model import Needs

__all__ = ["BestFirst"]

PRIOR = 4.0
"""Guesses that a guesser's own expectation weighs as much as."""
MEMORY = 200.0
"""Guesses after which old ones count half: texts of a batch are alike, and drafts should follow when they change."""


class BestFirst:
    """A draft by guessers; each place asks all of them, and a token has the best of their chances.

    ``floor`` is the least value of a node: what scoring one more position costs, as a part of a forward pass.  Guesses
    that the constraint forbids are left out and count for nothing.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.BestFirst(draft.PromptLookup(), draft.NGrams())
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=16)
    >>> counts.passes < 16
    True
    """

    def __init__(self, *guessers: Guesser, floor: float = 0.03) -> None:
        self.guessers = guessers
        self.floor = floor
        self._right: dict[tuple[int, int], list[float]] = {}
        """By guesser and level: guesses that came true, and all."""
        self._guessed: dict[int, dict[int, dict[int, set[tuple[int, int]]]]] = {}
        """By row and node of its last proposal (-1: the text): each token guessed, and by whom."""

    @property
    def needs(self) -> Needs:
        """What its guessers need of the target."""
        return needs_of(*self.guessers)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """One tree a row; nothing is drawn at random."""
        return [self._tree(context) for context in contexts]

    def _tree(self, context: Context) -> Proposal:
        proposal = Proposal()
        guessed = self._guessed[context.row] = {}
        heap: list[tuple[float, int, int, int, Path]] = []
        order = 0

        def ask(node: int, path: Path, value: float) -> None:
            nonlocal order
            said: dict[int, set[tuple[int, int]]] = {}
            best: dict[int, float] = {}
            for number, guesser in enumerate(self.guessers):
                for guess in guesser.guess(path):
                    said.setdefault(guess.token, set()).add((number, guess.level))
                    share = self._share(number, guess.level, guess.share)
                    best[guess.token] = max(best.get(guess.token, 0.0), share)
            guessed[node] = said
            for token, share in best.items():
                if value * share < self.floor:
                    continue
                following = path.then(token)
                if following is None:
                    said.pop(token)
                    continue
                order += 1
                heapq.heappush(heap, (-value * share, order, node, token, following))

        ask(-1, Path(context, (), context.state), 1.0)
        while heap and len(proposal) < context.budget:
            value, _, parent, token, path = heapq.heappop(heap)
            (node,) = proposal.add(parent, Group((token,)))
            constraint = context.constraint
            if len(path.drafted) < context.depth and (constraint is None or path.state != constraint.end):
                ask(node, path, -value)
        return proposal

    def _share(self, guesser: int, level: int, expected: float) -> float:
        right, all_ = self._right.get((guesser, level), (0.0, 0.0))
        return (right + PRIOR * expected) / (all_ + PRIOR)

    def learn(self, observed: Sequence[Observed]) -> None:
        """Count who was right wherever the text went, and let the guessers learn."""
        self.count(observed)
        for guesser in self.guessers:
            guesser.learn(observed)

    def count(self, observed: Sequence[Observed]) -> None:
        """Count who was right wherever the text went."""
        for seen in observed:
            guessed = self._guessed.pop(seen.context.row, {})
            for node, truth in zip((-1, *seen.accepted), seen.emitted, strict=False):
                asked: dict[tuple[int, int], bool] = {}
                for token, by in guessed.get(node, {}).items():
                    for key in by:
                        asked[key] = asked.get(key, False) or token == truth
                for key, right in asked.items():
                    counts = self._right.setdefault(key, [0.0, 0.0])
                    counts[0] += right
                    counts[1] += 1.0
                    if counts[1] > MEMORY:
                        counts[0] /= 2
                        counts[1] /= 2

    def leave(self, rows: Sequence[int]) -> None:
        """Forget their last guesses, and pass it on."""
        self.forget(rows)
        for guesser in self.guessers:
            guesser.leave(rows)

    def forget(self, rows: Sequence[int]) -> None:
        """Forget the last guesses of rows."""
        for row in rows:
            self._guessed.pop(row, None)
