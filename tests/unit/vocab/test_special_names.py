"""The special tokens that are read from every family of tokenizers, by name and through the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guided
from guided.testing import check_constraint
from guided.vocab import Vocabulary


def named(tokenizer: Any, **options: Any) -> dict[str, int]:
    """Read twice, the second time from the cache."""
    first = Vocabulary.from_tokenizer(tokenizer, **options)
    again = Vocabulary.from_tokenizer(tokenizer, **options)
    assert again.special_tokens == first.special_tokens
    assert (again.digest, again.trie.n_nodes) == (first.digest, first.trie.n_nodes)
    fresh = Vocabulary.from_tokenizer(tokenizer, cache=False, **options)
    assert fresh.special_tokens == first.special_tokens
    for name, token in first.special_tokens.items():
        assert first.token_bytes(token) is None
        assert first.spelled(token) == (None if token in first.eos_ids else b"\xff" + name.encode() + b"\xff")
    return dict(first.special_tokens)


def test_fast_tokenizers(fresh_byte_level: Any, byte_fallback: Any, unigram: Any, word_piece: Any) -> None:
    fresh_byte_level.add_tokens(["<tool>", "\n\n"])
    ids = {name: fresh_byte_level.token_to_id(name) for name in ("<|endoftext|>", "<|pad|>", "<tool>", "\n\n")}
    assert named(fresh_byte_level) == ids
    assert named(fresh_byte_level, text_ids=[ids["\n\n"]]) == {n: t for n, t in ids.items() if n != "\n\n"}
    assert named(byte_fallback) == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert set(named(unigram)) == {"<pad>", "</s>", "<unk>", *(f"<extra_id_{rank}>" for rank in range(4))}
    assert set(named(word_piece)) == {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[EOS]"}


def test_slow_tokenizers() -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.ByT5Tokenizer(extra_ids=3)
    assert named(tokenizer) == {name: tokenizer.convert_tokens_to_ids(name) for name in tokenizer.get_added_vocab()}


def test_sentencepiece(sentencepiece_models: Any) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_models["bpe"]))
    names = ["<s>", "</s>", "<tool>", "<turn>"]
    assert named(processor) == {name: processor.piece_to_id(name) for name in names}
    tool = processor.piece_to_id("<tool>")
    assert "<tool>" not in named(processor, text_ids=[tool])


def test_tiktoken(tiktoken_encoding: Any) -> None:
    assert named(tiktoken_encoding) == {"<|endoftext|>": 271, "<|fim|>": 272}


@pytest.mark.parametrize("family", ["fresh_byte_level", "byte_fallback"])
def test_constraints_over_byte_complete_families(family: str, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(family)
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    begin = next(name for name, token in vocabulary.special_tokens.items() if token not in vocabulary.eos_ids)
    grammar = guided.tags([guided.Tag(guided.special_token(begin), guided.regex("[a-z]{1,3}"), ".")])
    constraint = guided.compile(grammar, vocabulary)
    check_constraint(constraint, walks=2, length=6, threads=1, pickled=False)
    row = np.zeros(vocabulary.n_words, np.uint32)
    constraint.fill_mask(constraint.start, row)
    token = vocabulary.special_tokens[begin]
    assert int(row[token >> 5]) >> (token & 31) & 1
