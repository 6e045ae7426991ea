"""Every family: the bytes of an encoded text's tokens are the text, and decode prints what the bytes say."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from guided.errors import VocabularyError
from guided.vocab import Vocabulary
from guided.vocab.families.byte_level import byte_of_character
from guided.vocab.families.pipeline import piece_decoder


def wrapped(backend: Any, **special: str) -> Any:
    """The Hugging Face fast tokenizer around a `tokenizers.Tokenizer`."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def spelled(vocab: Vocabulary, ids: list[int]) -> bytes:
    parts = [vocab.token_bytes(token) for token in ids]
    assert None not in parts
    return b"".join(part for part in parts if part is not None)


def assert_decodes_as_bytes(vocab: Vocabulary, decode: Any, first: int, rounds: int = 300) -> None:
    """Random sequences of ids after `first`: decode prints their bytes, wherever these are characters."""
    rng = random.Random(5)
    ids = [token for token in range(vocab.size) if vocab.token_bytes(token) is not None]
    seen = 0
    for _ in range(rounds):
        sequence = [first, *rng.choices(ids, k=rng.randint(1, 6))]
        data = spelled(vocab, sequence)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        seen += 1
        assert decode(sequence) == (text.removeprefix(" ") if vocab.first_token_strips_space else text)
    assert seen > rounds // 10


def test_byte_level(byte_level: Any, texts: list[str]) -> None:
    vocab = Vocabulary.from_tokenizer(byte_level)
    assert vocab.byte_complete
    assert not vocab.first_token_strips_space
    assert vocab.eos_ids == (byte_level.token_to_id("<|endoftext|>"),)
    for text in texts:
        assert spelled(vocab, byte_level.encode(text).ids) == text.encode()
    assert_decodes_as_bytes(
        vocab, lambda ids: byte_level.decode(ids, skip_special_tokens=False), byte_level.token_to_id("a")
    )
    assert vocab is Vocabulary.from_tokenizer(wrapped(byte_level, eos_token="<|endoftext|>"), cache=False)


def test_byte_level_alphabet_is_the_librarys() -> None:
    table = byte_of_character()
    assert set(table) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(table.values()) == list(range(256))


def test_byte_level_piece_outside_the_alphabet_is_its_own_text(byte_level: Any) -> None:
    model = json.loads(byte_level.to_str())["model"]
    vocabulary = model["vocab"] | {"a b": 900, "日本": 901, "Ġ日": 902}
    tokenizer = Tokenizer(models.BPE(vocabulary, [tuple(pair) for pair in model["merges"]]))
    tokenizer.decoder = decoders.ByteLevel()
    vocab = Vocabulary.from_tokenizer(tokenizer, eos_ids=[0])
    # The ids between are unused: never text, and no reason to refuse.
    assert vocab.size == 903
    assert vocab.tokens[-4:] == (None, b"a b", "日本".encode(), "Ġ日".encode())
    for token in (900, 901, 902):
        assert tokenizer.decode([token]).encode() == vocab.token_bytes(token)


def test_byte_fallback(byte_fallback: Any, texts: list[str]) -> None:
    vocab = Vocabulary.from_tokenizer(byte_fallback)
    assert vocab.byte_complete
    assert vocab.first_token_strips_space
    assert vocab.tokens[:3] == (None, None, None)
    assert vocab.token_bytes(3) == b"\0"
    assert vocab.eos_ids == (2,)
    for text in texts:
        assert spelled(vocab, byte_fallback.encode(text).ids) == b" " + text.encode()
    assert_decodes_as_bytes(
        vocab, lambda ids: byte_fallback.decode(ids, skip_special_tokens=False), byte_fallback.token_to_id("a")
    )


def test_unigram(unigram: Any) -> None:
    vocab = Vocabulary.from_tokenizer(unigram)
    assert vocab.first_token_strips_space
    assert not vocab.byte_complete
    assert vocab.eos_ids == (1,)
    assert vocab.tokens[-4:] == (None,) * 4
    for text in ("the quick brown fox", "name age", "1234567890", "Ada, Grace: ok"):
        assert spelled(vocab, unigram.encode(text).ids) == b" " + text.encode()
    assert_decodes_as_bytes(vocab, lambda ids: unigram.decode(ids, skip_special_tokens=False), unigram.token_to_id("a"))


def test_unigram_unknown_piece_that_is_not_special() -> None:
    tokenizer = Tokenizer(models.Unigram([("a", -1.0), ("?", -2.0), ("▁b", -3.0)], unk_id=1))
    tokenizer.decoder = decoders.Metaspace()
    assert Vocabulary.from_tokenizer(tokenizer, eos_ids=[]).tokens == (b"a", None, b" b")


