"""`Eagle`: drafts by heads that write features, in EAGLE-2's dynamic trees (Li et al., 2024, arXiv 2406.16858).

A level's nodes of the highest joint probability are expanded, by one pass of the head; in the end the nodes of the
highest joint probability are drafted, which is a tree, since no node is likelier than its parent.  Tokens are chosen by
rule among those that the row's constraint allows, so verification keeps the target's law.

Keys and values of the head are kept for the part of a row whose features the target has given; those of drafted tokens
are dropped after each draft.  Rows are drafted one after the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from guided.draft.drafter import Context, Observed
from guided.draft.heads.feature_heads import FeatureHead
from guided.draft.heads.from_heads import likeliest
from guided.draft.heads.row_features import Kept, RowFeatures
from guided.draft.proposal import Group, Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance
from guided.lm.model import Needs

__all__ = ["Eagle"]


@dataclass
class _Node:
    """A token that may be drafted."""

    token: int
    parent: int
    value: float
    state: int
    at: int = -1
    """The column of the head's keys at which it was read; -1: not read."""


class Eagle:
    """Drafts by EAGLE's heads and others that write features, such as modules for multi-token prediction.

    ``depth`` is the number of levels and ``top`` the number of nodes that are expanded in each, with so many children
    (EAGLE-2's 5 or 6 and 8 to 10).  What is accepted with a probability below ``floor``, by the head, is not drafted:
    what one more place of a pass and one more of the head cost, in tokens.  The head is not trained further.  Asks the
    target for the states of its prompts.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> prompts, texts = [[0]], [[1, 2, 0, 1, 2, 0, 1, 2]]
    >>> _ = torch.manual_seed(0)
    >>> head = draft.EagleHead(draft.BlockSizes(4, 8, 1, 1, 4), base)
    >>> examples, by = draft.feature_examples(model, prompts, texts), draft.DraftLoss.TOKENS
    >>> _ = draft.fit_features(head, examples, base.unembeddings, loss=by, epochs=15, batch=1, rate=0.3)
    >>> drafter = draft.Eagle(head, depth=3, top=2)
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=15)
    >>> counts.passes < 15
    True
    """

    reads_prompts = True

    def __init__(self, head: FeatureHead, *, depth: int = 6, top: int = 8, floor: float = 0.0) -> None:
        if depth < 1 or top < 1:
            raise GuidedError(
                f"a tree of {depth} levels of {top} nodes is none", remedy="Give one level and one node or more."
            )
        self.head = head.eval()
        self.depth = depth
        self.top = top
        self.floor = floor
        self.needs = Needs(hidden=True, blocks=head.blocks)
        self._features = RowFeatures(self.head.caches, self.head.embeddings.device)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """A dynamic tree a row; none where the target gave no features, as of rows not seen from the start."""
        with torch.inference_mode():
            return [self._tree(context) for context in contexts]

    def _tree(self, context: Context) -> Proposal:
        kept = self._features.complete(context)
        if kept is None:
            return Proposal()
        if kept.waiting:
            self._read(kept, context.tokens)
        assert kept.last is not None
        device = kept.last.device
        committed, output = kept.n_read, kept.last
        for n, token in enumerate(context.tokens[committed + 1 :]):
            # Forced since the model's last pass: the head goes on by its own features.
            seen = torch.ones((1, committed + n + 1), dtype=torch.bool, device=device)
            output = self._forward(kept, output, [token], [committed + n], seen)
        start = committed + context.n_unseen - 1
        nodes: list[_Node] = []
        level = self._children(context, nodes, -1, context.state, 1.0, self.head.logits(output[0, -1]), 0)
        outputs: dict[int, torch.Tensor] = {-1: output[:, -1:]}
        depth = min(self.depth, context.depth)
        for n in range(1, depth):
            best = heapq.nlargest(self.top, level, key=lambda node: (nodes[node].value, -node))
            # What is not among the best so far will not be drafted, and nothing after it: it need not be expanded.
            bound = max(self.floor, _bound(nodes, context.budget))
            best = sorted(one for one in best if nodes[one].value >= bound and not self._ends(context, nodes[one]))
            if not best:
                break
            features = torch.cat([outputs[nodes[node].parent] for node in best], dim=1)
            columns = len(kept.caches[0])
            mask = torch.zeros((len(best), columns + len(best)), dtype=torch.bool, device=device)
            mask[:, :start] = True
            for i, node in enumerate(best):
                nodes[node].at = columns + i
                above = node
                while above >= 0:
                    mask[i, nodes[above].at] = True
                    above = nodes[above].parent
            read = self._forward(
                kept, features, [nodes[node].token for node in best], [start + n - 1] * len(best), mask
            )
            logits = self.head.logits(read[0])
            level = []
            for i, node in enumerate(best):
                outputs[node] = read[:, i : i + 1]
                one = nodes[node]
                level += self._children(context, nodes, node, one.state, one.value, logits[i], n)
        for cache in kept.caches:
            cache.crop(committed)
        return _chosen(nodes, context.budget, self.floor)

    def _children(
        self, context: Context, nodes: list[_Node], parent: int, state: int, value: float, logits: torch.Tensor, n: int
    ) -> list[int]:
        """Enter the likeliest tokens after a node; their numbers."""
        first = len(nodes)
        for token, share in likeliest(logits, context, state, n, self.top):
            following = context.row_masks.advance(state, token)
            if following and token < context.width:
                nodes.append(_Node(token, parent, value * share, following))
        return list(range(first, len(nodes)))

    def _ends(self, context: Context, node: _Node) -> bool:
        return context.constraint is not None and node.state == context.constraint.end

    def _read(self, kept: Kept, tokens: Sequence[int]) -> None:
        """Let the head read features that have come, each with the token after it."""
        features = kept.taken()
        n, first = int(features.shape[0]), kept.n_read
        device = features.device
        columns = torch.arange(first + n, device=device)
        mask = columns[None] <= columns[first:, None]
        following = tokens[first + 1 : first + n + 1]
        kept.last = self._forward(kept, features[None], following, list(range(first, first + n)), mask)[:, -1:]
        kept.n_read += n

    def _forward(
        self, kept: Kept, features: torch.Tensor, tokens: Sequence[int], positions: Sequence[int], mask: torch.Tensor
    ) -> torch.Tensor:
        device = features.device
        after = torch.tensor([list(tokens)], dtype=torch.long, device=device)
        at = torch.tensor(list(positions), dtype=torch.long, device=device)
        found: torch.Tensor = self.head(features, after, at, mask, kept.caches)
        return found

    def learn(self, observed: Sequence[Observed]) -> None:
        """Keep the features of what the target has read and kept."""
        self._features.learn(observed)

    def leave(self, rows: Sequence[int]) -> None:
        """Forget rows that have ended."""
        self._features.leave(rows)


def _bound(nodes: Sequence[_Node], budget: int) -> float:
    """The value of the last node that would be drafted; 0 where there is room for more."""
    if len(nodes) < budget:
        return 0.0
    return heapq.nlargest(budget, (node.value for node in nodes))[-1]


def _chosen(nodes: Sequence[_Node], budget: int, floor: float) -> Proposal:
    """The nodes of the highest joint probability as a tree; of equal ones the earlier, so that parents come along."""
    best = sorted(heapq.nlargest(budget, range(len(nodes)), key=lambda node: (nodes[node].value, -node)))
    children: dict[int, list[int]] = {}
    for node in (node for node in best if nodes[node].value >= floor):
        children.setdefault(nodes[node].parent, []).append(node)
    proposal = Proposal()
    places = {-1: -1}
    for parent, numbers in children.items():
        added = proposal.add(places[parent], Group(tuple(nodes[node].token for node in numbers)))
        places.update(zip(numbers, added, strict=True))
    return proposal
