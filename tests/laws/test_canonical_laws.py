"""For random finite languages, tokenizers and prompts: canonical sentences are the tokenizer's own, forced ones shared."""

from __future__ import annotations

import random

import pytest

import guided
from guided.constraint.canonical import canonical
from guided.constraint.forcing import forced_tokens
from tests.twin.byte_pairs import vocabulary_of
from tests.unit.constraint.test_canonical import KINDS, _common, sentences, tokenizer_of

PIECES = [
    "a", "b", "n", "aa", "ab", "ban", "cat", " ", " ", "  ", "\n", "'", "s", "ve", "l", "r", "e", "1", "2", "!", "?",
    "中", "é", "\t", "'ll", "isn", "t", "banandana", "alog",
]  # fmt: skip


def text(rng: random.Random, low: int, high: int) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(low, high)))


@pytest.mark.parametrize("kind", KINDS)
def test_random_languages(kind):
    rng = random.Random(KINDS.index(kind))
    tokenizer = tokenizer_of(kind)
    n_alive = 0
    for _ in range(60):
        base, prompt = text(rng, 0, 3), text(rng, 0, 3)
        texts = sorted({base + text(rng, 1, 5) for _ in range(rng.randint(1, 8))})
        constraint = guided.compile(guided.choice(texts), vocabulary_of(tokenizer))
        before = tokenizer.encode(prompt).ids
        whole = [tokenizer.encode(prompt + text).ids for text in texts]
        whole = [ids for ids in whole if ids[: len(before)] == before]
        if not whole:
            with pytest.raises(guided.UnsatisfiableError):
                canonical(constraint, tokenizer, before=before)
            continue
        n_alive += 1
        expected = {tuple(ids[len(before) :]) for ids in whole}
        assert sentences(canonical(constraint, tokenizer, before=before)) == expected, (texts, prompt)
        ids = rng.choice(whole)
        state = constraint.start
        for at in range(len(before), len(ids) + 1):
            shared = _common([other[at:] for other in whole if other[:at] == ids[:at]])
            forced = forced_tokens(constraint, state, tokenizer, ids[:at])
            assert forced == shared[: len(forced)], (texts, prompt, at)
            if at < len(ids):
                state = constraint.advance(state, ids[at])
    assert n_alive > 40
