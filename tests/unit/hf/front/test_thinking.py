"""`think=` of `guided.generate`: the same as two calls by hand, and of several drafts the one that masks least."""

from __future__ import annotations

import functools

import pytest

from guided.errors import GuidedError, UnsupportedError
from guided.hf import LoadedModel, TransformersModel, generate
from guided.hf.front.thinking import DraftFirst
from guided.infer import distortion, smc
from guided.search import beam_search
from tests.amounts import mostly_slow

TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}A:"
SHORT = DraftFirst(max_new_tokens=6)


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture
def call(loaded, constraints):
    return functools.partial(generate, loaded, grammar=constraints["nested"], do_sample=False, max_new_tokens=25)


def test_it_is_two_calls(loaded, call):
    draft = generate(loaded, "the cat", do_sample=False, max_new_tokens=6).text
    assert draft
    found = call("the cat", think=SHORT)
    assert found.thought == draft
    by_hand = call("the cat" + draft + "\n")
    assert (found.text, found.token_ids, found.finished) == (by_hand.text, by_hand.token_ids, by_hand.finished)
    assert by_hand.thought is None
    assert call("the cat", think="draft").thought.startswith(draft)
    between = call("the cat", think=DraftFirst(max_new_tokens=6, between=" => "))
    assert between.text == call("the cat" + draft + " => ").text


def test_lists_and_grammars_of_each(loaded, constraints):
    prompts, grammars = ["the cat", "no"], [constraints["nested"], constraints["answer"]]
    options = {"do_sample": False, "max_new_tokens": 30, "think": SHORT}
    together = generate(loaded, prompts, grammars, **options)
    alone = [generate(loaded, prompt, grammar, **options) for prompt, grammar in zip(prompts, grammars, strict=True)]
    assert together == alone and all(each.finished for each in together)
    assert generate(loaded, prompts[:1], grammars[0], **options) == alone[:1]


def test_a_conversation_has_the_draft_said(loaded, call, tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "chat_template", TEMPLATE)
    talk = [{"role": "user", "content": "the cat"}]
    found = call(talk, think=SHORT)
    assert found == call("the cat", think=SHORT, chat=True)
    said = [*talk, {"role": "assistant", "content": found.thought}, {"role": "user", "content": SHORT.ask}]
    assert found.text == call(said).text


@pytest.mark.parametrize("seed", mostly_slow(range(3), 1))
def test_of_several_drafts_the_one_that_masks_least(seed, loaded, constraints, tokenizer):
    several = DraftFirst(drafts=4, max_new_tokens=5)
    drafts = [d.text for d in generate(loaded, "the cat", do_sample=True, max_new_tokens=5, n=4, seed=seed)]
    sampled = functools.partial(
        generate, loaded, grammar=constraints["nested"], do_sample=True, max_new_tokens=25, seed=seed
    )
    found = sampled("the cat", think=several)
    assert len(set(drafts)) > 1 and found.thought in drafts
    prompts = ["the cat" + draft + "\n" for draft in drafts]
    answers = sampled(prompts)
    model = TransformersModel(loaded)
    kept = [
        distortion(
            model,
            tokenizer(prompt)["input_ids"],
            constraints["nested"],
            [*answer.token_ids, *([tokenizer.eos_token_id] if answer.finished else [])],
        ).log_weight
        for prompt, answer in zip(prompts, answers, strict=True)
    ]
    best = kept.index(max(kept))
    assert (found.thought, found.text) == (drafts[best], answers[best].text)


def test_samplers_and_searches_see_the_draft(loaded, constraints):
    options = {"max_new_tokens": 20, "think": SHORT}
    draft = generate(loaded, "the cat", max_new_tokens=6).text
    behind = "the cat" + draft + "\n"
    for way in ({"sampler": smc, "n": 3, "seed": 1}, {"search": beam_search}):
        found = generate(loaded, "the cat", constraints["answer"], **options | way)
        by_hand = generate(loaded, behind, constraints["answer"], max_new_tokens=20, **way)
        found, by_hand = (found[0] if isinstance(each, list) else each for each in (found, by_hand))
        assert [each.text for each in found] == [each.text for each in by_hand]


def test_what_it_does_not_go_with(loaded, call, constraints):
    with pytest.raises(GuidedError, match="think is 'hard'"):
        call("the cat", think="hard")
    for options in ({"heal": True}, {"num_return_sequences": 2}, {"think": DraftFirst(drafts=2), "n": 2}):
        with pytest.raises(UnsupportedError):
            call("the cat", **{"think": SHORT} | options)
    with pytest.raises(UnsupportedError, match="there is none"):
        generate(loaded, "the cat", think="draft")
    with pytest.raises(UnsupportedError, match="into words"):
        generate(loaded, [1, 2], constraints["answer"], sampler=smc, think="draft")
    with pytest.raises(GuidedError, match="0 drafts"):
        DraftFirst(drafts=0)
