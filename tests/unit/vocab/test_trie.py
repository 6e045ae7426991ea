"""The trie kernel against a twin made of nested dictionaries, and the sort against Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from guided.vocab import Vocabulary
from guided.vocab.trie import Trie, build_trie, sort_byte_strings

# Few letters (NUL and 0xFF among them) make shared prefixes, duplicates and lengths about the sort's chunk of 8.
pieces = st.lists(st.sampled_from([b"\0", b"a", b"b", b"\xff", b"aaaaaaa", b"aaaaaaaa"]), max_size=5).map(b"".join)
byte_strings = st.lists(st.one_of(pieces, st.binary(max_size=20)), max_size=40)


def flat(strings: list[bytes]) -> tuple[Any, Any]:
    offsets = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    return np.frombuffer(b"".join(strings), np.uint8), offsets


def twin(strings: list[bytes]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Build nested dictionaries and read them in preorder."""
    root: dict[Any, Any] = {"ids": []}
    for token, string in enumerate(strings):
        node = root
        for byte in string:
            node = node.setdefault(byte, {"ids": []})
        if string:
            node["ids"].append(token)
    byte, end, token_offset, token_ids = [], [], [], []

    def visit(label: int, node: dict[Any, Any]) -> None:
        index = len(byte)
        byte.append(label)
        end.append(0)
        token_offset.append(len(token_ids))
        token_ids.extend(node["ids"])
        for child in sorted(key for key in node if key != "ids"):
            visit(child, node[child])
        end[index] = len(byte)

    visit(0, root)
    return byte, end, [*token_offset, len(token_ids)], token_ids


def as_lists(trie: Trie) -> tuple[list[int], ...]:
    return tuple(array.tolist() for array in (trie.byte, trie.end, trie.token_offset, trie.token_ids))


@given(byte_strings)
def test_trie_is_its_twin(strings: list[bytes]) -> None:
    trie = build_trie(*flat(strings))
    assert as_lists(trie) == twin(strings)
    assert (trie.byte.dtype, trie.end.dtype) == (np.uint8, np.int32)
    assert (trie.token_offset.dtype, trie.token_ids.dtype) == (np.int32, np.int32)


@given(byte_strings)
def test_sort_is_pythons(strings: list[bytes]) -> None:
    ids = np.arange(len(strings), dtype=np.int32)
    assert sort_byte_strings(*flat(strings), ids[::-1]).tolist() == sorted(ids.tolist(), key=strings.__getitem__)


def test_sort_tells_padding_from_nul() -> None:
    strings = [b"12345678\0", b"12345678", b"1\0", b"1", b"12345678\0\0\0\0\0\0\0\0\0", b"1234567", b"1\0\0"]
    ids = np.arange(len(strings), dtype=np.int32)
    assert sort_byte_strings(*flat(strings), ids).tolist() == sorted(ids.tolist(), key=strings.__getitem__)


def test_sort_of_long_shared_prefixes() -> None:
    strings = [b"a" * (length % 97) + bytes([length % 7]) for length in range(2000)]
    ids = np.arange(len(strings), dtype=np.int32)
    assert sort_byte_strings(*flat(strings), ids).tolist() == sorted(ids.tolist(), key=strings.__getitem__)


def test_empty_vocabularies() -> None:
    for tokens in ([], [None], [b"", None]):
        trie = Vocabulary.from_tokens(tokens, eos_ids=[]).trie
        assert as_lists(trie) == ([0], [1], [0, 0], [])


def test_arrays_are_read_only() -> None:
    trie = Vocabulary.from_tokens([b"ab", b"c"], eos_ids=[]).trie
    assert not any(array.flags.writeable for array in (trie.byte, trie.end, trie.token_offset, trie.token_ids))


def test_one_token_of_a_million_bytes() -> None:
    trie = Vocabulary.from_tokens([b"x" * 1_000_000, b"y"], eos_ids=[]).trie
    assert trie.n_nodes == 1_000_002
    assert trie.end[:3].tolist() == [1_000_002, 1_000_001, 1_000_001]
