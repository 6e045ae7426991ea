"""`guided.lark`: a Lark grammar as an IR grammar."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from guided.errors import UnsupportedError
from guided.grammar.ir import Grammar, Lexing
from guided.grammar.lark.load import Loaded, load
from guided.grammar.lark.rules import number_rules, read_rules
from guided.grammar.lark.tables import read_tables
from guided.grammar.lark.terminals import for_contextual_lexer, for_dynamic_lexer


def lark(
    text: str,
    *,
    start: str = "start",
    lexing: Lexing | None = None,
    import_paths: Iterable[str | os.PathLike[str]] = (),
) -> Grammar:
    """The language that Lark gives to a grammar in its notation.

    Without ``lexing``, a grammar without LALR(1) conflicts means what ``Lark(text, parser="lalr")`` parses, with its
    contextual lexer (`Lexing.CONTEXTUAL`); any other what ``Lark(text)`` parses, Earley's algorithm with the dynamic
    lexer (`Lexing.DYNAMIC`).  ``lexing`` forces one of the two; ``import_paths`` are folders for ``%import``.

    One defect of Lark is not imitated: its Earley parser raises RuntimeError on a text with two parses of which one
    ignores at the end what the other reads; such a text is accepted here.

    Raises `GrammarError` for what Lark does not load, `UnsupportedError` for ``%declare``, for backreferences in
    terminals and for `Lexing.CONTEXTUAL` on a grammar with conflicts.

    >>> lark('start: "a"+')
    <Grammar 'start': 2 rules, lexing contextual>
    """
    paths = tuple(os.fspath(path) for path in import_paths)
    if lexing is Lexing.NONE:
        raise UnsupportedError(
            "a Lark grammar has a lexer", remedy="Use Lexing.CONTEXTUAL or Lexing.DYNAMIC, or write GBNF instead."
        )
    loaded = load(text, start, paths)
    nonterminals = number_rules(loaded.rules)
    notes: tuple[str, ...] = ()
    tables = None
    terminals = None
    if lexing is not Lexing.DYNAMIC:
        terminals = for_contextual_lexer(loaded.terminals, loaded.ignore)
        read = read_tables(loaded.rules, start, terminals, nonterminals)
        if not isinstance(read, str):
            tables = read
        elif lexing is Lexing.CONTEXTUAL:
            raise UnsupportedError(
                f"the grammar is not LALR(1): {read}",
                remedy="Leave out lexing=... to read it as Lark's Earley parser does, or remove the conflict.",
            )
        else:
            notes = (f"not LALR(1) ({read}): read as Lark's Earley parser with the dynamic lexer does",)
    mode = Lexing.DYNAMIC if tables is None else Lexing.CONTEXTUAL
    if tables is None or terminals is None:
        used = {str(symbol.name) for rule in loaded.rules for symbol in rule.expansion if symbol.is_term}
        terminals = for_dynamic_lexer(loaded.terminals, loaded.ignore, used)
    return Grammar(
        rules=read_rules(loaded.rules, nonterminals, terminals.index, terminals.items),
        start=nonterminals[start],
        lexing=mode,
        terminals=terminals.items,
        ignore=tuple(sorted(terminals.ignore)),
        tables=tables,
        rebuild=(lark, (text,), {"start": start, "lexing": lexing, "import_paths": paths}),
        key=_key(loaded, start, mode),
        notes=notes,
    )


def _key(loaded: Loaded, start: str, mode: Lexing) -> str:
    """A hash of everything that decides the language, imported grammars included."""
    content: list[Any] = ["lark", start, mode.value, loaded.ignore]
    content += [(rule.origin.name, [(s.is_term, s.name) for s in rule.expansion]) for rule in loaded.rules]
    content += sorted((t.name, t.pattern.type, t.pattern.to_regexp(), t.priority) for t in loaded.terminals)
    return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()
