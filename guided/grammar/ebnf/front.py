"""`guided.ebnf`: an EBNF grammar of XGrammar's as an IR grammar."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from guided.errors import GrammarError
from guided.grammar.ebnf.reader import read_ebnf
from guided.grammar.folding import fold
from guided.grammar.ir import Grammar


def ebnf(text: str, *, start: str = "root", special_tokens: Mapping[str, int] | None = None) -> Grammar:
    """The language that XGrammar 0.2.8 gives to a grammar in its EBNF, beginning at rule ``start``.

    Options: ``lazy`` and ``max_chars`` of rules that are regular; ``capture`` and ``temperature`` change no text and
    become notes, as do look-aheads, which XGrammar does not enforce.  Macros: ``Regex``, ``Substring``, ``TagDispatch``
    and, with ``special_tokens=vocabulary.special_tokens``, ``Token``, ``TokenTagDispatch``, ``ExcludeToken(...)*`` of
    special tokens.  Free text is UTF-8, and holds no special token that is not named.

    Raises `GrammarError` for what XGrammar does not read, `UnsupportedError` for ``max_tokens``, for options of rules
    that are not regular, for one ``ExcludeToken``, ids of tokens that are text, for tags inside each other, and for
    anchors and look-around in patterns, which XGrammar passes over.

    >>> ebnf('root ::= "-"? digit+\\ndigit ::=\\n  [0-9]')
    <Grammar 'root': 2 rules, lexing none>
    """
    if not isinstance(text, str):
        raise GrammarError("an EBNF grammar is a str", remedy="Read the file and pass its text.")
    read = read_ebnf(text, special_tokens)
    folded = fold(read.definitions, start, text)
    source = f"ebnf\0{start}\0{folded.special_tokens}\0{text}"
    return Grammar(
        rules=folded.rules,
        start=0,
        rebuild=(ebnf, (text,), {"start": start, "special_tokens": dict(special_tokens) if special_tokens else None}),
        key=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        notes=read.notes,
        special_tokens=folded.special_tokens,
    )
