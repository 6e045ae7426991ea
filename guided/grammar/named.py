"""What the rules of a notation say about reading its texts: plain data that a grammar keeps beside its language.

Rules of XGrammar's EBNF and of both dialects of Lark name parts of the text (``capture``), with or without what ends
them.  The rules of a `Grammar` are folded and say nothing of that, so the pieces that they were made of are kept here;
`guided.reading.named` reads texts by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from guided.grammar.ir import Grammar
from guided.grammar.pieces import Definition
from guided.grammar.regular.expr import Expr

__all__ = ["IGNORED", "Ending", "NamedRule", "NamedRules", "Peer", "named_rules"]

IGNORED = "ignored text"
"""The label of what ``%ignore`` puts behind lexemes; no other piece has it."""


class Peer(Enum):
    """Whose captures a grammar's are."""

    XGRAMMAR = "xgrammar"
    LLGUIDANCE = "llguidance"


@dataclass(frozen=True, slots=True)
class Ending:
    """A rule's text is a body and a marker behind it: two languages, or ``n_bytes`` of marker."""

    body: Expr | None = None
    marker: Expr | None = None
    n_bytes: int = 0
    is_hidden: bool = False
    """Is the marker left out of the captures around the rule, too?"""


@dataclass(frozen=True, slots=True)
class NamedRule:
    """What one rule says."""

    name: str | None = None
    """That of its capture."""
    ending: Ending | None = None
    marker_name: str | None = None
    """That of the capture of its marker."""
    is_lexeme: bool = False
    """Is it cut from the text as one, so that no ignored text before it belongs to its capture?"""


@dataclass(frozen=True, slots=True, eq=False)
class NamedRules:
    """All rules of a grammar as pieces, and what some of them say, by their names in ``definitions``."""

    definitions: Mapping[str, Definition]
    start: str
    peer: Peer
    rules: Mapping[str, NamedRule]
    within: Mapping[str, Expr] = field(default_factory=dict)
    """Rules whose options narrow the language of their definition to this one."""


def named_rules(grammar: Grammar) -> NamedRules | None:
    """The rules of a grammar as pieces; None where its notation names no parts of texts."""
    return grammar.named if isinstance(grammar.named, NamedRules) else None
