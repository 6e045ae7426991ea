"""Texts as the fewest tokens of a vocabulary."""

from __future__ import annotations

import numpy as np

from guided.vocab.vocabulary import Vocabulary

__all__ = ["spell"]


def spell(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """The fewest tokens that join to ``text``; empty when none do."""
    from guided.kernels.tokens.tokenize import fewest_tokens

    trie = vocabulary.trie
    data = np.frombuffer(text, np.uint8)
    room = np.empty((3, data.size + 1), np.int32)
    n_tokens: int = fewest_tokens(trie.byte, trie.end, trie.token_offset, trie.token_ids, data, room)
    found: list[int] = room[0, : max(n_tokens, 0)].tolist()
    return found
