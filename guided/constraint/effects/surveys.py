"""Walks of token tries from a lexer state: which tokens stay inside, and where matches end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.distances import minimum
from guided.automata.lexer.states import StateTable
from guided.constraint.effects.effect_store import EffectStore
from guided.constraint.effects.token_tries import TokenTries
from guided.constraint.engine.requests import RequestBuffer
from guided.constraint.engine.scratch import small_scratch
from guided.kernels.data.addresses import address, address_rows
from guided.kernels.data.layout import Automaton, Effects, Tokens
from guided.kernels.data.pages import gradual_zeros
from guided.kernels.data.requests import EXPAND_STATE, GROW_EXITS, MEASURE_STATE
from guided.kernels.data.views import AUTOMATON, EFFECTS, N_ROWS, REQUESTS, SCRATCH, TOKENS
from guided.kernels.jit import direct
from guided.kernels.masking import cores, effect_deltas
from guided.kernels.masking.effects import DENSE, OWING, PIECES, PLACES, closings, paths_to, survey
from guided.kernels.masking.near_lists import CROWDED, list_near

__all__ = ["Ends", "Paths", "Stays", "Survey", "Surveys"]

AHEAD = 512
"""States expanded around those that a survey asks for: two microseconds each, and every round walks its range again,
up to 3 ms."""

PARTS = 64
"""Parts whose edges are found on the way, 20 microseconds each."""

DEAR = 16
"""Of these, combinations of patterns: up to 200 microseconds each."""


ASKED = 256
"""States that one round of a walk asks for: each is compared with those before it."""

MOST_COMPARED = 16
"""States walked last with which one is compared: a fifth of a microsecond each."""

MOST_EXITS = 1024
"""Exits that are kept of a walk, 16 bytes each; strings have 200."""

PRICES = 256
"""Of the tokens of one walk, for which there is room at first: no more than a few for a byte of the longest token."""

NEAR = 16
"""Bytes of tokens that are walked with a bound that lies farther; of Llama-3 one in seventy has more."""


@dataclass(frozen=True)
class Survey:
    """What a walk noted: per token kept, and per node where a match ends, the number of whole characters before.

    ``where`` in the pool of tokens are those kept, ascending.
    """

    where: NDArray[np.int32]
    kept: NDArray[np.int32]
    count: NDArray[np.int32]
    exits: NDArray[np.int32]

    def of(self, ends: Ends) -> Survey:
        """The same of the tokens that another walk of the range kept, which are all among these."""
        first = int(self.where[0]) if self.where.size else 0
        count = np.zeros(int(self.where[-1]) + 1 - first if self.where.size else 0, np.int32)
        count[self.where - first] = self.count
        exits = self.exits[np.isin(self.exits[:, 0], ends.exits[:, 0])]
        return Survey(ends.where, ends.kept, count[ends.where - first], exits)


@dataclass(frozen=True)
class Ends:
    """The tokens that a walk kept, and where in the pool they are, the places in which they end; where matches end.

    Of a token that ends inside a character, all of which lead from a place back to it, it is that place.
    """

    where: NDArray[np.int32]
    kept: NDArray[np.int32]
    places: NDArray[np.int64]
    exits: NDArray[np.int32]


@dataclass(frozen=True)
class Stays:
    """Of a walk from a state that others do not share: the tokens kept, and nodes with something below, where matches
    end.

    The tokens are those of the row ``mask`` of the store, or where that is -1, ``kept``.
    """

    mask: int
    kept: NDArray[np.int32]
    exits: NDArray[np.int32]


@dataclass(frozen=True)
class _Walked:
    """Of a walk of all tokens, for walks that differ from it in little: its row, and where matches end."""

    row: int
    exits: NDArray[np.int32]


@dataclass(frozen=True)
class Paths:
    """The nodes of a trie on the paths to some of them, in order: their bytes, and how far those below each reach.

    ``at`` are the places of the nodes to which the paths lead; ``closes`` is working memory.
    """

    bytes_: NDArray[np.uint8]
    ends: NDArray[np.int32]
    at: NDArray[np.int64]
    closes: NDArray[np.uint8]


class Surveys:
    """Walks over the tries of one vocabulary."""

    def __init__(self, states: StateTable, tries: TokenTries, store: EffectStore) -> None:
        self.states = states
        self.tries = tries
        self.store = store
        self._explored: set[int] = set()
        """States whose walks have asked for what they need, if anything."""
        self._requests = RequestBuffer(ASKED)
        self._scratch = small_scratch(tries.longest, 1 << 10)
        self._table = np.zeros((N_ROWS, 3), np.int64)
        self._hold_pieces(tries.root)
        self._table[REQUESTS:] = address_rows(self._requests.arrays)
        offset = tries.arrays.token_offset
        self._whole = store.row(tries.arrays.token_ids[offset[1] : offset[tries.root]])
        """The row of all tokens."""
        self._held: tuple[Automaton, Tokens, Effects] | None = None
        self._kept = np.zeros(DENSE, np.int32)
        self._noted = np.zeros(0, np.int64)
        self._exit_rows = np.zeros((4096, 4), np.int32)
        self._hold_prices(PRICES)
        self._last = np.zeros(MOST_COMPARED, np.int32)
        """States that were walked last, a ring."""
        self._walked: dict[int, _Walked] = {}
        self._weights = tries.weights()

    def stays(self, low: int, high: int, state: int, *, apart: bool = False, near: int = 0) -> Stays | None:
        """Which tokens of a range stay inside or end from a state; None where they come to owe something.

        With ``apart`` those that end it are left out, and all exits listed, also if nothing is below.  The result holds
        until the next walk.  From the state ``near``, where it is not 0, tokens of up to `NEAR` bytes do the same.
        """
        is_shared = not apart and low == 1 and high == self.tries.root and not self.states.arrays.decode[state]
        n = DENSE + 1
        n_exits = self.write_from_similar(state, near) if is_shared else None
        if n_exits is None:
            code = self._walk(low, high, state, self.store.next_row(), apart=apart)
            n, n_exits = (code, code) if code < 0 else (code >> 32, code & 0xFFFFFFFF)
        if n_exits < 0:
            return None
        exits = self._exit_rows[:n_exits]
        if n <= DENSE:
            return Stays(-1, self._kept[:n], exits)
        row = self.store.take_row()
        if is_shared and n_exits <= MOST_EXITS:
            self.remember(state, row, exits.copy())
        return Stays(row, self._kept[:0], exits)

    def survey(self, low: int, high: int, state: int, home: int = 0) -> Survey | None:
        """What the tokens of a range do from a state; None where they come to owe something.

        With ``home`` the visits to that state are counted.
        """
        found = self._note(low, high, state, home or -1)
        if found is None:
            return None
        return Survey(found.where.copy(), found.kept, found.places.astype(np.int32), found.exits)

    def ends(self, low: int, high: int, state: int) -> Ends | None:
        """In which places the tokens of a range end from a state; None where they come to owe something.

        What is noted of tokens is good until the next walk.
        """
        return self._note(low, high, state, PLACES)

    def near(
        self, low: int, high: int, state: int, lacking: NDArray[np.int32], lacks: NDArray[np.uint8]
    ) -> NDArray[np.int32] | None:
        """As `list_near`, of the tokens of a range that stay inside or end; None where they come to owe something.

        What is listed is good until the next walk.
        """
        code = self._walk(low, high, state, -1, PIECES)
        if code < 0:
            return None
        offset = self.tries.arrays.token_offset
        self._hold_room(ASKED)
        while True:
            self._make_room(int(offset[high]) - int(offset[low]) + self._prices.size + 2)
            size = int(
                direct(list_near)(self._addresses(), code >> 32, lacking, lacks, self._slots, self._prices, self._kept)
            )
            if size >= 0:
                return self._kept[:size]
            if size == CROWDED:
                self._hold_prices(4 * self._prices.size)
            else:
                self._requests.serve(self, _ANSWERS_TO_PRICES)

    def mark(
        self, low: int, high: int, state: int, core: int, old: NDArray[np.uint8] | None
    ) -> tuple[NDArray[np.uint8], int]:
        """As `mark`: the marks, and the number of nodes at and below those that have one."""
        new = np.zeros(high - low, np.uint8)
        before = new[:0] if old is None else np.ascontiguousarray(old)
        self._begin(state)
        while True:
            n = int(direct(cores.mark)(self._addresses(), low, high, state, core, before, new))
            if n >= 0:
                return new, n
            self._requests.serve(self, _ANSWERS)

    def core(self, low: int, high: int, state: int, core: int, marks: NDArray[np.uint8]) -> Ends:
        """As `guided.kernels.masking.cores.survey`; what is noted of tokens is good until the next walk."""
        offset = self.tries.arrays.token_offset
        self._make_room(int(offset[high]) - int(offset[low]))
        self._begin(state or core)
        while True:
            code = int(
                direct(cores.survey)(
                    self._addresses(), low, high, state, core, marks, self._kept, self._noted, self._exit_rows
                )
            )
            if code >= 0:
                break
            self._requests.serve(self, _ANSWERS)
        n_kept, n_exits = code >> 32, code & 0xFFFFFFFF
        kept = self._kept[:n_kept]
        return Ends(kept[:0], kept, self._noted[:n_kept], self._exit_rows[:n_exits].copy())

    def _note(self, low: int, high: int, state: int, home: int) -> Ends | None:
        offset = self.tries.arrays.token_offset
        self._make_room(int(offset[high]) - int(offset[low]))
        code = self._walk(low, high, state, -1, home)
        if code < 0:
            return None
        n_kept, n_exits = code >> 32, code & 0xFFFFFFFF
        where = self._kept[:n_kept]
        return Ends(
            where, self.tries.arrays.token_ids[where], self._noted[:n_kept], self._exit_rows[:n_exits].copy()
        )  # fmt: skip

    def _walk(self, low: int, high: int, state: int, row: int, home: int = -1, apart: bool = False) -> int:
        """Run the kernel until it knows all edges that it needs: ``n_kept << 32 | n_exits``, negative where owing."""
        self._begin(state)
        if 3 * (high - low) > self._scratch.tasks.size:
            self._hold_pieces(2 * (high - low))
        whole = self._whole if low == 1 and high == self.tries.root else -1
        while True:
            code: int = direct(survey)(
                self._addresses(), low, high, state, row, whole, apart, home, self._kept, self._noted, self._exit_rows,
            )  # fmt: skip
            if code >= 0 or code == OWING:
                return code
            self._requests.serve(self, _ANSWERS)

    def write_from_similar(self, state: int, near: int = 0) -> int | None:
        """Write the next row from that of a state walked before: the number of exits, negative where owing.

        None where there is no such state, or none that has much in common.  ``near`` as of `stays`.
        """
        self._begin(state)
        reach = NEAR if near in self._walked else 0
        if not reach:
            n = min(len(self._walked), MOST_COMPARED)
            near = int(direct(effect_deltas.most_similar)(self._addresses(), state, self._last, n, self._weights))
            if near < 0:
                return None
        other, row = self._walked[near], self.store.next_row()
        while True:
            code: int = direct(effect_deltas.survey_delta)(
                self._addresses(), 1, self.tries.root, state, near, reach, other.row, row, other.exits,
                self._exit_rows,
            )  # fmt: skip
            if code >= 0 or code == OWING:
                return code
            self._requests.serve(self, _ANSWERS)

    def remember(self, state: int, row: int, exits: NDArray[np.int32]) -> None:
        """Note a walk of all tokens, for those to come."""
        self._last[len(self._walked) % MOST_COMPARED] = state
        self._walked[state] = _Walked(row, exits)

    def paths(self, low: int, nodes: NDArray[np.int32]) -> Paths:
        """The paths from the beginning of a range to some of its nodes, ascending."""
        found = np.zeros(nodes.size * self.tries.longest, np.int32)
        found = found[: int(paths_to(self._addresses(), low, nodes, found))]
        tokens = self.tries.arrays
        ends = np.searchsorted(found, tokens.end[found]).astype(np.int32)
        return Paths(tokens.byte[found], ends, np.searchsorted(found, nodes), np.zeros(found.size, np.uint8))

    def closing(self, state: int, paths: Paths) -> NDArray[np.bool_] | None:
        """At which of the nodes at the ends of paths a string that goes on from a state closes.

        None where tokens come to owe something.
        """
        self._begin(state)
        while (code := direct(closings)(self._addresses(), state, paths.bytes_, paths.ends, paths.closes)) < 0:
            if code == OWING:
                return None
            self._requests.serve(self, _ANSWERS)
        return paths.closes[paths.at].view(np.bool_)

    def _begin(self, state: int) -> None:
        """Have a walk gather the states that it asks for, but where it may ask for the first time: that may be all."""
        # A walk that came to owe something leaves what it asked for.
        self._requests.take()
        self._hold_room(ASKED)
        if state in self._explored:
            return
        self._explored.add(state)
        base = int(self.states.arrays.base[state])
        if self.states.arrays.first[base] < 0:
            self.states.explore([base], AHEAD, PARTS, DEAR // 2)
        else:
            self._hold_room(1)

    def _hold_room(self, room: int) -> None:
        """Have walks write so many requests before they return."""
        self._table[REQUESTS, 1] = room

    def _expand(self, asked: list[list[int]]) -> None:
        """Find the edges of the states that a walk asks for, and of those around."""
        is_first = self._table[REQUESTS, 1] == 1
        self.states.explore([state for state, *_ in asked], AHEAD, PARTS, DEAR // 2 if is_first else DEAR)
        self._hold_room(ASKED)

    def _grow_exits(self, _: list[list[int]]) -> None:
        self._exit_rows = np.zeros((4 * self._exit_rows.shape[0], 4), np.int32)

    def _addresses(self) -> int:
        """What kernels get: where the table of addresses is, with those of arrays that others replace."""
        states, tokens, effects = self.states.arrays, self.tries.arrays, self.store.arrays
        held = self._held
        if held is None or held[0] is not states or held[1] is not tokens or held[2] is not effects:
            self._held = states, tokens, effects
            self._table[AUTOMATON : AUTOMATON + len(states)] = self.states.addresses.of(states)
            self._table[TOKENS : TOKENS + len(tokens)] = self.tries.addresses.of(tokens)
            self._table[EFFECTS : EFFECTS + len(effects)] = self.store.addresses.of(effects)
        return address(self._table)

    def _hold_pieces(self, n_nodes: int) -> None:
        """Room for what a walk keeps of so many nodes: a piece of each at most, which is three numbers."""
        self._scratch = self._scratch._replace(tasks=gradual_zeros(3 * 8 * n_nodes).view(np.int64))
        self._table[SCRATCH : SCRATCH + len(self._scratch)] = address_rows(self._scratch)

    def _hold_prices(self, room: int) -> None:
        """Working memory of `near` for so many prices."""
        self._prices = np.zeros(room, np.int64)
        self._slots = np.zeros(4 * room, np.int64)

    def _measure(self, asked: list[list[int]]) -> None:
        for state, *_ in asked:
            minimum(self.states, state)

    def _expand_these(self, asked: list[list[int]]) -> None:
        self.states.expand_all([state for state, *_ in asked])

    def _make_room(self, n_tokens: int) -> None:
        """For what is noted of tokens; a trie of what is left of them may hold one at several nodes."""
        if n_tokens >= self._noted.size:
            n_tokens = max(n_tokens + 1, self.tries.arrays.token_ids.size)
            self._kept = np.zeros(n_tokens, np.int32)
            self._noted = np.zeros(n_tokens, np.int64)


_ANSWERS_TO_PRICES = {EXPAND_STATE: Surveys._expand_these, MEASURE_STATE: Surveys._measure}
_ANSWERS = {EXPAND_STATE: Surveys._expand, GROW_EXITS: Surveys._grow_exits}
