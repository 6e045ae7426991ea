"""Best-first tree search under a budget: A*-decoding, and trees of decoding and checks with settings that are tuned.

A*-decoding is Chatziveroglou, "A*-Decoding: Token-Efficient Inference Scaling" (2025, arXiv 2505.13672): the most
promising partial text is expanded next, by its log-probability and what a reward model says of it.  Trees of decoding
strategies and constraints whose settings are chosen on examples are TreeCoder (2025, arXiv 2511.22277).  Both are
reconstructed from the papers' text, token by token rather than step by step.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.infer.potentials.potential import Potential
from guided.lm.model import LanguageModel
from guided.search.frontier import Choices, Node
from guided.search.open_frontier import Judging, OpenFrontier, TreeFound, potential_over
from guided.search.result import Hypothesis, cost_of, data_of

__all__ = ["Setting", "a_star_search", "tuned"]

_NEVER = -math.inf


def a_star_search(
    model: LanguageModel,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    judge: Judging | None = None,
    weight: float = 1.0,
    per_token: float = 0.0,
    expand: int | None = None,
    batch: int = 1,
    max_expanded: int = 1000,
    n_best: int = 1,
    max_tokens: int = 256,
) -> TreeFound:
    """The ``n_best`` texts of greatest ``log p + weight judge``, by expanding the most promising prefixes first.

    A prefix is worth its log-probability, ``weight`` times the log weight that ``judge`` gives to it as a prefix, and
    ``per_token`` for each token that it has; a finished text the first, ``weight`` times its log weight as a text, and
    the same ``per_token``.  The texts are the best there are, in order, where ``per_token`` is 0, the search ended by
    itself (`TreeFound.complete`), and no text weighs more than a prefix of it.  The last holds for constraints, for
    scores of at most 0 without prefixes, and for lookahead bounds.  Otherwise it is a heuristic search: ``per_token``
    keeps it from preferring short prefixes.  ``expand`` keeps so many ways to go on of each prefix (None: all, which
    exactness needs), ``batch`` prefixes are read in a pass.  After ``max_expanded`` prefixes what is finished comes
    back, fewer texts than asked for if need be.  ``rank_score`` is what was maximised.  Raises `GuidedError` for
    numbers below 1 and a weight below 0.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> [each.text for each in search.a_star_search(model, [0], language, max_tokens=6, n_best=2)]
    ['a', 'aa']
    """
    if min(batch, max_expanded, n_best, 1 if expand is None else expand) < 1 or not weight >= 0:
        raise GuidedError("batch, max_expanded, n_best and expand are at least 1, and weight at least 0")
    frontier = OpenFrontier(model, prompt, constraint, max_tokens)
    values = _Values(None if judge is None else potential_over(frontier.vocabulary, judge), weight, per_token)
    # The order of equals: longer first, as they are nearer to an end, then the earlier.
    numbers = itertools.count()
    queue: list[tuple[float, int, int, Node, bool]] = []

    def push(nodes: Sequence[Node], ended: bool) -> None:
        for node, worth in zip(nodes, values.of(nodes, ended), strict=True):
            if worth > _NEVER:
                heapq.heappush(queue, (-worth, -node.length, next(numbers), node, ended))

    push([frontier.root], False)
    found: list[tuple[float, Node]] = []
    expanded = evaluated = 0
    while queue and len(found) < n_best and expanded < max_expanded:
        part: list[Node] = []
        while queue and len(part) < min(batch, max_expanded - expanded):
            if queue[0][4]:
                if part:
                    break
                negative, _, _, node, _ = heapq.heappop(queue)
                found.append((-negative, node))
                if len(found) == n_best:
                    break
                continue
            part.append(heapq.heappop(queue)[3])
        if not part:
            continue
        expanded += len(part)
        for choices in frontier.expand(part):
            going, ended = _ways(choices, expand)
            push(going, False)
            push(ended, True)
            evaluated += len(ended)
    complete = not queue or len(found) == n_best
    while queue and len(found) < n_best:
        negative, _, _, node, finished = heapq.heappop(queue)
        if finished:
            found.append((-negative, node))
    texts = tuple(
        Hypothesis(node.tokens, data_of(frontier.vocabulary, node.tokens), node.score, worth) for worth, node in found
    )
    return TreeFound(texts, cost_of(frontier), expanded, evaluated, complete)


def _ways(choices: Choices, expand: int | None) -> tuple[list[Node], list[Node]]:
    """The nodes that go on, and the one that ends, of the likeliest ways."""
    going = [choices.child(token) for token in choices.best(len(choices.tokens) if expand is None else expand)]
    ended = choices.ended()
    ends = [] if ended is None else [ended]
    if expand is None:
        return going, ends
    kept = sorted([*going, *ends], key=lambda node: -node.score)[:expand]
    return [node for node in kept if node is not ended], [node for node in kept if node is ended]


class _Values:
    """What nodes are worth."""

    def __init__(self, judge: Potential[Any] | None, weight: float, per_token: float) -> None:
        self._judge, self._weight, self._per_token = judge, weight, per_token

    def of(self, nodes: Sequence[Node], ended: bool) -> list[float]:
        scores = [node.score + self._per_token * node.length for node in nodes]
        judge = self._judge
        if judge is None or not nodes:
            return scores
        states = [judge.state_of(node.tokens[:-1] if ended else node.tokens) for node in nodes]
        said = judge.complete_each(states) if ended else judge.prefix_each(states)
        # A weight of 0 forbids what is forbidden all the same.
        return [
            score + (self._weight * value if judge.checked(value) > _NEVER else _NEVER)
            for score, value in zip(scores, said, strict=True)
        ]


@dataclass(frozen=True)
class Setting:
    """One way to search, and what it was worth on the examples.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> def run(example, **options):
    ...     return search.a_star_search(model, [0], language, max_tokens=6, **options)
    >>> settings = search.tuned(run, {"expand": [1, 3]}, [None], lambda example, found: found[0].score)
    >>> [(setting.options, round(setting.mean, 2)) for setting in settings]
    [({'expand': 3}, -1.9), ({'expand': 1}, -3.98)]
    """

    options: Mapping[str, Any]
    mean: float
    """The mean of the metric over the examples."""
    expanded: float
    """Mean number of prefixes that a search expanded: what the result cost."""


def tuned(
    search: Callable[..., TreeFound],
    options: Mapping[str, Sequence[Any]],
    examples: Sequence[Any],
    metric: Callable[[Any, TreeFound], float],
) -> tuple[Setting, ...]:
    """All combinations of ``options`` tried on all examples, the best first; equal ones by what they expanded.

    ``search(example, **options)`` runs one; ``metric(example, found)`` says what it is worth.  Constraints and decoding
    are options alike: a judge, its weight, how many ways are expanded, the budget.  Judge what is chosen on other
    examples.  Raises `GuidedError` without examples or options.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> def run(example, **options):
    ...     return search.a_star_search(model, [0], language, max_tokens=6, **options)
    >>> def ended(example, found):
    ...     return float(found.complete)
    >>> best, *others = search.tuned(run, {"max_expanded": [1, 20]}, [None], ended)
    >>> best.options
    {'max_expanded': 20}
    """
    if not examples or not options or not all(options.values()):
        raise GuidedError("nothing to tune: give examples, and values for each option")
    settings = []
    for values in itertools.product(*options.values()):
        chosen = dict(zip(options, values, strict=True))
        runs = [search(example, **chosen) for example in examples]
        worths = [metric(example, run) for example, run in zip(examples, runs, strict=True)]
        mean = math.fsum(worths) / len(worths)
        settings.append(Setting(chosen, mean, sum(run.expanded for run in runs) / len(runs)))
    return tuple(sorted(settings, key=lambda setting: (-setting.mean, setting.expanded)))
