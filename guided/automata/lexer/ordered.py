"""Lexer states that know which match Python's ``re`` would prefer: ordered, lazily built byte automata.

Lark cuts text with one alternation of its terminals (contextual lexer) or with one terminal at a time (dynamic
lexer), and takes the match that ``re`` prefers, which is not always the longest.  Reading byte by byte, whether a match
that is possible here is the preferred one depends on text to come.  So a state says which matches may end here, and for
each of them what must then not happen:

* `OrderedState.exits`: every terminal whose match may end here.  An exit's ``obligation`` is a state that reads the
  text *after* the match; when it becomes ``violated``, a preferred match has come true and this one was not taken.  It
  is satisfied once it has no edge for the next byte.  At the end of the text it is satisfied unless
  ``violated_at_end``.  None: nothing is owed.
* `OrderedState.edges`: how the match goes on if it does not end here.

A reader of text therefore follows threads ``(state, parser, obligations)``; `combine` makes one obligation of several.

Look-behinds that may see text before the match need its memory: start the next lexeme with the `OrderedState.memory`
of the state in which the last one ended.  It is ``()`` unless there are `OrderedLexer.looking_back`.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

from guided.automata.lexer.backtracking import (
    TEXT,
    Cell,
    Compiled,
    Condition,
    Memory,
    cell,
    compile_pattern,
    edges_of,
    first_steps,
    keyword_languages,
    opposite,
)
from guided.automata.lexer.longest import Longest, longest
from guided.automata.lexer.ways import Item, Left, Words, advanced, parts_of, ways_on
from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.lexing import LexerTerminal
from guided.grammar.regex.plain import widths
from guided.grammar.regular.expr import EPSILON, Expr

LIVENESS_STEPS = 100_000
"""States that one search for a reachable match may visit.  Only patterns with assertions need one."""


@dataclass(frozen=True, slots=True)
class Exit:
    """A match of terminal ``tag`` may end here, provided that ``obligation`` is never violated."""

    tag: int
    obligation: OrderedState | None


@dataclass(frozen=True, slots=True)
class FurtherExit:
    """An exit besides the first, in the form of a state without edges: ``tag``, ``pending``, the next as ``also``."""

    tag: int
    pending: OrderedState | None
    also: FurtherExit | None

    def edges(self) -> tuple[OrderedEdge, ...]:
        """None: how the match goes on is said by the state itself."""
        return ()


def _further(exits: Sequence[Exit], first: int) -> FurtherExit | None:
    if first >= len(exits):
        return None
    return FurtherExit(exits[first].tag, exits[first].obligation, _further(exits, first + 1))


OrderedEdge: TypeAlias = "tuple[int, int, OrderedState]"


class OrderedState:
    """A state of a lexer, or an obligation; interned, immutable, made by `OrderedLexer.start` and `combine` only.

    ``memory`` is for `OrderedLexer.start` of the next lexeme.  ``violated`` and ``violated_at_end`` are for
    obligations.
    """

    __slots__ = (
        "__weakref__", "_edges", "_exits", "_items", "_live", "_longest", "_raw", "_terminals", "_width", "forbids",
        "memory", "violated", "violated_at_end",
    )  # fmt: skip

    forbids: bool
    memory: Memory
    violated: bool
    violated_at_end: bool

    def __init__(self, items: tuple[Item, ...], memory: Memory, forbids: bool, longest: Longest | None) -> None:
        self._items = items
        self._longest = longest
        self.memory = memory
        self.forbids = forbids
        self._edges: tuple[OrderedEdge, ...] | None = None
        self._raw: list[OrderedEdge] | None = None
        self._exits: tuple[Exit, ...] | None = None
        self._width = 1
        """How much work its edges were: ranges of bytes, each as often as there are ways to go on with it."""
        self._terminals: frozenset[int] | None = None
        plain = all(item.condition is None and (item.chain is None or not item.chain.asserts) for item in items)
        self._live: bool | None = True if items and plain and longest is None else None
        self.violated = forbids and any(item.expr is not None and item.expr is EPSILON for item in items)
        self.violated_at_end = self.violated or (
            forbids and any(item.expr is None and item.condition is not None and item.condition[0].nullable
                            for item in items)
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<OrderedState {id(self):x}: {len(self._items)} ways{', forbidden' if self.forbids else ''}>"

    def __reduce__(self) -> str:
        raise TypeError("lexer states are interned per process; pickle the grammar's source instead")

    @property
    def exits(self) -> tuple[Exit, ...]:
        """Every match that may end here; empty for obligations.

        More than one only where terminals end in look-aheads that are still to be decided.
        """
        if self._exits is None:
            self._exits = () if self.forbids else tuple(_exits(self._items, self._longest))
        return self._exits

    @property
    def tag(self) -> int:
        """The terminal of the first exit (`also` has the others); -1 without one; of an obligation 0 when violated."""
        if self.forbids:
            return 0 if self.violated else -1
        return self.exits[0].tag if self.exits else -1

    @property
    def pending(self) -> OrderedState | None:
        """The obligation of the first exit."""
        return self.exits[0].obligation if self.exits else None

    @property
    def also(self) -> FurtherExit | None:
        """The exits after the first as a chain, for readers that keep one tag a state; None nearly always."""
        return _further(self.exits, 1)

    def edges(self) -> tuple[OrderedEdge, ...]:
        """Sorted, disjoint ``(low, high, target)``; targets from which no match can be reached are left out."""
        found = self._edges
        if found is None:
            found = tuple(edge for edge in _all_edges(self) if edge[2].live)
            self._edges, self._raw = found, None
        return found

    @property
    def terminals(self) -> frozenset[int]:
        """The terminals of all ways to go on; each of a live state's matches is of one of them."""
        if self._terminals is None:
            self._terminals = frozenset(
                [item.terminal for item in self._items] + [index for item in self._items for _, index in item.words]
            )
        return self._terminals

    @property
    def width(self) -> int:
        """How much work its edges are: ranges of bytes, each as often as there are ways to go on with it."""
        self.edges()
        return self._width

    def after(self, byte: int) -> OrderedState | None:
        """The state after ``byte``, or None."""
        for low, high, target in self.edges():
            if low <= byte <= high:
                return target
        return None

    @property
    def live(self) -> bool:
        """Can a match (for obligations: a violation) still be reached?"""
        if self._live is None:
            _search(self)
        return bool(self._live)


