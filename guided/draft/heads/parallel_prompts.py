"""`ParallelPrompts`: drafts by trained prompt tokens that the target reads behind every node of the tree (PPD).

Parallel prompt decoding (Chen et al., 2024, arXiv 2405.18628): what the target says after the j-th prompt token behind
a token stands for the token j + 1 places on.  So one pass verifies candidates and makes the next ones, and the model
alone drafts.  Prompt tokens behind a node are of use where that node is the last one accepted; of a pass's places,
candidates and prompt tokens get those that promise the most tokens in this round and the next (`prompted_tree`): what
the paper calls a dynamic sparse tree, here by the measured accuracies.  Reconstructed from the paper's text; its
ensembles of several embeddings for one prompt token are left out.

Training and the model that reads prompt tokens: `guided.hf.prompt_tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

import torch

from guided.draft.drafter import Context, Observed
from guided.draft.heads.from_heads import RANKS, UNCALIBRATED, RankedTree
from guided.draft.heads.head_tree import best_nodes
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance

__all__ = ["ParallelPrompts", "PromptedTree", "prompted_tree"]


@dataclass(frozen=True)
class PromptedTree:
    """Candidates and the prompt tokens behind them, for a pass of so many places.

    >>> from guided.draft import prompted_tree
    >>> prompted_tree([[0.5, 0.25], [0.4, 0.2]], 2, 4).prompted  # behind the text, and behind its likeliest next token
    {(0,): 1, (): 1}
    """

    nodes: tuple[tuple[int, ...], ...]
    """Candidates as ranks on the way to each; parents come before children."""
    prompted: dict[tuple[int, ...], int]
    """How many prompt tokens stand behind a candidate, or behind the text, ``()``."""
    expected: float
    """Drafted tokens that are accepted in this round, and in the next by the likeliest candidates alone."""


def prompted_tree(accuracies: Sequence[Sequence[float]], known: int, places: int, skipped: int = 0) -> PromptedTree:
    """The tree of at most so many ``places`` of which the most is expected.

    ``accuracies[j][rank]`` is how often the token of that rank after the prompt token j + 1 comes true.  ``known`` is
    how many of the last pass's prompt tokens still say something, ``skipped`` how many do not, since what they stood
    for was forced.  As if they erred independently.

    >>> from guided.draft import prompted_tree
    >>> tree = prompted_tree([[0.5, 0.25], [0.4, 0.2]], 2, 4)
    >>> tree.nodes, round(tree.expected, 3)
    (((0,), (1,)), 1.125)
    """
    here = [tuple(each) for each in accuracies[skipped : skipped + known]]
    chains = list(accumulate((max(each, default=0.0) for each in accuracies), mul))
    every = best_nodes(here, places)
    best = PromptedTree((), {}, -1.0)
    for n in range(len(every) + 1):
        nodes = every[:n]
        values: dict[tuple[int, ...], float] = {(): 1.0}
        for ranks in nodes:
            values[ranks] = values[ranks[:-1]] * here[len(ranks) - 1][ranks[-1]]
        last = dict(values)
        for ranks in nodes:
            last[ranks[:-1]] -= values[ranks]
        gains = sorted(
            ((max(0.0, share) * gain, j, ranks) for ranks, share in last.items() for j, gain in enumerate(chains)),
            key=lambda each: (-each[0], each[1], each[2]),
        )[: places - n]
        expected = sum(values.values()) - 1.0 + sum(gain for gain, _, _ in gains)
        if expected > best.expected:
            prompted: dict[tuple[int, ...], int] = {}
            for _, _, ranks in gains:
                prompted[ranks] = prompted.get(ranks, 0) + 1
            best = PromptedTree(tuple(nodes), prompted, expected)
    return best


class ParallelPrompts:
    """Drafts with the target's own prompt tokens; nothing for a target without (`Abilities.prompt_tokens`).

    ``accuracies`` are those that `guided.hf.prompt_tokens.PromptTokens` measures, one row for each prompt token.  A
    policy's number counts candidates and prompt tokens together.  Raises `GuidedError` without prompt tokens.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> def counting(tokens):  # 0 1 2 0 1 2 ..., and prompt tokens, 4 and 5, that have learned it
    ...     return 4 * np.eye(4)[(next(t for t in reversed(tokens) if t < 4) + 1 + sum(t >= 4 for t in tokens)) % 3]
    >>> model = TableModel(counting, width=4, eos_ids=[3], prompt_tokens=2)
    >>> drafter = draft.ParallelPrompts([[0.9], [0.9]])
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=15)
    >>> counts.passes
    6
    """

    def __init__(self, accuracies: Sequence[Sequence[float]]) -> None:
        if not accuracies or not all(accuracies):
            raise GuidedError("there are no prompt tokens to draft with", remedy="Give accuracies of one or more.")
        self.accuracies = tuple(tuple(each) for each in accuracies)
        self._trees: dict[tuple[int, int, int], PromptedTree] = {}
        self._said: dict[int, tuple[int, torch.Tensor]] = {}
        """By row: the length of the text that was read with prompt tokens behind it, and what was said after these."""

    @classmethod
    def uncalibrated(cls, n: int) -> ParallelPrompts:
        """With ``n`` prompt tokens that say nothing of how often they are right: half the time, later ones alike."""
        return cls([[UNCALIBRATED / 2**rank for rank in range(RANKS)]] * n)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """Candidates from what was said behind the last accepted token, and prompt tokens behind them."""
        return [self._tree(context) for context in contexts]

    def _tree(self, context: Context) -> Proposal:
        length, said = self._said.get(context.row, (-1, torch.zeros(0)))
        skipped = context.n_unseen - 1
        fits = length + context.n_unseen == len(context.tokens)
        known = max(0, min(len(said) - skipped, context.depth)) if fits else 0
        key = (known, context.budget, skipped)
        if key not in self._trees:
            self._trees[key] = prompted_tree(self.accuracies, known, context.budget, skipped)
        tree = self._trees[key]
        grown = RankedTree(context, tree.nodes)
        while level := grown.level():
            for ranks in level:
                grown.grow(ranks, said[skipped + len(ranks)])
        for ranks, n in tree.prompted.items():
            node = grown.node(ranks)
            if node is not None:
                grown.proposal.prompted[node] = n
        return grown.proposal

    def learn(self, observed: Sequence[Observed]) -> None:
        """Keep what was said behind the last accepted token."""
        for seen in observed:
            context = seen.context
            said = seen.prompted.get(seen.accepted[-1] if seen.accepted else -1)
            if said is None:
                self._said.pop(context.row, None)
            else:
                read = len(context.tokens) - len(seen.emitted) + len(seen.accepted)
                self._said[context.row] = (read, said)

    def leave(self, rows: Sequence[int]) -> None:
        """Forget rows that have ended."""
        for row in rows:
            self._said.pop(row, None)
