"""The class itself: what ids mean, padding, end of text, equality, pickling, immutability."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.errors import VocabularyError
from guided.vocab import Vocabulary

tokens_and_eos = st.lists(st.none() | st.binary(max_size=4), min_size=1, max_size=30).flatmap(
    lambda tokens: st.tuples(st.just(tokens), st.lists(st.integers(0, len(tokens) - 1), max_size=3))
)


@given(tokens_and_eos)
def test_content_is_what_was_given(case: tuple[list[bytes | None], list[int]]) -> None:
    tokens, eos = case
    vocab = Vocabulary.from_tokens(tokens, eos_ids=eos)
    expected = tuple(None if token in eos or not text else text for token, text in enumerate(tokens))
    assert vocab.tokens == expected
    assert tuple(vocab.token_bytes(token) for token in range(vocab.size)) == expected
    assert vocab.eos_ids == tuple(sorted(set(eos)))
    assert (vocab.size, len(vocab), vocab.n_words) == (len(tokens), len(tokens), -(-len(tokens) // 32))
    assert vocab.longest == max((len(text) for text in expected if text), default=0)
    assert sorted(vocab.trie.token_ids.tolist()) == [token for token, text in enumerate(expected) if text]


@given(tokens_and_eos, tokens_and_eos)
def test_equal_exactly_when_content_is(
    one: tuple[list[bytes | None], list[int]], other: tuple[list[bytes | None], list[int]]
) -> None:
    a, b = (Vocabulary.from_tokens(tokens, eos_ids=eos) for tokens, eos in (one, other))
    same = (a.tokens, a.eos_ids) == (b.tokens, b.eos_ids)
    assert (a == b) == same == (a.digest == b.digest)
    assert not same or (hash(a) == hash(b) and a is b)


def test_digest_tells_what_concatenation_does_not() -> None:
    variants = [
        Vocabulary.from_tokens([b"ab", b"c", None], eos_ids=[2]),
        Vocabulary.from_tokens([b"a", b"bc", None], eos_ids=[2]),
        Vocabulary.from_tokens([b"ab", b"c", None], eos_ids=[]),
        Vocabulary.from_tokens([b"ab", b"c", None, None], eos_ids=[2]),
        Vocabulary.from_tokens([b"ab", b"c", None], eos_ids=[2], first_token_strips_space=True),
    ]
    assert len({vocab.digest for vocab in variants}) == len(variants)


def test_digest_is_the_same_everywhere() -> None:
    vocab = Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
    assert vocab.digest == "64eec1e9cc871fc3c6958ed2a3a739cf173664c9640fa45c1ffa09d9363d33cf"


def test_byte_complete() -> None:
    every = [bytes([byte]) for byte in range(256)]
    assert Vocabulary.from_tokens([*every, None], eos_ids=[256]).byte_complete
    assert not Vocabulary.from_tokens([*every[:-1], b"\xff\xff"], eos_ids=[]).byte_complete
    assert not Vocabulary.from_tokens(every, eos_ids=[7]).byte_complete


def test_end_of_text_never_matches_text() -> None:
    vocab = Vocabulary.from_tokens([b"a", b"</s>"], eos_ids=[1])
    assert vocab.tokens == (b"a", None)


@pytest.mark.parametrize("eos", [[4], [-1], [0, 99]])
def test_end_of_text_out_of_range(eos: list[int]) -> None:
    with pytest.raises(VocabularyError, match="not in range"):
        Vocabulary.from_tokens([b"a", b"b", None], eos_ids=eos)


def test_tokens_must_be_bytes() -> None:
    wrong: Any = [b"a", "b"]
    with pytest.raises(TypeError, match=r"tokens\[1\] is str"):
        Vocabulary.from_tokens(wrong, eos_ids=[])


@pytest.mark.parametrize("token", [-1, 2, 10**9])
def test_token_bytes_out_of_range(token: int) -> None:
    with pytest.raises(IndexError):
        Vocabulary.from_tokens([b"a", b"b"], eos_ids=[]).token_bytes(token)


def test_immutable() -> None:
    vocab = Vocabulary.from_tokens([b"a", b"b"], eos_ids=[])
    with pytest.raises(AttributeError):
        vocab.size = 3
    with pytest.raises(AttributeError):
        del vocab.size
    with pytest.raises(ValueError):
        vocab.data[0] = 1
    with pytest.raises(ValueError):
        vocab.offsets[0] = 1
    with pytest.raises(TypeError):
        Vocabulary()


@pytest.mark.parametrize("built", [False, True])
def test_pickle_gives_the_same_object(built: bool) -> None:
    vocab = Vocabulary.from_tokens([b"a", b"ab", None, b"\xff"], eos_ids=[2], first_token_strips_space=True)
    if built:
        assert vocab.trie.n_nodes == 4
    assert pickle.loads(pickle.dumps(vocab)) is vocab


def test_pickle_into_another_process() -> None:
    vocab = Vocabulary.from_tokens([b"a", b"ab", None, b"\xff"], eos_ids=[2], first_token_strips_space=True)
    code = (
        "import pickle, sys\n"
        "vocab = pickle.loads(sys.stdin.buffer.read())\n"
        "trie = vocab.trie\n"
        "assert not trie.byte.flags.writeable and not vocab.data.flags.writeable\n"
        "print(vocab.digest, vocab.tokens, trie.end.tolist(), vocab.first_token_strips_space, 'numba' in sys.modules)"
    )
    ends = vocab.trie.end.tolist()
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(vocab), capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"{vocab.digest} {vocab.tokens} {ends} True False"


def test_import_is_light() -> None:
    code = "import sys, guided.vocab; print({'numba', 'torch', 'transformers', 'tokenizers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"


def test_equal_content_is_one_object_also_from_other_types() -> None:
    a = Vocabulary.from_tokens((b"a", None), eos_ids=(1,))
    b = Vocabulary.from_tokens([b"a", b""], eos_ids=np.array([1, 1]))
    assert a is b
    assert a != "a"
