"""Beams whose texts contain given phrases: grid beam search and dynamic beam allocation.

Grid beam search (Hokamp and Liu, 2017) keeps a beam for each number of phrase tokens placed, so its cost grows with
the phrases; dynamic beam allocation (Post and Vilar, 2018) divides one beam among those numbers.  Both take a grammar
besides; neither knows whether the grammar has room for a phrase: what never finishes is simply not returned.
(arXiv 1704.07138, 1804.06609; phrases with alternatives: Hu et al., 2019, NAACL.)
"""

from __future__ import annotations

from collections.abc import Sequence

from guided.constraint.protocol import Constrains
from guided.errors import LimitError
from guided.lm.model import LanguageModel
from guided.search.beam import Rule, candidate_order, check_sizes, run_beam
from guided.search.frontier import Choices, Frontier, Node
from guided.search.phrases import MET, PhraseConstraint, check_phrases
from guided.search.result import Finished, Found, cost_of

__all__ = ["allocated", "bank_slots", "dynamic_beam_search", "grid_beam_search"]


def grid_beam_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    phrases: Sequence[PhraseConstraint],
    *,
    width: int = 4,
    n_best: int = 1,
    max_tokens: int = 256,
    length_penalty: float = 0.0,
) -> Found:
    """The best texts that contain all phrases, by a beam of ``width`` for each number of phrase tokens placed.

    Phrases are placed one after another: texts in which two overlap are found only if the phrases also stand apart.
    The options of one constraint must be of one length (`UnsupportedError`; `dynamic_beam_search` takes all); of a
    `TextPhrase` the shortest spellings are placed.  Without phrases this is `beam_search`.  Empty where the grammar has
    no room for the phrases, or the beam did not find it; raises as `beam_search`, and `LimitError` where the phrases do
    not fit.
    """
    check_sizes(width, n_best)
    frontier = Frontier(model, prompt, constraint, max_tokens)
    check_phrases(phrases, frontier.vocabulary, max_tokens)
    rule = _Grid([phrase.placed_together() for phrase in phrases], width, max_tokens)
    if rule.total + 1 > max_tokens:
        raise LimitError(
            f"the phrases have {rule.total} tokens, and a text with its end {max_tokens}", remedy="Raise max_tokens."
        )
    frontier.root.extra = (0, (0,) * len(phrases), None)
    finished = Finished(n_best, length_penalty)
    run_beam(frontier, rule, finished, length_penalty)
    return Found(finished.hypotheses(frontier.vocabulary, n_best), cost_of(frontier))


_Coverage = tuple[int, tuple[int, ...], int | None]
"""Phrase tokens placed; for each phrase its place in the trie, or `MET`; the phrase that was begun and not ended."""


class _Grid:
    """One beam for each number of placed tokens."""

    def __init__(self, phrases: Sequence[PhraseConstraint], width: int, max_tokens: int) -> None:
        self.tries = [phrase.automaton for phrase in phrases]
        self.total = sum(trie.length for trie in self.tries)
        self.width = width
        self.max_tokens = max_tokens

    def choose(self, rows: Sequence[Choices]) -> tuple[list[Node], list[Node]]:
        """The best of each cell."""
        cells: list[list[tuple[Node, int]]] = [[] for _ in range(self.total + 1)]
        ends: set[Node] = set()
        for rank, choices in enumerate(rows):
            placed, places, begun = choices.node.extra
            if begun is None:
                cells[placed] += [(choices.child(t, choices.node.extra), rank) for t in choices.best(self.width)]
                for phrase, place in enumerate(places):
                    if place != MET:
                        self.place(choices, rank, phrase, cells)
                ended = choices.ended(choices.node.extra) if placed == self.total else None
                if ended is not None:
                    cells[placed].append((ended, rank))
                    ends.add(ended)
            else:
                self.place(choices, rank, begun, cells)
        live: list[Node] = []
        finished: list[Node] = []
        for placed, cell in enumerate(cells):
            order = _distinct(candidate_order(cell))
            finished += [node for node in order[: self.width] if node in ends]
            live += [node for node in order if node not in ends and self.fits(node, placed)][: self.width]
        return live, finished

    def place(self, choices: Choices, rank: int, phrase: int, cells: list[list[tuple[Node, int]]]) -> None:
        """The next token of a phrase, each way it can go on."""
        placed, places, _ = choices.node.extra
        trie = self.tries[phrase]
        for token, child in trie.children[places[phrase]].items():
            if choices.allows(token):
                whole = not trie.children[child]
                after = (*places[:phrase], MET if whole else child, *places[phrase + 1 :])
                coverage: _Coverage = (placed + 1, after, None if whole else phrase)
                cells[placed + 1].append((choices.child(token, coverage), rank))

    def fits(self, node: Node, placed: int) -> bool:
        """Is there room for the other phrase tokens and the end?"""
        return node.length + self.total - placed + 1 <= self.max_tokens


def _distinct(order: Sequence[Node]) -> list[Node]:
    """Nodes that differ in text or in what they placed: one token can be placed, or come about, in several ways."""
    found: dict[tuple[tuple[int, ...], _Coverage], Node] = {}
    for node in order:
        found.setdefault((node.tokens, node.extra), node)
    return list(found.values())


