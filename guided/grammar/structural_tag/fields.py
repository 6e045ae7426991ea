"""The fields of a JSON object, each read with its type: what is missing, of another type or unknown is refused.

Nothing here knows what a field means.  Every error carries the JSON pointer of the value.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from guided.errors import GrammarError, GuidedError
from guided.grammar.json_schema.reading.document import escape

__all__ = ["MOST", "Fields", "below", "checked_text", "placed"]

MOST = 2_147_483_647
"""The largest count that the format has."""

_T = TypeVar("_T")


def below(pointer: str, part: str | int) -> str:
    """The pointer of a part of a value."""
    return f"{pointer}/{escape(part) if isinstance(part, str) else part}"


def checked_text(value: Any, pointer: str) -> str:
    """A text; raises `GrammarError` for other values, and for half a surrogate pair."""
    if not isinstance(value, str):
        raise GrammarError(f"{_shown(value)} is not a text", where=pointer, remedy="Write a string.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise GrammarError("the text holds a lone surrogate, which no text can", where=pointer, remedy="Remove it.")
    return value


@contextmanager
def placed(pointer: str) -> Iterator[None]:
    """Errors of what is read inside, with the place of the whole before their own."""
    try:
        yield
    except GuidedError as error:
        where = pointer
        if error.where is not None:
            where += error.where[1:] if error.where.startswith("#") else f", {error.where}"
        raise type(error)(error.what, where=where, remedy=error.remedy) from error


class Fields:
    """One JSON object, of which every field is asked for by name."""

    def __init__(self, value: Any, pointer: str, what: str) -> None:
        """``what`` is what the object should be, for errors."""
        if not isinstance(value, dict):
            raise GrammarError(f"{_shown(value)} is not {what}", where=pointer, remedy="Write a JSON object.")
        self.pointer = pointer
        self._what = what
        self._value = value

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def at(self, name: str) -> str:
        """The pointer of a field."""
        return below(self.pointer, name)

    def only(self, names: Iterable[str]) -> None:
        """Raises `GrammarError` for a field of any other name."""
        known = list(names)
        for name in self._value:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                raise GrammarError(
                    f"{self._what} has no field {name!r}",
                    where=self.at(name),
                    remedy=f"Did you mean {near[0]!r}?" if near else f"Its fields are {', '.join(known)}.",
                )

    def given(self, name: str) -> Any:
        """The value of a field that must be there."""
        if name not in self._value:
            raise GrammarError(f"{self._what} has no {name!r}", where=self.pointer, remedy=f"Add the field {name!r}.")
        return self._value[name]

    def text(self, name: str, *, empty: bool = True) -> str:
        """A text that must be there."""
        found = checked_text(self.given(name), self.at(name))
        if not found and not empty:
            raise GrammarError(f"{name!r} is empty", where=self.at(name), remedy="Write a text that is not.")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        found = self._value.get(name, default)
        if not isinstance(found, bool):
            raise GrammarError(f"{_shown(found)} is neither true nor false", where=self.at(name), remedy="Write one.")
        return found

    def count(self, name: str) -> int | None:
        """A whole number that is not negative; None where there is none, or null."""
        found = self._value.get(name)
        return None if found is None else self.whole(name, 0)

    def whole(self, name: str, least: int) -> int:
        """A whole number that must be there."""
        found = self.given(name)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= MOST:
            raise GrammarError(
                f"{_shown(found)} is no whole number from {least} to {MOST}", where=self.at(name), remedy="Write one."
            )
        return found

    def each(self, name: str, read: Callable[[Any, str], _T], *, needed: bool = False) -> list[_T]:
        """The items of a list, each read with its pointer; ``needed``: there must be one."""
        found = self.given(name) if needed else self._value.get(name, [])
        if not isinstance(found, list) or (needed and not found):
            least = "a list that is not empty" if needed else "a list"
            raise GrammarError(f"{_shown(found)} is not {least}", where=self.at(name), remedy="Write one.")
        return [read(item, below(self.at(name), index)) for index, item in enumerate(found)]

    def words(self, name: str, *, needed: bool = False) -> list[str]:
        """A list of texts that are not empty."""

        def word(value: Any, pointer: str) -> str:
            found = checked_text(value, pointer)
            if not found:
                raise GrammarError("an empty text is in every text", where=pointer, remedy="Leave it out.")
            return found

        return self.each(name, word, needed=needed)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
