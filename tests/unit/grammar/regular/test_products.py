"""Products, merging and the register of minimal states, against `re`, all short texts and a partition by brute force."""

from __future__ import annotations

import itertools
import random
import re
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import guided
from guided.errors import LimitError
from guided.grammar.regex.lower import search
from guided.grammar.regex.parse import parse
from guided.grammar.regex.syntax import Dialect
from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.characters import ANY_CHARACTER, Utf8
from guided.grammar.regular.condensed import condensed, lengths_of
from guided.grammar.regular.decide import is_empty, is_subset, shortest
from guided.grammar.regular.derivative import edges, matches, possible_edges
from guided.grammar.regular.expr import (
    EMPTY,
    EPSILON,
    Expr,
    Kind,
    alternation,
    complement,
    intersection,
    literal,
    repeat,
)
from guided.grammar.regular.minimal import Register
from guided.grammar.regular.product import has_member, n_parted
from guided.grammar.regular.walks import Space, Walk, merged
from tests.amounts import some

TEXT = Utf8()
CHARACTER = TEXT.characters(ANY_CHARACTER)
ATOMS = [
    "a", "b", "ab", "^a", "b$", "^b*$", "a.b", "^.{2}$", "aa|b", "[^a]b", "é", "^[ab]+$", "(ab){2}", "^$", "^(a|bé)*$",
    "^a{2,4}$", "^(..)*$", "é$|^b", "^(a|ab)(b|é)*$", "b.a",
]  # fmt: skip
TEXTS = ["".join(letters) for size in range(6) for letters in itertools.product("abé", repeat=size)]

Says = Callable[[str], bool]


def combined(rnd: random.Random, depth: int) -> tuple[Expr, Says]:
    """A combination of patterns, and whether a text is in it by `re`."""
    kind = rnd.randrange(6) if depth else 0
    if kind < 2:
        source = rnd.choice(ATOMS)
        found = re.compile(source.replace("$", r"\Z"), re.DOTALL)
        return search(parse(source, Dialect.ECMA), TEXT), lambda text: found.search(text) is not None
    one, holds = combined(rnd, depth - 1)
    if kind == 2:
        return intersection([TEXT.text, complement(one)]), lambda text: not holds(text)
    other, also = combined(rnd, depth - 1)
    if kind == 3:
        return alternation([one, other]), lambda text: holds(text) or also(text)
    if kind == 4:
        return intersection([one, complement(other)]), lambda text: holds(text) and not also(text)
    return intersection([one, other]), lambda text: holds(text) and also(text)


def states_of(expr: Expr) -> list[Expr]:
    found = {expr: None}
    work = [expr]
    for state in work:
        for _, _, target in edges(state):
            if target not in found:
                found[target] = None
                work.append(target)
    return work


def n_classes(states: list[Expr]) -> int:
    """How many languages states have: refined until nothing changes."""
    rows = {state: {byte: t for low, high, t in edges(state) for byte in range(low, high + 1)} for state in states}
    labels: dict[Expr, int] = {state: int(state.nullable) for state in states}
    while True:
        keys = {s: (labels[s], tuple(labels.get(rows[s].get(b, EMPTY), -1) for b in range(256))) for s in states}
        known = {key: i for i, key in enumerate(dict.fromkeys(keys.values()))}
        if len(known) == len(set(labels.values())):
            return len(known)
        labels = {state: known[key] for state, key in keys.items()}


def test_combinations_hold_what_re_says() -> None:
    rnd = random.Random(21)
    empty = 0
    for _ in range(some(150, 2)):
        expr, holds = combined(rnd, 3)
        expr = intersection([expr, TEXT.text])
        expected = [text for text in TEXTS if holds(text)]
        assert is_empty(expr) or expected or shortest(expr) is not None
        assert not (is_empty(expr) and expected)
        small = condensed(expr, possible_edges)
        for text in TEXTS:
            assert matches(expr, text.encode()) is matches(small, text.encode()) is holds(text), text
        for byte in b"ab":
            assert not matches(expr, bytes([0xC3, byte]))
        empty += is_empty(expr)
        assert (small is EMPTY) is is_empty(expr) or small is expr
        if expected:
            found = shortest(expr)
            assert found is not None
            # Texts of the letters are not all texts: something shorter may be in other letters.
            assert len(found) <= min(len(text.encode()) for text in expected)
    assert 3 < empty < 100


