"""Special tokens as terminals of a grammar: `guided.special_token`.

Which tokenizer has them is asked when grammar and vocabulary meet; here they are names.
"""

from __future__ import annotations

import hashlib

from guided.errors import GrammarError
from guided.grammar.ir import Grammar, Rule, Terminal
from guided.grammar.regular.expr import literal
from guided.marks import mark

__all__ = ["special_terminal", "special_token"]


def special_token(name: str) -> Grammar:
    """The special token ``name`` of the tokenizer, such as ``<|tool_call|>``: that one id, never its name as text.

    To be embedded in other grammars, as in `guided.tags`.  Compiling raises `VocabularyError`, with the names that look
    like it, for a vocabulary that has no such token, and for one whose end-of-text token it is.

    >>> special_token("<think>")
    <Grammar '<think>': 1 rules, lexing none>
    """
    return Grammar(
        rules=(Rule(name, special_terminal(name)),),
        start=0,
        rebuild=(special_token, (name,), {}),
        key=hashlib.sha256(f"special_token\0{name}".encode()).hexdigest(),
        special_tokens=(name,),
    )


def special_terminal(name: str, *, where: str | None = None) -> Terminal:
    """The terminal of a special token; raises `GrammarError` for what cannot be a name.

    The rule it stands in belongs to a grammar that lists the name in `Grammar.special_tokens`.
    """
    if not isinstance(name, str) or not name or any("\ud800" <= character <= "\udfff" for character in name):
        raise GrammarError(
            f"{name!r} cannot be the name of a special token", where=where, remedy="Write its name as the tokenizer does."
        )
    return Terminal(literal(mark(name)), name)
