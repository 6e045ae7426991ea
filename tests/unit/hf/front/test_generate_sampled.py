"""`guided.generate` with samplers and steering, and the `custom_generate` of transformers."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import torch

import guided
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf import LoadedModel, TransformersModel, custom_generate, generate
from guided.hf.custom_generate import draws
from guided.infer import (
    Enumeration,
    Particle,
    Population,
    Ranked,
    Samples,
    TextPredicate,
    asap,
    best_of_n,
    cars,
    exact,
    importance,
    local,
    mcmc,
    rejection,
    smc,
    smc_steer,
)
from guided.steer import ClassifierFree, Contrastive, Stack
from tests.tolerances import SINGLE

CHOICES = ["yes", "no", "maybe"]

PLAIN = {"do_sample": True, "top_k": 0, "max_new_tokens": 8}
"""The model's own distribution; transformers' default is the 50 likeliest tokens."""


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module")
def constraint(loaded):
    return guided.compile(guided.choice(CHOICES), loaded.vocabulary)


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        (smc, Population),
        (importance, Population),
        (smc_steer, Population),
        (local, Samples),
        (asap, Samples),
        (functools.partial(mcmc, steps=2), Samples),
        (best_of_n, Ranked),
        (exact, Enumeration),
    ],
)
def test_every_sampler_through_the_one_call(loaded, constraint, sampler, kind):
    found = generate(loaded, "the cat", constraint, sampler=sampler, n=4, seed=1, max_new_tokens=8)
    assert isinstance(found, kind)
    texts = {particle.text for particle in found.particles if particle.finished}
    assert texts
    assert texts <= set(CHOICES)


def test_samplers_that_wait_for_the_language(loaded, vocabulary):
    # Likely enough under random weights to be found by drawing from the model alone.
    constraint = guided.compile(guided.regex("[a-z0-9 ]{0,3}|.{1,4}", dialect="python"), vocabulary)
    for sampler in (cars, rejection):
        found = generate(
            loaded, "the cat", constraint, sampler=functools.partial(sampler, batch=64), n=1, seed=0, max_new_tokens=6
        )
        assert isinstance(found, Samples) and len(found) == 1


def test_it_is_the_sampler_itself(loaded, constraint):
    prompt = loaded.tokenizer.encode("the cat")
    own = smc(7, TransformersModel(loaded), prompt, constraint, n=6, max_tokens=8)
    through = generate(loaded, "the cat", constraint, sampler=smc, n=6, seed=7, max_new_tokens=8)
    assert through.particles == own.particles
    assert through.log_ml == own.log_ml


def test_temperature_and_steering_come_before_the_grammar(loaded, constraint):
    model, prompt = TransformersModel(loaded), loaded.tokenizer.encode("the cat")
    steer = [ClassifierFree(scale=1.5)]
    plain = generate(loaded, "the cat", constraint, sampler=exact, max_new_tokens=8)
    warm = generate(loaded, "the cat", constraint, sampler=exact, max_new_tokens=8, temperature=0.5)
    steered = generate(loaded, "the cat", constraint, sampler=exact, max_new_tokens=8, steer=steer)
    by_hand = exact(Stack(steer).over(model), prompt, constraint, max_tokens=8)
    assert steered.log_ml == pytest.approx(by_hand.log_ml)
    assert len({round(each.log_ml, 6) for each in (plain, warm, steered)}) == 3


def test_steering_without_a_sampler(loaded, constraint, llama):
    small = TransformersModel(llama, loaded.tokenizer)
    own = generate(loaded, "the cat", constraint, max_new_tokens=8)
    same = generate(loaded, "the cat", constraint, max_new_tokens=8, steer=[])
    steered = generate(loaded, "the cat", constraint, max_new_tokens=8, steer=[Contrastive(small)])
    assert own == same
    assert steered.finished and steered.text in CHOICES


def test_lists_of_prompts_give_lists(loaded, constraint):
    found = generate(loaded, ["the cat", "a"], constraint, sampler=smc, n=3, seed=0, max_new_tokens=8)
    assert [type(each) for each in found] == [Population, Population]


def test_any_language_model_ids_and_potentials(loaded, vocabulary):
    model = TransformersModel(loaded)
    even = TextPredicate(vocabulary, lambda text: len(text) % 2 == 0)
    found = generate(model, loaded.tokenizer.encode("the cat"), even, sampler=smc, n=8, seed=0, max_new_tokens=4)
    assert all(len(particle.text) % 2 == 0 for particle in found.particles if particle.finished and particle.text)


def test_n_and_seed_without_a_sampler(loaded, constraint):
    state = torch.get_rng_state()
    first = generate(loaded, "the cat", constraint, n=3, seed=4, max_new_tokens=8)
    assert len(first) == 3
    assert torch.equal(state, torch.get_rng_state())
    assert generate(loaded, "the cat", constraint, n=3, seed=4, max_new_tokens=8) == first


def test_what_is_refused(loaded, constraint):
    with pytest.raises(GuidedError, match="smc has no option 'num_beams'"):
        generate(loaded, "the cat", constraint, sampler=smc, num_beams=2)
    with pytest.raises(TypeError, match=r"pass a function of guided\.infer"):
        generate(loaded, "the cat", constraint, sampler="smc")
    with pytest.raises(UnsupportedError, match="heal"):
        generate(loaded, "the cat", constraint, sampler=smc, heal=True)
    with pytest.raises(GuidedError, match="2 grammars for 1 prompts"):
        generate(loaded, "the cat", [constraint, constraint], sampler=smc)
    with pytest.raises(GuidedError, match="the model has room for"):
        generate(loaded, "the cat", constraint, sampler=smc, max_new_tokens=100_000)


def encoded(loaded, *prompts):
    return loaded.tokenizer(list(prompts), return_tensors="pt", padding=True, return_token_type_ids=False)


def test_custom_generate_draws_texts_of_the_grammar(loaded, constraint):
    batch = encoded(loaded, "the cat", "a")
    decode = custom_generate(constraint, n=4, seed=0)
    out = loaded.model.generate(**batch, custom_generate=decode, **PLAIN, num_return_sequences=3)
    width = batch["input_ids"].shape[1]
    assert out.shape[0] == 6
    assert torch.equal(out[:, :width], batch["input_ids"].repeat_interleave(3, 0))
    texts = loaded.tokenizer.batch_decode(out[:, width:], skip_special_tokens=True)
    assert set(texts) <= set(CHOICES)
    assert [type(each) for each in decode.results] == [Population, Population]
    own = smc(0, TransformersModel(loaded), loaded.tokenizer.encode("a"), constraint, n=2000, max_tokens=8)
    # An estimate by four particles.
    assert decode.results[1].log_ml == pytest.approx(own.log_ml, abs=3)


def test_custom_generate_reads_the_settings(loaded, constraint):
    batch = encoded(loaded, "the cat")
    settings = {"do_sample": True, "temperature": 0.5, "top_k": 0, "top_p": 1.0, "max_new_tokens": 8}
    decode = custom_generate(constraint, sampler=exact)
    out = loaded.model.generate(**batch, custom_generate=decode, return_dict_in_generate=True, **settings)
    assert out.sequences.shape[0] == 1
    warm = generate(loaded, "the cat", constraint, sampler=exact, max_new_tokens=8, temperature=0.5)
    assert decode.results[0].log_ml == pytest.approx(warm.log_ml, abs=SINGLE)


def test_custom_generate_with_an_encoder(t5, tokenizer):
    loaded = LoadedModel("t5", t5, tokenizer)
    constraint = guided.compile(guided.choice(CHOICES), loaded.vocabulary)
    batch = encoded(loaded, "the cat sat", "a")
    out = t5.generate(**batch, custom_generate=custom_generate(constraint, n=2, seed=0), max_new_tokens=8)
    assert set(tokenizer.batch_decode(out[:, 1:], skip_special_tokens=True)) <= set(CHOICES)


def test_custom_generate_refuses_what_it_cannot_do(loaded, constraint):
    batch = encoded(loaded, "the cat")
    for options, word in (
        ({"num_beams": 2}, "beams"),
        ({"repetition_penalty": 1.5}, "RepetitionPenalty"),
        ({"max_time": 1.0}, "MaxTime"),
    ):
        with pytest.raises(UnsupportedError, match=word):
            loaded.model.generate(**batch, custom_generate=custom_generate(constraint), max_new_tokens=8, **options)
    short = custom_generate(guided.compile(guided.regex("[abc]{40}"), loaded.vocabulary), seed=0)
    with pytest.raises(LimitError, match="no whole text"):
        loaded.model.generate(**batch, custom_generate=short, max_new_tokens=3)


def test_draws_follow_the_weights():
    particles = tuple(Particle((i,), b"", logw) for i, logw in enumerate((math.log(0.75), -math.inf, math.log(0.25))))
    found = draws(Population(particles, 0.0), np.random.default_rng(0), 4000)
    counts = np.bincount([particle.tokens[0] for particle in found], minlength=3) / 4000
    # Four standard errors of 4000 draws.
    assert counts == pytest.approx([0.75, 0, 0.25], abs=0.03)
    every = draws(Samples(particles), np.random.default_rng(0), 3)
    assert [particle.tokens[0] for particle in every] == [0, 1, 2]
