"""What the checker must know of a machine's threads: which marked rules are open in them.

The one file beside the machine that reads continuations.  A container's rule ends before the closing bracket, so while
the container is open every thread holds, somewhere up its continuations, the node to which that rule returns; how many
such nodes a thread holds is the depth of the text.  Everything here is remembered by continuation or state, since
those never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from guided.grammar.ir import Mark
from guided.kernels.data.layout import CALL
from guided.kernels.parsing.parser import intern_set
from guided.kernels.parsing.threads import intern_state

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

_MASK32 = 0xFFFFFFFF
_NONE = memoryview(b"")
_CONTAINERS = frozenset((Mark.OBJECT, Mark.ARRAY, Mark.DISTINCT, Mark.REPEATING))


class Frames:
    """Asked by state; the machine's lock must be held."""

    def __init__(self, machine: ConstraintMachine) -> None:
        self._machine = machine
        self._graph = machine.graph
        analysis = self._graph.analysis
        self._undeclared = {rule for rule, mark in analysis.marks.items() if mark is Mark.UNDECLARED}
        self._containers = {rule: mark for rule, mark in analysis.marks.items() if mark in _CONTAINERS}
        self._is_container = np.zeros(len(analysis.rules), np.bool_)
        self._is_container[list(self._containers)] = True
        self._tables: object = None
        self._offset = self._lexer_state = self._next = self._obligation = self._item_offset = self._items = _NONE
        self._arrays: object = None
        self._first = self._count = self._kind = self._argument = _NONE
        self._scanned = 0
        self._returns: dict[int, Mark] = {}
        self._behind: dict[int, bool] = {}
        self._calling: dict[int, bool] = {}
        self._inside_name: dict[int, bool] = {}
        self._innermost: dict[int, frozenset[Mark]] = {}
        self._without: dict[tuple[int, Mark], int] = {}

    def inside_undeclared_name(self, state: int) -> bool:
        """Does some thread read the name of an undeclared member?"""
        found = self._inside_name.get(state)
        if found is None:
            found = self._inside_name[state] = self._some_undeclared(state, inside=True)
        return found

    def behind_undeclared_name(self, state: int) -> bool:
        """Has some thread just read the name of an undeclared member?"""
        return self._some_undeclared(state, inside=False)

    def is_undeclared_behind(self, continuation: int) -> bool:
        """Does an undeclared member's rest come next?"""
        if self._machine.tables is not self._tables:
            self._view()
        return self._calls_undeclared(continuation)

    def _some_undeclared(self, state: int, *, inside: bool) -> bool:
        if self._machine.tables is not self._tables:
            self._view()
        lexer_state, after = self._lexer_state, self._next
        behind = self._behind
        for thread in range(self._offset[state], self._offset[state + 1]):
            if (lexer_state[thread] != 0) is inside:
                continuation = after[thread]
                calls = behind.get(continuation)
                if calls or (calls is None and self._calls_undeclared(continuation)):
                    return True
        return False

    def _view(self) -> None:
        """Look at the machine's tables anew; indexing memory views costs a third of what indexing arrays costs."""
        self._tables = tables = self._machine.tables
        self._offset, self._item_offset = tables.state_offset.data, tables.set_offset.data
        self._lexer_state, self._next = tables.thread_state.data, tables.thread_next.data
        self._obligation = tables.thread_obligation.data
        self._items = tables.items.data

    def threads(self, state: int) -> list[tuple[int, int, int]]:
        """As `ConstraintMachine.threads`, at a fifth of what it costs."""
        if self._machine.tables is not self._tables:
            self._view()
        first, stop = self._offset[state], self._offset[state + 1]
        columns = (self._lexer_state, self._next, self._obligation)
        return list(zip(*(column[first:stop] for column in columns), strict=True))

    def innermost(self, state: int) -> frozenset[Mark]:
        """What the threads say of the innermost open container; empty where none is marked."""
        marks: frozenset[Mark] = frozenset()
        for _, continuation, _ in self.threads(state):
            marks |= self._innermost_of(continuation)
        return marks

    def without(self, state: int, mark: Mark) -> int:
        """The state of those threads whose innermost open container has another mark; `DEAD` when there are none."""
        if mark not in self.innermost(state):
            return state
        threads = []
        for lexer_state, continuation, obligation in self.threads(state):
            kept = self._continuation_without(continuation, mark)
            if kept:
                threads.append((lexer_state, kept, obligation))
        return self._intern_state(threads)

    def without_undeclared_name(self, state: int) -> int:
        """The state of those threads that have not just read the name of an undeclared member."""
        threads = []
        for lexer_state, continuation, obligation in self.threads(state):
            if lexer_state == 0 and self._calls_undeclared(continuation):
                kept = [item for item in self._machine.items(continuation) if not self._is_undeclared(item)]
                continuation = self._intern_set(kept)
            if continuation:
                threads.append((lexer_state, continuation, obligation))
        return self._intern_state(threads)

    # Continuations.

    def _calls_undeclared(self, continuation: int) -> bool:
        """Does an undeclared member's rest come next?  Asked only of continuations that `_view` covers."""
        found = self._behind.get(continuation)
        if found is None:
            found = False
            for at in range(self._item_offset[continuation], self._item_offset[continuation + 1]):
                if self._is_undeclared(self._items[at]):
                    found = True
                    break
            self._behind[continuation] = found
        return found

    def _is_undeclared(self, item: int) -> bool:
        node = item >> 32
        found = self._calling.get(node)
        if found is None:
            found = self._calling[node] = self._calls(node)
        return found

    def _calls(self, node: int) -> bool:
        """Has a node an edge that calls an undeclared member's rest?"""
        if self._graph.arrays is not self._arrays:
            arrays = self._arrays = self._graph.arrays
            self._first, self._count = arrays.node_first.data, arrays.node_count.data
            self._kind, self._argument = arrays.kind.data, arrays.argument.data
        first = self._first[node]
        if first < 0:
            return any(kind == CALL and rule in self._undeclared for kind, rule, _ in self._graph.edges(node))
        for edge in range(first, first + self._count[node]):
            if self._kind[edge] == CALL and self._argument[edge] in self._undeclared:
                return True
        return False

    def _mark(self, node: int) -> Mark | None:
        """The mark of the container in which a node is the place behind its rule."""
        graph = self._graph
        if graph.n_edges > self._scanned:
            arrays, new = graph.arrays, slice(self._scanned, graph.n_edges)
            calls = (arrays.kind[new] == CALL) & self._is_container[
                np.where(arrays.kind[new] == CALL, arrays.argument[new], 0)
            ]
            for edge in (np.flatnonzero(calls) + self._scanned).tolist():
                self._returns[int(arrays.to[edge])] = self._containers[int(arrays.argument[edge])]
            self._scanned = graph.n_edges
        return self._returns.get(node)

    def _innermost_of(self, continuation: int) -> frozenset[Mark]:
        found = self._innermost.get(continuation)
        if found is None:
            marks: set[Mark] = set()
            seen = {continuation}
            work = [continuation]
            while work:
                for item in self._machine.items(work.pop()):
                    mark = self._mark(item >> 32)
                    frame = item & _MASK32
                    if mark is not None:
                        marks.add(mark)
                    elif frame not in seen:
                        seen.add(frame)
                        work.append(frame)
            found = self._innermost[continuation] = frozenset(marks)
        return found

    def _continuation_without(self, continuation: int, mark: Mark) -> int:
        """The continuation less the items in which the innermost container has the mark; 0 when none are left.

        Recursive over the rules that are open inside one container, which are few.
        """
        key = (continuation, mark)
        found = self._without.get(key)
        if found is None:
            kept = []
            for item in self._machine.items(continuation):
                own = self._mark(item >> 32)
                frame = item & _MASK32
                if own is None and frame != continuation:
                    frame = self._continuation_without(frame, mark)
                if own is not mark and frame:
                    kept.append((item >> 32) << 32 | frame)
            found = self._without[key] = self._intern_set(sorted(set(kept)))
        return found

    def _intern_set(self, items: list[int]) -> int:
        return self._machine.run(intern_set, np.asarray(items, np.int64), len(items))

    def _intern_state(self, threads: list[tuple[int, int, int]]) -> int:
        machine = self._machine
        for at, (lexer_state, continuation, obligation) in enumerate(threads):
            machine.scratch.thread_a[at] = lexer_state << 32 | obligation
            machine.scratch.thread_b[at] = continuation
        return machine.run(intern_state, len(threads))
