"""Can any two terminals that may follow each other stand side by side, whatever the first one's match?

This is a quick look; where the answer is no, `guided.automata.endings` decides.  A match owes something to the matches
that would have been preferred to it.  If after every match, for every terminal that may follow, some first byte settles
the debt, and every terminal of a context can be cut there, then a text can always go on, and only states in which every
thread owes need a search.  White space that is ignored settles it nearly always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from guided.automata.analysis import productive_rules, terminals_of
from guided.automata.ordered import OrderedLexer, OrderedState, lexer_of
from guided.grammar.ir import Grammar, Lexing

EXPLORED = 100_000
"""Work on lexer states, some 10 us each; beyond, the answer is no, which is always safe."""


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
    firsts = {index: _first_bytes(lexer, index) for index in everything}
    ignored = frozenset(grammar.ignore)
    spaces = frozenset(byte for index in ignored for byte in firsts[index])
    left = EXPLORED
    settled: set[OrderedState] = set()
    for order in sorted(contexts):
        tags: set[int] = set()
        reached = {(start := lexer.start(order)): None}
        for state in (queue := [start]):
            left -= 1 if state in settled else state.width
            if left < 0:
                return False
            for exit_ in state.exits:
                tags.add(exit_.tag)
                owed = exit_.obligation
                if owed is None or state in settled:
                    continue
                if owed.violated_at_end:
                    return False
                if any(owed.after(byte) is None for byte in spaces):
                    continue
                next_ones = everything if exit_.tag in ignored else followers.get(exit_.tag, ())
                if not all(_settles(owed, firsts[index]) for index in next_ones):
                    return False
            settled.add(state)
            for _, _, after_byte in state.edges():
                if after_byte not in reached:
                    reached[after_byte] = None
                    queue.append(after_byte)
        if not tags.issuperset(order):
            # Another terminal is always preferred.
            return False
    return True


def _ends_everywhere(grammar: Grammar) -> bool:
    """Can every rule end without a terminal that is ignored?  Lark's contextual lexer ignores it in rules too."""
    ignored = frozenset(grammar.ignore)
    if any(terminal.lexer in ignored for rule in grammar.rules for terminal in terminals_of(rule.body)):
        return False
    return len(productive_rules(grammar.rules)) == len(grammar.rules)


def _first_bytes(lexer: OrderedLexer, index: int) -> frozenset[int]:
    return frozenset(byte for low, high, _ in lexer.start((index,)).edges() for byte in range(low, high + 1))


def _settles(owed: OrderedState, first: frozenset[int]) -> bool:
    return any(owed.after(byte) is None for byte in first)
