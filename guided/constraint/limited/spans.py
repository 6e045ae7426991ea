"""The threads of a state that are within limited texts, spans, apart from those that are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from guided.automata.lexer.distances import measure, minimum
from guided.constraint.product import ProductMachine, base_state, state_of, with_base
from guided.grammar.limited.terminals import most_tokens
from guided.grammar.regular.expr import Expr
from guided.kernels.data.layout import DEAD, FAR

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

__all__ = ["Groups", "Machine", "Parted", "Spans", "Thread"]

Machine: TypeAlias = "ConstraintMachine | ProductMachine[Any]"
Thread: TypeAlias = tuple[int, int, int]
"""Lexer state or 0, continuation, obligation."""
Groups: TypeAlias = tuple[tuple[int, int], ...]
"""States of the automaton all of whose threads are in spans, each with the tokens that are left: most first."""


_STEPS = 1 << 16
"""Steps by a byte that are remembered, 5 MB at most; a mask's walk over all tokens has a few thousand."""


class Parted(NamedTuple):
    """A state's threads, as states; `DEAD` for none."""

    outside: int
    """The machine's state of those outside of spans."""
    inside: int
    """The automaton's state of those in spans; spans are in no text that a checker remembers anything of."""
    by_limit: Groups
    """The latter by the tokens that the whole of their spans may take."""


class Spans:
    """What is known of the states of one machine; its lock must be held."""

    def __init__(self, inner: Machine, base: ConstraintMachine) -> None:
        self._inner = inner
        self._base = base
        self._limits: dict[int, int | None] = {}
        """By lexer state."""
        self._parted: dict[int, Parted] = {}
        self._steps: dict[int, int] = {}
        self._least: dict[int, int] = {}
        self._widest: dict[int, int] = {}

    def limit(self, lexer_state: int) -> int | None:
        """The tokens that the whole of a span may take which a thread is in, None for none."""
        if lexer_state not in self._limits:
            states = self._base.states
            key = states.key(int(states.arrays.base[lexer_state]))
            self._limits[lexer_state] = most_tokens(key) if isinstance(key, Expr) else None
        return self._limits[lexer_state]

    def parted(self, state: int) -> Parted:
        """The threads of a state of the inner machine."""
        found = self._parted.get(state)
        if found is None:
            threads = self.threads(state)
            outside: list[Thread] = []
            by_limit: dict[int, list[Thread]] = {}
            for thread in threads:
                most = self.limit(thread[0])
                (outside if most is None else by_limit.setdefault(most, [])).append(thread)
            if not by_limit:
                found = Parted(state, DEAD, ())
            else:
                inside = [thread for thread in threads if self.limit(thread[0]) is not None]
                groups = [(self.state(some), most) for most, some in sorted(by_limit.items(), reverse=True)]
                found = Parted(self.within(state, outside), self.state(inside), tuple(groups))
            self._parted[state] = found
        return found

    def step(self, state: int, byte: int) -> int:
        """The inner machine's state after one byte; `DEAD` for none.  Tokens share most steps."""
        if state == DEAD:
            return DEAD
        key = state << 8 | byte
        found = self._steps.get(key)
        if found is None:
            if len(self._steps) >= _STEPS:
                self._steps.clear()
            found = self._steps[key] = self._inner.advance_text(state, bytes((byte,)))
        return found

    def threads(self, state: int) -> list[Thread]:
        """The threads of a state of the inner machine."""
        return self._base.threads(base_state(self._inner, state))

    def state(self, threads: list[Thread]) -> int:
        """The automaton's state of some threads, in order; `DEAD` for none."""
        return state_of(self._base, threads)

    def within(self, state: int, threads: list[Thread]) -> int:
        """The inner machine's state with these threads, which remembers what another does; `DEAD` for none."""
        own = self.state(threads)
        if own in (DEAD, base_state(self._inner, state)):
            return state if own else DEAD
        return with_base(self._inner, state, own)

    def grouped(self, most: Mapping[Thread, int]) -> Groups:
        """Threads in spans by the tokens that are left to them; those without any can go no further."""
        by_left: dict[int, list[Thread]] = {}
        for thread, left in most.items():
            if left > 0:
                by_left.setdefault(left, []).append(thread)
        return tuple((self.state(sorted(by_left[left])), left) for left in sorted(by_left, reverse=True))

    def most_left(self, groups: Iterable[tuple[int, int]]) -> dict[Thread, int]:
        """The tokens that are left to each thread; of the same thread twice that with more can do all."""
        found: dict[Thread, int] = {}
        for state, left in groups:
            for thread in self._base.threads(state):
                if found.get(thread, -1) < left:
                    found[thread] = left
        return found

    def least(self, state: int) -> int:
        """The fewest bytes after which some thread of a state, all in spans, is out of its span."""
        found = self._least.get(state)
        if found is None:
            states = self._base.states
            found = self._least[state] = min(minimum(states, thread[0]) for thread in self._base.threads(state))
        return found

    def widest(self, state: int) -> int:
        """As many bytes are enough from wherever a token leads within the spans of a state; `FAR` if not known."""
        found = self._widest.get(state)
        if found is None:
            found = 0
            for lexer_state, _, _ in self._base.threads(state):
                found = max(found, self.widest_of(lexer_state))
            self._widest[state] = found
        return found

    def widest_of(self, lexer_state: int) -> int:
        """The same of one lexer state."""
        states = self._base.states
        if states.arrays.widest[lexer_state] < 0:
            measure(states, lexer_state)
        return min(int(states.arrays.widest[lexer_state]), FAR)
