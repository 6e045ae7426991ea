"""Masks beside each other: of two constraints along a text, and of a vocabulary beside one of single bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import guided
from guided.kernels.data.layout import DEAD


def same_masks(one: guided.Constraint, other: guided.Constraint, text: bytes) -> bool:
    """Are masks the same all along a text, which both accept or neither?  Whether they do; over single bytes."""
    states = one.start, other.start
    rows = np.zeros((2, one.vocabulary.n_words), np.uint32)
    for byte in text:
        one.fill_mask(states[0], rows[0])
        other.fill_mask(states[1], rows[1])
        assert (rows[0] == rows[1]).all(), text
        states = one.advance(states[0], byte), other.advance(states[1], byte)
        assert bool(states[0]) == bool(states[1])
        if not states[0]:
            return False
    assert one.is_accepting(states[0]) == other.is_accepting(states[1])
    return one.is_accepting(states[0])


def fitting_tokens(
    by_token: guided.Constraint, state: int, by_byte: guided.Constraint, place: int, tokens: Sequence[bytes]
) -> set[int]:
    """The tokens of a mask, which are those whose bytes another constraint reads one by one."""
    row = np.zeros(by_token.vocabulary.n_words, np.uint32)
    by_token.fill_mask(state, row)
    found = {token for token in range(len(tokens)) if row[token >> 5] >> (token & 31) & 1}
    first = [by_byte.advance_bytes(place, bytes([byte])) for byte in range(256)]
    alive = [(token, text) for token, text in enumerate(tokens) if first[text[0]] != DEAD]
    fits = {token for token, text in alive if by_byte.advance_bytes(first[text[0]], text[1:]) != DEAD}
    assert found == fits
    return fits
