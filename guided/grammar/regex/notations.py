r"""Patterns as other engines write them, rewritten into a notation that `guided.grammar.regex.parse` reads.

* `rust_pattern`: those of Rust's `regex` crate, which llguidance uses, as ECMA-262's;
* `xgrammar_pattern`: those of XGrammar 0.2.8, as Python's.

What the other engine reads otherwise, leaves out or does not know is refused at its offset: nothing is widened.
Sources: the crate's documentation of its syntax, XGrammar's of ``Grammar.from_regex``, and trials with both.
"""

from __future__ import annotations

import re

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.regex.parse import parse
from guided.grammar.regex.syntax import Dialect, Node

__all__ = ["rust_pattern", "xgrammar_pattern"]

_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_BRACED = re.compile(r"\{([0-9A-Fa-f]{1,6})\}")
_PLAIN_ESCAPES = frozenset("nrtfv")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;=?@[\\]^_`{|}~ ")


def rust_pattern(text: str, flags: str = "") -> Node:
    r"""The tree of a pattern of Rust's `regex` crate; ``flags`` are letters behind the closing slash.

    ``\d``, ``\s`` and ``\w`` are Unicode's, ``.`` is all but the line feed, case folds one character to one.  Anchors,
    word boundaries and operations on classes are refused, the first two by llguidance too.

    >>> rust_pattern("a.") == rust_pattern("a[^\\n]")
    True
    """
    return _Rust(text, flags).tree()


def xgrammar_pattern(text: str, flags: str | None = None) -> Node:
    r"""The tree of a pattern of XGrammar's; ``flags`` are letters, or None where the pattern was given none.

    ``\d``, ``\s`` and ``\w`` are ASCII's, and only ASCII folds case.  Without flags ``.`` is every character, with
    some all but the line feed.  XGrammar passes over anchors in the middle and look-around; here they are refused.

    >>> xgrammar_pattern("^a$") == xgrammar_pattern("a")
    True
    """
    return _Xgrammar(text, flags).tree()


class _Notation:
    """A pattern that is copied piece by piece into another notation."""

    dialect: Dialect
    flag_letters: str

    def __init__(self, text: str, flags: str) -> None:
        self.text = text
        self.at = 0
        self.parts: list[str] = []
        unknown = [letter for letter in flags if letter not in self.flag_letters]
        if unknown:
            raise UnsupportedError(
                f"the flag {unknown[0]!r} of a pattern", remedy=f"Known are {', '.join(self.flag_letters)}."
            )
        self.ignore_case = "i" in flags

    def refuse(self, what: str, at: int, remedy: str) -> UnsupportedError:
        return UnsupportedError(f"{what} in the pattern {self.text!r}", where=f"offset {at}", remedy=remedy)

    def tree(self) -> Node:
        while self.at < len(self.text):
            at = self.at
            character = self.text[at]
            self.at += 1
            if character == "\\":
                self.parts.append(self.escape(at, in_class=False))
            elif character == "[":
                self.character_class(at)
            elif character == "(":
                self.group(at)
            elif character == ")":
                self.end_group()
                self.parts.append(")")
            elif character == ".":
                self.parts.append(self.dot())
            elif character in "^$":
                self.anchor(character, at)
            elif character == "{":
                self.count(at)
            else:
                self.parts.append(character)
        flags = re.IGNORECASE if self.ignore_case else 0
        return parse("".join(self.parts), self.dialect, flags | self.more_flags())

    def more_flags(self) -> int:
        return 0

    def escape(self, at: int, in_class: bool) -> str:
        """The escape whose backslash is at ``at``; the cursor is behind it."""
        letter = self.text[self.at : self.at + 1]
        if not letter:
            raise GrammarError(f"a backslash ends the pattern {self.text!r}", remedy="Double it.")
        self.at += 1
        if letter in _PLAIN_ESCAPES:
            return "\\" + letter
        if letter in "dDsSwW":
            return self.shorthand(letter, at, in_class)
        if letter in "xu" and (match := _BRACED.match(self.text, self.at)):
            self.at = match.end()
            return self.code(int(match[1], 16))
        if letter in "xuU":
            width = {"x": 2, "u": 4, "U": 8}[letter]
            digits = self.text[self.at : self.at + width]
            if not re.fullmatch(rf"[0-9A-Fa-f]{{{width}}}", digits):
                raise GrammarError(
                    f"\\{letter} takes {width} hexadecimal digits in the pattern {self.text!r}",
                    where=f"offset {at}",
                    remedy="Pad with zeros.",
                )
            self.at += width
            return self.code(int(digits, 16))
        if letter in _PUNCTUATION:
            return letter if letter in "!\"#%&',:;=@_`~ " or (letter == "/") else "\\" + letter
        return self.other_escape(letter, at, in_class)

    def code(self, code: int) -> str:
        raise NotImplementedError

    def shorthand(self, letter: str, at: int, in_class: bool) -> str:
        raise NotImplementedError

    def other_escape(self, letter: str, at: int, in_class: bool) -> str:
        raise self.refuse(f"the escape \\{letter}", at, "Write the characters that it stands for.")

    def character_class(self, at: int) -> None:
        self.parts.append("[")
        if self.text.startswith("^", self.at):
            self.parts.append("^")
            self.at += 1
        if self.text.startswith("]", self.at):
            raise self.refuse("a class that begins with ']'", at, "Escape it: \\].")
        while self.at < len(self.text):
            begin = self.at
            character = self.text[begin]
            self.at += 1
            if character == "]":
                self.parts.append("]")
                return
            if character == "\\":
                self.parts.append(self.escape(begin, in_class=True))
            else:
                self.class_character(character, begin)
        raise GrammarError(f"a class is never closed in {self.text!r}", where=f"offset {at}", remedy="Add the ']'.")

    def class_character(self, character: str, at: int) -> None:
        self.parts.append(character)

    def group(self, at: int) -> None:
        raise NotImplementedError

    def end_group(self) -> None:
        pass

    def dot(self) -> str:
        raise NotImplementedError

    def anchor(self, character: str, at: int) -> None:
        raise self.refuse(
            f"the anchor {character!r}", at, "Leave it out: a pattern here always matches from end to end."
        )

    def count(self, at: int) -> None:
        match = _COUNT.match(self.text, at)
        if match is None or not (match[1] or match[3]):
            raise self.refuse("'{' that begins no count", at, "Escape it: \\{.")
        self.parts.append(self.bounds(match, at))
        self.at = match.end()

    def bounds(self, match: re.Match[str], at: int) -> str:
        return f"{{{match[1] or 0}{match[2]}{match[3]}}}"


