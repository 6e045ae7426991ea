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
"""Bytes to the end of a terminal from which on they take more than two bytes to count."""

_PLACE = (1 << 32) - 1


class PricesInside:
    """Of the tokens of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._spelling = vocabulary.spelling

    def listed(self, ends: Ends, closed: NDArray[np.int64], prices_of: PlacePrices) -> NDArray[np.int32]:
        """What is listed of an effect, of tokens that end in some places; ``closed`` as of `layout.Automaton`."""
        places, numbers = distinct_places(ends.places)
        prices = prices_of(places)
        usual = _usual(prices, np.bincount(numbers, minlength=places.size))
        # A token that ends inside a character, all of which lead back to a place, is said to end in that place.
        is_before = (places <= _PLACE) & (closed[places & _PLACE] & TEXT != 0)
        lacks = self._lacks[ends.kept]
        # Of all tokens no more is asked than this, since mostly few are left.
        at = np.flatnonzero((prices != usual)[numbers] | (lacks > 0))
        numbers = numbers[at]
        found = prices[numbers] + np.where(is_before[numbers], lacks[at], 0)
        others = np.flatnonzero(found != usual)
        return _by_price(usual, ends.kept[at[others]], found[others])

    @cached_property
    def _lacks(self) -> NDArray[np.uint8]:
        """By token how many bytes its last character still lacks (RFC 3629)."""
        data, stops = self._spelling.data, self._spelling.offsets[1:]
        sizes = np.diff(self._spelling.offsets)
        lacks = np.zeros(sizes.size, np.uint8)
        tokens = np.flatnonzero(sizes)
        tokens = tokens[data[stops[tokens] - 1] >= 0x80]
        for back in range(1, 4):
            tokens = tokens[sizes[tokens] >= back]
            leads = data[stops[tokens] - back]
            length = np.where(leads >= 0xF0, 4, np.where(leads >= 0xE0, 3, np.where(leads >= 0xC0, 2, 0)))
            is_begun = length > back
            lacks[tokens[is_begun]] = length[is_begun] - back
        return lacks


def _usual(prices: NDArray[np.int64], n_tokens: NDArray[np.int64]) -> int:
    """What most tokens take, of the prices of places and how many tokens end in each; `FAR` where all are dear."""
    each, numbers = np.unique(prices, return_inverse=True)
    counted = np.bincount(numbers, n_tokens, each.size)
    return int(each[np.argmax(counted)]) if counted.size and counted.max() and each[0] < _MANY else FAR


def _by_price(usual: int, tokens: NDArray[np.int32], prices: NDArray[np.int64]) -> NDArray[np.int32]:
    """What `guided.kernels.masking.masks._apply_near` reads, from tokens that take other than usual."""
    # By radix, where they fit in two bytes.
    keys = prices.astype(np.uint16) if prices.max(initial=0) < _MANY else prices
    order = np.argsort(keys, kind="stable")
    tokens, prices = tokens[order], prices[order]
    firsts = np.flatnonzero(np.diff(prices, prepend=-1))
    parts = [
        np.concatenate(([~prices[first]], part))
        for first, part in zip(firsts.tolist(), np.split(tokens, firsts[1:]), strict=False)
    ]
    cheaper = [part for part in parts if ~part[0] < usual]
    costlier = parts[len(cheaper) :][::-1]
    about = [usual, sum(part.size for part in costlier)]
    return np.concatenate((about, *costlier, *cheaper)).astype(np.int32)
