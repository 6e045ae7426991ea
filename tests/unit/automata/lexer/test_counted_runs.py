"""Runs with far bounds, whose parts are made many characters at a time, against counting characters."""

from __future__ import annotations

import random

import pytest

from guided.automata.lexer.states import StateTable
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular.expr import Expr, byte_range, json_string, literal, repeat
from guided.grammar.regular.texts import CHARACTER
from guided.kernels.data.layout import CLOSES
from tests.amounts import crossed

COUNTED = 8
CLASS = pattern_language("[a-zé😀]")
BODIES = [(CHARACTER, "ab\né\u2028😀 "), (CLASS, "azé😀"), (byte_range(0x61, 0x7A), "abz"),
          (literal("aé".encode()), ["aé"])]  # fmt: skip
BOUNDS = [(0, 2 * COUNTED), (0, 2 * COUNTED - 1), (0, 5 * COUNTED + 3), (3 * COUNTED, 4 * COUNTED), (COUNTED, 90),
          (COUNTED + 1, 70), (1, 60)]  # fmt: skip


def read(table: StateTable, state: int, text: bytes) -> int:
    for byte in text:
        state = next((target for low, high, target in table.edges(state) if low <= byte <= high), 0)
    return state


def look_at(seed: random.Random, table: StateTable, body: Expr, low: int, high: int) -> None:
    """Make some runs of the chain known on their own."""
    for _ in range(seed.randint(0, 3)):
        less = seed.randint(0, high)
        table.expand(table.add(json_string(repeat(body, max(low - less, 0), high - less))))


@pytest.mark.parametrize(("body", "bounds", "inside"), crossed(range(len(BODIES)), BOUNDS, [True, False], share=6))
def test_characters_are_counted(body, bounds, inside):
    expr, letters = BODIES[body]
    low, high = bounds
    seed = random.Random(low + 100 * high + body)
    for _ in range(3):
        table = StateTable()
        if inside:
            look_at(seed, table, expr, low, high)
        run = repeat(expr, low, high)
        start = table.add(json_string(run) if inside else run)
        for size in {0, 1, low - 1, low, high - 1, high, high + 1, *(seed.randint(0, high) for _ in range(3))}:
            text = "".join(seed.choices(letters, k=max(size, 0))).encode()
            state = read(table, start, text)
            assert bool(state) == (size <= high)
            if state:
                ends = table.arrays.mode[state] & CLOSES if inside else table.arrays.tag[state] == 0
                assert bool(ends) == (max(size, 0) >= low), (size, bounds)
                begun = read(table, state, letters[-1].encode()[:1])
                assert bool(begun) == (size < high)
                assert not read(table, state, b"\xff")


def test_characters_ahead_are_known_without_asking_again():
    table = StateTable()
    state = table.add(json_string(repeat(CHARACTER, 0, 500)))
    table.expand(state)
    known = len(table.parts)
    table.expand(read(table, state, b"abcd"))
    assert len(table.parts) == known


def asked(table: StateTable, state: int, text: bytes) -> tuple[int, int]:
    """The state behind a text, and how often edges had to be found on the way there."""
    n = 0
    for byte in text:
        n += table.arrays.first[state] < 0
        state = read(table, state, bytes([byte]))
    return state, n


def test_what_is_ahead_is_between_characters_until_one_of_several_bytes_is_read():
    table = StateTable()
    start = table.add(json_string(repeat(CHARACTER, 0, 500)))
    plain, n = asked(table, start, b"a" * 90)
    assert n == 1
    begun, n = asked(table, plain, "é".encode()[:1])
    assert n == 0 and table.arrays.first[begun] < 0
    # Where one character has several bytes, so may those behind it.
    behind, n = asked(table, begun, "é".encode()[1:] + "é😀é".encode())
    assert n == 1 and asked(table, behind, "é".encode())[1] == 0
