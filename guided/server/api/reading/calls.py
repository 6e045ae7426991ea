"""`CallReader`: calls of functions in the notation of a model family, read as they are written.

It reads texts of `guided.tool_calls`, whole or cut; of other texts it takes for a call what begins like one.
"""

from __future__ import annotations

from enum import Enum, auto

from guided.errors import UnsupportedError
from guided.grammar.tags import ToolStyle
from guided.grammar.tags.styles import FORMATS
from guided.server.api.reading.parts import CallArguments, CallBegins, Content, Part, held_back
from guided.server.api.reading.special import SpecialTokens

__all__ = ["CallReader", "ContentReader", "check_style"]


class ContentReader:
    """A text that is nothing but text."""

    def read(self, text: str) -> list[Part]:
        """See `PartReader`."""
        return [Content(text)] if text else []

    def close(self) -> list[Part]:
        """See `PartReader`."""
        return []


def check_style(style: ToolStyle) -> None:
    """Raise `UnsupportedError` for a notation that is not read back here."""
    if FORMATS[style].arguments is not None or style is ToolStyle.FUNCTIONARY:
        read = [known.value for known in ToolStyle if FORMATS[known].arguments is None]
        read.remove(ToolStyle.FUNCTIONARY.value)
        raise UnsupportedError(
            f"calls in the style {style.value!r} are not read back here", remedy=f"Use one of {', '.join(read)}."
        )


class _Place(Enum):
    """What is being read."""

    TEXT = auto()
    BETWEEN_CALLS = auto()
    """In a section of calls, before, between or after them."""
    NAME = auto()
    NUMBER = auto()
    ARGUMENTS = auto()
    AFTER = auto()


class CallReader:
    """Gives calls apart from the text around them; ``only_calls`` says that there is no such text."""

    def __init__(self, style: ToolStyle, special: SpecialTokens, *, only_calls: bool) -> None:
        check_style(style)
        call = FORMATS[style]
        self._before, self._between, self._after = map(special.read, (call.before, call.between, call.after))
        self._opening, self._closing = special.read(call.opening), special.read(call.closing)
        self._numbered = None if call.numbered is None else special.read(call.numbered)
        self._mark = self._opening or special.read(call.trigger or call.before)
        self._only_calls = only_calls
        self._place = _Place.TEXT
        self._waiting = ""
        self._calls = 0
        self._levels = 0
        self._in_string = self._escaped = False

    def read(self, text: str) -> list[Part]:
        """See `PartReader`."""
        self._waiting += text
        parts: list[Part] = []
        reading = True
        while reading:
            reading = _STEPS[self._place](self, parts)
        return parts

    def close(self) -> list[Part]:
        """See `PartReader`."""
        waiting, self._waiting = self._waiting, ""
        if self._place is _Place.TEXT:
            return self._content(waiting)
        return []

    def _content(self, text: str) -> list[Part]:
        return [] if self._only_calls or not text else [Content(text)]

    def _text(self, parts: list[Part]) -> bool:
        before, found, after = self._waiting.partition(self._mark)
        if not found:
            kept = held_back(self._waiting, self._mark)
            at = len(self._waiting) - kept
            parts += self._content(self._waiting[:at])
            self._waiting = self._waiting[at:]
            return False
        parts += self._content(before)
        if self._opening:
            self._waiting, self._place = after, _Place.BETWEEN_CALLS
            return True
        return self._begun(found + after)

    def _begun(self, text: str) -> bool:
        """Go on in a text that begins with what stands before a name."""
        self._waiting = text
        if len(text) < len(self._before):
            self._place = _Place.BETWEEN_CALLS
            return False
        self._waiting, self._place = text[len(self._before) :], _Place.NAME
        return True

    def _between_calls(self, parts: list[Part]) -> bool:
        begin, end = self._waiting.find(self._before), self._waiting.find(self._closing) if self._closing else -1
        if begin >= 0 and not 0 <= end < begin:
            return self._begun(self._waiting[begin:])
        if end >= 0:
            self._waiting, self._place = self._waiting[end + len(self._closing) :], _Place.TEXT
            return True
        return False

    def _name(self, parts: list[Part]) -> bool:
        name, found, after = self._waiting.partition(self._between)
        if not found:
            return False
        self._waiting, self._place = after, _Place.ARGUMENTS if self._numbered is None else _Place.NUMBER
        self._levels = 0
        parts.append(CallBegins(self._calls, name))
        self._calls += 1
        return True

    def _number(self, parts: list[Part]) -> bool:
        assert self._numbered is not None
        _, found, after = self._waiting.partition(self._numbered)
        if found:
            self._waiting, self._place = after, _Place.ARGUMENTS
        return bool(found)

    def _arguments(self, parts: list[Part]) -> bool:
        end = self._object_end()
        at = len(self._waiting) if end is None else end
        if at:
            parts.append(CallArguments(self._calls - 1, self._waiting[:at]))
        self._waiting = self._waiting[at:]
        if end is not None:
            self._place = _Place.AFTER
        return end is not None

    def _object_end(self) -> int | None:
        """Where the object ends; None if it goes on behind what there is."""
        for at, character in enumerate(self._waiting):
            if self._escaped:
                self._escaped = False
            elif self._in_string:
                self._escaped, self._in_string = character == "\\", character != '"'
            elif character == '"':
                self._in_string = True
            elif character in "{}":
                self._levels += 1 if character == "{" else -1
                if self._levels == 0:
                    return at + 1
        return None

    def _after_call(self, parts: list[Part]) -> bool:
        if len(self._waiting) < len(self._after):
            return False
        self._waiting = self._waiting[len(self._after) :]
        self._place = _Place.BETWEEN_CALLS if self._opening else _Place.TEXT
        return True


_STEPS = {
    _Place.TEXT: CallReader._text,
    _Place.BETWEEN_CALLS: CallReader._between_calls,
    _Place.NAME: CallReader._name,
    _Place.NUMBER: CallReader._number,
    _Place.ARGUMENTS: CallReader._arguments,
    _Place.AFTER: CallReader._after_call,
}
