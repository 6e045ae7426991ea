"""Decides whether some completion avoids every name and item already used, and finds one.

The automaton alone has no dead ends, and every array of distinct items and every object has, by the conditions of
`guided.grammar.json_schema.satisfiability.distinct`, a new value for each place that must be filled.  So a text that
can no longer become a duplicate (`guided.constraint.distinct.collisions`) can end.  One that may become a duplicate can
end exactly if some text leads it away.  That is a depth-first search, usually of one byte.  Where the search takes long
and finitely many strings may come, these are listed (`guided.constraint.distinct.finite_strings`).
"""

from __future__ import annotations

import heapq
import weakref
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from guided.constraint.distinct.finite_strings import FiniteStrings
from guided.constraint.distinct.json_text import BACKSLASH, COLON, COMMA, NEEDS_ESCAPE, QUOTE, Expects, Mode, Text
from guided.constraint.distinct.json_values import STRING_KEY, is_zero
from guided.constraint.distinct.lexer_strings import LETTERS
from guided.constraint.distinct.string_counts import StringCounts
from guided.constraint.distinct.thread_strings import ThreadStrings
from guided.constraint.distinct.used_keys import UsedKeys
from guided.errors import LimitError
from guided.kernels.layout import DEAD, FINISHED

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine

_FIRST = np.asarray(sorted(range(256), key=lambda byte: (not chr(byte).isalnum() or byte > 127, byte == 0x30, byte)))
"""Bytes in the order in which a way out is looked for: digits and letters, of which one usually is a new one, first.

A zero comes late, since zeros at the end of a number may be undone by an exponent.
"""


_LENGTHENING = {Mode.NAME: LETTERS, Mode.STRING: LETTERS, Mode.SCALAR: b"19"}
"""Bytes of which each is one more character, or digit that counts."""
_DIGIT = 0x31
_BEGINNING = (QUOTE, _DIGIT)
_PLAIN_ESCAPE = 0x6E
"""What ends an escape that a backslash begins."""
_MOST_SPACES = 128
"""States behind white space that are looked at; where it may be as long as one likes there is one."""
_ESCAPING = 400
"""States in which a way to a free value is looked for, about 2 ms; a way over a declared name takes some forty."""
_PATIENCE = 48
"""States that a search visits before what may come is listed; most find a way out in ten, and a list takes longer."""
_FRESH, _VALUE, _BEHIND, _STRING, _CONTENT = range(5)
"""A name or value may begin; a value; within or behind a scalar; in a string; in one that is no name."""
_Reached: TypeAlias = tuple[int, int, bool]
"""A state, what is read there, and whether that is within the item, so that a comma does not leave it."""
_READING = {Mode.BETWEEN: _FRESH, Mode.NAME: _STRING, Mode.STRING: _CONTENT}
_WIDE = 24
"""Bytes after which what a string says hardly matters: two of them are followed, and the string's end."""
_BRACKETS, _OPEN = b"[]}", 0x7B
_BEFORE_NAME = frozenset(b'" \t\n\r')
_BEFORE, _SPACE = {0x7B: _FRESH, COMMA: _FRESH, COLON: _VALUE}, b" \t\n\r"
_LETTERS = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')


