"""Interned prefixes, wrappers of models, and the contract of models, which must find mistakes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.errors import GuidedError
from guided.lm import Prefixes, TableModel, Tree, WrappedSequences
from guided.testing import check_language_model

texts = st.lists(st.lists(st.integers(0, 2), max_size=6), min_size=1, max_size=6)


@given(texts)
def test_equal_prefixes_are_equal_numbers(given_texts):
    prefixes = Prefixes()
    root = prefixes.root()
    ends = [([root, *prefixes.after(root, text)][-1], text) for text in given_texts]
    for (one, first), (other, second) in itertools.product(ends, ends):
        assert (one == other) == (first == second)
        common = prefixes.common(one, other)
        length = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second))))
        assert prefixes.tokens(common) == tuple(first[:length]) and prefixes.depth(common) == length
        assert prefixes.tokens(prefixes.cut(one, length)) == tuple(first[:length])
    assert prefixes.common(root, prefixes.root()) == -1


@given(texts, st.data())
def test_what_is_kept_when_prefixes_are_forgotten(given_texts, data):
    prefixes = Prefixes()
    root = prefixes.root()
    ends = {[root, *prefixes.after(root, text)][-1] for text in given_texts}
    kept = {end: prefixes.tokens(end) for end in data.draw(st.sets(st.sampled_from(sorted(ends))))}
    numbers = prefixes.forget([root, *kept])
    assert len(prefixes) == len({text[:n] for text in kept.values() for n in range(len(text) + 1)} | {()})
    assert {end: prefixes.tokens(numbers[end]) for end in kept} == kept
    for end, text in kept.items():
        assert [numbers[root], *prefixes.after(numbers[root], text)][-1] == numbers[end]
        assert prefixes.depth(numbers[end]) == len(text)


class Shifted:
    """A wrapper that adds 1 to every score."""

    def __init__(self, model):
        self.model = model
        self.width, self.eos_ids, self.can, self.calls = model.width, model.eos_ids, model.can, model.calls

    def start(self, prompts, needs=None):
        rows = self.model.start(prompts) if needs is None else self.model.start(prompts, needs)
        return WrappedSequences(rows, lambda scores: replace(scores, logits=scores.logits + 1))


def test_wrapped_sequences():
    table = TableModel.random(0)
    check_language_model(Shifted(table), steps=25)
    rows = Shifted(table).start([[0], [1]])
    scores = rows.extend([[1], [2, 3]])
    assert len(scores) == 2 and [len(found) for found in scores[0:2]] == [1, 2]
    assert (rows.last.logits - 1)[0].tolist() == pytest.approx(table.logprobs([0, 1]).tolist())


class Broken(Shifted):
    """Wrappers with a mistake each, which the contract must find."""

    def __init__(self, model, mistake):
        super().__init__(model)
        self.mistake = mistake

    def start(self, prompts, needs=None):
        rows = self.model.start(prompts) if needs is None else self.model.start(prompts, needs)
        return self.mistake(rows)


def ignores_crop(rows):
    rows.crop = lambda lengths: None
    return rows


def forgets_order(rows):
    select = rows.select
    rows.select = lambda chosen: select(sorted(chosen))
    return rows


def shares_results(rows):
    class Shares(type(rows)):
        kept = None

        @property
        def last(self):
            texts = [self.tokens(row) for row in range(len(self))]
            if self.kept is None or self.kept[0] != texts:
                self.kept = (texts, super().last)
            return self.kept[1]

    rows.__class__ = Shares
    return rows


def scores_trees_as_chains(rows):
    score = rows.extend_tree
    rows.extend_tree = lambda trees: score([Tree(t.tokens, tuple(range(-1, len(t) - 1))) for t in trees])
    return rows


def keeps_too_much(rows):
    keep = rows.keep

    def all_of_it(paths):
        keep([() for _ in paths])

    rows.keep = all_of_it
    return rows


@pytest.mark.parametrize(
    "mistake", [ignores_crop, forgets_order, shares_results, scores_trees_as_chains, keeps_too_much]
)
def test_the_contract_finds_mistakes(mistake):
    with pytest.raises((AssertionError, GuidedError)):
        check_language_model(Broken(TableModel.random(1), mistake), steps=60)


def test_contract_of_tables():
    table = TableModel.random(2)
    check_language_model(table)
    check_language_model(
        TableModel(
            table.logprobs,
            width=4,
            eos_ids=[3],
            layers=[TableModel.random(3).logprobs, TableModel.random(4).logprobs],
            hidden=lambda tokens: [len(tokens), 1.0],
            masked=lambda tokens, heads: TableModel.random(5).logprobs(tokens),
        )
    )
