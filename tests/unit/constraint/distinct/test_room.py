"""How far names may be read with many to come, by their patterns, against all names written out."""

from __future__ import annotations

from functools import cache

import pytest

import guided
from guided.constraint.distinct.marked_rules import room_of_names
from guided.constraint.distinct.room import EXPLORED, FARTHEST, room
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr
from tests.unit.grammar.regular.test_lengthening import schema_of

BOUNDED = ("^[ab]{1,9}$", "^[ab]{2,4}$", "^c[ab]{1,9}$", "^(ab|cd)$", "^(a|b{3,7})$", "^.{1,3}$", "^(a[0-9]{2}|b[0-9]{5})$",
           "^(\u00e4|\u20ac|x){2,6}$", "^a{0,40}$", "^[ab]{3}(c|d{9})$")  # fmt: skip
WORDS = 7


def names_of(pattern: str, declared: tuple[str, ...] = ()) -> Expr:
    return guided.json_schema(schema_of(pattern, declared)).prepared.names[0]


@cache
def more_than(names: Expr, words: int) -> bool:
    """Are they more, each written out?"""
    at, found = [names], 0
    while at and found <= words:
        found += sum(state.nullable for state in at)
        at = [to for state in at for low, high, to in edges(state) for _ in range(low, high + 1)][:400]
    return found > words


@pytest.mark.parametrize("words", range(1, WORDS))
@pytest.mark.parametrize("pattern", BOUNDED)
def test_it_is_the_last_size_behind_which_more_texts_come(pattern: str, words: int) -> None:
    far, at = -1, {names_of(pattern)}
    while at and all(more_than(state, words) for state in at):
        far += 1
        at = {to for state in at for _, _, to in edges(state)}
    assert room(names_of(pattern), words) == far


def test_words_that_are_left_out_are_counted_as_held() -> None:
    plain, less = names_of("^[ab]{1,9}$"), names_of("^[ab]{1,9}$", ("a", "bb", "aba", "abab"))
    assert room(less, 2) == room(plain, 6) < room(plain, 2)


def test_what_has_no_bound_has_room_as_far_as_anybody_looks() -> None:
    assert room(names_of("^[ab]+$"), 300) == FARTHEST
    # Nine characters of two make so many more.
    assert room(names_of("^[ab]{1,4000}$"), 300) == FARTHEST - 8
    # Where there are too many states to look at, less is said.
    wide = names_of("^(" + "|".join(f"{word:03d}[a-z]{{3,99}}" for word in range(0, EXPLORED, 3)) + ")$")
    assert 0 <= room(wide, 20) < FARTHEST


def test_every_sort_of_names_of_a_schema_has_room() -> None:
    def of(*patterns: str) -> int:
        schema = {"type": "object", "patternProperties": {each: {"type": "null"} for each in patterns}}
        return room_of_names(guided.json_schema(schema | {"additionalProperties": False}), 100)

    assert of("^a[a-z]{1,20}$") == 19 > of("^a[a-z]{1,20}$", "^b[a-z]{1,9}$") == 8
    assert of("^a[a-z]{1,20}$", "^(no|yes)$") == -1 and of("^a[a-z]*$") == FARTHEST
