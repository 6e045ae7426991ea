"""NeuroLogic decoding: beams steered towards texts that satisfy clauses of phrases, with A*esque look-ahead.

A `Clause` holds when one of its literals does; a `Literal` says that a phrase occurs, or that it does not.  A beam is
filled in turn from groups of candidates that have satisfied the same clauses for good, so that likely texts which
satisfy nothing cannot crowd out the others.  (Lu et al., 2021, arXiv 2010.12884; 2022, arXiv 2112.08726.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.search.beam import candidate_order, check_sizes, run_beam
from guided.search.frontier import Choices, Frontier, Node
from guided.search.phrases import MET, PhraseConstraint, check_phrases
from guided.search.result import Finished, Found, cost_of

__all__ = ["Clause", "Literal", "LookAhead", "Status", "neurologic_search"]


@dataclass(frozen=True)
class Literal:
    """A phrase (with its alternatives) occurs; with ``positive`` False none of them does."""

    phrase: PhraseConstraint
    positive: bool = True


@dataclass(frozen=True)
class Clause:
    """Holds when one of its literals does.  Raises `GuidedError` without literals."""

    literals: tuple[Literal, ...]

    def __post_init__(self) -> None:
        if not self.literals:
            raise GuidedError("a clause without literals never holds", remedy="Leave it out, or give it a literal.")

    @classmethod
    def of(cls, *literals: Literal) -> Clause:
        """A clause of these literals."""
        return cls(literals)


@dataclass(frozen=True)
class LookAhead:
    """How likely the phrases that are missing become within the next tokens, as A*esque decoding estimates it.

    Each candidate is continued by its ``beams`` likeliest continuations (1: greedily) for ``length`` tokens under the
    grammar.  The estimate is the highest log-probability of a missing phrase at any place of them; ``weight`` of it is
    added to what candidates are compared by.  Costs ``length`` passes a step, and one more where phrases have several
    tokens.  Raises `GuidedError` for fewer than one token or beam, or a weight that is not finite.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> bs = search.Clause.of(search.Literal(search.PhraseConstraint.of([1])))
    >>> near = search.LookAhead(length=2, weight=0.5)
    >>> search.neurologic_search(model, [0], language, [bs], width=4, max_tokens=6, look_ahead=near)[0].text
    'b'
    """

    length: int = 5
    weight: float = 0.25
    beams: int = 1

    def __post_init__(self) -> None:
        if self.length < 1 or self.beams < 1 or not math.isfinite(self.weight):
            raise GuidedError(
                f"a look-ahead of {self.length} tokens with {self.beams} beams and weight {self.weight}",
                remedy="Use at least one token and one beam, and a finite weight.",
            )


class Status(Enum):
    """Where a clause stands along a text."""

    SATISFIED = "satisfied"
    """For good: a positive literal has occurred."""
    SATISFIED_SO_FAR = "satisfied so far"
    """By the absence of a phrase that may still come."""
    OPEN = "open"
    """Not satisfied, and a phrase that may still come would do it."""
    FAILED = "failed"
    """Not satisfied for good: only absences would have done, and all the phrases came."""


def neurologic_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    clauses: Sequence[Clause],
    *,
    width: int = 4,
    n_best: int = 1,
    max_tokens: int = 256,
    length_penalty: float = 0.0,
    expand: int = 64,
    progress_weight: float = 0.1,
    look_ahead: LookAhead | None = None,
) -> Found:
    """The best texts that a beam of ``width`` finds in the constraint's language, all clauses satisfied.

    Of each hypothesis the ``expand`` likeliest tokens are looked at (at least ``width``): phrases come about where the
    model or the look-ahead leans to them, they are not forced (`dynamic_beam_search` forces them).  Candidates of a
    group are compared by log-probability, plus ``progress_weight`` times how much of a missing phrase has occurred,
    plus the look-ahead.  The paper ends with the hypothesis that satisfies most; here a text that leaves a clause
    unsatisfied is not returned, so the answer may be empty.  Without clauses this is `beam_search`, as whose it raises.
    """
    check_sizes(width, n_best)
    if expand < 1 or not math.isfinite(progress_weight):
        raise GuidedError(
            f"expand is {expand} and progress_weight {progress_weight}", remedy="Use at least 1 and a finite weight."
        )
    frontier = Frontier(model, prompt, constraint, max_tokens)
    for clause in clauses:
        # Phrases that must be absent may be of any length; of others one alternative has to fit.
        for literal in clause.literals:
            check_phrases([literal.phrase], frontier.vocabulary, max_tokens if literal.positive else 1 << 62)
    rule = _Grouped(frontier, clauses, width, max(expand, width), progress_weight, look_ahead)
    frontier.root.extra = rule.start
    finished = Finished(n_best, length_penalty)
    run_beam(frontier, rule, finished, length_penalty)
    return Found(finished.hypotheses(frontier.vocabulary, n_best), cost_of(frontier))


States = tuple[tuple[int, ...], ...]
"""For each clause, the automaton state of each literal's phrase."""


