"""Regular expressions in Python's, ECMA-262's and other engines' notations, as grammars."""

from __future__ import annotations

import hashlib

from guided.errors import GrammarError, UnsatisfiableError, UnsupportedError
from guided.grammar.ir import Grammar, Rule, Terminal
from guided.grammar.regex.lower import contains_assertions, lower, search
from guided.grammar.regex.notations import rust_pattern, xgrammar_pattern
from guided.grammar.regex.parse import parse
from guided.grammar.regex.syntax import Dialect, Node
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.decide import is_empty

__all__ = ["Dialect", "Node", "contains_assertions", "lower", "parse", "regex", "search"]


def regex(pattern: str, *, dialect: Dialect | str = Dialect.PYTHON, flags: int = 0) -> Grammar:
    r"""The texts that ``pattern`` matches from end to end, as ``re.fullmatch`` would say, in UTF-8.

    ``dialect``: `Dialect.PYTHON` (the meaning of `re`, with ``\p{..}`` besides), `Dialect.ECMA` (ECMA-262 in Unicode
    mode), `Dialect.RUST` or `Dialect.XGRAMMAR` (as llguidance and XGrammar read it, without look-around and anchors),
    also by name.  ``flags`` are those of `re`, for the first two.  Look-around, word boundaries and anchors are exact
    wherever they stand; backreferences to groups with few texts are written out; other backreferences, conditional
    groups and most atomic groups are refused with their offset (`UnsupportedError`).  Raises `GrammarError` for a
    malformed pattern, `LimitError` for one whose assertions need too large an automaton, `UnsatisfiableError` when no
    text matches.

    >>> regex(r"\d{4}-\d\d")
    <Grammar '\\d{4}-\\d\\d': 1 rules, lexing none>
    """
    if not isinstance(pattern, str):
        raise GrammarError(
            f"a pattern is a str, not {type(pattern).__name__}",
            remedy="Decode it, or pass pattern.pattern and its flags.",
        )
    try:
        dialect = Dialect(dialect)
    except ValueError:
        names = " or ".join(repr(known.value) for known in Dialect)
        raise GrammarError(f"unknown dialect {dialect!r}", remedy=f"Use {names}.") from None
    flags = int(flags)
    language = lower(_tree(pattern, dialect, flags), Utf8())
    if is_empty(language):
        raise UnsatisfiableError(
            f"no text matches the pattern {pattern!r}", remedy="Look for assertions that contradict each other."
        )
    source = repr(("regex", pattern, dialect.value, flags))
    return Grammar(
        rules=(Rule(pattern, Terminal(language, pattern)),),
        start=0,
        rebuild=(regex, (pattern,), {"dialect": dialect, "flags": flags}),
        key=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
    )


def _tree(pattern: str, dialect: Dialect, flags: int) -> Node:
    if dialect in (Dialect.PYTHON, Dialect.ECMA):
        return parse(pattern, dialect, flags)
    if flags:
        raise UnsupportedError(
            f"flags for a pattern in {dialect.value}'s notation", remedy="Write them into the pattern: (?i)..."
        )
    return rust_pattern(pattern) if dialect is Dialect.RUST else xgrammar_pattern(pattern)
