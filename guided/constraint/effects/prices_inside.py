"""How far the tokens that stay inside a terminal are from its end: by the places in which they end, which are few.

A walk tells the places (`guided.constraint.effects.surveys`), a kernel what each takes, and what is listed is what
`guided.kernels.masking.masks` reads of an effect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from guided.constraint.effects.characters_left import distinct_places
from guided.constraint.effects.surveys import Ends
from guided.kernels.data.layout import FAR
from guided.kernels.lexing.byte_classes import TEXT
from guided.vocab.vocabulary import Vocabulary

__all__ = ["PlacePrices", "PricesInside"]

PlacePrices: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""What is enough from each of some places to the end of a match, a token a byte."""

_MANY = 1 << 16
"""Bytes to the end of a terminal from which on tokens have no usual number of them."""

_PLACE = (1 << 32) - 1


class PricesInside:
    """Of the tokens of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._spelling = vocabulary.spelling

    def listed(self, ends: Ends, closed: NDArray[np.int64], prices_of: PlacePrices) -> NDArray[np.int32]:
        """What is listed of an effect, of tokens that end in some places; ``closed`` as of `layout.Automaton`."""
        places, numbers = distinct_places(ends.places)
        prices = prices_of(places)[numbers]
        # A token that ends inside a character, all of which lead back to a place, is said to end in that place.
        is_before = (places <= _PLACE) & (closed[places & _PLACE] & TEXT != 0)
        return _by_price(ends.kept, prices + np.where(is_before[numbers], self._begun[ends.kept], 0))

    @cached_property
    def _begun(self) -> NDArray[np.uint8]:
        """By token how many bytes its last character still lacks (RFC 3629)."""
        data, stops = self._spelling.data, self._spelling.offsets[1:]
        sizes = np.diff(self._spelling.offsets)
        lacks = np.zeros(sizes.size, np.uint8)
        for back in range(1, 4):
            tokens = np.flatnonzero(sizes >= back)
            leads = data[stops[tokens] - back]
            length = np.where(leads >= 0xF0, 4, np.where(leads >= 0xE0, 3, np.where(leads >= 0xC0, 2, 0)))
            is_begun = length > back
            lacks[tokens[is_begun]] = length[is_begun] - back
        return lacks


def _by_price(tokens: NDArray[np.int32], prices: NDArray[np.int64]) -> NDArray[np.int32]:
    """What `guided.kernels.masking.masks._apply_near` reads, from tokens and their prices."""
    few = np.minimum(prices, _MANY)
    counted = np.bincount(few) if prices.size else np.ones(1, np.int64)
    usual = int(np.argmax(counted[:_MANY])) if counted[:_MANY].any() else FAR
    others = np.flatnonzero(prices != usual)
    # By radix, where they fit in two bytes.
    ordered = others[
        np.argsort(few[others].astype(np.uint16) if counted.size <= _MANY else prices[others], kind="stable")
    ]
    tokens, prices = tokens[ordered], prices[ordered]
    firsts = np.flatnonzero(np.diff(prices, prepend=-1))
    parts = [
        np.concatenate(([~prices[first]], part))
        for first, part in zip(firsts.tolist(), np.split(tokens, firsts[1:]), strict=False)
    ]
    cheaper = [part for part in parts if ~part[0] < usual]
    costlier = parts[len(cheaper) :][::-1]
    about = [usual, sum(part.size for part in costlier)]
    return np.concatenate((about, *costlier, *cheaper)).astype(np.int32)
