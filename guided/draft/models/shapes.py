"""Shapes of the trees that a draft model grows, level by level: chains, constant branching, stochastic beams, DySpec.

A shape decides which node gets how many children; tokens come from the node's own distribution, without replacement
or, for `Independent`, with it, so that verification knows each group's law.  What a shape decides on may be all that
was drawn before, never the token that it decides about.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from guided.draft.models.confidence import Confidence
from guided.infer.chance import Chance
from guided.lm.model import LanguageModel
from guided.lm.transforms import TransformedModel

__all__ = ["Beam", "Branching", "Chain", "Dynamic", "Independent", "Leaf", "OptTree", "Planned", "Shape"]

Shaping = Callable[[torch.Tensor], torch.Tensor]


def shaping_of(target: LanguageModel) -> Shaping | None:
    """The temperature and truncation of a model; None for a distribution that is the model's own."""
    return target.truncation if isinstance(target, TransformedModel) else None


@dataclass
class Leaf:
    """A node that may get children; ``rest`` is what has not been drawn of ``probabilities``, not scaled."""

    node: int
    probabilities: NDArray[np.float64]
    value: float
    """The probability under the draft of coming here."""
    key: float
    """The node's perturbed log probability, for stochastic beams."""
    n_sequences: int = 1
    """How many independently drawn sequences came here."""
    ranks: tuple[int, ...] = ()
    """Which child of its parent each node on the way here is."""
    drawn: list[int] = field(default_factory=list)
    keys: list[float] = field(default_factory=list)
    rest: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.rest = self.probabilities.copy()

    @classmethod
    def after(
        cls,
        node: int,
        logits: torch.Tensor,
        allowed: NDArray[np.bool_] | None,
        value: float = 1.0,
        key: float = 0.0,
        shaping: Shaping | None = None,
    ) -> Leaf | None:
        """The leaf at a node with these scores ``[V]`` after it; None where nothing that is allowed has any."""
        if shaping is not None:
            if allowed is not None:
                logits = logits.masked_fill(torch.from_numpy(~allowed).to(logits.device), -torch.inf)
            logits = shaping(logits) if bool(torch.isfinite(logits).any()) else logits
        scores = logits.double().cpu().numpy()
        if allowed is not None:
            scores = np.where(allowed, scores, -np.inf)
        highest = scores.max()
        if not np.isfinite(highest):
            return None
        weights: NDArray[np.float64] = np.exp(scores - highest)
        weights /= weights.sum()
        return cls(node, weights, value, key)

    def left(self) -> float:
        """The probability of all that was not drawn."""
        return float(self.rest.sum()) if self.rest.any() else 0.0

    def take(self, chance: Chance | None, key: float = 0.0) -> int:
        """One more child: drawn from what is left, or with None the likeliest."""
        token = int(self.rest.argmax()) if chance is None else chance.index(self.rest)
        self.rest[token] = 0.0
        self.drawn.append(token)
        self.keys.append(key)
        return token

    def take_again(self, chance: Chance) -> int:
        """One more child, drawn from all there is: it may be one that was drawn before."""
        token = chance.index(self.probabilities)
        self.drawn.append(token)
        self.keys.append(0.0)
        return token


class Shape(Protocol):
    """Gives the leaves of one level their children.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> shapes: list[draft.Shape] = [draft.Chain(3), draft.Branching((2, 1)), draft.OptTree(depth=2)]
    >>> def nodes(shape):
    ...     context = draft.Context(0, [0], 1, None, 1, budget=8)
    ...     return len(draft.Model(model, shape, by_rule=True).draft(None, [context])[0].tree.tokens)
    >>> [(shape.depth, nodes(shape)) for shape in shapes]
    [(3, 3), (2, 4), (2, 8)]
    """

    @property
    def depth(self) -> int:
        """The most levels."""

    def grow(self, chance: Chance, by_rule: bool, leaves: Sequence[Leaf], level: int, budget: int) -> None:
        """Draw at most ``budget`` children for the leaves of a level; ``by_rule``: the likeliest, not at random."""


