"""What the rules of a marked grammar ask of the checker, read off once when the grammar is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from guided.automata.lexer.runs import is_finite
from guided.constraint.distinct.room import FARTHEST, room
from guided.errors import LimitError
from guided.grammar.ir import (
    AnyTerminal,
    Body,
    Choice,
    DeferredMembers,
    Grammar,
    Mark,
    Members,
    Reference,
    Repetition,
    Rule,
    Sequence,
)
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import EPSILON, Expr, Kind, concat, intersection
from guided.grammar.regular.lengthening import Lengthening, larger, lengthening
from guided.grammar.rules import every_rule

EXPLORED = 200
"""States of a name's automaton that are looked at to see that it is open, 15 microseconds each; any string takes some
twenty, a tag of a language behind one of several names 178.  Beyond, names are taken for closed, which costs the
checker time and nothing else."""

_KEPT = 1 << 14
"""States that are remembered to have no finite rest: patterns of one schema often end alike."""


def marks_of(grammar: Grammar) -> frozenset[Mark]:
    """The marks that some rule has; empty for grammars that need no checker."""
    if grammar.prepared is not None:
        return frozenset(grammar.prepared.marks.values())
    return frozenset(rule.mark for rule in every_rule(grammar.rules) if rule.mark is not None)


def forces_several(grammar: Grammar) -> bool:
    """May the automaton's shortest texts hold several undeclared names of one object, or items of a compared array?

    One name that is asked for is none of those that are there: else it would not be asked for any more.  So it is with
    names that must meet a goal, since the sorts of names have none in common.
    """
    if grammar.prepared is not None:
        return grammar.prepared.forces_several
    if any(rule.mark is Mark.DISTINCT and not _may_hold_one(rule.body) for rule in every_rule(grammar.rules)):
        return True
    return any(
        isinstance(body, Members)
        and bool(body.extras)
        and body.low > sum(member.required for member in body.declared) + 1
        for body in _bodies(every_rule(grammar.rules))
    )


def _may_hold_one(body: Body) -> bool:
    """Is it plain to see that an array may end before its second item?"""
    content = body.parts[-1] if isinstance(body, Sequence) and body.parts else body
    if isinstance(content, Repetition):
        return content.low <= 1
    return isinstance(content, Choice) and any(map(_is_empty, content.options))


def _is_empty(body: Body) -> bool:
    return isinstance(body, Sequence) and not body.parts


def has_open_names(grammar: Grammar) -> bool:
    """Can every undeclared name, however it began, go on in infinitely many ways?  False also where it is not seen."""
    rules = grammar.rules
    if grammar.prepared is not None:
        contents = tuple(map(_without_exceptions, grammar.prepared.names))
        # Any characters up to a number of them are many states.
        if any(names.kind is Kind.REPEAT and names.parts[2] is not None for names in contents):
            return False
        return all(_ends_open(names) or _finite_rests(names) == [] for names in contents)
    for body in _bodies(every_rule(rules)):
        pairs: list[tuple[AnyTerminal, Body]]
        if isinstance(body, Members):
            pairs = [(member.key, member.value) for member in body.extras]
        elif isinstance(body, Sequence):
            pairs = [(a, b) for a, b in zip(body.parts, body.parts[1:], strict=False) if isinstance(a, AnyTerminal)]
        else:
            continue
        for key, value in pairs:
            if (
                isinstance(value, Reference)
                and rules[value.rule].mark is Mark.UNDECLARED
                and not _is_open(key.language())
            ):
                return False
    return True


def room_of_names(grammar: Grammar, names: int) -> int:
    """The most bytes of an undeclared name behind which, whichever they are, more than so many of them come.

    -1 where none are seen.  See `guided.constraint.distinct.room`.
    """
    if grammar.prepared is None:
        return -1
    return min((room(each, names) for each in grammar.prepared.names), default=FARTHEST)


def lengths_of_names(grammar: Grammar) -> Lengthening | None:
    """What ends undeclared names as none of some, but those that may be any text but some; None where not known."""
    if grammar.prepared is None:
        return None
    found = [lengthening(names) for names in grammar.prepared.names]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return larger(*known) if known else Lengthening(0, 0)


def _bodies(rules: tuple[Rule, ...]) -> Iterator[Body]:
    stack: list[Body] = [rule.body for rule in rules]
    while stack:
        body = stack.pop()
        if isinstance(body, DeferredMembers):
            body = body.written()
        yield body
        match body:
            case Members():
                stack.extend(member.value for member in (*body.declared, *body.extras))
            case Sequence(parts):
                stack.extend(parts)
            case Choice(options):
                stack.extend(options)
            case Repetition():
                stack.append(body.body)


def _is_open(expr: Expr) -> bool:
    """Is what remains after every beginning infinite, until all has been read?"""
    if expr.kind is Kind.CONCAT and cast(Expr, expr.parts[1]).kind is Kind.JSON_STRING:
        return _finite_rests(_without_exceptions(cast(Expr, cast(Expr, expr.parts[1]).parts[0]))) == []
    return _finite_rests(_without_exceptions(expr)) == [EPSILON]


def _ends_open(expr: Expr) -> bool:
    """Is it plain to see that every rest is infinite: does everything end in an unbounded repetition?"""
    while expr.kind is Kind.CONCAT:
        expr = cast(Expr, expr.parts[1])
    if expr.kind is Kind.ALTERNATION:
        return all(_ends_open(cast(Expr, part)) for part in expr.parts)
    return expr.kind is Kind.REPEAT and expr.parts[2] is None


_endless: set[Expr] = set()
"""What has no finite rests, as was found."""


@lru_cache(maxsize=4096)
def _finite_rests(expr: Expr) -> list[Expr] | None:
    """The finite languages that can remain after some beginning; None when there is too much to look at."""
    after: dict[Expr, set[Expr]] = {}
    work = [expr]
    try:
        while work:
            item = work.pop()
            if item in after or item in _endless:
                continue
            after[item] = {_without_exceptions(target) for _, _, target in edges(item)}
            if len(after) > EXPLORED:
                return None
            work.extend(after[item])
    except LimitError:
        return None
    before: dict[Expr, list[Expr]] = {}
    for item, targets in after.items():
        for target in targets:
            before.setdefault(target, []).append(item)
    left = {item: len(targets) for item, targets in after.items()}
    finite = [item for item, count in left.items() if count == 0]
    for item in finite:
        for source in before.get(item, ()):
            left[source] -= 1
            if left[source] == 0:
                finite.append(source)
    if not finite:
        if len(_endless) > _KEPT:
            _endless.clear()
        _endless.update(after)
    return finite


def _without_exceptions(expr: Expr) -> Expr:
    """A larger language that differs from ``expr`` by finitely many words: without the words that it leaves out."""
    if expr.kind is Kind.CONCAT:
        head, tail = cast("tuple[Expr, Expr]", expr.parts)
        return concat(_without_exceptions(head), _without_exceptions(tail))
    if expr.kind is Kind.INTERSECTION:
        parts = cast("tuple[Expr, ...]", expr.parts)
        return intersection(tuple(part for part in parts if not _is_exception(part)))
    return expr


def _is_exception(part: Expr) -> bool:
    return part.kind is Kind.COMPLEMENT and is_finite(cast(Expr, part.parts[0]))
