"""Recognising two shapes of terminal that the engine treats without exploring them: runs, and runs minus words.

A run is ``prefix (body){low,high} close``: so many characters of a class and a closing byte, like the inside of a JSON
string.  A run minus finitely many words is an undeclared property name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from guided.grammar.regular.characters import ANY_CHARACTER, JsonString
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import EPSILON, Expr, Kind, alternation, concat, intersection, repeat


@dataclass(frozen=True)
class Run:
    """A state ``prefix (body){low,high} close``: ``prefix`` finishes a character already begun, None at a boundary."""

    prefix: Expr | None
    body: Expr
    low: int
    high: int | None
    close: Expr

    @property
    def expr(self) -> Expr:
        """The state itself."""
        return concat(self.prefix or EPSILON, repeat(self.body, self.low, self.high), self.close)

    @property
    def home(self) -> Expr:
        """The unbounded run from a character boundary."""
        return concat(repeat(self.body), self.close)

    @property
    def unbounded(self) -> Expr:
        """The state itself, without its bounds."""
        return concat(self.prefix or EPSILON, self.home)


def run_of(expr: Expr) -> Run | None:
    """Recognise a run with a one-byte close that begins no character of its body."""
    if expr.kind is not Kind.CONCAT:
        return None
    head, tail = cast("tuple[Expr, Expr]", expr.parts)
    prefix: Expr | None = None
    if head.kind is not Kind.REPEAT:
        if tail.kind is not Kind.CONCAT:
            return None
        prefix = head
        head, tail = cast("tuple[Expr, Expr]", tail.parts)
        if head.kind is not Kind.REPEAT:
            return None
    body, low, high = cast("tuple[Expr, int, int | None]", head.parts)
    if body.nullable or tail.kind is not Kind.LITERAL or len(cast(bytes, tail.parts[0])) != 1:
        return None
    if prefix is not None and (prefix.nullable or prefix.kind not in (Kind.BYTES, Kind.SWITCH, Kind.CONCAT)):
        return None
    close = cast(bytes, tail.parts[0])[0]
    if any(first <= close <= last for first, last, _ in edges(body)):
        return None
    return Run(prefix, body, low, high, tail)


def run_less_words(expr: Expr) -> tuple[Run, Expr] | None:
    """Recognise an unbounded run minus finitely many words, its close inside or after the difference."""
    close: Expr | None = None
    if expr.kind is Kind.CONCAT and cast(Expr, expr.parts[0]).kind is Kind.INTERSECTION:
        expr, close = cast("tuple[Expr, Expr]", expr.parts)
    if expr.kind is not Kind.INTERSECTION:
        return None
    run: Run | None = None
    words: list[Expr] = []
    for part in cast("tuple[Expr, ...]", expr.parts):
        if part.kind is Kind.COMPLEMENT and _finite(cast(Expr, part.parts[0])):
            words.append(cast(Expr, part.parts[0]))
        elif run is None:
            run = run_of(part if close is None else concat(part, close))
            if run is None or run.low or run.high is not None:
                return None
        else:
            return None
    if run is None:
        return None
    finite = alternation(words)
    return run, finite if close is None else concat(finite, close)


def run_with_pattern(expr: Expr) -> tuple[Run, Expr] | None:
    """Recognise a pattern together with a greatest length: ``(run & pattern) close``; the pattern with its close.

    The run must be of any characters of a JSON string, so that the pattern's texts are all made of them.
    """
    if expr.kind is not Kind.CONCAT or cast(Expr, expr.parts[0]).kind is not Kind.INTERSECTION:
        return None
    both, close = cast("tuple[Expr, Expr]", expr.parts)
    run: Run | None = None
    others: list[Expr] = []
    for part in cast("tuple[Expr, ...]", both.parts):
        found = run_of(concat(part, close)) if run is None else None
        if found is not None and found.high is not None and not found.low and found.body is ANY_JSON_CHARACTER:
            run = found
        else:
            others.append(part)
    if run is None or all(part.kind is Kind.COMPLEMENT for part in others):
        return None
    return run, concat(intersection(others), close)


ANY_JSON_CHARACTER = JsonString().characters(ANY_CHARACTER)


def _finite(expr: Expr) -> bool:
    stack = [expr]
    seen: set[Expr] = set()
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        if item.kind is Kind.SWITCH:
            stack.extend(target for _, _, target in cast("tuple[tuple[int, int, Expr], ...]", item.parts[0]))
        elif item.kind in (Kind.CONCAT, Kind.ALTERNATION):
            stack.extend(cast("tuple[Expr, ...]", item.parts))
        elif item.kind not in (Kind.LITERAL, Kind.BYTES, Kind.EPSILON, Kind.EMPTY, Kind.SPELLING):
            return False
    return True
