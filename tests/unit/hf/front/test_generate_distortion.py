"""``distortion=True`` of `guided.generate`: what `guided.infer.distortion` tells of each text, for every runner."""

from __future__ import annotations

import pytest

from guided.errors import UnsupportedError
from guided.hf import LoadedModel, TransformersModel, generate
from guided.hf.front.thinking import DraftFirst
from guided.infer import distortion, smc
from guided.search import beam_search
from guided.steer import DoLa
from tests.tolerances import SINGLE


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


def by_hand(model, tokenizer, prompt, constraint, result):
    end = list(constraint.vocabulary.eos_ids)[:1] if result.finished else []
    return distortion(model, tokenizer.encode(prompt), constraint, [*result.token_ids, *end])


@pytest.mark.parametrize("options", [{}, {"draft": "lookup"}, {"do_sample": True, "seed": 3, "top_k": 1}, {"n": 2}])
def test_it_is_the_distortion_of_the_text(loaded, llama, tokenizer, constraints, options):
    options = {"do_sample": "n" in options, **options}
    constraint = constraints["nested"]
    prompts = ["the cat", "no"]
    found = generate(loaded, prompts, constraint, max_new_tokens=25, distortion=True, **options)
    plain = generate(loaded, prompts, constraint, max_new_tokens=25, **{"seed": 3, **options})
    if not options["do_sample"]:
        assert [each.text for each in found] == [each.text for each in plain]
    model = TransformersModel(llama, tokenizer)
    each = len(found) // len(prompts)
    for place, result in enumerate(found):
        told = by_hand(model, tokenizer, prompts[place // each], constraint, result)
        assert [one.token for one in result.distortion.tokens] == [one.token for one in told.tokens]
        assert [one.log_kept for one in result.distortion.tokens] == pytest.approx(
            [one.log_kept for one in told.tokens], abs=SINGLE
        )
        assert result.distortion.log_weight < 0
        assert "the mask took" in result._repr_html_()
    assert plain[0].distortion is None and "the mask took" not in plain[0]._repr_html_()


def test_steering_is_left_out(loaded, llama, tokenizer, constraints):
    # DoLa gives most tokens the probability 0, after the mask: the text need not be possible under it without.
    options = {"do_sample": False, "max_new_tokens": 25, "distortion": True}
    found = generate(loaded, "the cat", constraints["nested"], steer=DoLa((1,)), **options)
    told = by_hand(TransformersModel(llama, tokenizer), tokenizer, "the cat", constraints["nested"], found)
    assert found.distortion.log_weight == pytest.approx(told.log_weight, abs=SINGLE)


def test_with_a_draft_in_words_and_of_several(loaded, constraints):
    think = DraftFirst(drafts=3, max_new_tokens=6)
    # Drafts are cut to one token by top_k in a way that no mask knows: the comparison is under the model itself.
    options = {"do_sample": True, "top_k": 1, "seed": 3, "max_new_tokens": 30, "think": think}
    found = generate(loaded, "the cat", constraints["nested"], distortion=True, **options)
    assert found.distortion is not None and found.thought


def test_what_it_does_not_go_with(loaded, constraints):
    for wanted, options in (
        ("there is none", {"grammar": None}),
        ("sampler weighs", {"grammar": constraints["answer"], "sampler": smc}),
        ("search weighs", {"grammar": constraints["answer"], "search": beam_search}),
    ):
        with pytest.raises(UnsupportedError, match=wanted):
            generate(loaded, **{"prompt": "the cat", "distortion": True, "max_new_tokens": 8, **options})
