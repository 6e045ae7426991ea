"""Lexer states whose edges come from other states or from plain text, without any expression between.

Declared names, constants and undeclared names make up most states that a JSON Schema constraint visits.  Deriving them
byte by byte costs some 50 us and twenty objects each; here a text is laid down as rows of the state table, its escapes
as one small tuple per character that is looked at only when a backslash is typed, and "any name but these" is a pair
of states.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from guided.grammar.regular.characters import SHORT_ESCAPES, JsonString
from guided.grammar.regular.derivative import edges as expr_edges
from guided.grammar.regular.expr import EPSILON, Expr

if TYPE_CHECKING:
    from guided.automata.states import StateTable

Row: TypeAlias = "list[tuple[int, int, int]]"
"""Sorted, disjoint ``(low, high, target state)``."""

BACKSLASH = 0x5C


class Both:
    """Two obligations at once: a match of either is a match."""

    __slots__ = ("first", "second")
    loops = False

    def __init__(self, first: int, second: int) -> None:
        self.first, self.second = first, second

    def tag(self, table: StateTable) -> int:
        """Non-negative when either obligation is violated."""
        return max(int(table.arrays.tag[self.first]), int(table.arrays.tag[self.second]))

    def edges(self, table: StateTable) -> Row:
        """The bytes on which either goes on."""
        return _product(table, self.first, self.second, table.joined)


class Less:
    """What an unbounded run reads, less what finitely many words read; never empty, since the run is infinite."""

    __slots__ = ("base", "words")
    loops = True

    def __init__(self, base: int, words: int) -> None:
        self.base, self.words = base, words

    def tag(self, table: StateTable) -> int:
        """A match ends where the run's does and no word does."""
        return -1 if table.arrays.tag[self.words] >= 0 else int(table.arrays.tag[self.base])

    def edges(self, table: StateTable) -> Row:
        """The run's edges; where a word goes on too, to a pair again, unless only the word remains."""
        words = table.row(self.words)
        row: Row = []
        j = 0
        for low, high, target in table.row(self.base):
            while j < len(words) and words[j][1] < low:
                j += 1
            at = low
            while j < len(words) and words[j][0] <= high:
                first, last = max(words[j][0], at), min(words[j][1], high)
                if at < first:
                    row.append((at, first - 1, target))
                pair = table.less(target, words[j][2])
                if pair:
                    row.append((first, last, pair))
                at = last + 1
                if words[j][1] > high:
                    break
                j += 1
            if at <= high:
                row.append((at, high, target))
        return row


class Spelling:
    """Sorted texts ``texts[low:high]`` that agree up to ``depth``; then ``close`` (a byte, -1 for none) to ``last``."""

    __slots__ = ("close", "depth", "encoding", "high", "last", "low", "texts")
    loops = False

    def __init__(
        self, encoding: JsonString, texts: Sequence[str], low: int, high: int, depth: int, close: int, last: int
    ) -> None:
        self.encoding, self.texts, self.low, self.high, self.depth = encoding, texts, low, high, depth
        self.close, self.last = close, last

    def tag(self, table: StateTable) -> int:
        """A match may end here when a text does and nothing closes it."""
        return 0 if self.close < 0 and len(self.texts[self.low]) == self.depth else -1

    def edges(self, table: StateTable) -> Row:
        """One branch per next character, raw and escaped."""
        low = self.low
        row: Row = []
        if len(self.texts[low]) == self.depth:
            low += 1
            if self.close >= 0:
                row.append((self.close, self.close, self.last))
        if self.high - low == 1 and not row and self.tag(table) < 0:
            return _text_row(table, self.encoding, self.texts[low][self.depth :], self._end(table))
        branches: list[tuple[str, int]] = []
        while low < self.high:
            letter = self.texts[low][self.depth]
            stop = low + 1
            while stop < self.high and self.texts[stop][self.depth] == letter:
                stop += 1
            branches.append((letter, self._child(table, low, stop)))
            low = stop
        raw = [(data, state) for letter, state in branches if (data := self.encoding.raw(letter))]
        row += _raw_row(table, raw)
        if branches:
            row.append((BACKSLASH, BACKSLASH, table.new(Escapes(tuple(branches)))))
        row.sort()
        return row

    def _child(self, table: StateTable, low: int, high: int) -> int:
        """The state after the next character; a single text is laid down at once, as a walk will ask for it."""
        rest = self.texts[low][self.depth + 1 :]
        if high - low > 1:
            return table.new(Spelling(self.encoding, self.texts, low, high, self.depth + 1, self.close, self.last))
        return table.new_row(_text_row(table, self.encoding, rest, self._end(table))) if rest else self._end(table)

    def _end(self, table: StateTable) -> int:
        if self.close < 0:
            return self.last
        return table.new_row([(self.close, self.close, self.last)])


