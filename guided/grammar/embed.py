"""Grammars inside grammars: their rules side by side, references renumbered.

The language of the whole is context-free over bytes, every split of the text counting, so only grammars without a lexer
can be parts: a lexer's longest match would depend on the text around it.  What a part says about itself, its notes and
special tokens and the marks of its rules, the whole says too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.ir import (
    Body,
    Choice,
    Grammar,
    Lexing,
    Mark,
    Reference,
    Rule,
    Terminal,
)
from guided.grammar.ir import Sequence as Parts
from guided.grammar.limited.terminals import limited
from guided.grammar.regular.expr import Expr
from guided.grammar.rewriting import Rewriting
from guided.grammar.rules import every_rule

__all__ = ["Assembly", "embedded_rules"]


def embedded_rules(grammar: Grammar, first: int, *, where: str | None = None) -> tuple[Rule, ...]:
    """The rules of ``grammar`` for a place at index ``first`` of another grammar's: only their references change.

    Its start is rule ``first + grammar.start``.  Raises `UnsupportedError` for a grammar with a lexer or without rules;
    ``where`` says which part of the whole it is.
    """
    if grammar.language is not None:
        raise UnsupportedError(
            "the grammar of a database's SQL follows names instead of rules, so it is no part of another grammar",
            where=where,
            remedy="Use it alone, and write what belongs around it in a text of its own.",
        )
    if grammar.lexing is not Lexing.NONE:
        raise UnsupportedError(
            "a Lark grammar cuts its text with a lexer, and inside another grammar the text around would change that",
            where=where,
            remedy="Write this part as GBNF, a regular expression or a JSON Schema, or use the Lark grammar alone.",
        )
    rules = every_rule(grammar.rules)
    if first == 0:
        return rules
    shift = _Shift(first)
    return tuple(replace(rule, body=shift.body(rule.body)) for rule in rules)


class _Shift(Rewriting):
    """Bodies with every reference moved."""

    def __init__(self, by: int) -> None:
        super().__init__()
        self.by = by

    def reference(self, reference: Reference) -> Reference:
        return replace(reference, rule=reference.rule + self.by)


class Assembly:
    """A grammar put together from rules of its own and other grammars; the same grammar is taken up once."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._starts: dict[int, Reference] = {}
        self._parts: list[Grammar] = []
        self._uses: list[str | None] = []

    def rule(self, name: str, body: Body) -> Reference:
        """Add a rule."""
        self._rules.append(Rule(name, body))
        return Reference(len(self._rules) - 1)

    def limited(self, language: Expr, label: str, most_tokens: int | None) -> Body:
        """A terminal whose text takes so many tokens at most; any number for None, and for 0 no text at all.

        Raises `GrammarError` for what is no such number.
        """
        if most_tokens is None:
            return Terminal(language, label)
        if isinstance(most_tokens, bool) or not isinstance(most_tokens, int) or most_tokens < 0:
            raise GrammarError(f"max_tokens={most_tokens!r}", where=label, remedy="Pass a number of tokens, 0 or more.")
        if most_tokens == 0:
            return Parts(())
        named = f"{label} of {most_tokens} tokens"
        self._rules.append(Rule(named, Terminal(limited(language, most_tokens), label), Mark.LIMITED))
        return Reference(len(self._rules) - 1)

    def recursive(self, name: str, body: Callable[[Reference], Body]) -> Reference:
        """Add a rule whose body refers to itself: ``body`` gets the reference."""
        self._rules.append(Rule(name, Choice(())))
        reference = Reference(len(self._rules) - 1)
        self._rules[reference.rule] = Rule(name, body(reference))
        return reference

    def embed(self, grammar: Grammar, *, where: str | None = None) -> Reference:
        """Add the rules of another grammar and refer to its start; see `embedded_rules`.

        Raises `GrammarError` for what is no grammar.
        """
        if not isinstance(grammar, Grammar):
            raise GrammarError(
                f"a part of a grammar is a {type(grammar).__name__}, not a Grammar",
                where=where,
                remedy="Make one of it: guided.json_schema(...), guided.regex(...), guided.choice([...]).",
            )
        self._uses.append(grammar.key)
        found = self._starts.get(id(grammar))
        if found is None:
            first = len(self._rules)
            self._rules += embedded_rules(grammar, first, where=where)
            self._parts.append(grammar)
            found = self._starts[id(grammar)] = Reference(first + grammar.start)
        return found

    def finish(
        self,
        start: Reference,
        *,
        source: object,
        rebuild: tuple[Callable[..., Grammar], tuple[Any, ...], Mapping[str, Any]],
    ) -> Grammar:
        """The whole, beginning at ``start``; ``source`` is what it was made of besides the parts, in plain values.

        Equal sources must have asked for their parts in the same order.  The key is None when a part has none.  Raises
        `UnsupportedError` when one part names special tokens and another has bytes that look like theirs.
        """
        names = sorted({name for part in self._parts for name in part.special_tokens})
        holds_sentinel = any(part.holds_sentinel for part in self._parts)
        if names and holds_sentinel:
            raise UnsupportedError(
                f"a part holds the byte 0xFF, which is kept for special tokens such as {names[0]}",
                remedy="Leave one of them out; no UTF-8 text holds that byte.",
            )
        key = None
        if None not in self._uses:
            content = repr((rebuild[0].__name__, source, self._uses))
            key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        return Grammar(
            rules=tuple(self._rules),
            start=start.rule,
            rebuild=rebuild,
            key=key,
            notes=tuple(dict.fromkeys(note for part in self._parts for note in part.notes)),
            special_tokens=tuple(names),
            holds_sentinel=holds_sentinel,
        )
