"""The parts that lexer states are sets of, registered in the flat arrays of `guided.kernels.lexing.determinise`.

A part is an expression that is no union: plain bytes, or the text inside a JSON string.  This file has the traits of a
part and its edges; the kernel finds which sets of parts there are.  Parts that follow from numbers
(`guided.kernels.lexing.part_pairs`) become expressions only when they are looked at; the kernel writes their edges.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from guided.automata.lexer.runs import far_run
from guided.automata.lexer.spans import Span, bounded_pattern, span_of
from guided.automata.lexer.symbols import Symbols, runs_of, symbol_arrays
from guided.automata.lexer.traits import Reading, begins, is_read_whole, traits_of
from guided.collection import untrack
from guided.grammar.regular.condensed import lengths_of
from guided.grammar.regular.derivative import MOST_STEPS, edges, inhabited, least_length
from guided.grammar.regular.expr import EPSILON, Expr, Kind, alternation, concat, intersection, repeat
from guided.grammar.regular.lengths import character_counts
from guided.grammar.regular.partial import alternatives, begins_with, is_begun, without_one
from guided.kernels.data.layout import Parts
from guided.kernels.data.pages import gradual_zeros
from guided.kernels.jit import direct
from guided.kernels.lexing.byte_classes import class_of_byte
from guided.kernels.lexing.determinise import N_COUNTS
from guided.kernels.lexing.part_pairs import (
    ABSORBS,
    BEGUN,
    BUCKETS,
    BY_BOUNDS,
    BY_SYMBOL,
    COUNTED,
    DECIDED,
    DERIVED,
    EXPENSIVE,
    INSIDE,
    MOST_CHARACTERS,
    NEEDS_EDGES,
    NEEDS_SPAN,
    NO_ROOM,
    PARTS,
    UNDECIDED,
    WANTED,
    WITH,
    WITHIN,
    WORDS,
    expand_part,
)

__all__ = ["PartTable"]

MOST_PARTS = 1 << 18
"""Parts that there is room for at first, twice those of eight thousand schemas, each with some edges: 20 MB of
addresses.  Memory that is not written to is not taken, and each time it was copied some mask took milliseconds."""

AT_ONCE = 32
"""States that are asked about in one round, nearest first."""

MOST_QUEUED = 4096
"""States that one call of the kernel looks at."""


class PartTable:
    """Parts of one state table; ids are stable, arrays are replaced when they grow."""

    def __init__(self, state_of: Callable[[Expr, int], int], addresses: Callable[[], int], most_states: int) -> None:
        """With room for ``most_states`` at first."""
        self._state_of = state_of
        """The state that a reading has already, 0 for none."""
        self.table_address = addresses
        """Where the kernels find the arrays."""
        self._ids: dict[Reading, int] = {}
        self._readings: dict[int, Reading] = {}
        """Of parts that follow from numbers or written from a register, those that were asked for."""
        self._symbols = Symbols(self._grow)
        several: dict[str, Any] = {
            **{name: gradual_zeros(4 * most_states).view(np.int32) for name in _PER_STATE},
            **{name: np.zeros(MOST_PARTS, np.int32) for name in _PER_PART},
            **symbol_arrays(),
        }
        self.arrays = Parts(
            **several,
            low=np.zeros(4 * MOST_PARTS, np.uint8),
            high=np.zeros(4 * MOST_PARTS, np.uint8),
            to=gradual_zeros(16 * MOST_PARTS).view(np.int32),
            pool=np.zeros(2 * MOST_PARTS, np.int32),
            set_hash=np.zeros(MOST_PARTS // 2, np.int32),
            counts=np.zeros(N_COUNTS, np.int64),
            queue=np.zeros(MOST_QUEUED, np.int32),
            firsts=np.zeros(MOST_QUEUED, np.int32),
            missing=np.zeros(AT_ONCE, np.int32),
            given=np.zeros(4096, np.int32),
            class_of_byte=class_of_byte(),
            chain_first=np.zeros(BUCKETS, np.int32),
            spans=gradual_zeros(16 * MOST_PARTS).view(np.int32),
        )
        self._counts = self.arrays.counts.data
        self._look()

    def __len__(self) -> int:
        return int(self._counts[PARTS])

    def find(self, of: Reading) -> int:
        """The state of a reading that is a part by itself, 0 where it has none."""
        part = self._made(of)
        return 0 if part < 0 else self._alone[part]

    def stands_for(self, of: Reading, state: int) -> None:
        """Let a state be that of a part by itself."""
        part = self._made(of)
        if part >= 0:
            self._alone[part] = state

    def members(self, state: int) -> list[Reading]:
        """The parts of a state; none where they are not known."""
        first = self._set_first[state]
        if first < 0:
            return []
        return [self._reading(part) for part in self._pool[first : first + self._set_count[state]]]

    def _reading(self, part: int) -> Reading:
        found = self._readings.get(part)
        if found is None:
            one, other, traits = self._one[part], self._other[part], self._traits[part]
            after, mode = self._reading(other)
            if traits & WITHIN:
                content = intersection((self._reading(one)[0], after))
            else:
                content = self._symbols.exprs[-1 - one]
                if traits & COUNTED:
                    most = self._most[part]
                    content = repeat(content, self._fewest[part], None if most < 0 else most)
                content = concat(content, after)
            found = self._readings[part] = content, mode
            untrack(found)
            if traits & COUNTED:
                self._ids.setdefault(found, part)
        return found

    def boundless(self, part: int) -> tuple[Reading, int] | None:
        """A part without the bound on its length, and that bound; None where it has none that may be far."""
        bound = int(self._bound[part])
        return (self._reading(self._boundless[part]), bound) if bound else None

    def least(self, state: int) -> int:
        """A lower bound on the bytes that a state still reads, without the quote that closes a string."""
        return min((least_length(content) for content, _ in self.members(state)), default=0)

    def fewest_characters(self, state: int) -> tuple[int, int | None]:
        """No text from a state has fewer characters than the first, and some text has the second or fewer (None: not
        known); one that is begun does not count.
        """
        first, n = int(self.arrays.set_first[state]), int(self.arrays.set_count[state])
        if first < 0:
            return 0, None
        ways = [self._fewest_characters(part) for part in self.arrays.pool[first : first + n].tolist()]
        return min(least for least, _ in ways), min((most for _, most in ways if most is not None), default=None)

    def _fewest_characters(self, part: int) -> tuple[int, int | None]:
        traits = self._traits[part]
        if traits & WITHIN:
            return 0, None
        if traits & BEGUN:
            least, most = character_counts(self._symbols.exprs[-1 - self._one[part]])
            after, within = self._fewest_characters(self._other[part])
            return least + after, None if within is None or most is None else most + within
        known = None if traits & COUNTED else lengths_of(self._reading(part)[0])
        if known is not None:
            return known.near, known.near
        span = self._span(part)
        return span.least, span.soon

    def is_expensive(self, part: int) -> bool:
        """Is a part read as a whole, at the price of all that it combines, or of an automaton's next states?"""
        if not self._traits[part] & EXPENSIVE or self._edge_first[part] >= 0:
            return False
        if self._traits[part] & WITHIN:
            return self.is_expensive(self._one[part])
        return part not in self._readings or is_read_whole(self._reading(part)[0])

    def is_inside(self, part: int) -> bool:
        """Is this a pair of parts inside a character?"""
        return bool(self._traits[part] & INSIDE)

    def set_of(self, of: Reading, used: int) -> tuple[int, int]:
        """Where the parts of a reading stand, ``used`` entries of the pool being taken, and how many they are."""
        parts = sorted(set(self._parts(*of)))
        if len(parts) > 1:
            parts = next(([part] for part in parts if self._traits[part] & ABSORBS), parts)
        while used + len(parts) > len(self._pool):
            self._grow("pool")
        for at, part in enumerate(parts, used):
            self._pool[at] = part
        return used, len(parts)

    def made_of(self, state: int) -> list[int] | None:
        """The parts from which the edges of a state follow; None where they are not known, or it is written."""
        first = self._set_first[state]
        if first < 0:
            return None
        found: list[int] = self._pool[first : first + self._set_count[state]].tolist()
        return None if len(found) == 1 and self._traits[found[0]] & WORDS else found

    def find_edges(self, part: int, most: int, inside: bool) -> int:
        """Make the edges of a part known, and of parts that it is the first to lead to, ``most``; of how many.

        ``inside``: also of pairs that are inside a character.  Parts that follow from numbers come with the states.
        """
        if self._edge_first[part] >= 0:
            return 0
        skipped = WORDS | DERIVED if inside else WORDS | DERIVED | INSIDE
        work = [part]
        n = 0
        for item in work:
            if self._edge_first[item] >= 0:
                continue
            before = self._counts[PARTS]
            self._find_edges(item)
            n += 1
            if n >= most:
                break
            for new in range(before, self._counts[PARTS]):
                if self._edge_first[new] < 0 and not self._traits[new] & skipped and not self.is_expensive(new):
                    work.append(new)
        return n

    def is_derived(self, part: int) -> bool:
        """Do the edges of a part follow from numbers, so that they come with the states?"""
        return bool(self._traits[part] & DERIVED)

    def _find_edges(self, part: int) -> None:
        if self._traits[part] & DERIVED:
            self._write_edges(part, None)
            return
        content, mode = self._reading(part)
        if self._write_automaton(part, content, mode):
            return
        both = bounded_pattern(content) if mode and content.kind is Kind.INTERSECTION else None
        if both is None:
            self._write_edges(part, self._edges(content, mode))
            return
        run = self.part(both[1], mode)
        self._write_edges(part, [item for pattern in self._parts(both[0], mode) for item in (BY_BOUNDS, pattern, run)])

    def _write_edges(self, part: int, row: list[int] | None) -> None:
        """Have the edges of a part written, as some rows tell them, or its numbers, and find out what that takes."""
        n = -1
        given = array("i")
        if row is not None:
            n, given = len(row), array("i", row)
            while n > self.arrays.given.size:
                self._grow("given")
        while self._edge_first[part] < 0:
            if n > 0:
                self._given[:n] = given
            code: int = direct(expand_part)(self.table_address(), part, n)
            wanted = self._counts[WANTED]
            if code == NO_ROOM:
                self.grow()
            elif code == NEEDS_SPAN:
                self._span(wanted)
            elif code == UNDECIDED:
                both = self._reading(wanted)[0], self._reading(self._counts[WITH])[0]
                self._counts[DECIDED] = 1 + inhabited(intersection(both), MOST_STEPS)
            elif code == NEEDS_EDGES and self._traits[wanted] & BEGUN:
                self._begin_rest(wanted)
            elif code == NEEDS_EDGES:
                self._find_edges(wanted)

    def _begin_rest(self, part: int) -> None:
        """Make the edges of the rest of a symbol known, or where it leads to more than rests, those of the part."""
        row = self._symbols.make_known(-1 - self._one[part])
        if not row:
            return
        follows = self._other[part]
        after, mode = self._reading(follows)
        found: list[int] = []
        for low, high, target in row:
            if target is EPSILON:
                found += (low << 8 | high, -1, follows)
            elif is_begun(target):
                found += (low << 8 | high, self._symbols.rest(target), follows)
            else:
                for to in self._parts(concat(target, after), mode):
                    found += (low << 8 | high, -1, to)
        self._write_edges(part, found)

    def _span(self, part: int) -> Span:
        """How long the texts of a part are; remembered."""
        at = 4 * part
        if not self._spans[at]:
            if self._traits[part] & (BEGUN | COUNTED):
                times = self._symbols.span(-1 - self._one[part])
                if self._traits[part] & COUNTED:
                    most = self._most[part]
                    times = times.times(self._fewest[part], None if most < 0 else most)
                span = self._span(self._other[part]).behind(times)
            else:
                span = span_of(self._reading(part)[0])
            self._spans[at : at + 4] = span.packed()
        return Span.unpacked(self._spans[at : at + 4])

    def within_one(self, state: int) -> Reading | None:
        """A union of parts of patterns, all within the bounds of the same run, as one pattern within it."""
        first, n = int(self.arrays.set_first[state]), int(self.arrays.set_count[state])
        parts: list[int] = self.arrays.pool[first : first + n].tolist() if first >= 0 and n > 1 else []
        pairs = [part for part in parts if self._traits[part] & WITHIN]
        if not pairs or any(self._other[part] != self._other[pairs[0]] for part in pairs):
            return None
        run = self._other[pairs[0]]
        bounds = self._span(run)
        others = [part for part in parts if not self._traits[part] & WITHIN]
        if run in others:
            # Any text within the bounds, the others' among them.
            return self._reading(run)
        if not all(self._span(part).keeps(bounds) for part in others):
            return None
        pattern = alternation([self._reading(part)[0] for part in (*others, *(self._one[part] for part in pairs))])
        content, mode = self._reading(run)
        return intersection((pattern, content)), mode

    def _edges(self, content: Expr, mode: int) -> list[int]:
        """The edges of a sequence: of its first item, and of those behind while all before may be left out."""
        row: list[int] = []
        while True:
            head, tail = begins(content)
            is_repeated = head.kind is Kind.REPEAT
            symbol = self._symbols.number(runs_of(head))
            if symbol < 0:
                for first, after in begins_with(head):
                    self._begin(row, first, concat(after, tail), mode)
            else:
                for follows in self._parts(concat(without_one(head), tail) if is_repeated else tail, mode):
                    row += (BY_SYMBOL, symbol, follows)
            if tail is EPSILON or not head.nullable:
                return row
            content = tail

    def _begin(self, row: list[int], first: Expr, tail: Expr, mode: int) -> None:
        """Add the edges of a symbol, or of what is read as a whole, with something behind it."""
        symbol = self._symbols.number(first)
        if symbol >= 0:
            for follows in self._parts(tail, mode):
                row += (BY_SYMBOL, symbol, follows)
            return
        for low, high, begun in edges(first):
            rest = -1
            if tail is EPSILON and begun.kind is Kind.RECURSION and begun.inhabited:
                # The state of an automaton, of which there may be many, is a part as it stands.
                parts = [self.part(begun, mode)]
            elif is_begun(begun):
                rest = self._symbols.rest(begun)
                parts = self._parts(tail, mode)
            else:
                parts = self._parts(concat(begun, tail), mode)
            for part in parts:
                row += (low << 8 | high, rest, part)

    def _parts(self, content: Expr, mode: int) -> list[int]:
        return [self.part(item, mode) for item in alternatives(content)]

    def part(self, content: Expr, mode: int) -> int:
        """The part of a language that is no union."""
        of = (content, mode)
        found = self._ids.get(of)
        if found is None:
            symbol = -1
            if content.kind is not Kind.RECURSION and _is_counted(content):
                symbol = self._symbols.number(runs_of(content))
            if symbol >= 0:
                run = _numbers(content, symbol, self.part(EPSILON, mode))
                found = self._derived(run)
                if found < 0:
                    found = self._new(of, COUNTED)
                    self._one[found], self._other[found], self._fewest[found], self._most[found] = run
                    bucket = _bucket(run)
                    self._chain_next[found], self._chain_first[bucket] = self._chain_first[bucket], found + 1
            else:
                found = self._new(of, 0)
            self._ids[of] = found
            self._readings[found] = of
            untrack(of)
            if not self._alone[found]:
                self._alone[found] = self._state_of(content, mode)
        return found

    def _new(self, of: Reading, traits: int) -> int:
        content, mode = of
        bound = boundless = 0
        if content.kind is Kind.REPEAT:
            far = far_run(content) if mode else None
            if far is not None:
                bound, boundless = far[1], self.part(far[0], mode)
            elif traits and content.parts[2] is None and content.parts[1]:
                # What it comes to may be some state already.
                self.part(repeat(cast(Expr, content.parts[0])), mode)
        if self._counts[PARTS] == self.arrays.traits.size:
            self._grow(*_PER_PART, "spans")
        part = self._counts[PARTS]
        self._counts[PARTS] = part + 1
        self._traits[part] = traits_of(content, mode) | traits
        self._bound[part], self._boundless[part] = bound, boundless
        self._edge_first[part] = -1
        if content is EPSILON:
            self._edge_first[part] = 0
            self._spans[4 * part : 4 * part + 4] = Span(0, 0, 0, 0).packed()
        return part

    def _made(self, of: Reading) -> int:
        """The part of a reading, -1 where there is none; runs may be there that have not been looked at."""
        found = self._ids.get(of)
        if found is not None:
            return found
        content, mode = of
        if content.kind is Kind.RECURSION:
            return -1
        symbol = self._symbols.known(runs_of(content))
        ends = self._ids.get((EPSILON, mode)) if symbol >= 0 else None
        return -1 if ends is None else self._derived(_numbers(content, symbol, ends))

    def _write_automaton(self, part: int, content: Expr, mode: int) -> bool:
        """Make the edges known of a state of an automaton that leads to such states only; False: it is none."""
        if content.kind is not Kind.RECURSION:
            return False
        row: list[int] = []
        known = self._ids
        for low, high, target in edges(content):
            if target.kind is not Kind.RECURSION or not target.inhabited:
                return False
            to = known.get((target, mode))
            row += (low << 8 | high, -1, self.part(target, mode) if to is None else to)
        self._write_edges(part, row)
        return True

    def _derived(self, numbers: tuple[int, int, int, int]) -> int:
        """The part that some numbers tell, -1 where there is none yet."""
        part = self._chain_first[_bucket(numbers)] - 1
        while part >= 0 and (self._one[part], self._other[part], self._fewest[part], self._most[part]) != numbers:
            part = self._chain_next[part] - 1
        return part

    def reserve_states(self, ready: int, size: int) -> None:
        """Room for so many states, of which ``ready`` had it already."""
        while size > self.arrays.set_first.size:
            self._grow(*_PER_STATE)
        self.arrays.set_first[ready:size] = -1

    def make_room(self) -> None:
        """Room for twice as many sets, whose hash table is to be filled anew."""
        self._grow("pool")
        self.arrays = self.arrays._replace(set_hash=np.zeros(2 * self.arrays.set_hash.size, np.int32))

    def grow(self) -> None:
        """Make room for more parts and edges."""
        self._grow(*_PER_PART, "spans", "low", "high", "to")

    def _grow(self, *names: str) -> None:
        for name in names:
            old = getattr(self.arrays, name)
            grown = gradual_zeros(2 * old.nbytes).view(old.dtype)
            grown[: old.size] = old
            self.arrays = self.arrays._replace(**{name: grown})
        self._look()

    def _look(self) -> None:
        """Look at the arrays that are read and written entry by entry."""
        arrays = self.arrays
        self._edge_first, self._edge_count = arrays.edge_first.data, arrays.edge_count.data
        self._traits, self._alone = arrays.traits.data, arrays.alone.data
        self._bound, self._boundless = arrays.bound.data, arrays.boundless.data
        self._set_first, self._set_count, self._pool = arrays.set_first.data, arrays.set_count.data, arrays.pool.data

        self._one, self._other = arrays.one.data, arrays.other.data
        self._fewest, self._most = arrays.fewest.data, arrays.most.data
        self._chain_first, self._chain_next = arrays.chain_first.data, arrays.chain_next.data
        self._spans = arrays.spans.data
        self._given = arrays.given.data
        self._symbols.look(arrays)


