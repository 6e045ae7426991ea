"""`guided.gbnf`: llama.cpp's grammar format, character by character and without a lexer.

The language is that of the context-free grammar; every split of the text counts.  Parts that are regular become single
terminals, so that the parser has few steps: folding changes no language, only the cost.

Left recursion, which llama.cpp refuses, is fine.  A token ``<name>`` is the special token of that name; any number
of negated tokens is text, and other uses of them are refused, since a grammar knows no others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from guided.errors import GrammarError
from guided.grammar.folding import fold
from guided.grammar.gbnf_syntax import read_with_notes
from guided.grammar.ir import Grammar


def gbnf(text: str, *, start: str = "root", special_tokens: Mapping[str, int] | None = None) -> Grammar:
    """The language of a GBNF grammar, beginning at rule ``start``.

    ``<think>`` is the special token of that name, brackets included.  ``<[151657]>`` is the one with that id, which
    only ``special_tokens=vocabulary.special_tokens`` can tell.  Raises `GrammarError` for malformed text and undefined
    rules, `UnsupportedError` for ids without it and for negated tokens.

    >>> gbnf('root ::= "-"? [0-9]+ ("." [0-9]+)?')
    <Grammar 'root': 1 rules, lexing none>
    """
    if not isinstance(text, str):
        raise GrammarError("a GBNF grammar is a str", remedy="Read the file and pass its text.")
    definitions, notes = read_with_notes(text, special_tokens)
    folded = fold(definitions, start, text)
    source = f"gbnf\0{start}\0{folded.special_tokens}\0{text}"
    return Grammar(
        rules=folded.rules,
        start=0,
        rebuild=(gbnf, (text,), {"start": start, "special_tokens": dict(special_tokens) if special_tokens else None}),
        key=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        notes=notes,
        special_tokens=folded.special_tokens,
    )
