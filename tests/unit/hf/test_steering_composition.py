"""Stacks of three under a JSON Schema: every position that a decoder asked about, as if computed alone and unbatched.

Beams, sampling, searches, SMC and drafts over rows of different lengths; what the stack said there is recorded and
computed again for one text at a time, with nothing shared.
"""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch

import guided
from guided.draft import PromptLookup, speculate
from guided.hf import GuidedLogitsProcessor, SteeringLogitsProcessor, TransformersModel
from guided.infer import AWRS, Direct, local, smc
from guided.search import beam_search, best_first_beam_search
from guided.steer import (
    RAD,
    Activations,
    Added,
    ClassifierFree,
    ContextAdaptive,
    Contrastive,
    ContrastiveSearch,
    Declaration,
    DeCoRe,
    Deferral,
    DExperts,
    DoLa,
    DomainMixture,
    DynamicFocus,
    Instructive,
    LayersOverLayers,
    Mixture,
    ModelReward,
    Momentum,
    Nudging,
    Prefixed,
    Product,
    ProxyTuning,
    ReferenceSpace,
    Replaced,
    SelfDebiasing,
    Stack,
    TextReward,
)

PROMPTS = [(5, 9, 31, 7), (8, 6), (40, 41, 42, 40, 41, 42)]
SCHEMA = {"type": "array", "items": {"enum": ["a", 12, True]}, "minItems": 1, "maxItems": 2}
BUDGET = 10
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def base(llama):
    return TransformersModel(llama)


@pytest.fixture(scope="module")
def constraint(vocabulary):
    return guided.compile(guided.json_schema(SCHEMA, whitespace=None), vocabulary)


@pytest.fixture(scope="module")
def steerers(base, draft_llama):
    amateur = TransformersModel(draft_llama)
    text = TextReward(lambda texts: [len(each) % 7 / 7 for each in texts], lambda ids: " ".join(map(str, ids)))
    head = ModelReward(lambda hidden: torch.sigmoid(hidden[:, :4].sum(-1)), amateur)
    return {
        "contrastive": Contrastive(amateur, alpha=1e-6),
        "dexperts": DExperts(amateur, base, alpha=0.5, top_p=1.0),
        "proxy": ProxyTuning(amateur, base, alpha=0.3),
        "mixture": Mixture((amateur,), (1.0, 0.5)),
        "product": Product((amateur,), (1.0, 0.5)),
        "nudging": Nudging(amateur, 0.4),
        "deferral": Deferral(amateur, lambda hidden: hidden[:, 0], threshold=None),
        "domains": DomainMixture((amateur,), (0.6, 0.4)),
        "activations": Activations((Added(0.3 * torch.ones(32, dtype=torch.float64), 1, from_prompt_end=True),)),
        "caad": ContextAdaptive(ReferenceSpace.of(base, [(5, 9, 31, 7), (8, 6, 40)]), 0.5, 2),
        "cfg": ClassifierFree(1.3, Replaced((9, 17))),
        "instructive": Instructive(Prefixed((3, 4))),
        "debias": SelfDebiasing((Prefixed((9,)), Prefixed((3, 4)))),
        "dola": DoLa((0, 1), relative_top=1e-9),
        "lol": LayersOverLayers(amateur, 0),
        "decore": DeCoRe(((0, 1), (1, 2))),
        "focus": DynamicFocus(sigma=4.0),
        "rad": RAD(text, beta=1.0, top_k=300),
        "rad-model": RAD(head, beta=1.0, top_k=300),
        "momentum": Momentum(top_k=300),
        "search": ContrastiveSearch(top_k=300),
    }


class Recorder:
    """A last steerer that changes nothing and notes what came to it, by prompt length and text."""

    def __init__(self):
        self.seen = []

    def declare(self, model):
        return Declaration(text=True, prompt_end=True)

    def steer(self, logits, seen):
        self.seen += zip(seen.prompt_lengths, seen.texts, logits.clone(), strict=True)
        return logits


def stack_of_three(steerers, number):
    """Stacks of three in any order; the first six have each method once, or nearly so."""
    rnd = random.Random(4)
    names = [name for _ in range(5) for name in rnd.sample(sorted(steerers), len(steerers))]
    return tuple(names[3 * number : 3 * number + 3])


ROUNDS = [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, 4))]


