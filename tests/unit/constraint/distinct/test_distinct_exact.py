"""Checked constraints against the list of all their texts: live prefixes, masks, ends, completions, exactly."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.machine import DistinctMachine
from tests import vocabularies
from tests.amounts import some
from tests.twin.finite_json import TooMany, schema, texts


def vocabulary_for(all_texts: set[bytes], rnd: random.Random) -> guided.Vocabulary:
    """Single bytes, and pieces of the texts that reach over several names and items."""
    listed = sorted(all_texts)
    pieces: set[bytes] = {b" ", b"[1,1,", b'"a","a"', b'"a":1,"a"', b",", b"],["}
    pieces |= vocabularies.pieces_of(rnd, (rnd.choice(listed) for _ in range(60)), 12)
    return vocabularies.of_tokens(vocabularies.bytes_first(pieces))


def compare(
    root: Any, all_texts: set[bytes], vocabulary: guided.Vocabulary, rnd: random.Random, n_prefixes: int
) -> None:
    prefixes = {text[:size] for text in all_texts for size in range(len(text) + 1)}
    constraint = Constraint(guided.json_schema(root, order="any", whitespace="compact"), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    tokens = [(token, data) for token, data in enumerate(vocabulary.tokens) if data]
    by_length: dict[bytes, int] = {}
    for prefix in rnd.sample(sorted(prefixes), min(n_prefixes, len(prefixes))):
        where = f"after {prefix!r} of {root}"
        state = constraint.advance_bytes(constraint.start, prefix)
        assert state, f"dead {where}"
        assert constraint.is_accepting(state) == (prefix in all_texts), f"accepting {where}"
        constraint.fill_mask(state, row)
        for token, data in tokens:
            alive = prefix + data in prefixes
            assert (constraint.advance(state, token) != 0) == alive, f"advance {data!r} {where}: should be {alive}"
            assert bool(int(row[token >> 5]) >> (token & 31) & 1) == alive, f"mask {data!r} {where}: should be {alive}"
        forced = constraint.forced(state)
        if forced:
            assert all(text.startswith(prefix + forced) for text in all_texts if text.startswith(prefix)), where
        by_length[prefix] = constraint.shortest_completion(state)
    for prefix, needed in rnd.sample(sorted(by_length.items()), min(25, len(by_length))):
        state = constraint.advance_bytes(constraint.start, prefix)
        text = prefix
        for left in range(needed, 0, -1):
            constraint.fill_budget_mask(state, row, left + 1)
            allowed = [token for token, _ in tokens if int(row[token >> 5]) >> (token & 31) & 1]
            if not allowed:
                break
            token = rnd.choice(allowed)
            text += vocabulary.token_bytes(token) or b""
            state = constraint.advance(state, token)
            if constraint.is_accepting(state) and rnd.random() < 0.5:
                break
        assert text in all_texts or needed == 0, f"no end within {needed} tokens after {prefix!r} of {root}: {text!r}"


def gaps(root: Any, all_texts: set[bytes], rnd: random.Random) -> None:
    """A vocabulary that cannot spell every text: alive is what some tokens lead on from."""
    listed = sorted(all_texts)
    pieces = vocabularies.pieces_of(rnd, (rnd.choice(listed) for _ in range(40)), 9)
    tokens = sorted(pieces | {b"[", b"]", b","})
    prefixes = {text[:size] for text in all_texts for size in range(len(text) + 1)}
    alive = set()
    for prefix in sorted(prefixes, key=len, reverse=True):
        if prefix in all_texts or any(prefix + data in alive for data in tokens):
            alive.add(prefix)
    vocabulary = vocabularies.of_tokens(tokens)
    grammar = guided.json_schema(root, order="any", whitespace="compact")
    if b"" not in alive:
        with pytest.raises(guided.VocabularyError):
            Constraint(grammar, vocabulary)
        return
    constraint = Constraint(grammar, vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    frontier = [(b"", constraint.start)]
    for prefix, state in frontier:
        if len(frontier) > 40:
            break
        constraint.fill_mask(state, row)
        for token, data in enumerate(tokens):
            expected = prefix + data in alive
            where = f"{data!r} after {prefix!r} of {root}, tokens {tokens}"
            after = constraint.advance(state, token)
            assert (after != 0) == expected, f"advance {where}: should be {expected}"
            assert bool(int(row[token >> 5]) >> (token & 31) & 1) == expected, f"mask {where}: should be {expected}"
            if after and rnd.random() < 0.5:
                frontier.append((prefix + data, after))
    if not isinstance(constraint._machine, DistinctMachine):
        return
    prefix, state = rnd.choice(frontier)
    for left in range(constraint.shortest_completion(state), 0, -1):
        constraint.fill_budget_mask(state, row, left + 1)
        token = rnd.choice(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())
        if token in vocabulary.eos_ids:
            break
        prefix, state = prefix + tokens[token], constraint.advance(state, token)
    assert prefix in all_texts, f"no end in time: {prefix!r} of {root}, tokens {tokens}"


def run(seed: int, n_prefixes: int) -> str:
    rnd = random.Random(seed)
    root = schema(rnd)
    try:
        all_texts = texts(root)
    except TooMany:
        return "too many"
    try:
        grammar = guided.json_schema(root, order="any", whitespace="compact")
        if not all_texts:
            with pytest.raises(guided.UnsatisfiableError):
                Constraint(grammar, vocabulary_for({b"x"}, rnd))
            return "empty"
    except guided.UnsatisfiableError:
        assert not all_texts, f"refused as empty: {root}"
        return "empty"
    except guided.UnsupportedError:
        return "refused"
    compare(root, all_texts, vocabulary_for(all_texts, rnd), rnd, n_prefixes)
    gaps(root, all_texts, rnd)
    return "compared"


def test_random_finite_schemas() -> None:
    n = some(150, 4)
    found = [run(seed, 25) for seed in range(n)]
    assert found.count("compared") > n // 2
    assert found.count("refused") < 9
    assert "empty" in found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 4000, 100))
def test_many_finite_schemas(first: int) -> None:
    found = [run(seed, 60) for seed in range(first, first + 100)]
    assert found.count("refused") < 14 and found.count("compared") > 40
