"""Limits on tokens against their definition: every state that tokens lead to, and bytes cut in any way."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.errors import VocabularyError
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import Refusals, some
from tests.twin.limited_tokens import Twin, beside_json, grammar_of

Form: TypeAlias = "Callable[[Any], guided.Grammar]"

TOKENS = [b"a", b"b", b"ab", b"a.", b"b.c", b".", b"c", b".c", b"ca", b"cab"]
AB = ("star", ("or", b"a", b"b"))


def constraint_of(text: Any, tokens: list[bytes], form: Form = grammar_of) -> guided.Constraint:
    listed = [*tokens, *(byte for byte in vocabularies.SINGLE_BYTES if byte not in tokens)]
    return guided.compile(form(text), vocabularies.of_tokens(listed))


def letters_of(tokens: list[bytes]) -> list[bytes]:
    """The tokens with all letters of the texts here."""
    return [*tokens, *sorted({b"a", b"b", b"c", b"."} - {*tokens})]


def compare(text: Any, tokens: list[bytes], most: int = 400, form: Form = grammar_of) -> int:
    """Masks and ends of all states, breadth first; how many there were."""
    tokens = letters_of(tokens)
    constraint = constraint_of(text, tokens, form)
    twin = Twin(text, tokens)
    end = constraint.vocabulary.size - 1
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    seen = {(constraint.start, twin.start)}
    queue = list(seen)
    for state, places in queue:
        constraint.fill_mask(state, row)
        allowed = {token for token in range(len(tokens)) if twin.lives(twin.after(places, tokens[token]))}
        found = {token for token in tokenset.ids(row).tolist() if token < len(tokens) or token == end}
        assert found == allowed | ({end} if twin.accepts(places) else set())
        assert constraint.is_accepting(state) == twin.accepts(places)
        assert row.any()
        for token in range(len(tokens)):
            after = constraint.advance(state, token)
            assert bool(after) == (token in allowed)
            pair = (after, twin.after(places, tokens[token]))
            if after and pair not in seen and len(seen) < most:
                seen.add(pair)
                queue.append(pair)
    return len(seen)


def compare_bytes(text: Any, tokens: list[bytes], rnd: random.Random, n: int = 20, form: Form = grammar_of) -> None:
    """Bytes from random states: at once and one by one."""
    tokens = letters_of(tokens)
    constraint = constraint_of(text, tokens, form)
    twin = Twin(text, tokens)
    row, other = np.zeros((2, constraint.vocabulary.n_words), np.uint32)
    for _ in range(n):
        state, places = constraint.start, twin.start
        for _ in range(rnd.randrange(3)):
            constraint.fill_mask(state, row)
            allowed = [token for token in tokenset.ids(row).tolist() if token < len(tokens)]
            if allowed:
                token = rnd.choice(allowed)
                state, places = constraint.advance(state, token), twin.after(places, tokens[token])
        data = b"".join(rnd.choices(tokens, k=rnd.randint(1, 3)))
        data = data[: rnd.randint(1, len(data))]
        behind, lives = twin.behind(places, data)
        after = constraint.advance_bytes(state, data)
        assert bool(after) == lives, data
        one = state
        for byte in data:
            one = constraint.advance_bytes(one, bytes([byte])) if one else 0
        assert bool(one) == lives
        if lives:
            constraint.fill_mask(after, row)
            constraint.fill_mask(one, other)
            assert (row == other).all()
            expected = {token for token in range(len(tokens)) if twin.lives(twin.after(behind, tokens[token]))}
            assert {token for token in tokenset.ids(row).tolist() if token < len(tokens)} == expected
            assert constraint.is_accepting(after) == constraint.is_accepting(one) == twin.accepts(behind)


TEXTS = {
    "between": ("then", b"c", ("span", AB, 2), b".c"),
    "beside": ("then", ("span", AB, 2), ("span", AB, 1), b"."),
    "loop": ("then", ("star", ("then", ("span", AB, 1), b".")), b"c"),
    "ending": ("then", b"c", ("span", ("then", AB, b"."), 2), b"c"),
    "counted": ("then", b"c", ("span", ("or", ("then", b"ab", b"ab", b"ab"), b"a"), 3), b"c"),
    "three": ("then", b"c", ("span", ("then", b"ab", b"ab", b"ab"), 3), b"c"),
    "with others": ("or", ("then", b"c", ("span", AB, 2), b"."), ("then", b"c", AB, b"c")),
    "entered anew": ("then", ("span", ("or", b"ab", b"a"), 1), ("span", ("then", b"ab", b"c"), 2), b"."),
}


@pytest.mark.parametrize("name", TEXTS)
def test_masks_are_those_of_the_definition(name):
    compare(TEXTS[name], TOKENS)
    compare_bytes(TEXTS[name], TOKENS, random.Random(name))
    check_constraint(constraint_of(TEXTS[name], TOKENS), walks=5, length=12)


@pytest.mark.parametrize("name", ["between", "ending", "entered anew"])
def test_masks_beside_a_checker_are_those_of_the_definition(name):
    compare(TEXTS[name], TOKENS, form=beside_json)
    check_constraint(constraint_of(TEXTS[name], TOKENS, beside_json), walks=3, length=10, full_states=10)


def random_text(rnd: random.Random, depth: int, spans: bool) -> Any:
    kind = rnd.randrange(7)
    if depth == 0 or kind == 0:
        return rnd.choice([b"a", b"b", b"c", b".", b"ab", b"a."])
    if kind == 1:
        return ("star", random_text(rnd, depth - 1, spans))
    if kind in (2, 3):
        return ("or", *(random_text(rnd, depth - 1, spans) for _ in range(2)))
    if kind == 4 and spans:
        return ("span", random_text(rnd, 2, False), rnd.choice((1, 1, 2, 3, 4, 9)))
    return ("then", *(random_text(rnd, depth - 1, spans) for _ in range(rnd.randint(2, 3))))


def holds_span(text: Any) -> bool:
    return isinstance(text, tuple) and (text[0] == "span" or any(map(holds_span, text[1:])))


def test_random_texts():
    with Refusals(most=0.5) as refusals:
        for seed in range(some(60)):
            rnd = random.Random(seed)
            text: Any = b""
            while not holds_span(text):
                text = random_text(rnd, 4, True)
            tokens = sorted(vocabularies.random_tokens(rnd, "ab.c", 7, 3, 2))
            with refusals.trial(VocabularyError):
                constraint = constraint_of(text, letters_of(tokens))
                form = beside_json if seed % 8 == 7 else grammar_of
                compare(text, tokens, 60, form)
                compare_bytes(text, tokens, rnd, 6, form)
                check_constraint(constraint, walks=2, length=8, seed=seed, threads=1)