def differ(found, wanted):
    """The largest difference of two rows' probabilities."""
    return float((torch.softmax(found.double(), -1) - torch.softmax(wanted.double(), -1)).abs().max())


def check_alone(recorded, base, chosen):
    """A sample of what was recorded, against the same stack over one row that reads one token at a time."""
    assert recorded
    for n_prompt, text, logits in random.Random(0).sample(recorded, min(6, len(recorded))):
        alone = Stack(chosen).over(base).start([text[:n_prompt]])
        for token in text[n_prompt:]:
            alone.extend([[token]])
        assert differ(logits, alone.last.logits[0]) < TOLERANCE, text


def by_sampling(model, constraint, rng):
    for prompt in PROMPTS:
        local(rng, model, prompt, constraint, n=3, max_tokens=BUDGET)


def by_smc(model, constraint, rng):
    for prompt, sampler in zip(PROMPTS[:2], (Direct(), AWRS())):
        smc(rng, model, prompt, constraint, n=4, max_tokens=BUDGET, sampler=sampler, ess_threshold=0.9)


def by_searching(model, constraint, rng):
    beam_search(model, PROMPTS[0], constraint, width=3, max_tokens=BUDGET)
    best_first_beam_search(model, PROMPTS[2], constraint, width=3, max_tokens=BUDGET, batch=2)


def by_drafts(model, constraint, rng):
    speculate(rng, model, PROMPTS, [constraint] * len(PROMPTS), PromptLookup(), max_tokens=BUDGET)


DECODERS = [by_sampling, by_smc, by_searching, by_drafts]


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("number", ROUNDS)
def test_decoders_see_what_each_row_alone_would(decode, number, base, constraint, steerers):
    names = stack_of_three(steerers, 6 * number + DECODERS.index(decode))
    chosen = [steerers[name] for name in names]
    recorder = Recorder()
    decode(Stack([*chosen, recorder]).over(base), constraint, np.random.default_rng(0))
    check_alone(recorder.seen, base, chosen)


class Recorded(SteeringLogitsProcessor):
    """Keeps what it was asked and what it said."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.calls = []

    def __call__(self, input_ids, scores):
        found = super().__call__(input_ids, scores)
        self.calls += zip(input_ids.tolist(), scores.clone(), found.clone(), strict=True)
        return found


@pytest.mark.parametrize("how", ["beams", "sampling"])
@pytest.mark.parametrize("number", ROUNDS)
def test_batches_in_transformers(how, number, llama, base, constraint, steerers, tokenizer):
    """The grammar, the stack, the grammar again, on a padded batch; each row computed alone has the same scores."""
    beams = how == "beams"
    options = {"num_beams": 3} if beams else {"do_sample": True, "top_k": 0, "num_return_sequences": 2}
    names = stack_of_three(steerers, 6 * number + (4 if beams else 5))
    chosen = [steerers[name] for name in names]
    width = max(map(len, PROMPTS))
    ids = torch.tensor([[0] * (width - len(prompt)) + list(prompt) for prompt in PROMPTS])
    mask = GuidedLogitsProcessor(constraint, max_new_tokens=BUDGET)
    steering = Recorded(chosen, base, pad_token_id=0)
    torch.manual_seed(0)
    texts = llama.generate(
        ids,
        attention_mask=(ids != 0).long(),
        logits_processor=[mask, steering, mask],
        max_new_tokens=BUDGET,
        pad_token_id=0,
        **{"do_sample": False, **options},
    )[:, width:]
    for text in texts:
        assert 1 <= len(json.loads(tokenizer.decode(text, skip_special_tokens=True))) <= 2
    whole = [call for call in steering.calls if 2 not in call[0][width:]]
    for row, masked, found in random.Random(0).sample(whole, min(6, len(whole))):
        prompt = tuple(token for token in row[:width] if token)
        text = torch.tensor([[*prompt, *row[width:]]])
        with torch.no_grad():
            plain = llama(text).logits[:, -1]
        # Beam search hands over log-probabilities, sampling logits: their softmax is the same.
        own = torch.where(masked[None] == -torch.inf, -torch.inf, torch.log_softmax(plain, -1))
        given = own if beams else torch.where(own == -torch.inf, own, plain)
        alone = SteeringLogitsProcessor(chosen, base, prompt_length=len(prompt))(text, given)
        assert differ(found, alone[0]) < TOLERANCE, names
