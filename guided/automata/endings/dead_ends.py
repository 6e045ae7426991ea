"""Matches that can never end, since each way on breaks what an earlier match owes.

A quick look that is right where it says so: `guided.automata.endings.endings` decides the rest, and a search for an end
would have to read all that may come first.
"""

from __future__ import annotations

from guided.automata.lexer.ordered import OrderedState

MOST_PAIRS = 200
"""Pairs of a state and what is owed that are looked at, some 10 us each; dead ends of random grammars have up to 60."""


def leads_nowhere(state: OrderedState, owed: OrderedState) -> bool:
    """Does no text end the match that a lexer is in without a violation?  "No" is also said where that is much work."""
    pairs = [(state, owed)]
    seen = {(state, owed)}
    for at, rival in pairs:
        debts = rival.edges()
        for low, high, target in at.edges():
            free = low
            for first, last, debt in debts:
                if last < low or first > high:
                    continue
                if first > free:
                    break  # a byte between settles it, and edges lead to an end
                free = last + 1
                if debt.violated or (target, debt) in seen:
                    continue
                if target.exits or len(pairs) == MOST_PAIRS:
                    return False
                seen.add((target, debt))
                pairs.append((target, debt))
            if free <= high:
                return False
    return True
