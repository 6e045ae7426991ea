"""Combinations as minimal automata: the same language, one object for each language, and what is known of lengths."""

from __future__ import annotations

import itertools
import random

from guided.grammar.regex.lower import search
from guided.grammar.regex.parse import parse
from guided.grammar.regex.syntax import Dialect
from guided.grammar.regular import condensed as module
from guided.grammar.regular.characters import ANY_CHARACTER, Utf8
from guided.grammar.regular.condensed import condensed, decided_by_length, lengths_of
from guided.grammar.regular.decide import is_subset
from guided.grammar.regular.derivative import edges, inhabited, matches, possible_edges
from guided.grammar.regular.expr import (
    EMPTY,
    Expr,
    Kind,
    alternation,
    complement,
    intersection,
    repeat,
    words,
)
from guided.grammar.regular.partial import alternatives
from guided.grammar.regular.product import has_member
from tests.amounts import some

TEXT = Utf8()
CHARACTER = TEXT.characters(ANY_CHARACTER)
ATOMS = ["a", "b", "ab", "^a", "b$", "^b*$", "a.b", "^.{2}$", "aa|b", "[^a]b", "é", "^[ab]+$", "(ab){2}", "^$"]
TEXTS = ["".join(letters).encode() for size in range(5) for letters in itertools.product("abé", repeat=size)]


def pattern(text: str) -> Expr:
    return search(parse(text, Dialect.ECMA), TEXT)


def holds(expr: Expr, text: bytes) -> bool:
    """Membership read off the structure, without any product."""
    match expr.kind:
        case Kind.INTERSECTION:
            return all(holds(part, text) for part in expr.parts)  # type: ignore[arg-type]
        case Kind.ALTERNATION:
            return any(holds(part, text) for part in expr.parts)  # type: ignore[arg-type]
        case Kind.COMPLEMENT:
            return not holds(expr.parts[0], text)  # type: ignore[arg-type]
    return matches(expr, text)


def combined(rnd: random.Random, depth: int) -> Expr:
    kind = rnd.randrange(5) if depth else 0
    if kind == 0:
        return pattern(rnd.choice(ATOMS))
    parts = [combined(rnd, depth - 1) for _ in range(rnd.randint(2, 3))]
    if kind == 1:
        return alternation(parts)
    if kind == 2:
        return intersection([TEXT.text, complement(parts[0])])
    if kind == 3:
        return intersection([parts[0], complement(parts[1])])
    return intersection(parts)


def test_languages_stay_the_same_and_every_state_leads_on() -> None:
    rnd = random.Random(5)
    made = 0
    for _ in range(some(250)):
        expr = combined(rnd, 3)
        small = condensed(expr, possible_edges)
        made += small is not expr
        for text in TEXTS:
            assert matches(small, text) is holds(expr, text), (expr, text)
        if small is not expr and small.kind is not Kind.INTERSECTION:
            seen = {small}
            work = [small]
            for state in work:
                assert state is EMPTY or state.nullable or edges(state)
                for _, _, target in edges(state):
                    if target not in seen:
                        seen.add(target)
                        work.append(target)
    assert made > some(100)


def test_equal_languages_are_one_object() -> None:
    rnd = random.Random(6)
    found: dict[tuple[bool, ...], set[Expr]] = {}
    for _ in range(some(250)):
        small = condensed(intersection([TEXT.text, combined(rnd, 2), combined(rnd, 1)]), possible_edges)
        if lengths_of(small) is not None or small is EMPTY:
            found.setdefault(tuple(matches(small, text) for text in TEXTS), set()).add(small)
    shared = [group for group in found.values() if len(group) > 1]
    for group in shared:
        # What agrees on short texts only must differ on some longer one.
        for one, other in itertools.combinations(group, 2):
            assert not (is_subset(one, other) and is_subset(other, one))
    assert len(found) > 20


def test_any_text_is_itself() -> None:
    everything = intersection([alternation([pattern("a"), complement(pattern("a"))]), TEXT.text])
    assert condensed(everything, possible_edges) is TEXT.text
    a, b = pattern("a"), pattern("b")
    both = condensed(intersection([a, b]), possible_edges)
    assert TEXT.text in {target for _, _, target in edges(next(t for low, _, t in edges(both) if low == ord("a")))} | {
        target for _, _, target in edges(both)
    }


