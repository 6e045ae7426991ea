"""Special tokens as terminals of a grammar: `guided.special_token`.

Which tokenizer has them is asked when grammar and vocabulary meet; here they are names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.ir import Grammar, Rule, Terminal
from guided.grammar.regular.expr import literal
from guided.special_bytes import special_bytes

__all__ = ["SpecialNames", "names_of_reference", "special_terminal", "special_token"]

_IDS = re.compile(r"\s*\d{1,9}\s*(-\s*\d{1,9}\s*)?(,\s*\d{1,9}\s*(-\s*\d{1,9}\s*)?)*")


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
            f"{name!r} cannot be the name of a special token",
            where=where,
            remedy="Write its name as the tokenizer does.",
        )
    return Terminal(literal(special_bytes(name)), name)


def names_of_reference(reference: str, known: Mapping[str, int] | None, where: str) -> tuple[str, ...]:
    """The special tokens that ``<...>`` refers to in the text of a grammar; several stand for any one of them.

    ``<name>`` is the token that is called so, brackets included, ``<[12]>`` and ``<[12-15,20]>`` are those with the
    ids, looked up in ``known``; a name that is itself in square brackets may be written ``<[INST]>``.

    Raises `UnsupportedError` where that depends on the tokenizer, `GrammarError` for ids that are no special tokens.

    >>> names_of_reference("<think>", None, "line 1"), names_of_reference("<[7]>", {"<s>": 7}, "line 1")
    (('<think>',), ('<s>',))
    """
    inner = reference[1:-1]
    if not (inner.startswith("[") and inner.endswith("]")):
        return (reference,)
    ids = inner[1:-1]
    if ids.strip() == "*" or ids.lstrip().startswith("^"):
        raise UnsupportedError(
            f"{reference} stands for tokens of text too, and which those are depends on the tokenizer",
            where=where,
            remedy="Write the text by its characters, and name the special tokens one by one.",
        )
    if not _IDS.fullmatch(ids):
        return (inner,)
    if known is None:
        raise UnsupportedError(
            f"the ids of {reference} belong to one tokenizer, and a grammar knows none",
            where=where,
            remedy="Write the special token's name, or pass special_tokens=vocabulary.special_tokens.",
        )
    names = {token: name for name, token in known.items()}
    found: list[str] = []
    for item in ids.split(","):
        low, _, high = item.partition("-")
        first, last = int(low), int(high or low)
        inside = [token for token in names if first <= token <= last]
        if last - first + 1 != len(inside):
            raise GrammarError(
                f"not every id of {reference} is a special token",
                where=where,
                remedy="Write the text of other tokens in quotes.",
            )
        found += [names[token] for token in sorted(inside)]
    return tuple(dict.fromkeys(found))


class SpecialNames:
    """The names of some special tokens, found in texts as tokenizers find them: from the left, of several the longest.

    >>> SpecialNames(["<a>", "<a>b"]).cut("x<a>y<a>b")
    [('x', False), ('<a>', True), ('y', False), ('<a>b', True)]
    """

    def __init__(self, names: Iterable[str]) -> None:
        longest_first = sorted(filter(None, names), key=lambda name: (-len(name), name))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def cut(self, text: str) -> list[tuple[str, bool]]:
        """The pieces of a text that are not empty; is each the name of a special token?"""
        if self._pattern is None:
            return [(text, False)] if text else []
        pieces: list[tuple[str, bool]] = []
        at = 0
        for match in self._pattern.finditer(text):
            pieces += [(text[at : match.start()], False), (match[0], True)]
            at = match.end()
        return [piece for piece in (*pieces, (text[at:], False)) if piece[0]]
