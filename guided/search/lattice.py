"""Lattice decoding: many texts from few rows, since hypotheses that end alike share what follows (Xu et al., 2022).

Best-first search in which every hypothesis that leaves the queue is completed greedily.  One whose last ``ngram``
tokens and whose constraint state are those of another is not continued but recombined with it: its future is the
other's.  All ways through the lattice are texts of the language; their scores in the lattice are those of the histories
that were read, so the answers are scored anew.  (Massive-scale Decoding for Text Generation using Lattices.)
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.search.frontier import Choices, Frontier, Node
from guided.search.result import Hypothesis, SearchCost, cost_of, data_of, found_html

__all__ = ["Edge", "Lattice", "LatticeFound", "lattice_search"]

END = -1
"""The place where all texts end."""


@dataclass(frozen=True)
class Edge:
    """One token from one place of a lattice to another.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> lattice = search.lattice_search(model, [0], language, max_tokens=6).lattice
    >>> [(edge.token, edge.to, round(edge.logprob, 2)) for edge in lattice.edges[0]]
    [(0, 1, -0.69), (1, 2, -1.61)]
    """

    to: int
    """The place it leads to; -1 is the end of the text."""
    token: int
    logprob: float
    """The token's log-probability after the history with which its place was read."""


@dataclass(frozen=True)
class Lattice:
    """Places and the tokens between them, without cycles.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> found = search.lattice_search(model, [0], language, max_tokens=6, ngram=1)
    >>> found.lattice.n_paths(), found.lattice.merges > 0
    (30, True)
    """

    edges: tuple[tuple[Edge, ...], ...]
    """For each place the edges that leave it, no two with the same token; place 0 is the empty text."""
    max_tokens: int
    """Ways that are longer are no texts: they would not have fitted."""
    merges: int
    """How many hypotheses were recombined with others."""

    def n_paths(self) -> int:
        """The number of texts."""
        # ways[place]: the number of ways to the end with at most so many tokens.
        ways = [0] * len(self.edges)
        for _ in range(self.max_tokens):
            ways = [sum(1 if edge.to == END else ways[edge.to] for edge in edges) for edges in self.edges]
        return ways[0]

    def best(self, n: int) -> list[tuple[tuple[int, ...], float]]:
        """The ``n`` texts with the highest sums of log-probabilities along their ways, with these sums."""
        hope, need = self._to_the_end()
        queue: list[tuple[float, tuple[int, ...], int, float]] = [(-hope[0], (), 0, 0.0)]
        found: list[tuple[tuple[int, ...], float]] = []
        while queue and len(found) < n:
            _, tokens, place, score = heapq.heappop(queue)
            if place == END:
                found.append((tokens, score))
                continue
            for edge in self.edges[place]:
                if len(tokens) + 1 + need[edge.to] <= self.max_tokens:
                    after = score + edge.logprob
                    heapq.heappush(queue, (-(after + hope[edge.to]), (*tokens, edge.token), edge.to, after))
        return found

    def _to_the_end(self) -> tuple[dict[int, float], dict[int, float]]:
        """The best score and the fewest tokens from every place to the end."""
        hope: dict[int, float] = {END: 0.0}
        need: dict[int, float] = {END: 0}
        for place in self._order():
            edges = self.edges[place]
            hope[place] = max((edge.logprob + hope[edge.to] for edge in edges), default=-math.inf)
            need[place] = min((1 + need[edge.to] for edge in edges), default=math.inf)
        return hope, need

    def _order(self) -> list[int]:
        """Places, each after all that it leads to."""
        order: list[int] = []
        seen: set[int] = {END}
        stack = [(0, iter(self.edges[0]))]
        seen.add(0)
        while stack:
            place, rest = stack[-1]
            following = next((edge.to for edge in rest if edge.to not in seen), None)
            if following is None:
                order.append(place)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(self.edges[following])))
        return order