_interned: weakref.WeakValueDictionary[tuple[object, ...], OrderedState] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def _state(items: tuple[Item, ...], memory: Memory, forbids: bool, longest: Longest | None) -> OrderedState:
    key = (items, memory, forbids, longest)
    with _lock:
        found = _interned.get(key)
        if found is None:
            found = _interned[key] = OrderedState(items, memory, forbids, longest)
        return found


_VIOLATION = Item(0, EPSILON, None, None, (), ())


class _Ways:
    """Collects ways to go on in order, leaving out those that a more preferred one hides."""

    def __init__(self, forbids: bool, longest: Longest | None = None) -> None:
        self.forbids = forbids
        self.longest = longest
        self.matched: set[int] = set()
        """Of the longest match: the rules that have matched here."""
        self.items: list[Item] = []
        self.seen: set[tuple[object, ...]] = set()
        self.closed = False
        """An unconditional match has ended: nothing after it counts."""

    def add(self, item: Item) -> None:
        if self.closed or (self.longest is not None and self.longest.gives_up(item.terminal, self.matched)):
            return
        # Which terminal it is does not matter: with an equal rest, the earlier one matches whenever this one does.
        key = (item.expr, item.chain, item.memory, self.longest and item.terminal)
        if (key, None) in self.seen or (key, item.condition) in self.seen:
            return
        self.seen.add((key, item.condition))
        if item.expr is not None and item.expr is not EPSILON:
            self.items.append(item)
        elif item.condition is not None:
            self.items.append(item._replace(expr=None, terminal=0, words=()) if self.forbids else item)
        elif self.longest is not None:
            # Others may still match more.
            if not self.matched:
                self.items.append(item)
            self.matched.add(self.longest.beside[item.terminal].rule)
        else:
            self.closed = True
            if self.forbids:
                self.items = [_VIOLATION]
            elif item.expr is not None:
                self.items.append(item)

    def open_chain(self, terminal: int, chain: Cell | None, condition: Condition, memory: Memory, words: Words) -> None:
        """Add every way in which ``chain`` can go on at this position."""
        for expr, rest, narrowed in first_steps(chain, condition, memory):
            if expr is None:
                tag = next((index for word, index in words if word.nullable), terminal)
                self.add(Item(tag, EPSILON, None, narrowed, (), ()))
            else:
                needed = rest.behinds if rest is not None else frozenset()
                kept = tuple(pair for pair in memory if pair[0] in needed)
                self.add(Item(terminal, expr, rest, narrowed, kept, words))

    def state(self, memory: Memory) -> OrderedState:
        items = self.items
        if self.forbids:
            items = sorted(items, key=_order)
        else:
            while items and items[-1].expr is None:
                items.pop()
        return _state(tuple(items), memory, self.forbids, self.longest)


