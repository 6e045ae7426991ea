"""`guided.generate(draft=)`: what comes out is that of `guided.generate` without, and each result says what it cost."""

from __future__ import annotations

import functools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from transformers import LogitsProcessor

import guided
from guided.draft import BestFirst, Chain, Drafting, Fixed, ForcedBytes, Model, PromptLookup, Recycling, Union, auto
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf import LoadedModel, TransformersModel, generate
from guided.infer import Direct, exact, importance, mcmc, smc
from guided.search import beam_search
from guided.steer import ClassifierFree, Contrastive, DoLa, Momentum
from tests.amounts import each, mostly_slow, some
from tests.tolerances import SINGLE

WORDS = ["yes", "no", "maybe", "the cat", "the mat", "[1, 22]"]
LONG = '["a", "b", [1, 22, 333]], ["a", "b", [1, 22'


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module")
def small(draft_llama, tokenizer):
    return TransformersModel(draft_llama, tokenizer)


@pytest.fixture(scope="module")
def words(vocabulary):
    return guided.compile(guided.choice(WORDS), vocabulary)


def drafts(small):
    return [
        auto(),
        Drafting(PromptLookup(), Fixed(6)),
        Drafting(BestFirst(ForcedBytes(), Recycling(), floor=0.0), Fixed(12)),
        Drafting(Model(small, Chain(3)), Fixed(3)),
    ]


def same(plain, drafted):
    """Texts, tokens and ends; returns the statistics."""
    plain, drafted = ([each] if not isinstance(each, list) else each for each in (plain, drafted))
    assert [(one.text, one.token_ids, one.finished) for one in plain] == [
        (one.text, one.token_ids, one.finished) for one in drafted
    ]
    assert all(one.drafts is None for one in plain)
    return drafted[0].drafts


def test_greedy_batches_with_a_grammar_each(loaded, small, constraints):
    prompts = [LONG, "yes no", "{", LONG]
    grammars = [constraints["nested"], constraints["record"], constraints["record"], constraints["answer"]]
    plain = generate(loaded, prompts, grammars, max_new_tokens=24, do_sample=False)
    for draft in drafts(small):
        for _ in range(2):
            counts = same(plain, generate(loaded, prompts, grammars, max_new_tokens=24, do_sample=False, draft=draft))
            assert counts.tokens == sum(len(one.token_ids) + one.finished for one in plain)
            assert counts.passes < max(len(one.token_ids) for one in plain) + 1
            assert counts.accepted <= counts.drafted
            assert counts.row_passes >= counts.passes > 0
            assert counts.model_seconds > 0 and counts.verify_seconds > 0 and counts.constraint_seconds > 0
            assert counts.tokens_per_pass == counts.tokens / counts.row_passes


@pytest.mark.parametrize(
    "options",
    each(
        [
            {"heal": True},
            {"canonical": True},
            {"repetition_penalty": 1.7},
            {"no_repeat_ngram_size": 2},
            {"min_new_tokens": 9},
            {"suppress_tokens": [70, 71, 80]},
            {"num_beams": 1, "temperature": 0.4},
        ],
        2,
    ),
    ids=lambda options: next(iter(options)),
)
def test_greedy_with_the_options_of_generate(loaded, small, tokenizer, options):
    grammar = guided.regex('[a-z0-9 ,\\[\\]"]{0,80}')
    prompts = ['["a", "b", [1, 22', "yes no may"]
    plain = generate(loaded, prompts, grammar, max_new_tokens=16, do_sample=False, **options)
    for draft in drafts(small):
        same(plain, generate(loaded, prompts, grammar, max_new_tokens=16, do_sample=False, draft=draft, **options))


@pytest.mark.parametrize("make", mostly_slow([
    lambda small: [Contrastive(small)], lambda small: [ClassifierFree(scale=1.5)], lambda small: [DoLa()],
    lambda small: [Momentum(), Contrastive(small, alpha=0.5)],
], 2), ids=["contrastive", "classifier-free", "dola", "two"])  # fmt: skip
def test_greedy_with_steering(loaded, small, constraints, make):
    """Candidates are of allowed tokens, with drafts as without."""
    prompts, grammars = (
        [LONG, "yes no", "the cat"],
        [constraints["nested"], constraints["record"], constraints["nested"]],
    )
    plain = generate(loaded, prompts, grammars, max_new_tokens=16, do_sample=False, steer=make(small))
    for draft in (auto(), Drafting(Model(small, Chain(3)), Fixed(3))):
        same(
            plain,
            generate(loaded, prompts, grammars, max_new_tokens=16, do_sample=False, steer=make(small), draft=draft),
        )


def test_encoder_decoder_models(t5, tokenizer, constraints):
    loaded = LoadedModel("t5", t5, tokenizer)
    prompts, grammars = [LONG, "yes no"], [constraints["nested"], constraints["record"]]
    plain = generate(loaded, prompts, grammars, max_new_tokens=20, do_sample=False)
    same(plain, generate(loaded, prompts, grammars, max_new_tokens=20, do_sample=False, draft=auto()))


def test_several_texts_of_each_prompt(loaded, words):
    found = generate(loaded, ["the cat", LONG], words, n=5, seed=3, draft=auto(), top_k=0, max_new_tokens=8)
    assert len(found) == 10
    assert {one.text for one in found} <= set(WORDS) and len({one.text for one in found}) > 1
    again = generate(loaded, ["the cat", LONG], words, n=5, seed=3, draft=auto(), top_k=0, max_new_tokens=8)
    assert [one.text for one in found] == [one.text for one in again]
    one = generate(loaded, "the cat", words, n=1, draft=auto(), max_new_tokens=8)
    assert isinstance(one, list) and len(one) == 1


def law_of(loaded, constraint, prompt, budget, **settings):
    """The law of transformers' loop with the grammar, by its own processors: each text with its probability."""
    from transformers import GenerationConfig

    from guided.hf import GuidedLogitsProcessor

    config = GenerationConfig(do_sample=True, **settings)
    config._eos_token_tensor = torch.tensor([2])
    warpers = loaded.model._get_logits_processor(config, input_ids_seq_length=len(prompt), device="cpu")
    mask = GuidedLogitsProcessor(constraint, max_new_tokens=budget, prompt_length=len(prompt))
    found, open_texts = {}, {(): 1.0}
    while open_texts:
        text, probability = open_texts.popitem()
        ids = torch.tensor([[*prompt, *text]])
        with torch.no_grad():
            scores = mask(ids, loaded.model(ids).logits[:, -1])
        shares = torch.softmax(warpers(ids, scores)[0].double(), -1)
        for token in torch.nonzero(shares)[:, 0].tolist():
            one = probability * float(shares[token])
            if token == 2:
                found[(*text, token)] = one
            else:
                open_texts[(*text, token)] = one
    assert math.fsum(found.values()) == pytest.approx(1)
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 0, "temperature": 2.5},
        {"top_k": 2, "temperature": 6.0},
        {"top_k": 0, "top_p": 0.8, "temperature": 6.0},
        {"top_k": 0, "min_p": 0.3, "temperature": 6.0},
    ],
    ids=["temperature", "top-k", "top-p", "min-p"],
)
def test_drawn_texts_have_the_law_of_the_loop_without_drafts(loaded, small, words, settings):
    """Truncation sees allowed tokens only.  A chi-square test at one in a million."""
    prompt = loaded.tokenizer.encode("the cat")
    law = law_of(loaded, words, prompt, 8, **settings)
    assert len(law) > 3
    n = some(800, 8)
    for draft in (Drafting(Union(PromptLookup(1), Model(small, Chain(2))), Fixed(3)),):
        found = generate(loaded, "the cat", words, n=n, seed=1, max_new_tokens=8, draft=draft, **settings)
        counts = Counter((*one.token_ids, 2) for one in found)
        assert set(counts) <= set(law)
        common = {text: n * share for text, share in law.items() if n * share >= 5}
        rest = n - sum(common.values())
        square = sum((counts[text] - expected) ** 2 / expected for text, expected in common.items())
        if rest >= 5:
            square += (n - sum(counts[text] for text in common) - rest) ** 2 / rest
        k = len(common) - (rest < 5)
        assert square < max(k, 1) * (1 - 2 / (9 * max(k, 1)) + 4.753 * (2 / (9 * max(k, 1))) ** 0.5) ** 3


def test_temperature_reaches_a_drawn_draft(loaded):
    """The model as its own draft proposes what it would have said."""
    grammar = guided.regex("[a-z ]{0,40}")
    options = {"max_new_tokens": 24, "temperature": 0.2, "seed": 5}
    draft = Drafting(Model(TransformersModel(loaded), Chain(3)), Fixed(3))
    counts = generate(loaded, "the cat", grammar, n=6, draft=draft, **options)[0].drafts
    assert counts.drafted > 50 and counts.accepted > 0.85 * counts.drafted


def test_samplers_that_draft(loaded, words, small):
    for sampler in (smc, importance, functools.partial(smc, sampler=Direct(), ess_threshold=1.0)):
        plain = generate(loaded, "the cat", words, sampler=sampler, n=6, seed=2, max_new_tokens=8)
        drafted = generate(
            loaded, "the cat", words, sampler=sampler, n=6, seed=2, max_new_tokens=8,
            draft=Drafting(Model(small, Chain(4)), Fixed(4)),
        )  # fmt: skip
        assert [one.tokens for one in plain] == [one.tokens for one in drafted]
        np.testing.assert_allclose(plain.logw, drafted.logw, atol=SINGLE)
        assert plain.cost.drafted == 0 < drafted.cost.drafted
        assert drafted.cost.model_calls <= plain.cost.model_calls


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sampler": mcmc}, "mcmc has no speculative form.*smc or importance"),
        ({"sampler": exact}, "exact has no speculative form"),
        ({"search": beam_search}, "a search compares whole texts.*Leave out search="),
        ({"must_include": ["yes"]}, "a search compares whole texts"),
        ({"num_beams": 2}, "num_beams"),
        ({"assistant_model": object()}, "assistant_model cannot be combined with draft=.*guided.draft.Model"),
        ({"prompt_lookup_num_tokens": 3}, "prompt_lookup_num_tokens.*guided.draft.PromptLookup"),
        ({"output_scores": True, "return_dict_in_generate": True}, "output_scores"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_combined_is_refused_by_name(loaded, words, options, said):
    with pytest.raises(UnsupportedError, match=said):
        generate(loaded, "the cat", words, draft=auto(), max_new_tokens=8, **options)


def test_processors_of_ones_own_are_refused(loaded, words):
    class Own(LogitsProcessor):
        def __call__(self, input_ids, scores):
            return scores

    with pytest.raises(UnsupportedError, match="Own, which may keep a state"):
        generate(loaded, "the cat", words, draft=auto(), logits_processor=[Own()], max_new_tokens=8)


def test_what_is_no_draft_is_told_how_to_be_one(loaded, words):
    with pytest.raises(GuidedError, match=r"PromptLookup is no draft and policy.*Drafting\(PromptLookup"):
        generate(loaded, "the cat", words, draft=PromptLookup(), max_new_tokens=8)
    with pytest.raises(GuidedError, match=r"str is no draft"):
        generate(loaded, "the cat", words, draft="auto", max_new_tokens=8)
    with pytest.raises(LimitError):
        generate(loaded, "the cat", guided.regex("a{40}"), draft=auto(), max_new_tokens=8)
