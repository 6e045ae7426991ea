r"""Backreferences to groups with finitely many texts, written out.

``(['"])[a-z]*\1`` is regular: what the group takes is one of two texts, so the pattern is the alternative of
``'[a-z]*'`` and ``"[a-z]*"``.  The same holds for any group with finitely many texts, wherever its references stand.
`write_out` does that on the tree that the parser made, before anything else reads it, and keeps the order in which a
backtracking matcher tries its choices.  A reference whose group has too many texts, or whose value may come from an
earlier round of a loop, raises `CannotWriteOut`.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from guided.grammar.regex.plain import children, nodes, size
from guided.grammar.regex.syntax import (
    Alternatives,
    Characters,
    Concatenation,
    Dialect,
    Group,
    Look,
    Node,
    Quantified,
    Reference,
)
from guided.grammar.regex.unicode_sets import close_under_case
from guided.grammar.regular.characters import CharacterSet, normalise

MAX_TEXTS = 1_000
"""Texts of one group: three digits.  ``([0-9]{3})x\\1`` is written out in 50 ms and compiled in 30 more."""
MAX_WRITTEN = 200_000
"""Nodes of the tree that is written out."""

Text: TypeAlias = "tuple[Node, ...]"
"""Single characters, and inner groups of them, which other references may ask for."""


class CannotWriteOut(Exception):
    """This reference is not written out; the message says why, ``offset`` where it stands."""

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why)
        self.offset = offset


def write_out(node: Node, dialect: Dialect) -> Node:
    """The tree without `Group` and `Reference`, matching the same texts; raises `CannotWriteOut`."""
    wanted = {reference.number: reference.offset for reference in nodes(node) if isinstance(reference, Reference)}
    node = _without_groups(node, frozenset(wanted))
    for number, offset in sorted(wanted.items()):
        node = _WriteOut(number, offset, dialect).resolve(node, in_loop=False)
    return node


def _rebuilt(node: Node, parts: tuple[Node, ...]) -> Node:
    """``node`` with these children instead of its own."""
    match node:
        case Concatenation():
            return _sequence(parts)
        case Alternatives():
            return Alternatives(parts)
        case Quantified(low=low, high=high, greedy=greedy):
            return Quantified(parts[0], low, high, greedy)
        case Look(ahead=ahead, negative=negative):
            return Look(parts[0], ahead, negative)
        case Group(number=number):
            return Group(number, parts[0])
    return node


def _sequence(parts: tuple[Node, ...]) -> Node:
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Concatenation) else (part,))
    return flat[0] if len(flat) == 1 else Concatenation(tuple(flat))


def _without_groups(node: Node, kept: frozenset[int]) -> Node:
    parts = tuple(_without_groups(child, kept) for child in children(node))
    if isinstance(node, Group) and node.number not in kept:
        return parts[0]
    return _rebuilt(node, parts) if parts else node


def _mentions(node: Node, number: int) -> tuple[bool, bool]:
    """Does the tree hold the group, and a reference to it?"""
    group = any(isinstance(item, Group) and item.number == number for item in nodes(node))
    return group, any(isinstance(item, Reference) and item.number == number for item in nodes(node))


def _text(node: Node) -> str:
    if isinstance(node, Characters):
        return chr(node.ranges[0][0])
    return "".join(map(_text, children(node)))


def _overwritten(text: Text, later: Text) -> Text:
    """``text`` without the groups that ``later`` sets anew."""
    numbers = {node.number for node in nodes(_sequence(later)) if isinstance(node, Group)}
    if not numbers:
        return text
    kept = frozenset(node.number for node in nodes(_sequence(text)) if isinstance(node, Group)) - numbers
    parts = _without_groups(Concatenation(text), kept)
    return parts.parts if isinstance(parts, Concatenation) else (parts,)


def _same(character: str, reference: Reference, dialect: Dialect) -> CharacterSet:
    """What the reference takes for this character of the group's text."""
    one = ((ord(character), ord(character)),)
    if not reference.ignore_case:
        return one
    if dialect is Dialect.ECMA:
        return close_under_case(one, ecma=True)
    # Python compares the lower case of both, which is narrower than what a literal takes: U+017F is not an s here.
    flags = re.IGNORECASE | re.DOTALL | (re.ASCII if reference.ascii_only else re.UNICODE)
    alike = re.compile(r"(.)\1", flags)
    near = close_under_case(one, ecma=False, ascii_only=reference.ascii_only)
    codes = (code for low, high in near for code in range(low, high + 1))
    return normalise([(code, code) for code in codes if alike.fullmatch(character + chr(code))])


