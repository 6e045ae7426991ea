"""The slow, obvious twin of the engine: an Earley recogniser over bytes for any `Grammar` without a lexer.

It expands counted repetitions and member lists into plain productions, so keep the bounds small.  It is the oracle
that engines, front ends and masks are compared with; it shares nothing with them but the derivatives of terminals.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from guided.grammar.ir import (
    AnyTerminal,
    Body,
    Choice,
    DeferredMembers,
    Grammar,
    Lexing,
    Members,
    Reference,
    Repetition,
    Sequence,
)
from guided.grammar.regular.derivative import derivative, inhabited
from guided.grammar.regular.expr import Expr
from guided.grammar.rules import every_rule

Symbol = "int | Expr"


@dataclass
class Productions:
    """Plain context-free productions: ``rules[n]`` is a list of right-hand sides of ints and terminal expressions."""

    rules: list[list[tuple[object, ...]]] = field(default_factory=list)

    def new(self) -> int:
        self.rules.append([])
        return len(self.rules) - 1


def productions(grammar: Grammar) -> tuple[Productions, int]:
    assert grammar.lexing is Lexing.NONE, "the twin knows no lexer"
    table = Productions()
    for _ in range(len(grammar.rules)):
        table.new()
    for index, rule in enumerate(every_rule(grammar.rules)):
        table.rules[index].append((_lower(table, rule.body),))
    return _productive(table), grammar.start


def _lower(table: Productions, body: Body) -> object:
    if isinstance(body, AnyTerminal):
        return body.language()
    if isinstance(body, DeferredMembers):
        body = body.written()
    if isinstance(body, Reference):
        return body.rule
    name = table.new()
    rules = table.rules[name]
    if isinstance(body, Sequence):
        rules.append(tuple(_lower(table, part) for part in body.parts))
    elif isinstance(body, Choice):
        rules.extend((_lower(table, option),) for option in body.options)
    elif isinstance(body, Repetition):
        item = _lower(table, body.body)
        between = () if body.separator is None else (_lower(table, body.separator),)
        tail = table.new()  # any further items
        if body.high is None:
            table.rules[tail].extend([(), (*between, item, tail)])
            last = tail
        else:
            last = table.new()
            table.rules[last].append(())
            for _ in range(body.high - max(body.low, 1)):
                step = table.new()
                table.rules[step].extend([(), (*between, item, last)])
                last = step
        if body.high is None or body.high >= 1:
            first: list[object] = [item]
            for _ in range(max(body.low, 1) - 1):
                first.extend([*between, item])
            rules.append((*first, last))
        if body.low == 0:
            rules.append(())
    elif isinstance(body, Members):
        _members(table, name, body)
    return name


def _members(table: Productions, name: int, body: Members) -> None:
    pairs = [(_lower(table, m.key), _lower(table, m.value)) for m in (*body.declared, *body.extras)]
    between = _lower(table, body.separator)
    n_declared = len(body.declared)
    required = {i for i, m in enumerate(body.declared) if m.required}
    cap = body.high if body.high is not None else max(body.low, n_declared) + 1
    memo: dict[tuple[frozenset[int], int, int, int], int] = {}

    def state(used: frozenset[int], position: int, count: int, met: int) -> int:
        key = (used, position, count, met)
        if key in memo:
            return memo[key]
        memo[key] = node = table.new()
        enough = count >= body.low and required <= used and not body.goals & ~met
        if enough:
            table.rules[node].append(())
        lead = (between,) if count else ()
        for i, pair in enumerate(pairs):
            over = body.high is not None and count + 1 > body.high
            if over or i in used or (body.ordered and i < n_declared and i < position):
                continue
            if body.ordered and i < n_declared and any(j not in used for j in required if j < i):
                continue
            extra = i >= n_declared
            then = met | body.extras[i - n_declared].meets if extra else met
            after = state(used if extra else used | {i}, position if extra else i + 1, min(count + 1, cap), then)
            table.rules[node].append((*lead, *pair, after))
        return node

    table.rules[name].append((state(frozenset(), 0, 0, 0),))


def _productive(table: Productions) -> Productions:
    productive: set[int] = set()
    changed = True

    def alive(symbol: object) -> bool:
        return symbol in productive if isinstance(symbol, int) else inhabited(symbol)  # type: ignore[arg-type]

    while changed:
        changed = False
        for index, rules in enumerate(table.rules):
            if index not in productive and any(all(map(alive, right)) for right in rules):
                productive.add(index)
                changed = True
    table.rules = [[right for right in rules if all(map(alive, right))] for rules in table.rules]
    return table


class Recogniser:
    """Feeds bytes one by one: ``alive`` says that some text goes on from here, ``accepting`` that it may end here.

    >>> from guided.grammar.regular.expr import literal
    >>> from guided.grammar.ir import Rule, Terminal
    >>> g = Grammar((Rule("s", Choice((Sequence(()), Sequence((Terminal(literal(b"ab")), Reference(0)))))),), 0)
    >>> [Recogniser(g).feed(t).accepting for t in (b"abab", b"aba")]
    [True, False]
    """

    def __init__(self, grammar: Grammar) -> None:
        self.table, self.start = productions(grammar)
        self.columns: list[set[tuple[int, tuple[object, ...], int, int]]] = []
        # Terminals in flight: (residual, the item that waits for it).
        self.flight: set[tuple[Expr, tuple[int, tuple[object, ...], int, int]]] = set()
        self._close({(self.start, right, 0, 0) for right in self.table.rules[self.start]})

    def _close(self, items: set[tuple[int, tuple[object, ...], int, int]]) -> None:
        at = len(self.columns)
        column: set[tuple[int, tuple[object, ...], int, int]] = set()
        self.columns.append(column)
        completed_here: set[int] = set()  # nullable: nonterminals completed at this very position
        work = list(items)
        while work:
            item = work.pop()
            if item in column:
                continue
            column.add(item)
            name, right, dot, origin = item
            if dot == len(right):
                if origin == at:
                    completed_here.add(name)
                for waiting in list(self.columns[origin]):
                    if waiting[2] < len(waiting[1]) and waiting[1][waiting[2]] == name:
                        work.append((waiting[0], waiting[1], waiting[2] + 1, waiting[3]))
            else:
                symbol = right[dot]
                if isinstance(symbol, int):
                    work.extend((symbol, rule, 0, at) for rule in self.table.rules[symbol])
                    if symbol in completed_here:
                        work.append((name, right, dot + 1, origin))
                else:
                    self.flight.add((symbol, item))
                    if symbol.nullable:
                        work.append((name, right, dot + 1, origin))

    def feed(self, data: bytes) -> Recogniser:
        for byte in data:
            flight, self.flight = self.flight, set()
            completed = set()
            for expr, item in flight:
                after = derivative(expr, byte)
                if after is not None:
                    self.flight.add((after, item))
                    if after.nullable:
                        completed.add((item[0], item[1], item[2] + 1, item[3]))
            self._close(completed)
        return self

    @property
    def alive(self) -> bool:
        return bool(self.flight) or self.accepting

    @property
    def accepting(self) -> bool:
        return any(n == self.start and d == len(r) and o == 0 for n, r, d, o in self.columns[-1])


def accepts(grammar: Grammar, data: bytes) -> bool:
    return Recogniser(grammar).feed(data).accepting


def is_prefix(grammar: Grammar, data: bytes) -> bool:
    return Recogniser(grammar).feed(data).alive
