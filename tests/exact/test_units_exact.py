"""Particles that grow by units: weights stay proper, every choice summed over; who waits, and what a unit is."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import guided
from guided.errors import UnsupportedError
from guided.infer import Direct, TextScorer, json_members, lines, multinomial, smc, words
from guided.lm import TableModel
from tests.amounts import mostly_slow
from tests.exact.test_sequence_samplers_exact import hold, truth

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b" ", None], eos_ids=[2])
MODEL = TableModel.random(11, width=3)
PROMPT = (0,)
SCORER = TextScorer(VOCABULARY, lambda t: [0.7 * x.count(" ") - 0.2 for x in t], lambda t: [0.3 * len(x) for x in t])


LONG = TableModel(lambda tokens: MODEL.logprobs(tokens) - np.array([0.0, 0.0, 2.5]), width=3)
"""Its texts have many words."""


def odd(before, added):
    """A unit with no sense: what it says must not matter."""
    return (len(before) * 7 + len(added) * 3) % 3 == 1


@pytest.mark.parametrize("unit", [words, odd, lines], ids=lambda unit: unit.__name__)
@pytest.mark.parametrize("length", mostly_slow([3, 4], 1))
@pytest.mark.parametrize("critic", [None, SCORER], ids=["alone", "critic"])
def test_weights_are_proper(unit, critic, length):
    goal = TextScorer(VOCABULARY, lambda texts: [0.9 * text.count("a") for text in texts])
    resampled = hold(
        lambda chance: smc(
            chance, MODEL, PROMPT, goal, critic=critic, n=2, max_tokens=length, sampler=Direct(), unit=unit,
            ess_threshold=1.0, resample=multinomial,
        ),
        truth(MODEL, goal, critic, length),
    )  # fmt: skip
    # No line ever ends: particles are then compared when all are finished, which is never resampled.
    assert bool(resampled) == (unit is not lines)


def test_a_token_is_a_unit():
    goal = TextScorer(VOCABULARY, lambda texts: [0.9 * text.count("a") for text in texts])
    options = {"n": 8, "max_tokens": 6, "critic": SCORER, "ess_threshold": 0.9}
    one = smc(5, MODEL, PROMPT, goal, unit=lambda before, added: True, **options)
    two = smc(5, MODEL, PROMPT, goal, **options)
    assert one == two and one.resampled


def test_particles_wait_for_each_other():
    goal = TextScorer(VOCABULARY, score, score)
    steps = []
    found = smc(3, LONG, PROMPT, goal, n=12, max_tokens=12, unit=words, ess_threshold=1.0, progress=steps.append)
    grown = [sum(token is not None for token in step.tokens) for step in steps]
    assert found.log_ml > -math.inf and any(step.ancestors for step in steps)
    waited = 0
    texts = [b""] * 12
    for step in steps:
        before = list(texts)
        texts = [
            text + (VOCABULARY.token_bytes(token) or b"") if token is not None else text
            for text, token in zip(texts, step.tokens, strict=True)
        ]
        if step.ancestors is not None:
            # Whoever grew in the step that ends the round ended a word, or its text.
            for old, new, token in zip(before, texts, step.tokens, strict=True):
                assert token is None or token == 2 or words(old, new[len(old) :])
            texts = [texts[i] for i in step.ancestors]
            waited += len(set(map(len, texts))) > 1
    assert waited, "particles of different lengths were compared"
    assert any(a < b for a, b in pairwise(grown)), "those that waited went on"


def test_a_saved_run_goes_on(tmp_path):
    goal = TextScorer(VOCABULARY, score, score)
    options = {"n": 6, "max_tokens": 10, "unit": words, "ess_threshold": 1.0}
    whole = smc(3, LONG, PROMPT, goal, **options)
    seen = []

    def stop(step):
        seen.append(step)
        if (tmp_path / "run.json").exists() and step.ancestors is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        smc(3, LONG, PROMPT, goal, save=tmp_path / "run.json", progress=stop, **options)
    again = smc(0, LONG, PROMPT, goal, resume=tmp_path / "run.json", **options)
    assert again.particles == whole.particles and again.log_ml == whole.log_ml
    with pytest.raises(guided.GuidedError, match="unit"):
        smc(0, LONG, PROMPT, goal, resume=tmp_path / "run.json", **options | {"unit": lines})


def score(texts):
    return [0.9 * text.count("a ") for text in texts]


def test_drafts_follow_one_length():
    from guided.draft import auto

    with pytest.raises(UnsupportedError, match="one length"):
        smc(0, MODEL, PROMPT, SCORER, unit=words, draft=auto())


@pytest.mark.parametrize(
    ("unit", "pieces", "ends"),
    [
        (words, ["The", " qui", "ck", " fox", ",", " ü", "b", "."], [0, 1, 0, 1, 1, 0, 0, 1]),
        (lines, ["a", "b\n", "\n", "c\nd"], [0, 1, 1, 1]),
        (json_members, ['{"a', '": "x', ',}\\"', '"', ", ", '"b": [1', ",2", "]", "}"], [0, 0, 0, 0, 1, 0, 1, 1, 1]),
        (json_members, ['["\\', '\\"', ","], [0, 0, 1]),
    ],
)
def test_where_units_end(unit, pieces, ends):
    data = b""
    found = []
    for piece in pieces:
        found.append(int(unit(data, piece.encode())))
        data += piece.encode()
    assert found == ends
