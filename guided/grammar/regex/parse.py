"""Patterns in Python's and ECMA-262's notation, read into the tree of `guided.grammar.regex.syntax`.

The parser keeps its own stack of open groups, so nesting costs no Python frames; what it builds is at most
`MAX_DEPTH` levels deep, so that everything after it may recurse.  Escapes and classes are read by
`guided.grammar.regex.escapes`.  What this file is not: it gives no language to a tree (`lower` does).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from guided.errors import LimitError, UnsupportedError
from guided.grammar.regex.atomic import CannotCommit, commit
from guided.grammar.regex.escapes import (
    ASCII,
    DIGITS,
    DOTALL,
    IGNORECASE,
    LIBRARY,
    MULTILINE,
    UNICODE,
    VERBOSE,
    Source,
    character_class,
    escape,
)
from guided.grammar.regex.plain import depth, nodes
from guided.grammar.regex.references import CannotWriteOut, write_out
from guided.grammar.regex.syntax import (
    Alternatives,
    Anchor,
    At,
    Characters,
    Concatenation,
    Dialect,
    Group,
    Look,
    Node,
    Quantified,
    Reference,
)
from guided.grammar.regex.unicode_sets import ECMA_LINE_TERMINATOR, LINE_FEED
from guided.grammar.regular.characters import ANY_CHARACTER, negate

MAX_DEPTH = 100
"""Levels of a tree.  Redundant groups do not count; the deepest pattern of the JSON Schema corpora has 9 levels."""
MAX_COUNT = 2**32 - 2
"""The largest count in a quantifier, which is Python's."""

_FLAG_LETTERS = {"i": IGNORECASE, "m": MULTILINE, "s": DOTALL, "x": VERBOSE, "a": ASCII, "u": UNICODE}
_PYTHON_FLAGS = IGNORECASE | MULTILINE | DOTALL | VERBOSE | ASCII | UNICODE | LIBRARY
_ECMA_FLAGS = IGNORECASE | MULTILINE | DOTALL | UNICODE
_EMPTY = Concatenation(())
_SPECIAL = frozenset("()|*+?{[\\.^$")
_FIRST_PLAIN, _ABOVE_PLAIN = " ", "\ud800"
"""Characters between these stand for themselves, unless they are special or a flag says otherwise."""
_MAY_REFER = re.compile(r"\\[1-9k]|\(\?P=")
_NOT_LINE_FEED = negate(LINE_FEED)
_NOT_ECMA_LINE_TERMINATOR = negate(ECMA_LINE_TERMINATOR)


def parse(pattern: str, dialect: Dialect = Dialect.PYTHON, flags: int = 0) -> Node:
    r"""The tree of ``pattern``; ``flags`` are those of `re` (for ECMA-262: IGNORECASE, MULTILINE, DOTALL as i, m, s).

    Patterns of the Python dialect mean what they mean to `re`, and may use ``\p{..}`` and look-behinds of any width
    besides; with ``regex.VERSION0`` among the flags they mean what they mean to the `regex` package, and what it reads
    otherwise than `re` (fuzzy matching, classes of POSIX, its own groups and escapes) is refused.  Those of ECMA-262
    have the meaning of its Unicode mode, and may use these liberties of its Annex B: escaped punctuation and ``_``,
    literal ``{``, ``}`` and ``]``, classes as ends of ranges, quantified look-aheads.  Backreferences to groups with
    few texts are written out (see `references`).  Raises `GrammarError` for a malformed pattern, `UnsupportedError` for
    other backreferences and constructs whose language is not regular or not enforced here, `LimitError` for nesting
    deeper than `MAX_DEPTH`; all three with the offset in characters.

    >>> parse("a*")
    Quantified(body=Characters(ranges=((97, 97),)), low=0, high=None, greedy=True)
    """
    if dialect not in (Dialect.PYTHON, Dialect.ECMA):
        raise UnsupportedError(
            f"a pattern in {dialect.value}'s notation is rewritten before it is parsed",
            remedy="Use guided.regex(pattern, dialect=...).",
        )
    return _Parser(pattern, dialect, flags).parse()


@dataclass(slots=True)
class _Item:
    """A finished part with what is needed to quantify it: where it began, how deep it is, whether it may repeat."""

    node: Node
    offset: int
    depth: int = 1
    repeatable: bool = True


