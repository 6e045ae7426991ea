"""Diverse beam search: groups of beams that are kept from choosing the same tokens (Vijayakumar et al., 2018).

At each step the groups choose in turn; a token that earlier groups chose at this step costs a later one the Hamming
penalty for each time.  The penalty decides what is chosen and is not part of any score.  (arXiv 1610.02424.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.search.beam import check_sizes
from guided.search.frontier import Choices, Frontier, Node
from guided.search.result import Finished, Hypothesis, SearchCost, cost_of, found_html

__all__ = ["DiverseFound", "diverse_beam_search"]


@dataclass(frozen=True)
class DiverseFound:
    """What each group found, best first; the same text may be in several.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> found = search.diverse_beam_search(model, [0], language, width=1, groups=2, penalty=5.0, max_tokens=6)
    >>> [[each.text for each in group] for group in found.groups]
    [['aaaa'], ['b']]
    """

    groups: tuple[tuple[Hypothesis, ...], ...]
    cost: SearchCost

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """Each text once: the best of every group, then the second best, and so on."""
        longest = max(map(len, self.groups), default=0)
        order = [group[place] for place in range(longest) for group in self.groups if place < len(group)]
        first: dict[tuple[int, ...], Hypothesis] = {}
        for hypothesis in order:
            first.setdefault(hypothesis.tokens, hypothesis)
        return tuple(first.values())

    def _repr_html_(self) -> str:
        return found_html(f"Found by {len(self.groups)} groups", self.hypotheses, self.cost)


def diverse_beam_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    width: int = 2,
    groups: int = 3,
    penalty: float = 0.5,
    n_best: int = 1,
    max_tokens: int = 256,
    length_penalty: float = 0.0,
) -> DiverseFound:
    """The ``n_best`` texts of each of ``groups`` beams of ``width`` hypotheses.

    ``penalty`` is subtracted from a token's log-probability for each time that an earlier group chose it at the same
    step: 0.2 to 0.8 are usual, 0 makes all groups the same.  The first group is `beam_search`.  All groups share a pass
    of the model at every step.  Raises as `beam_search`.  Raises `GuidedError` for fewer than one group or a negative
    penalty.
    """
    check_sizes(width, n_best)
    if groups < 1 or not 0 <= penalty < float("inf"):
        raise GuidedError(
            f"{groups} groups with a penalty of {penalty}", remedy="Ask for at least one group and a penalty from 0."
        )
    frontier = Frontier(model, prompt, constraint, max_tokens)
    finished = [Finished(n_best, length_penalty) for _ in range(groups)]
    rows = frontier.expand([frontier.root]) * groups
    live = [[frontier.root] for _ in range(groups)]
    while rows:
        chosen = np.zeros(frontier.vocabulary.size)
        place = 0
        for group, beam in enumerate(live):
            choices = rows[place : place + len(beam)]
            place += len(beam)
            live[group], ended = _choose(choices, width, penalty * chosen)
            np.add.at(chosen, [node.token for node in live[group]], 1)
            for node in ended:
                finished[group].add(node)
        # A group's choices matter to those after it: only groups at the end can rest.
        while live and (not live[-1] or _done(live[-1], finished[len(live) - 1], max_tokens, length_penalty)):
            live.pop()
        rows = frontier.expand([node for beam in live for node in beam])
    return DiverseFound(tuple(each.hypotheses(frontier.vocabulary, n_best) for each in finished), cost_of(frontier))


def _choose(rows: Sequence[Choices], width: int, handicap: NDArray[np.float64]) -> tuple[list[Node], list[Node]]:
    """The beam that goes on and what finished, ranked by score less the handicap of the last token."""
    found: list[tuple[float, int, int, Node, bool]] = []
    for rank, choices in enumerate(rows):
        for token in choices.best(width, handicap):
            node = choices.child(token)
            found.append((float(handicap[token]) - node.score, rank, token, node, False))
        ended = choices.ended()
        if ended is not None:
            found.append((-ended.score, rank, ended.token, ended, True))
    found.sort(key=lambda entry: entry[:3])
    return (
        [entry[3] for entry in found if not entry[4]][:width],
        [entry[3] for entry in found[:width] if entry[4]],
    )


def _done(live: Sequence[Node], finished: Finished, longest: int, length_penalty: float) -> bool:
    """Can nothing live come among the best?"""
    length = longest if length_penalty > 0 else live[0].length + 1
    return finished.full and finished.rank_score(max(node.score for node in live), length) <= finished.worst
