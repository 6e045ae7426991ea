"""Which machine a grammar needs: the automaton alone, or products with the automata that its marks ask for."""

from __future__ import annotations

from typing import Any

from guided.constraint.distinct.machine import DistinctMachine
from guided.constraint.distinct.marked_rules import marks_of
from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.limits import Limits
from guided.constraint.product import ProductMachine
from guided.errors import UnsupportedError
from guided.grammar.ir import Grammar, Mark
from guided.vocab.vocabulary import Vocabulary


def machine_for(grammar: Grammar, vocabulary: Vocabulary, limits: Limits) -> ConstraintMachine | ProductMachine[Any]:
    """The machine of a grammar: a product where some rule is marked for one.

    Raises `UnsupportedError` for a grammar behind an indenter, and for one without rules.
    """
    if grammar.language is not None:
        raise UnsupportedError("an L-attributed grammar has no rules", remedy="Compile it with guided.compile.")
    if grammar.indentation is not None:
        raise UnsupportedError(
            "a grammar behind an indenter is no grammar of its own", remedy="Compile it with guided.compile."
        )
    marks = marks_of(grammar)
    found: ConstraintMachine | ProductMachine[Any]
    if marks - {Mark.PATTERN, Mark.HOST_NAME, Mark.LIMITED}:
        found = distinct = DistinctMachine(grammar, vocabulary, limits)
        base = distinct.inner
    else:
        found = base = ConstraintMachine(grammar, vocabulary, limits)
    # Few grammars have such strings, and their sides bring automata along.
    if Mark.PATTERN in marks:
        from guided.constraint.formats.patterns import PatternMachine

        found = PatternMachine(found, base)
    if Mark.HOST_NAME in marks:
        from guided.constraint.formats.hosts import HostMachine

        found = HostMachine(found, base)
    # Outermost: what a text remembers is asked for as by any text, and tokens are counted beside.
    if Mark.LIMITED in marks:
        from guided.constraint.limited.machine import LimitedMachine

        found = LimitedMachine(found, base)
    return found