class _WriteOut:
    """Writes out the references to one group."""

    def __init__(self, number: int, offset: int, dialect: Dialect) -> None:
        self.number = number
        self.offset = offset
        self.dialect = dialect
        self.written = 0

    def cannot(self, why: str) -> CannotWriteOut:
        return CannotWriteOut(why, self.offset)

    def resolve(self, node: Node, *, in_loop: bool) -> Node:
        """``node`` with every reference replaced, where nothing before ``node`` has set the group in this round."""
        group, reference = _mentions(node, self.number)
        if not reference:
            return self._forget(node) if group else node
        if not group:
            return self._unset(node, in_loop)
        if isinstance(node, Concatenation):
            return self._resolve_parts(node.parts, in_loop)
        if isinstance(node, Alternatives):
            return Alternatives(tuple(self.resolve(option, in_loop=in_loop) for option in node.options))
        if isinstance(node, Quantified):
            again = in_loop or node.high is None or node.high > 1
            return Quantified(self.resolve(node.body, in_loop=again), node.low, node.high, node.greedy)
        if isinstance(node, Look):
            if not node.ahead and self.dialect is Dialect.ECMA:
                raise self.cannot("it stands with its group in a look-behind, which reads backwards")
            return Look(self.resolve(node.body, in_loop=in_loop), node.ahead, node.negative)
        if isinstance(node, Group) and node.number != self.number:
            return Group(node.number, self.resolve(node.body, in_loop=in_loop))
        # A reference inside its own group, which only ECMA-262 knows: the group is not set yet.
        return self._unset(self._forget(node), in_loop)

    def _resolve_parts(self, parts: tuple[Node, ...], in_loop: bool) -> Node:
        at = next(index for index, part in enumerate(parts) if _mentions(part, self.number)[0])
        before = tuple(self.resolve(part, in_loop=in_loop) for part in parts[:at])
        setter, rest = parts[at], parts[at + 1 :]
        if not any(_mentions(part, self.number)[1] for part in rest):
            return _sequence((*before, self.resolve(setter, in_loop=in_loop), *rest))
        if any(_mentions(part, self.number)[0] for part in rest):
            raise self.cannot("two groups have its number")
        match setter:
            case Group(number=self.number, body=body):
                return _sequence((*before, self._each_text(body, rest)))
            case Concatenation(inner):
                return self._resolve_parts((*before, *inner, *rest), in_loop)
            case Alternatives(options):
                each = [self.resolve(_sequence((option, *rest)), in_loop=in_loop) for option in options]
                return _sequence((*before, self._grown(Alternatives(tuple(each)))))
            case Quantified(body, 1, 1):
                return self._resolve_parts((*before, body, *rest), in_loop)
            case Quantified(body, 0, 1, greedy):
                taken = self.resolve(_sequence((body, *rest)), in_loop=in_loop)
                skipped = self.resolve(_sequence(rest), in_loop=in_loop)
                each = [taken, skipped] if greedy else [skipped, taken]
                return _sequence((*before, self._grown(Alternatives(tuple(each)))))
            case Quantified():
                raise self.cannot("its group is repeated")
            case Look():
                raise self.cannot("its group stands in a look-around")
        raise self.cannot("its group stands inside another that is referred to")

    def _each_text(self, body: Node, rest: tuple[Node, ...]) -> Node:
        options = []
        for parts in self._texts(body):
            text = "".join(_text(part) for part in parts)
            options.append(self._grown(_sequence((*parts, *(self._put(part, text) for part in rest)))))
        return options[0] if len(options) == 1 else Alternatives(tuple(options))

    def _grown(self, node: Node) -> Node:
        self.written += size(node)
        if self.written > MAX_WRITTEN:
            raise self.cannot(f"the pattern written out has more than {MAX_WRITTEN} parts")
        return node

    def _texts(self, body: Node) -> list[Text]:
        """What a group may take, each once, most preferred first."""
        match body:
            case Characters(ranges):
                if sum(high - low + 1 for low, high in ranges) > MAX_TEXTS:
                    raise self._too_many()
                return [(Characters(((code, code),)),) for low, high in ranges for code in range(low, high + 1)]
            case Concatenation(parts):
                found: list[Text] = [()]
                for part in parts:
                    found = self._joined(found, self._texts(part))
                return found
            case Alternatives(options):
                return self._bounded([text for option in options for text in self._texts(option)])
            case Group(number, inner):
                return [(Group(number, _sequence(text)),) for text in self._texts(inner)]
            case Quantified(inner, low, high, greedy) if high is not None and high <= MAX_TEXTS:
                texts = self._texts(inner)
                found = [()]
                for count in reversed(range(high)):
                    more = self._joined(texts, found)
                    stop: list[Text] = [()] if count >= low else []
                    found = self._bounded(more + stop if greedy else stop + more)
                return found
            case Quantified():
                raise self._too_many()
        raise self.cannot("its group holds an assertion or a reference")

    def _joined(self, first: list[Text], second: list[Text]) -> list[Text]:
        if len(first) * len(second) > 4 * MAX_TEXTS:
            raise self._too_many()
        return self._bounded([(*_overwritten(a, b), *b) for a in first for b in second])

    def _bounded(self, texts: list[Text]) -> list[Text]:
        once = list(dict.fromkeys(texts))
        if len(once) > MAX_TEXTS:
            raise self._too_many()
        return once

    def _too_many(self) -> CannotWriteOut:
        return self.cannot(f"its group has infinitely many texts, or more than {MAX_TEXTS:,}")

    def _put(self, node: Node, text: str) -> Node:
        """``node`` with the references to the group replaced by its text."""
        if isinstance(node, Reference):
            if node.number != self.number:
                return node
            return _sequence(tuple(Characters(_same(character, node, self.dialect)) for character in text))
        parts = children(node)
        return _rebuilt(node, tuple(self._put(part, text) for part in parts)) if parts else node

    def _forget(self, node: Node) -> Node:
        if isinstance(node, Group) and node.number == self.number:
            return node.body
        parts = children(node)
        return _rebuilt(node, tuple(map(self._forget, parts))) if parts else node

    def _unset(self, node: Node, in_loop: bool) -> Node:
        """A reference to a group that took no part: in Python it matches nothing, in ECMA-262 the empty text."""
        if isinstance(node, Reference) and node.number == self.number:
            if self.dialect is Dialect.ECMA:
                return Concatenation(())
            if in_loop:
                raise self.cannot("it may mean what its group took in an earlier round of a loop")
            return Alternatives(())
        parts = children(node)
        return _rebuilt(node, tuple(self._unset(part, in_loop) for part in parts)) if parts else node
