"""A JSON text that comes in pieces, read once: what it says so far, and which of its values are complete.

The reader is a push-down automaton over characters with a stack of its own; it goes over each character once, runs of
plain characters at a time.  It reads RFC 8259 and nothing beside it (no NaN, no comments); strings mean what they mean
to `json.loads`, half surrogate pairs included.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Sequence
from enum import Enum
from typing import Any, cast

from guided.errors import GuidedError, LimitError, TextError
from guided.reading.json_pointer import pointer_of, tokens_of

__all__ = ["FieldState", "JsonStream", "field_state"]


class FieldState(Enum):
    """How far a value has come.

    >>> from guided import partial_json
    >>> partial_json('{"a": 1, "b": "tw').state("/b").name
    'IN_PROGRESS'
    """

    NOT_STARTED = "not started"
    IN_PROGRESS = "in progress"
    COMPLETE = "complete"


class _Mode(Enum):
    """What is read next."""

    VALUE = "a value"
    FIRST_ITEM = "a value or ']'"
    FIRST_NAME = "a name in quotes or '}'"
    NAME = "a name in quotes"
    COLON = "':'"
    AFTER = "',' or the end of the object or array"
    IN_NAME = "the rest of a name"
    IN_STRING = "the rest of a string"
    IN_NUMBER = "the rest of a number"
    IN_WORD = "the rest of true, false or null"
    END = "the end of the text"


class _Open:
    """An object or array that is not closed; ``key`` is that of the member in progress, None between members."""

    __slots__ = ("container", "key", "start")

    def __init__(self, container: dict[str, Any] | list[Any], start: int) -> None:
        self.container = container
        self.key: str | int | None = None
        self.start = start


_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_DIGITS = re.compile(r"[0-9]*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_HEX = frozenset("0123456789abcdefABCDEF")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}

# A number's automaton: what each character leads to; a digit of a run stays where it is.
_START, _MINUS, _ZERO, _WHOLE, _POINT, _FRACTION, _E, _SIGN, _EXPONENT = range(9)
_AFTER_DIGIT = {_MINUS: _WHOLE, _WHOLE: _WHOLE, _POINT: _FRACTION, _FRACTION: _FRACTION, _E: _EXPONENT,
                _SIGN: _EXPONENT, _EXPONENT: _EXPONENT, _START: _WHOLE}  # fmt: skip
_AFTER_OTHER = {(_START, "-"): _MINUS, (_ZERO, "."): _POINT, (_WHOLE, "."): _POINT, (_E, "+"): _SIGN, (_E, "-"): _SIGN,
                **{(state, e): _E for state in (_ZERO, _WHOLE, _FRACTION) for e in "eE"}}  # fmt: skip
_NUMBERS = frozenset({_ZERO, _WHOLE, _FRACTION, _EXPONENT})
"""States in which a number may end."""


def field_state(value: Any, tokens: Sequence[str], path: Sequence[str | int | None] | None) -> FieldState:
    """How far what ``tokens`` lead to in ``value`` has come; ``path`` leads to the value in progress, None: to none."""
    in_progress = path is not None
    for level, token in enumerate(tokens):
        key: str | int = token
        if isinstance(value, list):
            key = int(token) if _INDEX.fullmatch(token) else -1
            there = 0 <= key < len(value)
        else:
            there = isinstance(value, dict) and token in value
        in_progress = in_progress and path is not None and level < len(path) and path[level] == key
        if not there:
            # A member that shows nothing yet has begun all the same, but there is nothing inside it.
            begun = in_progress and level == len(tokens) - 1
            return FieldState.IN_PROGRESS if begun else FieldState.NOT_STARTED
        value = value[key]
    return FieldState.IN_PROGRESS if in_progress else FieldState.COMPLETE


class JsonStream:
    """A JSON text that is appended to: `value` is what it says so far.

    `append` costs time in proportion to the new text.  `value` is one object that grows in place, so that reading it
    costs nothing but for the string or number in progress, which is put together anew.

    >>> stream = JsonStream()
    >>> stream.append('{"name": "Ada", "tags": ["x", "lo')
    >>> stream.value, stream.state("/name"), stream.state("/tags/1")
    ({'name': 'Ada', 'tags': ['x', 'lo']}, <FieldState.COMPLETE: 'complete'>, <FieldState.IN_PROGRESS: 'in progress'>)
    """

    def __init__(self) -> None:
        self._mode = _Mode.VALUE
        self._stack: list[_Open] = []
        self._root: Any = None
        self._begun = False
        self._read = 0
        self._start = 0
        self._parts: list[str] = []
        self._escape = ""
        self._high = 0
        self._number = _START
        self._valid = 0
        self._length = 0
        self._word: tuple[str, bool | None] = ("", None)
        self._matched = 0
        self._error: GuidedError | None = None
        self._decoder: codecs.IncrementalDecoder | None = None
        self._steps = {
            _Mode.VALUE: self._value, _Mode.FIRST_ITEM: self._value, _Mode.FIRST_NAME: self._name,
            _Mode.NAME: self._name, _Mode.COLON: self._colon, _Mode.AFTER: self._after,
            _Mode.IN_NAME: self._string, _Mode.IN_STRING: self._string, _Mode.IN_NUMBER: self._in_number,
            _Mode.IN_WORD: self._in_word, _Mode.END: self._end,
        }  # fmt: skip

    # What the text says

    @property
    def value(self) -> Any:
        """The value so far, None before it begins; it grows in place, so copy what you keep (`guided.partial_json`).

        A string in progress is its characters so far, without an escape or surrogate pair that is not whole; a number
        in progress is the longest number in it; true, false, null and names are there when they are whole.
        """
        if self._mode is _Mode.IN_STRING:
            self._parts = ["".join(self._parts)]
            self._put(self._parts[0])
        elif self._mode is _Mode.IN_NUMBER and self._valid:
            self._put(self._number_so_far())
        return self._root

    @property
    def has_value(self) -> bool:
        """Is there a value to show?  False before the text begins, and for the first characters of some."""
        if self._mode is _Mode.IN_NUMBER and not self._stack:
            return self._valid > 0
        return bool(self._stack) or self._mode in (_Mode.END, _Mode.IN_STRING)

    @property
    def is_whole(self) -> bool:
        """Is the text so far a whole JSON text?  A number at the top is, though it may go on."""
        return self._mode is _Mode.END or (
            self._mode is _Mode.IN_NUMBER and not self._stack and self._number in _NUMBERS
        )

    @property
    def in_progress(self) -> tuple[str, ...]:
        """JSON pointers of the values that have begun and not ended, outermost first."""
        path = self.path
        return () if path is None else tuple(pointer_of(path[:length]) for length in range(len(path) + 1))

    @property
    def path(self) -> tuple[str | int, ...] | None:
        """The names and indices that lead to the innermost value in progress; None when there is none."""
        if not self._begun or self._mode is _Mode.END:
            return None
        return tuple(item.key for item in self._stack if item.key is not None)

    def state(self, pointer: str) -> FieldState:
        """How far the value at a JSON pointer (RFC 6901) has come; cost: the length of the pointer.

        A name that comes twice begins anew; `json.loads` too keeps the last one.
        """
        tokens = tokens_of(pointer)
        path = [item.key for item in self._stack[: len(tokens)]] if self._mode is not _Mode.END else None
        return field_state(self.value, tokens, path) if self._begun else FieldState.NOT_STARTED

    # Reading

    def append(self, text: str | bytes) -> None:
        """Read more of the text; bytes are UTF-8 and may end within a character.

        Raises `TextError` with the offset in characters for what no JSON text can be; the value so far stays, and
        every further call raises the same error.
        """
        if self._error is not None:
            raise self._error
        try:
            text = self._decoded(text)
            at = 0
            while at < len(text):
                at = self._steps[self._mode](text, at)
        except GuidedError as error:
            self._error = error
            raise
        self._read += len(text)

    def close(self) -> Any:
        """Say that the text ends here, and return its value; raises `TextError` when it is not whole."""
        if self._error is not None:
            raise self._error
        if self._decoder is not None and self._decoder.getstate()[0]:
            raise self._fail("the text ends within a character", 0, "Append the bytes that are missing.")
        if not self.is_whole:
            raise self._fail(f"the text ends where it must go on with {self._mode.value}", 0, "Append the rest of it.")
        if self._mode is _Mode.IN_NUMBER:
            self._finish(self._number_so_far(), 0)
        return self._root

    def _decoded(self, text: str | bytes) -> str:
        if isinstance(text, str):
            if self._decoder is not None and self._decoder.getstate()[0]:
                raise self._fail("text follows bytes that end within a character", 0, "Append the bytes first.")
            return text
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            return self._decoder.decode(text)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode()
            raise self._fail("the bytes are not UTF-8", len(before), "Encode the text as UTF-8.") from None

    def _fail(self, what: str, at: int, remedy: str) -> TextError:
        return TextError(what, where=f"offset {self._read + at}", remedy=remedy)

    def _unexpected(self, text: str, at: int) -> TextError:
        return self._fail(f"{text[at]!r} stands where {self._mode.value} must", at, "It is no JSON text.")

    def _value(self, text: str, at: int) -> int:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if at == len(text):
            return at
        character = text[at]
        if character == "]" and self._mode is _Mode.FIRST_ITEM:
            return self._close(at)
        if character in '{["-tfn' or ("0" <= character <= "9"):
            self._begin(at)
        if character == "{":
            return self._open({}, _Mode.FIRST_NAME, at)
        if character == "[":
            return self._open([], _Mode.FIRST_ITEM, at)
        if character == '"':
            self._parts = []
            self._mode = _Mode.IN_STRING
            return at + 1
        if character in _WORDS:
            self._word, self._matched, self._mode = _WORDS[character], 0, _Mode.IN_WORD
            return at
        if character == "-" or "0" <= character <= "9":
            self._parts, self._number, self._valid, self._length = [], _START, 0, 0
            self._mode = _Mode.IN_NUMBER
            return at
        raise self._unexpected(text, at)

    def _begin(self, at: int) -> None:
        self._begun = True
        self._start = self._read + at
        if self._stack and isinstance(self._stack[-1].container, list):
            self._stack[-1].key = len(self._stack[-1].container)

    def _open(self, container: dict[str, Any] | list[Any], mode: _Mode, at: int) -> int:
        self._put(container)
        self._stack.append(_Open(container, self._read + at))
        self._mode = mode
        return at + 1

    def _close(self, at: int) -> int:
        closed = self._stack.pop()
        self._start = closed.start
        self._finish(closed.container, at + 1)
        return at + 1

    def _put(self, value: Any) -> None:
        """Let the value in progress be seen in its place."""
        if not self._stack:
            self._root = value
            return
        container, key = self._stack[-1].container, self._stack[-1].key
        if isinstance(container, list) and key == len(container):
            container.append(value)
        else:
            container[key] = value  # type: ignore[index]

    def _finish(self, value: Any, at: int) -> None:
        """A value is complete; ``at`` is one past its end."""
        self._put(value)
        self._finished(value, self._start, self._read + at)
        if self._stack:
            self._stack[-1].key = None
            self._mode = _Mode.AFTER
        else:
            self._mode = _Mode.END

    def _finished(self, value: Any, start: int, end: int) -> None:
        """For readers that want to know where values stand; the stack still holds their keys."""

    def _name(self, text: str, at: int) -> int:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if at == len(text):
            return at
        if text[at] == "}" and self._mode is _Mode.FIRST_NAME:
            return self._close(at)
        if text[at] != '"':
            raise self._unexpected(text, at)
        self._parts = []
        self._mode = _Mode.IN_NAME
        return at + 1

    def _colon(self, text: str, at: int) -> int:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if at == len(text):
            return at
        if text[at] != ":":
            raise self._unexpected(text, at)
        self._mode = _Mode.VALUE
        return at + 1

    def _after(self, text: str, at: int) -> int:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if at == len(text):
            return at
        is_object = isinstance(self._stack[-1].container, dict)
        if text[at] == ",":
            self._mode = _Mode.NAME if is_object else _Mode.VALUE
            return at + 1
        if text[at] == ("}" if is_object else "]"):
            return self._close(at)
        raise self._unexpected(text, at)

    def _end(self, text: str, at: int) -> int:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if at < len(text):
            raise self._unexpected(text, at)
        return at

    def _in_word(self, text: str, at: int) -> int:
        word, value = self._word
        while at < len(text):
            if text[at] != word[self._matched]:
                raise self._unexpected(text, at)
            at += 1
            self._matched += 1
            if self._matched == len(word):
                self._finish(value, at)
                break
        return at

    # Strings

    def _string(self, text: str, at: int) -> int:
        if self._escape:
            return self._escaped(text, at)
        end = _PLAIN.match(text, at).end()  # type: ignore[union-attr]
        if end > at:
            self._add(text[at:end])
        if end == len(text):
            return end
        if text[end] == "\\":
            self._escape = "\\"
            return end + 1
        if text[end] != '"':
            raise self._fail(
                f"the control character {text[end]!r} in a string", end, "It must be escaped, such as \\n or \\u0000."
            )
        self._add("")
        string = "".join(self._parts)
        if self._mode is _Mode.IN_STRING:
            self._finish(string, end + 1)
        else:
            opened = self._stack[-1]
            # The last of equal names counts.
            cast("dict[str, Any]", opened.container).pop(string, None)
            opened.key = string
            self._mode = _Mode.COLON
        return end + 1

    def _add(self, characters: str) -> None:
        """More of a string; the first half of a surrogate pair whose second half has not come is a character."""
        if self._high:
            self._parts.append(chr(self._high))
            self._high = 0
        self._parts.append(characters)

    def _escaped(self, text: str, at: int) -> int:
        if self._escape == "\\":
            letter = text[at]
            if letter == "u":
                self._escape = "\\u"
            elif letter in _ESCAPES:
                self._escape = ""
                self._add(_ESCAPES[letter])
            else:
                raise self._fail(f"'\\{letter}' is no escape", at, "A backslash itself is written '\\\\'.")
            return at + 1
        while at < len(text) and len(self._escape) < 6:
            if text[at] not in _HEX:
                raise self._fail(f"{text[at]!r} is no hexadecimal digit", at, "'\\u' takes four of them.")
            self._escape += text[at]
            at += 1
        if len(self._escape) == 6:
            code = int(self._escape[2:], 16)
            self._escape = ""
            if self._high and 0xDC00 <= code <= 0xDFFF:
                code = 0x10000 + ((self._high - 0xD800) << 10) + (code - 0xDC00)
                self._high = 0
            if 0xD800 <= code <= 0xDBFF:
                self._add("")
                self._high = code
            else:
                self._add(chr(code))
        return at

    # Numbers

    def _in_number(self, text: str, at: int) -> int:
        start = at
        while at < len(text):
            character = text[at]
            if "0" <= character <= "9":
                if self._number == _ZERO:
                    break
                zero = character == "0" and self._number in (_START, _MINUS)
                self._number = _ZERO if zero else _AFTER_DIGIT[self._number]
                at = at + 1 if zero else _DIGITS.match(text, at).end()  # type: ignore[union-attr]
            else:
                after = _AFTER_OTHER.get((self._number, character))
                if after is None:
                    break
                self._number = after
                at += 1
            if self._number in _NUMBERS:
                self._valid = self._length + at - start
        self._parts.append(text[start:at])
        self._length += at - start
        if at < len(text):
            if self._number not in _NUMBERS:
                raise self._unexpected(text, at)
            self._finish(self._number_so_far(), at)
        return at

    def _number_so_far(self) -> int | float:
        self._parts = ["".join(self._parts)]
        spelled = self._parts[0][: self._valid]
        if not any(mark in spelled for mark in ".eE"):
            try:
                return int(spelled)
            except ValueError:
                raise LimitError(
                    f"an integer of {len(spelled)} digits, more than this interpreter converts",
                    where=f"offset {self._start}",
                    remedy=f"Raise sys.set_int_max_str_digits, now {sys.get_int_max_str_digits()}.",
                ) from None
        return float(spelled)