def test_lengths_decide_as_a_search_does() -> None:
    rnd = random.Random(7)
    answers = {True: 0, False: 0, None: 0}
    for _ in range(some(600)):
        small = condensed(intersection([TEXT.text, combined(rnd, 2), combined(rnd, 1)]), possible_edges)
        if small is EMPTY or lengths_of(small) is None:
            continue
        for _ in range(rnd.randint(0, 2)):
            following = [target for _, _, target in edges(small)]
            small = rnd.choice(following) if following else small
        known = lengths_of(small)
        low = rnd.randint(0, 5)
        high = rnd.choice((None, low, low + 1, low + 3))
        if known.text is not TEXT.text:
            continue
        parts = [small, repeat(CHARACTER, low, high)]
        if rnd.random() < 0.3:
            parts.append(complement(words([b"a", b"ab", "é".encode(), b"ba"])))
        expr = intersection(parts)
        answer = decided_by_length(expr, possible_edges) if expr.kind is Kind.INTERSECTION else None
        answers[answer] += 1
        if answer is not None:
            assert has_member(expr, 30_000, possible_edges) is answer
    assert answers[True] > 20 and answers[False] > 2


def test_what_is_too_large_stays_as_it_is() -> None:
    expr = intersection([pattern("a.{30}b"), pattern("b.{25}a"), TEXT.text])
    assert condensed(expr, possible_edges) is expr
    for _, _, target in edges(expr):
        assert target.kind is not Kind.INTERSECTION or module.is_large(target)
    assert matches(expr, b"a" + b"x" * 30 + b"b" + b"b" + b"x" * 25 + b"a")


def one_of(parts: list[Expr], also: Expr) -> Expr:
    """The texts that just one of some patterns matches."""
    ways = [intersection([also, part, *(complement(other) for other in parts if other is not part)]) for part in parts]
    return alternation(ways)


def test_just_one_of_several_is_one_automaton() -> None:
    rnd = random.Random(8)
    made = 0
    for number in range(some(120)):
        parts = list(dict.fromkeys(pattern(rnd.choice(ATOMS)) for _ in range(rnd.randint(2, 4))))
        # Not always within any text, and beside alternatives that combine other languages.
        also = [TEXT.text, TEXT.text, pattern("[ab]"), repeat(CHARACTER, 1, 3)][number % 4]
        expr = one_of(parts, also)
        if rnd.random() < 0.3:
            expr = alternation([expr, intersection([pattern("é"), complement(pattern("b"))])])
        found = alternatives(expr)
        made += expr.kind is Kind.ALTERNATION and len(found) < len(expr.parts)
        assert all(inhabited(part) and part.kind is not Kind.ALTERNATION for part in found)
        for text in TEXTS:
            assert any(matches(part, text) for part in found) is holds(expr, text), (expr, text)
        for part in found:
            known = lengths_of(part)
            if known is not None and also is TEXT.text and len(found) == 1:
                assert known.text in (TEXT.text, None)
    assert made > some(50)


def test_just_one_of_several_within_bounds() -> None:
    """What texts an automaton is of is known of a union too, so bounds beside it are decided by lengths."""
    expr = one_of([pattern("ab"), pattern("ba"), pattern("éé")], TEXT.text)
    (found,) = alternatives(expr)
    known = lengths_of(found)
    assert known is not None and known.text is TEXT.text and known.near == 2
    for low, high in ((0, 2), (2, 2), (5, None)):
        bounded = intersection([found, repeat(CHARACTER, low, high)])
        assert decided_by_length(bounded, possible_edges) is True
    assert decided_by_length(intersection([found, repeat(CHARACTER, 0, 1)]), possible_edges) is False


def test_combinations_within_any_text_are_searched_as_others_are() -> None:
    rnd = random.Random(9)
    answers = set()
    for _ in range(some(200)):
        parts = [combined(rnd, 2) for _ in range(3)]
        expr = intersection(
            [TEXT.text, alternation([intersection(parts[:2]), intersection([parts[2], complement(parts[0])])])]
        )
        small = condensed(expr, possible_edges)
        for text in TEXTS[::7]:
            assert matches(small, text) is holds(expr, text)
        if expr.kind is Kind.INTERSECTION:
            answer = has_member(expr, 30_000, possible_edges)
            answers.add(answer)
            if any(holds(expr, text) for text in TEXTS):
                assert answer
    assert answers == {True, False}
