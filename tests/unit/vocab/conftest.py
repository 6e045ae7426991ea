"""A cache of its own for every test, and small tokenizers of every family, trained here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# Enough variety that merges, several scripts, digits, punctuation and white space all get pieces.
CORPUS = [
    "The quick brown fox jumps over the lazy dog.",
    "the dog and the fox: they're friends, aren't they?",
    '{"name": "Ada", "age": 36, "tags": ["a", "b"], "ok": true, "none": null}',
    '{"name": "Grace", "age": 45, "tags": [], "ok": false, "none": null}',
    "SELECT name, age FROM people WHERE age >= 18 ORDER BY name;",
    "Grüße aus Köln, naïve café, Ærøskøbing",
    "日本語のテキスト、漢字とかな。",
    "Привет, мир! Как дела?",
    "def f(x):\n    return x ** 2  # square\n\n\tif x > 0:\r\n        pass",
    "1234567890 3.14159 -2e10",
] * 4

# What a lossless tokenizer must bring back byte for byte.
TEXTS = [
    "a",
    "Hello, world!",
    " leading and trailing ",
    "  two  spaces   three",
    "line\nbreak\r\n\ttab\n\n\n",
    '{"a": [1, 2.5, null, true], "é": "\\u00e9\\n"}',
    "Grüße, naïve café — ½ ﬁ ß",
    "日本語 한국어 العربية עברית ไทย",
    "emoji 🎉 👩‍👩‍👧 🏽 flags 🇩🇪",
    "\x00\x01\x02\x1f\x7f\u0080\u00ad",
    "a\u0301 combining \u200b zero width \ufeff bom \ufffd",
    "x" * 200 + " " * 70 + "=" * 50,
    "def f(x):\n    return x\n        # deep\n",
    "SELECT * FROM t WHERE a<>'b''c';",
    "\U0010ffff \U00010000",
]


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("GUIDED_CACHE", str(folder))
    return folder


@pytest.fixture
def texts() -> list[str]:
    return TEXTS


def _byte_level() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<|endoftext|>", "<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def byte_level() -> Any:
    """A byte-level BPE as GPT-2's, with ``<|endoftext|>`` and ``<|pad|>``."""
    return _byte_level()


@pytest.fixture
def fresh_byte_level() -> Any:
    """The same, for a test that changes it."""
    return _byte_level()


@pytest.fixture(scope="session")
def byte_fallback() -> Any:
    """A BPE with byte fallback and a dummy prefix, as Llama-2's."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, trainers

    source = Tokenizer(models.BPE())
    source.normalizer = normalizers.Replace(" ", "▁")
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, limit_alphabet=60)
    source.train_from_iterator(CORPUS, trainer)
    import json

    learned = json.loads(source.to_str())["model"]
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    vocabulary = {name: token for token, name in enumerate(names)}
    for piece in learned["vocab"]:
        vocabulary.setdefault(piece, len(vocabulary))
    merges = [tuple(pair) for pair in learned["merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in names[:3]])
    return tokenizer


@pytest.fixture(scope="session")
def unigram() -> Any:
    """A unigram model with a dummy prefix and no byte fallback, as T5's, with sentinel tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([f"<extra_id_{rank}>" for rank in range(4)])
    return tokenizer


@pytest.fixture(scope="session")
def word_piece() -> Any:
    """A WordPiece model as BERT's, cased."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[EOS]"], show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def word_level() -> Any:
    """Whole words and no decoder: pieces are printed with single spaces between them."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<unk>", "</s>", "the", "dog", "cat", "sat", "."]
    tokenizer = Tokenizer(models.WordLevel({word: token for token, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["</s>"])
    return tokenizer


@pytest.fixture(scope="session")
def sentencepiece_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of a BPE and a unigram SentencePiece model with byte fallback, a control and a user-defined piece."""
    trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
    folder = tmp_path_factory.mktemp("sentencepiece")
    (folder / "corpus.txt").write_text("\n".join(line for text in CORPUS for line in text.splitlines()))
    for kind in ("bpe", "unigram"):
        trainer.train(
            input=str(folder / "corpus.txt"),
            model_prefix=str(folder / kind),
            model_type=kind,
            vocab_size=450,
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=0.98,
            user_defined_symbols=["<tool>"],
            control_symbols=["<turn>"],
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            minloglevel=9,
        )
    return {kind: folder / f"{kind}.model" for kind in ("bpe", "unigram")}


@pytest.fixture(scope="session")
def tiktoken_encoding() -> Any:
    """A tiny tiktoken encoding whose ids have a hole, with two special tokens."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    for piece in (b"th", b"he", b"the", b" t", b" the", b"\xe3\x81", b"  ", b"    ", b'":', b'": "'):
        ranks[piece] = len(ranks)
    special = {"<|endoftext|>": len(ranks) + 5, "<|fim|>": len(ranks) + 6}
    return tiktoken.Encoding("tiny", pat_str=r"\s+|\w+|[^\w\s]+", mergeable_ranks=ranks, special_tokens=special)
