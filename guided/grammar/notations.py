"""The notations of a grammar's text, by name, and which one a text is in: for users of servers, who may not say it.

Each notation has a front end of its own; here is only the choice among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from guided.errors import GrammarError, GuidedError
from guided.grammar.antlr import antlr
from guided.grammar.ebnf import ebnf
from guided.grammar.gbnf import gbnf
from guided.grammar.ir import Grammar
from guided.grammar.lark import lark

__all__ = ["Notation", "read_as", "read_as_written"]


class Notation(Enum):
    """Whose notation a text is in."""

    LARK = "lark"
    GBNF = "gbnf"
    EBNF = "ebnf"
    """XGrammar's."""
    LLGUIDANCE = "llguidance"
    """llguidance's dialect of Lark."""
    XGRAMMAR_LARK = "xgrammar-lark"
    """XGrammar's dialect of Lark."""
    ISO_EBNF = "iso-ebnf"
    """EBNF of ISO/IEC 14977."""
    W3C_EBNF = "w3c-ebnf"
    """The W3C's EBNF, the notation of XML 1.0."""
    ANTLR = "antlr"
    """ANTLR 4's."""


def read_as(text: str, notation: Notation | str, special_tokens: Mapping[str, int] | None = None) -> Grammar:
    """The grammar of a text in a notation; ``special_tokens`` are a tokenizer's by name, for references by id.

    >>> read_as('start: "a"{2}', "llguidance")
    <Grammar 'start': 1 rules, lexing none>
    """
    try:
        notation = Notation(notation)
    except ValueError:
        names = ", ".join(repr(known.value) for known in Notation)
        raise GrammarError(f"there is no notation {notation!r}", remedy=f"Use one of {names}.") from None
    match notation:
        case Notation.GBNF:
            return gbnf(text, special_tokens=special_tokens)
        case Notation.EBNF:
            return ebnf(text, special_tokens=special_tokens)
        case Notation.ISO_EBNF | Notation.W3C_EBNF:
            return ebnf(text, dialect=notation.value.removesuffix("-ebnf"))
        case Notation.ANTLR:
            return antlr(text)
        case Notation.LARK:
            return lark(text, dialect="lark", special_tokens=True if special_tokens is None else special_tokens)
        case Notation.LLGUIDANCE | Notation.XGRAMMAR_LARK:
            dialect = notation.value.removesuffix("-lark")
            return lark(text, dialect=dialect, special_tokens=False if special_tokens is None else special_tokens)


_DEFINITION = re.compile(r"^[ \t]*[\w.-]+(?:\[[^\]\n]*\])?[ \t]*::=", re.MULTILINE)
"""What a rule begins with in GBNF and EBNF, and in Lark never."""
_NOT_NOTATION = re.compile(r'"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|//[^\n]*|#[^\n]*')
_LLGUIDANCE = re.compile(
    r"%(?:llguidance|json|regex|lark)\b|^[ \t]*[!?]?_?[a-z][\w-]*\[|::|&|~(?!\s*\d)|\{\s*,?\s*\d", re.MULTILINE
)
"""What llguidance's dialect has and Lark has not, outside strings, patterns and comments."""


def read_as_written(text: str, special_tokens: Mapping[str, int] | None = None) -> Grammar:
    """The grammar of a text in the notation that it looks like, as servers tell them apart.

    A text with ``::=`` is XGrammar's EBNF, and GBNF where that cannot be; any other is Lark, and llguidance's dialect
    of it where it has what only that has.  Raises the error of the notation that was tried first.

    >>> [read_as_written(text).rules[0].name for text in ('root ::= "a" .', 'start: %json {}')]
    ['root', 'start']
    """
    if not isinstance(text, str):
        raise GrammarError("a grammar is a str", remedy="Read the file and pass its text.")
    if _DEFINITION.search(text):
        try:
            return read_as(text, Notation.EBNF, special_tokens)
        except GuidedError as error:
            try:
                return read_as(text, Notation.GBNF, special_tokens)
            except GuidedError:
                raise error from None
    dialect = _LLGUIDANCE.search(_NOT_NOTATION.sub("", text)) is not None
    return read_as(text, Notation.LLGUIDANCE if dialect else Notation.LARK, special_tokens)
