"""States from which few bytes lead on: walked, where that is less than to make an effect that may never be met again."""

from __future__ import annotations

import itertools

import pytest

import guided
from guided import tokenset
from guided.constraint.effects.token_effects import TokenEffects
from guided.kernels.masking.masks import OWN_RANGE
from tests import vocabularies

LETTERS = b"0123abcdghxyz-"
WORDS = [*vocabularies.SINGLE_BYTES]
WORDS += [bytes(word) for n in (2, 3) for word in itertools.product(LETTERS, repeat=n)]
WORDS += [*map(b"%04d".__mod__, range(3000)), b'"', b'01"', b'ab"']
VOCABULARY = vocabularies.of_tokens(dict.fromkeys(WORDS))


@pytest.fixture
def effects(monkeypatch):
    made = []
    need = TokenEffects.need
    monkeypatch.setattr(TokenEffects, "need", lambda self, *at: (made.append(at), need(self, *at)))
    return made


@pytest.mark.parametrize(
    ("pattern", "text", "is_walked"),
    [
        ("^[a-d0-3]{5}-[a-d0-3]{9}$", b'"ab012-ab0', True),
        ("^[a-d0-3]{3,8}(x|y)$", b'"ab012', True),
        # So many tokens are of digits.
        ("^[0-9]{9}$", b'"01', False),
        ("^[a-z]{2}[a-z0-9]{7}$", b'"ab0', False),
    ],
)
def test_masks_are_those_of_the_tokens_and_no_effect_is_made_where_few_nodes_are_met(effects, pattern, text, is_walked):
    assert len(VOCABULARY) > OWN_RANGE
    constraint = guided.compile(guided.json_schema({"type": "string", "pattern": pattern}), VOCABULARY)
    state = constraint.advance_bytes(constraint.start, text[:1])
    effects.clear()
    for byte in text[1:]:
        state = constraint.advance_bytes(state, bytes([byte]))
        _, row = constraint.kept_row(state)
        allowed = [token for token in range(len(VOCABULARY)) if constraint.advance(state, token)]
        assert tokenset.ids(row).tolist() == allowed
    assert (not effects) == is_walked
