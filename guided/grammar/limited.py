"""Languages of which a text may take a number of tokens at most; how many it takes, a language does not know.

The wrapper changes no text.  It gives the language states of its own, so that no lexer state is shared with the same
language elsewhere; `guided.constraint.limited` knows texts within by them, and counts.  `unlimited` takes it away, for
whoever reads texts and knows no tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import cast

from guided.grammar.ir import Body, Grammar, ListedTerminal, Mark, Terminal
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.stepwise import Step, automaton_of, state_of, stepwise
from guided.grammar.rewriting import Rewriting
from guided.grammar.rules import every_rule

__all__ = ["limited", "most_tokens", "unlimited"]


class _Limited:
    """The automaton of a language's derivatives, which are its states."""

    def __init__(self, most: int) -> None:
        self.most = most

    def accepts(self, state: Hashable) -> bool:
        return cast(Expr, state).nullable

    def steps(self, state: Hashable) -> Iterable[Step]:
        return edges(cast(Expr, state))


@lru_cache(maxsize=1024)
def limited(language: Expr, most: int) -> Expr:
    """The same language, a text of which takes ``most`` tokens at most, 1 or more: so many of them begin in it.

    Equal arguments give the same expression while it is among the recently used; what is made of it stays right.
    """
    if most < 1:
        raise ValueError("a text without tokens is no text")
    return stepwise(_Limited(most), language) if edges(language) else language


def most_tokens(language: Expr) -> int | None:
    """The tokens that the whole text may take of which ``language`` is left; None where they are not limited.

    >>> from guided.grammar.regular.derivative import derivative
    >>> from guided.grammar.regular.expr import literal
    >>> most_tokens(literal(b"ab")), most_tokens(derivative(limited(literal(b"ab"), 2), ord("a")))
    (None, 2)
    """
    automaton = automaton_of(language)
    return automaton.most if isinstance(automaton, _Limited) else None


def unlimited(grammar: Grammar) -> Grammar:
    """The texts of a grammar, however many tokens they take; notes say which limits were left out.

    >>> import guided
    >>> unlimited(guided.think(guided.choice(["yes"]), max_tokens=100)).notes
    ('thinking: max_tokens=100 counts the tokens of a vocabulary, and is left out here',)
    """
    if grammar.language is not None or all(rule.mark is not Mark.LIMITED for rule in every_rule(grammar.rules)):
        return grammar
    rewriting = _Unlimited()
    rules = tuple(
        replace(rule, body=rewriting.body(rule.body), mark=None) if rule.mark is Mark.LIMITED else rule
        for rule in every_rule(grammar.rules)
    )
    return replace(
        grammar,
        rules=rules,
        rebuild=(unlimited, (grammar,), {}),
        key=None if grammar.key is None else hashlib.sha256(f"unlimited {grammar.key}".encode()).hexdigest(),
        notes=tuple(dict.fromkeys((*grammar.notes, *rewriting.notes))),
    )


class _Unlimited(Rewriting):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def terminal(self, terminal: Terminal | ListedTerminal) -> Body:
        if isinstance(terminal, ListedTerminal):
            return terminal
        most = most_tokens(terminal.expr)
        if most is None:
            return terminal
        name = terminal.label or "a text"
        self.notes.append(f"{name}: max_tokens={most} counts the tokens of a vocabulary, and is left out here")
        return replace(terminal, expr=cast(Expr, state_of(terminal.expr)))
