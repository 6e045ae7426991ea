"""Patterns that are made of a run which they go on with: masks against a vocabulary of single bytes."""

from __future__ import annotations

import random

import pytest

import guided
from guided.constraint.effects.token_effects import TokenEffects, _run_around
from tests import vocabularies
from tests.amounts import each, some
from tests.twin.masks import fitting_tokens

PIECES = ["a", "b", ":", "/", "@", " ", "\\n", "\\u000a", "\\u2028", "\u2028", "é", "日", "\\/", '"', ",", "}", "1"]
BYTES = vocabularies.of_bytes()

AROUND = [
    "^.+:.+$", "^.*$", "^.{2,}$", "^.+/(?:.+@)?.*$", "^\\S+@\\S+$", "^[^/]+$", "^[^,]{3,}$", "^.*(?:ab|:\\S).*$",
    "^.+(?:1|a*/)$", "^(?:a.*|.+b)$", "^[\\s\\S]+:[\\s\\S]+$", "^[^\\n]*a[^\\n]*$",
    "^(?:.+|\\n+)$",
]  # fmt: skip
"""From some state on, all texts of a run lead on, and hold all that may come."""

NOT_AROUND = ["^[^/]+/[^/]+$", "^.+\\n.+$", "^\\S+ \\S+$", "^.+\\u2028$", "^.{2,40}$", "^[^,]*,.*$"]
"""Where a character stands that is not in the run."""


def vocabulary_of(seed: random.Random) -> tuple[list[bytes], guided.Vocabulary]:
    """All bytes, and so many tokens that effects are worth while."""
    some = vocabularies.random_tokens(seed, PIECES, 1500, 6)
    halves = {"日".encode()[:2], "é".encode()[1:] + b":", b"\\u", b'{"k":'}
    tokens = vocabularies.with_bytes(some | halves)
    return tokens, vocabularies.of_tokens(tokens)


@pytest.mark.parametrize("pattern", each([*AROUND, *NOT_AROUND], 2))
def test_masks_are_those_of_single_bytes(pattern):
    seed = random.Random(pattern)
    tokens, vocabulary = vocabulary_of(seed)
    grammar = guided.json_schema(
        {"type": "object", "properties": {"k": {"pattern": pattern, "type": "string"}, "m": {}}, "required": ["k"]}
    )
    by_token, by_byte = guided.compile(grammar, vocabulary), guided.compile(grammar, BYTES)
    for _ in range(some(3, 6)):
        state, place = by_token.start, by_byte.start
        for step in range(14):
            fits = fitting_tokens(by_token, state, by_byte, place, tokens)
            inside = sorted(fits) if step > 9 else sorted(t for t in fits if step < 2 or b'"' not in tokens[t])
            if not inside:
                break
            token = tokens.index(b'{"k":') if not step else seed.choice(inside)
            state, place = by_token.advance(state, token), by_byte.advance_bytes(place, tokens[token])


@pytest.mark.parametrize(("patterns", "is_around"), [(AROUND, True), (NOT_AROUND, False)])
def test_which_states_have_a_run_around_them(patterns, is_around):
    for pattern in patterns:
        c = guided.compile(guided.json_schema({"type": "string", "pattern": pattern}), BYTES)
        states = TokenEffects.of(BYTES).states
        at = c.advance_bytes(c.start, b'"')
        inside = {state for state, _, _ in c._machine.threads(at) if state}
        # Some patterns have it from their second character on.
        inside |= {state for state, _, _ in c._machine.threads(c.advance_bytes(at, b"a")) if state}
        members = [states.parts.members(state) for state in inside]
        assert any(_run_around(of) is not None for of in members if of) is is_around, pattern
