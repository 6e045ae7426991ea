"""The samplers on the packaged model: float32 scores, a cache that forks and rolls back, and an enumerated truth."""

from __future__ import annotations

import json
import math

import pytest

import guided
from guided.hf import load
from guided.hf.language_model import TransformersModel
from guided.infer.analysis.choices import choice_probabilities
from guided.infer.analysis.distortion import distortions
from guided.infer.analysis.enumeration import exact
from guided.infer.analysis.fields import posteriors
from guided.infer.populations.smc import smc
from guided.infer.result import pooled
from guided.infer.sequences.asap import asap
from guided.infer.sequences.cars import cars
from guided.infer.sequences.mcmc import mcmc
from guided.infer.sequences.rejection import rejection
from guided.infer.token_samplers.awrs import AWRS
from guided.infer.weights import log_sum_exp
from guided.lm import next_logits, transformed
from guided.nano import extraction_prompt
from tests.tolerances import PASSES

SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99}, "city": {"enum": ["Paris", "London"]}},
    "required": ["age", "city"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def task():
    loaded = load("nano")
    # Hot enough that much is outside of the language.
    model = transformed(TransformersModel(loaded), temperature=1.6)
    prompt = loaded.tokenizer(extraction_prompt(SCHEMA, "Ada is 36 years old and lives in Paris."))["input_ids"]
    return model, prompt, guided.compile(guided.json_schema(SCHEMA), loaded.vocabulary)


@pytest.fixture(scope="module")
def truth(task):
    return exact(*task, max_tokens=24, mass=0.9)


def test_samples_and_bounds_agree_with_the_enumeration(task, truth):
    low, high = truth.log_ml, math.log(math.exp(truth.log_ml) + math.exp(truth.log_rest))
    assert 0.3 < math.exp(low) <= math.exp(high) < 1 and math.exp(high - low) < 1 / 0.899
    n = 60
    samples = {
        "cars": cars(1, *task, n=n, max_tokens=24),
        "rejection": rejection(2, *task, n=n, max_tokens=24),
        "asap": asap(3, *task, n=n, max_tokens=24, batch=8),
        "mcmc": mcmc(4, *task, n=n, max_tokens=24, steps=4, batch=50),
    }
    best, share = next(iter(truth.posterior().items()))
    assert json.loads(best) == {"age": 36, "city": "Paris"}
    # Its true probability, from what was found and what was not looked at.
    least, most = share * math.exp(low - high), share + 1 - math.exp(low - high)
    error = 4 * math.sqrt(0.25 / n)
    for name, found in samples.items():
        assert len(found) == n and all(json.loads(p.data)["city"] in ("Paris", "London") for p in found), name
        assert least - error <= found.posterior().get(best, 0.0) <= most + error, name
    for name in ("cars", "rejection"):
        assert math.exp(low) - 0.2 < math.exp(samples[name].log_ml) < math.exp(high) + 0.2
    assert samples["asap"].log_ml >= low - 1e-6
    assert samples["cars"].acceptance > samples["rejection"].acceptance
    fields = posteriors(samples["cars"])
    assert fields["/age"].best == 36 and fields["/city"].best == "Paris" and fields["/age"].absent == 0


def test_kept_masses_are_those_of_the_trie(task, truth):
    tokens = [particle.tokens for particle in truth.particles[:12]]
    for particle, found in zip(truth.particles, distortions(*task, tokens), strict=False):
        assert found.log_prob == pytest.approx(particle.logw, abs=PASSES)
        assert found.log_weight <= 0 and all(0 <= each.removed <= 1 for each in found.tokens)
        assert set(found.per_field) == {"", "/age", "/city"}


def test_forgotten_rows_are_read_again_alike(task):
    rich, poor = (cars(7, *task, n=12, max_tokens=24, memory=memory) for memory in (1 << 24, 20_000))
    # Batches of another shape may differ in the last digits, which a draw hardly ever meets.
    assert sum(a.tokens == b.tokens for a, b in zip(rich, poor, strict=True)) >= 9


def test_choices_sum_over_spellings(task):
    model, prompt, constraint = task
    choices = guided.compile(guided.choice(["36", "63", "3"]), constraint.vocabulary)
    begun = [*prompt, *[t for t, data in enumerate(constraint.vocabulary.tokens) if data == b"{"][:1]]
    found = choice_probabilities(model, begun, choices)
    assert math.fsum(found.values()) == pytest.approx(1) and found.tokenisations["36"] >= 2


def test_what_the_model_hardly_ever_says(task):
    """At temperature 0.2 float32 holds neither the weights of rare tokens nor the counts of what is rejected first."""
    _, prompt, constraint = task
    model = transformed(TransformersModel(load("nano")), temperature=0.2)
    vocabulary = constraint.vocabulary
    [scores] = next_logits(model, [prompt]).double()
    first = scores - scores.logsumexp(0)
    letters = [bytes([byte]) for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    single = [token for token in range(vocabulary.size) if vocabulary.token_bytes(token) in letters]
    texts = {vocabulary.token_bytes(token) for token in sorted(single, key=lambda token: float(first[token]))[:2]}
    # A letter may be spelled by several tokens.
    spelled = [token for token in single if vocabulary.token_bytes(token) in texts]
    ends = next_logits(model, [[*prompt, token] for token in spelled]).double()
    ends = ends[:, list(vocabulary.eos_ids)].logsumexp(1) - ends.logsumexp(1)
    weights = [float(first[token] + end) for token, end in zip(spelled, ends, strict=True)]
    assert max(weights) < -60
    grammar = guided.compile(guided.choice([text.decode() for text in texts]), vocabulary)
    sampler = AWRS(masks=False, narrow_after=None)
    runs = [smc(seed, model, prompt, grammar, n=8, max_tokens=2, sampler=sampler) for seed in range(4)]
    joined = pooled(runs)
    assert joined.cost.tested > joined.cost.tokens
    # Four runs of eight particles, by seeds: off by 0.2.
    assert joined.log_ml == pytest.approx(log_sum_exp(weights), abs=1.5)
    # Five standard errors.
    assert joined.log_ml == pytest.approx(log_sum_exp(weights), abs=5 * joined.log_ml_error)
