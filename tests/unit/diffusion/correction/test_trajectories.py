"""Weighted trajectories against the denoiser's law, by every random choice of a run."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest

import guided
from guided.diffusion.correction import Confident, Contrasted, Forward, Guided, Order, Shuffled, importance, smc
from guided.diffusion.denoiser import Canvas, Denoiser, Noise, blank
from guided.diffusion.lattice import LatticeLimits
from guided.diffusion.law import log_softmax
from guided.diffusion.table import TableDenoiser
from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.infer.chance import chance_of
from guided.testing.enumeration import enumerate_choices
from tests.tolerances import SUMS

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
CONSTRAINT = guided.compile(guided.regex("ab?|b+"), VOCABULARY)
EOS = 2


def table(length: int, seed: int = 0) -> TableDenoiser:
    joint = np.random.default_rng(seed).dirichlet(np.full(3**length, 0.4)).reshape([3] * length)
    return TableDenoiser(joint + 1e-3, [EOS])


def law(denoiser: Denoiser, canvas: Canvas, order: Order) -> dict[tuple[int, ...], float]:
    """The denoiser's law over texts, by all trajectories."""
    if not canvas.unknown:
        return {tuple(canvas.tokens.tolist()): 1.0}
    logp = log_softmax(denoiser.scores([canvas])[0])
    unknown = np.flatnonzero(~canvas.known).tolist()
    if isinstance(order, Shuffled):
        chosen = [list(each) for each in combinations(unknown, min(order.each, len(unknown)))]
    else:
        chosen = [order.places(canvas, logp, chance_of(0))]
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for places in chosen:
        for flat in range(3 ** len(places)):
            tokens = [flat // 3**i % 3 for i in range(len(places))]
            share = math.exp(sum(logp[place, token] for place, token in zip(places, tokens, strict=True)))
            for text, rest in law(denoiser, canvas.filled(places, tokens), order).items():
                found[text] += share * rest / len(chosen)
    return found


def is_text(tokens: tuple[int, ...]) -> bool:
    state = CONSTRAINT.start
    for token in tokens:
        state = CONSTRAINT.advance(state, token)
    return state == CONSTRAINT.end or CONSTRAINT.is_accepting(state)


def target(denoiser: Denoiser, length: int, order: Order, potential=None, fixed=None) -> dict[tuple[int, ...], float]:
    weigh = potential or (lambda text: 0.0)
    texts = law(denoiser, blank(denoiser, (), length, fixed), order)
    return {
        text: share * math.exp(weigh(text[: text.index(EOS)] if EOS in text else text))
        for text, share in texts.items()
        if is_text(text)
    }


def long_is_good(text: tuple[int, ...]) -> float:
    return 0.7 * len(text)


@pytest.mark.parametrize(
    ("length", "order", "n", "options"),
    [
        (2, Shuffled(), 2, {"ess_threshold": 1.0}),
        (2, Forward(), 2, {"ess_threshold": 1.0, "potential": long_is_good}),
        (3, Forward(2), 1, {}),
        (3, Confident(), 1, {"potential": long_is_good}),
        (3, Shuffled(2), 1, {}),
        (3, Shuffled(), 1, {"fixed": {1: 1}}),
        (3, Confident(3), 2, {}),
        (2, Forward(2), 1, {"fixed": {0: 1, 1: EOS}}),
    ],
)
def test_particles_are_weighted_properly(length, order, n, options) -> None:
    """The expected weight of each text is its probability under the denoiser, of texts outside the grammar none."""
    denoiser = table(length)
    expected: dict[tuple[int, ...], float] = defaultdict(float)
    z = total = 0.0
    for probability, population in enumerate_choices(
        lambda chance: smc(chance, denoiser, (), CONSTRAINT, length, n=n, order=order, **options)
    ):
        total += probability
        z += probability * math.exp(population.log_ml)
        for particle in population:
            assert sum(particle.increments) == pytest.approx(particle.logw, abs=SUMS) or population.resampled
            expected[particle.tokens] += probability * math.exp(particle.logw) / n
    wanted = target(denoiser, length, order, options.get("potential"), options.get("fixed"))
    assert total == pytest.approx(1, abs=SUMS)
    assert expected == pytest.approx(wanted, abs=SUMS)
    assert z == pytest.approx(sum(wanted.values()), abs=SUMS)


def test_runs_resample() -> None:
    """And what they say of themselves is what is known: `log_ml`, `ess`, costs."""
    denoiser = table(3, seed=1)
    wanted = math.log(sum(target(denoiser, 3, Shuffled()).values()))
    runs = [smc(seed, denoiser, (), CONSTRAINT, 3, n=32, ess_threshold=1.0) for seed in range(5)]
    assert any(run.resampled for run in runs)
    # Five standard errors, of draws from seeds; 1.6 are used.
    assert all(abs(run.log_ml - wanted) < 5 * run.log_ml_error for run in runs)
    assert all(1 <= run.ess <= 32 and run.cost.model_calls == 3 and run.cost.tokens == 96 for run in runs)


def test_importance_never_resamples() -> None:
    population = importance(0, table(3), (), CONSTRAINT, 3, n=16)
    assert not population.resampled
    assert len({particle.logw for particle in population}) > 3


def test_one_step_for_all_positions_has_equal_weights() -> None:
    """Then the lattice is the law itself, and its mass the weight."""
    population = smc(0, table(3), (), CONSTRAINT, 3, n=8, order=Confident(3))
    assert population.ess == pytest.approx(8)
    assert population.log_ml == pytest.approx(math.log(sum(target(table(3), 3, Confident(3)).values())))


@pytest.mark.parametrize(
    "make", [lambda one, two: Guided(one, 1.7, (1,)), lambda one, two: Contrasted(one, two, 0.5, 0.3)]
)
def test_steered_denoisers_are_corrected(make) -> None:
    """Their own law is the one that is sampled."""
    denoiser = make(table(2), table(2, seed=5))
    expected: dict[tuple[int, ...], float] = defaultdict(float)
    for probability, population in enumerate_choices(
        lambda chance: smc(chance, denoiser, (), CONSTRAINT, 2, n=1, order=Forward())
    ):
        for particle in population:
            expected[particle.tokens] += probability * math.exp(particle.logw)
    assert expected == pytest.approx(
        {text: share for text, share in target(denoiser, 2, Forward()).items() if share}, abs=SUMS
    )


class Prompted(TableDenoiser):
    """One table for a prompt, another for none."""

    def __init__(self, with_prompt: TableDenoiser, without: TableDenoiser) -> None:
        super().__init__(without._joint, [EOS])
        self.with_prompt = with_prompt

    def scores(self, canvases):
        rows = [
            self.with_prompt.scores([each])[0] if each.prompt else super(Prompted, self).scores([each])[0]
            for each in canvases
        ]
        return np.stack(rows)


def test_guidance() -> None:
    one, two = table(2, 1), table(2, 2)
    denoiser = Prompted(one, two)
    canvas = blank(denoiser, (0,), 2)
    with_it, without = log_softmax(one.scores([canvas])[0]), log_softmax(two.scores([canvas])[0])
    for scale in (0.0, 0.5, 1.0, 3.0):
        found = log_softmax(Guided(denoiser, scale).scores([canvas])[0])
        wanted = log_softmax(scale * with_it[:, :3] + (1 - scale) * without[:, :3])
        # Scores are rounded to float32.
        assert found[:, :3] == pytest.approx(wanted, abs=1e-5)
        assert (found[:, 3] == -np.inf).all()


def test_contrast() -> None:
    one, two = table(2, 1), table(2, 2)
    canvas = blank(one, (), 2)
    strong, weak = log_softmax(one.scores([canvas])[0]), log_softmax(two.scores([canvas])[0])
    assert log_softmax(Contrasted(one, two, 0.0, 0.0).scores([canvas])[0]) == pytest.approx(strong, abs=1e-5)  # float32
    found = Contrasted(one, two, 1.0, 0.2).scores([canvas])[0]
    kept = strong >= strong.max(1, keepdims=True) + math.log(0.2)
    assert np.array_equal(np.isfinite(found), kept)
    assert found[kept] == pytest.approx((2 * strong - np.where(kept, weak, 0))[kept], abs=1e-5)  # float32
    assert 2 < kept.sum() < 6


def test_refusals() -> None:
    denoiser = table(3)
    with pytest.raises(UnsatisfiableError, match="no text of the constraint fits"):
        smc(0, denoiser, (), guided.compile(guided.regex("a{4}"), VOCABULARY), 3)
    with pytest.raises(UnsatisfiableError, match="past position 1"):
        smc(0, denoiser, (), CONSTRAINT, 3, fixed={0: 0, 1: 0, 2: 0})
    with pytest.raises(LimitError, match=r"a lattice was cut.*cut=True"):
        smc(0, denoiser, (), CONSTRAINT, 3, limits=LatticeLimits(states=1))
    assert smc(0, denoiser, (), CONSTRAINT, 3, limits=LatticeLimits(states=1), cut=True).log_ml < 0
    with pytest.raises(GuidedError, match="potential of a text is nan"):
        smc(0, denoiser, (), CONSTRAINT, 3, potential=lambda text: math.nan)
    with pytest.raises(GuidedError, match="0 particles"):
        smc(0, denoiser, (), CONSTRAINT, 3, n=0)
    with pytest.raises(GuidedError, match="at least one"):
        Shuffled(0)
    with pytest.raises(GuidedError, match="scale of guidance"):
        Guided(denoiser, -1)
    with pytest.raises(GuidedError, match="a strength of"):
        Contrasted(denoiser, denoiser, math.nan)
    with pytest.raises(GuidedError, match="denoisers of 4 and 3 ids"):
        Contrasted(denoiser, TableDenoiser(np.ones((2, 2, 2))))
    denoiser.noise = Noise.UNIFORM
    with pytest.raises(UnsupportedError, match="takes tokens back"):
        smc(0, denoiser, (), CONSTRAINT, 3)


def test_texts_that_are_not_wanted() -> None:
    """All weight may be lost to a potential: no error and never NaN."""
    population = smc(0, table(2), (), CONSTRAINT, 2, n=4, potential=lambda text: -math.inf)
    assert population.log_ml == -math.inf
    assert population.ess == 0