@dataclass(frozen=True)
class LatticeFound:
    """The best texts of a lattice, scored by the model, and the lattice.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> found = search.lattice_search(model, [0], language, max_tokens=6)
    >>> [each.text for each in found.hypotheses[:2]], found.lattice.n_paths()
    (['a', 'aa'], 30)
    """

    hypotheses: tuple[Hypothesis, ...]
    lattice: Lattice
    cost: SearchCost

    def _repr_html_(self) -> str:
        return found_html("Found in a lattice", self.hypotheses, self.cost)


def lattice_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    rows: int = 128,
    branch: int = 4,
    ngram: int | None = 3,
    length_difference: int = 2,
    n_best: int = 8,
    max_tokens: int = 256,
    length_penalty: float = 0.0,
    batch: int = 4,
) -> LatticeFound:
    """Explore the constraint's language until ``rows`` places were read, and give the ``n_best`` texts of the lattice.

    ``branch`` continuations of every place are candidates.  A hypothesis is recombined with a place that was read when
    their last ``ngram`` tokens and constraint states agree.  Their lengths may differ by at most ``length_difference``,
    and a text through the place must still end in time.  ``ngram=None`` recombines nothing, and gives a tree.  With a
    model that looks back no further than ``ngram`` tokens nothing is lost by it.  ``batch`` hypotheses are completed
    side by side, one pass a token; the last ones are completed even where ``rows`` are used up.

    Texts are taken from the lattice by the sum of log-probabilities along their ways.  They are then ranked by the
    model's own score (over their length to the power ``length_penalty``), for which they are read once more in one
    pass.  Raises as `beam_search`.  Raises `GuidedError` for a count below 1 or a negative ``length_difference``.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> found = search.lattice_search(model, [0], language, max_tokens=6, ngram=1)  # by the last token
    >>> tree = search.lattice_search(model, [0], language, max_tokens=6, ngram=None)
    >>> found.hypotheses[0].text, found.cost.rows < tree.cost.rows
    ('a', True)
    """
    sizes = {"rows": rows, "branch": branch, "n_best": n_best, "batch": batch}
    for name, value in (*sizes.items(), ("ngram", 1 if ngram is None else ngram)):
        if value < 1:
            raise GuidedError(f"{name} is {value}", remedy="Use at least 1.")
    if length_difference < 0:
        raise GuidedError(f"length_difference is {length_difference}", remedy="Use 0 or more.")
    frontier = Frontier(model, prompt, constraint, max_tokens)
    search = _Search(frontier, branch, ngram, length_difference, length_penalty)
    search.run(rows, batch)
    lattice = Lattice(tuple(tuple(edges) for edges in search.edges), max_tokens, search.merges)
    return LatticeFound(search.scored([tokens for tokens, _ in lattice.best(n_best)]), lattice, cost_of(frontier))


Key = tuple[tuple[int, ...], int]
"""The last tokens and the constraint state."""


class _Search:
    def __init__(
        self, frontier: Frontier, branch: int, ngram: int | None, difference: int, length_penalty: float
    ) -> None:
        self.frontier = frontier
        self.branch = branch
        self.ngram = ngram
        self.difference = difference
        self.length_penalty = length_penalty
        self.edges: list[list[Edge]] = []
        self.places: dict[Node, int] = {}
        self.nodes: list[Node] = []
        self.by_key: dict[Key, list[int]] = {}
        self.queue: list[tuple[float, int, int, int, Node]] = []
        """Negative rank score, length, place of the parent, token, node."""
        self.waiting: Counter[Node] = Counter()
        """For each node with a row, its continuations in the queue."""
        self.merges = 0
        self.root: Choices | None = None

    def run(self, rows: int, batch: int) -> None:
        """Take hypotheses off the queue and complete them, until so many places were read."""
        self.root = self.frontier.expand([self.frontier.root])[0]
        active = self.read([self.root])
        while True:
            while len(active) < batch and self.queue and len(self.nodes) + len(active) < rows:
                *_, node = heapq.heappop(self.queue)
                parent = _parent(node)
                self.waiting[parent] -= 1
                if not self.waiting[parent]:
                    del self.waiting[parent]
                active.append(node)
            new = [node for node in active if not self.merged(node)]
            if new:
                active = self.read(self.frontier.expand(new, keep=[self.frontier.root, *self.waiting]))
            elif not self.queue or len(self.nodes) >= rows:
                return
            else:
                active = []

    def read(self, found: Sequence[Choices]) -> list[Node]:
        """Make places of nodes that were read; the continuations that complete them."""
        further: list[Node] = []
        for choices in found:
            place = self.places[choices.node] = len(self.nodes)
            self.nodes.append(choices.node)
            self.edges.append([])
            self.by_key.setdefault(self.key(choices.node), []).append(place)
            if choices.node.parent is not None:
                self.connect(choices.node, place)
            ended = choices.ended()
            if ended is not None:
                self.edges[place].append(Edge(END, ended.token, choices.end))
            tokens = choices.best(self.branch)
            # The text goes on with its likeliest token, unless it likelier ends.
            ends = ended is not None and (not tokens or choices.end >= float(choices.logprobs[tokens[0]]))
            if not ends:
                further += [choices.child(token) for token in tokens[:1]]
            others = tokens if ends else tokens[1:]
            for token in others:
                node = choices.child(token)
                heapq.heappush(self.queue, (-self.rank_score(node.score, node.length), node.length, place, token, node))
            if others:
                self.waiting[choices.node] = len(others)
        return further

    def connect(self, node: Node, place: int) -> None:
        """The edge from a node's parent to a place."""
        parent = _parent(node)
        self.edges[self.places[parent]].append(Edge(place, node.token, node.score - parent.score))

    def key(self, node: Node) -> Key:
        last: list[int] = []
        at: Node | None = node
        while at is not None and at.parent is not None and (self.ngram is None or len(last) < self.ngram):
            last.append(at.token)
            at = at.parent
        return tuple(last), node.state

    def merged(self, node: Node) -> bool:
        """Lead a node to a place that has its future, if there is one."""
        if self.ngram is None:
            return False
        for place in self.by_key.get(self.key(node), ()):
            near = abs(self.nodes[place].length - node.length) <= self.difference
            if near and node.length + self.need(place) <= self.frontier.max_tokens:
                if self.leads(place, self.places[_parent(node)]):
                    continue
                self.connect(node, place)
                self.merges += 1
                return True
        return False

    def need(self, place: int) -> float:
        """The fewest tokens from a place to the end; infinity where no text has been completed."""
        level, seen, steps = {place}, {place}, 0
        while level:
            steps += 1
            following = {edge.to for at in level for edge in self.edges[at]}
            if END in following:
                return steps
            level = following - seen
            seen |= level
        return math.inf

    def leads(self, place: int, goal: int) -> bool:
        """Is there a way from one place to another?  Recombining would then close a circle."""
        stack, seen = [place], {place}
        while stack:
            at = stack.pop()
            if at == goal:
                return True
            new = {edge.to for edge in self.edges[at]} - seen - {END}
            seen |= new
            stack.extend(new)
        return False

    def rank_score(self, score: float, length: int) -> float:
        return score / float(length) ** self.length_penalty if self.length_penalty else score

    def scored(self, texts: Sequence[tuple[int, ...]]) -> tuple[Hypothesis, ...]:
        """Texts with the model's own scores, best first."""
        assert self.root is not None
        ends = [int(token) for token in self.frontier.eos]
        asked = [(self.root, (*tokens[:-1], end)) for tokens in texts for end in ends]
        values = iter(self.frontier.phrase_logprobs(asked))
        vocabulary = self.frontier.vocabulary
        found = []
        for tokens in texts:
            each = [next(values) for _ in ends]
            top = max(each)
            score = top + math.log(math.fsum(math.exp(value - top) for value in each)) if top > -math.inf else top
            rank = self.rank_score(score, len(tokens))
            found.append(Hypothesis(tokens, data_of(vocabulary, tokens), score, rank))
        return tuple(sorted(found, key=lambda each: (-each.rank_score, len(each.tokens), each.tokens)))


def _parent(node: Node) -> Node:
    assert node.parent is not None
    return node.parent