def _order(item: Item) -> tuple[int, ...]:
    """A total order on items, to make a set of them canonical."""
    condition = (-1, -1) if item.condition is None else (item.condition[0].serial, item.condition[1].serial)
    return (
        -1 if item.expr is None else item.expr.serial,
        -1 if item.chain is None else item.chain.serial,
        *condition,
        *(expr.serial for pair in item.memory for expr in pair),
    )


def _exits(items: Sequence[Item], longest: Longest | None) -> Iterable[Exit]:
    if longest is not None:
        if any(item.expr is EPSILON and item.terminal == longest.wanted for item in items):
            yield Exit(longest.wanted, _obligation(item for item in items if item.expr is not EPSILON))
        return
    higher: list[Item] = []
    for item in items:
        if item.expr is not EPSILON:
            higher.append(item)
            continue
        owed = list(higher)
        if item.condition is not None:
            owed.append(item._replace(condition=opposite(item.condition)))
        obligation = _obligation(owed)
        if obligation is None or _can_be_met(obligation):
            yield Exit(item.terminal, obligation)
        higher.append(item)


def _obligation(items: Iterable[Item]) -> OrderedState | None:
    ways = _Ways(forbids=True)
    for item in items:
        ways.add(item._replace(terminal=0, words=()))
    state = ways.state(())
    return state if state.live else None


def combine(obligations: Iterable[OrderedState]) -> OrderedState | None:
    """The obligation to meet all of ``obligations``; None when there is none."""
    distinct = set(obligations)
    if len(distinct) == 1:
        return distinct.pop()
    return _obligation(item for state in distinct for item in state._items)


def _can_be_met(obligation: OrderedState) -> bool:
    """Is there a text that does not violate the obligation?"""
    if not obligation.violated_at_end:
        return True
    seen = {obligation}
    queue = [obligation]
    for state in queue:
        if state.violated:
            continue
        texts = next((item.condition[1] for item in state._items if item.condition is not None), None)
        if not state.violated_at_end and (texts is None or texts.nullable):
            return True
        if texts is None or not _covers(state.edges(), texts):
            return True
        if len(seen) > LIVENESS_STEPS:
            raise _too_long()
        for _, _, target in state.edges():
            if target not in seen:
                seen.add(target)
                queue.append(target)
    return False


def _covers(edges: Sequence[OrderedEdge], texts: Expr) -> bool:
    have = {byte for low, high, _ in edges for byte in range(low, high + 1)}
    return all(byte in have for low, high, _ in edges_of(texts) for byte in range(low, high + 1))


def _all_edges(state: OrderedState) -> list[OrderedEdge]:
    """Edges, those to states without a match included; kept until it is known which those are."""
    if state._raw is None:
        state._raw = _raw_edges(state)
    return state._raw