def test_no_two_states_are_equal_and_lengths_are_those_of_texts() -> None:
    rnd = random.Random(22)
    seen = 0
    for _ in range(some(60)):
        expr, _ = combined(rnd, 2)
        other, _ = combined(rnd, 2)
        small = condensed(intersection([expr, complement(other), TEXT.text]), possible_edges)
        known = lengths_of(small)
        if known is None:
            continue
        seen += 1
        states = states_of(small)
        assert n_classes(states) == len(states)
        assert known.text is TEXT.text
        assert known.infinite is not is_empty(intersection([small, repeat(any_text()[0], 30)]))
        for state in states:
            found, least = lengths_of(state), shortest(state)
            assert found is not None and least is not None
            following = sum(1 for byte in least if not 0x80 <= byte < 0xC0)
            assert found.near <= following
            if found.text is TEXT.text:
                assert found.near == min(n for n in range(9) if not is_empty(intersection([state, of_length(n)])))
                if found.around is not None:
                    for n in range(found.around, found.around + 4):
                        assert not is_empty(intersection([state, of_length(n)]))
    assert seen > some(30)


def of_length(n: int) -> Expr:
    return repeat(any_text()[0], n, n)


def test_merging_is_that_of_a_partition_by_brute_force() -> None:
    rnd = random.Random(23)
    for _ in range(some(400)):
        n, width = rnd.randint(1, 12), rnd.randint(1, 4)
        targets = range(-1, n) if rnd.random() < 0.5 else range(-1, min(n, 3))
        table = np.array([[rnd.choice(targets) for _ in range(width)] for _ in range(n)], np.int32)
        accepting = np.array([rnd.random() < 0.3 for _ in range(n)], np.bool_)
        rows, ends = table.tolist(), accepting.tolist()
        labels, examples = merged(table, accepting)
        count = examples.size
        assert sorted(set(labels.tolist()) - {-1}) == list(range(count))
        assert [int(labels[state]) for state in examples[:count]] == list(range(count))
        for one, other in itertools.combinations(range(n), 2):
            assert bool(labels[one] == labels[other]) is equal(rows, ends, one, other)
        for state in range(n):
            assert bool(labels[state] < 0) is equal(rows, ends, state, -1)


def equal(rows: list[list[int]], ends: list[bool], one: int, other: int) -> bool:
    """Do two states, or a state and none (-1), accept the same?"""
    seen = {(one, other)}
    work = [(one, other)]
    for a, b in work:
        if (a >= 0 and ends[a]) is not (b >= 0 and ends[b]):
            return False
        for column in range(len(rows[0])):
            pair = (rows[a][column] if a >= 0 else -1, rows[b][column] if b >= 0 else -1)
            if pair not in seen:
                seen.add(pair)
                work.append(pair)
    return True


def test_a_register_finds_what_is_placed_again() -> None:
    rnd = random.Random(24)
    register = Register()
    cuts = np.array([0, 97, 98, 128, 256], np.int32)
    placed: dict[int, tuple[list[list[int]], list[bool], int]] = {}
    for _ in range(some(300, 2)):
        n = rnd.randint(1, 6)
        table = np.array([[rnd.randrange(-1, n) for _ in range(4)] for _ in range(n)], np.int32)
        accepting = np.array([rnd.random() < 0.4 for _ in range(n)], np.bool_)
        labels, examples = merged(table, accepting)
        if labels[0] < 0:
            continue
        numbers = register.place(table, accepting, labels, examples, cuts, np.full(examples.size, -1, np.int32))
        for state in range(n):
            number = int(numbers[labels[state]]) if labels[state] >= 0 else -1
            if number >= 0:
                placed.setdefault(number, (table.tolist(), accepting.tolist(), state))
    assert len(placed) > some(100, 2)
    assert register.expr(0) is EPSILON
    automata = list(placed.items())
    for (one, (rows, ends, state)), (other, (more_rows, more_ends, more_state)) in itertools.combinations(automata, 2):
        shifted = [[target + len(rows) if target >= 0 else -1 for target in row] for row in more_rows]
        assert one != other
        assert not equal([*rows, *shifted], [*ends, *more_ends], state, more_state + len(rows))


def test_literal_beginnings_are_literals() -> None:
    names = search(parse("^name-[a-z]+$", Dialect.ECMA), TEXT)
    found = condensed(intersection([names, search(parse("z$", Dialect.ECMA), TEXT)]), possible_edges)
    assert found.kind is Kind.CONCAT and found.parts[0] is literal(b"name-")
    assert lengths_of(found) is not None and [low for low, _, _ in edges(found)] == [ord("n")]


