"""`TriGrams`: the model's probabilities after each pair of tokens, and a tree grown by simulated walks.

ADED (2407.12021): a table of tri-grams, from a corpus if there is one, is kept up to date with the probabilities of
the model; drafts are several walks from the root, each choosing by probability and by how seldom a branch was walked
(PUCT), merged where they begin alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch

from guided.draft.drafter import Context, Observed
from guided.draft.guessers.guess import Guess, Path
from guided.draft.guessers.successors import Successors
from guided.draft.proposal import Group, Proposal
from guided.infer.chance import Chance

__all__ = ["TriGrams"]

KEPT = 6
"""Successors kept of each pair."""
EXPLORATION = 1.0
"""The weight of seldom walked branches in the choice of a walk; fades by the root of the walks made."""


class TriGrams:
    """Guesses the third token of a tri-gram; ``corpus`` are token sequences to begin with."""

    def __init__(self, corpus: Iterable[Sequence[int]] = (), *, limit: int = 1 << 17) -> None:
        self._table = Successors[tuple[int, int]](limit)
        for tokens in corpus:
            for a, b, c in zip(tokens, tokens[1:], tokens[2:], strict=False):
                self._table.add((a, b), c)

    def guess(self, path: Path) -> Sequence[Guess]:
        """The known successors of the last two tokens by their probability."""
        pair = path.last(2)
        if len(pair) < 2:
            return ()
        found = self._table.after((pair[0], pair[1]))
        total = sum(found.values())
        best = sorted(found.items(), key=lambda item: -item[1])
        return [
            Guess(token, weight / total, 8 * rank + min(int(8 * weight / total), 7))
            for rank, (token, weight) in enumerate(best[:KEPT])
        ]

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """Walks until the tree has as many nodes as the budget, or walks add nothing."""
        return [self._tree(context) for context in contexts]

    def _tree(self, context: Context) -> Proposal:
        proposal = Proposal()
        places = {-1: Path(context, (), context.state)}
        known: dict[int, list[tuple[Guess, Path]]] = {}
        visits: dict[int, int] = {}
        for walk in range(4 * context.budget):
            node = -1
            while len(proposal) < context.budget:
                if node not in known:
                    path = places[node]
                    guesses = self.guess(path) if len(path.drafted) < context.depth else ()
                    known[node] = [(g, after) for g in guesses if (after := path.then(g.token)) is not None]
                if not known[node]:
                    break
                bonus = EXPLORATION * math.sqrt(visits.get(node, 0) + 1) / math.sqrt(walk + 1)
                guess, after = max(known[node], key=lambda item: self._worth(proposal, node, item[0], visits, bonus))
                visits[node] = visits.get(node, 0) + 1
                known_child = proposal.child(node, guess.token)
                if known_child is None:
                    (child,) = proposal.add(node, Group((guess.token,)))
                    places[child] = after
                    break
                node = known_child
            if len(proposal) >= context.budget or not known[-1]:
                break
        return proposal

    def _worth(self, proposal: Proposal, node: int, guess: Guess, visits: dict[int, int], bonus: float) -> float:
        child = proposal.child(node, guess.token)
        walked = 0 if child is None else 1 + visits.get(child, 0)
        return guess.share * (1.0 + bonus) / (1.0 + walked)

    def learn(self, observed: Sequence[Observed]) -> None:
        """Replace what is known of each pair that was fed by the model's own probabilities."""
        for seen in observed:
            tree, width = seen.tree, int(seen.logits.shape[1])
            if not tree.tokens:
                continue
            best = torch.topk(torch.softmax(seen.logits.float(), dim=1), min(KEPT, width), dim=1)
            before = seen.before
            for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents, strict=True)):
                first = tree.tokens[parent] if parent >= 0 else before
                if first is not None:
                    weights = dict(zip(best.indices[node].tolist(), best.values[node].tolist(), strict=True))
                    self._table.put((first, token), weights)

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""
