r"""The product for strings that are patterns of ECMA-262 (the format ``regex``).

The automaton knows how patterns are built, groups and their nesting included (`SKELETONS` in
`guided.grammar.formats.regex_automata`), and nothing of values: is a class range in order, is ``m <= n`` in
``{m,n}``, is there a group that a reference refers to, is the name of a group new?  The checker reads the pattern
(`guided.constraint.formats.pattern_text`).  How both go together is in `guided.constraint.formats.machine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guided.constraint.formats.machine import FormatMachine
from guided.constraint.formats.pattern_completion import PatternCompletions
from guided.constraint.formats.pattern_refusals import PatternRefusals
from guided.constraint.formats.pattern_text import BEGINNING, PatternText
from guided.grammar.formats.regex_automata import prepare_names
from guided.grammar.formats.regex_languages import reads_skeleton
from guided.grammar.regular.expr import Expr

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine
    from guided.constraint.formats.machine import Machine


class PatternMachine(FormatMachine[PatternText]):
    """The append-only tables of a compiled constraint in which some strings are patterns; states are ints into them."""

    format = "regex"

    def __init__(self, inner: Machine, base: ConstraintMachine) -> None:
        super().__init__(inner, base)
        prepare_names()
        self.beginning = BEGINNING
        self.refusals = PatternRefusals(self, base.effects)
        self.completions = PatternCompletions(self)

    def is_such(self, language: Expr) -> bool:
        """Is what is left of a string's text the rest of a skeleton of a pattern?"""
        return reads_skeleton(language)

    def why(self, text: PatternText, byte: int) -> str:
        """Why the checker refuses a byte, after "it"."""
        return "leaves no pattern: a range or quantifier is out of order, a group is not there, or a name comes twice"
