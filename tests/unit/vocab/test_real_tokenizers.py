"""The four real tokenizers of the test data: every text comes back byte for byte, and special tokens have no bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from guided.special_bytes import SENTINEL, special_bytes
from guided.vocab import Vocabulary
from tests.amounts import mostly_slow, some

NAMES = ("gpt2", "llama2", "llama3", "qwen2.5")
"""The last two are large, and of gpt2's family: for the long suite."""
EXPECTED_SIZE = {"gpt2": 50257, "llama2": 32000, "llama3": 128256, "qwen2.5": 151665}


@pytest.fixture(scope="module", params=mostly_slow(NAMES, 2))
def tokenizer(request: pytest.FixtureRequest, data: Path) -> Any:
    folder = data / "tokenizers" / request.param
    if not (folder / "tokenizer.json").exists():
        pytest.skip(f"no {request.param} tokenizer in the test data")
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(str(folder))
    loaded.name = request.param
    return loaded


@pytest.fixture(scope="module")
def vocab(tokenizer: Any) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer, cache=False)


def random_texts(seed: int, count: int) -> list[str]:
    """Texts of characters of every UTF-8 length and of white space, which merges treat most unevenly."""
    rng = random.Random(seed)
    pools = [range(0x20, 0x7F), range(0x21), range(0xA0, 0x800), range(0x3040, 0x3100), range(0x1F300, 0x1F600)]
    return [
        "".join(chr(rng.choice(rng.choice(pools))) * rng.choice((1, 1, 1, 2, 7)) for _ in range(rng.randint(1, 40)))
        for _ in range(count)
    ]


def test_texts_come_back(tokenizer: Any, vocab: Vocabulary, texts: list[str]) -> None:
    # Qwen normalises to NFC before it encodes; Llama-2 cannot tell U+2581 from a space.
    from unicodedata import normalize

    for text in texts + random_texts(3, some(400, 8)):
        text = normalize("NFC", text)
        pieces = [vocab.token_bytes(token) for token in tokenizer.encode(text, add_special_tokens=False)]
        prefix = b" " if vocab.first_token_strips_space else b""
        assert b"".join(piece or b"<special>" for piece in pieces) == prefix + text.encode()


def test_every_single_token_prints_its_bytes(tokenizer: Any, vocab: Vocabulary) -> None:
    ids = [token for token in range(vocab.size) if vocab.token_bytes(token) is not None]
    anchor = tokenizer.encode("a", add_special_tokens=False)[-1]
    lead = vocab.token_bytes(anchor) or b""
    printed = tokenizer.backend_tokenizer.decode_batch([[anchor, token] for token in ids], skip_special_tokens=False)
    for token, text in zip(ids, printed):
        data = lead + (vocab.token_bytes(token) or b"")
        expected = data.decode(errors="replace")
        # Llama-2's decoder prints a mark for each byte of a broken character, Python one for its longest valid part.
        if tokenizer.name != "llama2" or "\ufffd" not in expected:
            assert text == (expected.removeprefix(" ") if vocab.first_token_strips_space else expected)


def test_what_is_not_text(tokenizer: Any, vocab: Vocabulary) -> None:
    assert vocab.size == EXPECTED_SIZE[tokenizer.name] == len(tokenizer)
    assert vocab.byte_complete
    assert vocab.eos_ids == (tokenizer.eos_token_id,)
    assert vocab.first_token_strips_space == (tokenizer.name == "llama2")
    silent = {token for token in range(vocab.size) if vocab.token_bytes(token) is None}
    assert silent == set(tokenizer.get_added_vocab().values()) | set(tokenizer.all_special_ids)


def test_without_a_configuration_all_known_ends_count(tokenizer: Any) -> None:
    from transformers import PreTrainedTokenizerFast

    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
    assert bare.eos_token_id is None
    names = tokenizer.convert_ids_to_tokens(list(Vocabulary.from_tokenizer(bare, cache=False).eos_ids))
    assert (
        set(names)
        == {
            "gpt2": {"<|endoftext|>"},
            "llama2": {"</s>"},
            "llama3": {"<|end_of_text|>", "<|eot_id|>"},
            "qwen2.5": {"<|endoftext|>", "<|im_end|>"},
        }[tokenizer.name]
    )


def test_trie_spells_every_token(vocab: Vocabulary) -> None:
    trie = vocab.trie
    path: list[int] = []
    open_until: list[int] = []
    spelled: dict[int, bytes] = {}
    ends, labels, offsets, ids = (a.tolist() for a in (trie.end, trie.byte, trie.token_offset, trie.token_ids))
    for node in range(1, trie.n_nodes):
        while open_until and node >= open_until[-1]:
            open_until.pop()
            path.pop()
        path.append(labels[node])
        open_until.append(ends[node])
        for token in ids[offsets[node] : offsets[node + 1]]:
            spelled[token] = bytes(path)
    special = {token: special_bytes(name) for name, token in vocab.special_tokens.items() if token not in vocab.eos_ids}
    text = {token: text for token, text in enumerate(vocab.tokens) if text is not None}
    if vocab.has_special:
        text = {token: data for token, data in text.items() if SENTINEL not in data}
    assert spelled == text | special
