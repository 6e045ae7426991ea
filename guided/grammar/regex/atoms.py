"""The characters of one pattern, reduced to as few classes as it can tell apart.

`guided.grammar.regex.assertions` builds its automata over these classes; nothing here knows automata.
"""

from __future__ import annotations

from collections.abc import Iterable

from guided.errors import LimitError
from guided.grammar.regex.syntax import (
    Alternatives,
    At,
    Characters,
    Concatenation,
    Look,
    Node,
    Quantified,
    WordBoundary,
)
from guided.grammar.regex.unicode_sets import LINE_FEED
from guided.grammar.regular.characters import ANY_CHARACTER, CharacterSet, normalise
from guided.grammar.regular.expr import Expr, byte_set, concat, repeat


class Atoms:
    """The coarsest partition of all characters that respects a pattern's sets; as an `Encoding`, one byte each.

    Raises `LimitError` for more than 256 classes.
    """

    def __init__(self, node: Node) -> None:
        sets = list(dict.fromkeys(_character_sets(node)))
        changes: dict[int, int] = {}
        for index, ranges in enumerate(sets):
            for low, high in ranges:
                changes[low] = changes.get(low, 0) ^ 1 << index
                changes[high + 1] = changes.get(high + 1, 0) ^ 1 << index
        members: dict[int, list[tuple[int, int]]] = {}
        signature, at = 0, 0
        for cut in sorted({*changes, 0x110000}):
            if cut > at and (pieces := normalise([(at, cut - 1)])):
                members.setdefault(signature, []).extend(pieces)
            signature ^= changes.get(cut, 0)
            at = cut
        if len(members) > 256:
            raise LimitError(
                f"a pattern with assertions tells {len(members)} classes of characters apart, more than 256",
                remedy="Use fewer distinct characters next to look-arounds, or write the rule as a grammar.",
            )
        self.count = len(members)
        self._pieces = [normalise(pieces) for pieces in members.values()]
        self._masks = {
            ranges: sum(1 << atom for atom, signature in enumerate(members) if signature >> index & 1)
            for index, ranges in enumerate(sets)
        }
        self._masks[ANY_CHARACTER] = (1 << self.count) - 1
        self._ranges: dict[int, CharacterSet] = {}

    def mask(self, ranges: CharacterSet) -> int:
        """The atoms of one of the pattern's sets, as bits."""
        return self._masks[ranges]

    def ranges(self, mask: int) -> CharacterSet:
        """The characters of the atoms in ``mask``."""
        found = self._ranges.get(mask)
        if found is None:
            chosen = [pair for atom, pieces in enumerate(self._pieces) if mask >> atom & 1 for pair in pieces]
            found = self._ranges[mask] = normalise(chosen)
        return found

    def characters(self, ranges: CharacterSet) -> Expr:
        """One character of the set."""
        return byte_set(self.mask(ranges))

    def string(self, text: str) -> Expr:
        """Exactly this text."""
        return concat(*(self.characters(((ord(c), ord(c)),)) for c in text))

    @property
    def text(self) -> Expr:
        """Any sequence of characters."""
        return repeat(self.characters(ANY_CHARACTER))


def _character_sets(node: Node) -> Iterable[CharacterSet]:
    stack = [node]
    while stack:
        item = stack.pop()
        match item:
            case Characters(ranges):
                yield ranges
            case Concatenation(parts) | Alternatives(parts):
                stack.extend(parts)
            case Quantified(body=body) | Look(body=body):
                stack.append(body)
            case WordBoundary(word=word):
                yield word
            case At():
                yield LINE_FEED
