"""Any one of finitely many texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from guided.errors import GrammarError, UnsatisfiableError
from guided.grammar.ir import Grammar, Rule, Terminal
from guided.grammar.regular.expr import words
from guided.special_bytes import SENTINEL

_SHOWN = 60
"""Characters of the options that a label quotes."""


def choice(options: Sequence[str | bytes]) -> Grammar:
    """Exactly one of ``options``; text is written in UTF-8, bytes as they are, duplicates count once.

    An option may be empty (the text may end at once) unless it is the only one.  Cost linear in the total length.
    Raises `UnsatisfiableError` without options, `GrammarError` when all are empty or one cannot be written.

    >>> choice(["yes", "no"])
    <Grammar "'yes' | 'no'": 1 rules, lexing none>
    """
    if isinstance(options, (str, bytes)):
        raise GrammarError("choice takes a sequence of texts, not one text", remedy="Pass a list: choice([...]).")
    options = tuple(options)
    if not options:
        raise UnsatisfiableError("a choice without options", remedy="Give at least one text.")
    spelled = [_bytes(option, index) for index, option in enumerate(options)]
    if not any(spelled):
        raise GrammarError("a choice of nothing but the empty text", remedy="Give at least one text to generate.")
    label = _label(options)
    digest = hashlib.sha256(b"choice")
    for data in spelled:
        digest.update(len(data).to_bytes(8, "big") + data)
    return Grammar(
        rules=(Rule(label, Terminal(words(spelled), label)),),
        start=0,
        rebuild=(choice, (options,), {}),
        key=digest.hexdigest(),
        holds_sentinel=any(SENTINEL in data for data in spelled),
    )


def _bytes(option: object, index: int) -> bytes:
    if isinstance(option, bytes):
        return option
    if not isinstance(option, str):
        raise GrammarError(
            f"an option of a choice is a {type(option).__name__}",
            where=f"option {index}",
            remedy="Options are str or bytes; convert it.",
        )
    try:
        return option.encode()
    except UnicodeEncodeError:
        raise GrammarError(
            "an option holds a lone surrogate, which no text can", where=f"option {index}", remedy="Remove it."
        ) from None


def _label(options: Sequence[str | bytes]) -> str:
    shown: list[str] = []
    for option in options:
        if shown and len(" | ".join(shown)) + len(option) > _SHOWN:
            return f"{' | '.join(shown)} | ... ({len(options)} options)"
        shown.append(repr(option))
    return " | ".join(shown)
