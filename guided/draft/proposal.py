"""What drafts propose: trees of tokens, and for every node how its children were chosen, which verification must know.

A child chosen by a rule is accepted by another law than one drawn at random, and children drawn without replacement by
another than independent draws.  So children come in groups, each with the distribution that it was drawn from; groups
of several drafts at the same node are tried one after the other, which keeps the law whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from guided.errors import GuidedError
from guided.lm.model import Tree

__all__ = ["Drawn", "Group", "Proposal", "chain"]


class Drawn(Enum):
    """How the children of a group were chosen.

    >>> import numpy as np
    >>> from guided.draft import Drawn, Group
    >>> by_rule = Group((5, 6))  # the likeliest: nothing is random
    >>> drawn = Group((5, 6), Drawn.WITHOUT_REPLACEMENT, np.array([0.0] * 5 + [0.7, 0.3]))
    >>> by_rule.drawn.value, drawn.drawn.value
    ('by rule', 'without replacement')
    """

    BY_RULE = "by rule"
    """Not at random: looked up, counted, remembered, forced."""
    WITHOUT_REPLACEMENT = "without replacement"
    """One after the other from a distribution, each time without those drawn before."""
    INDEPENDENTLY = "independently"
    """Each from the same distribution; tokens may repeat."""


@dataclass(frozen=True)
class Group:
    """Children of one node in the order in which they were chosen.

    Raises `GuidedError` where probabilities are missing for what was drawn, or given for what was chosen by rule.

    >>> from guided.draft import Group, Proposal
    >>> proposal = Proposal()
    >>> five, six = proposal.add(-1, Group((5, 6)))  # children of the text
    >>> _ = proposal.add(five, Group((7,)))
    >>> proposal.tree.tokens, proposal.tree.parents
    ((5, 6, 7), (-1, -1, 0))
    """

    tokens: tuple[int, ...]
    drawn: Drawn = Drawn.BY_RULE
    probabilities: NDArray[np.float64] | None = field(default=None, compare=False)
    """``float64[V]``: what they were drawn from, after temperature, truncation and any mask; sums to 1."""

    def __post_init__(self) -> None:
        if (self.probabilities is None) != (self.drawn is Drawn.BY_RULE):
            raise GuidedError(
                f"a group of draft tokens chosen {self.drawn.value} with{'out' if self.probabilities is None else ''} "
                f"the distribution they were drawn from",
                remedy="Pass the probabilities for what was drawn at random, and only for that.",
            )


@dataclass
class Proposal:
    """A tree of draft tokens that grows by groups; equal tokens after one node are one node.

    >>> proposal = Proposal()
    >>> first = proposal.add(-1, Group((7, 8)))
    >>> proposal.add(first[0], Group((9,)))
    [2]
    >>> proposal.tree.tokens, proposal.tree.parents
    ((7, 8, 9), (-1, -1, 0))
    """

    groups: dict[int, list[Group]] = field(default_factory=dict)
    """By parent node; -1 is the text itself."""
    prompted: dict[int, int] = field(default_factory=dict)
    """How many of the model's prompt tokens are read behind a node, where it has any: what it says after them is shown
    to the drafter (`Observed.prompted`), and nothing of them is verified or kept."""
    _tokens: list[int] = field(default_factory=list)
    _parents: list[int] = field(default_factory=list)
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def tree(self) -> Tree:
        """The tokens as the model scores them."""
        return Tree(tuple(self._tokens), tuple(self._parents))

    def add(self, parent: int, group: Group) -> list[int]:
        """Add children to a node; the node of each of the group's tokens."""
        self.groups.setdefault(parent, []).append(group)
        return [self._node(parent, token) for token in group.tokens]

    def _node(self, parent: int, token: int) -> int:
        found = self._children.get((parent, token))
        if found is None:
            found = self._children[parent, token] = len(self._tokens)
            self._tokens.append(token)
            self._parents.append(parent)
        return found

    def child(self, parent: int, token: int) -> int | None:
        """The node of a token after a node."""
        return self._children.get((parent, token))

    def token(self, node: int) -> int:
        """The token of a node."""
        return self._tokens[node]

    def graft(self, other: Proposal) -> None:
        """Add another proposal after the text, its groups behind those that are there.

        All of it: how many children a node got may depend on which tokens they are.  So whoever leaves out groups by
        their number looks at tokens drawn at random, and changes their law.
        """
        nodes = {-1: -1}
        for parent, groups in sorted(other.groups.items()):
            for group in groups:
                for token, node in zip(group.tokens, self.add(nodes[parent], group), strict=True):
                    child = other.child(parent, token)
                    assert child is not None
                    nodes[child] = node
        for node, n in other.prompted.items():
            self.prompted[nodes[node]] = max(n, self.prompted.get(nodes[node], 0))

    def add_chain(self, tokens: Sequence[int], parent: int = -1) -> None:
        """Add tokens chosen by rule, one after the other."""
        for token in tokens:
            parent = self.add(parent, Group((token,)))[0]


def chain(tokens: Sequence[int]) -> Proposal:
    """Tokens chosen by rule, one after the other.

    >>> proposal = chain([5, 6, 7])
    >>> proposal.tree.tokens, proposal.tree.parents
    ((5, 6, 7), (-1, 0, 1))
    """
    proposal = Proposal()
    proposal.add_chain(tokens)
    return proposal
