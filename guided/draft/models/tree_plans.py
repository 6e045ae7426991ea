"""The best trees of a number of nodes, from how often children of each rank are accepted: Sequoia's dynamic program.

Sequoia (Chen et al., 2024, arXiv 2402.12374): if the k-th child of any node is the accepted one with probability
``p[k]``, a tree's expected accepted nodes are the sum over its nodes of the products on the way to them, and the best
tree of n nodes and d levels follows from those of fewer (section 4.1; here without the root, which is the text).  To
take the likeliest nodes first gives the same only where later children are never accepted more often than earlier ones.
`fastest_tree` is the hardware-aware choice (section 4.3): the size and depth that give the most tokens a second.

`measure_ranks` measures ``p``; `guided.draft.Planned` is the shape that drafts a plan.  The best tree of one draft, by
what the draft model says there, is `guided.draft.OptTree`.  Reconstructed from the paper's text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from guided.constraint.protocol import Constrains
from guided.draft.drafter import Context, Observed
from guided.draft.loop.speculate import speculate
from guided.draft.models.model import Model
from guided.draft.models.shapes import Branching, Planned
from guided.draft.policies.policy import Fixed
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance, Random
from guided.lm.model import LanguageModel

__all__ = ["TreePlan", "fastest_tree", "measure_ranks", "optimal_tree"]

_Best = Callable[[int, int, int], tuple[float, int]]


@dataclass(frozen=True)
class TreePlan:
    """A tree and what it is expected to give.

    >>> from guided.draft import optimal_tree
    >>> plan = optimal_tree([0.6, 0.2], nodes=4, depth=3)
    >>> plan.nodes, round(plan.accepted, 3), plan.shape.children
    (4, 1.376, {(): 2, (0,): 1, (0, 0): 1})
    """

    shape: Planned
    nodes: int
    accepted: float
    """Expected accepted nodes of a round; one more token comes with each."""
    tokens_per_second: float | None = None
    """Where costs were given."""


def optimal_tree(accepted: Sequence[float], nodes: int, depth: int) -> TreePlan:
    """The tree of at most so many nodes in at most so many levels of which the most nodes are accepted.

    ``accepted[k]`` is the probability that the k-th child of a node is the accepted one.  O(ranks * nodes^2 * depth).
    Raises `GuidedError` for what are no such probabilities, and for less than one node or level.

    >>> plan = optimal_tree([0.5, 0.25], nodes=3, depth=2)
    >>> plan.accepted, plan.shape.children
    (1.0, {(): 2, (0,): 1})
    """
    _check(accepted, nodes, depth)
    return _plan(_program(accepted), nodes, depth)


def fastest_tree(
    accepted: Sequence[float],
    pass_seconds: Callable[[int], float],
    level_seconds: float,
    nodes: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    depth: int = 10,
) -> TreePlan:
    """Of the optimal trees of these sizes and up to ``depth`` levels the one that gives the most tokens a second.

    ``pass_seconds(n)`` is what a pass of the target over n draft nodes takes, ``level_seconds`` one of the draft model.
    Raises as `optimal_tree` does.

    >>> from guided.draft import fastest_tree
    >>> def seconds(nodes):
    ...     return 0.02 + 0.001 * nodes
    >>> plan = fastest_tree([0.6, 0.2], seconds, level_seconds=0.002, nodes=(1, 2, 4, 8))
    >>> plan.nodes, round(plan.tokens_per_second)
    (4, 81)
    """
    _check(accepted, min(nodes, default=0), depth)
    best = _program(accepted)
    plans = [_plan(best, n, levels) for n in nodes for levels in range(1, depth + 1)]
    rates = [
        (1.0 + plan.accepted) / (pass_seconds(plan.nodes) + level_seconds * plan.shape.depth) for plan in plans
    ]  # fmt: skip
    rate = max(rates)
    plan = plans[rates.index(rate)]
    return TreePlan(plan.shape, plan.nodes, plan.accepted, rate)


def measure_ranks(
    rng: Random,
    target: LanguageModel,
    draft: LanguageModel,
    prompts: Sequence[Sequence[int]],
    constraints: Sequence[Constrains | None],
    *,
    ranks: int = 8,
    max_tokens: int = 128,
    greedy: bool = False,
) -> tuple[float, ...]:
    """How often each child is the accepted one, by writing texts with one level of ``ranks`` children a round.

    Children are drawn without replacement, or by rule where ``greedy``, as they will be where the plan is used.  Raises
    `GuidedError` where nothing was drafted.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> unsure = TableModel(lambda tokens: np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])
    >>> first, second = draft.measure_ranks(0, model, unsure, [[0]], [None], ranks=2, max_tokens=40, greedy=True)
    >>> first, second
    (1.0, 0.0)
    """
    counting = _Ranks(Model(draft, Branching((ranks,)), by_rule=greedy, target=target), ranks)
    speculate(rng, target, prompts, constraints, counting, max_tokens=max_tokens, greedy=greedy, policy=Fixed(ranks))
    if not counting.places:
        raise GuidedError("nothing was drafted", remedy="Give texts of more tokens than the grammar forces.")
    return tuple(count / counting.places for count in counting.counts)


class _Ranks:
    """Counts which child of each verified place was accepted."""

    def __init__(self, drafter: Model, ranks: int) -> None:
        self.drafter = drafter
        self.counts = [0] * ranks
        self.places = 0

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The drafter's."""
        return self.drafter.draft(chance, contexts)

    def learn(self, observed: Sequence[Observed]) -> None:
        """Enter the rank that was accepted, if any."""
        self.drafter.learn(observed)
        for seen in observed:
            groups = seen.proposal.groups.get(-1)
            if groups:
                self.places += 1
                if seen.accepted:
                    self.counts[groups[0].tokens.index(seen.proposal.token(seen.accepted[0]))] += 1

    def leave(self, rows: Sequence[int]) -> None:
        """Pass it on."""
        self.drafter.leave(rows)