@pytest.mark.parametrize(
    "sources",
    [
        ["a.{30}b", "b.{25}a", "c.{20}a"],
        [f"{letter}.*{other}" for letter, other in itertools.permutations("abcde", 2)],
        pytest.param([f"^(.{{{n}}})*$" for n in (7, 11, 13, 17, 19, 23)], marks=pytest.mark.slow),
        [f"(a|b)*a(a|b){{{n}}}$" for n in (12, 13, 14, 15)],
        [f"^(a{{0,{n}}}b)*$" for n in (100, 200, 300)],
    ],
)
def test_hostile_combinations_end(sources: list[str]) -> None:
    patterns = [search(parse(source, Dialect.ECMA), TEXT) for source in sources]
    for expr in (
        intersection([TEXT.text, *patterns]),
        intersection([TEXT.text, patterns[0], *map(complement, patterns[1:])]),
        alternation(intersection([one, complement(other)]) for one, other in itertools.permutations(patterns, 2)),
    ):
        start = time.process_time()
        try:
            at: Expr | None = expr
            for byte in b"abc":
                if at is None or is_empty(at):
                    break
                at = next((target for low, high, target in edges(at) if low <= byte <= high), None)
        except LimitError:
            assert sources[0] == "^(.{7})*$"
        assert time.process_time() - start < 20


def test_alternatives_apart_hold_the_same_texts() -> None:
    """A search among them finds what one among their combinations does, and takes up no more than were counted."""
    rnd = random.Random(11)
    counted = 0
    for _ in range(300):
        expr, _ = combined(rnd, 3)
        expr = intersection([expr, *(combined(rnd, 0)[0] for _ in range(rnd.randrange(3)))])
        if expr.kind is not Kind.INTERSECTION:
            continue
        together = has_member(expr, 10_000, possible_edges)
        assert has_member(expr, 10_000, possible_edges, True) is together, expr
        found = n_parted(expr, 10_000, possible_edges)
        if found:
            counted += 1
            # Any text is read beside them.
            assert has_member(expr, 2 * found + 8, possible_edges, True) is together
    assert counted > 30


def test_few_alternatives_apart_are_many_together() -> None:
    """What was read of the last forty characters: a state for each place, and for each set of places."""
    language = intersection([search(parse("^(.+-)+[^ ]{0,40}$", Dialect.ECMA), TEXT), complement(literal(b"a-"))])
    assert (n_parted(language, 10_000, possible_edges) or 0) > 40
    assert n_parted(language, 40, possible_edges) is None
    assert condensed(language, possible_edges) is language


def test_what_is_read_of_operands_is_bounded_within_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand states may wait to be read together, each of many alternatives."""
    over = []
    run = Walk._run

    def recorded(
        self: Walk, space: Space, leaves: Sequence[Expr], most: int, reads: int | None, expressions: int | None = None
    ) -> int:
        before = self.read
        code = run(self, space, leaves, most, reads, expressions)
        if reads is not None:
            over.append(self.read - before - reads)
        return code

    monkeypatch.setattr(Walk, "_run", recorded)
    pattern = r"^(?!(?:.{8,200}[a-z])+$)(?!.*[A-Z].{15,}[a-z])\w?[a-z]{0,255}\S{8,200}$"
    begun = time.process_time()
    with pytest.raises(LimitError, match="in common"):
        guided.json_schema({"type": "string", "pattern": pattern, "maxLength": 20})
    # It was 28,789, and 3 s.
    assert 0 < max(over) < 100
    assert time.process_time() - begun < 5


def test_inclusion_of_combinations() -> None:
    rnd = random.Random(25)
    for _ in range(60):
        (one, holds), (other, also) = combined(rnd, 2), combined(rnd, 2)
        included = is_subset(intersection([one, TEXT.text]), other)
        if included:
            assert all(also(text) for text in TEXTS if holds(text))
        assert is_subset(intersection([one, other]), one)


def test_what_is_far_or_many_is_not_empty_for_that() -> None:
    far = repeat(any_text()[0], 1 << 29)
    assert not is_empty(intersection([far, complement(literal(b"a"))]), 500)
    many = [complement(repeat(literal(bytes([97 + i % 26])), 2 + i)) for i in range(300)]
    found = shortest(intersection([repeat(literal(b"ab"), 3), *many]))
    assert found == b"ababab"
    with pytest.raises(LimitError):
        is_empty(intersection([literal(b"aab"), *(complement(repeat(literal(b"b"), i)) for i in range(2, 5000))]))
