"""Special tokens in a structural tag: by their names in texts, by name or id where a token is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.grammar.special import SpecialNames, special_token
from guided.grammar.structural_tag.fields import MOST, checked_text
from guided.grammar.tags.delimiters import Piece

__all__ = ["SpecialTokens"]

_REMEDY = "Pass special_tokens=vocabulary.special_tokens."


class SpecialTokens:
    """The special tokens of a tokenizer, or None where it is not known."""

    def __init__(self, ids: Mapping[str, int] | None) -> None:
        self._ids = ids
        self._made: dict[str, Grammar] = {}
        self._names = {} if ids is None else {number: name for name, number in ids.items()}
        self._cut = SpecialNames(ids or ()).cut

    def pieces(self, text: str) -> tuple[Piece, ...]:
        """A text as the tokenizer writes it: special tokens where their names are."""
        return tuple(self.token(piece, "") if special else piece for piece, special in self._cut(text))

    def name(self, value: Any, pointer: str) -> str:
        """The special token of a name or an id.

        Raises `UnsupportedError` for an id where the tokenizer is not known, and for tokens of text: which text a token
        stands for says nothing about how other tokens spell it.
        """
        if isinstance(value, bool) or not isinstance(value, int):
            name = checked_text(value, pointer)
            if not name:
                raise GrammarError("a token without a name", where=pointer, remedy="Write its name or id.")
            if self._ids is not None and name not in self._ids:
                raise UnsupportedError(
                    f"{name!r} is no special token of this tokenizer, and a grammar tells no other tokens from text",
                    where=pointer,
                    remedy="Write its text as a const_string.",
                )
            return name
        if not 0 <= value <= MOST:
            raise GrammarError(f"{value} is no token id", where=pointer, remedy="Write the name of the token.")
        if self._ids is None:
            raise UnsupportedError(f"the id {value} belongs to one tokenizer", where=pointer, remedy=_REMEDY)
        if value not in self._names:
            raise UnsupportedError(
                f"the token {value} is no special token, and a grammar tells no other tokens from text",
                where=pointer,
                remedy="Write its text as a const_string.",
            )
        return self._names[value]

    def token(self, value: Any, pointer: str) -> Grammar:
        """The special token of a name or an id, as a grammar."""
        name = self.name(value, pointer)
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = special_token(name)
        return found

    def excluded(self, value: Any, pointer: str) -> None:
        """Holds that a token to leave out is a special one, which free text leaves out in any case."""
        if self._ids is None:
            raise UnsupportedError(
                f"whether {value!r} is a special token or a text is known to the tokenizer",
                where=pointer,
                remedy=_REMEDY,
            )
        self.name(value, pointer)
