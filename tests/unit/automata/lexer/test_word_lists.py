"""Lists of words written as states, against the words themselves."""

from __future__ import annotations

import random

import pytest

from guided.automata.lexer import states as module
from guided.automata.lexer.states import StateTable
from guided.grammar.regular.expr import EPSILON, concat, json_string, literal, words
from guided.kernels.data.layout import CLOSES, MATCHED
from tests.amounts import crossed

LETTERS = "ab\x00é~"


def some_words(seed: random.Random) -> list[bytes]:
    longest = seed.choice([1, 3, 9])
    return ["".join(seed.choices(LETTERS, k=seed.randint(0, longest))).encode() for _ in range(seed.randint(1, 30))]


def read(table: StateTable, state: int, text: bytes) -> int:
    for byte in text:
        state = next((target for low, high, target in table.edges(state) if low <= byte <= high), 0)
    return state


def texts_near(seed: random.Random, listed: list[bytes]) -> list[bytes]:
    near = [word[: seed.randint(0, len(word))] for word in listed]
    return [*listed, *near, *(text + seed.choice([b"a", b"\x00", b"\xff", b"~"]) for text in [*listed, *near])]


@pytest.mark.parametrize(("number", "long_list"), crossed(range(12), [0, 20, 1024], share=6))
def test_states_read_the_words_and_nothing_else(number, long_list, monkeypatch):
    monkeypatch.setattr(module, "LONG_LIST", long_list)
    seed = random.Random(number)
    table = StateTable()
    for _ in range(10):
        listed = some_words(seed)
        language = words(listed)
        if language is EPSILON:
            continue
        plain, inside = table.add(language), table.add(json_string(language))
        behind = table.add(concat(literal(b"<"), language))
        for text in texts_near(seed, listed):
            goes_on = any(word.startswith(text) for word in listed)
            assert bool(read(table, plain, text)) == bool(read(table, inside, text)) == goes_on
            assert bool(read(table, behind, b"<" + text)) == goes_on
            if goes_on:
                ends = text in listed
                after = read(table, plain, text)
                assert (table.arrays.tag[after] == 0) == ends
                assert (table.arrays.tag[read(table, behind, b"<" + text)] == 0) == ends
                assert bool(table.arrays.mode[read(table, inside, text)] & CLOSES) == ends
                assert table.arrays.tag[read(table, inside, text)] < 0


def test_words_end_in_one_state_and_need_no_expressions():
    table = StateTable()
    state = table.add(words([b"ab", b"ac", b"ad", b"xyz"]))
    n_states = len(table)
    assert table.edges(read(table, state, b"a")) == [(ord("b"), ord("d"), MATCHED)]
    assert read(table, state, b"xyz") == MATCHED
    assert len(table) == n_states
    assert table.key(read(table, state, b"x")) is None


def test_many_words_fill_more_than_the_first_room():
    table = StateTable()
    listed = [f"{number:04}-{number * 7 % 101}".encode() for number in range(3000)]
    state = table.add(json_string(words(listed)))
    for word in listed[::37]:
        assert table.arrays.mode[read(table, state, word)] & CLOSES
        assert not read(table, state, word + b"0")
