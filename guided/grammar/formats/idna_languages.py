"""The automata of `idna_labels` over UTF-8, made where they are looked at, and what stands without a checker.

Blocks of characters with the same classes are one.  A state within a character is its block and where the block's
classes lead, so the thousands of ideographs do not have states of their own for each lead byte.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeAlias, cast

from guided.grammar.formats.idna_characters import characters
from guided.grammar.formats.idna_labels import DEAD, Direction, Kind, Labels, labels
from guided.grammar.formats.idna_names import MOST_IN_LABEL, MOST_IN_NAME, least_to_end
from guided.grammar.formats.regex_languages import Both
from guided.grammar.regex.unicode_sets import unicode_property
from guided.grammar.regular.expr import EMPTY, Expr
from guided.grammar.regular.stepwise import Step, automaton_of, stepwise


class Block:
    """What 64 continuing bytes lead to: the classes of characters, or blocks; equal ones are the same object."""

    __slots__ = ("blocks", "classes", "depth", "different", "kinds", "runs", "ways")

    def __init__(self, classes: bytes, blocks: tuple[Block, ...]) -> None:
        self.classes, self.blocks = classes, blocks
        self.kinds: tuple[int, ...] = tuple(sorted(set(classes).union(*[block.kinds for block in blocks])))
        """All classes of characters in it."""
        self.depth: int = 1 + (blocks[0].depth if blocks else 0)
        """How many bytes complete a character."""
        self.different = tuple(dict.fromkeys(blocks))
        order = [self.different.index(block) for block in blocks] or [self.kinds.index(kind) for kind in classes]
        self.runs: tuple[tuple[int, int, int], ...] = _runs(order, 0x80)
        """Ranges of bytes, and which of the different blocks, or of the kinds, each of them leads to."""
        self.ways: Callable[[Sequence[int] | dict[int, int]], tuple[int, ...]] = itemgetter(*self.kinds, self.kinds[0])
        """Where the kinds lead, by where all do; the first twice, since of a single place no tuple is made."""


def _runs(order: Iterable[int], byte: int) -> tuple[tuple[int, int, int], ...]:
    """Ranges of the bytes from ``byte`` on, each of one number."""
    found = []
    for number, same in groupby(order):
        after = byte + len(tuple(same))
        found.append((byte, after - 1, number))
        byte = after
    return tuple(found)


_WIDTHS = ((0xC2, 0xE0, 0x1F, 6, 0x80), (0xE0, 0xF0, 0x0F, 12, 0x800), (0xF0, 0xF5, 0x07, 18, 0x10000))
"""Lead bytes of two, three and four, without a gap: which of their bits count, how many are still to come, and the
least of their code points."""
_NOWHERE = DEAD


@lru_cache(maxsize=2)
def blocks(of: bytes, none: int) -> tuple[tuple[int, Block], ...]:
    """The blocks of all lead bytes, by the classes of code points; ``none`` where the encoding is not the shortest."""
    known: dict[tuple[bytes, tuple[Block, ...]], Block] = {}
    nothing = bytes((none,)) * 64

    def block(low: int, bits: int, least: int) -> Block:
        if bits == 6:
            key: tuple[bytes, tuple[Block, ...]] = (of[low : low + 64] if least <= low < len(of) else nothing, ())
        else:
            key = (b"", tuple(block(at, bits - 6, least) for at in range(low, low + (1 << bits), 1 << bits - 6)))
        return known.setdefault(key, Block(*key))

    return tuple(
        (lead, block((lead & mask) << bits, bits, least))
        for first, stop, mask, bits, least in _WIDTHS
        for lead in range(first, stop)
    )


_Within: TypeAlias = "tuple[Block | None, tuple[int, ...]]"
"""In a character: what must follow and where its kinds lead, or no block, the place where all lead and the depth."""


class Names:
    """See `guided.grammar.regular.stepwise.Automaton`: a state is one of `labels`; below zero, within a character."""

    def __init__(self, automaton: Labels, of: bytes, none: int = 0) -> None:
        self._labels = automaton
        self._ascii = _runs(of[:0x80], 0)
        """Ranges of bytes, by the classes of characters."""
        leads = [block for _, block in blocks(of, none)]
        self._blocks = tuple(dict.fromkeys(leads))
        self._leads = _runs(map(self._blocks.index, leads), _WIDTHS[0][0])
        """The same of the bytes that begin longer characters, by the blocks behind them."""
        self._within: list[_Within] = []
        """The states within a character, the first of which has the number -2."""
        self._numbers: dict[_Within, int] = {(None, (_NOWHERE, depth)): _NOWHERE for depth in range(1, 4)}
        self.start: Hashable = automaton.starts[0]

    def accepts(self, state: Hashable) -> bool:
        """May the name end here?"""
        number = cast(int, state)
        return number >= 0 and self._labels.accepts[number]

    def steps(self, state: Hashable) -> Iterable[Step]:
        """The bytes that may come, and where they lead."""
        number = cast(int, state)
        if number < 0:
            return self._continued(*self._within[-2 - number])
        row = self._labels.rows[number]
        above = [self._behind(row, block) for block in self._blocks]
        return [*_steps(self._ascii, row), *_steps(self._leads, above)]

    def _behind(self, row: Sequence[int] | dict[int, int], block: Block) -> int:
        """The state when one of the characters of a block must follow, ``row`` saying where their classes lead."""
        ways = block.ways(row)
        # Most states tell apart few of the classes.
        alike = ways.count(ways[0]) == len(ways)
        return self._number((None, (ways[0], block.depth)) if alike else (block, ways))

    def _number(self, within: _Within) -> int:
        found = self._numbers.get(within)
        if found is None:
            found = self._numbers[within] = -2 - len(self._within)
            self._within.append(within)
        return found

    def _continued(self, block: Block | None, ways: tuple[int, ...]) -> Iterable[Step]:
        """Where the continuing bytes lead."""
        if block is None:
            target, depth = ways
            return [(0x80, 0xBF, self._number((None, (target, depth - 1))) if depth > 1 else target)]
        row = dict(zip(block.kinds, ways, strict=False))
        return _steps(block.runs, [self._behind(row, inner) for inner in block.different] or ways)


def _steps(runs: tuple[tuple[int, int, int], ...], targets: Sequence[int]) -> list[Step]:
    return [(low, high, targets[number]) for low, high, number in runs if targets[number] != _NOWHERE]


@lru_cache(maxsize=2)
def _automaton(kind: Kind) -> Names:
    return Names(labels(kind), characters().of)


@lru_cache(maxsize=2)
def names(kind: Kind) -> Expr:
    """Names, as far as they are regular; of host names it holds all, and some that are none."""
    automaton = _automaton(kind)
    # A mask in a label asks for hundreds of states inside characters.
    return stepwise(automaton, automaton.start, whole=True)


def reads_host_name(expr: Expr) -> bool:
    """Is a language that of `names` for host names, or the rest of it?"""
    return automaton_of(expr) is _automaton(Kind.HOST)


SHORT = 9
"""Characters of a label with some above ASCII that always fit."""
_SHORT_OCTETS = 61
"""What such a label has at most on the wire: ``xn--``, and six digits for each character, but seven for three.

