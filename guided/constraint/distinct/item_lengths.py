"""How many more bytes end an item of an array of distinct items as none of some: read off the rules of its values.

A text is led away from some values by a way on that has more ends than these are: a string or number goes on
(`guided.grammar.regular.lengthening`), an object that may have other members gets one with a new name, an array more
items, a record of fixed members another text at one of them.  Where there are no such ways, all values that are left
are finitely many, and none of them is longer than the longest.  Containers are left, if need be, to come by such a way
in what is around them; those which have one by themselves need not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, cast

from guided.automata.lexer.distances import minimum
from guided.automata.rules.costs import RuleCosts
from guided.constraint.engine.machine import ConstraintMachine
from guided.grammar.ir import (
    AnyTerminal,
    Body,
    Choice,
    DeferredMembers,
    ListedTerminal,
    Mark,
    Members,
    RangedTerminal,
    Reference,
    Repetition,
    Sequence,
    Terminal,
)
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr, Kind
from guided.grammar.regular.lengthening import Lengthening, larger, lengthening
from guided.kernels.data.layout import FAR

__all__ = ["lengths_of_items"]

MOST_BODIES = 3000
"""Values and members that are looked at, some 10 us each."""

NEW_NAME = 5
"""Bytes of a name that is none of the declared ones, and can be lengthened by any letter: fewer than 95^4 names are
declared, so with some four letters none of them begins."""

LETTERS = 93
"""Characters that are one byte of a name each."""

COMPARED = 10
"""Values that an array may hold already where one of two ways on is taken for the shorter."""

ESCAPED = 6
"""Bytes of a character that is spelled by its number."""

_AROUND = frozenset(b" \t\n\r,:[]{}")
"""What texts begin with that are no values."""
_NOTHING = Lengthening(0, 0)


class _Unknown(Exception):
    """No bound is seen."""


class _Value(NamedTuple):
    """What is known of the texts of a value."""

    inside: Lengthening | None
    """Bytes beyond the shortest end with which a text that has begun, wherever it is, is none of some; None where that
    is not known."""
    begun: Lengthening | None
    """All bytes of a text from its beginning, that is none of some."""
    endless: bool
    """Are there infinitely many?"""
    leave: int = 0
    """Bytes that end the containers in which a text may be, up to one that has a way on by itself."""
    leads_on: bool = False
    """Is it a container that has one, wherever a text is in it?"""


class _Items:
    """Explores the rules of one grammar."""

    def __init__(self, automaton: ConstraintMachine, names: Lengthening | None) -> None:
        terminal = partial(minimum, automaton.states)
        self._rules = automaton.grammar.rules
        self._marks = automaton.graph.analysis.marks
        self._price = RuleCosts(automaton.graph, terminal, lambda states: list(map(terminal, states)))
        self._names = names
        self._known: dict[int, _Value] = {}
        self._entered: set[int] = set()
        self._left = MOST_BODIES
        self._leading_on: list[tuple[_Value, Body]] = []
        """The containers that were met and have ways on by themselves."""

    def items(self, rule: int) -> Lengthening:
        """From anywhere in an item, or before it."""
        item = self._item_of(self._rules[rule].body)
        if item is None:
            return _NOTHING
        value = self._value(item[0].body)
        if value.inside is None or value.begun is None:
            raise _Unknown
        return larger(value.inside, value.begun)

    def containers(self) -> Lengthening:
        """From anywhere in those containers that were met and have ways on by themselves."""
        most = _NOTHING
        for value, body in self._leading_on:
            assert value.inside is not None
            left = max((self._value(part).leave for part in self._held(body)), default=0)
            most = larger(most, _more(value.inside, left))
        return most

    def _item_of(self, body: Body) -> tuple[Repetition, int] | None:
        """The items of an array's rule, and the least that they take; None where it has none."""
        parts = body.parts if isinstance(body, Sequence) else (body,)
        if len(parts) == 1 and isinstance(parts[0], Terminal):
            return None
        if len(parts) != 2 or not isinstance(parts[1], Repetition):
            raise _Unknown
        return parts[1], self._cost(parts[1])

    def _value(self, body: Body) -> _Value:
        self._left -= 1
        if self._left < 0:
            raise _Unknown
        match body:
            case Terminal() | ListedTerminal() | RangedTerminal():
                return self._scalar(body)
            case Reference(rule):
                return self._rule(rule)
            case Choice(options):
                return self._choice([self._value(option) for option in options])
            case Sequence(parts):
                inner = [part for part in parts if not (isinstance(part, AnyTerminal) and _is_around(part))]
                if len(inner) != 1:
                    raise _Unknown
                return self._value(inner[0])
        raise _Unknown

    def _choice(self, found: list[_Value]) -> _Value:
        """Any of some values: at the beginning the way on may be any that has more ends."""
        insides = [value.inside for value in found]
        begun = [value.begun for value in found if value.endless] or [value.begun for value in found]
        return _Value(
            _largest(insides), _largest(begun), any(value.endless for value in found),
            max((value.leave for value in found), default=0), bool(found) and all(value.leads_on for value in found),
        )  # fmt: skip

    def _scalar(self, body: AnyTerminal) -> _Value:
        found = _lengths_of(body)
        # Behind the opening quotation mark all is left that there is.
        begun = None if found is None else _more(found, 1)
        return _Value(found, begun, found is not None and found.step > 0)

    def _rule(self, rule: int) -> _Value:
        found = self._known.get(rule)
        if found is not None:
            return found
        mark, body = self._marks.get(rule), self._rules[rule].body
        if mark in (Mark.PATTERN, Mark.HOST_NAME, Mark.REPEATING):
            raise _Unknown
        early = self._leading(rule, mark, body)
        if early is not None:
            # What it holds may hold it in turn, and is looked at later.
            self._known[rule] = early
            self._leading_on.append((early, body))
            return early
        if rule in self._entered:
            raise _Unknown
        self._entered.add(rule)
        if mark in (Mark.ARRAY, Mark.DISTINCT):
            found = self._array(body, mark)
        elif mark is Mark.OBJECT:
            found = self._record(rule, body)
        else:
            found = self._value(body)
        self._known[rule] = found
        return found

    def _leading(self, rule: int, mark: Mark | None, body: Body) -> _Value | None:
        """An object that may have other members, or an array that may have more items, whatever they are."""
        if mark is Mark.OBJECT and isinstance(body, Sequence) and len(body.parts) == 2:
            price = self._other_member(body.parts[1])
            if price is not None:
                assert self._names is not None
                name = larger(self._names, Lengthening(NEW_NAME, 1, LETTERS))
                way = _more(name, price + 2)
                return _Value(way, _more(way, self._price.rule(rule) + 1), True, leads_on=True)
        if mark is Mark.ARRAY:
            item = self._item_of(body)
            if item is not None and item[0].high is None:
                each = self._cost(item[0].body) + (self._cost(item[0].separator) if item[0].separator else 0)
                way = Lengthening(each, each)
                return _Value(way, _more(way, item[1] + 2), True, leads_on=True)
        return None

    def _other_member(self, body: Body) -> int | None:
        """What another member takes but for its name, with a comma; None where there may be none."""
        if self._names is None:
            return None
        if isinstance(body, DeferredMembers) and body.others:
            return self._cost(body.separator) + min(self._price.rule(rule) for _, rule in body.others)
        if isinstance(body, Members) and body.extras and body.high is None:
            return self._cost(body.separator) + min(self._cost(member.value) for member in body.extras)
        return None

    def _held(self, body: Body) -> Iterator[Body]:
        """The values in a container."""
        match body:
            case DeferredMembers():
                yield from (body.source.value(i) for i in range(len(body.required)))
                yield from (Reference(rule) for _, rule in body.others)
            case Members():
                yield from (member.value for member in (*body.declared, *body.extras))
            case Repetition():
                yield body.body
            case Sequence(parts):
                for part in parts[1:]:
                    yield from self._held(part)

    def _array(self, body: Body, mark: Mark) -> _Value:
        """An array of finitely many items, or of distinct ones."""
        item = self._item_of(body)
        if item is None:
            return _Value(_NOTHING, Lengthening(2, 0), False)
        value = self._value(item[0].body)
        one = _largest([value.inside, value.begun])
        inside = begun = None
        if one is not None and value.begun is not None:
            high = item[0].high
            separator = self._cost(item[0].separator) if item[0].separator else 0
            if value.endless:
                inside = _sum(one, _more(value.begun, separator))
            elif high is not None and mark is Mark.ARRAY:
                inside = _sum(one, Lengthening(high * (value.begun.beyond(0) + separator), 0))
            begun = None if inside is None else _more(inside, item[1] + 2)
        leave = item[1] if mark is Mark.DISTINCT else item[1] + value.leave
        return _Value(inside, begun, value.endless, leave)

    def _record(self, rule: int, body: Body) -> _Value:
        """An object of fixed members."""
        if not (isinstance(body, Sequence) and len(body.parts) == 2):
            if isinstance(body, Terminal):
                return _Value(_NOTHING, Lengthening(2, 0), False)
            raise _Unknown
        members, least = body.parts[1], self._price.rule(rule)
        values = [(self._value(value), key, required) for value, key, required in self._members(members)]
        leave = max((value.leave for value, _, _ in values), default=0)
        leave += least if any(required for _, _, required in values) else 0
        endless = any(value.endless for value, _, _ in values)
        inside = _NOTHING
        in_order = isinstance(members, DeferredMembers) or cast(Members, members).ordered
        behind = _Behind(in_order)
        for value, key, _ in reversed(values):
            if value.inside is None or value.begun is None:
                return _Value(None, None, endless, leave)
            # A text within what has a way on by itself takes that one.
            current = value.begun if value.leads_on else larger(value.inside, value.begun)
            inside = larger(inside, _sum(current, behind.way()) if in_order else current)
            behind.add(_more(value.begun, key), value.endless)
        way = behind.way()
        inside = _more(larger(inside, way) if in_order else _sum(inside, way), least)
        return _Value(inside, _more(inside, least + 1), endless, leave)

    def _members(self, body: Body) -> Iterator[tuple[Body, int, bool]]:
        """The value of each member, what its key takes with what is around it, and must it be there?"""
        match body:
            case DeferredMembers(others=()):
                around = self._cost(body.separator) + self._cost(body.lead)
                for i, (name, required) in enumerate(zip(body.names, body.required, strict=True)):
                    key = self._cost(body.source.key(i)) if name is None else len(name) + 2
                    yield body.source.value(i), around + key, required
            case Members(extras=(), high=None):
                for member in body.declared:
                    yield member.value, self._cost(body.separator) + self._cost(member.key) + 1, member.required
            case _:
                raise _Unknown

    def _cost(self, body: Body) -> int:
        found = self._price.body(body)
        if found >= FAR:
            raise _Unknown
        return found


