r"""The format ``regex``: the patterns of ECMA-262 in Unicode mode, as automata that are made where they are looked at.

This is the grammar ``Pattern[+UnicodeMode, +NamedCaptureGroups]`` with its early errors, of the edition that JSON
Schema refers to; so there are no modifiers ``(?i:a)`` and no second group of the same name.  A state holds what the
rest of a pattern depends on: the groups that are open (they nest to any depth, so there are infinitely many states),
the first end of a class range, the first number of ``{m,n}``.  Every state goes on to the end of some pattern.  There
are three:

* `SKELETONS` looks at no values at all, so ``[z-a]``, ``{3,2}`` and references to groups that there are not are in.
  Its states are few, which token masks want; the checker of `guided.constraint.formats.patterns` stands beside it.
* `EXACT` knows the order of class ranges and of quantifiers, and nothing of what references refer to.
* `PLAIN` holds nothing that is no pattern and can stand alone.  It leaves out what refers to groups (``\1``,
  ``(?<name>a)``, ``\k<name>``: no automaton remembers names), and class ranges but between two ASCII characters that
  are written as themselves, the first of them a letter, a digit, a space or one of ``!#$%&*+./:<=@[{``.

In all of them names of groups are written without escapes; in `SKELETONS` and `PLAIN` groups nest `DEPTH` deep at most.

Sources: ECMA-262, 11th edition, sections 21.2.1 (grammar) and 21.2.1.1 (early errors).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias, cast

from guided.grammar.formats.patterns import pattern_language
from guided.grammar.formats.unicode_names import name_parts, name_starts, property_expressions
from guided.grammar.regular.characters import normalise, utf8
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import EPSILON, Expr, concat, literal, words
from guided.grammar.regular.stepwise import Step

State: TypeAlias = "tuple[Any, ...]"
"""The name of a kind of place, the open groups, and what else matters there.