@dataclass(frozen=True)
class Chain:
    """One child each; with ``confidence`` none after a token that the draft itself held less likely.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Model(model, draft.Chain(3), by_rule=True)
    >>> (proposal,) = drafter.draft(None, [draft.Context(0, [0], 1, None, 1, budget=8)])
    >>> proposal.tree.tokens, proposal.tree.parents
    ((1, 2, 0), (-1, 0, 1))
    """

    depth: int = 8
    confidence: Confidence | None = None

    def grow(self, chance: Chance, by_rule: bool, leaves: Sequence[Leaf], level: int, budget: int) -> None:
        """One child."""
        for leaf in leaves:
            leaf.take(None if by_rule else chance)


@dataclass(frozen=True)
class Branching:
    """As many children as the level says: RSD-C (Jeon et al., 2024, arXiv 2402.14160).

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Model(model, draft.Branching((2, 1)), by_rule=True)
    >>> (proposal,) = drafter.draft(None, [draft.Context(0, [0], 1, None, 1, budget=8)])
    >>> proposal.tree.tokens, proposal.tree.parents  # two children, and one of each
    ((1, 0, 2, 1), (-1, -1, 0, 1))
    """

    children: tuple[int, ...] = (4, 2, 2, 1)

    @property
    def depth(self) -> int:
        """One level for each number."""
        return len(self.children)

    def grow(self, chance: Chance, by_rule: bool, leaves: Sequence[Leaf], level: int, budget: int) -> None:
        """The level's number of children for each leaf, fewer at the end of the budget."""
        for leaf in leaves:
            for _ in range(min(self.children[level], budget)):
                if not leaf.left():
                    break
                leaf.take(None if by_rule else chance)
                budget -= 1


@dataclass(frozen=True)
class Independent:
    """Several sequences, each drawn by itself: SpecTr (Sun et al., 2023, arXiv 2310.15141), verified by its k-SEQ.

    Sequences that begin alike are one path of the tree, so that fewer nodes are scored than drawn.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> from guided.infer import chance_of
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Model(model, draft.Independent(sequences=3, depth=2))
    >>> (proposal,) = drafter.draft(chance_of(0), [draft.Context(0, [0], 1, None, 1, budget=8)])
    >>> len(proposal.tree.tokens) <= 6  # sequences that begin alike are one path
    True
    """

    sequences: int = 4
    depth: int = 4

    def grow(self, chance: Chance, by_rule: bool, leaves: Sequence[Leaf], level: int, budget: int) -> None:
        """A token for each sequence that came to a leaf, as far as the budget would go were all of them different."""
        for leaf in leaves:
            for _ in range(min(leaf.n_sequences if level else self.sequences, budget)):
                leaf.take_again(chance)
                budget -= 1


@dataclass(frozen=True)
class Planned:
    """A tree laid down beforehand: as many children as each node has by the ranks on the way to it; () is the text.

    `guided.draft.optimal_tree` makes the best ones.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Model(model, draft.Planned({(): 2, (0,): 1}), by_rule=True)
    >>> (proposal,) = drafter.draft(None, [draft.Context(0, [0], 1, None, 1, budget=8)])
    >>> proposal.tree.parents  # two children; the best of them has one
    (-1, -1, 0)
    """

    children: Mapping[tuple[int, ...], int]

    @property
    def depth(self) -> int:
        """The longest way."""
        return 1 + max(map(len, self.children), default=-1)

    def grow(self, chance: Chance, by_rule: bool, leaves: Sequence[Leaf], level: int, budget: int) -> None:
        """The plan's children, fewer at the end of the budget."""
        for leaf in leaves:
            for _ in range(min(self.children.get(leaf.ranks, 0), budget)):
                if not leaf.left():
                    break
                leaf.take(None if by_rule else chance)
                budget -= 1


