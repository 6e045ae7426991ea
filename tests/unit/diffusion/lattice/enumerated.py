"""All texts that fit a canvas, one by one: what lattices are compared with."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping

import numpy as np

import guided
from guided.constraint.protocol import Constrains

TOKENS = [b"a", b"b", b"c", b",", b"ab", b"ba"]
EOS, PAD, WIDTH = 6, 7, 9
"""Ids behind the tokens; 8 is scored and stands for nothing, as a mask token does."""

VOCABULARY = guided.Vocabulary.from_tokens([*TOKENS, None], eos_ids=[EOS])


def texts(
    constraint: Constrains, length: int, known: Mapping[int, int], start: int, pad_id: int | None = None
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every row of tokens that the constraint takes, and the state behind it."""

    def below(at: int, state: int, done: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int]]:
        if at == length:
            yield done, state
            return
        for token in [known[at]] if at in known else range(WIDTH):
            if state == constraint.end and token == pad_id:
                after = state
            else:
                after = constraint.advance(state, token) if token < constraint.vocabulary.size else 0
            if after:
                yield from below(at + 1, after, (*done, token))

    yield from below(0, start, ())


def weights(
    constraint: Constrains,
    logp: np.ndarray,
    known: Mapping[int, int],
    room: int | None = 0,
    pad_id: int | None = None,
    start: int | None = None,
) -> dict[tuple[int, ...], float]:
    """The logarithm of the weight of every text that fits; texts without any are left out."""
    found = {}
    begin = constraint.start if start is None else start
    for tokens, state in texts(constraint, len(logp), known, begin, pad_id):
        if room == 0 and state != constraint.end and not constraint.is_accepting(state):
            continue
        if room and constraint.shortest_completion(state) > room:
            continue
        weight = sum(float(logp[i, token]) for i, token in enumerate(tokens) if i not in known)
        if weight > -math.inf:
            found[tokens] = weight
    return found


def random_canvas(rnd: random.Random, most: int = 5) -> tuple[np.ndarray, dict[int, int]]:
    """Distributions with impossible tokens and tiny ones, and some known tokens, which need not fit anything."""
    length = rnd.randint(1, most)
    numbers = np.random.default_rng(rnd.getrandbits(32))
    logits = numbers.normal(size=(length, WIDTH)) * rnd.choice((0.5, 3.0, 200.0))
    logp = (
        logits
        - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
        - logits.max(1, keepdims=True)
    )
    logp[numbers.random((length, WIDTH)) < rnd.choice((0.0, 0.1, 0.3))] = -np.inf
    known = {place: rnd.randrange(EOS + 2) for place in range(length) if rnd.random() < rnd.choice((0.1, 0.4))}
    return logp, known
