"""`Recycling`: the model's own best tokens after each token, as it last gave them, drafted as a fixed tree.

Token Recycling (Luo et al., 2024, arXiv 2408.08696): every forward pass says what the model holds likely after each
token that it was fed, rejected drafts included; the best few are kept in an adjacency matrix over the vocabulary, and a
draft follows it from the last token.  It needs neither training nor a corpus, and 32 bytes for each id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from guided.draft.drafter import Context, Observed
from guided.draft.guessers.guess import Guess, Path
from guided.draft.proposal import Group, Proposal
from guided.infer.chance import Chance

__all__ = ["TEMPLATE", "Recycling", "template_nodes"]

N = TypeVar("N", bound=np.generic)

KEPT = 8
"""Successors kept of each token; the template's root has as many children."""

TEMPLATE = {
    "": 8,
    "0": 8, "1": 4, "2": 3, "3": 2, "4": 1, "5": 1, "6": 1, "7": 1,
    "00": 8, "01": 3, "02": 2, "03": 1, "04": 1, "05": 1, "06": 1, "07": 1, "10": 2, "11": 1, "20": 1, "30": 1,
    "40": 1, "50": 1,
    "000": 5, "001": 2, "002": 1, "003": 1, "004": 1, "010": 1, "020": 1, "100": 1, "200": 1, "300": 1,
    "0000": 3, "0001": 1, "0002": 1, "0010": 1, "0100": 1, "1000": 1,
    "00000": 2, "00010": 1,
}  # fmt: skip
"""How many children each node of the paper's static tree has; a node is named by the ranks on the way to it."""


def template_nodes(template: dict[str, int] = TEMPLATE) -> list[tuple[int, ...]]:
    """The nodes of a template as ranks on the way to each, parents first and likelier ones before others.

    Likelier: the sum of ``rank + 1`` along the way is less.

    >>> nodes = template_nodes()
    >>> len(nodes), [sum(len(node) == depth for node in nodes) for depth in range(1, 7)]
    (80, [8, 21, 25, 15, 8, 3])
    """
    nodes = [(*map(int, parent), rank) for parent, n in template.items() for rank in range(n)]
    return sorted(nodes, key=lambda node: (sum(node) + len(node), len(node), node))


class Recycling:
    """Follows the adjacency matrix by a static tree; stays warm from one run to the next.

    A row of the matrix is filled when its token is fed to the model; ranks count successors that the row's constraint
    allows at that place.
    """

    def __init__(self, template: dict[str, int] = TEMPLATE) -> None:
        self._nodes = template_nodes(template)
        self._successors: NDArray[np.int32] = np.zeros((0, KEPT), np.int32)
        self._known: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The template's first nodes as far as the budget goes."""
        return [self._tree(context) for context in contexts]

    def _tree(self, context: Context) -> Proposal:
        proposal = Proposal()
        places: dict[tuple[int, ...], tuple[int, Path]] = {(): (-1, Path(context, (), context.state))}
        allowed: dict[tuple[int, ...], list[tuple[int, Path]]] = {}
        for ranks in self._nodes:
            if len(proposal) >= context.budget:
                break
            above = ranks[:-1]
            if above not in places or len(above) >= context.depth:
                continue
            node, path = places[above]
            if above not in allowed:
                allowed[above] = [(t, p) for t in self._after(path) if (p := path.then(t)) is not None]
            if ranks[-1] < len(allowed[above]):
                token, following = allowed[above][ranks[-1]]
                (child,) = proposal.add(node, Group((token,)))
                places[ranks] = (child, following)
        return proposal

    def guess(self, path: Path) -> Sequence[Guess]:
        """The successors of the last token, by rank."""
        return [Guess(token, 0.5 / (rank + 1) ** 1.5, rank) for rank, token in enumerate(self._after(path))]

    def _after(self, path: Path) -> list[int]:
        (last,) = path.last(1)
        if last >= self._known.size or not self._known[last]:
            return []
        found: list[int] = self._successors[last].tolist()
        return found

    def learn(self, observed: Sequence[Observed]) -> None:
        """Remember the best successors of every token that was fed, accepted or not; the last word counts."""
        for seen in observed:
            width = int(seen.logits.shape[1])
            if self._known.size < width:
                self._successors = _grown(self._successors, width)
                self._known = _grown(self._known, width)
            if seen.fed:
                best = torch.topk(seen.logits, min(KEPT, width), dim=1).indices.cpu().numpy()
                fed = np.asarray(seen.fed)
                self._successors[fed, : best.shape[1]] = best
                self._successors[fed, best.shape[1] :] = best[:, :1]
                self._known[fed] = True

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""


def _grown(array: NDArray[N], length: int) -> NDArray[N]:
    larger = np.zeros((length, *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger
