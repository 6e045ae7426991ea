"""What searches return: hypotheses, best first, and what the model computed for them.  Values only."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from guided.html import card, facts, number, table
from guided.search.frontier import Frontier, Node
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Finished", "Found", "Hypothesis", "SearchCost", "cost_of", "found_html"]

_SHOWN = 10
"""Texts that a notebook shows."""


@dataclass(frozen=True)
class Hypothesis:
    """One text that a search found."""

    tokens: tuple[int, ...]
    """Without the prompt; with the end-of-text id where it came."""
    data: bytes
    """The bytes of the tokens; end-of-text and special ids have none."""
    score: float
    """The log-probability: the sum over the tokens, the end of the text included."""
    rank_score: float
    """What hypotheses are ranked by: ``score / len(tokens) ** length_penalty``."""
    finished: bool = True
    """True when the text ended; all searches here return finished texts alone."""

    @property
    def text(self) -> str | None:
        """The bytes as text; None where they are not UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None


@dataclass(frozen=True)
class SearchCost:
    """What the model computed, the prompt left out.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> search.beam_search(model, [0], language, width=2, max_tokens=6).cost
    SearchCost(passes=2, rows=4)
    """

    passes: int
    """Forward passes."""
    rows: int
    """Positions over all passes, equal prefixes counted once."""


@dataclass(frozen=True)
class Found:
    """The hypotheses of one search, best first; empty when no text was found.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> found = search.beam_search(model, [0], language, width=4, n_best=2, max_tokens=6)
    >>> len(found), found[0].text, round(found[0].score, 2)
    (2, 'a', -1.9)
    """

    hypotheses: tuple[Hypothesis, ...]
    cost: SearchCost

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __iter__(self) -> Iterator[Hypothesis]:
        return iter(self.hypotheses)

    def __getitem__(self, place: int) -> Hypothesis:
        return self.hypotheses[place]

    def _repr_html_(self) -> str:
        return found_html("Found", self.hypotheses, self.cost)


def found_html(title: str, hypotheses: Sequence[Hypothesis], cost: SearchCost) -> str:
    """What a notebook shows of a search."""
    rows = [
        (number(each.score), number(each.rank_score), each.text if each.text is not None else repr(each.data))
        for each in hypotheses[:_SHOWN]
    ]
    known = facts([("passes of the model", f"{cost.passes:,} over {cost.rows:,} positions")])
    return card(title, table(("log probability", "ranked by", "text"), rows, len(hypotheses) - len(rows)), known)


def cost_of(frontier: Frontier) -> SearchCost:
    """What a frontier has cost so far."""
    return SearchCost(frontier.passes, frontier.rows)


class Finished:
    """The best ``size`` finished hypotheses so far, each text once; the shorter, then the smaller ids, among equals."""

    def __init__(self, size: int, length_penalty: float) -> None:
        self._size = size
        self._penalty = length_penalty
        self._best: dict[tuple[int, ...], tuple[float, int, tuple[int, ...], float]] = {}

    def __len__(self) -> int:
        return len(self._best)

    @property
    def full(self) -> bool:
        """True when ``size`` texts are here."""
        return len(self._best) >= self._size

    @property
    def worst(self) -> float:
        """The lowest rank score here."""
        return -max(self._best.values())[0]

    def rank_score(self, score: float, length: int) -> float:
        """A log-probability over its length to the power of the penalty."""
        # Powers of integers are taken in float: the largest lengths and penalties then give infinity, not an error.
        return score / float(length) ** self._penalty if self._penalty else score

    def add(self, node: Node) -> None:
        """Take a finished node if it is among the best."""
        tokens = node.tokens
        entry = (-self.rank_score(node.score, node.length), node.length, tokens, node.score)
        if tokens in self._best:
            self._best[tokens] = min(entry, self._best[tokens])
            return
        self._best[tokens] = entry
        if len(self._best) > self._size:
            del self._best[max(self._best.values())[2]]

    def hypotheses(self, vocabulary: Vocabulary, n: int) -> tuple[Hypothesis, ...]:
        """The best ``n``, best first."""
        return tuple(
            Hypothesis(tokens, data_of(vocabulary, tokens), score, -negative)
            for negative, _, tokens, score in heapq.nsmallest(n, self._best.values())
        )


def data_of(vocabulary: Vocabulary, tokens: tuple[int, ...]) -> bytes:
    """The bytes of tokens."""
    return b"".join(vocabulary.token_bytes(token) or b"" for token in tokens)
