"""`OpenFrontier`: a frontier whose nodes may lie anywhere in the tree; searches that jump about expand through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from guided.infer.potentials.potential import Potential
from guided.search.frontier import Choices, Frontier, Node
from guided.search.result import Found
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Judging", "OpenFrontier", "TreeFound", "greedy_end", "potential_over"]

Judging: TypeAlias = "Potential[Any] | Callable[[Vocabulary], Potential[Any]]"
"""A potential, or what makes one of the vocabulary that is searched in, such as a partial of `TextScorer`."""


def potential_over(vocabulary: Vocabulary, given: Judging) -> Potential[Any]:
    """The potential itself."""
    return given if isinstance(given, Potential) else given(vocabulary)


@dataclass(frozen=True)
class TreeFound(Found):
    """What a search within a budget found, and whether there was more to look at.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> found = search.a_star_search(model, [0], language, max_tokens=6, max_expanded=2)
    >>> found.expanded, found.complete  # the budget was too small to say that this is the best
    (2, False)
    """

    expanded: int = 0
    """Prefixes whose next tokens were asked for."""
    evaluated: int = 0
    """Distinct texts that were weighed."""
    complete: bool = False
    """True when the search ended by itself and not by its budget."""


class OpenFrontier(Frontier):
    """A frontier that goes from the nearest prefix that has a row, the prompt's at the latest, to any node."""

    def expand(self, nodes: Sequence[Node], keep: Sequence[Node] = ()) -> list[Choices]:
        """What follows each node, wherever it is: one pass.  Afterwards these nodes, ``keep`` and the root have rows.

        Nodes to keep must have a row.  Raises `LimitError` where the shortest text is longer than the limit.
        """
        wanted = [node for node in dict.fromkeys((*keep, *nodes)) if node is not self.root]
        sources, paths = [], []
        for node in wanted:
            path: list[int] = []
            at = node
            while at not in self._rows:
                assert at.parent is not None
                path.append(at.token)
                at = at.parent
            sources.append(self._rows[at])
            paths.append(path[::-1])
        self._sequences.select([self._rows[self.root], *sources])
        if any(paths):
            self._sequences.extend([[], *paths])
        self._rows = {self.root: 0, **{node: row for row, node in enumerate(wanted, start=1)}}
        logits = self._sequences.last.logits[[self._rows[node] for node in nodes]]
        return [self._choices(node, row) for node, row in zip(nodes, self._logprobs(logits), strict=True)]


def greedy_end(frontier: OpenFrontier, node: Node, choices: Choices | None = None) -> Node | None:
    """The text to which the likeliest allowed tokens lead from a node; None where no token has a probability.

    Every text ends in time, as the mask leaves only tokens from which it can.
    """
    while True:
        found = frontier.expand([node])[0] if choices is None else choices
        choices = None
        best = found.best(1)
        after = found.child(best[0]) if best else None
        ended = found.ended()
        if ended is not None and (after is None or ended.score >= after.score):
            return ended
        if after is None:
            return None
        node = after
