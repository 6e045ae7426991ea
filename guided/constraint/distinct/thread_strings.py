"""What may still come inside a string or name, told by the automaton's threads alone: it costs less than to step."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from guided.constraint.distinct.json_text import BACKSLASH, QUOTE, Mode
from guided.constraint.distinct.lexer_strings import LexerStrings
from guided.constraint.distinct.string_counts import ANY_ASCII
from guided.kernels.layout import CANONICAL

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine

__all__ = ["ThreadStrings"]

_FEW_WAYS = 24
"""Bytes below which those of all threads are looked for."""
_WORDS = 100
"""Words that a name must not become which are counted; more are rare."""
_NOT_PLAIN = frozenset((BACKSLASH, QUOTE))


class ThreadStrings:
    """Answers for the states of one checked machine, inside strings and names; the machine's lock must be held."""

    def __init__(self, machine: DistinctMachine) -> None:
        self._machine: DistinctMachine = weakref.proxy(machine)
        self._texts = LexerStrings.of(machine.inner.states)
        self._threads: dict[int, list[tuple[int, int, int]]] = {}
        self._any_text: dict[int, bool] = {}
        self._anyhow: dict[tuple[int, Mode], bool] = {}
        self._n_ways: dict[int, int] = {}
        self._spelled_once: dict[int, bool] = {}

    def threads(self, state: int) -> list[tuple[int, int, int]]:
        """The automaton's threads, remembered."""
        found = self._threads.get(state)
        if found is None:
            found = self._threads[state] = self._machine.frames.threads(state)
        return found

    def holds_any_text(self, state: int) -> bool:
        """Inside a string or name: does every character that needs no escape leave the automaton where it is?

        UsedKeys by the edges of its threads, which costs less than to step; wrong only where it says False.
        """
        found = self._any_text.get(state)
        if found is None:
            threads, takes_any = self.threads(state), self._texts.takes_any
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
                self._texts.takes_any(at)
                and (not obligation or (mode is Mode.NAME and not self._machine.inner.owing and self._is_new(after)))
                for at, after, obligation in self.threads(state)
            )
        return found

    def _is_new(self, continuation: int) -> bool:
        """Is what a name leads to, where it ends, the rest of an undeclared member?"""
        return self._machine.frames.is_undeclared_behind(continuation)

    def is_text(self, state: int) -> bool:
        """Inside a string or name: may each character be spelled in any way, in all threads?"""
        mode = self._machine.inner.states.arrays.mode
        threads = self.threads(state)
        return all(self._texts.is_text(at) and not mode[at] & CANONICAL for at, _, _ in threads)

    def has_looping_thread(self, state: int) -> bool:
        """Does some thread, by itself, show that infinitely many may come?  It costs less than to step."""
        return any(self._texts.loops(at) and self._words_owed(owed) >= 0 for at, _, owed in self.threads(state))

    def n_ways(self, state: int) -> int:
        """Inside a string or name: a bound from below on the bytes by which it may go on, each to other texts."""
        found = self._n_ways.get(state)
        if found is None:
            found = max(
                (self._texts.ways(at) for at, _, owed in self.threads(state) if self._words_owed(owed) >= 0), default=0
            )
            if found < _FEW_WAYS:
                found = len(self._machine.look.next_byte_set(state) - _NOT_PLAIN)
            self._n_ways[state] = found
        return found

    def n_texts(self, state: int, most: int) -> tuple[int, bool]:
        """Inside a string or name: a bound from below on the texts that may come, and whether it is their number.

        No more than ``most`` are counted.
        """
        threads = self.threads(state)
        found = max((self._number(at, owed, most) for at, _, owed in threads), default=-1)
        if 0 <= found < most and not any(owed for _, _, owed in threads):
            if len(threads) == 1:
                return found, True
            names = self.names(state, b"")
            if names is not None:
                return len(names), True
        return found, False

    def _number(self, lexer_state: int, owed: int, most: int) -> int:
        """The texts of a thread less the words that it must not become; -1 where that is not told."""
        words = self._words_owed(owed)
        found = self._texts.number(lexer_state, most + words) if words >= 0 else -1
        return max(found - words, 0) if found >= 0 else -1

    def _words_owed(self, owed: int) -> int:
        """Finitely many words that a name must not become; -1 for what else a thread may owe."""
        if not owed:
            return 0
        found = -1 if self._machine.inner.owing else self._texts.number(owed, _WORDS)
        return found if found < _WORDS else -1

    def loops_behind_escape(self, state: int, pending: bytes) -> bool:
        """Before or in an escape, of which this was read: is it plain that infinitely many may come behind it?"""
        texts = self._texts
        loops = texts.loops if pending in ANY_ASCII else texts.takes_any_behind
        for at, _, owed in self.threads(state):
            before = texts.before_escape(at)
            if before:
                found = loops(before)
            else:
                found = any(texts.loops(behind) for _, behind in texts.behind_escape(at, pending))
            if found and self._words_owed(owed) >= 0:
                return True
        return False

    def way_behind_escape(self, state: int, pending: bytes) -> bytes:
        """Before or in an escape: what may end it, none where that is not told."""
        for at, _, _ in self.threads(state):
            before = self._texts.before_escape(at)
            if before:
                if pending in ANY_ASCII and self._texts.ascii_ways(before)[0]:
                    return (b"\\u%04x" % self._texts.first(before))[len(pending) :]
                continue
            ways = self._texts.behind_escape(at, pending)
            if ways:
                return ways[0][0]
        return b""

    def is_spelled_once(self, state: int) -> bool:
        """Has each character one spelling, in some thread?"""
        found = self._spelled_once.get(state)
        if found is None:
            mode = self._machine.inner.states.arrays.mode
            found = self._spelled_once[state] = any(mode[at] & CANONICAL for at, _, _ in self.threads(state))
        return found

    def n_behind_escape(self, state: int, pending: bytes, most: int) -> tuple[int, bool]:
        """Before or in such an escape: a bound from below on the texts that may come, and whether it is their number.

        No more than ``most`` are counted.
        """
        texts = self._texts
        threads = self.threads(state)
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
        for _, behind in self._texts.behind_escape(at, pending) if words >= 0 else ():
            number = most + words if self._texts.loops(behind) else self._texts.number(behind, most + words)
            # Something may come behind each of them.
            found += max(number, 1)
            if found >= most + words:
                break
        return max(min(found - words, most), 0)

    def texts(self, state: int) -> tuple[bytes, ...] | None:
        """Inside a string: all texts that may come, each to one state of the automaton; None where they are not few."""
        threads = self.threads(state)
        return self._texts.texts(threads[0][0]) if len(threads) == 1 and not threads[0][2] else None

    def names(self, state: int, pending: bytes) -> set[bytes] | None:
        """All texts that may come in a name; None where these are not few or not told."""
        found: set[bytes] = set()
        for at, _, owed in self.threads(state):
            before = self._texts.before_escape(at) if pending in ANY_ASCII else at if not pending else 0
            texts = self._texts.texts(before) if before and not owed else None
            if texts is None or (pending and not self._texts.ascii_ways(before)[1]):
                return None
            found.update(texts)
        if pending:
            found.discard(b"")
        return found