Open groups are a text with a letter for each, outermost first: ``q`` when a quantifier may follow its end, ``a`` for
assertions; and first of all one ``.``, so that there is always a last letter.
"""

Steps: TypeAlias = "Iterator[tuple[Iterable[Any], State]]"
"""Symbols (a text of ASCII, or bytes) and where each of them leads."""
Half: TypeAlias = "tuple[int, int | None] | None"
"""The first half of a pair of escapes, and the first end of the range whose second end it is."""

DEPTH = 100
"""Groups in groups: each depth has states of its own, and models may write parentheses without end."""
_SYNTAX = "^$\\.*+?()[]{}|"
_DIGITS, _POSITIVE = "0123456789", "123456789"
_HEX = _DIGITS + "abcdefABCDEF"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ASCII = "".join(map(chr, range(0x80)))
_PLAIN = "".join(sorted(set(_ASCII) - set(_SYNTAX)))
_IN_CLASS = "".join(sorted(set(_ASCII) - set("\\]-")))
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "b": 8, "-": 0x2D} | {c: ord(c) for c in _SYNTAX + "/"}
"""Escapes of one letter in a class, and the characters that they stand for."""
_RANGING = frozenset("!#$%&*+./:<=@[{ " + _DIGITS + _LETTERS)
_SET = -1
"""Instead of the first end of a range: a set of characters, which cannot be one."""
_TOP = 0x10FFFF
_LEAD, _TRAIL = range(0xD800, 0xDC00), range(0xDC00, 0xE000)

_CONTINUING = range(0x80, 0xC0)
FIRST_BYTES = {  # of characters above ASCII: the first byte, and the kind of what must follow
    **dict.fromkeys(range(194, 224), "1"),
    **dict.fromkeys(range(225, 240), "2"),
    **dict.fromkeys(range(241, 244), "3"),
    0xE0: "E0",
    0xED: "ED",
    0xF0: "F0",
    0xF4: "F4",
}
_LEADS = tuple(
    [
        (more, tuple([byte for byte, kind in FIRST_BYTES.items() if kind == more]))
        for more in dict.fromkeys(FIRST_BYTES.values())
    ]
)
"""The first bytes of each kind."""
LATER_BYTES = {
    "1": (_CONTINUING, ""),
    "2": (_CONTINUING, "1"),
    "3": (_CONTINUING, "2"),
    "E0": (range(0xA0, 0xC0), "1"),
    "ED": (range(0x80, 0xA0), "1"),
    "F0": (range(0x90, 0xC0), "2"),
    "F4": (range(0x80, 0x90), "2"),
}
"""For each kind: the bytes that may come, and the kind after."""


class Patterns:
    """`EXACT` and `PLAIN`; see `guided.grammar.regular.stepwise.Automaton`."""

    start: State = ("term", ".")

    def __init__(self, *, refers: bool, depth: int | None = None) -> None:
        self._refers = refers
        self._deepest = None if depth is None else depth + 1

    def accepts(self, state: Hashable) -> bool:
        """May the pattern end here?"""
        kind, groups = cast(State, state)[:2]
        return len(groups) == 1 and kind in ("term", "atom", "lazy", "zero", "number")

    def steps(self, state: Hashable) -> list[Step]:
        """The bytes that may come, and where they lead."""
        kind, *rest = cast(State, state)
        ways = list(getattr(self, f"_{kind}")(*rest))
        # Of places that differ in what is open the bytes are the same.
        return [(low, high, ways[way][1]) for low, high, way in _ranges(tuple([symbols for symbols, _ in ways]))]

    # Outside classes.

    def _term(self, groups: str) -> Steps:
        """Where an alternative begins, or behind what no quantifier may follow."""
        atom = ("atom", groups)
        yield _PLAIN, atom
        yield ".", atom
        yield "^$|", ("term", groups)
        if len(groups) != self._deepest:
            yield "(", ("group", groups)
        yield "[", ("class", groups)
        yield "\\", ("escape", groups)
        if len(groups) > 1:
            yield ")", ("atom" if groups[-1] == "q" else "term", groups[:-1])
        for more, leads in _LEADS:
            yield leads, ("above", groups, more, atom)

    def _above(self, groups: str, more: str, after: State) -> Steps:
        """Inside the UTF-8 of a character that does not matter."""
        symbols, rest = LATER_BYTES[more]
        yield symbols, ("above", groups, rest, after) if rest else after

    def _atom(self, groups: str) -> Steps:
        """Behind what may be quantified."""
        yield from self._term(groups)
        yield "*+?", ("lazy", groups)
        yield "{", ("braces", groups)

    def _lazy(self, groups: str) -> Steps:
        """Behind a quantifier."""
        yield from self._term(groups)
        yield "?", ("term", groups)

    def _braces(self, groups: str) -> Steps:
        yield "0", ("least", groups, "")
        for digit in _POSITIVE:
            yield digit, ("least", groups, digit)

    def _least(self, groups: str, least: str) -> Steps:
        """In the first number of a quantifier, which is kept without leading zeros."""
        for digit in _DIGITS:
            yield digit, ("least", groups, (least + digit).lstrip("0"))
        yield "}", ("lazy", groups)
        yield ",", ("comma", groups, least)

    def _comma(self, groups: str, least: str) -> Steps:
        yield "}", ("lazy", groups)
        yield from self._most(groups, least)

    def _most(self, groups: str, least: str) -> Steps:
        """Where the second number begins or has had zeros only."""
        if not least:
            yield _DIGITS, ("enough", groups)
            return
        yield "0", ("first", groups, least)
        for digit in _POSITIVE:
            yield digit, self._compared(groups, least, digit)

    def _first(self, groups: str, least: str) -> Steps:
        """Behind leading zeros of the second number."""
        return self._most(groups, least)

    def _compared(self, groups: str, rest: str, digit: str) -> State:
        order = (digit > rest[0]) - (digit < rest[0])
        if order:
            return ("unequal", groups, len(rest) - 1, order)
        return ("equal", groups, rest[1:])

    def _equal(self, groups: str, rest: str) -> Steps:
        """So far the second number has the digits of the first."""
        if not rest:
            yield from self._enough(groups)
            return
        for digit in _DIGITS:
            yield digit, self._compared(groups, rest, digit)

    def _unequal(self, groups: str, left: int, order: int) -> Steps:
        """The second number is more or less than the first if it has as many digits, and so many are left of these."""
        if left == 0 and order > 0:
            yield from self._enough(groups)
            return
        yield _DIGITS, ("unequal", groups, left - 1, order) if left else ("enough", groups)

    def _enough(self, groups: str) -> Steps:
        yield _DIGITS, ("enough", groups)
        yield "}", ("lazy", groups)

    def _group(self, groups: str) -> Steps:
        """Behind an opening parenthesis."""
        yield from self._term(groups + "q")
        yield "?", ("question", groups)

    def _question(self, groups: str) -> Steps:
        yield ":", ("term", groups + "q")
        yield "=!", ("term", groups + "a")
        yield "<", ("angle", groups)

    def _angle(self, groups: str) -> Steps:
        yield "=!", ("term", groups + "a")
        if self._refers:
            yield from self._through(groups, utf8(name_starts()), ("name", groups, ("term", groups + "q")))

    def _name(self, groups: str, after: State) -> Steps:
        """In the name of a group."""
        yield ">", after
        yield from self._through(groups, utf8(name_parts()), ("name", groups, after))

    def _escape(self, groups: str) -> Steps:
        """Behind a backslash."""
        atom = ("atom", groups)
        yield "bB", ("term", groups)
        yield "dDsSwWfnrtv/" + _SYNTAX, atom
        yield "0", ("zero", groups)
        yield "c", ("one", groups, _LETTERS, atom)
        yield "x", ("hexadecimal", groups, 2, atom)
        yield "u", ("unicode", groups, atom)
        yield "pP", ("through", groups, _properties(), atom)
        if self._refers:
            yield _POSITIVE, ("number", groups)
            yield "k", ("one", groups, "<", ("reference", groups))

    def _zero(self, groups: str) -> Steps:
        r"""Behind ``\0``, where no digit may follow."""
        for symbols, target in self._atom(groups):
            yield "".join([s for s in symbols if s not in _DIGITS]) if isinstance(symbols, str) else symbols, target

    def _number(self, groups: str) -> Steps:
        r"""In the number of a reference: all digits that follow are its own."""
        yield from self._atom(groups)
        yield _DIGITS, ("number", groups)

    def _reference(self, groups: str) -> Steps:
        yield from self._through(groups, utf8(name_starts()), ("name", groups, ("atom", groups)))

    # Pieces that do not depend on what is before.

    def _one(self, groups: str, symbols: str, after: State) -> Steps:
        yield symbols, after

    def _hexadecimal(self, groups: str, count: int, after: State) -> Steps:
        yield _HEX, ("hexadecimal", groups, count - 1, after) if count > 1 else after

    def _unicode(self, groups: str, after: State) -> Steps:
        r"""Behind ``\u``."""
        yield _HEX, ("hexadecimal", groups, 3, after)
        yield "{", ("through", groups, _point(), after)

    def _through(self, groups: str, expr: Expr, after: State) -> Steps:
        """Through a language none of whose texts begins another."""
        for low, high, target in edges(expr):
            yield range(low, high + 1), after if target is EPSILON else ("through", groups, target, after)

    # In classes.  `low` is the first end of the range that is being read, or None.

    def _class(self, groups: str) -> Steps:
        """Behind an opening bracket."""
        yield from self._items(groups)
        yield "^", ("items", groups)

    def _items(self, groups: str, dash: State | None = None) -> Steps:
        """In a class, where the next item comes."""
        yield "]", ("atom", groups)
        for symbol in _IN_CLASS:
            yield symbol, ("behind", groups, ord(symbol) if self._refers or symbol in _RANGING else _SET)
        yield "-", dash or ("behind", groups, 0x2D)
        yield "\\", ("quoted", groups, None)
        for more, leads in _LEADS:
            if self._refers:
                yield from [((byte,), ("raw", groups, more, bytes((byte,)))) for byte in leads]
            else:
                yield leads, ("above", groups, more, ("behind", groups, _SET))

    def _behind(self, groups: str, code: int) -> Steps:
        """Behind an item that may be the first end of a range."""
        return self._items(groups, ("range", groups, code))

    def _half(self, groups: str, lead: int, low: int | None) -> Steps:
        """Behind an item that may be the first half of a pair of escapes."""
        if low is None:
            yield from self._behind(groups, lead)
        elif lead >= low:
            yield from self._items(groups)
        yield "\\", ("quoted", groups, None, (lead, low))

    def _raw(self, groups: str, more: str, begun: bytes) -> Steps:
        """Inside the UTF-8 of an item."""
        symbols, rest = LATER_BYTES[more]
        for byte in symbols:
            longer = begun + bytes((byte,))
            yield (byte,), ("raw", groups, rest, longer) if rest else ("behind", groups, ord(longer.decode()))

    def _range(self, groups: str, low: int) -> Steps:
        """Behind the dash of what may become a range."""
        yield "]", ("atom", groups)
        if low == _SET:
            return
        after = ("items", groups)
        yield "".join([symbol for symbol in _IN_CLASS + "-" if ord(symbol) >= low]), after
        if not self._refers:
            return
        yield "\\", ("quoted", groups, low)
        above = normalise([(max(low, 0x80), _TOP)])
        if above:
            yield from self._through(groups, utf8(above), after)

    def _quoted(self, groups: str, low: int | None, half: Half = None) -> Steps:
        """Behind a backslash in a class."""
        if not self._refers:
            yield from self._quoted_alone(groups, ("behind", groups, _SET))
            return
        yield "u", ("escaped", groups, low, half)
        if half is not None and half[1] is not None and half[0] < half[1]:
            return
        for symbol, code in _CONTROLS.items():
            yield from self._coded(groups, low, symbol, code)
        after = self._after(groups, low, 0)
        if after is not None:
            yield "0", ("null", groups, after)
        if low is None:
            yield "dDsSwW", ("behind", groups, _SET)
            yield "pP", ("through", groups, _properties(), ("behind", groups, _SET))
        if low is None or low <= 26:
            yield "c", ("control", groups, low)
        if low is None or low <= 0xFF:
            yield "x", ("digits", groups, low, None, 2, 0)

    def _quoted_alone(self, groups: str, after: State) -> Steps:
        """The same for items that begin no range."""
        yield "".join(_CONTROLS) + "dDsSwW", after
        yield "pP", ("through", groups, _properties(), after)
        yield "0", ("null", groups, after)
        yield "c", ("one", groups, _LETTERS, after)
        yield "x", ("hexadecimal", groups, 2, after)
        yield "u", ("unicode", groups, after)

    def _coded(self, groups: str, low: int | None, symbol: str, code: int) -> Steps:
        """A symbol that completes an item."""
        after = self._after(groups, low, code)
        if after is not None:
            yield symbol, after

    def _after(self, groups: str, low: int | None, code: int) -> State | None:
        """Behind an item, None where the range would be in the wrong order."""
        if low is None:
            return ("behind", groups, code)
        return ("items", groups) if code >= low else None

    def _null(self, groups: str, after: State) -> Steps:
        r"""Behind ``\0`` in a class, where no digit may follow."""
        for low, high, target in self.steps(after):
            yield tuple([byte for byte in range(low, high + 1) if chr(byte) not in _DIGITS]), cast(State, target)

    def _control(self, groups: str, low: int | None) -> Steps:
        for letter in _LETTERS:
            yield from self._coded(groups, low, letter, ord(letter) % 32)

    def _escaped(self, groups: str, low: int | None, half: Half) -> Steps:
        r"""Behind ``\u`` in a class."""
        yield from self._digits(groups, low, half, 4, 0)
        if half is None or half[1] is None or half[0] >= half[1]:
            yield "{", ("braced", groups, low, -1)

    def _digits(self, groups: str, low: int | None, half: Half, left: int, value: int) -> Steps:
        """In hexadecimal digits of which so many are left."""
        for digit in _HEX:
            longer = value << 4 | int(digit, 16)
            if left > 1:
                if self._reaches(low, half, longer << 4 * (left - 1), (longer + 1 << 4 * (left - 1)) - 1):
                    yield digit, ("digits", groups, low, half, left - 1, longer)
            elif half is not None and longer in _TRAIL:
                yield from self._coded(groups, half[1], digit, _pair(half[0], longer))
            elif not self._reaches(low, half, longer, longer):
                continue
            elif longer in _LEAD:
                yield digit, ("half", groups, longer, low)
            else:
                yield from self._coded(groups, low, digit, longer)

    def _reaches(self, low: int | None, half: Half, first: int, last: int) -> bool:
        """Can an escape between two numbers stand here?"""
        if half is not None and half[1] is not None and half[0] < half[1]:
            return first <= _TRAIL[-1] and last >= _TRAIL[0] and _pair(half[0], min(last, _TRAIL[-1])) >= half[1]
        if low is None or last >= low:
            return True
        return first <= _LEAD[-1] and last >= _LEAD[0] and _pair(min(last, _LEAD[-1]), _TRAIL[-1]) >= low

    def _braced(self, groups: str, low: int | None, value: int) -> Steps:
        r"""In ``\u{...}`` in a class; ``value`` is that of the digits, -1 before the first."""
        if value >= 0:
            yield from self._coded(groups, low, "}", value)
        for digit in _HEX:
            longer = max(value, 0) << 4 | int(digit, 16)
            if longer <= _TOP and (low is None or _greatest(longer) >= low):
                yield digit, ("braced", groups, low, longer)


@lru_cache(maxsize=1 << 12)
def _ranges(ways: tuple[Iterable[Any], ...]) -> tuple[tuple[int, int, int], ...]:
    """Ranges of bytes in ascending order and which of some ways they are of, the last where one is of several."""
    way_of: dict[int, int] = {}
    for way, symbols in enumerate(ways):
        way_of.update(dict.fromkeys(symbols.encode() if isinstance(symbols, str) else symbols, way))
    found: list[tuple[int, int, int]] = []
    for byte, way in sorted(way_of.items()):
        if found and found[-1][1:] == (byte - 1, way):
            found[-1] = (found[-1][0], byte, way)
        else:
            found.append((byte, byte, way))
    return tuple(found)


def _pair(lead: int, trail: int) -> int:
    """The character of two surrogates."""
    return 0x10000 + (lead - _LEAD[0] << 10) + trail - _TRAIL[0]


def _greatest(value: int) -> int:
    """The greatest code point whose hexadecimal digits begin with those of a value."""
    best = value
    size = 4
    while value << size <= _TOP:
        best = max(best, min((value + 1 << size) - 1, _TOP))
        if not value:
            return _TOP
        size += 4
    return best


@lru_cache(maxsize=1)
def prepare_names() -> None:
    """Make what is common to the names of all groups: up to 40 ms, which no mask should take."""
    for characters in (name_starts(), name_parts()):
        edges(utf8(characters))


@lru_cache(maxsize=1)
def _properties() -> Expr:
    r"""What follows ``\p``."""
    return concat(literal(b"{"), words(f"{text}}}".encode() for text in property_expressions()))


@lru_cache(maxsize=1)
def _point() -> Expr:
    r"""What follows ``\u{``."""
    return pattern_language("0*(?:[0-9A-Fa-f]{1,5}|10[0-9A-Fa-f]{4})}")


class Skeletons(Patterns):
    """`SKELETONS`."""

    def __init__(self) -> None:
        super().__init__(refers=True, depth=DEPTH)

    def is_too_deep(self, state: State) -> bool:
        """Would one more group be deeper than they are followed?"""
        kind, groups = state[:2]
        depth = len(groups) + (kind == "group")
        return depth == self._deepest and kind in ("term", "atom", "lazy", "group", "zero", "number")

    def _braces(self, groups: str) -> Steps:
        yield _DIGITS, ("least", groups)

    def _least(self, groups: str, least: str = "") -> Steps:
        yield _DIGITS, ("least", groups)
        yield "}", ("lazy", groups)
        yield ",", ("comma", groups)

    def _comma(self, groups: str, least: str = "") -> Steps:
        yield _DIGITS, ("enough", groups)
        yield "}", ("lazy", groups)

    def _items(self, groups: str, dash: State | None = None) -> Steps:
        again = ("items", groups)
        yield "]", ("atom", groups)
        yield _IN_CLASS + "-", again
        yield "\\", ("quoted", groups)
        for more, leads in _LEADS:
            yield leads, ("above", groups, more, again)

    def _quoted(self, groups: str, low: int | None = None, half: Half = None) -> Steps:
        return self._quoted_alone(groups, ("items", groups))


EXACT, PLAIN, SKELETONS = Patterns(refers=True), Patterns(refers=False, depth=DEPTH), Skeletons()