class Escapes:
    """After a backslash: the rest of an escape of one of some characters, each with the state after it."""

    __slots__ = ("branches",)
    loops = False

    def __init__(self, branches: tuple[tuple[str, int], ...]) -> None:
        self.branches = branches

    def tag(self, table: StateTable) -> int:
        """No match ends inside an escape."""
        return -1

    def edges(self, table: StateTable) -> Row:
        """The first byte of every escape."""
        encoding = JsonString()
        return Then([(encoding.escaped(letter), state) for letter, state in self.branches]).edges(table)


class Then:
    """Any of some languages, each followed by its own state; no text is a prefix of another's."""

    __slots__ = ("pairs",)
    loops = False

    def __init__(self, pairs: Sequence[tuple[Expr, int]]) -> None:
        self.pairs = pairs

    def tag(self, table: StateTable) -> int:
        """No match ends before the state that follows."""
        return -1

    def edges(self, table: StateTable) -> Row:
        """Edges of all the languages; where one is complete, its following state."""
        after: dict[int, list[tuple[Expr, int]]] = {}
        for expr, state in self.pairs:
            for low, high, target in expr_edges(expr):
                for byte in range(low, high + 1):
                    after.setdefault(byte, []).append((target, state))
        row: Row = []
        made: dict[tuple[tuple[Expr, int], ...], int] = {}
        for byte in sorted(after):
            pairs = tuple(after[byte])
            if pairs not in made:
                made[pairs] = pairs[0][1] if pairs[0][0] is EPSILON else table.new(Then(pairs))
            row.append((byte, byte, made[pairs]))
        return row


def escape_row(table: StateTable, letter: str, last: int) -> Row:
    """All escapes of one character, laid down at once: a walk over tokens goes right through them."""
    code = ord(letter)
    if code > 0xFFFF:
        return Escapes(((letter, last),)).edges(table)
    after = last
    for digit in reversed(f"{code:04x}"):
        cases = sorted({ord(digit), ord(digit.upper())})
        after = table.new_row([(case, case, after) for case in cases])
    row = [(ord("u"), ord("u"), after)]
    short = SHORT_ESCAPES.get(code)
    if short is not None:
        row.append((short[0], short[0], last))
    return sorted(row)


def _text_row(table: StateTable, encoding: JsonString, text: str, last: int) -> Row:
    """Lay down one text as a chain of states that ends in ``last``; the row of its first state."""
    row: Row = []
    for letter in reversed(text):
        data = encoding.raw(letter)
        # A tuple of plain values: the garbage collector forgets it, which matters when there are a million of them.
        escape = (BACKSLASH, BACKSLASH, table.new((letter, last)))
        if data:
            for byte in reversed(data[1:]):
                last = table.new_row([(byte, byte, last)])
            row = [(data[0], data[0], last), escape]
            if data[0] > BACKSLASH:
                row.reverse()
        else:
            row = [escape]
        last = table.new_row(row)
    return row


def _raw_row(table: StateTable, pairs: list[tuple[bytes, int]]) -> Row:
    """A trie of byte strings, none a prefix of another, each with the state after it; the row of its root."""
    groups: dict[int, list[tuple[bytes, int]]] = {}
    for data, state in pairs:
        groups.setdefault(data[0], []).append((data[1:], state))
    row: Row = []
    for byte in sorted(groups):
        rest = groups[byte]
        target = rest[0][1] if not rest[0][0] else table.new_row(_raw_row(table, rest))
        row.append((byte, byte, target))
    return row


def _product(table: StateTable, one: int, other: int, pair: Callable[[int, int], int]) -> Row:
    """Both rows overlaid: ``pair(target of one, target of other)``, 0 where a row has none."""
    row: Row = []
    for low, high, first, second in _segments(table.row(one), table.row(other)):
        target = pair(first, second)
        if target:
            row.append((low, high, target))
    return row


def overlay(table: StateTable, one: int, other: int) -> Iterator[tuple[int, int]]:
    """The pairs of states that some byte leads to from both."""
    for _, _, first, second in _segments(table.row(one), table.row(other)):
        if first and second:
            yield first, second


def _segments(left: Row, right: Row) -> Iterator[tuple[int, int, int, int]]:
    """``(low, high, target of left, target of right)`` for maximal ranges on which neither changes."""
    cuts = sorted({cut for low, high, _ in (*left, *right) for cut in (low, high + 1)})
    i = j = 0
    for low, stop in itertools.pairwise(cuts):
        while i < len(left) and left[i][1] < low:
            i += 1
        while j < len(right) and right[j][1] < low:
            j += 1
        first = left[i][2] if i < len(left) and left[i][0] <= low else 0
        second = right[j][2] if j < len(right) and right[j][0] <= low else 0
        yield low, stop - 1, first, second
