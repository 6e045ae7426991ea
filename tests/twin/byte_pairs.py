"""Small byte-level BPE tokenizers with the real pre-tokenizers, trained on the spot, some of them made nasty."""

from __future__ import annotations

import json
import random

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from guided.vocab import Vocabulary

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {"gpt2": None, "llama3": _CONTRACTIONS + "|" + _REST % "{1,3}", "qwen": _CONTRACTIONS + "|" + _REST % ""}

CORPUS = [
    "the cat's hat isn't here, they'll say we're late  and   I'd've gone",
    '{"name": "ann", "n": 12, "list": [1, 22, 333, 4444]}\n\n  {\n\t"a":\r\n 1}',
    "aaa aaaa aaaaa ababab abab banana bandana !!! ?! ... --- 中文 中中文 naïve café",
]


def pre_tokenizer(name: str):
    pattern = PATTERNS[name]
    if pattern is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(name: str, size: int = 380) -> Tokenizer:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizer(name)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(CORPUS * 8, trainer)
    return bpe


def shuffled(tokenizer: Tokenizer, seed: int) -> Tokenizer:
    """The merges in another order, so that parts are no longer made before what they are parts of, and more of them."""
    spec = json.loads(tokenizer.to_str())
    vocab = spec["model"]["vocab"]
    merges = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in spec["model"]["merges"]]
    known = set(merges)
    for piece in vocab:
        for cut in range(1, len(piece)):
            pair = (piece[:cut], piece[cut:])
            if pair[0] in vocab and pair[1] in vocab and pair not in known and "<" not in piece:
                merges.append(pair)
    random.Random(seed).shuffle(merges)
    spec["model"]["merges"] = [list(merge) for merge in merges]
    return Tokenizer.from_str(json.dumps(spec))


def with_whole_chunks(tokenizer: Tokenizer, pieces: list[str]) -> Tokenizer:
    """``ignore_merges``, and pieces that no merge makes: they stand for a chunk that is exactly they."""
    spec = json.loads(tokenizer.to_str())
    vocab = spec["model"]["vocab"]
    for piece in pieces:
        vocab.setdefault(piece, len(vocab))
    spec["model"]["ignore_merges"] = True
    return Tokenizer.from_str(json.dumps(spec))


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer, eos_ids=[0], cache=False)