def lengths_of_items(automaton: ConstraintMachine, names: Lengthening | None) -> Lengthening | None:
    """Beyond what the nearest end takes; ``names``: what ends undeclared names, None where that is not known.

    Of an array of distinct items within an item of another both count.  None where no bound is seen.
    """
    if automaton.grammar.prepared is None:
        return None
    explored = _Items(automaton, names)
    try:
        marks = automaton.graph.analysis.marks
        found = [explored.items(rule) for rule, mark in marks.items() if mark is Mark.DISTINCT]
        return larger(explored.containers(), *found)
    except _Unknown:
        return None


class _Behind:
    """The members behind a place, met from the last on."""

    def __init__(self, in_order: bool) -> None:
        self._in_order = in_order
        self._endless: Lengthening | None = None
        """Of the endless ones that which is left soonest, in free order all: it is not known which of them are left."""
        self._fixed = 0

    def add(self, size: Lengthening, endless: bool) -> None:
        """One more before them."""
        known = self._endless
        if not endless:
            self._fixed += size.beyond(0)
        elif known is None or (self._in_order and size.beyond(COMPARED) <= known.beyond(COMPARED)):
            self._endless = size
        elif not self._in_order:
            self._endless = larger(known, size)

    def way(self) -> Lengthening:
        """To another text at one of them: at an endless one where there is one, else at any of all."""
        if self._in_order and self._endless is not None:
            return self._endless
        return _more(larger(_NOTHING, self._endless or _NOTHING), self._fixed)