_RUST_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"
_RUST_SETS = {"d": r"\p{Nd}", "D": r"\P{Nd}", "s": r"\p{White_Space}", "S": r"\P{White_Space}"}


class _Rust(_Notation):
    dialect = Dialect.ECMA
    flag_letters = "imsu"

    def __init__(self, text: str, flags: str) -> None:
        super().__init__(text, flags)
        self.dot_all = "s" in flags
        self.outer: list[bool] = []
        while match := re.compile(r"\(\?([imsu]+)\)").match(self.text, self.at):
            self.ignore_case = self.ignore_case or "i" in match[1]
            self.dot_all = self.dot_all or "s" in match[1]
            self.at = match.end()

    def code(self, code: int) -> str:
        return f"\\u{{{code:X}}}"

    def shorthand(self, letter: str, at: int, in_class: bool) -> str:
        if letter in _RUST_SETS:
            return _RUST_SETS[letter]
        if not in_class:
            return f"[{'^' if letter == 'W' else ''}{_RUST_WORD}]"
        if letter == "W":
            raise self.refuse("\\W inside a class", at, "Write the class as alternatives: (?:\\W|[...]).")
        return _RUST_WORD

    def other_escape(self, letter: str, at: int, in_class: bool) -> str:
        if letter == "a":
            return "\\x07"
        if letter in "pP":
            match = re.compile(r"\{[A-Za-z_=]+\}|[A-Za-z]").match(self.text, self.at)
            if match:
                self.at = match.end()
                return f"\\{letter}{{{match[0].strip('{}')}}}"
        return super().other_escape(letter, at, in_class)

    def class_character(self, character: str, at: int) -> None:
        if character == "[" or self.text.startswith(("&&", "--", "~~"), at):
            raise self.refuse(
                "a class inside a class, or an operation on classes", at, "Escape it, or write one class."
            )
        super().class_character(character, at)

    def group(self, at: int) -> None:
        self.outer.append(self.dot_all)
        if not self.text.startswith("?", self.at):
            self.parts.append("(")
            return
        match = re.compile(r"\?(?:P?<([A-Za-z_]\w*)>|([imsu]*)(?:-([ims]+))?:)").match(self.text, self.at)
        if match is None:
            raise self.refuse("this kind of group", at, "Groups are (...), (?:...), (?P<name>...) and (?is:...).")
        self.at = match.end()
        on, off = match[2] or "", match[3] or ""
        self.dot_all = "s" in on or (self.dot_all and "s" not in off)
        # Without anchors m says nothing, and u is always on; s is in what dots are written as.
        flags = ("i" if "i" in on else "") + ("-i" if "i" in off else "")
        self.parts.append("(" if match[1] else f"(?{flags}:")

    def end_group(self) -> None:
        if self.outer:
            self.dot_all = self.outer.pop()

    def dot(self) -> str:
        return r"[\s\S]" if self.dot_all else r"[^\n]"


