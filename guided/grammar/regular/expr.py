"""Regular languages over bytes as interned expressions: the terminals of every grammar.

An `Expr` is immutable and hash-consed: two expressions built from the same parts by the constructors below are the
same object, so ``is`` compares them, and everything learned about one (edges, emptiness, a vocabulary's token
effects) is shared by all grammars of the process.  The constructors simplify (associativity, commutativity and
idempotence of alternation, units and zeros), which is what keeps the set of derivatives finite.

This file knows construction only: `guided.grammar.regular.derivative` walks expressions byte by byte, and
`guided.grammar.regular.decide` answers questions about whole languages.  Characters become bytes in
`guided.grammar.regular.characters`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Any, TypeAlias, cast

from guided.collection import untrack

Edge: TypeAlias = "tuple[int, int, Expr]"
"""``(low, high, target)``: every byte in ``low..high`` (inclusive) leads to the language ``target``."""


class Kind(IntEnum):
    """The shapes of an expression; the fields they use are documented at `Expr`."""

    EMPTY = 0
    EPSILON = 1
    BYTES = 2
    LITERAL = 3
    CONCAT = 4
    ALTERNATION = 5
    INTERSECTION = 6
    COMPLEMENT = 7
    REPEAT = 8
    SWITCH = 9
    RECURSION = 10
    JSON_STRING = 11
    JSON_ESCAPE = 12


class Expr:
    """One regular language over bytes; build it with the functions of this module, never directly.

    ``parts`` holds the operands by kind: BYTES ``(mask,)`` a 256-bit integer; LITERAL ``(data,)``; CONCAT
    ``(head, tail)`` with a head that is no CONCAT; ALTERNATION and INTERSECTION the operands by serial number;
    COMPLEMENT ``(body,)``; REPEAT ``(body, low, high)`` with ``high = None`` for no bound; SWITCH ``(edges,
    nullable)``; RECURSION ``(body,)``; JSON_STRING ``(content, canonical)``; JSON_ESCAPE ``(content, canonical,
    begun)``.  ``nullable``: the empty string is in the language.  ``decided``: only the expression EMPTY itself is
    empty among such parts, so no search is needed to know that the language is not.
    """

    __slots__ = ("__weakref__", "decided", "edges", "inhabited", "kind", "least", "nullable", "parts", "raw", "serial")

    kind: Kind
    parts: tuple[object, ...]
    nullable: bool
    decided: bool
    serial: int
    edges: tuple[Edge, ...] | None
    inhabited: bool | None
    least: int | None
    raw: Sequence[Edge] | None

    def __init__(self, kind: Kind, parts: tuple[object, ...], nullable: bool, decided: bool) -> None:
        self.kind = kind
        self.parts = parts
        self.nullable = nullable
        self.decided = decided
        self.serial = next(_serials)
        self.edges = None
        self.least = None
        self.raw = None
        self.inhabited = True if decided and kind is not Kind.EMPTY else None
        untrack(self)

    def __repr__(self) -> str:
        return f"<Expr {self.serial} {self.kind.name.lower()}>"

    def __reduce__(self) -> str:
        raise TypeError("expressions are interned per process; pickle the grammar's source instead")


_serials = itertools.count()
_serial = attrgetter("serial")
# One table a kind, keyed by the parts themselves: a key of its own per expression would be one more object for the
# garbage collector to walk, and there are a million expressions in a long run.
_interned: tuple[dict[tuple[object, ...], Expr], ...] = tuple({} for _ in Kind)


def _intern(kind: Kind, parts: tuple[object, ...], nullable: bool, decided: bool) -> Expr:
    table = _interned[kind]
    found = table.get(parts)
    if found is None:
        untrack(parts)
        # setdefault is atomic under the interpreter lock: two threads that build the same expression get one object.
        found = table.setdefault(parts, Expr(kind, parts, nullable, decided))
    return found


EMPTY = _intern(Kind.EMPTY, (), False, True)
"""The empty language: no string at all."""
EMPTY.inhabited = False
EPSILON = _intern(Kind.EPSILON, (), True, True)
"""The language of the empty string."""

_ALL_BYTES = (1 << 256) - 1


def byte_set(mask: int) -> Expr:
    """One byte out of the 256-bit ``mask`` (bit ``b`` set: byte ``b`` is allowed)."""
    return _intern(Kind.BYTES, (mask,), False, True) if mask else EMPTY


def byte_range(low: int, high: int) -> Expr:
    """One byte in ``low..high``, both included."""
    return byte_set(((1 << (high - low + 1)) - 1) << low)


def literal(data: bytes) -> Expr:
    """Exactly ``data``."""
    return _intern(Kind.LITERAL, (data,), False, True) if data else EPSILON


def concat(*items: Expr) -> Expr:
    """The items one after another."""
    tail = EPSILON
    for item in reversed(items):
        tail = _pair(item, tail)
        if tail is EMPTY:
            return EMPTY
    return tail


def sequence(expr: Expr) -> list[Expr]:
    """What an expression has one after another: sequences are pairs of pairs, as deep as they are long.

    >>> [len(sequence(concat(*map(repeat, map(literal, items))))) for items in ([b"a"], [b"a", b"b", b"c"])]
    [1, 3]
    """
    items: list[Expr] = []
    while expr.kind is Kind.CONCAT:
        head, expr = cast("tuple[Expr, Expr]", expr.parts)
        items.append(head)
    items.append(expr)
    return items


def _pair(head: Expr, tail: Expr) -> Expr:
    if head is EMPTY or tail is EMPTY:
        return EMPTY
    if head is EPSILON:
        return tail
    if tail is EPSILON:
        return head
    if head.kind is Kind.CONCAT:
        for item in reversed(sequence(head)):
            tail = _pair(item, tail)
        return tail
    if head.kind is Kind.LITERAL:
        if tail.kind is Kind.LITERAL:
            return literal(head.parts[0] + tail.parts[0])  # type: ignore[operator]
        if tail.kind is Kind.CONCAT and tail.parts[0].kind is Kind.LITERAL:  # type: ignore[attr-defined]
            joined = literal(head.parts[0] + tail.parts[0].parts[0])  # type: ignore[attr-defined]
            return _pair(joined, tail.parts[1])  # type: ignore[arg-type]
    if head.kind is Kind.REPEAT:
        following, rest = (tail.parts[0], tail.parts[1]) if tail.kind is Kind.CONCAT else (tail, EPSILON)
        if following.kind is Kind.REPEAT and following.parts[0] is head.parts[0]:  # type: ignore[attr-defined]
            body, low, high = cast("tuple[Expr, int, int | None]", head.parts)
            _, more_low, more_high = cast("tuple[Expr, int, int | None]", following.parts)  # type: ignore[attr-defined]
            both = None if high is None or more_high is None else high + more_high
            return _pair(repeat(body, low + more_low, both), cast(Expr, rest))
    return _intern(Kind.CONCAT, (head, tail), head.nullable and tail.nullable, head.decided and tail.decided)


def alternation(items: Iterable[Expr]) -> Expr:
    """Any of the items: union of languages."""
    flat: set[Expr] = set()
    mask = 0
    strings: dict[tuple[Expr, bool], list[Expr]] = {}
    stack = list(items)
    while stack:
        # Its kind says what its parts are.
        item: Any = stack.pop()
        kind = item.kind
        if kind is Kind.ALTERNATION:
            stack.extend(item.parts)
        elif kind is Kind.BYTES:
            mask |= item.parts[0]
        elif kind is Kind.JSON_STRING or (kind is Kind.CONCAT and item.parts[1].kind is Kind.JSON_STRING):
            # Behind an opening quote, too: as one text it is read a character at a time, and its effects are kept.
            head, text = cast("tuple[Expr, Expr]", item.parts) if kind is Kind.CONCAT else (EPSILON, item)
            content, canonical = cast("tuple[Expr, bool]", text.parts)
            strings.setdefault((head, canonical), []).append(content)
        elif item is not EMPTY:
            flat.add(item)
    if mask:
        flat.add(byte_set(mask))
    for (head, canonical), contents in strings.items():
        text = json_string(alternation(contents) if len(contents) > 1 else contents[0], canonical=canonical)
        flat.add(concat(head, text))
    if ALL in flat:
        return ALL
    if EPSILON in flat and any(item.nullable for item in flat if item is not EPSILON):
        flat.discard(EPSILON)
    if len(flat) <= 1:
        return flat.pop() if flat else EMPTY
    parts = tuple(sorted(flat, key=_serial))
    found = _interned[Kind.ALTERNATION].get(parts)
    if found is None:
        found = _intern(Kind.ALTERNATION, parts, any(p.nullable for p in parts), any(p.decided for p in parts))
    return found


def intersection(items: Iterable[Expr]) -> Expr:
    """All of the items at once: intersection of languages (empty operands tuple: every string)."""
    flat: set[Expr] = set()
    strings: dict[bool, list[Expr]] = {}
    stack = list(items)
    while stack:
        item = stack.pop()
        if item.kind is Kind.INTERSECTION:
            stack.extend(item.parts)  # type: ignore[arg-type]
        elif item.kind is Kind.JSON_STRING:
            content, canonical = cast("tuple[Expr, bool]", item.parts)
            strings.setdefault(canonical, []).append(content)
        elif item is not ALL:
            flat.add(item)
    for canonical, contents in strings.items():
        flat.add(json_string(intersection(contents) if len(contents) > 1 else contents[0], canonical=canonical))
    if not flat:
        return ALL
    if EMPTY in flat or any(item.kind is Kind.COMPLEMENT and item.parts[0] in flat for item in flat):
        return EMPTY
    if EPSILON in flat:
        return EPSILON if all(item.nullable for item in flat) else EMPTY
    if len(flat) == 1:
        return flat.pop()
    parts = tuple(sorted(flat, key=_serial))
    nullable = all(p.nullable for p in parts)
    return _intern(Kind.INTERSECTION, parts, nullable, nullable)


def complement(body: Expr) -> Expr:
    """Every byte string that is not in ``body``; intersect it with valid text, it also holds broken UTF-8."""
    if body is EMPTY:
        return ALL
    if body is ALL:
        return EMPTY
    if body.kind is Kind.COMPLEMENT:
        return body.parts[0]  # type: ignore[return-value]
    return _intern(Kind.COMPLEMENT, (body,), not body.nullable, not body.nullable)


def difference(left: Expr, right: Expr) -> Expr:
    """What is in ``left`` and not in ``right``."""
    return intersection((left, complement(right)))


def repeat(body: Expr, low: int = 0, high: int | None = None) -> Expr:
    """``low`` to ``high`` copies of ``body``, ``high = None`` for no bound."""
    if high is not None and high < low:
        return EMPTY
    if high == 0 or body is EPSILON:
        return EPSILON
    if body is EMPTY:
        return EPSILON if low == 0 else EMPTY
    if low == high == 1:
        return body
    if body.kind is Kind.ALTERNATION and EPSILON in body.parts:
        return repeat(alternation(part for part in body.parts if part is not EPSILON), 0, high)  # type: ignore[misc]
    if body.kind is Kind.REPEAT:
        inner, fewest, most = cast("tuple[Expr, int, int | None]", body.parts)
        # The sums of n numbers out of fewest..most, for n in low..high, leave no gap between one n and the next.
        if low == high or (
            fewest <= 1 if most is None and low == 0 else most is None or low * (most - fewest) + 1 >= fewest
        ):
            return repeat(inner, low * fewest, None if most is None or high is None else most * high)
    if body.nullable:
        low = 0
    return _intern(Kind.REPEAT, (body, low, high), low == 0, low == 0 or body.decided)


def optional(body: Expr) -> Expr:
    """``body`` or nothing."""
    return alternation((body, EPSILON))


def switch(edges: Iterable[Edge], nullable: bool) -> Expr:
    """The language given by its own first-byte edges (sorted, disjoint): tries and UTF-8 classes are made of these."""
    merged: list[Edge] = []
    for low, high, target in edges:
        if target is EMPTY:
            continue
        if merged and merged[-1][2] is target and merged[-1][1] + 1 == low:
            merged[-1] = (merged[-1][0], high, target)
        else:
            merged.append((low, high, target))
    if not merged:
        return EPSILON if nullable else EMPTY
    if not nullable:
        if all(target is EPSILON for _, _, target in merged):
            mask = 0
            for low, high, _ in merged:
                mask |= ((1 << (high - low + 1)) - 1) << low
            return literal(bytes([merged[0][0]])) if len(merged) == 1 and low == high else byte_set(mask)
        if len(merged) == 1 and merged[0][0] == merged[0][1]:
            return concat(literal(bytes([merged[0][0]])), merged[0][2])
    row = tuple(merged)
    untrack_edges(row)
    return _intern(Kind.SWITCH, (row, nullable), nullable, nullable or any(t.decided for _, _, t in merged))


def untrack_edges(row: tuple[Edge, ...]) -> None:
    """As `untrack`, for edges that are kept with an expression."""
    for edge in row:
        untrack(edge)
    untrack(row)


class Trie(Expr):
    """A SWITCH of a finite language that is made when it is looked at."""

    __slots__ = ()

    def __init__(self, nullable: bool, least: int) -> None:
        self.kind = Kind.SWITCH
        self.nullable = nullable
        self.inhabited = self.decided = True
        self.serial = next(_serials)
        self.edges = None
        self.least = least
        self.raw = None
        untrack(self)

    def __getattr__(self, name: str) -> tuple[object, ...]:
        if name != "parts":
            raise AttributeError(name)
        row = tuple(self.branches())
        untrack_edges(row)
        self.parts = parts = (row, self.nullable)
        untrack(parts)
        return parts

    def branches(self) -> Iterable[Edge]:
        """Its edges."""
        raise NotImplementedError


class _Words(Trie):
    """Of the words, sorted, that have no first byte in common.

    Names and enumerations are compared and combined far more often than they are read.
    """

    __slots__ = ("_words",)

    def __init__(self, items: tuple[bytes, ...]) -> None:
        super().__init__(not items[0], min(map(len, items)))
        self._words = items

    def branches(self) -> Iterator[Edge]:
        """One for each first byte."""
        start, items = int(self.nullable), self._words
        while start < len(items):
            byte = items[start][0]
            stop = start + 1
            while stop < len(items) and items[stop][0] == byte:
                stop += 1
            yield byte, byte, _trie(tuple([item[1:] for item in items[start:stop]]))
            start = stop


def is_listed(expr: Expr) -> bool:
    """Was the language made by `words` of several texts, or found finite?  Then it need not be looked into."""
    return isinstance(expr, Trie)


def listed_words(expr: Expr) -> tuple[bytes, ...]:
    """What a language made by `words` was made of, sorted; nothing for others."""
    return expr._words if isinstance(expr, _Words) else ()


def n_expressions() -> int:
    """How many expressions there are: what some work has added to them is a measure of it."""
    return sum(map(len, _interned))


_tries: dict[tuple[bytes, ...], Expr] = {}


def words(items: Iterable[bytes]) -> Expr:
    """Any of finitely many byte strings, as a trie whose equal suffixes are one object, made where it is looked at."""
    return _trie(tuple(sorted(set(items))))


def _trie(items: tuple[bytes, ...]) -> Expr:
    if len(items) < 2:
        return literal(items[0]) if items else EMPTY
    first, last = items[0], items[-1]
    shared = 0
    for left, right in zip(first, last, strict=False):
        if left != right:
            break
        shared += 1
    if shared:
        return _pair(literal(first[:shared]), _trie(tuple([item[shared:] for item in items])))
    if first and max(map(len, items)) == 1:
        return byte_set(sum(1 << item[0] for item in items))
    found = _tries.get(items)
    return _tries.setdefault(items, _Words(items)) if found is None else found


def json_string(content: Expr, *, canonical: bool = False) -> Expr:
    """What follows the opening quote of a JSON string whose text, in UTF-8, is in ``content``; with the closing quote.

    Every character stands raw or in any escape of RFC 8259; ``canonical``: in the one spelling of ``json.dumps``
    without ASCII escapes.  ``content`` must hold valid UTF-8 only (or its rest, where a character has begun).  The
    escapes stay symbolic, since nearly none of them is ever looked at.
    """
    if content is EMPTY:
        return EMPTY
    return _intern(Kind.JSON_STRING, (content, canonical), False, content.decided)


def made_json_string(content: Expr, *, canonical: bool) -> Expr | None:
    """As `json_string`, but None where nobody has made it yet."""
    return _interned[Kind.JSON_STRING].get((content, canonical))


def json_escape(content: Expr, canonical: bool, begun: str) -> Expr:
    """The rest of such a string after a backslash and ``begun``, a proper prefix of what may follow it."""
    return _intern(Kind.JSON_ESCAPE, (content, canonical, begun), False, content.decided)


def recursion(nullable: bool, build: Callable[[Expr], Expr]) -> Expr:
    """The least language ``X`` with ``X = build(X)``: `equations` with a single unknown."""
    return equations([nullable], lambda unknowns: [build(unknowns[0])])[0]


def equations(
    nullable: Sequence[bool], build: Callable[[Sequence[Expr]], Sequence[Expr]], *, decided: bool = False
) -> list[Expr]:
    """The least languages ``X`` with ``X[i] = build(X)[i]``; right-linear systems say what plain repetition cannot.

    ``build`` gets the unknowns and must place them only where at least one byte has been read; ``nullable[i]`` says
    whether ``X[i]`` holds the empty string, ``decided`` that the caller knows every ``X[i]`` to be non-empty.  Each
    call makes new expressions: memoise by source text to share.
    """
    unknowns = [Expr(Kind.RECURSION, (), flag, flag or decided) for flag in nullable]
    for unknown, body in zip(unknowns, build(unknowns), strict=True):
        unknown.parts = (body,)
        if unknown.nullable != body.nullable:
            raise AssertionError("equations: the declared nullability differs from the body's")
    return unknowns


ALL = _intern(Kind.REPEAT, (byte_set(_ALL_BYTES), 0, None), True, True)
"""Every byte string."""
