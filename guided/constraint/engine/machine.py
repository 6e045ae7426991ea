"""One grammar met with one vocabulary: owns the tables of a constraint and runs its kernels.

Every public method runs a kernel until it has what it needs: a kernel that misses something writes a request and
returns, `guided.constraint.engine.answers` provides it (edges of a lexer state, a lowered rule, a token effect, room),
and the kernel starts again, finding everything it had already added.  One lock per constraint; the kernels hold no
interpreter lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.automata.endings.adjacency import always_settles
from guided.automata.endings.endings import Endings
from guided.automata.lalr.stacks import NO_TABLES, LalrStacks, lexer_states, no_tables
from guided.automata.lexer.distances import tags
from guided.automata.lexer.first_sets import explore_first_sets
from guided.automata.rules.analysis import analyse
from guided.automata.rules.graph import RuleGraph
from guided.collection import hold, release, untrack
from guided.constraint.effects.token_effects import TokenEffects
from guided.constraint.engine import answers, stack_budgets
from guided.constraint.engine.byte_costs import ByteCosts
from guided.constraint.engine.completion import Completions
from guided.constraint.engine.first_arrays import (
    FirstExtra,
    first_scratch,
    first_segments,
    first_tables,
    grown_scratch,
    grown_segments,
    grown_tables,
)
from guided.constraint.engine.requests import RequestBuffer
from guided.constraint.engine.survival import are_alive, check_start, ending_row, endings_of, payable, spellable
from guided.constraint.engine.token_costs import TokenCosts
from guided.constraint.engine.token_steps import TokenSteps
from guided.constraint.limits import Limits
from guided.grammar.ir import Grammar, Lexing, Mark
from guided.grammar.regular.derivative import prepare_combinations
from guided.kernels import entry
from guided.kernels.data.addresses import REPLACED, Fresh, address, address_row
from guided.kernels.data.layout import (
    DEAD,
    ENDS,
    FAR,
    FINISHED,
    FUEL,
    LONGEST,
    MOST_ITEMS,
    MOST_ROWS,
    N_CLOSURE,
    N_SEGMENTS,
    N_SETS,
    N_STATES,
    NEED,
    OWING,
    PRICES,
    Extra,
    Scratch,
    Segments,
)  # fmt: skip
from guided.kernels.data.requests import OUT_OF_FUEL
from guided.kernels.data.views import MACHINE, N_ROWS
from guided.kernels.jit import direct
from guided.kernels.loading import load_compiled
from guided.vocab.spelled import spell
from guided.vocab.vocabulary import Vocabulary

ROOM = 128
"""Requests that one round of a kernel makes before it returns: each is compared with those before it."""

_WORTH_A_CALL = 3
"""Tokens from which on one call for all is faster than one for each."""


class ConstraintMachine:
    """The append-only tables of a compiled constraint; states are ints into them."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits, tells: Mark | None = None) -> None:
        """With ``tells`` a marking `step` tells of the rules with that mark."""
        load_compiled()
        prepare_combinations()
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.limits = limits
        self._fuel = limits.step_work
        self.lock = threading.RLock()
        self.effects = TokenEffects.of(vocabulary)
        self.states = self.effects.states
        self.lexed = grammar.lexing is Lexing.CONTEXTUAL
        self.owing = grammar.lexing is not Lexing.NONE
        """May threads owe something to matches that were not taken?"""
        self.plain = not self.owing and vocabulary.byte_complete
        """Is every state that a kernel returns alive, and every mask complete?"""
        self.prices = self.plain or (self.lexed and vocabulary.byte_complete and grammar.indentation is None)
        """Are tokens priced, where budgets are asked about?  A token a byte, and stacks of tables without conflicts."""
        # First what can never finish, before lexer states are looked at.
        analysis = analyse(grammar)
        self.settles = not self.owing or always_settles(grammar)
        self.endings: Endings | None = None
        """What tells which threads can end: from the beginning where terminals may not stand side by side."""
        self.is_too_large = False
        """Would that take too many steps?"""
        self.spelled: dict[int, bool] = {}
        self.paid: dict[int, bool] = {}
        """What `guided.constraint.engine.survival` found of states: can the rest be spelled, and paid?"""
        self.stacks: LalrStacks | None = None
        starts, ignored = lexer_states(grammar, self.states)
        if self.lexed:
            self.stacks = LalrStacks(grammar, self.states)
        explore_first_sets(self.states, analysis.patterns, analysis.met_whole)
        self.graph = RuleGraph(analysis, grammar.start, self.states, starts, ignored)
        self.lalr = NO_TABLES if self.stacks is None else self.stacks.arrays
        tables = first_tables().fresh()
        self.tables = tables.group()
        self._scratch: Fresh[Scratch] | Scratch = first_scratch(max(self.effects.tries.longest, 8)).fresh()
        self._segments: Fresh[Segments] | Segments = first_segments().fresh()
        extra = FirstExtra.of(vocabulary).block.fresh()
        self._extra = extra.group()
        own: dict[str, Any] = {"fewest": self.effects.prices.fewest, "farthest": self.effects.prices.farthest}
        if tells is not None:
            own["marked"] = marked = np.zeros(len(analysis.rules), np.uint8)
            marked[[rule for rule, mark in analysis.marks.items() if mark is tells]] = 1
        self._extra = self._extra._replace(**own)
        for name, array in own.items():
            extra.rows[Extra._fields.index(name)] = address_row(array)
        self.counters = self._extra.counters
        self._counts = self.counters.data
        self.needs: dict[int, int] | None = None
        """By state, once token budgets are asked about: see `TokenCosts.need`."""
        self.counters[OWING] = self.owing
        self.counters[LONGEST] = self.effects.tries.longest
        self.counters[FUEL] = self._fuel
        # A checker asks which rules are called from each item by itself.
        self.counters[MOST_ITEMS] = answers.MANY_ITEMS if tells is None else FAR
        self._requests = RequestBuffer(ROOM)
        self._addresses = np.zeros((N_ROWS, 3), np.int64)
        self.table = address(self._addresses)
        """What kernels get: where the addresses of all arrays are."""
        self._held: tuple[Any, ...] = ()
        self._made = {3: tables.rows, 8: extra.rows}
        """Rows of addresses, by the number of their group in `refresh`, that are known before they are asked for."""
        if self.graph.first_rows is not None:
            self._made[1] = self.graph.first_rows
        if self.stacks is None:
            self._made[2] = no_tables()
        self._seen = -1
        """The number of `REPLACED` when addresses were taken; -1 where they are to be taken anew."""
        self.counters[N_SETS] = 1
        self.counters[N_STATES] = 2
        self._fill: Callable[..., int] = entry.fill
        self._advance_one: Callable[..., int] = entry.advance
        self.start = self._start()
        # What refers to it does so weakly, so that the collector need not walk it.
        untrack(self)

    @property
    def scratch(self) -> Scratch:
        """The working memory of the kernels."""
        return self._scratch.group() if isinstance(self._scratch, Fresh) else self._scratch

    @property
    def segments(self) -> Segments:
        """The kept parts of masks."""
        return self._segments.group() if isinstance(self._segments, Fresh) else self._segments

    @cached_property
    def completions(self) -> Completions:
        """The shortest texts from states to the end."""
        return Completions(self)

    @cached_property
    def _byte_costs(self) -> ByteCosts:
        return ByteCosts(self.graph, self.states, self.counters)

    @cached_property
    def token_costs(self) -> TokenCosts:
        """What token budgets count."""
        return TokenCosts(self)

    def begin_prices(self) -> None:
        """From now on compute prices with masks."""
        if self.needs is None:
            self.needs = {}
            if self.lexed:
                self.counters[PRICES] = self.prices
            elif not self.owing:
                self.token_costs.begin()

    def need(self, state: int, limit: int = -1) -> int:
        """So many tokens are enough to end the text, whichever token of the mask comes next; `FAR` if not known.

        Where ``limit`` tokens are more than enough, there may be less of them that are enough as well.
        """
        if not self.prices:
            return FAR
        found = self.needs.get(state) if self.needs is not None else None
        return self.token_costs.need(state) if found is None else found

    def _start(self) -> int:
        with self.lock:
            bottom = self.run(entry.settle_one, True, ENDS)
            if bottom != 1:
                raise AssertionError("the continuation that only lets the text end has a fixed id")
            node = self.graph.first if self.stacks is None else self.stacks.start + 1
            first = self.run(entry.settle_one, self.lexed, node << 32 | bottom)
            if not self.settles:
                self.endings = endings_of(self, first)
            start = self.run(entry.boundary_state, first)
            check_start(self, start)
            return start

    def advance(self, state: int, data: bytes) -> int:
        """The state after the bytes ``data``, `DEAD` when no text of the vocabulary's tokens goes on from there."""
        return spellable(self, self.advance_text(state, data))

    def advance_text(self, state: int, data: bytes) -> int:
        """As `advance`, but for texts that may be spelled with any bytes."""
        if state <= FINISHED:
            return DEAD if data else state
        with self.lock:
            return payable(self, self.read(state, data))

    def read(self, state: int, data: bytes) -> int:
        """The state after some bytes, whether or not what its threads owe can be spared them."""
        n = len(data)
        with self.lock:
            if n > self._extra.text.size:
                self._extra = self._extra._replace(text=np.zeros(2 * n, np.uint8))
                self._seen = -1
            self._extra.text[:n] = np.frombuffer(data, np.uint8)
            # No bytes would be those of token 0.
            return self.step(state, -n) if n else state

    def step(self, state: int, token: int, marking: bool = False) -> int:
        """As `advance_token_text`, whether or not what is owed can be spared; the lock must be held.

        With ``marking`` the state ``<< 2``, with the bits of `guided.kernels.parsing.marks`; with ``token`` < 0 for so
        many bytes of the text.
        """
        if self._seen != REPLACED.last:
            self.refresh()
        after = self._advance_one(self.table, self.lexed, marking, state, token)
        return after if after >= 0 else self._go_on(entry.advance, (self.lexed, marking, state, token))

    def advance_token(self, state: int, token: int) -> int:
        """The state after a token's bytes (not an end-of-text id), `DEAD` when they cannot come here."""
        if self.plain:
            with self.lock:
                # As `step`, whose call would be a tenth of this.
                if self._seen != REPLACED.last:
                    self.refresh()
                after = self._advance_one(self.table, self.lexed, False, state, token)
                return after if after >= 0 else self._go_on(entry.advance, (self.lexed, False, state, token))
        return spellable(self, self.advance_token_text(state, token))

    def advance_token_text(self, state: int, token: int) -> int:
        """As `advance_token`, but for texts whose rest may be spelled with any bytes."""
        with self.lock:
            after = self.step(state, token)
            return after if self.plain else payable(self, after)

    def advance_each(self, state: int, tokens: list[int]) -> list[int]:
        """`advance_token_text` for each of some tokens: 1.3 us, and 0.07 for each, where one by one they take 0.7."""
        if len(tokens) < _WORTH_A_CALL:
            return [self.advance_token_text(state, token) for token in tokens]
        with self.lock:
            found = np.empty(len(tokens), np.int64)
            self.run(entry.advance_each, self.lexed, state, np.array(tokens, np.int64), found)
            after: list[int] = found.tolist()
            alive = {} if self.plain else {each: payable(self, each) for each in dict.fromkeys(after)}
            return [alive[each] for each in after] if alive else after

    def advance_all(self, state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Each token that lives and the state after it, as `advance_token` of all; end-of-text ids are no text."""
        with self.lock:
            tokens, states = self._token_steps.after(self.run, self.lexed, self.effects.root, state)
            kept = ... if self.plain else are_alive(self, states)
            return tokens[kept], states[kept]

    @cached_property
    def _token_steps(self) -> TokenSteps:
        return TokenSteps(self.effects.tries.longest, self.vocabulary.size)

    def alike(self, state: int) -> int:
        """A state with the same mask that may be at hand: here always the state itself."""
        return state

    def mask(self, state: int, limit: int = -1) -> NDArray[np.uint32]:
        """The row of tokens that keep ``state`` alive, end-of-text ids aside; valid until the next call.

        With ``limit`` >= 0 only those after which so many tokens are enough to end the text.
        """
        with self.lock:
            if limit >= 0:
                self.begin_prices()
            if self.plain:
                self._run_fill(state, limit)
                return self._row
            row, undecided = self.fill_rows(state, limit)
            need = int(self._counts[NEED])
            row = ending_row(self, state, row, undecided)
            if self.lexed and self.needs is not None and limit < 0:
                self.needs[state] = stack_budgets.need(self, state, row, need)
            return row

    def fill_rows(self, state: int, limit: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """What a kernel says of the tokens: those that are in the mask, and those that are to be looked at."""
        self._run_fill(state, limit)
        return self._extra.rows[0].copy(), self._extra.rows[-1].copy()

    def _run_fill(self, state: int, limit: int) -> None:
        if self.lexed:
            self.run(entry.fill_lexed, self.effects.root, state, limit)
        else:
            self.run(entry.fill, self.effects.root, state, limit)

    def candidates(self, state: int) -> NDArray[np.uint32]:
        """A row with every token of the mask, and perhaps others that leave no way to an end."""
        with self.lock:
            row, undecided = self.fill_rows(state, -1)
            return row | undecided

    def visit(self, state: int) -> tuple[NDArray[np.uint32], bool, int]:
        """The mask of a state, to be written to and valid until the next mask, whether the text may end there, and the
        row's fingerprint for `SharedRows`, -1 where it is not at hand.  The lock must be held.
        """
        if not self.plain:
            return self.mask(state), self.is_accepting(state), -1
        if self._seen != REPLACED.last:
            self.refresh()
        code = self._fill(self.table, self.effects.root, state, -1)
        if code < 0:
            code = self._go_on(entry.fill, (self.effects.root, state, -1))
        if self.needs is not None:
            self.needs[state] = self._counts[NEED]
        return self._row, code & 1 == 1, code >> 1

    def near(self, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int, bool]:
        """The tokens after which ``limit`` tokens are enough, None for none, valid until the next mask; `need`; and
        whether the text may end.

        Only where the machine has `prices`; the lock must be held, and `begin_prices` called.
        """
        if self.lexed:
            return *stack_budgets.near(self, state, limit), self.is_accepting(state)
        if self._seen != REPLACED.last:
            self.refresh()
        code = self._fill(self.table, self.effects.root, state, limit)
        if code < 0:
            code = self._go_on(entry.fill, (self.effects.root, state, limit))
        return self._row if code >> 1 else None, int(self._counts[NEED]), code & 1 == 1

    def cost(self, state: int) -> int:
        """Fewest bytes after which the text may end; obligations aside where terminals always settle."""
        with self.lock:
            if self.endings is not None:
                return min(self.endings.cost(*thread) for thread in self.threads(state))
            return self._byte_costs.to_end(self.tables, self.threads(state))

    def cost_behind(self, continuation: int) -> int:
        """As `cost`, behind a terminal."""
        with self.lock:
            return self._byte_costs.of(self.tables, continuation)

    def cheapest_text(self, state: int) -> bytes | None:
        """A text to the end in the tokens that budgets count; see `TokenCosts.cheapest_text`."""
        if self.lexed and self.prices:
            return stack_budgets.closing_text(self, state)
        return None if self.owing else self.token_costs.cheapest_text(state)

    def next_bytes(self, state: int) -> NDArray[np.uint8]:
        """``uint8[256]``: 1 for every byte that some thread can read next; valid until the next call."""
        with self.lock:
            self.run(entry.next_bytes, state)
            found: NDArray[np.uint8] = self._extra.bytes_out
            return found

    def spell(self, text: bytes) -> list[int]:
        """The fewest tokens that join to ``text``; empty when none do."""
        return spell(self.vocabulary, text)

    def has_state(self, state: int) -> bool:
        """Is this a state that was made here?"""
        return 0 <= state < int(self.counters[N_STATES])

    def threads(self, state: int) -> list[tuple[int, int, int]]:
        """The threads of a state: (lexer state or 0, continuation, obligation)."""
        first, stop = self.tables.state_offset[state], self.tables.state_offset[state + 1]
        columns = (self.tables.thread_state, self.tables.thread_next, self.tables.thread_obligation)
        return list(zip(*(column[first:stop].tolist() for column in columns), strict=True))

    def items(self, continuation: int) -> list[int]:
        """The items of a continuation, each ``node << 32 | continuation to return to``."""
        offset = self.tables.set_offset
        found: list[int] = self.tables.items[offset[continuation] : offset[continuation + 1]].tolist()
        return found

    def closure(self, continuation: int) -> list[tuple[int, int, int]]:
        """What may come at a boundary: (lexer start state, continuation after, label)."""
        with self.lock:
            self.run(entry.open_boundary, self.lexed, continuation)
            first = self.tables.closure_first[continuation]
            stop = first + self.tables.closure_count[continuation]
            columns = (self.tables.closure_state, self.tables.closure_next, self.tables.closure_label)
            return list(zip(*(column[first:stop].tolist() for column in columns), strict=True))

    def label(self, start: int, label: int) -> str:
        """The name of a terminal that may come: its label, or for a lexer's state the terminals it may become."""
        if label >= 0:
            return self.graph.label(label)
        found = tags(self.states, start)
        return " or ".join(self.grammar.terminals[tag].name for tag in found[:8] if tag < len(self.grammar.terminals))

    def is_accepting(self, state: int) -> bool:
        """May the text end here?"""
        return any(
            inside == 0 and self.may_end(continuation) and not (obligation and self.states.forbids_end(obligation))
            for inside, continuation, obligation in self.threads(state)
        )

    def may_end(self, continuation: int) -> bool:
        """May the text end at a continuation?"""
        if self.stacks is not None:
            return self.stacks.ends(self._stack(continuation))
        return bool(self.tables.items[self.tables.set_offset[continuation]] == ENDS)

    def _stack(self, continuation: int) -> list[int]:
        """The LALR states of a stack, bottom first."""
        result: list[int] = []
        while continuation > 1:
            item = int(self.tables.items[self.tables.set_offset[continuation]])
            result.append((item >> 32) - 1)
            continuation = item & 0xFFFFFFFF
        result.reverse()
        return result

    def run(self, kernel: Callable[..., Any], *arguments: Any) -> int:
        """Run an entry kernel until it answers."""
        if self._seen != REPLACED.last:
            self.refresh()
        code: int = direct(kernel)(self.table, *arguments)
        return code if code >= 0 else self._go_on(kernel, arguments)

    def _go_on(self, kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
        """Run a kernel until it answers that has asked for something.

        Only now does it get all its fuel, since hardly any comes here: what others have left was enough so far, and
        where that was not enough, it begins again.
        """
        held = hold()
        try:
            self.serve(OUT_OF_FUEL)
            self.counters[FUEL] = self._fuel
            while True:
                code: int = kernel(self.current_table(), *arguments)
                if code >= 0:
                    return code
                self.serve()
        finally:
            if held:
                release()

    def current_table(self) -> int:
        """The `table`, with the addresses of all arrays as they are now; the lock must be held."""
        if self._seen != REPLACED.last:
            self.refresh()
        return self.table

    def refresh(self) -> None:
        """Take the addresses of arrays that were replaced, and hold on to the arrays that they belong to."""
        self._seen = REPLACED.last
        states, effects = self.states, self.effects
        groups: tuple[Any, ...] = (
            states.arrays, self.graph.arrays, self.lalr, self.tables, self._scratch, effects.tries.arrays,
            effects.store.arrays, self._segments, self._extra, self._requests.arrays,
        )  # fmt: skip
        shared = {0: states.addresses, 5: effects.tries.addresses, 6: effects.store.addresses}
        row = 0
        for index, group in enumerate(groups):
            before = self._held[index] if self._held else None
            if before is not group:
                # Arrays alone, of which the garbage collector walks none.
                untrack(group)
                rows = group.rows if isinstance(group, Fresh) else self._made.pop(index, None)
                if rows is None and index in shared:
                    rows = shared[index].of(group)
                if rows is not None:
                    self._addresses[row : row + len(group)] = rows
                else:
                    # An address takes a microsecond, and seldom more than a few arrays of a group were replaced.
                    known = () if before is None or isinstance(before, Fresh) else before
                    for i, array in enumerate(group):
                        if not known or known[i] is not array:
                            self._addresses[row + i] = address_row(array)
            row += len(group)
        self._held = groups
        self._row: NDArray[np.uint32] = self._extra.rows[0]
        if self._fill is entry.fill or self._advance_one is entry.advance:
            self._fill = direct(entry.fill)
            self._advance_one = direct(entry.advance)

    def serve(self, ignored: int = 0) -> bool:
        """Answer what a kernel asks, and make room for more where it asked for as much as it could: was there any?"""
        is_full = self._requests.is_full
        found = self._requests.serve(self, answers.ANSWERS, ignored)
        if is_full:
            self._requests.grow()
            self._seen = -1
        return found

    def hold_node_cost(self, prices: NDArray[np.int32]) -> None:
        """Have kernels see these prices of nodes: one row, where to look for what was replaced takes 15 us."""
        self.tables = self.tables._replace(node_cost=prices)
        self._addresses[MACHINE + self.tables._fields.index("node_cost")] = address_row(prices)

    def hold_graph(self) -> None:
        """Have kernels see the rule graph as it is now, also where prices have replaced its arrays."""
        if self.graph.arrays is not self._held[1]:
            self._seen = -1

    @property
    def joined(self) -> NDArray[np.int64]:
        """What is known about pairs of obligations; see `guided.kernels.data.layout.Extra`."""
        found: NDArray[np.int64] = self._extra.joined
        return found

    def hold_joined(self, rows: NDArray[np.int64]) -> None:
        """Have kernels know so much about pairs of obligations."""
        self._extra = self._extra._replace(joined=rows)
        self._seen = -1

    def hold_tables(self) -> None:
        """Have kernels see the LALR tables as they are now."""
        if self.stacks is not None and self.lalr is not self.stacks.arrays:
            self.lalr = self.stacks.arrays
            self._seen = -1

    def open_boundary(self, continuation: int) -> None:
        """Make known what may come at a boundary."""
        if self.stacks is None:
            while entry.open_boundary(self.table, False, continuation) < 0:
                self.serve()
                self.refresh()
            return
        start = self.stacks.lexer_start(self._stack(continuation))
        self.hold_tables()
        at = int(self.counters[N_CLOSURE])
        if at + 1 > self.tables.closure_state.shape[0]:
            self.grow_tables()
        tables = self.tables
        tables.closure_state[at], tables.closure_next[at], tables.closure_label[at] = start, continuation, -1
        tables.closure_count[continuation] = 1 if start else 0
        tables.closure_first[continuation] = at
        self.counters[N_CLOSURE] = at + 1

    def grow_tables(self) -> None:
        """Make room for more continuations and states."""
        self.tables = grown_tables(self.tables, self.counters, self.limits)
        self.refresh()
        entry.rehash(self.table, False)

    def grow_listed(self, room: int) -> None:
        """Make room for so many tokens listed with their prices."""
        if room > self.scratch.listed.size:
            self._scratch = self.scratch._replace(listed=np.zeros(room, np.int64))
            self._seen = -1

    def grow_scratch(self) -> None:
        """Make room in the working memory."""
        self._scratch = grown_scratch(self.scratch, self.limits)
        rows = self._extra.rows
        self._extra = self._extra._replace(rows=np.zeros((min(2 * rows.shape[0], MOST_ROWS), rows.shape[1]), np.uint32))
        self._seen = -1

    def grow_segments(self) -> None:
        """Make room for more kept parts of masks."""
        self._segments = grown_segments(self.segments, int(self.counters[N_SEGMENTS]))
        self.refresh()
        entry.rehash(self.table, True)

    @property
    def n_bytes(self) -> int:
        """Memory of this constraint's own tables."""
        parts: tuple[Any, ...] = (*self.tables, *self.scratch, *self.segments, *self.graph.arrays, self._extra.rows)
        return sum(array.nbytes for array in parts)
