"""Prefixes of a running population: a tree of tokens, and the model's scores after each distinct one, once.

Particles are nodes of the tree, so that none copies its tokens, and particles with equal tokens share one row of the
model's batch.  Knows neither weights nor potentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from guided.constraint.protocol import Constrains
from guided.infer.distribution import TokenDistribution, distributions_of
from guided.infer.result import Cost
from guided.lm.given import language_model
from guided.lm.model import LanguageModel

__all__ = ["Branches", "Drafts", "PrefixTree"]


class PrefixTree:
    """Token sequences as nodes: node 0 is empty, each other one a token after its parent.  Append-only."""

    def __init__(self) -> None:
        self.parents = [-1]
        self.last = [-1]
        self._children: dict[tuple[int, int], int] = {}

    def child(self, node: int, token: int) -> int:
        """The node of a token after a node; the same question has the same answer."""
        found = self._children.get((node, token))
        if found is None:
            found = self._children[node, token] = len(self.parents)
            self.parents.append(node)
            self.last.append(token)
        return found

    def insert(self, tokens: Iterable[int]) -> int:
        """The node of a whole sequence."""
        node = 0
        for token in tokens:
            node = self.child(node, token)
        return node

    def tokens(self, node: int) -> tuple[int, ...]:
        """The sequence of a node."""
        found = []
        while node:
            found.append(self.last[node])
            node = self.parents[node]
        return tuple(reversed(found))


class Branches:
    """The model's next-token distributions after some nodes of a tree, computed as one batch of distinct prefixes."""

    def __init__(self, model: LanguageModel, prompt: Sequence[int], tree: PrefixTree, size: int) -> None:
        self._model = model = language_model(model)
        self._tree = tree
        self._size = size
        self._passes, self._positions = model.calls.passes, model.calls.positions
        self._sequences = model.start([list(prompt)])
        self._rows = {0: 0}
        self._distributions = distributions_of(self._sequences.last.logits, size)

    def after(self, node: int) -> TokenDistribution:
        """The distribution after a node of the last `move`; the same object for the same node."""
        return self._distributions[self._rows[node]]

    def move(self, nodes: Iterable[int]) -> None:
        """Go on with these nodes, each a child of one that was there, or there already; the others leave the batch."""
        wanted = list(dict.fromkeys(nodes))
        if not wanted or wanted == list(self._rows):
            return
        staying = [node in self._rows for node in wanted]
        parents = [
            self._rows[node if stays else self._tree.parents[node]] for node, stays in zip(wanted, staying, strict=True)
        ]
        self._sequences.select(parents)
        if not all(staying):
            self._sequences.extend(
                [[] if stays else [self._tree.last[node]] for node, stays in zip(wanted, staying, strict=True)]
            )
        self._settle(wanted)

    def restore(self, nodes: Iterable[int]) -> None:
        """Go from the prompt alone to these nodes, in one pass."""
        wanted = list(dict.fromkeys(nodes))
        if wanted and wanted != [0]:
            self._sequences.select([0] * len(wanted))
            self._sequences.extend([self._tree.tokens(node) for node in wanted])
            self._settle(wanted)

    def _settle(self, wanted: list[int]) -> None:
        self._rows = {node: row for row, node in enumerate(wanted)}
        self._distributions = distributions_of(self._sequences.last.logits, self._size)

    @property
    def cost(self) -> Cost:
        """What the model has computed since the start."""
        calls = self._model.calls
        return Cost(model_calls=calls.passes - self._passes, model_rows=calls.positions - self._positions)

    def close(self) -> None:
        """Nothing is kept beyond the run."""


class Drafts(Protocol):
    """What scores continuations of a population before they are asked for: `guided.draft.Drafting` does."""

    def branches(
        self,
        model: LanguageModel,
        prompt: Sequence[int],
        tree: PrefixTree,
        size: int,
        *,
        constraint: Constrains | None,
        eos_ids: Iterable[int],
        max_tokens: int,
    ) -> Branches:
        """Branches with the same distributions in fewer passes, for texts of at most ``max_tokens`` tokens.

        ``constraint`` is what is known of the potential, if anything is.
        """
