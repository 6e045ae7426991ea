"""Grammars without limits on tokens, for whoever reads texts and knows no tokens."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from guided.grammar.ir import Body, Grammar, ListedTerminal, Mark, Terminal
from guided.grammar.limited.terminals import most_tokens, whole_language
from guided.grammar.rewriting import Rewriting
from guided.grammar.rules import every_rule

__all__ = ["unlimited"]


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
        return replace(terminal, expr=whole_language(terminal.expr))
