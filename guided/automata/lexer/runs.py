"""Recognising shapes of terminals that the engine treats without exploring them: runs, and runs minus words.

A run is ``prefix (body){low,high} close``: so many characters of a class and a closing byte, or the same inside a JSON
string.  A run minus finitely many words is an undeclared property name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from guided.grammar.regular.characters import ANY_CHARACTER, utf8
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import (
    EPSILON,
    Expr,
    Kind,
    alternation,
    concat,
    intersection,
    is_listed,
    json_string,
    repeat,
    sequence,
)
from guided.grammar.regular.lengths import character_counts, farthest_end


@dataclass(frozen=True)
class Run:
    """A state ``prefix (body){low,high} close``: ``prefix`` finishes a character already begun, None at a boundary.

    In a JSON string ``canonical`` says how it is spelled, and ``close`` is empty; else ``canonical`` is None.
    """

    prefix: Expr | None
    body: Expr
    low: int
    high: int | None
    close: Expr
    canonical: bool | None

    @property
    def is_counted_by_home(self) -> bool:
        """Does each body, and nothing else, lead to `home`?  Not where it may go on after an end, as in ``(a+|b)*``."""
        return character_counts(self.body) == (1, 1)

    @property
    def home(self) -> Expr:
        """The unbounded run from a character boundary."""
        return self._wrapped(repeat(self.body))

    @property
    def unbounded(self) -> Expr:
        """The state itself, without its bounds."""
        return self._wrapped(concat(self.prefix or EPSILON, repeat(self.body)))

    @property
    def once(self) -> Expr:
        """One body from a character boundary, then the close."""
        return self._wrapped(self.body)

    def _wrapped(self, content: Expr) -> Expr:
        if self.canonical is None:
            return concat(content, self.close)
        return json_string(content, canonical=self.canonical)


def run_of(expr: Expr) -> Run | None:
    """Recognise a run: with a one-byte close that begins no character of its body, or a JSON string."""
    if expr.kind is Kind.JSON_STRING:
        content, canonical = cast("tuple[Expr, bool]", expr.parts)
        parts = _prefixed(content)
        return None if parts is None else Run(*parts, EPSILON, canonical)
    if expr.kind is not Kind.CONCAT:
        return None
    items = [cast(Expr, expr.parts[0]), *_unchained(cast(Expr, expr.parts[1]))]
    close = items.pop()
    if close.kind is not Kind.LITERAL or len(cast(bytes, close.parts[0])) != 1:
        return None
    parts = _prefixed(concat(*items))
    byte = cast(bytes, close.parts[0])[0]
    if parts is None or any(first <= byte <= last for first, last, _ in edges(parts[1])):
        return None
    return Run(*parts, close, None)


NEAR = 32
"""Characters up to which a bound is near to the tokens of any vocabulary."""


def far_run(content: Expr) -> tuple[Expr, int] | None:
    """Recognise a run of up to many characters from a character boundary: without its bound, and the bound."""
    if content.kind is not Kind.REPEAT:
        return None
    body, low, high = cast("tuple[Expr, int, int | None]", content.parts)
    return None if high is None or high <= NEAR or body.nullable else (repeat(body, low), high)


def begins_run(content: Expr) -> bool:
    """Is a language of texts a run, after the rest of a character perhaps?"""
    return _prefixed(content) is not None


def _unchained(expr: Expr) -> list[Expr]:
    """At most the next two items of a concatenation, which is all that a run has after its first."""
    if expr.kind is not Kind.CONCAT:
        return [expr]
    return [cast(Expr, expr.parts[0]), cast(Expr, expr.parts[1])]


def _prefixed(expr: Expr) -> tuple[Expr | None, Expr, int, int | None] | None:
    """Prefix, body and bounds of ``prefix (body){low,high}``."""
    prefix: Expr | None = None
    if expr.kind is Kind.CONCAT:
        prefix, expr = cast("tuple[Expr, Expr]", expr.parts)
        if prefix.nullable or prefix.kind not in (Kind.BYTES, Kind.SWITCH, Kind.CONCAT):
            return None
    if expr.kind is not Kind.REPEAT:
        return None
    body, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
    return None if body.nullable else (prefix, body, low, high)


def may_owe(content: Expr) -> bool:
    """May this be a run minus words, or the string of one?  What is no such intersection has no complement in it."""
    if content.kind is Kind.JSON_STRING:
        content = cast(Expr, content.parts[0])
    return content.kind is Kind.INTERSECTION and any(cast(Expr, part).kind is Kind.COMPLEMENT for part in content.parts)


def run_less_words(content: Expr) -> tuple[Expr, Expr] | None:
    """Recognise an unbounded run minus finitely many words: both, as languages of texts."""
    if content.kind is not Kind.INTERSECTION:
        return None
    run: Expr | None = None
    words: list[Expr] = []
    for part in cast("tuple[Expr, ...]", content.parts):
        if _is_none_of_some_words(part):
            words.append(cast(Expr, part.parts[0]))
        elif run is None and (found := _prefixed(part)) is not None and found[2:] == (0, None):
            run = part
        else:
            return None
    return None if run is None else (run, alternation(words))


def run_with_pattern(expr: Expr) -> tuple[Run, Expr] | None:
    """Recognise a JSON string of a pattern together with a greatest length, and a least one perhaps: the run, and the
    pattern.

    The run must be of any characters, so that the pattern's texts are all made of them.
    """
    if expr.kind is not Kind.JSON_STRING:
        return None
    content, canonical = cast("tuple[Expr, bool]", expr.parts)
    if content.kind is not Kind.INTERSECTION:
        return None
    run: Run | None = None
    others: list[Expr] = []
    for part in cast("tuple[Expr, ...]", content.parts):
        found = _prefixed(part) if run is None else None
        if found is not None and found[1] is _ANY and found[3] is not None:
            run = Run(*found, EPSILON, canonical)
        else:
            others.append(part)
    if run is None or all(part.kind is Kind.COMPLEMENT for part in others):
        return None
    return run, json_string(intersection(others), canonical=canonical)


def without_words(content: Expr) -> Expr:
    """The language with the finitely many words that it leaves out; itself where it leaves none out."""
    return _without(content, _is_none_of_some_words)


def may_be_longer(pattern: Expr) -> bool:
    """May any text of a JSON string's pattern, as of what is left of it, be gone on with at will?"""
    content = cast(Expr, pattern.parts[0])
    parts = cast("tuple[Expr, ...]", content.parts) if content.kind is Kind.INTERSECTION else (content,)
    return all(map(_ends_with_any, parts))


