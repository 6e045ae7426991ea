"""ANTLR 4 grammars: parser and lexer rules of combined grammars, as far as these are context-free.

A text is in the language just if ANTLR's lexer cuts it without an error into tokens of which its parser makes the
start rule up to the end of the text without one.  The lexer takes the longest match of all rules, of equally long ones
the first rule's, whatever the parser could use (`lexer_rules`); the parser knows any context-free grammar
(`parser_rules`).
Actions, predicates, arguments, modes, imports and options that change the language are refused by line and column.
"""

from __future__ import annotations

import hashlib

from guided.errors import GrammarError, LimitError
from guided.grammar.antlr.lexer_rules import read_lexer
from guided.grammar.antlr.parser_rules import literals_of, read_parser
from guided.grammar.antlr.reader import read_antlr
from guided.grammar.ir import Grammar, Lexing

__all__ = ["antlr"]


def antlr(text: str, *, start: str | None = None) -> Grammar:
    """The language of an ANTLR 4 grammar from a parser rule on, the first where none is named.

    Texts are read to their end, whether or not the rule ends in ``EOF``.  Raises `GrammarError` for what is no grammar
    of ANTLR's, and `UnsupportedError` for what is not read here, with line and column; `LimitError` for what nests too
    deeply or is too large with its fragments written out.

    >>> antlr("grammar L; list: ID (',' ID)* EOF; ID: [a-z]+; WS: [ ]+ -> skip;")
    <Grammar 'list': 1 rules, lexing dynamic>
    """
    if not isinstance(text, str):
        raise GrammarError("an ANTLR grammar is a str", remedy="Read the file and pass its text.")
    try:
        rules, notes = read_antlr(text)
        lexer = read_lexer(rules, literals_of(rules), text)
        made, first = read_parser(rules, start, lexer, text)
    except RecursionError:
        raise LimitError("fragments name each other too deeply", remedy="Let the parser put them together.") from None
    return Grammar(
        rules=made,
        start=first,
        lexing=Lexing.DYNAMIC,
        terminals=lexer.terminals,
        ignore=lexer.ignored,
        rebuild=(antlr, (text,), {"start": start}),
        key=hashlib.sha256(repr(("antlr", text, start)).encode("utf-8", "surrogatepass")).hexdigest(),
        notes=notes,
    )