def _raw_edges(state: OrderedState) -> list[OrderedEdge]:
    if state.violated:
        return []
    going = [item for item in state._items if item.expr is not EPSILON or item.condition is not None]
    automata = [automaton for _, automaton in state.memory]
    read = dict.fromkeys(itertools.chain(automata, *map(parts_of, going)))
    edges = {expr: edges_of(expr) for expr in read}
    ordered = sorted({cut for row in edges.values() for low, high, _ in row for cut in (low, high + 1)})
    place = {cut: i for i, cut in enumerate(ordered)}
    left: dict[Expr, list[Expr | None]] = {}
    for expr, row in edges.items():
        rests: list[Expr | None] = [None] * len(ordered)
        for low, high, rest in row:
            first, last = place[low], place[high + 1]
            rests[first:last] = [rest] * (last - first)
        left[expr] = rests
    width = spent = 1
    columns: list[Sequence[object]] = []
    for item in going:
        is_over = item.expr is None or item.expr is EPSILON
        ways = len(ordered) if is_over else len(ordered) - left[cast(Expr, item.expr)].count(None)
        # Where a condition is read too, that is twice the work and more.
        spent += ways if item.condition is None else 3 * ways
        width += ways
        columns.append(ways_on(item, left))
    state._width = width
    _spend(spent)
    # Where nothing that is left differs, the target does not.
    beside = [left[word] for item in going for word, _ in item.words]
    beside += [
        left[automaton] for memory in (state.memory, *(item.memory for item in going)) for _, automaton in memory
    ]
    result: list[OrderedEdge] = []
    targets: dict[tuple[object, ...], OrderedState | None] = {}
    keys = zip(*columns, *beside, strict=True)
    for i, ((low, next_low), key) in enumerate(zip(itertools.pairwise(ordered), keys, strict=False)):
        if key not in targets:
            targets[key] = _successor(state, going, key, left, i)
        target = targets[key]
        if target is None:
            continue
        if result and result[-1][2] is target and result[-1][1] + 1 == low:
            result[-1] = (result[-1][0], next_low - 1, target)
        else:
            result.append((low, next_low - 1, target))
    return result


def _successor(
    state: OrderedState, going: Sequence[Item], further: Sequence[Any], left: Left, at: int
) -> OrderedState | None:
    """The state behind a range of bytes; ``further`` has those of each item, `ways_on`."""
    if not any(further[: len(going)]):
        return None
    ways = _Ways(state.forbids, state._longest)
    for item, way in zip(going, further, strict=False):
        if way is None:
            continue
        rest, condition = way
        memory = advanced(item.memory, left, at)
        if rest is None:
            ways.add(item._replace(expr=None, terminal=0, condition=condition))
            continue
        words = tuple((word, index) for start, index in item.words if (word := left[start][at]) is not None)
        if rest is EPSILON:
            ways.open_chain(item.terminal, item.chain, condition, memory, words)
        else:
            ways.add(Item(item.terminal, rest, item.chain, condition, memory, words))
    target = ways.state(advanced(state.memory, left, at))
    return target if target._items else None


_allowed = threading.local()


@contextmanager
def at_most(steps: int) -> Iterator[None]:
    """Let the lexer states that are read meanwhile take so many steps, some 2 us each; beyond, it is a `LimitError`.

    Also those that are only read to know whether a match can be reached: of counted repeats beside look-aheads each
    other state may need a search through thousands.
    """
    before = getattr(_allowed, "left", None)
    _allowed.left = steps
    try:
        yield
    finally:
        _allowed.left = before


def _spend(steps: int) -> None:
    left = getattr(_allowed, "left", None)
    if left is not None:
        _allowed.left = left - steps
        if left < steps:
            raise LimitError(
                "reading the states of this grammar's terminals takes too many steps",
                remedy="Simplify the look-aheads of the terminals, shorten counted repeats in them, or pass "
                "Limits(search_states=...).",
            )


def _search(start: OrderedState) -> None:
    """Decide whether a match can be reached from ``start``; remembers every answer on the way."""
    parents: dict[OrderedState, OrderedState | None] = {start: None}
    queue = [start]
    for state in queue:
        goal = state.violated_at_end if state.forbids else bool(state._items) and bool(state.exits)
        if goal or state._live:
            walk: OrderedState | None = state
            while walk is not None:
                walk._live = True
                walk = parents[walk]
            return
        if len(parents) > LIVENESS_STEPS:
            raise _too_long()
        for _, _, target in _all_edges(state):
            if target._live is not False and target not in parents:
                parents[target] = state
                queue.append(target)
    for state in parents:
        state._live = False


