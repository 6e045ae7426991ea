"""Two models in turn under a grammar: the law of the texts enumerated, against the rules written out."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import guided
from guided.draft import speculate
from guided.lm import TableModel, next_logits
from guided.steer import Contrastive, EntropyAdaptive, FastAndSlow, Masked, Momentum, Router, Stack
from guided.testing import check_language_model
from guided.testing.enumeration import enumerate_choices
from tests.amounts import each

WIDTH, END = 4, 3
VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[END])
LARGE = TableModel.random(5, width=WIDTH, eos_ids=[END])
SMALL = TableModel.random(6, width=WIDTH, eos_ids=[END], scale=2.0)
CONSTRAINT = guided.compile(guided.regex("(ab|ba|aa)?b*"), VOCABULARY)
PROMPT = (0, 1, 0)
MOST = 4


def softmax(row):
    values = [math.exp(value) for value in row]
    return [value / sum(values) for value in values]


def by_hand(threshold, window, least):
    """The law of texts, step by step from the prompt's end; and whether both models were asked."""
    found: Counter[tuple[int, ...]] = Counter()
    asked = set()

    def grow(text, probability, state, model, since, entropies):
        if text:
            since += 1
            mean = sum(entropies[-window:]) / len(entropies[-window:])
            wanted = LARGE if mean > threshold else SMALL
            if since >= least and wanted is not model:
                model, since = wanted, 0
        asked.add(model is LARGE)
        p = softmax(next_logits(model, [PROMPT + text])[0].tolist())
        entropies = [*entropies, -sum(value * math.log2(value) for value in p if value > 0)]
        row = np.zeros(CONSTRAINT.vocabulary.n_words, np.uint32)
        CONSTRAINT.fill_budget_mask(state, row, MOST - len(text))
        allowed = [token for token in range(WIDTH) if row[0] >> token & 1]
        for token in allowed:
            share = probability * p[token] / sum(p[each] for each in allowed)
            if token == END:
                found[(*text, token)] += share
            else:
                grow((*text, token), share, CONSTRAINT.advance(state, token), model, since, entropies)

    grow((), 1.0, CONSTRAINT.start, SMALL, 0, [])
    return found, asked


@pytest.mark.parametrize(("threshold", "window", "least"), [(1.2, 2, 0), (0.9, 1, 1), (math.inf, 2, 1), (-1.0, 2, 2)])
def test_law_under_a_grammar(threshold, window, least):
    model = Stack([EntropyAdaptive(SMALL, threshold, window, least)]).over(LARGE)
    found: Counter[tuple[int, ...]] = Counter()

    def run(chance):
        (text,), _ = speculate(chance, model, [PROMPT], [CONSTRAINT], max_tokens=MOST)
        return text.tokens

    for probability, tokens in enumerate_choices(run):
        found[tokens] += probability
    wanted, asked = by_hand(threshold, window, least)
    assert sum(abs(found[text] - wanted[text]) for text in {*found, *wanted}) < 1e-9
    assert asked == ({True, False} if threshold < math.inf else {False})


def test_what_stands_after_it_steers_the_pair():
    pair = EntropyAdaptive(SMALL, 1.2, 2, 0)
    rest = [Masked(CONSTRAINT, MOST), Momentum(top_k=WIDTH)]
    together, apart = Stack([pair, *rest]).over(LARGE), Stack(rest).over(pair.over(LARGE))
    for text in ((), (0,), (0, 1), (1, 0)):
        ours, theirs = (model.start([PROMPT]) for model in (together, apart))
        for token in text:
            ours.extend([[token]])
            theirs.extend([[token]])
        assert ours.last.logits.tolist() == theirs.last.logits.tolist()


def fast_and_slow_by_hand(slow, threshold, router):
    """The law of texts: the small model's distribution of each token says whose is taken."""
    found: Counter[tuple[int, ...]] = Counter()
    asked = set()

    def grow(text, probability, state):
        p = softmax(next_logits(SMALL, [PROMPT + text])[0].tolist())
        first, second = sorted(p, reverse=True)[:2]
        unsure = (first if router is Router.TOP else (first - second) / 2) < threshold
        asked.add(unsure)
        if unsure:
            p = softmax(next_logits(slow, [PROMPT + text])[0].tolist())
        row = np.zeros(CONSTRAINT.vocabulary.n_words, np.uint32)
        CONSTRAINT.fill_budget_mask(state, row, MOST - len(text))
        allowed = [token for token in range(WIDTH) if row[0] >> token & 1]
        for token in allowed:
            share = probability * p[token] / sum(p[each] for each in allowed)
            if token == END:
                found[(*text, token)] += share
            else:
                grow((*text, token), share, CONSTRAINT.advance(state, token))

    grow((), 1.0, CONSTRAINT.start)
    return found, asked


@pytest.mark.parametrize(
    ("router", "threshold"),
    each([(Router.TOP, 0.0), (Router.TOP, 0.6), (Router.TOP, 1.5), (Router.MARGIN, 0.25), (Router.MARGIN, 0.0)], 2),
)
@pytest.mark.parametrize("contrasted", [False, True])
def test_law_of_fast_and_slow(threshold, router, contrasted):
    slow = Stack([Contrastive(SMALL, alpha=0.0)]).over(LARGE) if contrasted else LARGE
    model = Stack([FastAndSlow(SMALL, threshold, router)]).over(slow)
    found: Counter[tuple[int, ...]] = Counter()

    def run(chance):
        (text,), _ = speculate(chance, model, [PROMPT], [CONSTRAINT], max_tokens=MOST)
        return text.tokens

    for probability, tokens in enumerate_choices(run):
        found[tokens] += probability
    wanted, asked = fast_and_slow_by_hand(slow, threshold, router)
    assert sum(abs(found[text] - wanted[text]) for text in {*found, *wanted}) < 1e-9
    assert asked == ({False} if threshold == 0 else {True} if threshold > 1 else {True, False})


def test_the_contract_of_fast_and_slow(monkeypatch):
    # Two models have two passes.
    monkeypatch.setattr("guided.testing.language_model.check_sharing", lambda model, prompts: None)
    large, small = (TableModel.random(seed, width=6, eos_ids=[5]) for seed in (8, 9))
    check_language_model(FastAndSlow(small, 0.5).over(large))


def test_the_large_model_reads_what_it_missed_in_one_pass():
    large = TableModel.random(8, width=6, eos_ids=[5])
    sure = TableModel(lambda tokens: [9.0 if len(tokens) < 5 else 0.0, 0, 0, 0, 0, 0], width=6, eos_ids=[5])
    sequences = FastAndSlow(sure, 0.5).over(large).start([[1]])
    before = large.calls.passes
    for token in (0, 2, 3):
        sequences.extend([[token]])
    assert large.calls.passes == before
    sequences.extend([[4]])
    assert large.calls.passes == before + 1 and large.calls.positions >= 5
    assert sequences.last.logits[0].tolist() == next_logits(large, [[1, 0, 2, 3, 4]])[0].tolist()