def _check(accepted: Sequence[float], nodes: int, depth: int) -> None:
    # Shares that were counted may sum to a little more than 1 by rounding.
    if not len(accepted) or min(accepted) < 0 or sum(accepted) > 1 + 1e-9:
        raise GuidedError(
            f"{[float(share) for share in accepted]} are no probabilities of one child each",
            remedy="They are at least 0 and sum to 1 or less.",
        )
    if nodes < 1 or depth < 1:
        raise GuidedError(f"a tree of {nodes} nodes in {depth} levels", remedy="Ask for at least one of both.")


def _program(accepted: Sequence[float]) -> _Best:
    """The most accepted nodes of the children from a rank on, and how many nodes the first of them gets; 0: none."""
    p = tuple(map(float, accepted))

    @cache
    def best(rank: int, nodes: int, levels: int) -> tuple[float, int]:
        found = (0.0, 0)
        if rank < len(p) and levels:
            for size in range(1, nodes + 1):
                below = 1.0 + best(0, size - 1, levels - 1)[0]
                worth = p[rank] * below + best(rank + 1, nodes - size, levels)[0]
                if worth > found[0]:
                    found = worth, size
        return found

    return best


def _plan(best: _Best, nodes: int, depth: int) -> TreePlan:
    children: dict[tuple[int, ...], int] = {}

    def build(ranks: tuple[int, ...], left: int, levels: int) -> None:
        rank = 0
        while size := best(rank, left, levels)[1]:
            build((*ranks, rank), size - 1, levels - 1)
            left -= size
            rank += 1
        if rank:
            children[ranks] = rank

    build((), nodes, depth)
    ordered = dict(sorted(children.items(), key=lambda item: (len(item[0]), item[0])))
    return TreePlan(Planned(ordered), sum(children.values()), best(0, nodes, depth)[0])
