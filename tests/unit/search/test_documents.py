"""SEAL's document scores against a naive implementation over lists, and the n-grams against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.errors import GuidedError
from guided.lm import TableModel
from guided.monitor.fm_index import FmIndex
from guided.monitor.ngrams import ngrams
from guided.search import Scoring, document_search, rank_documents
from guided.search.documents import ngram_weight
from tests.tolerances import SINGLE

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"c", b"d", None], eos_ids=[4])


def stands(document, ngram):
    return [i for i in range(len(document) - len(ngram) + 1) if tuple(document[i : i + len(ngram)]) == ngram]


def naive(documents, keys, alpha, beta, scoring):
    """Scores by document, as the paper writes them down."""
    total = sum(map(len, documents))

    def weight(ngram):
        count = sum(len(stands(document, ngram)) for document in documents)
        if not count or not ngram:
            return 0.0
        likely, often = min(math.exp(keys[ngram]), 1 - 1e-10), min(count / total, 1 - 1e-10)
        return max(0.0, math.log(likely * (1 - often) / (often * (1 - likely))))

    by_weight = sorted(keys, key=lambda ngram: (-weight(ngram), -len(ngram), ngram))
    scores = {}
    for number, document in enumerate(documents):
        here = [ngram for ngram in by_weight if weight(ngram) > 0 and stands(document, ngram)]
        if scoring is Scoring.BEST and here:
            scores[number] = weight(here[0])
        owner = [None] * len(document)
        chosen = []
        for ngram in here:
            fits = False
            for place in stands(document, ngram):
                if not any(owner[place : place + len(ngram)]):
                    owner[place : place + len(ngram)] = [ngram] * len(ngram)
                    fits = True
            if fits:
                chosen.append(ngram)
        if chosen and scoring is not Scoring.BEST:
            scores[number] = 0.0
            for rank, ngram in enumerate(chosen):
                better = {token for other in chosen[:rank] for token in other}
                cover = 1 - beta + beta * len(set(ngram) - better) / len(set(ngram))
                scores[number] += weight(ngram) ** alpha * cover
    return scores


DOCUMENTS = st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=1, max_size=5).filter(any)
KEYS = st.dictionaries(
    st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple), st.floats(-6.0, 0.0), min_size=1, max_size=8
)


@given(DOCUMENTS, KEYS, st.sampled_from([1.0, 2.0]), st.sampled_from([0.0, 0.8, 1.0]), st.sampled_from(Scoring))
def test_scores_are_the_papers(documents, keys, alpha, beta, scoring):
    index = FmIndex.build(documents)
    found = rank_documents(index, keys, n_best=10, alpha=alpha, beta=beta, scoring=scoring)
    expected = naive(documents, keys, alpha, beta, scoring)
    assert {each.document for each in found} == set(expected)
    for each in found:
        assert each.score == pytest.approx(expected[each.document], rel=SINGLE, abs=SINGLE)
        assert each.score == pytest.approx(sum(part.share for part in each.evidence))
    assert [-each.score for each in found] == sorted(-each.score for each in found)
    assert rank_documents(index, keys, n_best=2, alpha=alpha, beta=beta, scoring=scoring) == found[:2]


def test_weights_are_log_odds_ratios():
    assert ngram_weight(math.log(0.9), 0, 10) == 0.0
    assert ngram_weight(math.log(0.1), 5, 10) == 0.0
    assert ngram_weight(math.log(0.9), 1, 10) == pytest.approx(math.log(9 * 9))
    assert 20 < ngram_weight(0.0, 1, 10) < 40, "certain, and finite"
    assert ngram_weight(-800.0, 1, 10) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_writes_every_ngram(seed):
    documents = [[0, 1, 2, 0], [3, 3, 1], [2], [1, 2, 0, 1]]
    model = TableModel.random(seed, width=5, eos_ids=[4])
    found = document_search(model, [1], ngrams(documents, VOCABULARY), width=100, length=3)
    expected = {
        tuple(document[i : i + n]) for document in documents for n in range(1, 4) for i in range(len(document) - n + 1)
    }
    assert set(found.ngrams) == expected
    for tokens, logprob in found.ngrams.items():
        prefix, total = [1], 0.0
        for token in tokens:
            total += float(torch_row(model, prefix)[token])
            prefix.append(token)
        assert logprob == pytest.approx(total)
    assert found.documents == rank_documents(FmIndex.build(documents), found.ngrams)
    assert found.cost.rows > 0
    narrow = document_search(model, [1], ngrams(documents, VOCABULARY), width=2, length=3)
    assert len(narrow.ngrams) == 6 and set(narrow.ngrams) <= expected


def torch_row(model, prefix):
    from guided.lm import next_logits

    return next_logits(model, [prefix]).double().log_softmax(-1)[0]


def test_what_the_model_says_is_found():
    """Twenty documents of noise, and a model that knows a phrase of one of them."""
    rng = np.random.default_rng(0)
    documents = [rng.integers(0, 4, 30).tolist() for _ in range(20)]
    documents[13][10:16] = said = [3, 1, 3, 2, 0, 2]

    def logprobs(tokens):
        row = np.full(5, 0.05)
        row[said[(len(tokens) - 1) % len(said)]] += 0.75
        return np.log(row)

    model = TableModel(logprobs, width=5, eos_ids=[4])
    for scoring in Scoring:
        found = document_search(model, [0], ngrams(documents, VOCABULARY), length=6, scoring=scoring)
        assert found.documents[0].document == 13
        assert found.documents[0].evidence[0].tokens == tuple(said)


def test_what_is_refused():
    constraint = ngrams([[0, 1]], VOCABULARY)
    model = TableModel.random(0, width=5, eos_ids=[4])
    for options in ({"width": 0}, {"length": 0}, {"n_best": 0}, {"beta": 1.5}, {"alpha": -1.0}):
        with pytest.raises(GuidedError):
            document_search(model, [0], constraint, **options)
    assert rank_documents(constraint.index, {}) == ()
