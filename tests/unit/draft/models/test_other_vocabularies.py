"""Drafts by models of other tokenizers: which tokens are twins, and how texts are split."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from guided.draft import Chain, Fixed, Model, OtherVocabulary, intersected, speculate
from guided.lm import TableModel
from guided.lm.table import normalised
from guided.vocab import Vocabulary
from guided.vocab.encoding import TextEncoder, byte_fallbacks

MARK = "\u2581"
WORDS = [MARK, ",", "a", "b", "c", "ab", "abc", "bc", f"{MARK}a", f"{MARK}b", f"{MARK}ab", "\u00e9"]


@pytest.fixture(scope="module")
def sentencepiece():
    """As Llama-2's: special tokens, a token for each byte, then pieces; a space before every text."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS]
    ids = {piece: number for number, piece in enumerate(pieces)}
    # Not the longest first: "abc" is a bc.
    merges = [("b", "c"), (MARK, "a"), (MARK, "b"), ("a", "b"), (f"{MARK}a", "b"), ("ab", "c")]
    backend = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    backend.decoder = decoders.Sequence(
        [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


@pytest.fixture(scope="module")
def gpt(sentencepiece):
    """Byte-level, without end of merges: other ids, another splitting."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    ids = {piece: number for number, piece in enumerate([*alphabet, "ab", "abc", "</s>"])}
    backend = Tokenizer(models.BPE(ids, [("a", "b"), ("ab", "c")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")


def model_of(tokenizer, likely, seed=0):
    """A model of a tokenizer's ids that is fond of some; it carries the tokenizer, as `TransformersModel` does."""
    width = len(tokenizer)

    def logprobs(tokens):
        rng = np.random.default_rng([seed, *tokens[-3:]])
        row = rng.standard_normal(width) - 4
        row[likely] += 4 + 3 * rng.standard_normal(len(likely))
        return normalised(row)

    model = TableModel(logprobs, width=width, eos_ids=[tokenizer.eos_token_id])
    model.tokenizer = tokenizer
    return model


def test_byte_tokens_are_known(sentencepiece, gpt):
    vocabulary = Vocabulary.from_tokenizer(sentencepiece)
    assert byte_fallbacks(vocabulary) == frozenset(range(3, 259))
    assert not byte_fallbacks(Vocabulary.from_tokenizer(gpt))
    assert vocabulary.token_bytes(3 + 0x2C) == vocabulary.token_bytes(260) == b","


def test_the_very_same_model_is_accepted_throughout(sentencepiece):
    """``<0x2C>`` and ``,`` are two tokens of the same byte, each with its own probability."""
    likely = [3 + 0x2C, 260, 3 + ord("a"), 261, 262, 2]
    model = model_of(sentencepiece, likely)
    vocabulary = Vocabulary.from_tokenizer(sentencepiece)
    for own, target in ((vocabulary, vocabulary), (sentencepiece, sentencepiece)):
        twin = intersected(model, own, target)
        prompt = [1, *sentencepiece.encode("ab, c", add_special_tokens=False)]
        (logits,), (plain,) = twin.start([prompt]).last.logits, model.start([prompt]).last.logits
        shown = [token for token in range(3, 259 + len(WORDS)) if token != 0]
        np.testing.assert_array_equal(logits[shown], plain[shown])
        # Not of the same vocabulary for once, by an id more: twins are then found by their bytes.
        wide = Vocabulary.from_tokens([*vocabulary.tokens, None], eos_ids=[2], special_tokens=vocabulary.special_tokens)
        twin = intersected(model, own, wide)
        (logits,) = twin.start([prompt]).last.logits
        np.testing.assert_array_equal(logits[shown], plain[shown])
        assert twin.read(prompt) == prompt
        _, counts = speculate(
            0, model, [prompt] * 10, [None] * 10, Model(intersected(model, own, target), Chain(3)), max_tokens=16,
            policy=Fixed(3),
        )  # fmt: skip
        assert counts.drafted > 30 and counts.accepted > 0.85 * counts.drafted


def test_what_tokenizers_write_are_twins(sentencepiece, gpt):
    """Of two tokens of a byte there, one has a twin here: the one that texts are written with."""
    small = model_of(sentencepiece, [260, 261, 262, 2])
    one = intersected(small, sentencepiece, gpt)
    comma = gpt.convert_tokens_to_ids(",")
    assert one.twin[comma] == 260
    other = intersected(model_of(gpt, [comma]), gpt, sentencepiece)
    assert other.twin[260] == comma and 3 + 0x2C not in other.twin
    assert other.twin[2] == gpt.eos_token_id


@pytest.mark.parametrize("text", ["abc", "ab,c", " a b", "abc\u00e9", "\u4e00bc", "", "</s>", "abcab cab"])
def test_texts_are_split_as_tokenizers_split_them(sentencepiece, gpt, text):
    data = text.encode()
    for tokenizer in (sentencepiece, gpt):
        encoder = TextEncoder(tokenizer)
        tokens = encoder(data)
        assert b"".join(encoder.vocabulary.token_bytes(token) for token in tokens) == data
        own = tokenizer.encode(text, add_special_tokens=False)
        if b"".join(encoder.vocabulary.token_bytes(token) or b"" for token in own) == data:
            assert tokens == own
        # Inside a character nothing is known, and nothing is lost.
        cut = (data + "\u4e00".encode())[:-1]
        assert b"".join(encoder.vocabulary.token_bytes(token) for token in encoder(cut)) == cut
    if text == "abc":
        assert [WORDS[token - 259] for token in TextEncoder(sentencepiece)(data)] == ["a", "bc"]
        assert [WORDS[token - 259] for token in TextEncoder(Vocabulary.from_tokenizer(sentencepiece))(data)] == ["abc"]


def test_tokenizers_of_other_libraries(gpt):
    assert TextEncoder(gpt.backend_tokenizer)(b"abcab") == TextEncoder(gpt)(b"abcab") == gpt.encode("abcab")
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"bc": 256, b"ab": 257}
    encoding = tiktoken.Encoding(
        "tiny", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 258}
    )
    own = TextEncoder(encoding)
    assert own(b"abc") == [97, 256] and not own.beginning


def test_a_model_that_writes_as_the_target_is_followed(sentencepiece):
    """SLEM splits by the tokenizers: with the longest token first a target would be asked for what it never writes."""
    model = model_of(sentencepiece, [2])

    def cycle(tokens):
        following = {262: 261, 261: 266}.get(tokens[-1], 261)  # a bc a bc ...
        row = np.full(model.width, -20.0)
        row[following] = 0.0
        return normalised(row)

    table = TableModel(cycle, width=model.width, eos_ids=[2])
    table.tokenizer = sentencepiece
    prompt = [1, 261, 266, 261, 266]
    vocabulary = Vocabulary.from_tokenizer(sentencepiece)
    accepted = {}
    for name, own, target in (("tokenizers", sentencepiece, sentencepiece), ("vocabularies", vocabulary, vocabulary)):
        drafter = OtherVocabulary(table, own, target, pieces=4)
        _, counts = speculate(0, table, [prompt], [None], drafter, max_tokens=21, greedy=True, policy=Fixed(4))
        accepted[name] = counts.acceptance
    assert accepted["tokenizers"] == 1.0
    assert accepted["vocabularies"] < 0.5, "a bare vocabulary does not know that the target writes a bc"
