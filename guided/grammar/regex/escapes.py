r"""What follows a backslash, and what stands between brackets, in either dialect.

`Source` is the text with a cursor; `escape` and `character_class` read one construct each and leave the cursor after
it.  Groups, quantifiers and anchors belong to `guided.grammar.regex.parse`.
"""

from __future__ import annotations

import re
import sys
import unicodedata

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.regex.syntax import Anchor, At, Characters, Dialect, Node, Reference, WordBoundary
from guided.grammar.regex.unicode_sets import (
    ASCII_DIGIT,
    ASCII_SPACE,
    ASCII_WORD,
    ECMA_SPACE,
    PYTHON_SPACE,
    close_under_case,
    library_class,
    python_class,
    unicode_property,
)
from guided.grammar.regular.characters import CharacterSet, negate, normalise

DIGITS = "0123456789"
_OCTAL = "01234567"
_HEX = frozenset("0123456789abcdefABCDEF")
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


IGNORECASE, MULTILINE, DOTALL = int(re.IGNORECASE), int(re.MULTILINE), int(re.DOTALL)
VERBOSE, ASCII, UNICODE = int(re.VERBOSE), int(re.ASCII), int(re.UNICODE)
"""The flags of `re` as plain integers, whose operators do not make objects."""
LIBRARY = 0x2000
"""``regex.VERSION0``: a pattern of the Python dialect means what the `regex` package reads in it."""


class Source:
    """A pattern with a cursor and the flags in force at it."""

    def __init__(self, text: str, dialect: Dialect, flags: int) -> None:
        self.text = text
        self.dialect = dialect
        self.flags = int(flags)
        self.at = 0
        self.group_count = 0
        self.group_numbers: dict[str, int] = {}

    def error(self, what: str, offset: int, remedy: str) -> GrammarError:
        """The error to raise about the text at ``offset``."""
        return GrammarError(f"{what} in the pattern {_shortened(self.text)}", where=f"offset {offset}", remedy=remedy)

    def take(self, text: str) -> bool:
        """Step over ``text`` if it comes next."""
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def one(self, code: int, offset: int) -> CharacterSet:
        """The set of one character; a lone surrogate is refused, for no text holds it."""
        if 0xD800 <= code <= 0xDFFF:
            raise UnsupportedError(
                f"the lone surrogate U+{code:04X} is not a character",
                where=f"offset {offset}",
                remedy="Write characters above U+FFFF as \\u{1F600}, \\U0001F600 or themselves, not as halves.",
            )
        return ((code, code),)

    def reference(self, group: int | str, offset: int) -> Node:
        """The node for a reference to a group by number or name, which ECMA-262 may open later.

        Raises an error with its offset where there is no such group, `UnsupportedError` where it ignores case as
        `regex` does.
        """
        number = group if isinstance(group, int) else self.group_numbers.get(group)
        if number is None or (self.dialect is Dialect.PYTHON and number > self.group_count):
            what = f"number {group}" if isinstance(group, int) else repr(group)
            raise self.error(f"no group {what} before this reference", offset, "Open the group first, or fix its name.")
        flags = self.flags
        if flags & LIBRARY and flags & IGNORECASE:
            raise UnsupportedError(
                "a backreference that ignores case as the `regex` package does",
                where=f"offset {offset}",
                remedy="Write the cases as alternatives.",
            )
        return Reference(number, offset, bool(flags & IGNORECASE), bool(flags & ASCII))

    def folded(self, characters: CharacterSet) -> CharacterSet:
        """The set, closed under case when case is ignored here."""
        if not self.flags & IGNORECASE:
            return characters
        python = self.dialect is Dialect.PYTHON
        if self.flags & LIBRARY:
            found = [library_class(f"\\U{low:08X}", self.flags, "") for low, high in characters if low == high]
            return normalise(pair for pairs in found for pair in pairs)
        return close_under_case(characters, ecma=not python, ascii_only=python and bool(self.flags & ASCII))

    def joined_surrogates(self, code: int, offset: int) -> int:
        r"""``code``, or the character that it makes with the low surrogate that follows (as itself or ``\uDC00``)."""
        if not 0xD800 <= code <= 0xDBFF or self.at >= len(self.text):
            return code
        start = self.at
        low = ord(self.text[start])
        if low == 0x5C and self.take("\\u") and self.dialect is Dialect.ECMA:
            low = self.hexadecimal(4, offset) if self.text[self.at : self.at + 1] in _HEX else 0
        else:
            self.at = start + 1
        if 0xDC00 <= low <= 0xDFFF:
            return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        self.at = start
        return code

    def hexadecimal(self, count: int, offset: int) -> int:
        """The value of exactly ``count`` hexadecimal digits.  Raises an error with its offset for fewer."""
        digits = self.text[self.at : self.at + count]
        if len(digits) < count or not _HEX.issuperset(digits):
            raise self.error(
                f"this escape needs {count} hexadecimal digits", offset, "Complete or double the backslash."
            )
        self.at += count
        return int(digits, 16)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def escape(source: Source, at: int) -> Node:
    """The node for the escape whose backslash is at ``at`` (the cursor is just after it), outside a class."""
    letter = _letter(source, at)
    python = source.dialect is Dialect.PYTHON
    if letter in "bB":
        source.at += 1
        unicode_word = python and not source.flags & ASCII
        library = bool(source.flags & LIBRARY)
        word = ASCII_WORD
        if unicode_word:
            word = library_class("\\w", 0, f"offset {at}") if library else python_class("w")
        if not python and source.flags & IGNORECASE:
            word = close_under_case(word, ecma=True)
        return WordBoundary(word, letter == "B", not python or library or sys.version_info >= (3, 14))
    if (python and letter in "AZ") or (letter == "z" and python and sys.version_info >= (3, 14)):
        source.at += 1
        return At(Anchor.TEXT_START if letter == "A" else Anchor.TEXT_END)
    if letter in DIGITS and (letter != "0" or not python):
        return _number(source, at)
    if not python and letter == "k" and source.text.startswith("k<", source.at):
        end = source.text.find(">", source.at)
        name = source.text[source.at + 2 : end] if end >= 0 else ""
        source.at = end + 1 if end >= 0 else len(source.text)
        return source.reference(name, at)
    found = class_escape(source, at)
    if source.flags & LIBRARY:
        return Characters(library_class(source.text[at : source.at], source.flags, f"offset {at}"))
    if isinstance(found, int):
        return Characters(source.folded(source.one(found, at)))
    return Characters(found if python else source.folded(found))


