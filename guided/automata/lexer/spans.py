"""How many characters the texts of a part have, and patterns within the bounds of a run of any characters.

A derivative of a pattern together with a greatest length takes some 150 microseconds, for each character of a text
anew.  The pattern alone has few parts, and the run's parts follow from their numbers, so a pair of both takes a few.
Whether a pair accepts any text is mostly decided by the lengths of both.

Without it masks of a pattern beside a greatest length take three to four times as long, those of other schemas no
longer (measured 2026-11).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple, cast

from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.expr import Expr, Kind, intersection
from guided.grammar.regular.lengths import character_counts, farthest_end
from guided.kernels.lexing.part_pairs import MOST_CHARACTERS


class Span(NamedTuple):
    """Characters of the texts of a part: none has fewer than ``least``, nor more than ``most``.

    Some text has ``soon`` at most, and from wherever the part leads to one has ``ever``; None where that is not known.
    """

    least: int
    most: int | None
    soon: int | None
    ever: int | None

    def behind(self, begun: Span) -> Span:
        """The span of the rest of a character or word, and then these texts."""
        most = None if begun.most is None or self.most is None else begun.most + self.most
        if begun.soon is None or begun.ever is None or self.soon is None or self.ever is None:
            return Span(begun.least + self.least, most, None, None)
        return Span(begun.least + self.least, most, begun.soon + self.soon, max(begun.ever + self.soon, self.ever))

    def times(self, fewest: int, most: int | None) -> Span:
        """The span of so many times these texts."""
        greatest = None if most is None or self.most is None else most * self.most
        if self.soon is None or self.ever is None:
            return Span(fewest * self.least, greatest, None, None)
        return Span(fewest * self.least, greatest, fewest * self.soon, self.ever + max(fewest - 1, 0) * self.soon)

    def packed(self) -> array[int]:
        """As `guided.kernels.lexing.part_pairs` has it: each number and 1, 0 for none."""
        known = (self.most, self.soon, self.ever)
        return array(
            "i",
            (
                min(self.least, MOST_CHARACTERS - 1) + 1,
                *(0 if number is None or number >= MOST_CHARACTERS else number + 1 for number in known),
            ),
        )

    @classmethod
    def unpacked(cls, numbers: Sequence[int]) -> Span:
        """The span that some numbers say, as `packed` gives them."""
        least, most, soon, ever = numbers
        return cls(least - 1, most - 1 if most else None, soon - 1 if soon else None, ever - 1 if ever else None)

    def keeps(self, bounds: Span) -> bool:
        """Are all texts within the bounds of a run?"""
        high = bounds.most
        return bounds.least <= self.least and (high is None or (self.most is not None and self.most <= high))


def span_of(content: Expr) -> Span:
    """The span of a language of texts, as far as its structure shows."""
    ends = farthest_end(content)
    return Span(*character_counts(content), *((None, None) if ends is None else ends))


def bounded_pattern(content: Expr) -> tuple[Expr, Expr] | None:
    """Recognise a pattern together with a run of any characters up to a greatest length: both."""
    if content.kind is not Kind.INTERSECTION:
        return None
    parts = cast("tuple[Expr, ...]", content.parts)
    if any(part.kind is Kind.COMPLEMENT for part in parts):
        # What is left out is owed where the run has no bound.
        return None
    run = next((part for part in parts if _is_bounded_run(part)), None)
    return None if run is None else (intersection([part for part in parts if part is not run]), run)


def _is_bounded_run(part: Expr) -> bool:
    return part.kind is Kind.REPEAT and part.parts[0] is any_text()[0] and part.parts[1:] != (0, None)
