"""LALR(1) parse tables of plain context-free rules, in counted steps.

Lark's own construction looks through all alternatives of a rule for every item before it, and takes minutes for what
is done here in a tenth of a second.  Symbols are ints: nonterminals from 0 on, terminals behind them.

Source: DeRemer and Pennello, "Efficient Computation of LALR(1) Look-Ahead Sets", 1982.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guided.errors import LimitError
from guided.grammar.components import components

MOST_STEPS = 300_000
"""Items looked at, a microsecond or two each.  Lark's grammar of Python takes 60,000."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """The states of the parser, 0 where a text begins.

    ``moves[state]`` maps symbols to states; ``reduces[state]`` maps rules that may end there to the bit set of the
    terminals (from bit 0 on) before which they do; the end of the text is the bit behind the last terminal.
    """

    moves: list[dict[int, int]]
    reduces: list[dict[int, int]]


class _Steps:
    def __init__(self) -> None:
        self.left = MOST_STEPS

    def spend(self, n: int) -> None:
        self.left -= n
        if self.left < 0:
            raise LimitError(
                f"the grammar's LALR(1) table takes more than {MOST_STEPS} steps",
                remedy="Give the alternatives inside its rules, above all repeated ones, rules of their own, or pass "
                "lexing=Lexing.DYNAMIC.",
            )


def build(rules: Sequence[tuple[int, tuple[int, ...]]], start: int, n_names: int, n_terminals: int) -> Automaton:
    """The automaton of ``rules``, each a nonterminal and what it derives, with all look-aheads.

    Conflicts are left in it.  Raises `LimitError`.
    """
    steps = _Steps()
    by_name: list[list[int]] = [[] for _ in range(n_names)]
    for index, (name, _) in enumerate(rules):
        by_name[name].append(index)
    moves = _states(rules, by_name, start, steps)
    nullable = _nullable(rules, n_names)
    # Transitions by nonterminals, and what each may be followed by.
    number: dict[tuple[int, int], int] = {}
    for state, row in enumerate(moves):
        for symbol in row:
            if symbol < n_names:
                number[state, symbol] = len(number)
    reads: list[list[int]] = []
    follow: list[int] = []
    for state, symbol in number:
        after = moves[moves[state][symbol]]
        steps.spend(len(after))
        terminals = 0
        more: list[int] = []
        for other in after:
            if other >= n_names:
                terminals |= 1 << (other - n_names)
            elif other in nullable:
                more.append(number[moves[state][symbol], other])
        reads.append(more)
        follow.append(terminals | (1 << n_terminals if state == 0 and symbol == start else 0))
    _spread(reads, follow)
    includes: list[list[int]] = [[] for _ in number]
    ends: list[tuple[int, int, int]] = []
    """Each rule's end as ``(state, rule, transition by its name from where it began)``."""
    for (state, name), index in number.items():
        for rule in by_name[name]:
            derived = rules[rule][1]
            steps.spend(1 + len(derived))
            path = [state]
            for symbol in derived:
                path.append(moves[path[-1]][symbol])
            ends.append((path[-1], rule, index))
            for place in range(len(derived) - 1, -1, -1):
                symbol = derived[place]
                if symbol >= n_names:
                    break
                includes[number[path[place], symbol]].append(index)
                if symbol not in nullable:
                    break
    _spread(includes, follow)
    reduces: list[dict[int, int]] = [{} for _ in moves]
    for state, rule, index in ends:
        reduces[state][rule] = reduces[state].get(rule, 0) | follow[index]
    return Automaton(moves, reduces)


def _states(
    rules: Sequence[tuple[int, tuple[int, ...]]], by_name: list[list[int]], start: int, steps: _Steps
) -> list[dict[int, int]]:
    """The moves of the LR(0) automaton, whose items are ``offset of the rule + symbols read``."""
    offset = [0]
    for _, derived in rules:
        offset.append(offset[-1] + len(derived) + 1)
    symbols = [symbol for _, derived in rules for symbol in (*derived, -1)]
    first = [[offset[rule] for rule in group] for group in by_name]
    lefts = _lefts(rules, by_name)
    numbers: dict[tuple[int, ...], int] = {}
    kernels: list[tuple[int, ...]] = [()]
    moves: list[dict[int, int]] = []
    for state, kernel in enumerate(kernels):
        items = list(kernel)
        begun: set[int] = set() if state else {start, *lefts[start]}
        for item in kernel:
            name = symbols[item]
            if 0 <= name < len(by_name) and name not in begun:
                begun.add(name)
                begun |= lefts[name]
        for name in sorted(begun):
            items += first[name]
        steps.spend(len(items))
        after: dict[int, list[int]] = {}
        for item in items:
            if symbols[item] >= 0:
                after.setdefault(symbols[item], []).append(item + 1)
        if state == 0:
            after.setdefault(start, [])
        row: dict[int, int] = {}
        for symbol, following in after.items():
            # What follows the whole text is a state of its own, even if nothing can go on there.
            key = (-1 if state == 0 and symbol == start else 0, *sorted(following))
            found = numbers.get(key)
            if found is None:
                found = numbers[key] = len(kernels)
                kernels.append(key[1:])
            row[symbol] = found
        moves.append(row)
    return moves


def _lefts(rules: Sequence[tuple[int, tuple[int, ...]]], by_name: list[list[int]]) -> list[frozenset[int]]:
    """For each nonterminal those that a text of it may be reduced to first: the first symbols, and so on."""
    direct = [
        sorted({rules[rule][1][0] for rule in group if rules[rule][1] and rules[rule][1][0] < len(by_name)})
        for group in by_name
    ]
    found: list[frozenset[int]] = [frozenset()] * len(by_name)
    for members in components(direct):
        reached: set[int] = set()
        for member in members:
            reached.update(direct[member])
            for other in direct[member]:
                reached |= found[other]
        for member in members:
            found[member] = frozenset(reached)
    return found


def _nullable(rules: Sequence[tuple[int, tuple[int, ...]]], n_names: int) -> frozenset[int]:
    users: list[list[int]] = [[] for _ in range(n_names)]
    missing = [len(derived) for _, derived in rules]
    for index, (_, derived) in enumerate(rules):
        for symbol in derived:
            if symbol < n_names:
                users[symbol].append(index)
    found: set[int] = set()
    work = [name for name, derived in rules if not derived]
    while work:
        name = work.pop()
        if name in found:
            continue
        found.add(name)
        for index in users[name]:
            missing[index] -= 1
            if not missing[index]:
                work.append(rules[index][0])
    return frozenset(found)


def _spread(graph: list[list[int]], sets: list[int]) -> None:
    """Add to the set of each node those of all nodes that it leads to."""
    for members in components(graph):
        union = 0
        for member in members:
            union |= sets[member]
            for other in graph[member]:
                union |= sets[other]
        for member in members:
            sets[member] = union
