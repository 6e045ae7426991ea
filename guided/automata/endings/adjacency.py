"""Can any two terminals that may follow each other stand side by side, whatever the first one's match?

This is a quick look; where the answer is no, `guided.automata.endings.endings` decides.  A match owes something to the
matches that would have been preferred to it.  If after every match, for every terminal that may follow, some first byte
settles the debt, and every terminal of a context can be cut there, then a text can always go on, and only states in
which every thread owes need a search.  White space that is ignored settles it nearly always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from guided.automata.lexer.ordered import OrderedLexer, OrderedState, at_most, lexer_of
from guided.automata.rules.analysis import productive_rules, terminals_of
from guided.errors import LimitError
from guided.grammar.components import components
from guided.grammar.ir import Grammar, Lexing
from guided.grammar.rules import every_rule

EXPLORED = 100_000
"""Work on lexer states, some 10 us each; beyond, the answer is no, which is always safe."""

READ = 2 * EXPLORED
"""Work, some 2 us each, on reading them, also where that is only to know what can match: SQLite's names, which look
ahead for sixty keywords, take 173,000."""


def always_settles(grammar: Grammar) -> bool:
    """True only if a byte that settles every debt exists for every follower of every terminal, and none is hidden."""
    lexer = lexer_of(grammar.terminals)
    everything = frozenset(range(len(grammar.terminals)))
    contexts: set[tuple[int, ...]]
    followers: Mapping[int, Iterable[int]]
    if grammar.lexing is Lexing.CONTEXTUAL and grammar.tables is not None:
        if not _ends_everywhere(grammar):
            return False
        contexts = {order for order in grammar.tables.accepts if order}
        after: dict[int, set[int]] = {}
        for row in grammar.tables.shift:
            for terminal, target in row.items():
                after.setdefault(terminal, set()).update(grammar.tables.accepts[target])
        followers = after
    else:
        contexts = {(index,) for index in everything}
        followers = dict.fromkeys(everything, everything)
    try:
        with at_most(READ):
            debts = _debts(lexer, contexts)
    except LimitError:
        return False
    if debts is None:
        return False
    firsts = {index: _first_bytes(lexer, index) for index in everything}
    ignored = frozenset(grammar.ignore)
    spaces: frozenset[int] = frozenset()

    def settles(tag: int) -> bool:
        next_ones = everything - ignored if tag in ignored else followers.get(tag, ())
        return all(
            _settles(owed, spaces) or all(_settles(owed, firsts[index]) for index in next_ones)
            for owed in debts.get(tag, ())
        )

    # An ignored terminal settles the debts of others only if its own are settled, not by itself again.
    good: set[int] = set()
    while more := {tag for tag in ignored - good if settles(tag)}:
        good |= more
        spaces = frozenset(byte for index in good for byte in firsts[index])
    return all(settles(tag) for tag in debts)


def _debts(lexer: OrderedLexer, contexts: Iterable[tuple[int, ...]]) -> dict[int, set[OrderedState]] | None:
    """What the matches of each terminal may owe; None where that is too much work, or some terminal is never cut."""
    left = EXPLORED
    debts: dict[int, set[OrderedState]] = {}
    starts = {order: lexer.start(order) for order in sorted(contexts)}
    number = {state: index for index, state in enumerate(dict.fromkeys(starts.values()))}
    graph: list[list[int]] = []
    tags: list[int] = []
    for state in (queue := list(number)):
        left -= state.width
        if left < 0:
            return None
        here = 0
        for exit_ in state.exits:
            here |= 1 << exit_.tag
            if exit_.obligation is not None:
                if exit_.obligation.violated_at_end:
                    return None
                debts.setdefault(exit_.tag, set()).add(exit_.obligation)
        row: list[int] = []
        for _, _, target in state.edges():
            if target not in number:
                number[target] = len(queue)
                queue.append(target)
            row.append(number[target])
        graph.append(row)
        tags.append(here)
    for members in components(graph):
        found = 0
        for member in members:
            found |= tags[member]
            for other in graph[member]:
                found |= tags[other]
        for member in members:
            tags[member] = found
    for order, start in starts.items():
        if sum(1 << index for index in set(order)) & ~tags[number[start]]:
            # Another terminal is always preferred.
            return None
    return debts


def _ends_everywhere(grammar: Grammar) -> bool:
    """Can every rule end without a terminal that is ignored?  Lark's contextual lexer ignores it in rules too."""
    ignored = frozenset(grammar.ignore)
    rules = every_rule(grammar.rules)
    if any(terminal.lexer in ignored for rule in rules for terminal in terminals_of(rule.body)):
        return False
    return len(productive_rules(rules)) == len(rules)


def _first_bytes(lexer: OrderedLexer, index: int) -> frozenset[int]:
    return frozenset(byte for low, high, _ in lexer.start((index,)).edges() for byte in range(low, high + 1))


def _settles(owed: OrderedState, first: frozenset[int]) -> bool:
    return any(owed.after(byte) is None for byte in first)
