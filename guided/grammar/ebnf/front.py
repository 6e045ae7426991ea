"""`guided.ebnf`: an EBNF grammar of XGrammar's, of ISO 14977 or of the W3C as an IR grammar."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from guided.errors import GrammarError
from guided.grammar.ebnf.reader import Read, read_ebnf
from guided.grammar.folding import fold
from guided.grammar.ir import Grammar
from guided.grammar.standard_ebnf.iso import read_iso
from guided.grammar.standard_ebnf.w3c import read_w3c


class Dialect(Enum):
    """Whose EBNF a text is in."""

    XGRAMMAR = "xgrammar"
    ISO = "iso"
    """ISO/IEC 14977."""
    W3C = "w3c"
    """Section 6 of XML 1.0."""


def ebnf(
    text: str,
    *,
    dialect: str = "xgrammar",
    start: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Grammar:
    """The language of a grammar in EBNF, beginning at rule ``start``.

    ``dialect`` says whose EBNF: XGrammar's, ``"iso"`` for ISO/IEC 14977, ``"w3c"`` for the notation of XML 1.0.  A
    start that is not given is ``root`` in XGrammar's, and the first rule in the others.

    XGrammar's is that of 0.2.8.  Options: ``lazy``, ``max_chars`` and ``max_tokens`` of rules that are regular (a
    token counts for the rule in which its first byte lies, and a limit always holds); ``capture`` and
    ``temperature`` change no text and become notes, as do look-aheads, which XGrammar does not enforce.  Macros:
    ``Regex``, ``Substring``, ``TagDispatch`` and, with ``special_tokens=vocabulary.special_tokens``, ``Token``,
    ``TokenTagDispatch``, ``ExcludeToken(...)*`` of special tokens.  Free text is UTF-8, and holds no special token that
    is not named.

    Raises `GrammarError` for what the notation does not have.  Raises `UnsupportedError` for XGrammar's
    ``max_tokens=0``, for options of rules that are not regular, for one ``ExcludeToken``, for ids of tokens that are
    text and for tags inside each other.  Anchors and look-around in patterns, which XGrammar passes over, are refused
    as well.  In the other notations exceptions ``A - B`` with a side that comes back to itself are, special sequences
    and constraints in prose.

    >>> ebnf('root ::= "-"? digit+\\ndigit ::=\\n  [0-9]')
    <Grammar 'root': 2 rules, lexing none>
    >>> ebnf("comment = '#', {? U+0000 .. U+10FFFF ? - ? U+000A ?};", dialect="iso")
    <Grammar 'comment': 2 rules, lexing none>
    """
    if not isinstance(text, str):
        raise GrammarError("an EBNF grammar is a str", remedy="Read the file and pass its text.")
    try:
        chosen = Dialect(dialect)
    except ValueError:
        names = ", ".join(repr(known.value) for known in Dialect)
        raise GrammarError(f"there is no dialect {dialect!r} of EBNF", remedy=f"Use one of {names}.") from None
    if chosen is Dialect.XGRAMMAR:
        read = read_ebnf(text, special_tokens)
        start = "root" if start is None else start
        named = "ebnf"
    elif special_tokens is not None:
        raise GrammarError(
            f"the dialect {dialect!r} of EBNF names no special tokens", remedy="Leave special_tokens= out."
        )
    else:
        read = Read(read_iso(text) if chosen is Dialect.ISO else read_w3c(text), ())
        start = next(iter(read.definitions), "") if start is None else start
        named = f"ebnf {dialect}"
    folded = fold(read.definitions, start, text)
    source = f"{named}\0{start}\0{folded.special_tokens}\0{text}"
    options = {
        "dialect": dialect, "start": start, "special_tokens": dict(special_tokens) if special_tokens else None,
    }  # fmt: skip
    return Grammar(
        rules=folded.rules,
        start=0,
        rebuild=(ebnf, (text,), options),
        key=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        notes=read.notes,
        special_tokens=folded.special_tokens,
        named=None if read.named is None else replace(read.named, start=start),
    )
