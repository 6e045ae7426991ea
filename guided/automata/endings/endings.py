"""The least that is missing to the end of a text, in bytes, if every match must stay the preferred one.

The text behind a match must keep what the match owes (`guided.automata.lexer.ordered`), whatever terminals it is cut
into.  So a grammar with a lexer is a pushdown system whose places are the parser's, each with what is owed there.
There are finitely many obligations, and `guided.automata.endings.summaries` decides which places lead to the end.  It
searches for no text, and neither ambiguity nor the depth of the stack makes it more work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, cast

from guided.automata.endings.lexemes import Exits, Lexemes
from guided.automata.endings.obligations import Owed, Work
from guided.automata.endings.summaries import Summaries
from guided.automata.lalr.stacks import Restricted
from guided.automata.lexer.joint import Both
from guided.automata.lexer.ordered import OrderedState, at_most, lexer_of
from guided.kernels.data.layout import CALL, EMPTY, FAR

if TYPE_CHECKING:
    from guided.automata.lalr.stacks import LalrStacks
    from guided.automata.lexer.states import StateTable
    from guided.automata.rules.graph import RuleGraph
    from guided.grammar.ir import Grammar

Items: TypeAlias = Callable[[int], "list[int]"]
"""The items of a continuation, each ``node << 32 | continuation to return to``."""

ENDED = 1
"""The continuation that only lets the text end."""


class Ways(Protocol):
    """The part of `Endings` that depends on how texts are cut."""

    summaries: Summaries

    def onward(self, continuation: int, tag: int, owed: Owed) -> tuple[int, Hashable]:
        """The continuation, and the place in it, behind a match of the terminal ``tag``."""

    def boundary(self, owed: Owed) -> Hashable:
        """The place at a boundary between terminals."""

    def rest(self, continuation: int, place: Hashable) -> Iterator[tuple[int, int, Hashable]]:
        """How a place in a continuation is left, each way as ``(cost, continuation, place)``.

        Continuation 0 is the end of the text.
        """

    def below(self, continuation: int, place: Hashable) -> Iterator[tuple[int, Hashable]]:
        """The same without the costs, for who comes back for more only if what came before leads to no end."""


class Endings:
    """Fewest bytes to the end of the text, by lexer state, continuation and obligation: `FAR` where there is no way.

    What texts can come to from the start is looked at when this is made, within ``most`` steps.  Threads may owe more
    together than any one of them, which adds some, and these are not counted.
    """

    def __init__(self, grammar: Grammar, states: StateTable, graph: RuleGraph, stacks: LalrStacks | None, items: Items,
                 first: int, most: int) -> None:  # fmt: skip
        self._states = states
        self._owed: dict[int, Owed] = {0: None}
        self._costs: dict[tuple[int, Hashable], int] = {}
        self._alive: dict[tuple[int, Hashable], bool] = {}
        work = Work(most)
        self.lexemes = Lexemes(work)
        if stacks is None:
            self._ways: Ways = RuleWays(graph, states, self.lexemes, items, frozenset(grammar.ignore), work)
        else:
            self._ways = StackWays(grammar, stacks, self.lexemes, items, work)
        with at_most(most):
            self._cost(first, self._ways.boundary(None))
        work.free()

    def cost(self, inside: int, continuation: int, obligation: int) -> int:
        """Fewest bytes with which a thread comes to the end."""
        owed = self._owed_by(obligation)
        if not inside:
            return self._cost(continuation, self._ways.boundary(owed))
        least = FAR
        for (tag, after), distance in self._exits(inside, owed).items():
            if distance < least:
                least = min(least, distance + self._cost(*self._ways.onward(continuation, tag, after)))
        return least

    def lives(self, inside: int, continuation: int, obligation: int) -> bool:
        """Does a thread come to the end?  One way there is enough, where `cost` looks at each of hundreds."""
        owed = self._owed_by(obligation)
        if not inside:
            return self._lives(continuation, self._ways.boundary(owed))
        exits = self._exits(inside, owed)
        return any(self._lives(*self._ways.onward(continuation, tag, after)) for tag, after in exits)

    def _exits(self, inside: int, owed: Owed) -> Exits:
        key = self._states.keys[inside]
        return self.lexemes.exits(cast(OrderedState, key.state if isinstance(key, Restricted) else key), owed)

    def _owed_by(self, obligation: int) -> Owed:
        if obligation not in self._owed:
            key = self._states.keys[obligation]
            obligations = self.lexemes.obligations
            if isinstance(key, Both):
                self._owed[obligation] = reduce(obligations.both, map(self._owed_by, key.parts))
            else:
                self._owed[obligation] = obligations.one(cast(OrderedState, key))
        return self._owed[obligation]

    def _lives(self, continuation: int, place: Hashable) -> bool:
        alive = self._alive
        known = alive.get((continuation, place))
        if known is not None:
            return known
        path = [((continuation, place), self._ways.below(continuation, place))]
        while path:
            at, ways = path[-1]
            for below, left in ways:
                known = not below or alive.get((below, left))
                if known:
                    alive.update((each, True) for each, _ in path)
                    return True
                if known is None:
                    path.append(((below, left), self._ways.below(below, left)))
                    break
            else:
                alive[at] = False
                path.pop()
        return False

    def _cost(self, continuation: int, place: Hashable) -> int:
        """The least cost to the end, by the continuations below first: there may be thousands."""
        costs = self._costs
        found = costs.get((continuation, place))
        if found is not None:
            return found
        work = [(continuation, place)]
        while work:
            at = work[-1]
            if at in costs:
                work.pop()
                continue
            least, missing = FAR, False
            for cost, below, left in self._ways.rest(*at):
                if not below:
                    least = min(least, cost)
                    continue
                known = costs.get((below, left))
                if known is None:
                    work.append((below, left))
                    missing = True
                else:
                    least = min(least, cost + known)
            if not missing:
                costs[at] = least
                work.pop()
        return costs[continuation, place]


class RuleWays:
    """Rules of a context-free grammar, ambiguous ones too: a place is a node, an outcome what is owed at its end."""

    def __init__(self, graph: RuleGraph, states: StateTable, lexemes: Lexemes, items: Items, ignored: frozenset[int],
                 work: Work) -> None:  # fmt: skip
        self._graph = graph
        self._states = states
        self._lexemes = lexemes
        self._items = items
        self._ignored = [cast(OrderedState, states.key(graph.lexer_start(terminal))) for terminal in sorted(ignored)]
        self._composed: dict[tuple[int, Owed], dict[Owed, int]] = {}
        self._dead: defaultdict[Owed, set[int]] = defaultdict(set)
        """By what is owed the items behind which there is no end, whatever continuations they are in: those of an
        ambiguous grammar are thousands, of the same items."""
        self.summaries = Summaries(self, work)

    def onward(self, continuation: int, tag: int, owed: Owed) -> tuple[int, Hashable]:
        """The continuation is that behind the match already."""
        return continuation, owed

    def boundary(self, owed: Owed) -> Hashable:
        """What is owed; the continuation tells the rest."""
        return owed

    def rest(self, continuation: int, place: Hashable) -> Iterator[tuple[int, int, Hashable]]:
        """By each item to the end of its rule."""
        owed = cast(Owed, place)
        if continuation == ENDED:
            ended = cast("dict[Owed, int]", self.summaries.of((0, owed)))
            yield from ((cost, 0, None) for left, cost in ended.items() if left is None or not left.violated_at_end)
            return
        for item in self._items(continuation):
            for left, cost in self._left(item >> 32, owed).items():
                yield cost, item & 0xFFFFFFFF, left

    def below(self, continuation: int, place: Hashable) -> Iterator[tuple[int, Hashable]]:
        """By each item that is not known to be dead."""
        if continuation == ENDED:
            yield from ((at, left) for _, at, left in self.rest(continuation, place))
            return
        owed = cast(Owed, place)
        dead = self._dead[owed]
        for item in self._items(continuation):
            if item not in dead:
                yield from ((item & 0xFFFFFFFF, left) for left in self._left(item >> 32, owed))
                dead.add(item)

    def _left(self, node: int, owed: Owed) -> Mapping[Owed, int]:
        """What may be owed at the end of a node's rule, with the least cost."""
        parts = self._graph.composites.parts(node)
        if not parts:
            return cast("Mapping[Owed, int]", self.summaries.of((node, owed)))
        found = self._composed.get((node, owed))
        if found is None:
            found = self._composed[node, owed] = {}
            for part in parts:
                for left, cost in self._left(part, owed).items():
                    found[left] = min(found.get(left, FAR), cost)
        return found

    def leaves(self, place: Hashable) -> Iterable[tuple[int, Hashable]]:
        """An end of the rule, or of the text."""
        node, owed = cast("tuple[int, Owed]", place)
        if node == 0 or self._graph.is_end(node):
            yield 0, owed

    def leads(self, place: Hashable) -> Iterable[tuple[int, Hashable]]:
        """By what is read, or ignored, or by nothing."""
        node, owed = cast("tuple[int, Owed]", place)
        edges = self._graph.edges(node)
        for kind, argument, target in edges:
            if kind == EMPTY:
                yield 0, (target, owed)
            elif kind != CALL:
                start = cast(OrderedState, self._states.key(argument))
                for (_, left), cost in self._lexemes.exits(start, owed).items():
                    yield cost, (target, left)
        if node == 0 or any(kind not in (EMPTY, CALL) for kind, _, _ in edges):
            for start in self._ignored:
                for (_, left), cost in self._lexemes.exits(start, owed).items():
                    yield cost, (node, left)

    def calls(self, place: Hashable) -> Iterable[tuple[Hashable, Hashable]]:
        """The rules that may begin at a node."""
        node, owed = cast("tuple[int, Owed]", place)
        for kind, argument, target in self._graph.edges(node):
            if kind == CALL:
                yield (argument + 1, owed), target

    def returned(self, call: Hashable, outcome: Hashable) -> tuple[Hashable | None, Hashable]:
        """To the node behind the call."""
        return (call, outcome), None