With some bias a number of 288,886 has six digits and one of 2,888,886 seven, which for the ninth character are
distances of 32,097 and 320,986 from the one before; three of these exhaust Unicode.
"""


class _Place(NamedTuple):
    """In a name of `PlainHosts`."""

    state: int
    before: int
    """Octets of the labels before, at most, with their full stops."""
    size: int
    """Characters of this label."""
    is_ascii: bool
    reordered: bool
    """The last character was a mark."""
    within: Block | None


class PlainHosts:
    """Host names that need no checker, not all of them; see `guided.grammar.regular.stepwise.Automaton`.

    Without encoded labels; labels with characters above ASCII are at most `SHORT` long and count as the longest; of
    combining marks there is one behind a character, and none that may compose with what is before them.
    """

    def __init__(self) -> None:
        self._labels = labels(Kind.PLAIN)
        self._of = characters().of
        self._classes = characters().classes
        self._some: dict[Block, frozenset[int]] = {}
        self.start: Hashable = _Place(self._labels.starts[Direction.OPEN], 0, 0, True, False, None)

    def accepts(self, state: Hashable) -> bool:
        """May the name end here?"""
        place = cast(_Place, state)
        return place.within is None and self._labels.accepts[place.state]

    def steps(self, state: Hashable) -> Iterable[Step]:
        """The bytes that may come, and where they lead."""
        place = cast(_Place, state)
        block = place.within
        after = self._after(place)
        if block is None:
            for byte in range(0x80):
                target = after.get(self._of[byte])
                if target is not None:
                    yield byte, byte, target
            ways = blocks(self._of, 0)
        elif block.classes:
            for at, kind in enumerate(block.classes):
                if kind in after:
                    yield 0x80 + at, 0x80 + at, after[kind]
            return
        else:
            ways = tuple((0x80 + at, inner) for at, inner in enumerate(block.blocks))
        for byte, inner in ways:
            if not self._below(inner).isdisjoint(after):
                yield byte, byte, place._replace(within=inner)

    def distance(self, state: Hashable) -> int:
        """How far from an end a state looks."""
        return least_to_end(Kind.PLAIN, cast(_Place, state).state)

    def _after(self, place: _Place) -> dict[int, _Place]:
        """By class of a character, the place behind it."""
        found = {}
        for kind, target in enumerate(self._labels.rows[place.state]):
            if target != DEAD:
                after = self._behind(place, target, kind)
                if after is not None:
                    found[kind] = after
        return found

    def _behind(self, place: _Place, target: int, kind: int) -> _Place | None:
        letter = self._classes[kind]
        if letter.special == ".":
            before = place.before + (place.size if place.is_ascii else _SHORT_OCTETS) + 1
            return _Place(target, before, 0, True, False, None) if before < MOST_IN_NAME else None
        if letter.composes or (letter.reorders and place.reordered):
            return None
        is_ascii, size = place.is_ascii and letter.is_ascii, place.size + 1
        whole = size + least_to_end(Kind.PLAIN, target)
        if whole > (MOST_IN_LABEL if is_ascii else SHORT):
            return None
        if place.before + (whole if is_ascii else _SHORT_OCTETS) > MOST_IN_NAME:
            return None
        return _Place(target, place.before, size, is_ascii, letter.reorders, None)

    def _below(self, block: Block) -> frozenset[int]:
        """The classes of all characters of a block."""
        found = self._some.get(block)
        if found is None:
            found = frozenset(block.classes).union(*map(self._below, block.blocks)) - {0}
            self._some[block] = found
        return found


@lru_cache(maxsize=1)
def _plain() -> PlainHosts:
    return PlainHosts()


@lru_cache(maxsize=1)
def plain_host_names() -> Expr:
    """The language of `PlainHosts`."""
    return stepwise(_plain(), _plain().start)


@lru_cache(maxsize=1)
def _opposite() -> Names:
    """Texts of assigned characters that break a rule which is regular, so that no later Unicode makes them names."""
    automaton = labels(Kind.HOST)
    nowhere = len(automaton.rows)
    none = len(characters().classes)
    of = bytearray([none]) * 0x110000
    for low, high in unicode_property("Assigned", ""):
        of[low : high + 1] = characters().of[low : high + 1]
    rows = [(*(nowhere if target == DEAD else target for target in row), DEAD) for row in automaton.rows]
    rows.append((nowhere,) * none + (DEAD,))
    accepts = (*(not ends for ends in automaton.accepts), True)
    return Names(Labels(tuple(rows), accepts, automaton.starts), bytes(of), none)


@lru_cache(maxsize=1)
def no_host_names() -> Expr:
    """Texts that are surely no host names."""
    return stepwise(_opposite(), _opposite().start)


@lru_cache(maxsize=1024)
def plain_host_names_within(language: Expr) -> Expr:
    """The names of `PlainHosts` that are in another language, with those left out for which no end is found."""
    plain = _plain()
    return _within(Both(plain, plain.distance), (language, plain.start))


@lru_cache(maxsize=1024)
def no_host_names_within(language: Expr) -> Expr:
    """The same of texts that are surely no host names."""
    return _within(Both(_opposite(), lambda state: 0), (language, _opposite().start))


def _within(both: Both, start: tuple[Expr, Hashable]) -> Expr:
    return stepwise(both, start) if both.ends(start) else EMPTY
