"""Beam search, and the loop that the strategies over beams share: `Rule` chooses, `run_beam` does the rest.

Each step expands the live hypotheses in one pass.  Of the candidates, the ``width`` best that go on stay live; one that
ends is finished if it is among the ``width`` best of all, as in Hugging Face Transformers, whose results these are
where the settings agree.  Scores are sums of the model's log-probabilities, not normalised over what the mask allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.search.frontier import Choices, Frontier, Node
from guided.search.result import Finished, Found, cost_of

__all__ = ["Best", "Rule", "Stopping", "beam_search", "candidate_order", "check_sizes", "is_done", "run_beam"]


class Stopping(Enum):
    """When a beam search ends before the limit of tokens.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> for stopping in search.Stopping:
    ...     found = search.beam_search(model, [0], language, width=2, max_tokens=8, stopping=stopping)
    ...     print(stopping.value, found[0].text, found.cost.passes)
    bound a 2
    current_length a 3
    first a 2
    """

    BOUND = "bound"
    """When nothing live can still come among the ``n_best``: the same texts as without stopping."""
    CURRENT_LENGTH = "current_length"
    """When the best live one, if it ended at its present length, would not come among the ``width`` best: an estimate
    where a length penalty is positive.  ``early_stopping=False`` of Transformers."""
    FIRST = "first"
    """As soon as ``width`` texts have finished, or as CURRENT_LENGTH: ``early_stopping=True`` of Transformers."""


class Rule(Protocol):
    """How the next beam is chosen."""

    def choose(self, rows: Sequence[Choices]) -> tuple[list[Node], list[Node]]:
        """The nodes that go on, and those that finished, from what follows the live ones (best first)."""


def candidate_order(nodes: Sequence[tuple[Node, int]]) -> list[Node]:
    """Sort candidates, given with the rank of their parents: by score, then the parent's rank, then the token."""
    return [node for node, _ in sorted(nodes, key=lambda entry: (-entry[0].score, entry[1], entry[0].token))]


class Best:
    """The rule of plain beam search."""

    def __init__(self, width: int) -> None:
        self.width = width

    def choose(self, rows: Sequence[Choices]) -> tuple[list[Node], list[Node]]:
        """The best by score."""
        found: list[tuple[Node, int]] = []
        for rank, choices in enumerate(rows):
            found += [(choices.child(token), rank) for token in choices.best(self.width)]
            ended = choices.ended()
            if ended is not None:
                found.append((ended, rank))
        ends = {node for node, rank in found if node.token == rows[rank].end_token}
        order = candidate_order(found)
        live = [node for node in order if node not in ends][: self.width]
        return live, [node for node in order[: self.width] if node in ends]


def check_sizes(width: int, n_best: int) -> None:
    """Raise `GuidedError` for a beam of no width, or one narrower than what it shall return."""
    if width < 1:
        raise GuidedError(f"the beam is {width} wide", remedy="Keep at least one hypothesis: width=1 is greedy search.")
    if not 1 <= n_best <= width:
        raise GuidedError(f"n_best is {n_best} with a beam of {width}", remedy="Ask for 1 to width hypotheses.")


def beam_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    width: int = 4,
    n_best: int = 1,
    max_tokens: int = 256,
    length_penalty: float = 0.0,
    stopping: Stopping = Stopping.BOUND,
) -> Found:
    """The ``n_best`` texts that a beam of ``width`` hypotheses finds in the constraint's language.

    Texts have at most ``max_tokens`` tokens, the end-of-text included; they are ranked by their log-probability over
    their length to the power ``length_penalty`` (0: by log-probability).  At most ``width`` rows of the model a step.
    Fewer texts come back when the beam loses the others; a text of probability 0 never does.  Raises `LimitError` when
    the language has no text of ``max_tokens`` tokens or less, `GuidedError` for sizes below 1.
    """
    check_sizes(width, n_best)
    frontier = Frontier(model, prompt, constraint, max_tokens)
    size = n_best if stopping is Stopping.BOUND else width
    finished = Finished(size, length_penalty)
    run_beam(frontier, Best(width), finished, length_penalty, stopping)
    return Found(finished.hypotheses(frontier.vocabulary, n_best), cost_of(frontier))


def run_beam(
    frontier: Frontier, rule: Rule, finished: Finished, length_penalty: float = 0.0, stopping: Stopping = Stopping.BOUND
) -> None:
    """Grow a beam from the frontier's root until nothing is live or the stopping says so."""
    live = [frontier.root]
    while live:
        live, ended = rule.choose(frontier.expand(live))
        for node in ended:
            finished.add(node)
        if live and finished.full and is_done(live, finished, frontier.max_tokens, length_penalty, stopping):
            return


def is_done(live: Sequence[Node], finished: Finished, longest: int, length_penalty: float, stopping: Stopping) -> bool:
    """May a beam stop that has as many texts as it wants, and these live hypotheses, best first?"""
    if stopping is Stopping.FIRST:
        return True
    score, length = max(node.score for node in live), live[0].length
    if stopping is Stopping.BOUND:
        # Scores only fall; a positive penalty is kindest to the longest text, a negative one to the shortest.
        length = longest if length_penalty > 0 else length + 1
    return finished.rank_score(score, length) <= finished.worst
