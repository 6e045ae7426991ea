"""The product of a machine with an automaton beside it that remembers what no context-free language tells.

A state is a pair of the inner machine's state and of the side's.  Pairs are interned here, behind all ids of the inner
machine; where the side remembers nothing the pair is the inner machine's own state, and costs nothing.  Products nest.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from guided.collection import untrack
from guided.constraint.limits import Limits
from guided.grammar.ir import Grammar
from guided.kernels.data.layout import DEAD, FAR, FINISHED
from guided.kernels.parsing.threads import intern_state
from guided.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from guided.constraint.engine.completion import Completions
    from guided.constraint.engine.machine import ConstraintMachine
    from guided.constraint.engine.plans import Plan, SelfLoop, Track

__all__ = ["COUNT", "PAIRS", "STRIDE", "FarStates", "ProductMachine", "base_state", "state_of", "with_base"]

PAIRS = 1 << 32
"""States of a `ConstraintMachine` are below."""
_MORE = 8
"""Each product beside another has 256 times as many ids."""

COUNT = 20
"""Bits of a number that is counted down, in states that differ in it alone."""
STRIDE = (1 << 32) + 15
"""By this a state and a token are one number.  A power of two would leave the token alone in the low bits, by which
dicts look first, and all states' commas would be in each other's way."""

Side = TypeVar("Side")


class FarStates(NamedTuple):
    """What is known of states that differ in a count alone, their lower bits, by the others: no text meets one twice.

    Each has a number that the count must exceed.
    """

    alikes: dict[int, tuple[int, int]]
    """A state with the same mask."""
    steps: dict[int, tuple[int, int]]
    """By these bits and a token as one number (`STRIDE`): what is to be added to the state."""


def base_state(machine: ConstraintMachine | ProductMachine[Any], state: int) -> int:
    """The automaton's state in a state of a machine."""
    while isinstance(machine, ProductMachine):
        state = machine.split(state)[0]
        machine = machine.inner
    return state


def state_of(base: ConstraintMachine, threads: Sequence[tuple[int, int, int]]) -> int:
    """The automaton's state of some threads, in order; `DEAD` for none."""
    if not threads:
        return DEAD
    while len(threads) > base.scratch.thread_a.size:
        base.grow_scratch()
    scratch = base.scratch
    for at, (lexer_state, continuation, obligation) in enumerate(threads):
        scratch.thread_a[at] = lexer_state << 32 | obligation
        scratch.thread_b[at] = continuation
    return base.run(intern_state, len(threads))


def with_base(machine: ConstraintMachine | ProductMachine[Any], state: int, own: int) -> int:
    """The state of a machine that differs from another in the automaton's: it has some of its threads only."""
    if not isinstance(machine, ProductMachine):
        return own
    inner, side = machine.split(state)
    after = with_base(machine.inner, inner, own)
    return machine.join(after, machine.kept_side(after, side))