class Liveness:
    """Answers for the pairs of one checked machine."""

    def __init__(self, machine: DistinctMachine) -> None:
        self._machine: DistinctMachine = weakref.proxy(machine)
        self.inside = ThreadStrings(machine)
        self.strings = FiniteStrings(machine)
        self.counts = StringCounts(machine)
        self._alive: dict[tuple[int, Text], bool] = {}
        self._open: dict[tuple[int, Mode], bool] = {}
        self._leads: dict[int, bool] = {}
        self._escaping: dict[_Reached, bool] = {}
        self._spaces: dict[int, tuple[int, ...]] = {}
        self._uniform: dict[tuple[int, Mode], bool] = {}
        self._bytes: dict[int, list[int]] = {}
        self._byte_sets: dict[int, frozenset[int]] = {}
        self._ends: dict[int, bool] = {}

    def alive(self, state: int, text: Text | None) -> bool:
        """Is there a text that goes on from here, repeats nothing, and ends?"""
        machine = self._machine
        if text is None or not machine.likeness.consistent(text):
            return True
        if machine.open_names and machine.likeness.is_about_names(text):
            # Only a name is in question, and of infinitely many finitely many are taken.
            return True
        if self.is_open(state, text) or self._is_open_behind_escape(state, text):
            return True
        begins = text.mode is Mode.BETWEEN and text.level is not None and text.level.expects is Expects.VALUE
        if begins and self._leads_to_open(state):
            return True
        found = self._alive.get((state, text))
        if found is None:
            found = self._counted(state, text)
        if found is None and self._outnumbers(state, text):
            found = self._alive[state, text] = True
        if found is None:
            found = self._has_new_name(state, text)
            if found is not None:
                self._alive[state, text] = found
        if found is None:
            found = self._escapes(state, text) or self._search(state, text)
        return found

    def _outnumbers(self, state: int, text: Text) -> bool:
        """May more strings come here, as an item or a name, than begin so among those that are there?"""
        level = text.level
        if level is None or self._machine.likeness.candidates(level):
            return False
        names = text.mode is Mode.NAME or (text.mode is Mode.BETWEEN and level.expects is Expects.NAME)
        if not (names or level.compares):
            return False
        if text.mode in (Mode.NAME, Mode.STRING):
            begun = sum(1 for _ in level.seen.beginning(text.text if names else STRING_KEY + text.text))
            return self.counts.more_than(state, text.pending, begun)
        if text.mode is not Mode.BETWEEN or not (names or level.expects is Expects.VALUE):
            return False
        quote = self._machine.byte_step(state, QUOTE)
        return quote != DEAD and self.counts.more_than(quote, b"", level.seen.size)

    def _has_new_name(self, state: int, text: Text) -> bool | None:
        """The same of a name of which few may come; None where they are not told, or might be no names."""
        level = text.level
        if level is None or self._machine.likeness.candidates(level):
            return None
        if text.mode is Mode.NAME:
            return self._is_new_name(state, text.text, text.pending, level.seen)
        if text.mode is not Mode.BETWEEN or level.expects is not Expects.NAME:
            return None
        behind = self.behind_space(state)
        if not behind or any(self.next_byte_set(at) - _BEFORE_NAME for at in behind):
            return None
        begun = (self._machine.byte_step(at, QUOTE) for at in behind)
        found = {self._is_new_name(at, b"", b"", level.seen) for at in begun if at != DEAD}
        return True if True in found else None if None in found else False

    def _is_new_name(self, state: int, begun: bytes, pending: bytes, seen: UsedKeys) -> bool | None:
        rests = self.inside.names(state, pending)
        if rests is None:
            return None
        if any(begun + rest not in seen for rest in rests):
            return True
        for rest in rests:
            written = (b"\\u%04x" % rest[0])[len(pending) :] + rest[1:] if pending else rest
            if NEEDS_ESCAPE.search(rest[1:] if pending else rest):
                return None
            after = self._machine.inner.advance_text(state, written + b'"')
            if after != DEAD and self._machine.frames.without_undeclared_name(after) != DEAD:
                return None
        return False

    def _counted(self, state: int, text: Text, *, listing: bool = False) -> bool | None:
        """The same by the strings that may come; None where these are not listed, or do not tell."""
        level, mode = text.level, text.mode
        if level is None or not level.compares or (mode is Mode.BETWEEN and level.expects is not Expects.VALUE):
            return None
        if mode not in (Mode.BETWEEN, Mode.STRING) or self._machine.likeness.candidates(level):
            return None
        pending = None if mode is Mode.BETWEEN else text.pending
        rests = (self.strings.listed if listing else self.strings.known)(state, pending)
        if rests is None:
            return None
        return rests.has_new(STRING_KEY + text.text, level.seen) or (False if rests.whole else None)

    def is_open(self, state: int, text: Text) -> bool:
        """Is there a byte that lengthens the name, string or number as often as one likes?

        Then infinitely many may come of it, and only finitely many have been seen.
        """
        tried = _LENGTHENING.get(text.mode)
        if tried is None or text.pending or (text.mode is Mode.SCALAR and is_zero(text.text)):
            return False
        return self._has_loop(state, text.mode, tried)

    def _is_open_behind_escape(self, state: int, text: Text) -> bool:
        """The same behind one way to end the escape that is being read."""
        return bool(text.pending) and self.is_open_string(state, text.mode, text.pending)

    def is_open_string(self, state: int, mode: Mode, pending: bytes) -> bool:
        """The same of a string or name, behind one way to end the escape that is being read, if there is one."""
        if pending:
            if self.inside.loops_behind_escape(state, pending):
                return True
            if len(pending) > 5:
                return False
            for byte in (_PLAIN_ESCAPE,) if pending == b"\\" else b"\\u0061"[len(pending) :]:
                state = self._machine.byte_step(state, byte)
        return state != DEAD and self._has_loop(state, mode, _LENGTHENING[mode])

    def _has_loop(self, state: int, mode: Mode, tried: bytes) -> bool:
        key = (state, mode)
        found = self._open.get(key)
        if found is None and mode is not Mode.SCALAR and self.inside.has_looping_thread(state):
            found = self._open[key] = True
        if found is None:
            step = self._machine.byte_step
            self._machine.byte_steps(state, tried)
            after = [then for byte in tried if (then := step(state, byte)) != DEAD]
            # One byte further counts as well: names that are declared keep a name from looping at once.
            found = self._open[key] = state in after or any(
                step(then, byte) == then for then in after for byte in tried
            )
        return found

    def _leads_to_open(self, state: int) -> bool:
        """Can a string or number begin here of which infinitely many may come?"""
        found = self._leads.get(state)
        if found is None:
            self._machine.byte_steps(state, _BEGINNING)
            quote = self._machine.byte_step(state, QUOTE)
            digit = self._machine.byte_step(state, _DIGIT)
            found = self._leads[state] = (
                quote != DEAD and self._has_loop(quote, Mode.STRING, _LENGTHENING[Mode.STRING])
            ) or (digit != DEAD and self._has_loop(digit, Mode.SCALAR, _LENGTHENING[Mode.SCALAR]))
        return found

    def _escapes(self, state: int, text: Text) -> bool:
        """Is it plain to see that the item of which this is a part can still get a value, or a name, of its own?

        A way is looked for that stays in the item and leads to where a string or number of infinitely many may begin;
        it depends on the automaton's state alone.  Undeclared names on the way can be new ones, being infinitely many.
        """
        level = text.level
        if level is None or not level.gathers or not self._machine.open_names or text.mode is Mode.SCALAR:
            return False
        if text.pending:
            state = self._behind_escape(state, text.pending)
        if state == DEAD or (level.compares and (text.mode is not Mode.BETWEEN or level.expects is not Expects.VALUE)):
            return False
        return self._leads_out(state, text.mode, level.compares)

    def _behind_escape(self, state: int, pending: bytes) -> int:
        """The state behind one way to end an escape; `DEAD` where none is known."""
        way = self.inside.way_behind_escape(state, pending)
        return self._machine.inner.advance_text(state, way) if way else DEAD

    def _leads_out(self, state: int, mode: Mode, compares: bool) -> bool:
        place = (state, _READING[mode], not compares)
        found = self._escaping.get(place)
        return self._finds_open(place) if found is None else found

    def leads_out_behind(self, state: int) -> bool:
        """Behind the end of a name or string: is there a way, in the item around it, to a free value?"""
        place = (state, _BEHIND, True)
        found = self._escaping.get(place)
        return self._finds_open(place) if found is None else found

    def is_free(self, state: int, mode: Mode, pending: bytes, in_array: bool, *, compares: bool) -> bool:
        """As `alive` where a next item or member, or what is read of it, has just begun: whatever is there already.

        ``in_array``: does the innermost container, which gathers, hold items?  Decided by the automaton's state alone;
        wrong only where it says False.
        """
        if pending:
            if self.is_open_string(state, mode, pending):
                return True
            state = self._behind_escape(state, pending)
            if state == DEAD:
                return False
        if mode is Mode.BETWEEN:
            if in_array and self._leads_to_open(state):
                return True
        elif self._has_loop(state, mode, _LENGTHENING[mode]):
            return True
        if not self._machine.open_names or mode is Mode.SCALAR or (compares and mode is not Mode.BETWEEN):
            return False
        return self._leads_out(state, mode, compares)

    def behind_space(self, state: int) -> tuple[int, ...]:
        """The state and those that white space leads to; none where these are too many to look at."""
        found = self._spaces.get(state)
        if found is None:
            reached = [state]
            met = {DEAD, state}
            for at in reached:
                for byte in _SPACE:
                    then = self._machine.byte_step(at, byte)
                    if then not in met:
                        met.add(then)
                        reached.append(then)
                if len(reached) > _MOST_SPACES:
                    reached.clear()
            found = self._spaces[state] = tuple(reached)
        return found

    def _finds_open(self, place: _Reached) -> bool:
        """Is there a way to where a string or number of infinitely many may begin?

        What lies on the way that is found leads there too, and is remembered.
        """
        step, escaping = self._machine.byte_step, self._escaping
        parents: dict[_Reached, _Reached | None] = {place: None}
        stack = [place]
        while stack and len(parents) < _ESCAPING:
            here = stack.pop()
            at, reading, inside = here
            if (
                escaping.get(here)
                # Where a value may begin that leads out, so it may where a name may begin as well.
                or (reading == _FRESH and escaping.get((at, _VALUE, inside)))
                or (reading in (_FRESH, _VALUE) and self._leads_to_open(at))
            ):
                passed: _Reached | None = here
                while passed is not None:
                    escaping[passed] = True
                    passed = parents[passed]
                return True
            ways = self.next_bytes(at)
            if reading == _CONTENT and len(ways) > _WIDE:
                ways = [QUOTE, *ways[:2]] if QUOTE in ways else ways[:2]
            elif reading not in (_STRING, _CONTENT):
                # White space that may be left out leads nowhere else, and is as many states as it has characters.
                ways = [byte for byte in ways if byte not in _SPACE] or ways
            self._machine.byte_steps(at, (byte for byte in ways if byte != BACKSLASH))
            for byte in reversed(ways):
                if reading in (_STRING, _CONTENT):
                    if byte == BACKSLASH:
                        continue
                    then = (step(at, byte), _BEHIND if byte == QUOTE else reading, inside)
                elif byte in _BRACKETS or (byte == COMMA and not inside):
                    continue
                elif byte == QUOTE:
                    then = (step(at, byte), _CONTENT if reading == _VALUE else _STRING, inside)
                else:
                    # Not within a number: zeros may lengthen it without a new value.
                    fresh = reading if reading in (_FRESH, _VALUE) and byte in _SPACE else _BEHIND
                    then = (step(at, byte), _BEFORE.get(byte, fresh), inside or byte == _OPEN)
                if then[0] > FINISHED and then not in parents:
                    parents[then] = here
                    stack.append(then)
        escaping.update(dict.fromkeys((place,) if stack else parents, False))
        return False

    def bytes_to_new(self, state: int, text: Text) -> int | None:
        """A bound on the bytes after which an open name, string or number has gone its own way and the text ended.

        By repeating one byte, once more often than anything seen is long in number; None where nothing is open, or not
        so plainly.
        """
        level = text.level
        if level is None or level.collects or not self.is_open(state, text):
            return None
        step, tried = self._machine.byte_step, _LENGTHENING[text.mode]
        around = [state, *(step(state, byte) for byte in tried)]
        looping = [at for at in around if at != DEAD and any(step(at, byte) == at for byte in tried)]
        if not looping:
            return None
        return level.seen.size + 2 + self._machine.inner.cost(looping[0])

    def is_uniform(self, state: int, text: Text) -> bool:
        """Is it open, and do all digits, or all characters that need no escape, leave the automaton where it is?"""
        if not self.is_open(state, text):
            return False
        key = (state, text.mode)
        found = self._uniform.get(key)
        if found is None and text.mode is not Mode.SCALAR and self.inside.holds_any_text(state):
            found = self._uniform[key] = True
        if found is None:
            tried = b"0123456789" if text.mode is Mode.SCALAR else _LETTERS
            found = self._uniform[key] = all(self._machine.byte_step(state, byte) == state for byte in tried)
        return found

    def next_bytes(self, state: int) -> list[int]:
        """The bytes that the automaton can read next, likely ways out first."""
        found = self._bytes.get(state)
        if found is None:
            marked = self._machine.inner.next_bytes(state)
            found = self._bytes[state] = _FIRST[marked[_FIRST] != 0].tolist()
        return found

    def next_byte_set(self, state: int) -> frozenset[int]:
        """The same without order."""
        found = self._byte_sets.get(state)
        if found is None:
            found = self._byte_sets[state] = frozenset(self.next_bytes(state))
        return found

    def may_end(self, state: int) -> bool:
        """May the whole text end in a state of the automaton?"""
        found = self._ends.get(state)
        if found is None:
            found = self._ends[state] = self._machine.inner.is_accepting(state)
        return found

    def _search(self, state: int, text: Text) -> bool:
        machine = self._machine
        likeness, reader = machine.likeness, machine.reader
        parents: dict[tuple[object, ...], tuple[object, ...] | None] = {}
        start = (state, *likeness.key(text))
        parents[start] = None
        pairs: list[tuple[int, Text, tuple[object, ...]]] = [(state, text, start)]
        work = [0]
        visited = 0
        while work:
            if visited == _PATIENCE:
                counted = self._counted(state, text, listing=True)
                if counted is not None:
                    return counted
            visited += 1
            at, now, key = pairs[work.pop()]
            known = self._alive.get((at, now))
            if known is None:
                known = self._counted(at, now)
            if known:
                self._remember(parents, key, pairs)
                return True
            if known is False:
                continue
            ending = []
            if self.may_end(at):
                self._remember(parents, key, pairs)
                return True
            for byte in self.next_bytes(at):
                inside = reader.inside(now, byte) if now.mode is not Mode.BETWEEN else None
                # Inside a name, string or number a byte needs no automaton to show that it leads away.
                if inside is not None and not likeness.consistent(inside):
                    self._remember(parents, key, pairs)
                    return True
                ending.append(byte)
            for byte in reversed(ending):
                after, then = machine.step(at, now, byte)
                if after == DEAD:
                    continue
                if then is None or not likeness.consistent(then):
                    self._remember(parents, key, pairs)
                    return True
                following = (after, *likeness.key(then))
                if following not in parents:
                    parents[following] = key
                    work.append(len(pairs))
                    pairs.append((after, then, following))
            if len(pairs) > machine.limits.search_states:
                raise LimitError(
                    f"whether a name or item can still be a new one was not decided in {len(pairs)} states",
                    remedy="Let names or items be longer or freer, or pass Limits(search_states=...).",
                )
        for at, now, _ in pairs:
            self._alive[at, now] = False
        return False

    def _remember(
        self,
        parents: dict[tuple[object, ...], tuple[object, ...] | None],
        key: tuple[object, ...] | None,
        pairs: list[tuple[int, Text, tuple[object, ...]]],
    ) -> None:
        """Everything on the way from the start is alive."""
        by_key = {key: (at, now) for at, now, key in pairs}
        while key is not None:
            self._alive[by_key[key]] = True
            key = parents[key]

    def way_out(self, state: int, text: Text) -> bytes:
        """A short text after which nothing in progress can become a duplicate: best first by the automaton's prices.

        There is one, since no dead end is entered, so it is looked for as long as it takes.
        """
        machine = self._machine
        seen: set[tuple[object, ...]] = set()
        queue: list[tuple[int, bytes, int, int]] = [(0, b"", 0, state)]
        texts: list[Text | None] = [text]
        while queue:
            _, written, index, at = heapq.heappop(queue)
            now = texts[index]
            if now is None or not machine.likeness.consistent(now):
                return written
            key = (at, *machine.likeness.key(now))
            if key in seen:
                continue
            seen.add(key)
            for byte in self.next_bytes(at):
                after, then = machine.step(at, now, byte)
                if after > FINISHED:
                    texts.append(then)
                    price = len(written) + 1 + machine.inner.cost(after)
                    heapq.heappush(queue, (price, written + bytes((byte,)), len(texts) - 1, after))
        raise AssertionError("a live state has a way out")