def _too_long() -> LimitError:
    return LimitError(
        f"deciding whether a terminal with assertions can match took more than {LIVENESS_STEPS} steps",
        remedy="Simplify the look-aheads and look-behinds of the terminals, or shorten their counted repeats.",
    )


class OrderedLexer:
    """The terminals of a grammar, compiled once; `start` gives the state that begins a lexeme.

    ``looking_back`` names the terminals whose look-behinds (``^`` and a leading ``\\b`` too) may see text before the
    lexeme; if there are any, `start` needs the memory of the state where the last lexeme ended.
    """

    def __init__(self, terminals: Sequence[LexerTerminal]) -> None:
        self.terminals = tuple(terminals)
        self._compiled: dict[int, Compiled] = {}
        self._words: dict[int, Words] = {}
        self._starts: dict[tuple[tuple[int, ...], Memory], OrderedState] = {}
        compiled = [self._pattern(index) for index in range(len(self.terminals))]
        outside = {expr for pattern in compiled for expr in pattern.outside}
        self.looking_back: tuple[str, ...] = tuple(
            terminal.name for terminal, pattern in zip(self.terminals, compiled, strict=True) if pattern.outside
        )
        self.initial_memory: Memory = tuple((expr, expr) for expr in sorted(outside, key=lambda expr: expr.serial))

    def _pattern(self, index: int) -> Compiled:
        found = self._compiled.get(index)
        if found is None:
            terminal = self.terminals[index]
            if widths(terminal.pattern)[0] == 0:
                raise GrammarError(
                    f"terminal {terminal.name} matches the empty text",
                    remedy="Make it match at least one character, and its use optional.",
                )
            try:
                found = compile_pattern(terminal.pattern)
            except UnsupportedError as error:
                where = f"terminal {terminal.name}" + (f", {error.where}" if error.where else "")
                raise UnsupportedError(error.what, where=where, remedy=error.remedy) from error
            self._compiled[index] = found
            self._words[index] = keyword_languages(terminal.keywords)
        return found

    def start(self, order: Sequence[int], memory: Memory | None = None) -> OrderedState:
        """The state that begins a lexeme where the terminals of ``order`` may come, most preferred first.

        ``memory``: that of the state in which the lexeme before ended; None at the beginning of the text.  The state
        has no edges when nothing can match.
        """
        if memory is None:
            memory = self.initial_memory
        key = (tuple(order), memory)
        found = self._starts.get(key)
        if found is None:
            found = self._starts[key] = self._start(key[0], memory)
        return found

    def _start(self, order: tuple[int, ...], memory: Memory) -> OrderedState:
        known = dict(memory)
        one = longest(self.terminals, order[0]) if order else None
        if one is not None:
            order = tuple(range(len(self.terminals)))
        candidates = set(order)
        absorbed = {other for index in order for other in self.terminals[index].absorbs}
        ways = _Ways(forbids=False, longest=one)
        for index in order:
            if index in absorbed:
                continue
            term = self._pattern(index).term
            words = tuple(pair for pair in self._words[index] if pair[1] in candidates)
            seen = tuple((expr, known.get(expr, expr)) for expr in sorted(term.behinds, key=lambda expr: expr.serial))
            ways.open_chain(index, cell(term, None), None, seen, words)
        return ways.state(memory)


@lru_cache(maxsize=64)
def lexer_of(terminals: tuple[LexerTerminal, ...]) -> OrderedLexer:
    """The compiled lexer of a grammar's terminals; the last few are remembered."""
    return OrderedLexer(terminals)


def start_state(terminals: Sequence[LexerTerminal], order: Sequence[int], memory: Memory | None = None) -> OrderedState:
    """`OrderedLexer.start` for callers without a lexer of their own.

    >>> from guided.grammar.regex.syntax import Characters, Quantified
    >>> word = LexerTerminal("WORD", Quantified(Characters(((97, 122),)), 1, None))
    >>> state = start_state((word,), (0,)).after(ord("a"))
    >>> state.tag, state.pending.after(ord("b")).violated
    (0, True)
    """
    return lexer_of(tuple(terminals)).start(order, memory)


__all__ = ["TEXT", "Exit", "FurtherExit", "OrderedLexer", "OrderedState", "combine", "lexer_of", "start_state"]