def _letter(source: Source, at: int) -> str:
    if source.at >= len(source.text):
        raise source.error("a backslash ends the pattern", at, "Double it or complete the escape.")
    return source.text[source.at]


def _number(source: Source, at: int) -> Node:
    r"""``\1``: a reference or, in Python, three octal digits; ECMA-262's ``\0``.  The cursor is at the digit."""
    digits = source.text[source.at : source.at + 3]
    if source.dialect is Dialect.PYTHON:
        if len(digits) == 3 and all(c in _OCTAL for c in digits):
            return Characters(source.folded(source.one(_octal(source, at), at)))
    elif digits[0] == "0":
        if digits[1:2] in tuple(DIGITS):
            raise source.error("an octal escape", at, "Write \\xHH; ECMA-262 has no octal escapes in Unicode mode.")
        source.at += 1
        return Characters(((0, 0),))
    end = source.at + 1
    # Python reads two digits at most, ECMA-262 all that there are.
    while source.text[end : end + 1] in tuple(DIGITS) and (source.dialect is Dialect.ECMA or end < source.at + 2):
        end += 1
    number = int(source.text[source.at : end][:10])
    source.at = end
    return source.reference(number, at)


def _octal(source: Source, at: int) -> int:
    """The code point of up to three octal digits, which is how Python reads them; the cursor is at the first."""
    end = source.at + 1
    while end < source.at + 3 and source.text[end : end + 1] in tuple(_OCTAL):
        end += 1
    value = int(source.text[source.at : end], 8)
    if value > 0o377:
        raise source.error("an octal escape is above 0o377", at, "Use \\u.")
    source.at = end
    return value


def class_escape(source: Source, at: int) -> int | CharacterSet:
    r"""A code point or a set, for an escape that may also stand in a class; the cursor is after the backslash.

    Raises an error with its offset for an escape without a meaning.
    """
    letter = _letter(source, at)
    source.at += 1
    lower = letter.lower()
    if lower in "dsw":
        found = _shorthand(source, lower)
        return found if letter == lower else negate(found)
    if lower == "p":
        found = _property(source, at)
        return found if letter == "p" else negate(found)
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter == "x":
        return source.hexadecimal(2, at)
    if letter == "u":
        return _unicode_escape(source, at)
    if source.dialect is Dialect.PYTHON:
        if letter == "a":
            return 7
        if letter == "U":
            value = source.hexadecimal(8, at)
            if value > 0x10FFFF:
                raise source.error("this escape is above U+10FFFF", at, "Use a code point.")
            return value
        if letter == "N":
            return _named_character(source, at)
        if letter == "0":
            source.at -= 1
            return _octal(source, at)
    elif letter == "c":
        following = source.text[source.at : source.at + 1]
        if not (following.isascii() and following.isalpha()):
            raise source.error("\\c needs a letter", at, "Write \\\\c for a backslash and a c.")
        source.at += 1
        return ord(following) % 32
    if letter.isascii() and letter.isalnum():
        raise source.error(
            f"the escape \\{letter} has no meaning in {source.dialect.name} patterns",
            at,
            f"Write {letter} or \\\\{letter}.",
        )
    return source.joined_surrogates(ord(letter), at)


def _shorthand(source: Source, letter: str) -> CharacterSet:
    if source.dialect is Dialect.ECMA:
        if letter == "w" and source.flags & IGNORECASE:
            return close_under_case(ASCII_WORD, ecma=True)
        return {"d": ASCII_DIGIT, "s": ECMA_SPACE, "w": ASCII_WORD}[letter]
    if source.flags & ASCII:
        return {"d": ASCII_DIGIT, "s": ASCII_SPACE, "w": ASCII_WORD}[letter]
    return PYTHON_SPACE if letter == "s" else python_class(letter)


