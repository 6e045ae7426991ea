"""Canvases, the checks on them, and the denoiser that is a table."""

from __future__ import annotations

import numpy as np
import pytest

from guided.diffusion import Canvas, Denoiser, Noise, TableDenoiser, blank
from guided.errors import GuidedError, UnsupportedError


@pytest.fixture
def table():
    return TableDenoiser(np.random.default_rng(3).random((3, 3, 3)), eos_ids=[2])


def test_a_canvas_is_a_copy_that_cannot_be_written(table):
    given = np.array([0, 1, 3])
    canvas = Canvas(given, [True, True, False])
    given[0] = 2
    assert canvas.tokens.tolist() == [0, 1, 3]
    with pytest.raises(ValueError, match="read-only"):
        canvas.tokens[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        canvas.known[0] = False
    filled = canvas.filled([2], [0])
    assert canvas.unknown == 1 and filled.unknown == 0
    cleared = filled.cleared([0, 2], 3)
    assert cleared.tokens.tolist() == [3, 1, 3] and cleared.known.tolist() == [False, True, False]


def test_scores_are_the_conditional_law_by_enumeration(table):
    assert isinstance(table, Denoiser)
    joint = np.random.default_rng(3).random((3, 3, 3))
    canvas = blank(table, (), 3, {1: 2})
    found = np.exp(table.scores([canvas, blank(table, (), 3)]))
    for place in (0, 2):
        texts = {
            t: sum(joint[a, 2, b] for a in range(3) for b in range(3) if (a, b)[place // 2] == t) for t in range(3)
        }
        expected = [texts[t] / sum(texts.values()) for t in range(3)]
        np.testing.assert_allclose(found[0, place, :3], expected, rtol=1e-6)  # float32 results.
    np.testing.assert_allclose(found[1, 1, :3], joint.sum((0, 2)) / joint.sum(), rtol=1e-6)  # The same.
    assert (found[:, :, 3] == 0).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda d: Canvas([1, 2], [True]), "one mark for each"),
        (lambda d: Canvas([[1, 2]], [[True, False]]), "one mark for each"),
        (lambda d: blank(d, (), 0), "at least one"),
        (lambda d: blank(d, (), 3, {3: 0}), "position 3 is fixed"),
        (lambda d: blank(d, (), 3, {1: d.mask_id}), "the mask is fixed at position 1"),
        (lambda d: d.scores([blank(d, (), 2)]), "blocks of 3"),
        (lambda d: d.scores([blank(d, (), 2), blank(d, (), 3)]), "lengths"),
        (lambda d: d.scores([Canvas([0, 1, 7], [True] * 3)]), "no id 7"),
        (lambda d: d.scores([Canvas([0, 1, 2], [True] * 3, prompt=(-1,))]), "no id -1"),
        (lambda d: TableDenoiser(np.ones((2, 3))), "axes"),
        (lambda d: TableDenoiser([0.0, 0.0]), "no probabilities"),
        (lambda d: TableDenoiser([1.0, np.nan]), "no probabilities"),
    ],
)
def test_bad_input_is_refused(table, make, words):
    with pytest.raises(GuidedError, match=words):
        make(table)


def test_too_little_room_names_both_lengths(table):
    table.longest = 5
    with pytest.raises(GuidedError, match="prompt has 3 tokens and the canvas 3, but the model reads at most 5"):
        blank(table, (0, 0, 0), 3)


def test_a_masked_model_without_a_mask_is_refused(table):
    table.mask_id = None
    with pytest.raises(UnsupportedError, match="no mask token"):
        blank(table, (), 3)


def test_uniform_noise_is_drawn(table):
    table.noise = Noise.UNIFORM
    first, second = (blank(table, (), 3, chance=np.random.default_rng(seed)) for seed in (1, 5))
    assert not first.known.any() and first.tokens.tolist() != second.tokens.tolist()
