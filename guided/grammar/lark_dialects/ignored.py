"""Where ignored text may stand in a grammar of llguidance's: behind each lexeme behind which another may come.

Behind the last lexeme of all there is none, nor before a grammar inside that ignores something else.  A rule that ends
the text in one place and not in another is there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from guided.errors import UnsupportedError
from guided.grammar.lark_dialects.positions import Position, Positions
from guided.grammar.pieces import Either, Name, Piece, Repeated, Row

__all__ = ["with_ignored"]


def with_ignored(
    bodies: Mapping[str, Piece],
    start: str,
    copy: Callable[[Piece, bool], Piece],
    skip: Callable[[], Piece],
    apart: Callable[[Piece], bool],
) -> dict[str, Piece]:
    """The rules with ignored text, beginning at ``start``; ``copy`` makes a leaf anew and is told whether
    it ends the text, ``skip`` makes ignored text.

    ``apart`` says of a leaf that it is a grammar with other ignored text, before which none of this one's may stand.
    Every leaf and piece of ignored text in the result is another object.  Raises `UnsupportedError` where such a
    grammar and something else may come next.
    """
    return _Ignoring(Positions(bodies, start), copy, skip, apart).rules(bodies, start)


class _Ignoring:
    def __init__(
        self,
        positions: Positions,
        copy: Callable[[Piece, bool], Piece],
        skip: Callable[[], Piece],
        apart: Callable[[Piece], bool],
    ) -> None:
        self.positions = positions
        self.apart = apart
        self.leaves: dict[int, Position] = {id(leaf.piece): leaf for leaf in positions.leaves}
        self.copy = copy
        self.skip = skip
        self.start = ""
        self.waiting: list[tuple[str, bool]] = []

    def rules(self, bodies: Mapping[str, Piece], start: str) -> dict[str, Piece]:
        self.start = start
        found: dict[str, Piece] = {}
        self.waiting = [(start, True)]
        while self.waiting:
            name, final = self.waiting.pop()
            shown = self.name(name, final)
            if shown not in found:
                found[shown] = self.body(bodies[name], final)
        return found

    def body(self, piece: Piece, final: bool, used_up: frozenset[int] = frozenset()) -> Piece:
        """The piece with ignored text; ``used_up`` are repetitions around it of which this is the last copy."""
        match piece:
            case Row(parts):
                return Row(tuple(self.body(part, final, used_up) for part in parts))
            case Either(options):
                return Either(tuple(self.body(option, final, used_up) for option in options))
            case Repeated(body, low, high) if final and high is not None and high > 1:
                last = self.body(body, True, used_up | {id(piece)})
                fewer = Repeated(self.body(body, True, used_up), min(low, high - 1), high - 1)
                full = Row((Repeated(self.body(body, True, used_up), high - 1, high - 1), last))
                return full if low == high else Either((fewer, full))
            case Repeated(body, low, high):
                return Repeated(self.body(body, final, used_up), low, high)
            case _:
                return self.leaf(piece, final, used_up)

    def leaf(self, piece: Piece, final: bool, used_up: frozenset[int]) -> Piece:
        leaf = self.leaves[id(piece)]
        ends = final and leaf.is_last and all(reasons <= used_up for reasons in leaf.follow.values())
        if isinstance(piece, Name):
            self.waiting.append((piece.name, ends))
            return Name(self.name(piece.name, ends), piece.offset)
        if ends or self.before_others(leaf):
            return self.copy(piece, ends)
        return Row((self.copy(piece, False), self.skip()))

    def before_others(self, leaf: Position) -> bool:
        """Do only grammars with other ignored text come next?"""
        others = [self.apart(position.piece) for position in self.positions.after(leaf)]
        if any(others) and not all(others):
            raise UnsupportedError(
                "%json, %lark or @grammar may come where a lexeme may too, and ignored text before it",
                remedy="Put a lexeme of its own before the inner grammar, or give it the same %ignore.",
            )
        return any(others)

    def name(self, rule: str, final: bool) -> str:
        if rule == self.start:
            return rule if final else f"{rule}, followed"
        return f"{rule} at the end" if final else rule
