"""Does it matter how llguidance cuts a text into lexemes?  Where it does not, every split of the text counts.

llguidance looks for all lexemes that may come next at once.  It cuts where none of them goes on, at the longest match;
a lazy lexeme cuts at once, and all others are then given up.  So the language is that of the rules over bytes, every
split counting, if

* no lexeme goes on where another that is looked for with it has ended and its follower begins, and
* no lexeme goes on where a lazy one looked for with it has ended.

The first is checked, and refused with both lexemes.  The second is made so where the lazy lexeme is there whenever the
other is: the other's texts that go on are taken out of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from guided.errors import LimitError, UnsupportedError
from guided.grammar.lark_dialects.positions import Position, Positions
from guided.grammar.pieces import Either, Piece, Regular, Repeated, Row, Special, Whole
from guided.grammar.regular.decide import are_disjoint
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Edge, Expr, byte_range, concat, difference, repeat

__all__ = ["UNKNOWN", "Ends", "Lexeme", "settled"]

MAX_STEPS = 500_000
"""Pairs of states that all questions about two lexemes look at, some seconds; of 100 keywords they are 30,000."""
MAX_STATES = 20_000
"""States of one lexeme that are looked at for what it might go on with; where there are more, that is anything."""
_ALL_BYTES = (1 << 256) - 1
_SENTINEL = 1 << 0xFF


@dataclass(frozen=True, slots=True)
class Ends:
    """With which bytes a grammar inside another may begin, and with which its last lexeme might go on, as bit sets."""

    first: int = _ALL_BYTES
    more: int = _ALL_BYTES
    joins: bool = False
    """Is it one of those that llguidance reads together where several may come?"""


UNKNOWN = Ends()


@dataclass(frozen=True, slots=True)
class Lexeme:
    """What is known of a leaf: is it lazy, and where does it stand."""

    where: str
    lazy: bool = False
    at_end: bool = False
    """May nothing come behind it, since only the end of the text stops it?"""
    ends: Ends = UNKNOWN
    ends_text: bool = False
    """Does no ignored text stand behind it, in a grammar that has some elsewhere?"""


def settled(bodies: Mapping[str, Piece], start: str, lexemes: Mapping[int, Lexeme]) -> tuple[dict[str, Piece], Ends]:
    """The rules such that every split of a text is llguidance's, and with what their texts begin and might go on.

    ``lexemes`` says of each leaf by its ``id`` what it is.  Raises `UnsupportedError` where lexemes meet so that it
    matters how the text is cut, `LimitError` where that takes too long to find out.
    """
    return _Settling(bodies, start, lexemes).settled()


class _Settling:
    def __init__(self, bodies: Mapping[str, Piece], start: str, lexemes: Mapping[int, Lexeme]) -> None:
        self.bodies = bodies
        self.lexemes = lexemes
        self.positions = Positions(bodies, start)
        self.languages: dict[Position, Expr] = {
            leaf: leaf.piece.language for leaf in self.positions.leaves if isinstance(leaf.piece, Regular)
        }
        self._disjoint: dict[tuple[Expr, Expr], bool] = {}
        self._first: dict[Expr, int] = {}
        self._behind: dict[Position, int] = {}
        self._ways: dict[Expr, tuple[Edge, ...]] = {}
        self._steps = 0

    def settled(self) -> tuple[dict[str, Piece], Ends]:
        pairs = self.pairs()
        self.give_way_to_lazy(pairs)
        for one, other in pairs:
            self.check(one, other)
        new = {
            id(leaf.piece): replace(leaf.piece, language=self.languages[leaf])
            for leaf in self.positions.leaves
            if isinstance(leaf.piece, Regular)
        }
        first = more = 0
        for position in self.positions.initial(self.positions.start):
            first |= self.first_bytes(position)
        for leaf in self.positions.leaves:
            more |= self.bytes_behind(leaf)
        return {name: _replaced(body, new) for name, body in self.bodies.items()}, Ends(first, more)

    # Which lexemes are looked for together

    def pairs(self) -> list[tuple[Position, Position]]:
        """Pairs of lexemes that may be looked for at once, each both ways, and each lexeme with itself."""
        initial = self.positions.initial(self.positions.start)
        found = {(one, other) for one in initial for other in initial}
        waiting = list(found)
        while waiting:
            one, other = waiting.pop()
            if one is not other and self.never_the_same_text(one, other):
                continue
            for pair in [(a, b) for a in self.positions.after(one) for b in self.positions.after(other)]:
                for added in (pair, pair[::-1]):
                    if added not in found:
                        found.add(added)
                        waiting.append(added)
        order = {leaf: number for number, leaf in enumerate(self.positions.leaves)}
        return sorted(found, key=lambda pair: (order[pair[0]], order[pair[1]]))

    def never_the_same_text(self, one: Position, other: Position) -> bool:
        left, right = self.languages.get(one), self.languages.get(other)
        if left is None or right is None:
            if isinstance(one.piece, Special) and isinstance(other.piece, Special):
                return not set(one.piece.names) & set(other.piece.names)
            return not self.first_bytes(one) & self.first_bytes(other)
        key = (left, right) if left.serial < right.serial else (right, left)
        if key not in self._disjoint:
            self.count(1)
            self._disjoint[key] = are_disjoint(left, right)
        return self._disjoint[key]

    # Lazy lexemes

    def give_way_to_lazy(self, pairs: Collection[tuple[Position, Position]]) -> None:
        """Take out of lexemes what goes on behind a lazy one that is looked for with them."""
        together = None
        before = dict(self.languages)
        for lazy, other in pairs:
            if lazy is other or not self.lexemes[id(lazy.piece)].lazy or other not in self.languages:
                continue
            both_lazy = self.lexemes[id(other.piece)].lazy
            any_bytes = repeat(byte_range(0, 255), 1 if both_lazy else 0)
            cut = concat(before[lazy], any_bytes)
            if are_disjoint(before[other], cut):
                continue
            together = together or self.positions.together()
            if lazy not in together[other]:
                raise self.refusal(other, lazy, "is given up where it ends in some places, and in others not")
            self.languages[other] = difference(self.languages[other], cut)

    # Greedy lexemes

    def check(self, one: Position, other: Position) -> None:
        """Raise where ``other`` may go on with the first byte behind ``one``."""
        both_join = self.joins(one) and self.joins(other)
        one_is_whole = isinstance(one.piece, Whole) or isinstance(other.piece, Whole)
        if one is not other and one_is_whole and not both_join and self.first_bytes(one) & self.first_bytes(other):
            raise self.refusal(one, other, "may begin with the same byte")
        behind = self.behind(one)
        ended = self.lexemes[id(other.piece)].ends_text and not self.lexemes[id(one.piece)].ends_text
        if ended and one is not other and behind and not self.never_the_same_text(one, other):
            raise self.refusal(other, one, "may end the text where another goes on, with ignored text behind both")
        if not behind:
            return
        if self.lexemes[id(one.piece)].at_end:
            raise self.refusal(one, one, 'has stop="" and something comes behind it')
        left, right = self.languages.get(one), self.languages.get(other)
        if isinstance(one.piece, Whole):
            ends = self.lexemes[id(one.piece)].ends
            if one is other and ends.more & behind:
                raise self.refusal(one, one, "may go on with what comes behind it")
        if left is None or right is None or not self.first_bytes(one) & self.first_bytes(other):
            return
        if self.goes_on(left, right, behind):
            what = "may go on with what comes behind it" if one is other else "may go on where it ends"
            raise self.refusal(other, one, what)

    def behind(self, position: Position) -> int:
        """With what the lexemes behind it may begin."""
        if position not in self._behind:
            found = 0
            for after in self.positions.after(position):
                found |= self.first_bytes(after)
            self._behind[position] = found
        return self._behind[position]

    def joins(self, position: Position) -> bool:
        return isinstance(position.piece, Whole) and self.lexemes[id(position.piece)].ends.joins

    def goes_on(self, left: Expr, right: Expr, behind: int) -> bool:
        """Is there a text of ``left`` that begins one of ``right`` which goes on with one of the bytes?"""
        seen = {(left, right)}
        waiting = [(left, right)]
        begun = False
        while waiting:
            one, other = waiting.pop()
            ways = self.ways(other)
            if begun and one.nullable and any(_mask(low, high) & behind for low, high, _ in ways):
                return True
            begun = True
            for low, high, target in self.ways(one):
                for other_low, other_high, other_target in ways:
                    pair = (target, other_target)
                    if low <= other_high and other_low <= high and pair not in seen:
                        seen.add(pair)
                        waiting.append(pair)
            self.count(1)
        return False

    def ways(self, language: Expr) -> tuple[Edge, ...]:
        """Its edges, which many pairs ask for."""
        found = self._ways.get(language)
        if found is None:
            found = self._ways[language] = edges(language)
        return found

    def count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise LimitError(
                "it takes too long to find out whether one lexeme goes on where another ends",
                remedy="Make counts smaller, or put delimiters between lexemes, so that fewer may come at one place.",
            )

    def first_bytes(self, position: Position) -> int:
        piece = position.piece
        if isinstance(piece, Special):
            return _SENTINEL
        if isinstance(piece, Whole):
            return self.lexemes[id(piece)].ends.first
        language = self.languages[position]
        if language not in self._first:
            self._first[language] = _bytes_of(language)
        return self._first[language]

    def bytes_behind(self, leaf: Position) -> int:
        """With what a text that ends with this lexeme might go on."""
        if isinstance(leaf.piece, Whole):
            return self.lexemes[id(leaf.piece)].ends.more
        if leaf not in self.languages or self.lexemes[id(leaf.piece)].lazy:
            return 0
        found = 0
        seen = {self.languages[leaf]}
        waiting = list(seen)
        while waiting and len(seen) < MAX_STATES:
            language = waiting.pop()
            if language.nullable:
                found |= _bytes_of(language)
            for _, _, target in edges(language):
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return found if len(seen) < MAX_STATES else _ALL_BYTES

    def refusal(self, one: Position, other: Position, what: str) -> UnsupportedError:
        where = self.lexemes[id(one.piece)].where
        if one is other:
            said = f"the lexeme {_shown(one)} {what}: llguidance cuts the text at its longest match"
        else:
            said = f"the lexeme {_shown(one)} {what}: {_shown(other)} at {self.lexemes[id(other.piece)].where}"
        return UnsupportedError(
            said,
            where=where,
            remedy="Write both as one terminal, take the overlap out of one of them, or put a delimiter between.",
        )


def _shown(position: Position) -> str:
    piece = position.piece
    if isinstance(piece, Special):
        return " or ".join(piece.names)
    return piece.label if isinstance(piece, Regular) else "of a grammar inside"


def _mask(low: int, high: int) -> int:
    return ((1 << (high - low + 1)) - 1) << low


def _bytes_of(language: Expr) -> int:
    found = 0
    for low, high, _ in edges(language):
        found |= _mask(low, high)
    return found


def _replaced(piece: Piece, new: Mapping[int, Piece]) -> Piece:
    match piece:
        case Row(parts):
            return Row(tuple(_replaced(part, new) for part in parts))
        case Either(options):
            return Either(tuple(_replaced(option, new) for option in options))
        case Repeated(body, low, high):
            return Repeated(_replaced(body, new), low, high)
        case _:
            return new.get(id(piece), piece)
