"""`Text`: one generated text, whatever generated it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from guided.errors import TextError
from guided.html import card, facts, preformatted

__all__ = ["Text"]


@dataclass(frozen=True)
class Text:
    """One generated text.

    >>> from guided.serving import Text
    >>> text = Text('{"n": 3}', (7, 8), finished=True, read=lambda text: len(text))
    >>> text.value, Text("yes", (4,), finished=True).value
    (8, 'yes')
    """

    text: str
    """The generated text alone: no prompt, and of special tokens the names of those that the grammar asks for."""
    token_ids: tuple[int, ...]
    """Its tokens, without the end-of-text id and padding."""
    finished: bool
    """True when this is a whole text of the grammar; False if something else cut it."""
    read: Callable[[str], Any] = field(default=str, repr=False, compare=False)
    """From a whole text to `value`."""

    def _repr_html_(self) -> str:
        return self._card(preformatted(self.text))

    def _card(self, text: str) -> str:
        """What a notebook shows around the text, which is HTML."""
        ended = "whole" if self.finished else "cut before it was whole"
        return card("Text", text, facts((("tokens", len(self.token_ids)), ("the text is", ended))))

    @cached_property
    def value(self) -> Any:
        """What the text says: an object of the type that was the grammar, the data of a JSON Schema, else the text.

        Raises what the type's validation raises where it asks for more than its schema says, and `TextError` for a text
        that was cut.
        """
        if not self.finished:
            raise TextError("the text was cut before it was whole", remedy="Look at `text`, or raise max_new_tokens.")
        return self.read(self.text)
