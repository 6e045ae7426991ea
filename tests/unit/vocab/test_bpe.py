"""Merges against the ``tokenizers`` library: all pairs of small vocabularies, in proper and in absurd orders."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from guided.errors import UnsupportedError
from guided.vocab.bpe import BytePairs
from guided.vocab.canonical import CanonicalTokenizer
from tests.amounts import ALL, each
from tests.twin.byte_pairs import CORPUS, PATTERNS, shuffled, train, vocabulary_of, with_whole_chunks


@pytest.fixture(autouse=True)
def cache_folder() -> None:
    """That of the user, where the kinds of a million characters are kept: reading them takes four seconds a pattern."""


def pairs_of(tokenizer: Tokenizer) -> BytePairs:
    return BytePairs.of(json.loads(tokenizer.to_str())["model"], vocabulary_of(tokenizer))


def ids_of(tokenizer: Tokenizer, pieces: str) -> list[int]:
    return [token.id for token in tokenizer.model.tokenize(pieces)]


@pytest.mark.parametrize("seed", each([None, 1, 2, 3, 4], 3))
def test_successors_are_the_pairs_that_stay_apart(seed):
    tokenizer = train("llama3")
    if seed is not None:
        tokenizer = shuffled(tokenizer, seed)
    pairs = pairs_of(tokenizer)
    size = tokenizer.get_vocab_size()
    pieces = [tokenizer.id_to_token(token) for token in range(size)]
    assert np.flatnonzero(pairs.reachable).tolist() == [
        t for t in range(1, size) if ids_of(tokenizer, pieces[t]) == [t]
    ]
    for first in range(1, size):
        row = np.unpackbits(pairs.successors(first).view(np.uint8), bitorder="little")
        for second in range(1, size):
            expected = ids_of(tokenizer, pieces[first] + pieces[second]) == [first, second]
            assert bool(row[second]) == expected, (pieces[first], pieces[second])
            if (first + second) % 7 == 0:
                assert pairs.stay_apart(first, second) == expected


def test_rows_are_the_same_after_they_were_dropped(monkeypatch):
    pairs = pairs_of(train("gpt2"))
    rows = {token: pairs.successors(token).copy() for token in range(260, 300)}
    monkeypatch.setattr("guided.vocab.bpe.ROW_BYTES", 5 * rows[260].nbytes)
    other = pairs_of(train("gpt2"))
    for _ in range(2):
        for token, row in rows.items():
            assert (other.successors(token) == row).all()
    assert len(other._rows) <= 5


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("nasty", [False, True])
def test_encoding_is_the_tokenizers(name, nasty):
    tokenizer = train(name)
    if nasty:
        tokenizer = with_whole_chunks(shuffled(tokenizer, 5), ["Ġcatalog", "banandana", "abab", "ĠĠĠĠ", "!?!", "isnt"])
    canonical = CanonicalTokenizer.of(tokenizer, vocabulary_of(tokenizer))
    assert bool(canonical.whole) == nasty
    texts = [*CORPUS, "a catalog", " catalogs", "x catalog", "banandana banandanas", "!?!", "!?!?", "     x", "isnt"]
    for text in texts:
        for start in range(0, len(text), 3):
            part = text[start : start + 25]
            expected = tokenizer.encode(part).ids
            assert canonical.encode(part.encode()) == expected
    copy = pickle.loads(pickle.dumps(canonical))
    assert [copy.encode(text.encode()) for text in texts] == [tokenizer.encode(text).ids for text in texts]


def test_real_tokenizers_encode_alike(data):
    for name in ("gpt2", "llama3", "qwen2.5")[: 3 if ALL else 1]:
        path = data / "tokenizers" / name / "tokenizer.json"
        if not path.is_file():
            pytest.skip(f"no tokenizer {name}")
        tokenizer = Tokenizer.from_file(str(path))
        canonical = CanonicalTokenizer.of(tokenizer, vocabulary_of_real(tokenizer))
        texts = [*CORPUS, "  \n\n   x'll 12345 don't'S \r\n\t y", 'def f(x):\n        return "" if x else {1: 2}\n']
        texts += [" " + (canonical.vocabulary.token_bytes(token) or b"").decode(errors="ignore") + " a" for token in sorted(canonical.whole)[:300:10]]  # fmt: skip
        for text in texts:
            assert canonical.encode(text.encode()) == tokenizer.encode(text, add_special_tokens=False).ids, text


def vocabulary_of_real(tokenizer: Tokenizer):
    from guided.vocab import Vocabulary

    return Vocabulary.from_tokenizer(tokenizer, eos_ids=[tokenizer.get_vocab_size() - 1])


def test_what_is_not_byte_level_bpe_is_refused():
    vocabulary = vocabulary_of(train("gpt2"))
    with pytest.raises(UnsupportedError, match="Unigram"):
        BytePairs.of({"type": "Unigram", "vocab": []}, vocabulary)
    model = json.loads(train("gpt2").to_str())["model"]
    with pytest.raises(UnsupportedError, match="byte_fallback"):
        BytePairs.of({**model, "byte_fallback": True}, vocabulary)
    without = {piece: token for piece, token in model["vocab"].items() if piece != "A"}
    with pytest.raises(UnsupportedError, match="0x41"):
        BytePairs.of({**model, "vocab": without}, vocabulary)
    with pytest.raises(UnsupportedError, match="fast tokenizer"):
        CanonicalTokenizer.of(object(), vocabulary)
    with pytest.raises(UnsupportedError, match="pre-tokenizers"):
        CanonicalTokenizer.of(Tokenizer(models.BPE(model["vocab"], [])), vocabulary)
