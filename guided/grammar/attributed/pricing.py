"""What is enough to end a text, by a measure: upper bounds that are found without a search for an end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from guided.grammar.attributed.kept import Kept
from guided.grammar.attributed.threads import Place

__all__ = ["Demands", "Pricing", "Rise"]

_OWED = 1 << 14
"""Attributes whose demands are remembered."""


class Rise(NamedTuple):
    """What attributes may demand besides while more lexemes are read, but for three times each name itself."""

    sign: int
    """For each that is a sign."""
    other: int
    """For each of the others."""
    once: int
    """For all of them together."""
    late: int
    """The same, once ``late_from`` lexemes of a token are over that are no signs: the columns of a source, say."""
    late_from: int = 2


class _Owing(Protocol):
    def owed(self, attribute: Any, /) -> int: ...
    def rises(self, attribute: Any, /) -> Rise: ...


class Demands(NamedTuple):
    """What attributes demand of an end."""

    owed: Callable[[Any], int] = lambda _: 0
    """A bound for it, beside the prices of the nodes still to be read."""
    rises: Callable[[Any], Rise] | None = None
    """What it may be besides whatever is read; None where that is not known."""

    @classmethod
    def of(cls, owing: _Owing) -> Demands:
        """Those that an object tells."""
        return cls(owing.owed, owing.rises)


class Pricing:
    """Prices of places."""

    def __init__(self, demands: Demands) -> None:
        self._owed, self._rises = demands
        # By address, with the attribute itself, so that no other comes to have it meanwhile.
        self._owes: Kept[int, tuple[Any, int]] = Kept(_OWED)

    @property
    def tells_beyond(self) -> bool:
        """Is `beyond` known?"""
        return self._rises is not None

    def least(self, place: Place) -> int:
        """What is enough from a place on."""
        found = place.least
        if found is None:
            found = place.least = 0 if place.may_end else min(self._behind(place, place.plan.cheapest))
        return found

    def fits(self, place: Place, limit: int) -> bool:
        """Is `least` no more than a limit?  Of hundreds of attributes mostly the first tells that it is."""
        if place.least is None and any(price <= limit for price in self._behind(place, place.plan.cheapest)):
            return True
        return self.least(place) <= limit

    def _behind(self, place: Place, prices: tuple[int, ...]) -> Iterable[int]:
        """What is enough from the terminals that may come, for each of the attributes."""
        for (_, attribute), price in zip(place.ways, prices, strict=True):
            yield price + self._demanded(attribute)

    def _demanded(self, attribute: Any) -> int:
        known = self._owes.get(id(attribute))
        if known is None:
            known = self._owes[id(attribute)] = (attribute, self._owed(attribute))
        return known[1]

    def beyond(self, attributes: Iterable[Any], reached: Iterable[tuple[int, int, int]]) -> dict[tuple[int, int], int]:
        """What is enough behind lexemes, from the first on that is read with some attributes.

        Of each of ``reached`` so many signs and other lexemes are over before it, and the nodes behind it take so much
        at most; by the number of both.  Only where it `tells_beyond`.
        """
        assert self._rises is not None
        found: dict[tuple[int, int], int] = {}
        each_of = list(reached)
        for attribute in attributes:
            sign, other, once, late, late_from = self._rises(attribute)
            owed = self._demanded(attribute) + once + max(sign, other)
            for signs, others, nodes in each_of:
                most = owed + nodes + signs * sign + others * other + (late if others >= late_from else 0)
                found[signs, others] = max(found.get((signs, others), 0), most)
        return found