def test_t5_class(unigram: Any) -> None:
    from transformers import T5Tokenizer

    pieces = [tuple(pair) for pair in json.loads(unigram.to_str())["model"]["vocab"]]
    tokenizer = T5Tokenizer(vocab=pieces, extra_ids=5)
    vocab = Vocabulary.from_tokenizer(tokenizer, size=320)
    assert vocab.size == 320
    assert vocab.eos_ids == (tokenizer.eos_token_id,)
    assert vocab.first_token_strips_space
    ids = tokenizer.encode("the lazy dog", add_special_tokens=False)
    assert spelled(vocab, ids) == b" the lazy dog"
    assert all(vocab.token_bytes(token) is None for token in tokenizer.all_special_ids)


def test_word_piece(word_piece: Any) -> None:
    vocab = Vocabulary.from_tokenizer(word_piece)
    assert vocab.eos_ids == (word_piece.token_to_id("[EOS]"),)
    assert vocab.token_bytes(word_piece.token_to_id("the")) == b" the"
    assert vocab.token_bytes(word_piece.token_to_id(",")) == b","
    assert vocab.token_bytes(word_piece.token_to_id("##e")) == b"e"
    text = "the quick brown fox, the lazy dog. name"
    assert spelled(vocab, word_piece.encode(text).ids) == b" " + text.encode()
    assert_decodes_as_bytes(
        vocab, lambda ids: word_piece.decode(ids, skip_special_tokens=False), word_piece.token_to_id("a")
    )
    # Hugging Face adds a clean-up of whole texts by default; without it decode is the same.
    same = wrapped(word_piece, eos_token="[EOS]", unk_token="[UNK]")
    assert Vocabulary.from_tokenizer(same) is vocab


def test_bert_class(word_piece: Any) -> None:
    from transformers import BertTokenizer

    tokenizer = BertTokenizer(vocab=word_piece.get_vocab(), do_lower_case=False)
    vocab = Vocabulary.from_tokenizer(tokenizer, eos_ids=[tokenizer.sep_token_id])
    ids = tokenizer.encode("the lazy dog", add_special_tokens=False)
    assert spelled(vocab, ids) == b" the lazy dog"
    assert vocab.eos_ids == (tokenizer.sep_token_id,)


def test_words_without_a_decoder(word_level: Any) -> None:
    vocab = Vocabulary.from_tokenizer(word_level)
    assert vocab.tokens == (None, None, b" the", b" dog", b" cat", b" sat", b" .")
    assert vocab.eos_ids == (1,)
    assert word_level.decode([2, 3, 6]) == "the dog ."


def test_gemma_like_has_no_dummy_prefix(byte_fallback: Any, texts: list[str]) -> None:
    tokenizer = Tokenizer.from_str(byte_fallback.to_str())
    from tokenizers import normalizers

    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    vocab = Vocabulary.from_tokenizer(tokenizer)
    assert not vocab.first_token_strips_space
    for text in texts:
        assert spelled(vocab, tokenizer.encode(text).ids) == text.encode()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sentencepiece(kind: str, sentencepiece_models: Any, texts: list[str]) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_models[kind]))
    vocab = Vocabulary.from_tokenizer(processor)
    assert vocab.size == processor.get_piece_size()
    assert vocab.byte_complete
    assert vocab.first_token_strips_space
    assert vocab.eos_ids == (processor.eos_id(),)
    for name in ("<unk>", "<s>", "</s>", "<tool>", "<turn>"):
        assert vocab.token_bytes(processor.piece_to_id(name)) is None
    for text in texts:
        if "\0" not in text:  # the Python binding cuts a text there
            assert spelled(vocab, processor.encode(text)) == b" " + text.encode()
    assert_decodes_as_bytes(vocab, processor.decode, processor.piece_to_id("a"))
    tool = processor.piece_to_id("<tool>")
    assert Vocabulary.from_tokenizer(processor, text_ids=[tool]).token_bytes(tool) == b"<tool>"
    with pytest.raises(VocabularyError, match="user-defined"):
        Vocabulary.from_tokenizer(processor, text_ids=[processor.piece_to_id("a")])


def test_tiktoken(tiktoken_encoding: Any, texts: list[str]) -> None:
    vocab = Vocabulary.from_tokenizer(tiktoken_encoding)
    assert vocab.size == tiktoken_encoding.n_vocab
    assert vocab.eos_ids == (tiktoken_encoding.eot_token,)
    assert vocab.tokens[-7:] == (None,) * 7
    assert vocab.byte_complete
    for text in texts:
        assert spelled(vocab, tiktoken_encoding.encode(text, disallowed_special=())) == text.encode()


