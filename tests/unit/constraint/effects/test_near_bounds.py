"""Bounds that only long tokens come near: effects told from those without them, against single bytes."""

from __future__ import annotations

import random

import pytest

import guided
from guided.constraint.effects.surveys import NEAR, Surveys
from tests import vocabularies
from tests.amounts import each, some
from tests.twin.masks import fitting_tokens

BYTES = vocabularies.of_bytes()

PATTERNS = [
    "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
    "^([a-z]{1,20}-){0,3}[a-c]{2,17}$",
    "^([a-zé]{0,16}|[a-zé7]{3,25})(b|-[a-z.]{0,19})*$",
    "^[a-b]{15,18}(-[^.]{16,33})?[.]$",
    "^-?[^b]{0,18}b[^.]{0,17}([.]|$)",
]


def vocabulary_of(seed: random.Random) -> list[bytes]:
    """All bytes, and tokens of which some have as many bytes as the bounds, or a few more."""
    some = {token.decode() for token in vocabularies.random_tokens(seed, "a" * 9 + "b" * 9 + "zz7-.é", 1500, 7)}
    for piece in ("a", "b", "ab", "-", "é", "a-", "ab."):
        for n in (*range(8, 24), 30, 31, 40, 41, 60, 61, 62, 63):
            some |= {(piece * n)[:n], (piece * n)[:n] + seed.choice(['"', ".", "-", 'b"', "a-"])}
    return vocabularies.with_bytes({token.encode() for token in some} | {b'{"k":', b'a"}'})


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
def test_masks_are_those_of_single_bytes(pattern, monkeypatch):
    seed = random.Random(pattern)
    tokens = vocabulary_of(seed)
    vocabulary = vocabularies.of_tokens(tokens)
    assert vocabulary.longest > 3 * NEAR
    told = []
    stays = Surveys.stays

    def noted(self, low, high, state, *, apart=False, near=0):
        told.append(near)
        return stays(self, low, high, state, apart=apart, near=near)

    monkeypatch.setattr(Surveys, "stays", noted)
    grammar = guided.json_schema(
        {"type": "object", "properties": {"k": {"pattern": pattern, "type": "string"}}, "required": ["k"]}
    )
    by_token, by_byte = guided.compile(grammar, vocabulary), guided.compile(grammar, BYTES)
    for _ in range(some(4, 4)):
        state, place = by_token.start, by_byte.start
        for step in range(16):
            fits = fitting_tokens(by_token, state, by_byte, place, tokens)
            inside = [token for token in sorted(fits) if b'"' not in tokens[token]] if step > 1 else []
            if step > 1 and not inside:
                break
            token = tokens.index((b'{"k":', b'"')[step]) if step < 2 else seed.choice(inside)
            state, place = by_token.advance(state, token), by_byte.advance_bytes(place, tokens[token])
    assert any(told)