@dataclass(frozen=True)
class OptTree:
    """The nodes of the highest probability under the draft: OPT-Tree (Wang et al., 2024, arXiv 2406.17276).

    Of all trees of as many nodes as the budget their sum, the expected number of accepted tokens as the draft sees it,
    is the highest.  Levels are grown while a new node can be among the best (the paper's threshold is then 0), and the
    others are dropped, which only tokens by rule allow.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Model(model, draft.OptTree(depth=4), by_rule=True)
    >>> (proposal,) = drafter.draft(None, [draft.Context(0, [0], 1, None, 1, budget=4)])
    >>> proposal.tree.tokens  # the model is sure of itself: its best tree is a line
    (1, 2, 0, 1)
    """

    depth: int = 10

    def grow(self, chance: Chance, by_rule: bool, leaves: Sequence[Leaf], level: int, budget: int) -> None:
        """The level's best tokens; a node's probability is at most its parent's, so that more are never wanted."""
        heap = [(-leaf.value * float(leaf.rest.max()), i) for i, leaf in enumerate(leaves)]
        heapq.heapify(heap)
        while heap and budget:
            value, i = heapq.heappop(heap)
            if not value:
                break
            leaf = leaves[i]
            leaf.take(None)
            budget -= 1
            heapq.heappush(heap, (-leaf.value * float(leaf.rest.max()), i))


@dataclass(frozen=True)
class Dynamic:
    """Children while the probability of being accepted is worth it: DySpec (2410.11744) by levels.

    Children of a node are drawn while its value times what is left of its distribution is at least ``floor``: that is
    the probability, as the draft sees it, that the text comes here and goes on with none of those drawn before.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Model(model, draft.Dynamic(floor=0.3), by_rule=True)
    >>> (proposal,) = drafter.draft(None, [draft.Context(0, [0], 1, None, 1, budget=8)])
    >>> proposal.tree.tokens  # as deep as it is worth it
    (1, 2, 0, 1, 2, 0, 1, 2)
    """

    floor: float = 0.15
    depth: int = 8

    def grow(self, chance: Chance, by_rule: bool, leaves: Sequence[Leaf], level: int, budget: int) -> None:
        """The leaf with the most at stake first."""
        heap = [(-leaf.value, i) for i, leaf in enumerate(leaves) if leaf.value >= self.floor]
        heapq.heapify(heap)
        while heap and budget:
            _, i = heapq.heappop(heap)
            leaf = leaves[i]
            leaf.take(None if by_rule else chance)
            budget -= 1
            stake = leaf.value * leaf.left()
            if stake >= self.floor:
                heapq.heappush(heap, (-stake, i))


@dataclass(frozen=True)
class Beam:
    """The ``width`` sequences of each level by stochastic beam search (Kool et al., 2019): RSD-S.

    Sequences are drawn without replacement over all leaves.  Instead of perturbing every token, each leaf's children
    come in order: the best has its parent's key, and each next key is a Gumbel variable of what is left, cut off at the
    key before.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Model(model, draft.Beam(width=2, depth=3), by_rule=True)
    >>> (proposal,) = drafter.draft(None, [draft.Context(0, [0], 1, None, 1, budget=8)])
    >>> len(proposal.tree.tokens)  # two sequences on each of three levels
    6
    """

    width: int = 4
    depth: int = 4

    def grow(self, chance: Chance, by_rule: bool, leaves: Sequence[Leaf], level: int, budget: int) -> None:
        """The best keys of the level."""
        heap = [(-(math.log(leaf.value) if by_rule else leaf.key), i) for i, leaf in enumerate(leaves) if leaf.value]
        if by_rule:
            heap = [(key - math.log(leaves[i].rest.max()), i) for key, i in heap]
        heapq.heapify(heap)
        wanted = min(self.width, budget)
        while heap and wanted:
            key, i = heapq.heappop(heap)
            leaf = leaves[i]
            leaf.take(None if by_rule else chance, -key)
            wanted -= 1
            left = leaf.left()
            if not left or not wanted:
                continue
            if by_rule:
                following = math.log(leaf.value) + math.log(leaf.rest.max())
            else:
                place = math.log(leaf.value) + math.log(left)
                # A Gumbel variable at `place`, given that it is less than the key before.
                share = 1.0 - chance.uniform(_everywhere)
                following = place - math.log(math.exp(min(place + key, 700.0)) - math.log(share))
            heapq.heappush(heap, (-following, i))


def _everywhere() -> Sequence[float]:
    return ()
