"""Languages in which whatever is begun can be gone on with to infinitely many texts: leaving words out hinders none."""

from __future__ import annotations

from guided.grammar.regular.condensed import condensed, lengths_of
from guided.grammar.regular.derivative import edges, possible_edges
from guided.grammar.regular.expr import Expr

__all__ = ["is_endless"]

MAX_STATES = 400
"""States of a minimal automaton that are looked at, some 20 microseconds each; those of names without a few words have
below 100."""
MAX_REMEMBERED = 20_000

_known: dict[Expr, bool] = {}


def is_endless(language: Expr) -> bool:
    """Has every state of a minimal automaton infinitely many texts?  False also for what is none, or a large one."""
    found = _known.get(language)
    if found is None:
        if len(_known) >= MAX_REMEMBERED:
            _known.clear()
        work = [condensed(language, possible_edges)]
        seen = set(work)
        found = True
        for item in work:
            known = lengths_of(item)
            if known is None or not known.infinite or len(work) > MAX_STATES:
                found = False
                break
            for _, _, target in edges(item):
                if target not in seen:
                    seen.add(target)
                    work.append(target)
        if found:
            _known.update(dict.fromkeys(work, True))
        _known[language] = found
    return found