class Look(NamedTuple):
    """Where an LALR parser stands: its uppermost state, the terminal that it looks at, and what is owed behind that.

    ``terminal`` -1: none was read yet.  ``name`` >= 0: a text of this nonterminal was just reduced, above the state.
    """

    state: int
    terminal: int
    owed: Owed
    name: int = -1


class Reduced(NamedTuple):
    """An outcome of an LALR state that was removed from the stack: so many more are to be, then ``name`` is there."""

    terminal: int
    owed: Owed
    name: int
    more: int


_ACCEPTED = ()
"""The outcome that the text has ended."""


class StackWays:
    """An LALR parser, each of whose states has a lexer of its own: a place is the uppermost state and what it reads."""

    def __init__(self, grammar: Grammar, stacks: LalrStacks, lexemes: Lexemes, items: Items, work: Work) -> None:
        self._tables = stacks.tables
        self._ignored = frozenset(grammar.ignore)
        self._lexer = lexer_of(grammar.terminals)
        self._lexemes = lexemes
        self._items = items
        self.summaries = Summaries(self, work)

    def onward(self, continuation: int, tag: int, owed: Owed) -> tuple[int, Hashable]:
        """The terminal is looked at; an ignored one is gone."""
        return continuation, (-1 if tag in self._ignored else tag, owed, -1)

    def boundary(self, owed: Owed) -> Hashable:
        """Nothing is read yet."""
        return (-1, owed, -1)

    def rest(self, continuation: int, place: Hashable) -> Iterator[tuple[int, int, Hashable]]:
        """By each way in which the uppermost state is removed."""
        (item,) = self._items(continuation)
        look = Look((item >> 32) - 1, *cast("tuple[int, Owed, int]", place))
        below = item & 0xFFFFFFFF
        for outcome, cost in self.summaries.of(look).items():
            if outcome == _ACCEPTED:
                yield cost, 0, None
                continue
            terminal, owed, name, more = cast(Reduced, outcome)
            at = below
            for _ in range(more):
                (item,) = self._items(at)
                at = item & 0xFFFFFFFF
            yield cost, at, (terminal, owed, name)

    def below(self, continuation: int, place: Hashable) -> Iterator[tuple[int, Hashable]]:
        """As `rest`."""
        return ((at, left) for _, at, left in self.rest(continuation, place))

    def leaves(self, place: Hashable) -> Iterable[tuple[int, Hashable]]:
        """A reduction that removes the state, or the end."""
        state, terminal, owed, name = cast(Look, place)
        if name >= 0 or terminal < 0:
            return
        tables = self._tables
        if terminal == tables.end and state == tables.final:
            yield 0, _ACCEPTED
        elif terminal not in tables.shift[state]:
            rule = tables.reduce[state].get(terminal)
            if rule is not None and tables.rules[rule][1]:
                yield 0, Reduced(terminal, owed, tables.rules[rule][0], tables.rules[rule][1] - 1)

    def leads(self, place: Hashable) -> Iterable[tuple[int, Hashable]]:
        """By the next terminal, or the end of the text."""
        state, terminal, owed, name = cast(Look, place)
        if name >= 0 or terminal >= 0:
            return
        for (tag, left), cost in self._lexemes.exits(self._lexer.start(self._tables.accepts[state]), owed).items():
            yield cost, Look(state, -1 if tag in self._ignored else tag, left)
        if owed is None or not owed.violated_at_end:
            yield 0, Look(state, self._tables.end, None)

    def calls(self, place: Hashable) -> Iterable[tuple[Hashable, Hashable]]:
        """The state that is put on top: behind a terminal, or a nonterminal."""
        state, terminal, owed, name = cast(Look, place)
        tables = self._tables
        if name >= 0:
            yield Look(tables.goto[state][name], terminal, owed), state
        elif terminal >= 0 and not (terminal == tables.end and state == tables.final):
            if terminal in tables.shift[state]:
                yield Look(tables.shift[state][terminal], -1, owed), state
            else:
                rule = tables.reduce[state].get(terminal)
                if rule is not None and not tables.rules[rule][1]:
                    yield Look(tables.goto[state][tables.rules[rule][0]], terminal, owed), state

    def returned(self, call: Hashable, outcome: Hashable) -> tuple[Hashable | None, Hashable]:
        """On with the reduction."""
        if outcome == _ACCEPTED:
            return None, outcome
        terminal, owed, name, more = cast(Reduced, outcome)
        if more:
            return None, Reduced(terminal, owed, name, more - 1)
        return Look(cast(int, call), terminal, owed, name), None