def _property(source: Source, at: int) -> CharacterSet:
    if source.flags & LIBRARY:
        end = source.text.find("}", source.at) if source.text.startswith("{", source.at) else source.at
        source.at = end + 1 if end >= 0 else len(source.text)
        return library_class(source.text[at : source.at], source.flags, f"offset {at}")
    if not source.take("{"):
        letter = source.text[source.at : source.at + 1]
        if source.dialect is Dialect.PYTHON and letter.isalpha():
            source.at += 1
            return source.folded(unicode_property(letter, f"offset {at}"))
        raise source.error("\\p needs a property in braces", at, "Write \\p{L}.")
    end = source.text.find("}", source.at)
    name = source.text[source.at : end] if end >= 0 else ""
    if not name:
        raise source.error("\\p needs a property in braces", at, "Write \\p{L}.")
    source.at = end + 1
    inverted = name[0] == "^" and source.dialect is Dialect.PYTHON
    found = unicode_property(name.removeprefix("^") if inverted else name, f"offset {at}")
    if source.dialect is Dialect.PYTHON:
        found = source.folded(found)  # ECMA-262 closes under case after the complement, with the rest of the class.
    return negate(found) if inverted else found


def _unicode_escape(source: Source, at: int) -> int:
    if source.dialect is Dialect.ECMA and source.take("{"):
        end = source.text.find("}", source.at)
        digits = source.text[source.at : end] if end >= 0 else ""
        if not digits or not _HEX.issuperset(digits) or int(digits, 16) > 0x10FFFF:
            raise source.error("\\u{...} needs a hexadecimal code point", at, "For example \\u{1F600}.")
        source.at = end + 1
        return int(digits, 16)
    code = source.hexadecimal(4, at)
    return source.joined_surrogates(code, at) if source.dialect is Dialect.ECMA else code


def _named_character(source: Source, at: int) -> int:
    end = source.text.find("}", source.at)
    if not source.take("{") or end < 0:
        raise source.error("\\N needs a character name in braces", at, "For example \\N{EM DASH}.")
    name = source.text[source.at : end]
    source.at = end + 1
    try:
        return ord(unicodedata.lookup(name))
    except (KeyError, TypeError):
        raise source.error(f"no character is named {name!r}", at, "Look the name up in the Unicode charts.") from None


def character_class(source: Source, at: int) -> CharacterSet:
    """The set of the class whose bracket is at ``at`` (the cursor is just after it).

    Raises an error with its offset for a class that is malformed, `UnsupportedError` for POSIX classes.
    """
    negative = source.take("^")
    python = source.dialect is Dialect.PYTHON
    folding: list[tuple[int, int]] = []
    fixed: list[tuple[int, int]] = []  # Python's class escapes, which ignoring case does not extend.
    first = True
    while True:
        if source.at >= len(source.text):
            raise source.error("this class is never closed", at, "Add the missing ']' or escape the '['.")
        if source.text[source.at] == "]" and not (first and python):
            source.at += 1
            break
        first = False
        begin = source.at
        low = _class_item(source)
        high: int | CharacterSet | None = None
        if source.text.startswith("-", source.at) and source.text[source.at + 1 : source.at + 2] not in ("]", ""):
            source.at += 1
            high = _class_item(source)
        if isinstance(low, int) and isinstance(high, int):
            if high < low:
                raise source.error("a range is in the wrong order", begin, "Write the smaller character first.")
            if low >= 0xD800 and high <= 0xDFFF and not negative:
                source.one(low, begin)
            folding.append((low, high))
            continue
        if high is not None and python:
            raise source.error("a class cannot end a range", begin, "Escape the '-' or move it to the end.")
        for item in (low, high):
            if isinstance(item, int):
                folding.extend(((item, item),) if negative and 0xD800 <= item <= 0xDFFF else source.one(item, begin))
            elif item is not None:
                (fixed if python else folding).extend(item)
        if high is not None:
            folding.append((0x2D, 0x2D))
    if source.flags & LIBRARY:
        written = source.text[at : source.at]
        if "[:" in written:
            raise UnsupportedError(
                "'[:' in a class, with which the `regex` package begins a class of POSIX",
                where=f"offset {at}",
                remedy="Write a property, such as \\p{alpha}, or escape the '['.",
            )
        return library_class(written, source.flags, f"offset {at}")
    characters = normalise([*fixed, *source.folded(normalise(folding))])
    return negate(characters) if negative else characters


def _class_item(source: Source) -> int | CharacterSet:
    at = source.at
    character = source.text[at]
    source.at += 1
    if character != "\\":
        return source.joined_surrogates(ord(character), at)
    letter = _letter(source, at)
    if letter == "b":
        source.at += 1
        return 8
    if letter in DIGITS and source.dialect is Dialect.ECMA:
        if letter != "0" or source.text[source.at + 1 : source.at + 2] in tuple(DIGITS):
            raise source.error("an octal escape in a class", at, "Write \\xHH; Unicode mode has no octal escapes.")
        source.at += 1
        return 0
    if letter in _OCTAL:
        return _octal(source, at)
    return class_escape(source, at)