def dynamic_beam_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    phrases: Sequence[PhraseConstraint],
    *,
    width: int = 4,
    n_best: int = 1,
    max_tokens: int = 256,
    length_penalty: float = 0.0,
) -> Found:
    """The best texts that contain all phrases, by one beam of ``width`` shared by all numbers of phrase tokens met.

    Each step looks at the ``width`` best continuations of all, and at the best token of each hypothesis.  It looks at
    every token, too, that goes on with or begins a phrase that is not met.  Slots of the beam are divided by
    `bank_slots`.  A phrase that breaks off counts no more.  Without phrases this is `beam_search`; otherwise give a
    ``width`` above the number of phrase tokens, or only the most complete hypotheses live.  Empty where the grammar has
    no room for the phrases, or the beam did not find it; raises as `beam_search`, and `LimitError` for a phrase longer
    than a text.
    """
    check_sizes(width, n_best)
    frontier = Frontier(model, prompt, constraint, max_tokens)
    rule = allocated(frontier, phrases, width, max_tokens)
    finished = Finished(n_best, length_penalty)
    run_beam(frontier, rule, finished, length_penalty)
    return Found(finished.hypotheses(frontier.vocabulary, n_best), cost_of(frontier))


def allocated(frontier: Frontier, phrases: Sequence[PhraseConstraint], width: int, max_tokens: int) -> Rule:
    """The rule of `dynamic_beam_search`, and the frontier's root made ready for it; raises for phrases as that does."""
    check_phrases(phrases, frontier.vocabulary, max_tokens)
    frontier.root.extra = (0,) * len(phrases)
    return _Allocated(phrases, width, max_tokens)


class _Allocated:
    """One beam divided into banks; a node's extra is the automaton state of each phrase."""

    def __init__(self, phrases: Sequence[PhraseConstraint], width: int, max_tokens: int) -> None:
        self.automata = [phrase.automaton for phrase in phrases]
        self.total = sum(automaton.length for automaton in self.automata)
        self.width = width
        self.max_tokens = max_tokens

    def choose(self, rows: Sequence[Choices]) -> tuple[list[Node], list[Node]]:
        """The best of each bank, as many as its slots."""
        best = {(rank, t): self.child(row, t) for rank, row in enumerate(rows) for t in row.best(self.width)}
        top = sorted(best, key=lambda key: (-best[key].score, *key))[: self.width]
        chosen = {key: best[key] for key in top}
        for rank, choices in enumerate(rows):
            for token in (*choices.best(1), *self.wanted(choices)):
                if (rank, token) not in chosen:
                    chosen[rank, token] = best.get((rank, token)) or self.child(choices, token)
        banks: list[list[tuple[Node, int]]] = [[] for _ in range(self.total + 1)]
        for (rank, _), node in chosen.items():
            if self.fits(node):
                banks[self.bank(node)].append((node, rank))
        ends: dict[Node, int] = {}
        for rank, choices in enumerate(rows):
            ended = choices.ended(choices.node.extra) if self.bank(choices.node) == self.total else None
            if ended is not None:
                ends[ended] = rank
        last = candidate_order([*banks[-1], *ends.items()])
        slots = bank_slots(self.width, [len(bank) for bank in banks])
        live = [node for bank, n in zip(banks, slots, strict=True) for node in candidate_order(bank)[:n]]
        return live, [node for node in last[: self.width] if node in ends]

    def child(self, choices: Choices, token: int) -> Node:
        states = choices.node.extra
        return choices.child(token, tuple(a.advance(s, token) for a, s in zip(self.automata, states, strict=True)))

    def wanted(self, choices: Choices) -> list[int]:
        """The allowed tokens that a phrase needs next."""
        found = {t for a, s in zip(self.automata, choices.node.extra, strict=True) for t in a.next_tokens(s)}
        return sorted(token for token in found if choices.allows(token))

    def bank(self, node: Node) -> int:
        """Phrase tokens met: the total, less those that are still needed."""
        return self.total - sum(a.remaining(s) for a, s in zip(self.automata, node.extra, strict=True))

    def fits(self, node: Node) -> bool:
        """Is there room for the longest phrase and the end?  Phrases may overlap: no more is sure to be needed."""
        needed = max((a.remaining(s) for a, s in zip(self.automata, node.extra, strict=True)), default=0)
        return node.length + needed + 1 <= self.max_tokens


def bank_slots(width: int, sizes: Sequence[int]) -> list[int]:
    """Divide a beam among banks of so many candidates: equal parts, the rest to the last; unused slots go downwards.

    What no lower bank can use goes to the highest that can.

    >>> bank_slots(5, [9, 0, 1])
    [4, 0, 1]
    """
    slots = [width // len(sizes)] * len(sizes)
    slots[-1] += width % len(sizes)
    unused = 0
    for bank in (*reversed(range(len(sizes))), *reversed(range(len(sizes)))):
        offered = slots[bank] + unused
        slots[bank] = min(offered, sizes[bank])
        unused = offered - slots[bank]
    return slots
