"""Lattice decoding against enumeration."""

from __future__ import annotations

import re

import numpy as np
import pytest

import guided
from guided.errors import GuidedError, LimitError
from guided.lm import TableModel
from guided.search import lattice_search
from tests.amounts import each, some
from tests.tolerances import DOUBLE, SUMS
from tests.twin.slow_search import END, PROMPT, VOCABULARY, anything, every_text, total

PATTERNS = ["[abc]*", "(ab|c)*b?", "ca*|b"]


def walks(lattice):
    """All ways through a lattice, with their sums."""
    found, stack = {}, [((), 0, 0.0)]
    while stack:
        tokens, place, score = stack.pop()
        for edge in lattice.edges[place]:
            way = (*tokens, edge.token)
            if edge.to == -1:
                assert way not in found
                if len(way) <= lattice.max_tokens:
                    found[way] = score + edge.logprob
            else:
                assert len(way) < 60, "a circle"
                stack.append((way, edge.to, score + edge.logprob))
    return found


def ranked(ways):
    return sorted(ways, key=lambda way: (-ways[way], way))


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
@pytest.mark.parametrize("batch", [1, 3])
def test_a_whole_tree_is_the_language(pattern, batch):
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    texts = set(every_text(re.compile(pattern).fullmatch, 4))
    for seed in range(3):
        model = TableModel.random(seed, width=5)
        found = lattice_search(
            model, PROMPT, constraint, rows=10_000, branch=5, ngram=None, n_best=5, max_tokens=4, batch=batch
        )
        assert set(walks(found.lattice)) == texts and found.lattice.n_paths() == len(texts)
        assert found.lattice.merges == 0
        expected = sorted(texts, key=lambda text: -total(model, text))[:5]
        assert [h.tokens for h in found.hypotheses] == expected
        assert [h.score for h in found.hypotheses] == pytest.approx([total(model, t) for t in expected], abs=DOUBLE)


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
def test_recombination_loses_nothing_where_the_model_forgets(pattern):
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    texts = set(every_text(re.compile(pattern).fullmatch, 6))
    for seed in range(3):
        model = TableModel.random(seed, width=5, order=1)
        options = {"rows": 10_000, "branch": 5, "n_best": 6, "max_tokens": 6, "batch": 1}
        whole = lattice_search(model, PROMPT, constraint, ngram=1, length_difference=0, **options)
        ways = walks(whole.lattice)
        assert set(ways) == texts and whole.lattice.n_paths() == len(texts)
        for text, score in ways.items():
            assert score == pytest.approx(total(model, text), abs=SUMS)
        assert [h.tokens for h in whole.hypotheses] == sorted(texts, key=lambda text: -total(model, text))[:6]
        if len(texts) > 100:
            assert len(whole.lattice.edges) < len(texts) / 5 and whole.lattice.merges > 10


@pytest.mark.parametrize("ngram", each([1, 2, None], 2))
@pytest.mark.parametrize("rows", [1, 12, 40])
def test_every_way_is_a_text_of_the_language(ngram, rows):
    accepts = re.compile("(ab|c)*b?")
    constraint = guided.compile(guided.regex(accepts.pattern), VOCABULARY)
    merges = 0
    for seed in range(some(8, 2)):
        model = TableModel.random(seed, width=5)
        for batch in (1, 4):
            found = lattice_search(
                model, PROMPT, constraint, rows=rows, ngram=ngram, n_best=7, max_tokens=9, batch=batch
            )
            ways = walks(found.lattice)
            spelled = {way: "".join(("a", "b", "c", "ab")[t] for t in way[:-1]) for way in ways}
            assert ways and all(accepts.fullmatch(text) and way[-1] == END for way, text in spelled.items())
            assert found.lattice.n_paths() == len(ways)
            best = found.lattice.best(10_000)
            assert [way for way, _ in best] == ranked(ways)
            assert [score for _, score in best] == pytest.approx([ways[way] for way, _ in best])
            assert {h.tokens for h in found.hypotheses} == set(ranked(ways)[:7])
            scores = [total(model, h.tokens) for h in found.hypotheses]
            assert [h.score for h in found.hypotheses] == pytest.approx(scores) and scores == sorted(scores)[::-1]
            assert len(found.lattice.edges) <= rows + batch * 9
            merges += found.lattice.merges
    assert (merges > 0) == (ngram is not None and rows > 1)


def test_recombination_gives_more_texts_for_the_same_rows():
    more = 0
    for seed in range(10):
        model = TableModel.random(seed, width=5)
        options = {"rows": 40, "n_best": 1, "max_tokens": 12, "batch": 1}
        shared = lattice_search(model, PROMPT, anything(), ngram=1, **options)
        tree = lattice_search(model, PROMPT, anything(), ngram=None, **options)
        more += shared.lattice.n_paths() > tree.lattice.n_paths()
    assert more == 10


def test_bad_sizes_and_short_limits():
    model = TableModel.random(1, width=5)
    for name in ("rows", "branch", "ngram", "n_best", "batch"):
        with pytest.raises(GuidedError, match=name):
            lattice_search(model, PROMPT, anything(), **{name: 0})
    with pytest.raises(GuidedError, match="length_difference"):
        lattice_search(model, PROMPT, anything(), length_difference=-1)
    with pytest.raises(LimitError):
        lattice_search(model, PROMPT, guided.compile(guided.regex("aaa"), VOCABULARY), max_tokens=2)
    never = TableModel.of({}, otherwise=[0.5, 0.0, 0.0, 0.0, 0.5], eos_ids=[END])
    assert lattice_search(never, PROMPT, guided.compile(guided.regex("b"), VOCABULARY)).hypotheses == ()
    several = guided.Vocabulary.from_tokens([b"a", b"b", None, None], eos_ids=[2, 3])
    ends = TableModel.of({}, otherwise=[0.3, 0.2, 0.24, 0.26], eos_ids=[2, 3])
    found = lattice_search(ends, (0,), guided.compile(guided.regex("[ab]*"), several), max_tokens=2)
    assert np.exp([h.score for h in found.hypotheses]) == pytest.approx([0.5, 0.15, 0.1])