class ProductMachine(ABC, Generic[Side]):
    """Answers as the inner machine does, about its own state, unless the side has a say; see `ConstraintMachine`."""

    inner: ConstraintMachine | ProductMachine[Any]
    completions: Completions
    start: int
    far: FarStates | None = None
    """None where no states differ in a count alone."""

    def __init__(self, inner: ConstraintMachine | ProductMachine[Any]) -> None:
        self.inner = inner
        self.grammar: Grammar = inner.grammar
        self.vocabulary: Vocabulary = inner.vocabulary
        self.limits: Limits = inner.limits
        self.lock: threading.RLock = inner.lock
        self.lexed: bool = inner.lexed
        self.owing: bool = inner.owing
        self.first_pair: int = inner.first_pair << _MORE if isinstance(inner, ProductMachine) else PAIRS
        """The least id of a pair."""
        self._pairs: list[tuple[int, Side]] = []
        self._ids: dict[tuple[int, Side], int] = {}

    def split(self, state: int) -> tuple[int, Side | None]:
        """The inner machine's state, and the side's, None where it remembers nothing."""
        return (state, None) if state < self.first_pair else self._pairs[state - self.first_pair]

    def has_state(self, state: int) -> bool:
        """Is this a state that was made here?"""
        return self.inner.has_state(state) if state < self.first_pair else state - self.first_pair < len(self._pairs)

    def join(self, state: int, side: Side | None) -> int:
        """The one state of a pair; `DEAD` where nothing can follow."""
        return state if side is None or state <= FINISHED else self.pair(state, side)

    def pair(self, state: int, side: Side) -> int:
        """The id of a pair, `DEAD` where nothing can follow."""
        pair = (state, side)
        found = self._ids.get(pair)
        if found is None:
            found = DEAD
            if state != DEAD and self.goes_on(state, side):
                found = self.first_pair + len(self._pairs)
                self._pairs.append(pair)
            # It refers to no cycle, and there are thousands.
            untrack(pair)
            self._ids[pair] = found
        return found

    def goes_on(self, state: int, side: Side | None) -> bool:
        """Can the text go on to an end from a pair that `read` returned?"""
        return True

    def kept_side(self, state: int, side: Side | None) -> Side | None:
        """What is remembered still where of the threads only those of the inner machine's ``state`` are left."""
        return side

    @abstractmethod
    def read(self, state: int, side: Side | None, data: bytes) -> tuple[int, Side | None]:
        """The pair after some bytes."""

    @abstractmethod
    def advance_token(self, state: int, token: int) -> int:
        """The state after a token's bytes (not an end-of-text id)."""

    def plan(self, state: int, token: int) -> Plan | None:
        """How a kernel takes a step; None where that takes several calls, or is not told.

        The lock must be held, and the automaton be `plain`.
        """
        return None

    def self_loop(self, state: int) -> SelfLoop | None:
        """The tokens that change no mask, from a state in a string that takes any characters; the lock must be held.

        Not known unless a checker tells.
        """
        return None

    def track(self, state: int) -> Track | None:
        """Where a text stands for kernels that go on by themselves; the lock must be held, and the automaton `plain`.

        Not known unless a checker tells.
        """
        return None

    @property
    def track_parts(self) -> tuple[int, int, int, int, int]:
        """What kernels need of the checker for that: `guided.kernels.masking.tracks.QUOTES` to ``ROOM``."""
        return 0, 0, 0, 0, 0

    def bare(self, state: int) -> int | None:
        """The automaton's state that has the same mask; None where the checker has a say, or does not tell."""
        return None

    @abstractmethod
    def mask(self, state: int, limit: int = -1) -> NDArray[np.uint32]:
        """The row of tokens that keep ``state`` alive; with ``limit`` only those after which so many tokens suffice."""

    @abstractmethod
    def alike(self, state: int) -> int:
        """A state that allows the same tokens and ends alike, and may be at hand."""

    @abstractmethod
    def visit(self, state: int) -> tuple[NDArray[np.uint32], bool, int]:
        """As `ConstraintMachine.visit`."""

    @abstractmethod
    def why_refused(self, state: int, byte: int) -> str | None:
        """Why the side alone refuses a byte, after "it"; None when the innermost automaton refuses it too."""

    def reads(self, state: int, data: bytes) -> bool:
        """Can some bytes come next?  As `advance`, but leaves no state behind."""
        after, side = self.read(*self.split(state), data)
        return after != DEAD and self.goes_on(after, side)

    def advance(self, state: int, data: bytes) -> int:
        """The state after the bytes ``data``."""
        if state <= FINISHED:
            return DEAD if data else state
        with self.lock:
            return self.join(*self.read(*self.split(state), data))

    advance_text = advance

    def is_accepting(self, state: int) -> bool:
        """May the text end here?  What is open or being read holds up only the threads that are in it."""
        return self.inner.is_accepting(self.split(state)[0])

    def next_bytes(self, state: int) -> NDArray[np.uint8]:
        """``uint8[256]``: 1 for every byte that may come next; some of them may yet be refused."""
        return self.inner.next_bytes(self.split(state)[0])

    @property
    def plain(self) -> bool:
        """As `ConstraintMachine.plain`."""
        return self.inner.plain

    @property
    def prices(self) -> bool:
        """As `ConstraintMachine.prices`; stacks have none here."""
        return self.inner.plain

    @property
    def automaton(self) -> ConstraintMachine:
        """The innermost machine."""
        inner = self.inner
        return inner.automaton if isinstance(inner, ProductMachine) else inner

    def why_counted(self, state: int, token: int) -> str | None:
        """Why a token is refused whose bytes may come, after "it"; None where that is not so."""
        return None

    def begin_prices(self) -> None:
        """See `ConstraintMachine.begin_prices`."""
        self.inner.begin_prices()

    def need(self, state: int, limit: int = -1) -> int:
        """As `ConstraintMachine.need`; not known unless a checker tells."""
        return FAR

    def near(self, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int, bool]:
        """As `ConstraintMachine.near`."""
        row = self.mask(state, limit)
        return row if row.max() else None, FAR, self.is_accepting(state)

    def cheapest_text(self, state: int) -> bytes | None:
        """As the machine's within, where the checker lets it pass; None elsewhere."""
        text = self.inner.cheapest_text(self.split(state)[0])
        return text if text is not None and self.is_accepting(self.advance_text(state, text)) else None

    def cost(self, state: int) -> int:
        """Fewest bytes after which the text may end, what the checker refuses aside."""
        return self.inner.cost(self.split(state)[0])

    def spell(self, text: bytes) -> list[int]:
        """The fewest tokens that join to ``text``; empty when none do."""
        return self.inner.spell(text)

    def threads(self, state: int) -> list[tuple[int, int, int]]:
        """The threads of a state: (lexer state or 0, continuation, obligation)."""
        return self.inner.threads(self.split(state)[0])

    def closure(self, continuation: int) -> list[tuple[int, int, int]]:
        """What may come at a boundary: (lexer start state, continuation after, label)."""
        return self.inner.closure(continuation)

    def label(self, start: int, label: int) -> str:
        """The name of a terminal that may come."""
        return self.inner.label(start, label)

    @property
    def n_bytes(self) -> int:
        """Memory of the automaton's tables; what texts hold is not counted."""
        return self.inner.n_bytes
