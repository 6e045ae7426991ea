"""Diverse beam search against a plain twin and beam search."""

from __future__ import annotations

import math
from collections import Counter

import pytest

import guided
from guided.errors import GuidedError
from guided.lm import TableModel
from guided.search import beam_search, diverse_beam_search
from tests.amounts import each
from tests.tolerances import DOUBLE
from tests.twin.slow_search import END, PROMPT, VOCABULARY, anything, every_text, total


def slow_groups(model, texts, width, groups, penalty, max_tokens):
    """Each group's finished texts, none stopped early."""
    prefixes = {text[:n] for text in texts for n in range(len(text) + 1)}
    live, finished = [[()] for _ in range(groups)], [[] for _ in range(groups)]
    for _ in range(max_tokens):
        used = Counter()
        for g in range(groups):
            grown = [(*tokens, t) for tokens in live[g] for t in range(END + 1) if (*tokens, t) in prefixes]
            grown.sort(key=lambda tokens: penalty * used[tokens[-1]] - total(model, tokens))
            finished[g] += [tokens for tokens in grown[:width] if tokens[-1] == END]
            live[g] = [tokens for tokens in grown if tokens[-1] != END][:width]
            used.update(tokens[-1] for tokens in live[g])
    return [sorted(each, key=lambda tokens: -total(model, tokens))[:width] for each in finished]


@pytest.mark.parametrize("penalty", each([0.0, 0.4, 5.0], 2))
@pytest.mark.parametrize(("width", "groups"), [(1, 3), (2, 2), (3, 3)])
def test_groups_are_those_of_the_plain_twin(penalty, width, groups):
    texts = list(every_text(lambda _: True, 5))
    for seed in range(4):
        model = TableModel.random(seed, width=5)
        options = {"width": width, "n_best": width, "max_tokens": 5}
        found = diverse_beam_search(model, PROMPT, anything(), groups=groups, penalty=penalty, **options)
        expected = slow_groups(model, texts, width, groups, penalty, 5)
        assert [[h.tokens for h in group] for group in found.groups] == expected
        beam = beam_search(model, PROMPT, anything(), **options).hypotheses
        assert found.groups[0] == beam
        if not penalty:
            assert found.groups == (beam,) * groups and found.hypotheses == beam
        for h in found.hypotheses:
            assert h.score == pytest.approx(total(model, h.tokens), abs=DOUBLE)


def test_a_penalty_brings_more_texts_under_a_grammar():
    constraint = guided.compile(guided.regex("(ab|c){1,4}"), VOCABULARY)
    alike = apart = 0
    for seed in range(10):
        model = TableModel.random(seed, width=5, scale=2.5)
        one, other = (
            diverse_beam_search(model, PROMPT, constraint, width=1, groups=3, penalty=p, max_tokens=7)
            for p in (0.0, 3.0)
        )
        alike, apart = alike + len(one.hypotheses), apart + len(other.hypotheses)
        assert one.cost.passes <= 6 and one.cost.rows <= other.cost.rows
    assert alike == 10 and apart > 15


@pytest.mark.parametrize("options", [{"groups": 0}, {"penalty": -1.0}, {"penalty": math.nan}, {"width": 0}])
def test_bad_sizes_are_refused(options):
    with pytest.raises(GuidedError):
        diverse_beam_search(TableModel.random(1, width=5), PROMPT, anything(), **options)
