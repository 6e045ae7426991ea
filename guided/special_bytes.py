"""How a special token is written among the bytes of a text: its name between two bytes that no text holds.

UTF-8 never holds the byte 0xFF, and every grammar here is over UTF-8 text.  So in the expressions of a grammar and in a
vocabulary's trie a special token is ``0xFF name 0xFF``: the automaton needs to know nothing about it, no text can be
taken for it, and since a vocabulary with special tokens has no other token with that byte, it comes as one token or
not at all.  This file imports nothing, so that grammars and vocabularies, which know nothing of each other, agree.
"""

from __future__ import annotations

from collections.abc import Container

__all__ = ["SENTINEL", "special_bytes", "special_names_in"]

SENTINEL = b"\xff"
"""The byte before and after the name of a special token."""


def special_bytes(name: str) -> bytes:
    """The bytes that stand for the special token ``name``.

    >>> special_bytes("<|tool|>")
    b'\\xff<|tool|>\\xff'
    """
    return SENTINEL + name.encode() + SENTINEL


def special_names_in(data: bytes, known: Container[str]) -> list[str] | None:
    """The special tokens in ``data``, in order; None when one is cut or not among the ``known``.

    >>> special_names_in(special_bytes("<a>") + b"text" + special_bytes("<b>"), {"<a>", "<b>"})
    ['<a>', '<b>']
    """
    if SENTINEL not in data:
        return []
    parts = data.split(SENTINEL)
    if len(parts) % 2 == 0:
        return None
    names = [part.decode("utf-8", "surrogateescape") for part in parts[1::2]]
    return names if all(name in known for name in names) else None
