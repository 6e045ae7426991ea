"""Hugging Face tokenizers written in Python, of every kind that can be told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guided.errors import VocabularyError
from guided.vocab import Vocabulary
from guided.vocab.families.byte_level import byte_of_character

transformers = pytest.importorskip("transformers")


class Python(transformers.PreTrainedTokenizer):  # type: ignore[misc]
    """A tokenizer over a list of pieces; subclasses say how pieces are printed."""

    model_input_names = ("input_ids",)

    def __init__(self, pieces: list[Any], **options: Any) -> None:
        self.pieces = pieces
        self.ids = {piece: token for token, piece in enumerate(pieces)}
        super().__init__(**({"eos_token": "</s>", "unk_token": "<unk>"} | options))

    @property
    def vocab_size(self) -> int:
        return len(self.pieces)

    def get_vocab(self) -> dict[Any, int]:
        return dict(self.ids) | self.added_tokens_encoder

    def _convert_token_to_id(self, token: Any) -> int:
        return self.ids.get(token, 0)

    def _convert_id_to_token(self, index: int) -> Any:
        return self.pieces[index]


def test_byte_t5(texts: list[str]) -> None:
    tokenizer = transformers.ByT5Tokenizer()
    vocab = Vocabulary.from_tokenizer(tokenizer)
    assert vocab.byte_complete
    assert vocab.longest == 1
    assert vocab.eos_ids == (1,)
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert b"".join(vocab.token_bytes(token) or b"?" for token in ids) == text.encode()


def test_sentencepiece_backend(sentencepiece_models: dict[str, Path], texts: list[str]) -> None:
    from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

    tokenizer = SentencePieceBackend(
        vocab_file=str(sentencepiece_models["bpe"]), unk_token="<unk>", eos_token="</s>", bos_token="<s>"
    )
    tokenizer.add_tokens(["<mine>"])
    vocab = Vocabulary.from_tokenizer(tokenizer)
    assert vocab.size == len(tokenizer)
    assert vocab.byte_complete
    assert vocab.first_token_strips_space
    for name in ("<unk>", "<s>", "</s>", "<tool>", "<turn>", "<mine>"):
        assert vocab.token_bytes(tokenizer.convert_tokens_to_ids(name)) is None
    for text in texts:
        if "\0" not in text:
            ids = tokenizer.convert_tokens_to_ids(tokenizer.sp_model.encode(text, out_type=str))
            assert b"".join(vocab.token_bytes(token) or b"?" for token in ids) == b" " + text.encode()


def test_byte_level_in_python() -> None:
    class ByteLevel(Python):
        byte_decoder = byte_of_character()

        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            return bytes(self.byte_decoder[c] for c in "".join(tokens)).decode(errors="replace")

    alphabet = sorted(byte_of_character())
    vocab = Vocabulary.from_tokenizer(ByteLevel(["<unk>", "</s>", *alphabet, "Ġthe", "âĢ"]))
    assert vocab.byte_complete
    assert vocab.tokens[-2:] == (b" the", b"\xe2\x80")
    assert vocab.tokens[:2] == (None, None)


def test_pieces_that_are_bytes() -> None:
    class Raw(Python):
        def convert_tokens_to_string(self, tokens: list[Any]) -> str:
            return b"".join(t if isinstance(t, bytes) else t.encode() for t in tokens).decode(errors="replace")

        def get_vocab(self) -> dict[Any, int]:
            return {piece: token for piece, token in self.ids.items() if isinstance(piece, bytes)}

    vocab = Vocabulary.from_tokenizer(Raw([b"a", b" b", b"\xff", "<unk>", "</s>"]))
    assert vocab.tokens[:3] == (b"a", b" b", b"\xff")
    assert vocab.tokens[3:] == (None,) * (vocab.size - 3)


def test_word_pieces_in_python() -> None:
    class WordPieces(Python):
        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            return " ".join(tokens).replace(" ##", "").strip()

    vocab = Vocabulary.from_tokenizer(WordPieces(["<unk>", "</s>", "play", "##ing", "the", ","]))
    assert vocab.tokens == (None, None, b" play", b"ing", b" the", b" ,")
    assert vocab.first_token_strips_space


def test_words_in_python() -> None:
    vocab = Vocabulary.from_tokenizer(Python(["<unk>", "</s>", "the", "dog", "."]))
    assert vocab.tokens == (None, None, b" the", b" dog", b" .")


def test_characters_in_python() -> None:
    class Characters(Python):
        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            return "".join(tokens)

    vocab = Vocabulary.from_tokenizer(Characters(["<unk>", "</s>", "a", "b", " ", "é"]))
    assert vocab.tokens == (None, None, b"a", b"b", b" ", "é".encode())
    tokenizer = Characters(["<unk>", "</s>", "a", "b", "\ufffd"])
    with pytest.raises(VocabularyError, match=r"1 token id cannot be known \(4\)"):
        Vocabulary.from_tokenizer(tokenizer)


def test_unknown_families_are_refused() -> None:
    class Reversed(Python):
        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            return "".join(reversed(tokens))

    with pytest.raises(VocabularyError, match="no known family"):
        Vocabulary.from_tokenizer(Reversed(["<unk>", "</s>", "a", "b"]))

    class Lowered(Python):
        def convert_tokens_to_string(self, tokens: list[str]) -> str:
            return " ".join(tokens).lower()

    with pytest.raises(VocabularyError, match="prints other text"):
        Vocabulary.from_tokenizer(Lowered(["<unk>", "</s>", "a", "b", "C", "D"]))


def test_added_tokens_and_text_ids() -> None:
    tokenizer = Python(["<unk>", "</s>", "the", "dog"])
    tokenizer.add_tokens(["\n\n"])
    added = tokenizer.get_added_vocab()["\n\n"]
    assert Vocabulary.from_tokenizer(tokenizer).token_bytes(added) is None
    assert Vocabulary.from_tokenizer(tokenizer, text_ids=[added]).token_bytes(added) == b"\n\n"
    with pytest.raises(VocabularyError, match="no added token"):
        Vocabulary.from_tokenizer(tokenizer, text_ids=[2])


def test_kinds_of_pieces_are_part_of_the_key(sentencepiece_models: dict[str, Path]) -> None:
    from transformers.tokenization_utils_sentencepiece import SentencePieceBackend

    from guided.vocab.families import read_tokenizer

    tokenizer = SentencePieceBackend(vocab_file=str(sentencepiece_models["bpe"]), unk_token="<unk>", eos_token="</s>")
    proto = tokenizer.sp_model.serialized_model_proto()
    # The user-defined piece (type 4, the field before it is its score) becomes a normal one: same pieces, other bytes.
    at = proto.index(b"<tool>")
    changed = proto[:at] + proto[at:].replace(b"\x18\x04", b"\x18\x01", 1)
    before, silent = read_tokenizer(tokenizer).key(), Vocabulary.from_tokenizer(tokenizer)
    assert tokenizer.sp_model.LoadFromSerializedProto(changed)
    token = tokenizer.sp_model.piece_to_id("<tool>")
    assert read_tokenizer(tokenizer).key() != before
    assert (silent.token_bytes(token), Vocabulary.from_tokenizer(tokenizer).token_bytes(token)) == (None, b"<tool>")


def test_a_class_that_hides_its_added_tokens_is_refused() -> None:
    class Hiding:
        def get_vocab(self) -> dict[str, int]:
            return {"a": 0}

        def added_tokens_decoder(self) -> None:
            raise NotImplementedError

    with pytest.raises(VocabularyError, match="from_tokens"):
        Vocabulary.from_tokenizer(Hiding())
