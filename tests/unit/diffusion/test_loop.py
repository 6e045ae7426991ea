"""The loop: every policy fills every canvas, drafts change nothing, and laws see where their canvas stands."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from guided.diffusion import (
    AdaptiveBlocks,
    Canvas,
    Coherence,
    Denoising,
    EntropyBound,
    Exploration,
    FixedBlocks,
    Free,
    Job,
    LocalDeterminism,
    LowConfidence,
    Noise,
    TableDenoiser,
    Threshold,
    denoise,
)
from guided.errors import GuidedError, UnsupportedError
from tests.amounts import crossed, each, some

POLICIES = [
    LowConfidence(1), LowConfidence(3), LowConfidence(20), Threshold(0.6), Threshold(1.0), EntropyBound(0.5),
    LocalDeterminism(0.6, 0.4, 1), Coherence(0.5, 2), Exploration(0.7, 0.2),
]  # fmt: skip
BLOCKS = [FixedBlocks(), FixedBlocks(2), AdaptiveBlocks(frozenset({1}), 4, 0.4)]


class Mixer:
    """A masked denoiser of any length whose scores depend on all that is known, at random but always the same."""

    noise, block, pad_id, window, longest = Noise.MASKED, None, None, None, 64
    width, mask_id, eos_ids = 6, 5, frozenset({4})

    def __init__(self, sharpness=2.0):
        self.sharpness = sharpness
        self.seen = []

    def scores(self, canvases):
        self.seen.append(len(canvases))
        found = [self._one(canvas) for canvas in canvases]
        return np.stack(found)

    def _one(self, canvas: Canvas):
        key = hash((canvas.prompt, tuple(canvas.tokens.tolist()))) % 2**32
        scores = self.sharpness * np.random.default_rng(key).normal(size=(len(canvas), self.width))
        # What is alike at all canvases of one length makes steps foreseeable.
        scores += 6 * self.sharpness * np.random.default_rng(len(canvas)).normal(size=scores.shape)
        scores[:, [4, 5]] = -np.inf
        return scores.astype(np.float32)


@pytest.mark.parametrize("blocks", each(BLOCKS, 2))
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_fills_every_canvas(policy, blocks):
    rng = np.random.default_rng(7)
    jobs = [
        Job((0,) * int(rng.integers(3)), int(length), fixed={int(rng.integers(length)): 2})
        for length in rng.integers(1, 12, 8)
    ]
    made = denoise(Mixer(), jobs, Denoising(policy, blocks))
    for job, text in zip(jobs, made, strict=True):
        assert len(text.tokens) == job.length == text.n_text and set(text.tokens) <= {0, 1, 2, 3}
        (place,) = job.fixed
        assert text.tokens[place] == 2
        committed = sum(frame.committed.astype(int) for frame in text.frames)
        assert (committed == [place != job_place for job_place in range(job.length)]).all() if job.length > 1 else True
        assert text.passes == len(text.frames) == text.scored <= job.length
        written = np.full(job.length, 2)
        for frame in text.frames:
            written[frame.committed] = frame.proposed[frame.committed]
        assert tuple(written) == text.tokens


@pytest.mark.parametrize(("joined", "blocks", "policy"), crossed([False, True], BLOCKS, POLICIES, share=6))
def test_drafts_change_nothing(policy, blocks, joined):
    jobs = [Job((n,), 9 + n) for n in range(4)]
    plain = denoise(Mixer(), jobs, Denoising(policy, blocks, joined=joined))
    for drafts in (1, 3):
        fast = denoise(Mixer(), jobs, Denoising(policy, blocks, drafts, joined))
        for one, other in zip(plain, fast, strict=True):
            assert one.tokens == other.tokens and len(one.frames) == len(other.frames)
            for mine, theirs in zip(one.frames, other.frames, strict=True):
                assert (mine.committed == theirs.committed).all() and (mine.proposed == theirs.proposed).all()
                np.testing.assert_array_equal(mine.confidence, theirs.confidence)
            assert other.passes <= one.passes


def test_drafts_of_independent_positions_are_all_right():
    joint = np.ones(())
    for share in np.random.default_rng(2).random(9):
        joint = np.multiply.outer(joint, [share, 1 - share])
    for drafts in (0, 1, 3):
        (text,) = denoise(TableDenoiser(joint), [Job((), 9)], Denoising(LowConfidence(9), drafts=drafts))
        # The first pass has no scores to draft from.
        assert text.passes == 1 + -(-8 // (drafts + 1)) and len(text.frames) == 9


def test_texts_share_passes():
    model = Mixer()
    denoise(model, [Job((n,), 6) for n in range(5)], Denoising(LowConfidence(3)))
    assert model.seen == [5, 5, 5]


def test_joined_blocks_are_prompts_of_shorter_canvases():
    class Watched(Mixer):
        def _one(self, canvas):
            shapes.append((len(canvas.prompt), len(canvas)))
            return super()._one(canvas)

    shapes: list[tuple[int, int]] = []
    (text,) = denoise(Watched(), [Job((0, 0), 6)], Denoising(LowConfidence(1), FixedBlocks(2), joined=True))
    assert shapes == [(2, 6), (4, 4), (6, 2)] and [frame.start for frame in text.frames] == [0, 2, 4]


def test_a_text_ends_where_the_model_ends_it():
    joint = np.zeros((3,) * 5)
    joint[0, 1, 2, 2, 2] = 1.0
    made = denoise(TableDenoiser(joint, eos_ids=[2]), [Job((), 5)], Denoising(LowConfidence(5)))
    assert made[0].tokens == (0, 1, 2, 2, 2) and made[0].text == (0, 1) and made[0].passes == 3


class FromTheLeft:
    """Its order does not depend on what was drawn, as one by confidence does."""

    memory = 0

    def commits(self, view):
        return np.arange(len(view.open)) == np.flatnonzero(view.open)[0]


def test_draws_one_by_one_follow_the_joint_law():
    joint = np.random.default_rng(1).random((2, 2, 2))
    denoiser = TableDenoiser(joint)
    n = some(4000, 8)
    made = denoise(denoiser, [Job((), 3, Free(1.0))] * n, Denoising(FromTheLeft()), 5)
    counts = Counter(text.tokens for text in made)
    for text, share in np.ndenumerate(joint / joint.sum()):
        # Four standard errors; the largest of these 8 is 1.9 of them.
        assert abs(counts[text] / n - share) < 4 * np.sqrt(share * (1 - share) / n)


def test_uniform_noise_is_drawn_anew_and_blocks_follow_each_other():
    class Uniform(Mixer):
        noise, block, mask_id, pad_id = Noise.UNIFORM, 4, None, 3

        def _one(self, canvas):
            canvases.append(canvas)
            return super()._one(canvas)

    canvases: list[Canvas] = []
    (text,) = denoise(Uniform(), [Job((1,), 6)], Denoising(LowConfidence(2)), 3)
    assert [len(canvas.prompt) for canvas in canvases] == [1, 1, 5, 5]
    assert canvases[0].tokens.tolist() != canvases[1].tokens.tolist()
    assert canvases[2].known.tolist() == [False, False, True, True] and canvases[2].tokens[2:].tolist() == [3, 3]
    assert len(text.tokens) == 6
    with pytest.raises(UnsupportedError, match="random one is not repeated"):
        denoise(Uniform(), [Job((1,), 6)], Denoising(drafts=1))


def test_a_long_text_is_shown_part_by_part():
    class Short(Mixer):
        window = 4

        def _one(self, canvas):
            shapes.append((len(canvas.prompt), len(canvas), canvas.unknown))
            return super()._one(canvas)

    shapes: list[tuple[int, int, int]] = []
    (text,) = denoise(Short(), [Job((0,), 10)], Denoising(LowConfidence(1)))
    assert shapes == [(1, 4, 4), (1, 8, 4), (1, 10, 2)] and len(text.tokens) == 10


def test_bad_input_is_refused():
    class Lazy(LowConfidence):
        def commits(self, view):
            return np.zeros_like(view.open)

    class Broken(Mixer):
        def scores(self, canvases):
            return np.full((len(canvases), len(canvases[0]), 6), np.nan, np.float32)

    for job, how, words in (
        (Job((0,) * 60, 5), Denoising(), "reads at most 64"),
        (Job((), 0), Denoising(), "at least one"),
        (Job((), 3, Free(1.0)), Denoising(drafts=1), "random one is not repeated"),
        (Job((), 3, fixed={3: 0}), Denoising(), "position 3 is fixed"),
        (Job((), 3), Denoising(Lazy(1)), "commits positions"),
    ):
        with pytest.raises(GuidedError, match=words):
            denoise(Mixer(), [job], how)
    with pytest.raises(GuidedError, match="scores of position 0 are nan"):
        denoise(Broken(), [Job((), 2)])
    for make, words in (
        (lambda: Denoising(drafts=-1), "0 or more"),
        (lambda: LowConfidence(0), "at least one"),
        (lambda: Threshold(1.5), "from 0 to 1"),
        (lambda: EntropyBound(float("nan")), "0 or more"),
        (lambda: LocalDeterminism(radius=-1), "0 or more"),
        (lambda: Coherence(memory=-1), "0 or more"),
        (lambda: FixedBlocks(0), "at least one"),
        (lambda: AdaptiveBlocks(frozenset()), "at least one id"),
        (lambda: Free(-1.0), "0 or more"),
    ):
        with pytest.raises(GuidedError, match=words):
            make()
