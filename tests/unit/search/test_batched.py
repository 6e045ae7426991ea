"""Several prompts side by side: each finds what it finds alone, in the passes of the longest."""

from __future__ import annotations

import pytest

import guided
from guided.errors import GuidedError, LimitError
from guided.lm import TableModel
from guided.search import PhraseConstraint, Stopping, beam_search, beam_search_each, dynamic_beam_search
from tests.amounts import each
from tests.tolerances import DOUBLE
from tests.twin.slow_search import VOCABULARY

PROMPTS = [(0,), (1, 2, 0), (0,), (3, 3)]
PATTERNS = ["[abc]*", "(ab|c)*b?", "a?b?c?(ab)?", "ca*|b"]
CONSTRAINTS = [guided.compile(guided.regex(pattern), VOCABULARY) for pattern in PATTERNS]


def same(found, alone):
    assert [each.tokens for each in found] == [each.tokens for each in alone]
    assert [each.score for each in found] == pytest.approx([each.score for each in alone], abs=DOUBLE)


@pytest.mark.parametrize("stopping", each(Stopping, 2))
@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("width", [1, 3])
def test_each_finds_what_it_finds_alone(width, penalty, stopping):
    for seed in range(4):
        model = TableModel.random(seed, width=5)
        options = {
            "width": width, "n_best": width, "max_tokens": 6, "length_penalty": penalty, "stopping": stopping,
        }  # fmt: skip
        before = model.calls.passes
        together = beam_search_each(model, PROMPTS, CONSTRAINTS, **options)
        passes = model.calls.passes - before
        alone = [beam_search(model, p, c, **options) for p, c in zip(PROMPTS, CONSTRAINTS, strict=True)]
        for found, one in zip(together, alone, strict=True):
            same(found, one)
            assert found.cost == one.cost
        # The prompts, and then as many as the longest search takes.
        assert passes == 1 + max(one.cost.passes for one in alone) < 4 + sum(one.cost.passes for one in alone)


def test_phrases_of_each():
    model = TableModel.random(3, width=5)
    wanted = [[PhraseConstraint.of((2, 0))], [PhraseConstraint.of((3,), (2,))], [], [PhraseConstraint.of((0,))]]
    together = beam_search_each(model, PROMPTS, CONSTRAINTS, phrases=wanted, width=8, n_best=2, max_tokens=6)
    for found, prompt, constraint, phrases in zip(together, PROMPTS, CONSTRAINTS, wanted, strict=True):
        same(found, dynamic_beam_search(model, prompt, constraint, phrases, width=8, n_best=2, max_tokens=6))
        assert found


def test_what_cannot_be_searched():
    model = TableModel.random(3, width=5)
    for prompts, constraints in ((PROMPTS, CONSTRAINTS[:2]), ([], [])):
        with pytest.raises(GuidedError, match="prompts"):
            beam_search_each(model, prompts, constraints)
    long = guided.compile(guided.regex("a{9}"), VOCABULARY)
    with pytest.raises(LimitError):
        beam_search_each(model, PROMPTS[:2], [CONSTRAINTS[0], long], max_tokens=4)
