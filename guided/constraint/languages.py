"""A grammar that is an L-attributed language, such as `guided.sql`'s, compiled for a vocabulary."""

from __future__ import annotations

from typing import Any

from guided.constraint.attributed import AttributedConstraint
from guided.constraint.limits import Limits
from guided.grammar.ir import Grammar
from guided.vocab.vocabulary import Vocabulary

__all__ = ["LanguageConstraint"]


class LanguageConstraint(AttributedConstraint):
    """An `AttributedConstraint` that knows its grammar, by which it is pickled."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        assert grammar.language is not None
        super().__init__(grammar.language(), vocabulary, limits)
        self.grammar = grammar

    def __reduce__(self) -> tuple[Any, ...]:
        return (LanguageConstraint, (self.grammar, self.vocabulary, self.limits))

    def __repr__(self) -> str:
        return f"<LanguageConstraint {self.grammar!r} over {self.vocabulary!r}>"