def status_of(clause: Clause, states: Sequence[int], *, ended: bool = False) -> Status:
    """Where a clause stands when its literals' phrases stand there, and the text goes on or has ``ended``."""
    pairs = [
        (literal, literal.phrase.automaton.at_end(state) if ended else state == MET)
        for literal, state in zip(clause.literals, states, strict=True)
    ]
    if any(literal.positive and met for literal, met in pairs):
        return Status.SATISFIED
    if any(not literal.positive and not met for literal, met in pairs):
        return Status.SATISFIED_SO_FAR
    return Status.OPEN if any(literal.positive for literal, _ in pairs) else Status.FAILED


class _Grouped:
    """The rule: prune, group by what is satisfied for good, fill the beam from the groups in turn."""

    def __init__(
        self,
        frontier: Frontier,
        clauses: Sequence[Clause],
        width: int,
        expand: int,
        progress_weight: float,
        look_ahead: LookAhead | None,
    ) -> None:
        self.frontier = frontier
        self.clauses = clauses
        self.width = width
        self.expand = expand
        self.progress_weight = progress_weight
        self.look_ahead = look_ahead
        self.start: States = tuple((0,) * len(clause.literals) for clause in clauses)

    def choose(self, rows: Sequence[Choices]) -> tuple[list[Node], list[Node]]:
        """The best of each group in turn; what ends is compared within the texts that satisfy everything."""
        groups: dict[tuple[bool, ...], list[tuple[Node, int]]] = {}
        whole: list[tuple[Node, int]] = []
        ends: set[Node] = set()
        for rank, choices in enumerate(rows):
            for token in choices.best(self.expand):
                node = choices.child(token, self.advance(choices.node.extra, token))
                status = self.status(node)
                if Status.FAILED in status or not self.fits(node, status):
                    continue
                groups.setdefault(tuple(one is Status.SATISFIED for one in status), []).append((node, rank))
                if Status.OPEN not in status:
                    whole.append((node, rank))
            if not {Status.OPEN, Status.FAILED} & set(self.status(choices.node, ended=True)):
                ended = choices.ended(choices.node.extra)
                if ended is not None:
                    whole.append((ended, rank))
                    ends.add(ended)
        finished = [node for node in candidate_order(whole)[: self.width] if node in ends]
        return self.fill([self.ranked(group) for group in groups.values()], rows), finished

    def advance(self, states: States, token: int) -> States:
        return tuple(
            tuple(
                literal.phrase.automaton.advance(state, token)
                for literal, state in zip(clause.literals, of_clause, strict=True)
            )
            for clause, of_clause in zip(self.clauses, states, strict=True)
        )

    def status(self, node: Node, *, ended: bool = False) -> list[Status]:
        return [status_of(clause, states, ended=ended) for clause, states in zip(self.clauses, node.extra, strict=True)]

    def missing(self, node: Node) -> list[tuple[PhraseConstraint, int]]:
        """The phrases that would satisfy an open clause, each with its automaton state."""
        return [
            (literal.phrase, state)
            for clause, states in zip(self.clauses, node.extra, strict=True)
            if status_of(clause, states) is Status.OPEN
            for literal, state in zip(clause.literals, states, strict=True)
            if literal.positive
        ]

    def fits(self, node: Node, status: Sequence[Status]) -> bool:
        """Is there room for one phrase of each open clause, and the end?"""
        needed = 0
        for clause, states, one in zip(self.clauses, node.extra, status, strict=True):
            if one is Status.OPEN:
                pairs = zip(clause.literals, states, strict=True)
                needed = max(needed, min(li.phrase.automaton.remaining(s) for li, s in pairs if li.positive))
        return node.length + needed + 1 <= self.frontier.max_tokens

    def worth(self, node: Node) -> float:
        """The log-probability and the bonus for phrases begun."""
        begun = max((phrase.automaton.progress(state) for phrase, state in self.missing(node)), default=0.0)
        return node.score + self.progress_weight * begun

    def ranked(self, group: Sequence[tuple[Node, int]]) -> list[tuple[float, Node]]:
        """The best of a group, as many as the beam holds."""
        order = [(self.worth(node), node) for node in candidate_order(group)]
        return sorted(order, key=lambda entry: -entry[0])[: self.width]

    def fill(self, groups: list[list[tuple[float, Node]]], rows: Sequence[Choices]) -> list[Node]:
        """The best of every group, then the second of every group, and so on; groups that satisfy more come first."""
        if self.look_ahead is not None and self.clauses:
            nodes = [node for group in groups for _, node in group]
            hopes = dict(zip(nodes, self.hopes(nodes, self.look_ahead, rows), strict=True))
            weight = self.look_ahead.weight
            groups = [
                sorted(
                    # A phrase of probability 0 counts as out of reach, not as a number.
                    ((worth + weight * max(hopes[node], HOPELESS), node) for worth, node in group),
                    key=lambda entry: -entry[0],
                )
                for group in groups
            ]
        groups.sort(key=lambda group: (-self.status(group[0][1]).count(Status.SATISFIED), -group[0][0]))
        longest = max(map(len, groups), default=0)
        order = [group[place] for place in range(longest) for group in groups if place < len(group)]
        return [node for _, node in order[: self.width]]

    def hopes(self, nodes: list[Node], look_ahead: LookAhead, rows: Sequence[Choices]) -> list[float]:
        """For each node the highest log-probability of a missing phrase within the look-ahead, 0 if none is missing.

        Of a phrase that was begun, the rest counts as well.
        """
        parents = [choices.node for choices in rows]
        wanted = {
            node: list(dict.fromkeys(option for phrase, _ in self.missing(node) for option in phrase.options))
            for node in nodes
        }
        best = {node: -math.inf if wanted[node] else 0.0 for node in nodes}
        heads = [(node, node) for node in nodes if wanted[node]]
        for place in range(look_ahead.length):
            if not heads:
                break
            found = self.frontier.expand([head for _, head in heads], keep=parents)
            asked = [
                (node, choices, phrase)
                for (node, _), choices in zip(heads, found, strict=True)
                for phrase in (wanted[node] if place else [*wanted[node], *_rests(node, wanted[node])])
            ]
            values = self.frontier.phrase_logprobs([question[1:] for question in asked])
            for (node, _, _), value in zip(asked, values, strict=True):
                best[node] = max(best[node], value)
            if place + 1 == look_ahead.length:
                break
            grown: dict[Node, list[Node]] = {}
            for (node, _), choices in zip(heads, found, strict=True):
                grown.setdefault(node, []).extend(choices.child(token) for token in choices.best(look_ahead.beams))
            heads = [
                (node, head)
                for node, children in grown.items()
                for head in sorted(children, key=lambda child: -child.score)[: look_ahead.beams]
            ]
        return [best[node] for node in nodes]


def _rests(node: Node, phrases: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """What is left of the phrases that a node's last tokens begin."""
    tokens = node.tokens
    return [
        phrase[length:] for phrase in phrases for length in range(1, len(phrase)) if tokens[-length:] == phrase[:length]
    ]


HOPELESS = -1e4
"""Below any log-probability of a phrase of some hundred tokens; finite, so that sums of it still compare."""
