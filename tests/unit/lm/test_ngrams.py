"""Models of n-grams against the recursion of their definition, and what they are for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.errors import GuidedError
from guided.lm import next_logits, ngram_model
from guided.testing import check_language_model
from tests.tolerances import DOUBLE

WIDTH, END = 5, 4
corpora = st.lists(st.lists(st.integers(0, 3), max_size=7), min_size=1, max_size=4)


def twin(texts, context, token):
    """By counting through the texts for each question."""
    after = [
        text[place]
        for text in texts
        for place in range(len(context), len(text))
        if text[place - len(context) : place] == context
    ]
    if not context:
        return after.count(token) / len(after)
    lower = twin(texts, context[1:], token)
    if not after:
        return lower
    return (after.count(token) + len(set(after)) * lower) / (len(after) + len(set(after)))


@given(corpora, st.lists(st.integers(0, 3), max_size=5), st.integers(1, 4))
def test_witten_bell(texts, prefix, order):
    whole = [[*text, END] for text in texts]
    model = ngram_model(texts, width=WIDTH, eos_ids=[END], order=order)
    context = prefix[max(0, len(prefix) - order + 1) :]
    got = next_logits(model, [prefix])[0].exp().numpy()
    assert got == pytest.approx([twin(whole, context, token) for token in range(WIDTH)], abs=DOUBLE)
    assert got.sum() == pytest.approx(1.0, abs=DOUBLE)


def test_the_contract():
    check_language_model(ngram_model([[0, 1, 2, 3, 0, 1]], width=WIDTH, order=3, eos_ids=[END]), steps=15)


def test_texts_that_have_their_end_get_no_other():
    one, two = (ngram_model([text], width=WIDTH, eos_ids=[END]) for text in ([0, 1], [0, 1, END]))
    for prefix in ([], [0], [0, 1]):
        assert np.array_equal(next_logits(one, [prefix]).numpy(), next_logits(two, [prefix]).numpy())


def test_what_is_no_corpus():
    for texts, options, message in (
        ([], {}, "of 0 texts"), ([[0]], {"order": 0}, "up to 0"), ([[0, 9]], {}, r"the ids \[9\]"),
    ):  # fmt: skip
        with pytest.raises(GuidedError, match=message):
            ngram_model(texts, width=WIDTH, **options)