def _is_counted(content: Expr) -> bool:
    """May this be a symbol, or so many that the kernel's numbers hold them?"""
    if content.kind is not Kind.REPEAT:
        return True
    _, low, high = cast("tuple[Expr, int, int | None]", content.parts)
    return max(low, high or 0) < MOST_CHARACTERS


def _numbers(content: Expr, symbol: int, ends: int) -> tuple[int, int, int, int]:
    """The numbers that tell a symbol by itself, or so many times."""
    if content.kind is not Kind.REPEAT:
        return -1 - symbol, ends, 1, 1
    _, low, high = cast("tuple[Expr, int, int | None]", content.parts)
    return -1 - symbol, ends, low, -1 if high is None else high


def _bucket(numbers: tuple[int, int, int, int]) -> int:
    """Where the chain of a part begins, as `guided.kernels.lexing.part_pairs` has it."""
    one, other, fewest, most = numbers
    return (one * 61 + other * 7 + fewest * 3 + most * 5) & (BUCKETS - 1)


_PER_STATE = ("set_first", "set_count", "asked")
_PER_PART = (
    "edge_first", "edge_count", "traits", "alone", "bound", "boundless", "met", "work", "one", "other", "fewest",
    "most", "chain_next",
)  # fmt: skip
"""The arrays with an entry per state and per part: 0 at first, but for the first of each, which is -1."""
