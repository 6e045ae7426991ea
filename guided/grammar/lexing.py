"""What a grammar with a lexer adds to the IR: terminals with match order, and LALR tables.

Lark cuts text with Python regular expressions, whose matches are not simply longest: the *preferred* match follows the
order of alternatives and the laziness of quantifiers.  `LexerTerminal.pattern` keeps that order (a parsed pattern,
`guided.grammar.regex.syntax`); `guided.automata.lexer.ordered` turns it into states that know, when a match ends, which
other match would have been preferred had the text gone on differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Beside:
    """What a terminal is among all: one of ``rule``, and of a rule's terminals the first is preferred.

    ``gives_up``: once a preferred way of the rule has matched, this terminal's other ways are given up (behind what is
    not greedy).
    """

    rule: int
    gives_up: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LexerTerminal:
    """One terminal of a lexer.

    ``pattern`` is the parsed regular expression (`guided.grammar.regex.syntax` node).  ``keywords``: when this
    terminal's match is wholly matched by one of these patterns, it becomes the terminal of the first that does (Lark: a
    string terminal inside a regex terminal; case-insensitive strings are why they are patterns), as
    ``(pattern, terminal index)``.  Only keywords that are candidates at that position count.  ``absorbs``: terminals
    that are not tried on their own where this one is a candidate.

    ``beside``: the terminal is matched with all others of the grammar at once, of which the longest match is taken, of
    equally long ones the first terminal's (ANTLR); None: by itself, or with those that a parser may read, as Lark does.
    All terminals of a grammar have it, or none.
    """

    name: str
    pattern: Any
    keywords: tuple[tuple[Any, int], ...] = ()
    absorbs: frozenset[int] = frozenset()
    beside: Beside | None = None


NEWLINE, INSIDE, INDENT, DEDENT, OPEN, CLOSE = map(chr, range(1, 7))
"""The marks in a grammar with indentation, written as special tokens: a new line, one inside brackets, more and less
indentation, and what stands behind brackets.  Names of one byte, since the ways to the end are counted in bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Indentation:
    """What the reader of an indented text needs beside a grammar of marks, see `guided.grammar.lark.indented`.

    ``newline`` is the terminal whose match an indenter looks into, ``opens`` and ``closes`` are the brackets in which
    it does not.
    """

    newline: LexerTerminal
    tab_length: int
    opens: tuple[bytes, ...]
    closes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LalrTables:
    """A deterministic LALR(1) parser: for each state, what each terminal does.

    ``shift[state]`` maps terminal index to next state; ``reduce[state]`` maps terminal index to rule index; the end of
    text is terminal index ``end``.  ``rules[i] = (nonterminal, length)``; ``goto[state]`` maps nonterminal to state.
    ``final`` is the state in which, after all reductions on ``end``, the text is accepted.  ``accepts[state]`` are the
    candidates of its lexer, in match order (first wins), ignored ones included; those are in no other table.
    """

    start: int
    final: int
    end: int
    shift: tuple[Mapping[int, int], ...]
    reduce: tuple[Mapping[int, int], ...]
    goto: tuple[Mapping[int, int], ...]
    rules: tuple[tuple[int, int], ...]
    accepts: tuple[tuple[int, ...], ...]
