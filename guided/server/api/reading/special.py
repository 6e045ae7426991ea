"""How special tokens stand in a text that is being read: by characters that no text has.

Text is UTF-8, which has no surrogates.  So the special token i is the one character ``0xD800 + i`` here, and a
delimiter that is a special token cannot be confused with the same name spelled by other tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

from guided.grammar.special import SpecialNames

__all__ = ["SpecialTokens"]

FIRST, LAST = 0xD800, 0xDFFF


class SpecialTokens:
    """The special tokens of a vocabulary as characters.

    >>> known = SpecialTokens({"</s>": 1, "<call>": 5})
    >>> known.character(5) == known.read("<call>"), known.shown("a" + known.read("<call>"))
    (True, 'a<call>')
    """

    def __init__(self, by_name: Mapping[str, int]) -> None:
        names = list(by_name)[: LAST - FIRST + 1]
        self._names = {chr(FIRST + i): name for i, name in enumerate(names)}
        self._by_name = {name: character for character, name in self._names.items()}
        self._by_id = {by_name[name]: character for name, character in self._by_name.items()}
        self._cut = SpecialNames(names).cut

    def character(self, token: int) -> str:
        """The character of a token; empty where it is not special."""
        return self._by_id.get(token, "")

    def read(self, delimiter: str) -> str:
        """A delimiter, its special tokens as characters."""
        return "".join(self._by_name[piece] if special else piece for piece, special in self._cut(delimiter))

    def shown(self, text: str) -> str:
        """A text that was read, its special tokens by name."""
        return "".join(self._names.get(character, character) for character in text)
