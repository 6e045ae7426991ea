"""Best-first beam search: the texts of beam search from fewer rows of the model (Meister et al., 2020).

One queue over all lengths, ordered by score.  Scores only fall along a hypothesis, so those of one length leave the
queue in the order in which beam search would rank them: the first ``width`` that go on are its live ones, everything
after is dropped unread.  What the answer does not depend on is never computed.  (Best-First Beam Search, TACL 2020.)
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.search.beam import check_sizes
from guided.search.frontier import Choices, Frontier, Node
from guided.search.result import Finished, Found, cost_of

__all__ = ["best_first_beam_search"]

Entry = tuple[float, int, int, int, Node, bool]
"""Negative score, length, rank of the parent among its length, token; the node, and whether it ends the text."""


def best_first_beam_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    width: int = 4,
    n_best: int = 1,
    max_tokens: int = 256,
    length_penalty: float = 0.0,
    batch: int = 1,
) -> Found:
    """What `beam_search` with `Stopping.BOUND` returns, from no more rows of the model with ``batch`` 1.

    Rows are computed one at a time, when their hypothesis leaves the queue; with ``batch`` above 1 the next best in the
    queue are computed in the same pass, which saves passes and may compute rows that are not needed.  Prefixes whose
    continuations wait in the queue keep their caches: at most ``width`` a length.  Raises `GuidedError` for a ``batch``
    below 1.
    """
    check_sizes(width, n_best)
    if batch < 1:
        raise GuidedError(f"batch is {batch}", remedy="Compute at least one row in a pass.")
    frontier = Frontier(model, prompt, constraint, max_tokens)
    search = _Search(frontier, Finished(n_best, length_penalty), width, batch)
    search.run(length_penalty)
    return Found(search.finished.hypotheses(frontier.vocabulary, n_best), cost_of(frontier))


class _Search:
    def __init__(self, frontier: Frontier, finished: Finished, width: int, batch: int) -> None:
        self.frontier = frontier
        self.finished = finished
        self.width = width
        self.batch = batch
        self.queue: list[Entry] = []
        self.popped: Counter[int] = Counter()
        """Candidates of each length that left the queue."""
        self.live: Counter[int] = Counter()
        """Of those, hypotheses that went on: never above the width."""
        self.waiting: Counter[Node] = Counter()
        """For each node with a row, its children in the queue."""
        self.ahead: dict[Node, Choices] = {}
        """Rows computed before their node left the queue."""

    def run(self, length_penalty: float) -> None:
        """Until no candidate can come among the best."""
        self.push(self.frontier.expand([self.frontier.root])[0], 0)
        while self.queue:
            if self.finished.full:
                # With a negative penalty the shortest text that could come has one token more than nothing.
                length = self.frontier.max_tokens if length_penalty > 0 else 1
                if self.finished.rank_score(-self.queue[0][0], length) < self.finished.worst:
                    return
            _, length, _, _, node, ends = heapq.heappop(self.queue)
            assert node.parent is not None
            place = self.popped[length]
            self.popped[length] += 1
            if ends:
                if place < self.width:
                    self.finished.add(node)
                self.leave(node)
            elif self.live[length] < self.width:
                rank = self.live[length]
                self.live[length] += 1
                choices = self.row(node)
                self.leave(node)
                self.push(choices, rank)
            else:
                self.ahead.pop(node, None)
                self.leave(node)

    def leave(self, node: Node) -> None:
        """A parent without candidates in the queue needs its cache no more."""
        assert node.parent is not None
        self.waiting[node.parent] -= 1
        if not self.waiting[node.parent]:
            del self.waiting[node.parent]

    def push(self, choices: Choices, rank: int) -> None:
        """Put the best continuations of a node into the queue: more than ``width`` of them are never live."""
        entries = [(choices.child(token), False) for token in choices.best(self.width)]
        ended = choices.ended()
        if ended is not None:
            entries.append((ended, True))
        for node, ends in entries:
            heapq.heappush(self.queue, (-node.score, node.length, rank, node.token, node, ends))
        if entries:
            self.waiting[choices.node] = len(entries)

    def row(self, node: Node) -> Choices:
        """What follows a node; computes the rows of the next best candidates with it."""
        found = self.ahead.pop(node, None)
        if found is not None:
            return found
        nodes = [node, *self.next_best(self.batch - 1)]
        rows = self.frontier.expand(nodes, keep=[*self.waiting, *self.ahead])
        for other, choices in zip(nodes[1:], rows[1:], strict=True):
            self.ahead[other] = choices
        return rows[0]

    def next_best(self, n: int) -> list[Node]:
        """The best candidates in the queue that have no row and whose length is not full."""
        if not n:
            return []
        useful = (
            entry
            for entry in self.queue
            if not entry[5] and self.live[entry[1]] < self.width and entry[4] not in self.ahead
        )
        return [entry[4] for entry in heapq.nsmallest(n, useful, key=lambda entry: entry[:4])]
