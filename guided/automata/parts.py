"""The parts that lexer states are sets of, registered in the flat arrays of `guided.kernels.determinise`.

A part is an expression that is no union, as plain bytes or as the text inside a JSON string.  This file says what a
part is like and where its edges lead; which sets of parts there are, the kernel finds out.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import TypeAlias, cast

import numpy as np

from guided.automata.byte_classes import class_of_byte
from guided.automata.minimal_parts import Laid, MinimalParts
from guided.automata.runs import NEAR, far_run
from guided.automata.spans import Span, bounded_pattern, span_of
from guided.automata.traits import Reading, begins, is_read_whole, traits_of
from guided.collection import untrack
from guided.grammar.regular.condensed import lengths_of
from guided.grammar.regular.derivative import edges, inhabited, least_length
from guided.grammar.regular.expr import EPSILON, Expr, Kind, alternation, concat, intersection, repeat
from guided.grammar.regular.lengths import character_counts
from guided.grammar.regular.partial import Letter, alternatives, begins_with, is_begun, letter_of, without_one
from guided.kernels.determinise import ABSORBS, DEAR, INSIDE, LOOPS, N_COUNTS, NULLABLE, SPELLED_ONCE, TEXTUAL, WORDS
from guided.kernels.layout import Parts
from guided.kernels.pages import gradual_zeros

__all__ = ["PartTable"]

COUNTED = 8
"""Characters of a far bounded run whose parts are made at once: a microsecond for each part, alone it takes five.  Of
twelve they take up to 250 where nothing is warm."""

MOST_PARTS = 1 << 18
"""Parts that there is room for at first, twice those of eight thousand schemas, each with some edges: 20 MB of
addresses.  Memory that is not written to is not taken, and each time it was copied some mask took milliseconds."""

AT_ONCE = 32
"""States that are asked about in one round, nearest first."""

Begun: TypeAlias = "tuple[Expr, int, None]"
"""What is left of a character, or of a word, and the part that follows it; a reading is made when asked for."""

Within: TypeAlias = "tuple[int, int, None, None]"
"""A part of a pattern and the part of a run of any characters whose bounds its texts must keep."""


class PartTable:
    """Parts of one state table; ids are stable, arrays are replaced when they grow."""

    def __init__(self, state_of: Callable[[Expr, int], int], addresses: Callable[[], int], most_states: int) -> None:
        """With room for ``most_states`` at first."""
        self._state_of = state_of
        """The state that a reading has already, 0 for none."""
        self.table_address = addresses
        """Where the kernels find the arrays."""
        self._ids: dict[Reading | Begun | Within, int] = {}
        self._all: list[Reading | Begun | Within | Laid] = []
        self._minimal = MinimalParts()
        self._spans: dict[int, Span] = {}
        self.n_edges = 0
        self.arrays = Parts(
            **{name: gradual_zeros(4 * most_states).view(np.int32) for name in _PER_STATE},
            **{name: np.zeros(MOST_PARTS, np.int32) for name in _PER_PART},
            low=np.zeros(4 * MOST_PARTS, np.uint8),
            high=np.zeros(4 * MOST_PARTS, np.uint8),
            to=gradual_zeros(16 * MOST_PARTS).view(np.int32),
            pool=np.zeros(2 * MOST_PARTS, np.int32),
            set_hash=np.zeros(MOST_PARTS // 2, np.int32),
            counts=np.zeros(N_COUNTS, np.int64),
            queue=np.zeros(4096, np.int32),
            firsts=np.zeros(4096, np.int32),
            missing=np.zeros(AT_ONCE, np.int32),
            class_of_byte=class_of_byte(),
        )
        self._look()

    def __len__(self) -> int:
        return len(self._all)

    def find(self, of: Reading) -> int:
        """The state of a reading that is a part by itself, 0 where it has none."""
        part = self._known(of)
        return 0 if part is None else int(self.arrays.alone[part])

    def stands_for(self, of: Reading, state: int) -> None:
        """Let a state be that of a part by itself."""
        part = self._known(of)
        if part is not None:
            self.arrays.alone[part] = state

    def members(self, state: int) -> list[Reading]:
        """The parts of a state; none where they are not known."""
        first = int(self.arrays.set_first[state])
        if first < 0:
            return []
        return [self._reading(part) for part in self.arrays.pool[first : first + self.arrays.set_count[state]].tolist()]

    def _reading(self, part: int) -> Reading:
        of = self._of(part)
        if len(of) == 2:
            return of
        if len(of) == 4:
            (pattern, mode), (run, _) = self._reading(of[0]), self._reading(of[1])
            return intersection((pattern, run)), mode
        content, mode = self._reading(of[1])
        return concat(of[0], content), mode

    def _of(self, part: int) -> Reading | Begun | Within:
        """What a part is made of."""
        of = self._all[part]
        if isinstance(of, Laid):
            of = self._all[part] = of.reading(part)
            self._ids[of] = part
        return of

    def boundless(self, part: int) -> tuple[Reading, int] | None:
        """A part without the bound on its length, and that bound; None where it has none that may be far."""
        bound = int(self._bound[part])
        return (self._reading(self._boundless[part]), bound) if bound else None

    def has_trait(self, state: int, trait: int) -> bool:
        """Does some part of a state have a trait?"""
        first = int(self.arrays.set_first[state])
        parts = self.arrays.pool[first : first + int(self.arrays.set_count[state])] if first >= 0 else ()
        return any(int(self.arrays.traits[part]) & trait for part in parts)

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
        of = self._of(part)
        if len(of) == 4:
            return 0, None
        if len(of) == 3:
            least, most = character_counts(of[0])
            after, within = self._fewest_characters(of[1])
            return least + after, None if within is None or most is None else most + within
        known = lengths_of(of[0])
        if known is not None:
            return known.near, known.near
        span = self._span(part)
        return span.least, span.soon

    def is_dear(self, part: int) -> bool:
        """Is a part read as a whole, at the price of all that it combines, or of an automaton's next states?"""
        if not self._traits[part] & DEAR or self._edge_first[part] >= 0:
            return False
        of = self._all[part]
        if isinstance(of, Laid):
            return True
        return self.is_dear(of[0]) if len(of) == 4 else is_read_whole(of[0])

    def is_inside(self, part: int) -> bool:
        """Is this a pair of parts inside a character?"""
        return bool(self._traits[part] & INSIDE)

    def set_of(self, of: Reading, used: int) -> tuple[int, int]:
        """Where the parts of a reading stand, ``used`` entries of the pool being taken, and how many they are."""
        parts = sorted(set(self._parts(*of)))
        traits = self.arrays.traits
        parts = next(([part] for part in parts if traits[part] & ABSORBS), parts)
        while used + len(parts) > self.arrays.pool.size:
            self._grow("pool")
        self.arrays.pool[used : used + len(parts)] = parts
        return used, len(parts)

    def made_of(self, state: int) -> list[int] | None:
        """The parts from which the edges of a state follow; None where they are not known, or it is laid down."""
        first = self._set_first[state]
        if first < 0:
            return None
        found: list[int] = self._pool[first : first + self._set_count[state]].tolist()
        return None if len(found) == 1 and self._traits[found[0]] & WORDS else found

    def find_edges(self, part: int, most: int, inside: bool) -> int:
        """Make the edges of a part known, and of parts that it is the first to lead to, ``most``; of how many.

        ``inside``: also of pairs that are inside a character; those of a letter come with it.
        """
        if self._edge_first[part] >= 0:
            return 0
        skipped = WORDS if inside else WORDS | INSIDE
        work = [part]
        n = 0
        for item in work:
            if self._edge_first[item] >= 0:
                continue
            before = len(self._all)
            n += self._find_edges(item)
            if n >= most:
                break
            for new in range(before, len(self._all)):
                if self._edge_first[new] < 0 and not self._traits[new] & skipped and not self.is_dear(new):
                    work.append(new)
        return n

    def _find_edges(self, part: int) -> int:
        of = self._of(part)
        if len(of) == 2 and self._lay_minimal(*of):
            return 1
        if len(of) == 3:
            self._write(part, self._begun_edges(of[0], of[1]))
        elif len(of) == 4:
            self._write(part, self._edges_within(of[0], of[1]))
        elif of[0].kind is Kind.REPEAT and (found := self._count_ahead(part, *of)):
            return found
        elif of[1] and of[0].kind is Kind.INTERSECTION and (both := bounded_pattern(of[0])) is not None:
            run = self.part(both[1], of[1])
            ways = [self._edges_within(pattern, run) for pattern in self._parts(both[0], of[1])]
            self._write(part, [edge for row in ways for edge in row])
        else:
            self._write(part, self._edges(*of))
        return 1

    def _edges_within(self, pattern: int, run: int) -> list[tuple[int, int, int]]:
        """The edges of a pattern's part beside those of a run of any characters, as far as something is left."""
        for part in (pattern, run):
            if self._edge_first[part] < 0:
                self._find_edges(part)
        one, other = self._row(pattern), self._row(run)
        row: list[tuple[int, int, int]] = []
        for low, high, to in one:
            for first, last, after in other:
                if first <= high and low <= last and (found := self._within(to, after)) is not None:
                    row.append((max(low, first), min(high, last), found))
        return row

    def _row(self, part: int) -> list[tuple[int, int, int]]:
        first = self._edge_first[part]
        stop = first + self._edge_count[part]
        low, high, to = self._edge_views
        return list(zip(low[first:stop], high[first:stop], to[first:stop], strict=True))

    def _within(self, pattern: int, run: int) -> int | None:
        """The part of a pattern within the bounds of a run; that of the pattern where it keeps them anyway."""
        of: Within = (pattern, run, None, None)
        found = self._ids.get(of)
        if found is not None:
            return found if found >= 0 else None
        span, bounds = self._span(pattern), self._span(run)
        fits = span.fits(bounds)
        if fits is None:
            fits = inhabited(intersection((self._reading(pattern)[0], self._reading(run)[0])))
        if not fits:
            self._ids[of] = -1
            return None
        if span.keeps(bounds) or self._traits[pattern] & ABSORBS:
            found = self._ids[of] = pattern if span.keeps(bounds) else run
            return found
        one, other = self._traits[pattern], self._traits[run]
        traits = one & other & NULLABLE | (one | other) & (LOOPS | TEXTUAL | SPELLED_ONCE) | one & DEAR
        found = self._new(of, traits | INSIDE if len(self._of(run)) == 3 else traits)
        far = span.far(bounds)
        if far:
            bound, boundless = int(self._bound[pattern]), int(self._boundless[pattern])
            self._note_bound(found, min(far, bound or far), boundless if bound else pattern)
        return found

    def _span(self, part: int) -> Span:
        """How long the texts of a part are; remembered."""
        found = self._spans.get(part)
        if found is None:
            of = self._of(part)
            if len(of) == 3:
                found = self._span(of[1]).behind(span_of(of[0]))
            else:
                found = span_of(self._reading(part)[0])
            self._spans[part] = found
        return found

    def within_one(self, state: int) -> Reading | None:
        """A union of parts of patterns, all within the bounds of the same run, as one pattern within it."""
        first, n = int(self.arrays.set_first[state]), int(self.arrays.set_count[state])
        parts: list[int] = self.arrays.pool[first : first + n].tolist() if first >= 0 and n > 1 else []
        pairs = [of for of in map(self._of, parts) if len(of) == 4]
        if not pairs or any(of[1] != pairs[0][1] for of in pairs):
            return None
        bounds = self._span(pairs[0][1])
        others = [part for part in parts if len(self._of(part)) != 4]
        if pairs[0][1] in others:
            # Any text within the bounds, the others' among them.
            return self._reading(pairs[0][1])
        if not all(self._span(part).keeps(bounds) for part in others):
            return None
        pattern = alternation([self._reading(part)[0] for part in (*others, *(of[0] for of in pairs))])
        run, mode = self._reading(pairs[0][1])
        return intersection((pattern, run)), mode

    def _write(self, part: int, row: list[tuple[int, int, int]]) -> None:
        at = self.n_edges
        self.n_edges = at + len(row)
        while self.n_edges > self.arrays.to.size:
            self._grow("low", "high", "to")
        low, high, to = self._edge_views
        for i, edge in enumerate(row, at):
            low[i], high[i], to[i] = edge
        self._edge_count[part] = len(row)
        self._edge_first[part] = at

    def _edges(self, content: Expr, mode: int) -> list[tuple[int, int, int]]:
        """The edges of a sequence: of its first item, and of those behind while all before may be left out."""
        row: list[tuple[int, int, int]] = []
        while True:
            head, tail = begins(content)
            is_repeated = head.kind is Kind.REPEAT
            letter = letter_of(cast(Expr, head.parts[0]) if is_repeated else head)
            if letter is None:
                for first, after in begins_with(head):
                    row += self._ways(first, concat(after, tail), mode)
            else:
                for follows in self._parts(concat(without_one(head), tail) if is_repeated else tail, mode):
                    row += self._spelled(letter, follows)
            if tail is EPSILON or not head.nullable:
                return row
            content = tail

    def _ways(self, first: Expr, tail: Expr, mode: int) -> list[tuple[int, int, int]]:
        """The edges of a letter, or of what is read as a whole, with something behind it."""
        row: list[tuple[int, int, int]] = []
        letter = letter_of(first)
        if letter is not None:
            for follows in self._parts(tail, mode):
                row += self._spelled(letter, follows)
            return row
        for low, high, begun in edges(first):
            if tail is EPSILON and begun.kind is Kind.RECURSION and begun.inhabited:
                # The state of an automaton, of which there may be many, is a part as it stands.
                part = self._known((begun, mode))
                row.append((low, high, self.part(begun, mode) if part is None else part))
                continue
            if is_begun(begun):
                parts = [self._begun(begun, part) for part in self._parts(tail, mode)]
            else:
                parts = self._parts(concat(begun, tail), mode)
            row += [(low, high, part) for part in parts]
        return row

    def _count_ahead(self, part: int, content: Expr, mode: int) -> int:
        """Make the edges of a run with a far bound known, and those of the next characters; of how many, 0: it is none.

        The parts of each character are those of the one before with other numbers: what is left of the character, and
        the run with a bound less by one.
        """
        body, low, high = cast("tuple[Expr, int, int | None]", content.parts)
        letter = letter_of(body)
        if letter is None or high is None or high < 2 * COUNTED or low:
            return 0
        runs = [repeat(body, 0, high - i) for i in range(1, COUNTED + 1)]
        found = next((i for i, run in enumerate(runs) if (run, mode) in self._ids), COUNTED)
        if not found:
            return 0
        n_rests, start = len(letter.rests), len(self._all)
        size = n_rests + 1
        stop = start + found * size
        for i in range(found):
            follows = start + i * size + n_rests
            self._all += [(begun, follows, None) for begun in letter.rests]
            self._all.append((runs[i], mode))
        made = self._all[start:]
        for of in made:
            untrack(of)
        self._ids.update(zip(cast("list[Reading | Begun]", made), range(start, stop), strict=True))
        while stop > self.arrays.traits.size:
            self._grow(*_PER_PART)
        rows = (letter.first, *letter.rows)
        counts = [len(row) for row in rows]
        edges = [edge for row in rows for edge in row]
        at = self.n_edges
        self.n_edges = end = at + found * len(edges)
        while end > self.arrays.to.size:
            self._grow("low", "high", "to")
        # Slices of views take a third of the time of arrays'.
        lows, highs, _ = self._edge_views
        lows[at:end] = bytes([low for low, _, _ in edges]) * found
        highs[at:end] = bytes([high for _, high, _ in edges]) * found
        blocks = np.arange(found, dtype=np.int32)[:, None]
        targets = np.array([n_rests if to < 0 else to for _, _, to in edges], np.int32)
        self.arrays.to[at:end] = (start + size * blocks + targets).ravel()
        self._edge_count[part], self._edge_first[part] = counts[0], at
        self._edge_count[start:stop] = array("i", [*counts[1:], counts[0]]) * found
        firsts = np.array([*accumulate(counts)], np.int32)
        self.arrays.edge_first[start:stop] = (at + len(edges) * blocks + firsts).ravel()
        # The edges of the last run are not known.
        self._edge_first[stop - 1] = -1
        traits = self._traits[part]
        self._traits[start:stop] = array("i", [*[traits & (LOOPS | TEXTUAL | SPELLED_ONCE)] * n_rests, traits]) * found
        if self._bound[part]:
            boundless = self._boundless[part]
            begun = [self._begun(rest, boundless) for rest in letter.rests]
            bounds = [bound if bound > NEAR else 0 for bound in range(high - 1, high - 1 - found, -1)]
            self._bound[start:stop] = array("i", [bound for bound in bounds for _ in range(size)])
            self._boundless[start:stop] = array("i", [*begun, boundless]) * found
        for i in range(found):
            state = self._state_of(runs[i], mode)
            if state:
                self._alone[start + i * size + n_rests] = state
        return found

    def _spelled(self, letter: Letter, follows: int) -> list[tuple[int, int, int]]:
        """The edges of a letter before a part; those of its rests are made known."""
        if not letter.rests:
            return [(low, high, follows) for low, high, _ in letter.first]
        rests = [*[self._begun(begun, follows) for begun in letter.rests], follows]
        for part, row in zip(rests, letter.rows, strict=False):
            if self._edge_first[part] < 0:
                self._write(part, [(low, high, rests[to]) for low, high, to in row])
        return [(low, high, rests[to]) for low, high, to in letter.first]

    def _begun_edges(self, begun: Expr, follows: int) -> list[tuple[int, int, int]]:
        row: list[tuple[int, int, int]] = []
        for low, high, target in edges(begun):
            if target is EPSILON:
                row.append((low, high, follows))
            elif is_begun(target):
                row.append((low, high, self._begun(target, follows)))
            else:
                content, mode = self._reading(follows)
                row += [(low, high, part) for part in self._parts(concat(target, content), mode)]
        return row

    def _parts(self, content: Expr, mode: int) -> list[int]:
        return [self.part(item, mode) for item in alternatives(content)]

    def part(self, content: Expr, mode: int) -> int:
        """The part of a language that is no union."""
        of = (content, mode)
        found = self._known(of)
        if found is None:
            found = self._new(of, traits_of(content, mode))
            self._minimal.note(content, mode, found)
            if mode and content.kind is Kind.REPEAT and (run := far_run(content)) is not None:
                self._note_bound(found, run[1], self.part(run[0], mode))
            state = self._state_of(content, mode)
            if state:
                self._alone[found] = state
        return found

    def _known(self, of: Reading) -> int | None:
        """The part that a reading is, if it is one."""
        found = self._ids.get(of)
        return self._minimal.find(*of) if found is None else found

    def _lay_minimal(self, content: Expr, mode: int) -> bool:
        """Make the edges known of a state of a minimal automaton, and of those around it; False: it is none."""
        laid = self._minimal.lay(content, mode, self)
        if laid is None:
            return False
        self._all += [laid] * laid.numbers.size
        for part, of in laid.made():
            self._alone[part] = self._state_of(*of)
        return True

    def _begun(self, begun: Expr, follows: int) -> int:
        of = (begun, follows, None)
        found = self._ids.get(of)
        if found is None:
            found = self._new(of, self._traits[follows] & (LOOPS | TEXTUAL | SPELLED_ONCE))
            bound = self._bound[follows]
            if bound:
                self._note_bound(found, bound, self._begun(begun, self._boundless[follows]))
        return found

    def _new(self, of: Reading | Begun | Within, traits: int) -> int:
        part = self._ids[of] = len(self._all)
        self._all.append(of)
        untrack(of)
        if part == self.arrays.traits.size:
            self._grow(*_PER_PART)
        self._traits[part] = traits
        self._edge_first[part] = -1
        return part

    def _note_bound(self, part: int, bound: int, boundless: int) -> None:
        self._bound[part], self._boundless[part] = bound, boundless

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
        self._grow(*_PER_PART, "low", "high", "to")

    def _grow(self, *names: str) -> None:
        for name in names:
            old = getattr(self.arrays, name)
            grown = gradual_zeros(2 * old.nbytes).view(old.dtype)
            grown[: old.size] = old
            self.arrays = self.arrays._replace(**{name: grown})
        self._look()

    def _look(self) -> None:
        """Look at the arrays that are written entry by entry."""
        arrays = self.arrays
        self._edge_views = arrays.low.data, arrays.high.data, arrays.to.data
        self._edge_first, self._edge_count = arrays.edge_first.data, arrays.edge_count.data
        self._traits, self._alone = arrays.traits.data, arrays.alone.data
        self._bound, self._boundless = arrays.bound.data, arrays.boundless.data
        self._set_first, self._set_count, self._pool = arrays.set_first.data, arrays.set_count.data, arrays.pool.data


_PER_STATE = ("set_first", "set_count", "asked")
_PER_PART = ("edge_first", "edge_count", "traits", "alone", "bound", "boundless", "met", "work")
"""The arrays with an entry per state and per part: 0 at first, but for the first of each, which is -1."""
