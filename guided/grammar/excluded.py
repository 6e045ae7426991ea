"""JSON in which no string holds certain words, as it is written: the same rules with fewer strings.

A word is looked for between the quotes of one string, property names among them, and not across several.  What can be
written otherwise may be: ``"\\u0061b"`` does not hold ``ab``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from guided.errors import UnsupportedError
from guided.grammar.ir import (
    AnyTerminal,
    Body,
    Choice,
    Grammar,
    ListedTerminal,
    Mark,
    Member,
    Members,
    Rule,
    Terminal,
)
from guided.grammar.regular.derivative import edges, inhabited
from guided.grammar.regular.expr import Expr, concat, intersection, literal
from guided.grammar.rewriting import Rewriting
from guided.grammar.rules import every_rule
from guided.grammar.tags.free_text import innermost, text_without

__all__ = ["Excluded", "excluding"]

_QUOTE = literal(b'"')
_NOTHING = Choice(())


def excluding(grammar: Grammar, words: Sequence[str]) -> Grammar:
    """The JSON texts of a grammar in whose strings none of ``words`` is written.

    Raises `UnsupportedError` for strings that only a checker knows.
    """
    words = tuple(innermost(words))
    excluded = Excluded(words)
    digest = None if grammar.key is None else hashlib.sha256(repr((grammar.key, words)).encode()).hexdigest()
    return Grammar(
        rules=tuple(excluded.rule(rule) for rule in every_rule(grammar.rules)),
        start=grammar.start,
        rebuild=(excluding, (grammar, words), {}),
        key=digest,
        notes=grammar.notes,
    )


class Excluded(Rewriting):
    """Rules with the words left out."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self._inside = concat(_QUOTE, text_without(innermost(words)), _QUOTE)
        self._terminals: dict[Expr, Terminal | None] = {}

    def rule(self, rule: Rule) -> Rule:
        """The rule without the words."""
        if rule.mark in (Mark.PATTERN, Mark.HOST_NAME, Mark.LIMITED):
            raise UnsupportedError(
                "texts that no string may hold, beside strings of a format that is checked and texts of limited tokens",
                where=rule.name,
                remedy='Leave out "format" and limits, or what is excluded.',
            )
        return replace(rule, body=self.body(rule.body))

    def terminal(self, terminal: Terminal | ListedTerminal) -> Body:
        """The terminal without the words."""
        found = self._left_of(terminal)
        return _NOTHING if found is None else found

    def members(self, members: Members) -> Body:
        """The members whose names can be written without the words; none where a required one cannot."""
        declared = [(member, self._kept(member)) for member in members.declared]
        if any(found is None and member.required for member, found in declared):
            return _NOTHING
        return replace(
            members,
            declared=tuple(found for _, found in declared if found is not None),
            extras=tuple(found for found in map(self._kept, members.extras) if found is not None),
            separator=self.body(members.separator),
        )

    def _kept(self, member: Member) -> Member | None:
        key = self._left_of(member.key)
        return None if key is None else replace(member, key=key, value=self.body(member.value))

    def _left_of(self, terminal: AnyTerminal) -> Terminal | None:
        """The terminal, of strings those without the words; None where there are none."""
        language = terminal.language()
        if language not in self._terminals:
            self._terminals[language] = self._left(Terminal(language, terminal.label))
        return self._terminals[language]

    def _left(self, terminal: Terminal) -> Terminal | None:
        first = edges(terminal.expr)
        if not first or any(low != high or low != ord('"') for low, high, _ in first):
            return terminal
        left = intersection((terminal.expr, self._inside))
        return replace(terminal, expr=left) if inhabited(left) else None
