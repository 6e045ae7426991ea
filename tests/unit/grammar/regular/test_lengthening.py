"""What ends a text that must be none of some, of names by their patterns, against all texts written out."""

from __future__ import annotations

import pytest

import guided
from guided.constraint.distinct.marked_rules import lengths_of_names
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr, Kind
from guided.grammar.regular.lengthening import Lengthening, lengthening

PATTERNS = ("^a", "^[ab]+$", "^(a|bb)*c$", "^x_", "^(/[^/]+)+$", "^(a|b+)$", "^(ab|cd)$", "^(ab)+$", "^(a{3}|b)$",
            "^[ab]{1,9}$", "^[ab]{2,4}$", "^a{0,7}$", "^c[ab]{1,9}$")  # fmt: skip
MOST_WORDS = 6


def schema_of(pattern: str, declared: tuple[str, ...] = ()) -> dict[str, object]:
    known = {name: {"type": "null"} for name in declared}
    return {
        "type": "object", "patternProperties": {pattern: {"type": "null"}}, "properties": known,
        "additionalProperties": False,
    }  # fmt: skip


def words_within(names: Expr, size: int) -> int:
    """How many words of ASCII a language has up to a size, no further counted than `MOST_WORDS` and one."""
    at, found = [names], 0
    for _ in range(size + 1):
        found += sum(state.nullable for state in at)
        if found > MOST_WORDS:
            break
        following = [to for state in at for low, high, to in edges(state) for _ in range(low, min(high, 0x7F) + 1)]
        at = following[:400]
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_more_names_than_are_taken_end_within_what_is_said(pattern: str) -> None:
    names = guided.json_schema(schema_of(pattern)).prepared.names[0]
    found = lengthening(names)
    if pattern == "^(ab)+$":
        assert found is None, "no byte leads back to where it was read"
        return
    assert found is not None
    states = [names]
    for state in states:
        states.extend(to for _, _, to in edges(state) if to not in states)
    for state in states:
        for n in range(MOST_WORDS):
            all_words = words_within(state, 40)
            # Where there are so few, those that are left are no longer than the longest.
            assert words_within(state, found.beyond(n)) > min(n, all_words - 1)


def test_declared_names_are_counted_as_taken() -> None:
    with_words = guided.json_schema(schema_of("^[ab]+$", ("a", "b", "ab")))
    without = guided.json_schema(schema_of("^[ab]+$"))
    assert any(part.kind is Kind.COMPLEMENT for part in with_words.prepared.names[0].parts)
    found = lengths_of_names(without)
    assert found is not None and lengths_of_names(with_words) == found._replace(left_out=3)
    assert lengths_of_names(guided.json_schema({"type": "object"})) == Lengthening(0, 0)


def test_texts_of_many_characters_are_hardly_longer_for_being_many() -> None:
    """A keyword more was a byte more, though hardly any text comes to be one."""
    found = Lengthening(3, 1, ways=10, left_out=5)
    assert [found.beyond(n) for n in (0, 4, 5, 94, 95)] == [4, 4, 5, 5, 6]
    assert Lengthening(3, 2, left_out=5).beyond(7) == 3 + 2 * 12


def test_a_bound_that_is_far_is_as_none() -> None:
    """A name of up to 255 characters was not looked at to its end, and each of its tokens judged at any budget."""
    bounded, endless = (guided.json_schema(schema_of(f"^[0-9a-z_]{{1,{most}}}$")) for most in ("255", ""))
    assert lengths_of_names(bounded) == lengths_of_names(endless)
