"""Planning by Monte Carlo tree search: texts that a reward likes, found by roll-outs of the model under the grammar.

PG-TD: Zhang et al., "Planning with Large Language Models for Code Generation" (ICLR 2023, arXiv 2303.05510).
Reconstructed from the paper's text: selection by P-UCB, expansion by the likeliest tokens, evaluation of the text that
the model completes greedily (a beam of one), and the maximum of rewards backed up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.infer.potentials.potential import Potential
from guided.lm.model import LanguageModel
from guided.search.frontier import Node
from guided.search.open_frontier import Judging, OpenFrontier, TreeFound, greedy_end, potential_over
from guided.search.result import Hypothesis, cost_of, data_of

__all__ = ["Rewards", "mcts_search"]


class Rewards:
    """The rewards of finished nodes, each text asked about once; ``exp`` of a potential's log weight."""

    def __init__(self, potential: Potential[Any]) -> None:
        self._potential = potential
        self.known: dict[tuple[int, ...], tuple[float, Node]] = {}

    def of(self, node: Node) -> float:
        """The weight of a finished text."""
        tokens = node.tokens
        found = self.known.get(tokens)
        if found is None:
            weight = self._potential.checked(self._potential.complete(tokens[:-1]))
            found = self.known[tokens] = (math.exp(weight), node)
        return found[0]

    def best(self, n: int) -> list[tuple[float, Node]]:
        """The texts of greatest reward, then log-probability, then the shorter and smaller ids; none of reward 0."""
        order = sorted(self.known.items(), key=lambda item: (-item[1][0], -item[1][1].score, len(item[0]), item[0]))
        return [entry for _, entry in order if entry[0] > 0][:n]


@dataclass(eq=False)
class _Place:
    """A prefix of the search tree."""

    node: Node
    prior: float
    """The model's probability of its last token."""
    ended: bool = False
    children: list[_Place] | None = None
    visits: int = 0
    value: float = 0.0
    """The greatest reward of a text that was completed from here."""
    done: bool = False
    """Everything below was looked at."""


def mcts_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    reward: Judging,
    rollouts: int = 64,
    expand: int = 3,
    exploration: float = 4.0,
    base: float = 10.0,
    n_best: int = 1,
    max_tokens: int = 256,
) -> TreeFound:
    """The texts of greatest ``reward`` among those that ``rollouts`` of the model complete.

    ``reward`` is a potential, or makes one of the vocabulary: a text is worth ``exp`` of its log weight, 1 for a
    `UnitTest` that passes and 0 for one that fails; rewards between 0 and 1 suit the constants.  A child a of a prefix
    s is chosen by ``Q(s, a) + beta(s) P(a | s) sqrt(log N(s)) / (1 + N(s, a))`` with ``beta(s) = log((N(s) + base + 1)
    / base) + exploration``.  Of each prefix the ``expand`` likeliest ways to go on are looked at, the end of the text
    among them.  Prefixes below which all was looked at are left out, so that a small tree is searched to its end
    (`TreeFound.complete`), which the paper does not.  ``rank_score`` is the reward.  A roll-out costs up to
    ``max_tokens`` rows of the model and one question about its text; texts of reward 0 never come back.  Deterministic.
    Raises `GuidedError` for numbers below 1, and `LimitError` where the language has no text of ``max_tokens`` tokens.

    >>> import guided
    >>> from guided import infer
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> reward = infer.TextScorer(letters, lambda texts: [-abs(text.count("b") - 2.0) for text in texts])
    >>> found = search.mcts_search(model, [0], language, reward=reward, rollouts=40, max_tokens=6)
    >>> found[0].text.count("b"), found[0].rank_score
    (2, 1.0)
    """
    if rollouts < 1 or expand < 1 or n_best < 1 or base <= 0:
        raise GuidedError(
            f"{rollouts} roll-outs, {expand} ways, {n_best} texts, base {base}", remedy="At least 1 each."
        )
    frontier = OpenFrontier(model, prompt, constraint, max_tokens)
    rewards = Rewards(potential_over(frontier.vocabulary, reward))
    root = _Place(frontier.root, 1.0)
    expanded = 0
    for _ in range(rollouts):
        if root.done:
            break
        path = _selected(root, exploration, base)
        leaf = path[-1]
        if leaf.ended:
            value, leaf.done = rewards.of(leaf.node), True
        else:
            value = _expanded(frontier, leaf, expand, rewards)
            expanded += 1
        for place in reversed(path):
            place.visits += 1
            place.value = max(place.value, value)
            place.done = place.done or (place.children is not None and all(child.done for child in place.children))
    texts = tuple(
        Hypothesis(node.tokens, data_of(frontier.vocabulary, node.tokens), node.score, worth)
        for worth, node in rewards.best(n_best)
    )
    return TreeFound(texts, cost_of(frontier), expanded, len(rewards.known), root.done)


def _selected(root: _Place, exploration: float, base: float) -> list[_Place]:
    """The way from the root to a place without children, by P-UCB among those that are not done."""
    path = [root]
    while path[-1].children is not None:
        here = path[-1]
        beta = math.log((here.visits + base + 1) / base) + exploration
        reach = beta * math.sqrt(math.log(max(here.visits, 1)))
        open_ = [child for child in here.children or () if not child.done]
        # The first of equals is the likeliest.
        path.append(max(open_, key=lambda child: child.value + reach * child.prior / (1 + child.visits)))
    return path


def _expanded(frontier: OpenFrontier, leaf: _Place, expand: int, rewards: Rewards) -> float:
    """Give a place its children; the reward of the text that the model completes from it."""
    [choices] = frontier.expand([leaf.node])
    ways = [_Place(choices.child(token), math.exp(float(choices.logprobs[token]))) for token in choices.best(expand)]
    ended = choices.ended()
    if ended is not None:
        ways.append(_Place(ended, math.exp(choices.end), ended=True))
    leaf.children = sorted(ways, key=lambda place: -place.prior)[:expand]
    text = greedy_end(frontier, leaf.node, choices)
    return 0.0 if text is None else rewards.of(text)
