"""All texts of JSON strings but some, as a lexer state stands for them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["OtherTexts"]


class OtherTexts(NamedTuple):
    """All texts but some, as a state stands for them that was written without an expression."""

    texts: frozenset[bytes]
    canonical: bool
