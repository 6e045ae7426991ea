"""Beam search of several prompts side by side: one pass of the model a step for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from guided.constraint.protocol import Constrains
from guided.lm.model import LanguageModel
from guided.search.beam import Best, Rule, Stopping, check_sizes, is_done
from guided.search.frontier import Frontiers, Node
from guided.search.lexical import allocated
from guided.search.phrases import PhraseConstraint
from guided.search.result import Finished, Found, SearchCost

__all__ = ["beam_search_each"]


def beam_search_each(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    constraints: Sequence[Constrains],
    *,
    phrases: Sequence[Sequence[PhraseConstraint]] | None = None,
    width: int = 4,
    n_best: int = 1,
    max_tokens: int = 256,
    length_penalty: float = 0.0,
    stopping: Stopping = Stopping.BOUND,
) -> list[Found]:
    """What `beam_search` finds for each prompt, or with ``phrases`` for each what `dynamic_beam_search` does.

    A step costs one pass over up to ``width`` rows of each prompt that still searches.  ``cost`` of a result counts the
    passes that it took part in and the rows of its own.  Raises as these do, and `GuidedError` for other numbers of
    constraints or phrases than prompts.
    """
    check_sizes(width, n_best)
    frontiers = Frontiers(model, prompts, constraints, max_tokens)
    rules: list[Rule] = [Best(width) for _ in prompts]
    if phrases is not None:
        rules = [
            allocated(frontier, wanted, width, max_tokens)
            for frontier, wanted in zip(frontiers.each, phrases, strict=True)
        ]
    # As `dynamic_beam_search`, which has no other way to stop.
    ways = stopping if phrases is None else Stopping.BOUND
    size = n_best if ways is Stopping.BOUND else width
    finished = [Finished(size, length_penalty) for _ in prompts]
    live: list[list[Node]] = [[frontier.root] for frontier in frontiers.each]
    passes, rows = [0] * len(live), [0] * len(live)
    while any(live):
        for number, nodes in enumerate(live):
            if nodes and nodes[0].parent is not None:
                passes[number] += 1
                rows[number] += len(nodes)
        for number, choices in enumerate(frontiers.expand(live)):
            if not choices:
                continue
            live[number], ended = rules[number].choose(choices)
            for node in ended:
                finished[number].add(node)
            going, done = live[number], finished[number]
            if going and done.full and is_done(going, done, max_tokens, length_penalty, ways):
                live[number] = []
    return [
        Found(done.hypotheses(frontier.vocabulary, n_best), SearchCost(passes[number], rows[number]))
        for number, (done, frontier) in enumerate(zip(finished, frontiers.each, strict=True))
    ]
