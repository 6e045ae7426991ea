"""`guided.generate` with entropy adaptive decoding: two Llamas in turn, against the loop written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import guided
from guided.draft import auto
from guided.errors import GuidedError, UnsupportedError
from guided.hf import LoadedModel, SteeringLogitsProcessor, TransformersModel, generate
from guided.hf.speculation import draft_generate
from guided.infer import local
from guided.lm import next_logits
from guided.search import beam_search
from guided.steer import Contrastive, EntropyAdaptive, FastAndSlow, Momentum, Stack

BUDGET = 14
WINDOW, LEAST = 3, 1


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module")
def small(draft_llama, tokenizer):
    return TransformersModel(draft_llama, tokenizer)


@pytest.fixture(scope="module")
def language(vocabulary):
    return guided.compile(guided.regex(r"[a-z]{2,}( [a-z]+)*"), vocabulary)


def middle(small, loaded):
    """A threshold between entropies that occur."""
    prompts = [loaded.tokenizer.encode(text) for text in ("the cat", "yes no", "a", "mat on")]
    p = torch.softmax(next_logits(small, prompts).double(), -1)
    # Not one of them: whether it lies above itself would be up to rounding.
    return float((-(p * p.log2()).sum(-1)).sort().values[1:3].mean())


def by_hand(loaded, small, language, prompt, threshold):
    large = TransformersModel(loaded)
    text, used, entropies = (), [], []
    current, since, state = small, 0, language.start
    while True:
        if text:
            since += 1
            mean = sum(entropies[-WINDOW:]) / len(entropies[-WINDOW:])
            wanted = large if mean > threshold else small
            if since >= LEAST and wanted is not current:
                current, since = wanted, 0
        logits = next_logits(current, [(*prompt, *text)])[0].double()
        p = torch.softmax(logits, -1)
        entropies.append(float(-(p * p.log2()).sum()))
        used.append(current is large)
        row = np.zeros(language.vocabulary.n_words, np.uint32)
        language.fill_budget_mask(state, row, BUDGET - len(text))
        allowed = [bool(row[token >> 5] >> (token & 31) & 1) for token in range(language.vocabulary.size)]
        token = int(torch.where(torch.tensor(allowed), logits[: len(allowed)], -torch.inf).argmax())
        if token in language.vocabulary.eos_ids:
            return text, used
        text = (*text, token)
        state = language.advance(state, token)


def test_greedy_is_the_loop_written_out_in_batches_too(loaded, small, language):
    threshold = middle(small, loaded)
    steer = EntropyAdaptive(small, threshold, WINDOW, LEAST)
    prompts = ["the cat", "a", "yes no maybe"]
    made = generate(loaded, prompts, language, steer=[steer], max_new_tokens=BUDGET)
    switched = set()
    for prompt, one in zip(prompts, made):
        wanted, used = by_hand(loaded, small, language, loaded.tokenizer.encode(prompt), threshold)
        assert one.token_ids == wanted
        assert one.finished and one.drafts is None
        switched |= set(used)
    assert switched == {True, False}, "the threshold lies where both are asked"
    single = generate(loaded, prompts[0], language, steer=steer, max_new_tokens=BUDGET)
    assert single == made[0]


def test_the_small_model_alone_and_the_large_one_not_run(loaded, small, language):
    alone = generate(small.model, "the cat", language, tokenizer=loaded.tokenizer, max_new_tokens=BUDGET)
    assert generate(
        loaded, "the cat", language, steer=[EntropyAdaptive(small, math.inf)], max_new_tokens=BUDGET
    ).token_ids == alone.token_ids  # fmt: skip


def test_draws_are_seeded_and_shaped(loaded, small, language):
    steer = [EntropyAdaptive(small, middle(small, loaded), WINDOW, LEAST)]
    made = [
        generate(loaded, "the cat", language, steer=steer, max_new_tokens=BUDGET, do_sample=True, top_k=0, seed=seed)
        for seed in (1, 1, 2, 3)
    ]
    assert made[0] == made[1] and len({one.text for one in made}) > 1
    cold = generate(
        loaded, "the cat", language, steer=steer, max_new_tokens=BUDGET, do_sample=True, temperature=1e-4, seed=1
    )
    assert cold == generate(loaded, "the cat", language, steer=steer, max_new_tokens=BUDGET)


def test_more_steering_samplers_and_searches(loaded, small, language):
    steer = [EntropyAdaptive(small, middle(small, loaded), WINDOW, LEAST), Contrastive(small, alpha=0.1)]
    made = generate(loaded, "the cat", language, steer=steer, max_new_tokens=BUDGET)
    assert made.finished
    model = Stack(steer).over(TransformersModel(loaded))
    prompt = loaded.tokenizer.encode("the cat")
    found = generate(loaded, "the cat", language, steer=steer, search=beam_search, max_new_tokens=BUDGET)
    own = beam_search(model, prompt, language, max_tokens=BUDGET)
    assert found[0].tokens == own[0].tokens
    drawn = generate(loaded, "the cat", language, steer=steer, sampler=local, n=3, seed=0, max_new_tokens=BUDGET)
    assert len(drawn) == 3


def test_what_it_does_not_go_with(loaded, small, language):
    steer = EntropyAdaptive(small, 1.0)
    with pytest.raises(UnsupportedError, match="drafts would save nothing"):
        generate(loaded, "a", language, steer=[steer], draft=auto(), max_new_tokens=BUDGET)
    with pytest.raises(UnsupportedError, match="drafts would save nothing"):
        draft_generate(language, steer=steer)
    with pytest.raises(UnsupportedError, match="beams"):
        generate(loaded, "a", language, steer=[steer], num_beams=2, max_new_tokens=BUDGET)
    with pytest.raises(UnsupportedError, match="assistant_model cannot be combined with EntropyAdaptive"):
        generate(loaded, "a", language, steer=[steer], assistant_model=small.model, max_new_tokens=BUDGET)
    processor = SteeringLogitsProcessor([Momentum()], TransformersModel(loaded))
    with pytest.raises(UnsupportedError, match="neither can two models take turns"):
        generate(loaded, "a", language, steer=[steer], logits_processor=[processor], max_new_tokens=BUDGET)
    with pytest.raises(UnsupportedError, match="transformers' loop runs the large model"):
        SteeringLogitsProcessor([steer], TransformersModel(loaded))
    for given in ([Momentum(), steer], [steer, steer], [Stack([Momentum()]), Stack([steer])]):
        with pytest.raises(GuidedError, match="EntropyAdaptive is not the first"):
            Stack(given)
    with pytest.raises(GuidedError, match="is no steerer"):
        Stack([steer, 3])
    assert Stack([Stack([steer, Momentum()]), Momentum()]).adaptive is steer
    assert bool(Stack([steer])) and not Stack()


def test_fast_and_slow_is_the_loop_written_out(loaded, small, language):
    large = TransformersModel(loaded)
    prompt = loaded.tokenizer.encode("the cat")
    text, state, asked = (), language.start, []
    while True:
        logits = next_logits(small, [(*prompt, *text)])[0].double()
        asked.append(bool(torch.softmax(logits, -1).max() < 0.02))
        if asked[-1]:
            logits = next_logits(large, [(*prompt, *text)])[0].double()
        row = np.zeros(language.vocabulary.n_words, np.uint32)
        language.fill_budget_mask(state, row, BUDGET - len(text))
        allowed = [bool(row[token >> 5] >> (token & 31) & 1) for token in range(language.vocabulary.size)]
        token = int(torch.where(torch.tensor(allowed), logits[: len(allowed)], -torch.inf).argmax())
        if token in language.vocabulary.eos_ids:
            break
        text = (*text, token)
        state = language.advance(state, token)
    made = generate(loaded, "the cat", language, steer=FastAndSlow(small, 0.02), max_new_tokens=BUDGET)
    assert made.token_ids == text
    assert set(asked) == {True, False}, "the threshold lies where both are asked"