@dataclass(slots=True)
class _Frame:
    """An open group, or the whole pattern."""

    opening: str
    offset: int
    outer_flags: int
    number: int = 0
    options: list[_Item] = field(default_factory=list)
    items: list[_Item] = field(default_factory=list)


class _Parser(Source):
    def parse(self) -> Node:
        known = _PYTHON_FLAGS if self.dialect is Dialect.PYTHON else _ECMA_FLAGS
        if self.flags & ~known:
            unknown = re.RegexFlag(self.flags & ~known)
            raise UnsupportedError(
                f"the flags {unknown!r} have no meaning for {self.dialect.name} patterns",
                remedy="Drop them; patterns are text, and locales are not supported.",
            )
        self.stack = [_Frame("", 0, self.flags)]
        # Groups are kept in the tree only where something may refer to them.
        self.keeps_groups = _MAY_REFER.search(self.text) is not None
        while self.at < len(self.text):
            self._step()
        frame = self.stack[-1]
        if frame.opening:
            raise self.error("this group is never closed", frame.offset, "Add the missing ')' or escape the '('.")
        item = self._close(frame)
        return self._written_out(item) if self.keeps_groups else item.node

    def _written_out(self, item: _Item) -> Node:
        for node in nodes(item.node):
            if isinstance(node, Reference) and node.number > self.group_count:
                raise self.error(f"no group {node.number}", node.offset, "Open the group, or fix the number.")
        try:
            node = write_out(item.node, self.dialect)
        except CannotWriteOut as reason:
            raise UnsupportedError(
                f"a backreference: {reason}",
                where=f"offset {reason.offset}",
                remedy="Only references to groups with few texts are regular: write the cases as alternatives.",
            ) from None
        return self._deeper(_Item(node, item.offset, depth(node))).node

    def _step(self) -> None:
        frame = self.stack[-1]
        at = self.at
        character = self.text[at]
        self.at += 1
        is_plain = _FIRST_PLAIN <= character < _ABOVE_PLAIN and character not in _SPECIAL
        if is_plain and not self.flags & (VERBOSE | IGNORECASE):
            code = ord(character)
            frame.items.append(_Item(Characters(((code, code),)), at))
            return
        if self.flags & VERBOSE and character in " \t\n\r\v\f":
            return
        if self.flags & VERBOSE and character == "#":
            end = self.text.find("\n", at)
            self.at = len(self.text) if end < 0 else end + 1
        elif character == "(":
            self._open(frame, at)
        elif character == ")":
            if not frame.opening:
                raise self.error("this ')' closes no group", at, "Escape it as '\\)' or open a group.")
            self._end_group(frame)
        elif character == "|":
            frame.options.append(self._sequence(frame))
            frame.items = []
        elif character in "*+?":
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
            self._quantify(frame, at, low, high)
        elif character == "{" and (bounds := self._bounds(at)) is not None:
            self._quantify(frame, at, *bounds)
        elif character == "{" and self.flags & LIBRARY:
            raise UnsupportedError(
                "'{' that begins no count, with which the `regex` package may begin fuzzy matching",
                where=f"offset {at}",
                remedy="Escape it as '\\{' if it is text.",
            )
        elif character == "[":
            frame.items.append(_Item(Characters(character_class(self, at)), at))
        elif character == "\\":
            node = escape(self, at)
            frame.items.append(_Item(node, at, repeatable=isinstance(node, (Characters, Reference))))
        elif character == ".":
            frame.items.append(_Item(Characters(self._dot()), at))
        elif character == "^":
            frame.items.append(_Item(self._line_start(), at, repeatable=False))
        elif character == "$":
            frame.items.append(_Item(self._line_end(), at, repeatable=False))
        else:
            frame.items.append(
                _Item(Characters(self.folded(self.one(self.joined_surrogates(ord(character), at), at))), at)
            )

    def _dot(self) -> tuple[tuple[int, int], ...]:
        if self.flags & DOTALL:
            return ANY_CHARACTER
        return _NOT_LINE_FEED if self.dialect is Dialect.PYTHON else _NOT_ECMA_LINE_TERMINATOR

    def _line_start(self) -> Node:
        if not self.flags & MULTILINE:
            return At(Anchor.TEXT_START)
        if self.dialect is Dialect.PYTHON:
            return At(Anchor.LINE_START)
        return Look(Characters(_NOT_ECMA_LINE_TERMINATOR), ahead=False, negative=True)

    def _line_end(self) -> Node:
        if self.dialect is Dialect.PYTHON:
            return At(Anchor.LINE_END if self.flags & MULTILINE else Anchor.TEXT_END_OR_FINAL_NEWLINE)
        if not self.flags & MULTILINE:
            return At(Anchor.TEXT_END)
        return Look(Characters(_NOT_ECMA_LINE_TERMINATOR), ahead=True, negative=True)

    # Quantifiers

    def _number(self) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in DIGITS:
            self.at += 1
        return self.text[start : self.at]

    def _bounds(self, at: int) -> tuple[int, int | None] | None:
        """The counts of ``{..}`` whose brace is at ``at``; None, and nothing consumed, when the brace is literal."""
        start = self.at
        low = self._number()
        comma = self.take(",")
        high = self._number() if comma else low
        python = self.dialect is Dialect.PYTHON
        if not self.take("}") or self.text[start] == "}" or not (low or (python and comma)):
            self.at = start
            return None
        if len(low) > 10 or len(high) > 10 or max(int(low or 0), int(high or 0)) > MAX_COUNT:
            raise LimitError("a repetition count is too large", where=f"offset {at}", remedy=f"Stay below {MAX_COUNT}.")
        bounds = int(low or 0), int(high) if high else None
        if bounds[1] is not None and bounds[1] < bounds[0]:
            raise self.error("the counts of this quantifier are in the wrong order", at, "Write {low,high}.")
        return bounds

    def _quantify(self, frame: _Frame, at: int, low: int, high: int | None) -> None:
        item = frame.items[-1] if frame.items else None
        if item is None or not item.repeatable:
            what = "nothing to repeat" if item is None else "this quantifier follows another or an assertion"
            raise self.error(what, at, "Escape the character, or put what it repeats into a group.")
        greedy = not self.take("?")
        quantified = _Item(Quantified(item.node, low, high, greedy), item.offset, item.depth + 1)
        if self.dialect is Dialect.PYTHON and greedy and self.take("+"):
            quantified = self._committed(quantified.node, item.offset)
        quantified.repeatable = False
        frame.items[-1] = self._deeper(quantified)

    def _deeper(self, item: _Item) -> _Item:
        if item.depth > MAX_DEPTH:
            raise LimitError(
                f"the pattern nests deeper than {MAX_DEPTH} levels",
                where=f"offset {item.offset}",
                remedy="Flatten the groups, or write the nesting as a grammar.",
            )
        return item

    def _committed(self, node: Node, offset: int) -> _Item:
        """``(?>node)``."""
        if self.keeps_groups and any(isinstance(part, (Group, Reference)) for part in nodes(node)):
            raise UnsupportedError(
                "this atomic group or possessive quantifier holds a group or backreference",
                where=f"offset {offset}",
                remedy="Write it without: (?:...), or a quantifier that gives back.",
            )
        try:
            kept = commit(node)
        except CannotCommit as reason:
            raise UnsupportedError(
                f"this atomic group or possessive quantifier: {reason}",
                where=f"offset {offset}",
                remedy="Write it without: (?:...), or a quantifier that gives back.",
            ) from None
        return self._deeper(_Item(kept, offset, depth(kept)))

    # Groups

    def _open(self, frame: _Frame, at: int) -> None:
        outer = self.flags
        if not self.take("?"):
            self.group_count += 1
            self.stack.append(_Frame("(", at, outer, self.group_count))
            return
        for opening in ("<=", "<!", "=", "!", ":", ">"):
            if self.take(opening) and (opening != ">" or self.dialect is Dialect.PYTHON):
                self.stack.append(_Frame("(?" + opening, at, outer))
                return
        if self.dialect is Dialect.PYTHON:
            if self.take("P<"):
                self._named(at)
            elif self.take("P="):
                end = self.text.find(")", self.at)
                if end < 0:
                    raise self.error("this reference is never closed", at, "Add the missing ')'.")
                name = self.text[self.at : end]
                self.at = end + 1
                frame.items.append(_Item(self.reference(name, at), at))
            elif self.take("#"):
                end = self.text.find(")", self.at)
                if end < 0:
                    raise self.error("this comment is never closed", at, "Add the missing ')'.")
                self.at = end + 1
            elif self.take("("):
                raise UnsupportedError(
                    "a conditional group", where=f"offset {at}", remedy="Write the two cases as alternatives."
                )
            elif self.take("<"):
                raise self.error("'(?<' begins no group", at, "Python names groups as (?P<name>...).")
            else:
                self._flag_group(frame, at)
        elif self.take("<"):
            self._named(at)
        else:
            self._flag_group(frame, at)

    def _named(self, at: int) -> None:
        end = self.text.find(">", self.at)
        name = self.text[self.at : end] if end >= 0 else ""
        plain = name.replace("$", "_") if self.dialect is Dialect.ECMA else name
        if not plain.isidentifier():
            raise self.error(f"bad group name {name!r}", at, "Use letters, digits and '_'.")
        if name in self.group_numbers and self.dialect is Dialect.PYTHON:
            raise self.error(f"the group name {name!r} is taken", at, "Rename one of the groups.")
        self.group_count += 1
        # Of two groups with one name, which only ECMA-262 has, the first has the number: so both are that group.
        number = self.group_numbers.setdefault(name, self.group_count)
        self.at = end + 1
        self.stack.append(_Frame("(", at, self.flags, number))

    def _flag_group(self, frame: _Frame, at: int) -> None:
        """``(?i)``, ``(?i:``, ``(?i-s:``; the text is read up to just after ``(?``."""
        end = self.at
        while end < len(self.text) and self.text[end] not in ":)":
            end += 1
        on, minus, off = self.text[self.at : end].partition("-")
        letters = "imsxau" if self.dialect is Dialect.PYTHON else "ims"
        if end == len(self.text) or not all(c in letters for c in on + off) or not (on or off) or (minus and not off):
            raise self.error("unknown group syntax or flags after '(?'", at, f"Known flags are {', '.join(letters)}.")
        add, remove = (sum({_FLAG_LETTERS[c] for c in letters}) for letters in (on, off))
        if add & remove or ("a" in on and "u" in on) or set(off) & {"a", "u"}:
            raise self.error("these inline flags contradict each other", at, "Name each flag once.")
        flags = self.flags & ~remove | add
        if "u" in on:
            flags &= ~ASCII
        self.at = end + 1
        if self.text[end] == ":":
            self.stack.append(_Frame("(?:", at, self.flags))
        elif self.dialect is Dialect.ECMA or off:
            raise self.error("flags without a group", at, "Write (?i:...).")
        elif len(self.stack) > 1 or frame.items or frame.options:
            raise self.error("global flags must stand at the start of the pattern", at, "Write (?i:...).")
        self.flags = int(flags)

    def _end_group(self, frame: _Frame) -> None:
        self.stack.pop()
        self.flags = frame.outer_flags
        item = self._close(frame)
        if frame.opening in ("(?=", "(?!", "(?<=", "(?<!"):
            node = Look(item.node, ahead="<" not in frame.opening, negative="!" in frame.opening)
            item = self._deeper(_Item(node, frame.offset, item.depth + 1, repeatable=True))
        elif frame.opening == "(?>":
            item = self._committed(item.node, frame.offset)
        elif frame.number and self.keeps_groups:
            item = _Item(Group(frame.number, item.node), frame.offset, item.depth + 1)
        self.stack[-1].items.append(item)

    def _close(self, frame: _Frame) -> _Item:
        last = self._sequence(frame)
        if not frame.options:
            return last
        options = [*frame.options, last]
        return self._deeper(
            _Item(Alternatives(tuple(o.node for o in options)), frame.offset, 1 + max(o.depth for o in options))
        )

    def _sequence(self, frame: _Frame) -> _Item:
        items = frame.items
        if not items:
            return _Item(_EMPTY, frame.offset)
        if len(items) == 1:
            return _Item(items[0].node, frame.offset, items[0].depth)
        node = Concatenation(tuple(item.node for item in items))
        return self._deeper(_Item(node, frame.offset, 1 + max(item.depth for item in items)))