def test_added_tokens_never_match_text(fresh_byte_level: Any) -> None:
    tokenizer = wrapped(fresh_byte_level, eos_token="<|endoftext|>")
    tokenizer.add_tokens(["<tool_call>", AddedToken("    ", normalized=False), "the fox"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|turn|>"]})
    vocab = Vocabulary.from_tokenizer(tokenizer)
    assert vocab.size == len(tokenizer)
    for token in tokenizer.get_added_vocab().values():
        assert vocab.token_bytes(token) is None
    assert all(vocab.token_bytes(token) is None for token in tokenizer.all_special_ids)


def test_text_ids_name_added_tokens_that_are_text(fresh_byte_level: Any) -> None:
    tokenizer = wrapped(fresh_byte_level, eos_token="<|endoftext|>")
    tokenizer.add_tokens([AddedToken("    ", normalized=False), "naïve"])
    spaces, naive = (tokenizer.convert_tokens_to_ids(name) for name in ("    ", "naïve"))
    vocab = Vocabulary.from_tokenizer(tokenizer, text_ids=[spaces])
    assert (vocab.token_bytes(spaces), vocab.token_bytes(naive)) == (b"    ", None)
    both = Vocabulary.from_tokenizer(tokenizer, text_ids=[spaces, naive])
    assert both.token_bytes(naive) == "naïve".encode()
    with pytest.raises(VocabularyError, match="no added token"):
        Vocabulary.from_tokenizer(tokenizer, text_ids=[3])


def test_padding_rows(byte_level: Any) -> None:
    narrow = Vocabulary.from_tokenizer(byte_level)
    wide = Vocabulary.from_tokenizer(byte_level, size=512)
    assert (wide.size, wide.n_words) == (512, 16)
    assert wide.tokens == narrow.tokens + (None,) * (512 - narrow.size)
    assert wide != narrow
    with pytest.raises(VocabularyError, match="size=10"):
        Vocabulary.from_tokenizer(byte_level, size=10)


def test_end_of_text_ids(byte_level: Any, fresh_byte_level: Any) -> None:
    eos = byte_level.token_to_id("<|endoftext|>")
    pad = byte_level.token_to_id("<|pad|>")
    assert Vocabulary.from_tokenizer(byte_level, eos_ids=[pad, eos, pad]).eos_ids == tuple(sorted((eos, pad)))
    assert Vocabulary.from_tokenizer(byte_level, eos_ids=[]).eos_ids == ()
    # What the tokenizer says comes before well-known names.
    assert Vocabulary.from_tokenizer(wrapped(byte_level, eos_token="<|pad|>")).eos_ids == (pad,)
    # Saying nothing, every well-known name counts.
    fresh_byte_level.add_special_tokens(["<|im_end|>"])
    im_end = fresh_byte_level.token_to_id("<|im_end|>")
    assert Vocabulary.from_tokenizer(wrapped(fresh_byte_level)).eos_ids == tuple(sorted((eos, im_end)))
    with pytest.raises(VocabularyError, match="not in range"):
        Vocabulary.from_tokenizer(byte_level, eos_ids=[10_000])


def test_no_end_of_text(word_level: Any) -> None:
    tokenizer = Tokenizer(models.WordLevel({"</s>": 0, "a": 1}, unk_token="a"))
    # "</s>" is an ordinary word here: it is not declared special.
    with pytest.raises(VocabularyError, match="eos_ids"):
        Vocabulary.from_tokenizer(tokenizer)


@pytest.mark.parametrize(
    "decoder",
    [
        decoders.BPEDecoder(),
        decoders.CTC(),
        decoders.Strip(" ", 1, 0),
        decoders.Sequence([decoders.Fuse(), decoders.Replace("▁", " ")]),
        decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 2, 0)]),
        decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)]),
        decoders.Sequence([decoders.ByteLevel(), decoders.Metaspace()]),
    ],
)
def test_decoders_that_are_refused(decoder: Any) -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.decoder = decoder
    with pytest.raises(VocabularyError, match="from_tokens"):
        Vocabulary.from_tokenizer(tokenizer, eos_ids=[])


def test_decoder_written_in_python() -> None:
    class Custom:
        def decode_chain(self, tokens: list[str]) -> list[str]:
            return [token.upper() for token in tokens]

    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.decoder = decoders.Decoder.custom(Custom())
    with pytest.raises(VocabularyError, match="from_tokens"):
        Vocabulary.from_tokenizer(tokenizer, eos_ids=[])


def test_self_check_catches_a_decode_of_its_own(byte_level: Any) -> None:
    class Shouting:
        """A fast tokenizer whose class prints otherwise than its decoder says."""

        backend_tokenizer = byte_level
        all_special_ids = ()
        eos_token_id = 0

        def decode(self, ids: list[int], **options: Any) -> str:
            return str(byte_level.decode(ids)).upper()

    with pytest.raises(VocabularyError, match=r"token ids? cannot be known \(\d+, .*, \.\.\.\)") as caught:
        Vocabulary.from_tokenizer(Shouting(), cache=False)
    assert "from_tokens" in str(caught.value)


@pytest.mark.parametrize("thing", [None, "gpt2", 3, object()])
def test_no_tokenizer_at_all(thing: object) -> None:
    with pytest.raises(VocabularyError, match="no tokenizer"):
        Vocabulary.from_tokenizer(thing)


def test_metaspace_with_other_settings() -> None:
    never = piece_decoder({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})
    assert (never.to_bytes("_a_"), never.first_token_strips_space) == (b" a ", False)
    nested = piece_decoder(
        {"type": "Sequence", "decoders": [{"type": "Sequence", "decoders": [{"type": "ByteLevel"}]}]}
    )
    assert nested.to_bytes("Ġ") == b" "
