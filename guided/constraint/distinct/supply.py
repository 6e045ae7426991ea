"""How many strings may still come from a state of the automaton: more than some number, or infinitely many.

This answers "may more come from here than are already used?".  Mostly it follows from the automaton's threads and their
lexer states (`guided.constraint.distinct.lexer_strings`), which costs less than a step.  It counts texts without
escapes behind what is read, which differ if their bytes do.  So every number is a lower bound, and it counts no further
than it is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from guided.constraint.distinct.json_text import BACKSLASH, QUOTE, Expects, Mode
from guided.constraint.distinct.lexer_strings import LETTERS, LexerStrings
from guided.constraint.distinct.open_containers import OpenContainers
from guided.constraint.distinct.steps import Steps
from guided.kernels.data.layout import CANONICAL, DEAD

__all__ = ["ANY_ASCII", "MANY", "Supply"]

MANY = 8
"""Strings that are worth a count before a way out is looked for, which takes longer."""
ANY_ASCII = frozenset((b"\\", b"\\u", b"\\u0", b"\\u00"))
"""Escapes that may still become any character of ASCII."""
_STEPS = 64
"""States visited for each string that is asked for; names have some twelve characters."""
_FEWEST = 4
"""Strings that are counted at least; after that twice as many as are asked for, so that sets may grow by one."""
_WHOLE = 6
"""Bytes of an escape by a character's number."""
_HEX = b"0123456789abcef"
"""Digits with which an escape may go on so that each spells another character, and no half of a pair."""
_FEW_WAYS = 24
"""Bytes below which those of all threads are looked for."""
_WORDS = 100
"""Words that a name must not become which are counted; more are rare."""
_NOT_PLAIN = frozenset((BACKSLASH, QUOTE))
_LENGTHENING = {Mode.NAME: LETTERS, Mode.STRING: LETTERS, Mode.SCALAR: b"19"}
"""Bytes of which each is one more character, or digit that counts."""
_DIGIT = 0x31
_PLAIN_ESCAPE = 0x6E
"""What ends an escape that a backslash begins."""