def _ends_with_any(expr: Expr) -> bool:
    while expr.kind is Kind.CONCAT:
        expr = cast(Expr, expr.parts[1])
    return expr.kind is Kind.REPEAT and expr.parts == (_ANY, 0, None)


def _without(content: Expr, is_left_out: Callable[[Expr], bool]) -> Expr:
    """An intersection less some of its parts, unless that is all of them; anything else as it is."""
    if content.kind is not Kind.INTERSECTION:
        return content
    parts = cast("tuple[Expr, ...]", content.parts)
    others = [part for part in parts if not is_left_out(part)]
    return content if len(others) == len(parts) or not others else intersection(others)


def _is_none_of_some_words(part: Expr) -> bool:
    return part.kind is Kind.COMPLEMENT and is_finite(cast(Expr, part.parts[0]))


def within_reach(content: Expr, longest: int) -> Expr:
    """The language without the bounds that ``longest`` bytes more stay within: they all lead on in both, or in none.

    A repetition reads a byte at least; beside a pattern, which must still be able to end within a bound on the length
    wherever it has been led, the pattern alone is enough.
    """
    match content.kind:
        case Kind.REPEAT:
            body, low, high = cast("tuple[Expr, int, int | None]", content.parts)
            if body.nullable or ((low <= longest) if high is None else high <= longest):
                return content
            return repeat(body, min(low, longest + 1))
        case Kind.CONCAT:
            items = sequence(content)
            near = [within_reach(item, longest) if item.kind is Kind.REPEAT else item for item in items]
            return content if near == items else concat(*near)
        case Kind.INTERSECTION:
            found = run_with_pattern(json_string(content))
            if found is not None:
                run, other = found
                pattern = cast(Expr, other.parts[0])
                ends = farthest_end(pattern)
                if ends is None or cast(int, run.high) <= max(longest, run.low) + ends[1]:
                    return content
                if run.low:
                    # Where so many characters more can come, the pattern can end soon behind them.
                    return intersection((pattern, concat(run.prefix or EPSILON, repeat(run.body, run.low))))
                return within_reach(pattern, longest)
    return content


_ANY = utf8(ANY_CHARACTER)


def is_finite(expr: Expr) -> bool:
    """Is the language visibly finite: built without repetition or complement?"""
    stack = [expr]
    seen: set[Expr] = set()
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        if is_listed(item):
            continue
        if item.kind is Kind.SWITCH:
            stack.extend(target for _, _, target in cast("tuple[tuple[int, int, Expr], ...]", item.parts[0]))
        elif item.kind in (Kind.CONCAT, Kind.ALTERNATION):
            stack.extend(cast("tuple[Expr, ...]", item.parts))
        elif item.kind not in (Kind.LITERAL, Kind.BYTES, Kind.EPSILON, Kind.EMPTY):
            return False
    return True
