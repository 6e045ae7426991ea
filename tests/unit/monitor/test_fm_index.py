"""The FM-index against naive search; the constraints over it against every piece of a text and the contracts."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError, VocabularyError
from guided.monitor.fm_index import FmIndex, suffix_array
from guided.monitor.ngrams import ngrams
from guided.monitor.substrings import substring
from guided.testing import brute_force_mask, check_constraint
from tests.twin.monitor_words import VOCABULARY, Words

DOCUMENTS = st.lists(st.lists(st.sampled_from([0, 1, 2, 7, 90_000]), max_size=14), min_size=1, max_size=5).filter(any)


def naive(documents, ngram):
    """Every place where an n-gram stands, by looking at all of them."""
    ngram, size = list(ngram), len(ngram)
    return [
        (number, at)
        for number, document in enumerate(documents)
        for at in range(len(document) - size + 1)
        if list(document[at : at + size]) == ngram
    ]


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 6))
def test_suffix_array(symbols, repeats):
    symbols = symbols * repeats
    found = suffix_array(np.array(symbols, np.int64)).tolist()
    assert found == sorted(range(len(symbols)), key=lambda i: symbols[i:])


@given(DOCUMENTS, st.lists(st.sampled_from([0, 1, 2, 3, 7, 90_000, 90_001]), min_size=1, max_size=5))
def test_against_naive_search(documents, ngram):
    index = FmIndex.build(documents)
    places = naive(documents, ngram)
    assert index.locate(ngram) == places
    assert index.count(ngram) == len(places)
    following: dict[int, int] = {}
    for number, at in places:
        for item in documents[number][at + len(ngram) : at + len(ngram) + 1]:
            following[item] = following.get(item, 0) + 1
    ids, counts = index.following(index.interval(ngram))
    assert dict(zip(ids.tolist(), counts.tolist())) == following
    assert ids.tolist() == sorted(ids.tolist())


@given(DOCUMENTS)
def test_every_ngram_of_the_documents_is_found(documents):
    index = pickle.loads(pickle.dumps(FmIndex.build(documents)))
    for document in documents:
        for start in range(len(document)):
            interval = index.whole
            for stop in range(start, len(document)):
                assert document[stop] in index.following(interval)[0]
                interval = index.append(interval, document[stop])
                assert index.locate(document[start : stop + 1]) == naive(documents, document[start : stop + 1])
    held = sorted({item for document in documents for item in document})
    assert index.following(index.whole)[0].tolist() == held
    assert index.n_symbols == sum(map(len, documents)) == index.count([])


def test_long_repeats_and_real_text():
    words = b"the cat sat on the mat and the cat ran to the hat " * 300
    index = FmIndex.build([words, b"a" * 5_000])
    assert index.count(b"the cat") == 600 and index.count(b"a" * 4_999) == 2 and index.count(b"a" * 5_001) == 0
    assert index.locate(b" ran", limit=3)[0][0] == 0
    assert index.locate(b"t " + words[:6]) == naive([words], b"t " + words[:6])


def test_memory_is_below_six_bytes_a_token():
    rng = np.random.default_rng(0)
    documents = np.split(rng.zipf(1.2, 300_000) % 128_000, np.sort(rng.integers(0, 300_000, 500)))
    index = FmIndex.build(documents)
    # The table of ids is the vocabulary's, not the documents': it does not grow with them.
    assert (index.n_bytes - index.ids.nbytes - index.shift.nbytes) / index.n_symbols < 4.0
    assert index.n_documents == 501


def test_what_cannot_be_indexed():
    for documents in ([], [[]], [b"", b""]):
        with pytest.raises(UnsatisfiableError):
            FmIndex.build(documents)
    with pytest.raises(GuidedError, match="-3"):
        FmIndex.build([[1, -3]])
    with pytest.raises(GuidedError, match="everywhere"):
        FmIndex.build([[1]]).locate([])
    assert FmIndex.build([[5]]).append(FmIndex.build([[5]]).whole, -1) == (0, 0)


TEXTS = ("the cat's hat", "a naïve café", "日本の本", "aaaa")


def pieces(texts):
    return {text[i:j] for text in texts for i in range(len(text)) for j in range(i + 1, len(text) + 1)}


def test_substrings_are_exactly_the_pieces():
    constraint = substring(TEXTS, VOCABULARY)
    known = pieces(TEXTS)
    rng = random.Random(0)
    alphabet = "".join(sorted(set("".join(TEXTS))))
    tried = [*known, *("".join(rng.choices(alphabet, k=rng.randint(1, 4))) for _ in range(2_000)), ""]
    for text in tried:
        state = constraint.advance_bytes(constraint.start, text.encode())
        assert (state != 0 and constraint.is_accepting(state)) == (text in known), text
    assert constraint.advance_bytes(constraint.start, "é".encode()[1:]) == 0
    inside = constraint.advance_bytes(constraint.start, "日".encode()[:2])
    assert inside and not constraint.is_accepting(inside) and constraint.forced(inside) == "日".encode()[2:]
    assert "expected" in constraint.explain(constraint.start, ord("z"))


@pytest.mark.parametrize("texts", [TEXTS, ("日本の本", "本日"), (b"\x00\x80\xfe", b"ab"), "one text"])
def test_substring_contracts(texts):
    check_constraint(substring(texts, VOCABULARY), walks=8, length=10)


def test_substring_with_special_tokens():
    check_constraint(substring(TEXTS, Words.with_special()), walks=4, length=8)
    with pytest.raises(UnsupportedError, match="0xFF"):
        substring([b"a\xff"], Words.with_special())


def test_substring_refusals():
    with pytest.raises(GuidedError, match="mixed"):
        substring(["a", b"b"], VOCABULARY)
    with pytest.raises(GuidedError, match="surrogate"):
        substring(["ok", "\ud800"], VOCABULARY)
    with pytest.raises(UnsatisfiableError):
        substring([""], VOCABULARY)
    with pytest.raises(VocabularyError, match="single byte"):
        substring("abc", guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2]))


def test_ngrams_of_tokens():
    rng = random.Random(1)
    ids = list(range(40, 60))
    documents = [[rng.choice(ids) for _ in range(rng.randint(0, 30))] for _ in range(6)]
    constraint = ngrams(documents, VOCABULARY)
    known = {tuple(d[i:j]) for d in documents for i in range(len(d)) for j in range(i + 1, min(i + 6, len(d)) + 1)}
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    for ngram in sorted(known)[:200]:
        state = constraint.start
        for token in ngram:
            constraint.fill_mask(state, row)
            assert (row == brute_force_mask(constraint, state)).all()
            state = constraint.advance(state, token)
        assert state and constraint.is_accepting(state)
        constraint.fill_mask(state, row)
        allowed = set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())
        assert allowed - set(VOCABULARY.eos_ids) == {t for t in ids if naive(documents, [*ngram, t])}
        assert constraint.occurrences(ngram) == naive(documents, ngram)
    assert constraint.advance(constraint.start, VOCABULARY.eos_ids[0]) == 0
    assert constraint.advance(state, VOCABULARY.eos_ids[0]) == constraint.end
    constraint.fill_budget_mask(constraint.start, row, 2)
    assert row.any()
    with pytest.raises(LimitError):
        constraint.fill_budget_mask(constraint.start, row, 1)
    with pytest.raises(UnsupportedError):
        constraint.advance_bytes(constraint.start, b"a")
    with pytest.raises(VocabularyError):
        ngrams([[VOCABULARY.eos_ids[0]]], VOCABULARY)
    with pytest.raises(VocabularyError):
        ngrams([[10**7]], VOCABULARY)
    copy = pickle.loads(pickle.dumps(constraint))
    assert copy.is_accepting(copy.advance(copy.start, documents[0][0]))