class Supply:
    """Answers for the states of one automaton, inside strings and names; its lock must be held."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._strings = LexerStrings.of(steps.automaton.states)
        self._threads: dict[int, list[tuple[int, int, int]]] = {}
        self._any_text: dict[int, bool] = {}
        self._anyhow: dict[tuple[int, Mode], bool] = {}
        self._n_ways: dict[int, int] = {}
        self._spelled_once: dict[int, bool] = {}
        self._escapes_only: dict[int, bool] = {}
        self._open: dict[tuple[int, Mode], bool] = {}
        self._open_values: dict[int, bool] = {}
        self._containers = OpenContainers(steps)
        self._infinite: dict[tuple[int, bytes], bool] = {}
        self._escaped: dict[tuple[int, bytes], tuple[int, int]] = {}
        self._counts: dict[tuple[int, bytes], tuple[int, int]] = {}
        """What was found, and how much was asked for; `sys.maxsize` for what is a whole count."""

    def more_than(self, state: int, pending: bytes, number: int) -> bool:
        """May more strings than this come of one that was read so far?  Wrong only where it says False."""
        key = (state, pending)
        count, asked = self._counts.get(key, (0, 0))
        if count <= number and asked <= number:
            if pending in ANY_ASCII:
                if self.more_behind_escape(state, pending, number):
                    return True
                if self._escaped[self._escape(state, pending)][1] == sys.maxsize:
                    return False
            count, asked = self._counts[key] = self._bound(state, pending, number)
        return count > number

    def more_behind_escape(self, state: int, pending: bytes, number: int) -> bool:
        """The same before or in an escape that may become any character of ASCII that is spelled so."""
        key = self._escape(state, pending)
        count, asked = self._escaped.get(key, (0, 0))
        if count <= number and asked <= number:
            asked = max(_FEWEST, 2 * number + 1)
            count, whole = self._n_behind_escape(state, pending, asked)
            self._escaped[key] = (count, sys.maxsize if whole else asked)
        return count > number

    def _escape(self, state: int, pending: bytes) -> tuple[int, bytes]:
        """A place in an escape: what was read of it matters only where not all characters are spelled so."""
        return state, pending if self._is_spelled_once(state) else b""

    def _bound(self, state: int, pending: bytes, number: int) -> tuple[int, int]:
        """For `_counts`: what is found, and how much was asked for."""
        asked = max(_FEWEST, 2 * number + 1)
        if not pending:
            # Some come of each byte, which costs less to see than whether they are infinitely many.
            count = self.n_ways(state)
            if count > number:
                return count, number
            count, whole = self._n_texts(state, asked)
            if whole or count > number:
                return count, sys.maxsize if whole else number
        if self.is_infinite(state, pending):
            return sys.maxsize, sys.maxsize
        count = self._counted(state, pending, asked)
        return count, max(asked, self._counts.get((state, pending), (0, 0))[1])

    def _counted(self, state: int, pending: bytes, wanted: int) -> int:
        """Depth first; of states behind which nothing is left to look at the number is remembered as it is."""
        step, counts = self._steps.byte_step, self._counts
        ends, ways = self._ways(state, pending)
        count = int(ends)
        stack = [(state, pending, ways, 0)]
        left = _STEPS * wanted
        while stack and left and count < wanted:
            left -= 1
            at, escape, ways, before = stack[-1]
            byte = next(ways, -1)
            if byte < 0:
                stack.pop()
                if not escape:
                    counts[at, b""] = (count - before, sys.maxsize)
                continue
            then = step(at, byte)
            if then != DEAD:
                longer = escape + b"x" if 0 < len(escape) < _WHOLE - 1 else b""
                known = None if longer else counts.get((then, b""))
                if known is not None and known[1] == sys.maxsize:
                    count += known[0]
                    continue
                before = count
                ends, ways = self._ways(then, longer)
                count += ends
                stack.append((then, longer, ways, before))
        return count

    def _ways(self, state: int, escape: bytes) -> tuple[bool, Iterator[int]]:
        """May the string end, and the bytes by which it may go on."""
        if escape:
            size = len(escape)
            return False, iter(b"u" if size == 1 else _HEX if size < _WHOLE else b"")
        steps = self._steps
        ways = (byte for byte in steps.next_bytes(state) if byte != QUOTE and byte != BACKSLASH)
        # It may be a name that must not come.
        return QUOTE in steps.next_byte_set(state) and steps.byte_step(state, QUOTE) != DEAD, ways

    def is_infinite(self, state: int, pending: bytes) -> bool:
        """Is it plain to see that infinitely many may come?"""
        key = (state, pending)
        found = self._infinite.get(key)
        if found is None:
            found = self._infinite[key] = self.is_open_string(state, Mode.STRING, pending)
        return found

    def is_open_string(self, state: int, mode: Mode, pending: bytes) -> bool:
        """As `is_open`, of a string or name, behind one way to end the escape that is being read, if there is one."""
        if pending:
            if self._loops_behind_escape(state, pending):
                return True
            if len(pending) > 5:
                return False
            for byte in (_PLAIN_ESCAPE,) if pending == b"\\" else b"\\u0061"[len(pending) :]:
                state = self._steps.byte_step(state, byte)
        return state != DEAD and self.is_open(state, mode)

    def is_open(self, state: int, mode: Mode) -> bool:
        """Does some byte lengthen what is being read as often as one likes, so that infinitely many may come?"""
        key = (state, mode)
        found = self._open.get(key)
        if found is None and mode is not Mode.SCALAR and self._has_looping_thread(state):
            found = self._open[key] = True
        if found is None:
            step, tried = self._steps.byte_step, _LENGTHENING[mode]
            self._steps.byte_steps(state, tried)
            after = [then for byte in tried if (then := step(state, byte)) != DEAD]
            # One byte further counts as well: names that are declared keep a name from looping at once.
            found = self._open[key] = state in after or any(
                step(then, byte) == then for then in after for byte in tried
            )
        return found

    def is_open_value(self, state: int) -> bool:
        """Can a value begin here of which infinitely many may come?"""
        return self.is_open_scalar(state) or self._containers.may_begin(state, self.is_open_scalar)

    def is_open_container(self, state: int, expects: Expects = Expects.NAME) -> bool:
        """Between the parts of a container: can infinitely many things come before it ends?"""
        return self._containers.goes_on(state, expects, self.is_open_scalar)

    def is_open_scalar(self, state: int) -> bool:
        """Can a string or number begin here of which infinitely many may come?"""
        found = self._open_values.get(state)
        if found is None:
            self._steps.byte_steps(state, (QUOTE, _DIGIT))
            quote, digit = self._steps.byte_step(state, QUOTE), self._steps.byte_step(state, _DIGIT)
            found = self._open_values[state] = (quote != DEAD and self.is_open(quote, Mode.STRING)) or (
                digit != DEAD and self.is_open(digit, Mode.SCALAR)
            )
        return found

    def looping(self, state: int, mode: Mode) -> int | None:
        """A state, here or one byte on, that some byte leads back to itself."""
        step, tried = self._steps.byte_step, _LENGTHENING[mode]
        around = [state, *(step(state, byte) for byte in tried)]
        return next((at for at in around if at != DEAD and any(step(at, byte) == at for byte in tried)), None)

    def _threads_of(self, state: int) -> list[tuple[int, int, int]]:
        """The automaton's threads, remembered."""
        found = self._threads.get(state)
        if found is None:
            found = self._threads[state] = self._steps.frames.threads(state)
        return found

    def holds_any_text(self, state: int) -> bool:
        """Inside a string or name: does every character that needs no escape leave the automaton where it is?

        Seen by the edges of its threads, which costs less than to step; wrong only where it says False.
        """
        found = self._any_text.get(state)
        if found is None:
            threads, takes_any = self._threads_of(state), self._strings.takes_any
            found = self._any_text[state] = bool(threads) and all(
                not obligation and takes_any(at) for at, _, obligation in threads
            )
        return found

    def goes_on_anyhow(self, state: int, mode: Mode) -> bool:
        """Inside a string or name: may infinitely many still come behind any printed characters, as they are spelled?

        So it is of a thread that takes any text; what it owes takes finitely many names away from infinitely many.
        """
        key = (state, mode)
        found = self._anyhow.get(key)
        if found is None:
            found = self._anyhow[key] = any(
                self._strings.takes_any(at)
                and (not obligation or (mode is Mode.NAME and not self._steps.automaton.owing and self._is_new(after)))
                for at, after, obligation in self._threads_of(state)
            )
        return found

    def _is_new(self, continuation: int) -> bool:
        """Is what a name leads to, where it ends, the rest of an undeclared member?"""
        return self._steps.frames.is_undeclared_behind(continuation)

    def _has_looping_thread(self, state: int) -> bool:
        """Does some thread, by itself, show that infinitely many may come?  It costs less than to step."""
        return any(self._strings.loops(at) and self._words_owed(owed) >= 0 for at, _, owed in self._threads_of(state))

    def n_ways(self, state: int) -> int:
        """Inside a string or name: a bound from below on the bytes by which it may go on, each to other texts."""
        found = self._n_ways.get(state)
        if found is None:
            found = max(
                (self._strings.ways(at) for at, _, owed in self._threads_of(state) if self._words_owed(owed) >= 0),
                default=0,
            )
            if found < _FEW_WAYS:
                found = len(self._steps.next_byte_set(state) - _NOT_PLAIN)
            self._n_ways[state] = found
        return found

    def needs_escape(self, state: int) -> bool:
        """Inside a string or name: may a character come that only an escape spells?"""
        found = self._escapes_only.get(state)
        if found is None:
            needs = self._strings.needs_escape
            found = self._escapes_only[state] = any(needs(at) for at, _, _ in self._threads_of(state))
        return found

    def _n_texts(self, state: int, most: int) -> tuple[int, bool]:
        """Inside a string or name: a bound from below on the texts that may come, and whether it is their number.

        No more than ``most`` are counted.
        """
        threads = self._threads_of(state)
        found = max((self._number(at, owed, most) for at, _, owed in threads), default=-1)
        return found, 0 <= found < most and len(threads) == 1 and not threads[0][2]

    def _number(self, lexer_state: int, owed: int, most: int) -> int:
        """The texts of a thread less the words that it must not become; -1 where that is not known."""
        words = self._words_owed(owed)
        found = self._strings.number(lexer_state, most + words) if words >= 0 else -1
        return max(found - words, 0) if found >= 0 else -1

    def _words_owed(self, owed: int) -> int:
        """Finitely many words that a name must not become; -1 for what else a thread may owe."""
        if not owed:
            return 0
        found = -1 if self._steps.automaton.owing else self._strings.number(owed, _WORDS)
        return found if found < _WORDS else -1

    def _loops_behind_escape(self, state: int, pending: bytes) -> bool:
        """Before or in an escape, of which this was read: is it plain that infinitely many may come behind it?"""
        texts = self._strings
        loops = texts.loops if pending in ANY_ASCII else texts.takes_any_behind
        for at, _, owed in self._threads_of(state):
            before = texts.before_escape(at)
            if before:
                found = loops(before)
            else:
                found = any(texts.loops(behind) for _, behind in texts.behind_escape(at, pending))
            if found and self._words_owed(owed) >= 0:
                return True
        return False

    def _is_spelled_once(self, state: int) -> bool:
        """Has each character one spelling, in some thread?"""
        found = self._spelled_once.get(state)
        if found is None:
            mode = self._steps.automaton.states.arrays.mode
            found = self._spelled_once[state] = any(mode[at] & CANONICAL for at, _, _ in self._threads_of(state))
        return found

    def _n_behind_escape(self, state: int, pending: bytes, most: int) -> tuple[int, bool]:
        """Before or in such an escape: a bound from below on the texts that may come, and whether it is their number.

        No more than ``most`` are counted.
        """
        texts = self._strings
        threads = self._threads_of(state)
        found, whole = 0, False
        for at, _, owed in threads:
            before = texts.before_escape(at)
            if not before:
                found = max(found, self._n_ways_behind(at, owed, pending, most))
            if before and found < most and self._words_owed(owed) >= 0:
                ways, only = texts.ascii_ways(before)
                found = max(found, most if texts.loops(before) else ways)
                number = self._number(before, owed, most + 1) if found < most and only else -1
                if number >= 0:
                    # All but the one that ends there begin with a character of ASCII.
                    number -= texts.may_close(before)
                    whole = len(threads) == 1 and not owed and number < most
                    found = max(found, number)
        return min(found, most), whole

    def _n_ways_behind(self, at: int, owed: int, pending: bytes, most: int) -> int:
        """The same of one thread, where each character has one spelling."""
        words = self._words_owed(owed)
        found = 0
        for _, behind in self._strings.behind_escape(at, pending) if words >= 0 else ():
            number = most + words if self._strings.loops(behind) else self._strings.number(behind, most + words)
            # Something may come behind each of them.
            found += max(number, 1)
            if found >= most + words:
                break
        return max(min(found - words, most), 0)