def _is_around(body: AnyTerminal) -> bool:
    """Is a terminal a mark or white space, which is no value?"""
    if not isinstance(body, Terminal):
        return False
    return body.expr.nullable or all(low in _AROUND and high in _AROUND for low, high, _ in edges(body.expr))


def _lengths_of(body: AnyTerminal) -> Lengthening | None:
    """Of a string, a number or a literal, in bytes of JSON behind its first."""
    if isinstance(body, ListedTerminal):
        plain = [sum(1 if byte >= 0x20 and byte not in b'"\\' else ESCAPED for byte in text) for text in body.texts]
        return Lengthening(max(plain) + 1, 0)
    return _lengths_of_text(body.expr if isinstance(body, Terminal) else body.language())


def _lengths_of_text(expr: Expr) -> Lengthening | None:
    if expr.kind is Kind.ALTERNATION:
        return _largest([_lengths_of_text(part) for part in cast("tuple[Expr, ...]", expr.parts)])
    if expr.kind is Kind.CONCAT:
        string = cast(Expr, expr.parts[1])
        if string.kind is Kind.JSON_STRING:
            found = lengthening(cast(Expr, string.parts[0]))
            return None if found is None else _more(found, 1)
    # Of two numbers that differ by zeros only both may be one.
    return lengthening(expr, by_digits=True)


def _more(one: Lengthening, size: int) -> Lengthening:
    return one._replace(most=one.most + size)


def _sum(one: Lengthening, other: Lengthening) -> Lengthening:
    return larger(one, other)._replace(most=one.most + other.most, step=one.step + other.step)


def _largest(each: list[Lengthening | None]) -> Lengthening | None:
    """What is enough for any of some, None where one of them is not known."""
    known = [one for one in each if one is not None]
    return larger(*known) if known and len(known) == len(each) else None