class _Xgrammar(_Notation):
    dialect = Dialect.PYTHON
    flag_letters = "isu"

    def __init__(self, text: str, flags: str | None) -> None:
        super().__init__(text, flags or "")
        self.dot_all = flags is None or "s" in flags
        if text.startswith("(?i)"):
            self.ignore_case = True
            self.at = 4

    def more_flags(self) -> int:
        return re.ASCII | (re.DOTALL if self.dot_all else 0)

    def code(self, code: int) -> str:
        return f"\\U{code:08X}"

    def shorthand(self, letter: str, at: int, in_class: bool) -> str:
        return "\\" + letter

    def other_escape(self, letter: str, at: int, in_class: bool) -> str:
        following = self.text[self.at : self.at + 1]
        if letter == "0" and not following.isdigit():
            return "\\x00"
        if letter == "c" and following.isascii() and following.isalpha():
            self.at += 1
            return f"\\x{ord(following) % 32:02X}"
        if letter == "b" and in_class:
            return "\\x08"
        return super().other_escape(letter, at, in_class)

    def class_character(self, character: str, at: int) -> None:
        # Python warns of what it may read otherwise one day.
        self.parts.append(f"\\{character}" if character in "[&|~" else character)

    def group(self, at: int) -> None:
        if not self.text.startswith("?", self.at):
            self.parts.append("(?:")
            return
        match = re.compile(r"\?(?::|P?<[A-Za-z_]\w*>)").match(self.text, self.at)
        if match is None:
            raise self.refuse(
                "this kind of group", at, "Groups are (...), (?:...) and (?<name>...); XGrammar leaves look-ahead out."
            )
        self.at = match.end()
        self.parts.append("(?:")

    def dot(self) -> str:
        return "."

    def anchor(self, character: str, at: int) -> None:
        if (character, at) not in (("^", 0), ("$", len(self.text) - 1)):
            super().anchor(character, at)

    def bounds(self, match: re.Match[str], at: int) -> str:
        if not match[1]:
            raise self.refuse("a count without its lower bound", at, "Write {0,n}.")
        return super().bounds(match, at)
