"""For random finite languages, tokenizers and prompts: canonical sentences are the tokenizer's own, forced ones shared."""

from __future__ import annotations

import random

import numpy as np
import pytest

import guided
from guided.constraint.spelling.canonical import canonical
from guided.constraint.spelling.forcing import forced_tokens
from guided.constraint.spelling.healing import heal
from tests.amounts import some
from tests.twin.byte_pairs import vocabulary_of
from tests.unit.constraint.spelling.test_canonical import KINDS, _common, ids_of, sentences, tokenizer_of

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
    n = some(60, 10)
    for _ in range(n):
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
    assert 3 * n_alive > 2 * n


FRAGMENTS = [
    "[a-z]+", " *", "[ab]{2,5}", "( cat|alog)+", "'(s|ve)?", r"\d{1,7}", r"\n? ?", "[!?]{1,4}", "(中|é)*", "banan?",
    '[^a-y"]{0,3}', r"\s{1,4}", "(isn't )+",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_random_patterns_after_healed_prompts_under_budgets(kind):
    rng = random.Random(KINDS.index(kind))
    tokenizer = tokenizer_of(kind)
    vocabulary = vocabulary_of(tokenizer)
    row, plain = np.zeros((2, vocabulary.n_words), np.uint32)
    for _ in range(some(9, 18)):
        fragments = rng.choices(FRAGMENTS, k=rng.randint(1, 4))
        pattern = "".join(f"({fragment}|{rng.choice(FRAGMENTS)})" for fragment in fragments)
        prompt = "the " + rng.choice(["ban", "cat ", " ", "1", "'", "isn", "x  ", "aa\n"])
        healed = heal(tokenizer.encode(prompt).ids, tokenizer, guided.compile(guided.regex(pattern), vocabulary))
        constraint = canonical(healed.constraint, tokenizer, before=healed.prompt_ids)
        for _ in range(4):
            state, tokens = constraint.start, []
            budget = constraint.shortest_completion(state) + 1 + rng.choice([0, 1, 4, 12])
            while state != constraint.end:
                constraint.fill_budget_mask(state, row, budget - len(tokens))
                constraint.fill_mask(state, plain)
                assert row.any() and not (row & ~plain).any(), (pattern, prompt, tokens)
                tokens.append(rng.choice(ids_of(row)))
                state = constraint.advance(state, tokens[-1])
            whole = [*healed.prompt_ids, *tokens[:-1]]
            text = b"".join(vocabulary.token_bytes(token) for token in whole).decode()
            assert len(tokens) <= budget and text.startswith(prompt)
            assert tokenizer.encode(text).ids == whole, (pattern, prompt)
