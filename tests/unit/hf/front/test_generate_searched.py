"""`guided.generate` with searches and phrases: the searches themselves, in words."""

from __future__ import annotations

import functools
import json

import pytest

import guided
from guided.errors import GuidedError, UnsupportedError
from guided.hf import LoadedModel, TransformersModel, generate
from guided.infer import TextPredicate, exact, smc
from guided.search import (
    Clause,
    DiverseFound,
    Found,
    LatticeFound,
    Literal,
    LookAhead,
    PhraseConstraint,
    beam_search,
    best_first_beam_search,
    diverse_beam_search,
    dynamic_beam_search,
    grid_beam_search,
    lattice_search,
    neurologic_search,
)
from guided.steer import ClassifierFree, Contrastive, Momentum, Stack
from tests.amounts import each
from tests.tolerances import SINGLE

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
BUDGET = 30


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module")
def constraint(loaded):
    return guided.compile(guided.json_schema(SCHEMA, whitespace=" ?"), loaded.vocabulary)


@pytest.fixture(scope="module")
def asked(loaded, constraint):
    return functools.partial(generate, loaded, "the cat", constraint, max_new_tokens=BUDGET)


def same(found, expected):
    """The same texts; their scores were added up from passes over other batches."""
    assert [each.tokens for each in found] == [each.tokens for each in expected]
    assert [each.score for each in found] == pytest.approx([each.score for each in expected], abs=SINGLE)


@pytest.mark.parametrize(
    ("search", "kind"),
    each(
        [
            (beam_search, Found),
            (best_first_beam_search, Found),
            (functools.partial(diverse_beam_search, groups=2), DiverseFound),
            (grid_beam_search, Found),
            (dynamic_beam_search, Found),
            (neurologic_search, Found),
            (functools.partial(lattice_search, rows=20), LatticeFound),
        ],
        2,
    ),
)
def test_every_search_through_the_one_call(asked, search, kind):
    found = asked(search=search, n=2)
    assert isinstance(found, kind)
    assert found.hypotheses and found.cost.rows
    for one in found.hypotheses:
        assert set(json.loads(one.text)) == {"name", "n"}


def test_it_is_the_search_itself(loaded, constraint, asked):
    prompt = loaded.tokenizer.encode("the cat")
    own = beam_search(TransformersModel(loaded), prompt, constraint, width=6, n_best=4, max_tokens=BUDGET)
    through = asked(search=beam_search, n=4, width=6)
    same(through, own)
    same(asked(search=best_first_beam_search, n=4, width=6), own)


@pytest.mark.parametrize("steer", [[ClassifierFree(scale=1.5)], [ClassifierFree(scale=1.5), Momentum(top_k=300)]])
def test_searches_under_steering(loaded, constraint, asked, steer):
    steered = Stack(steer).over(TransformersModel(loaded))
    own = beam_search(steered, loaded.tokenizer.encode("the cat"), constraint, max_tokens=BUDGET)
    same(asked(search=beam_search, steer=steer), own)
    assert asked(search=beam_search)[0].score != pytest.approx(own[0].score)


def test_the_best_text_of_all_under_steering_and_truncation(loaded, llama, vocabulary):
    words = guided.compile(guided.choice(["yes", "no", "maybe", "not"]), vocabulary)
    options = {"steer": [Contrastive(TransformersModel(llama, loaded.tokenizer), alpha=0.0)], "temperature": 0.7}
    truth = generate(loaded, "a", words, sampler=exact, max_new_tokens=8, **options)
    found = generate(loaded, "a", words, search=beam_search, width=200, n=200, max_new_tokens=8, **options)
    best = max(truth.particles, key=lambda each: each.logw)
    assert found[0].tokens == best.tokens
    assert found[0].score == pytest.approx(best.logw, abs=SINGLE)


@pytest.mark.parametrize("search", each([None, dynamic_beam_search, grid_beam_search], 2))
def test_phrases_in_words(asked, search):
    found = asked(search=search, must_include=["mat", "7"])
    assert len(found) == 1
    assert "mat" in found[0].text and "7" in found[0].text
    assert "mat" not in asked(search=beam_search)[0].text


def test_one_of_several_and_none_of_others(asked):
    best = asked(search=beam_search, width=4)[0].text
    number = str(json.loads(best)["n"])
    found = asked(search=functools.partial(neurologic_search, width=8), must_exclude=[number], must_include="{")
    assert found.hypotheses and number not in found[0].text
    assert asked(must_exclude=number)[0].text == asked(search=neurologic_search, must_exclude=[number])[0].text
    either = asked(must_include=[("mat", "yes")])[0].text
    assert "mat" in either or "yes" in either
    # Token ids do as well, and what the partial holds is not lost.
    ids = PhraseConstraint.of(asked.args[0].tokenizer.encode("cat"))
    both = asked(search=functools.partial(dynamic_beam_search, phrases=[ids], width=16), must_include=["mat"])
    assert "cat" in both[0].text and "mat" in both[0].text
    clause = Clause.of(Literal(ids, positive=False))
    ahead = functools.partial(neurologic_search, clauses=[clause], look_ahead=LookAhead(2), expand=200)
    assert "cat" not in asked(search=ahead, must_include=["1"])[0].text


def test_lists_of_prompts_and_canonical_spellings(loaded):
    words = guided.compile(guided.choice([" the cat sat", " maybe", " on the mat"]), loaded.vocabulary)
    found = generate(loaded, ["the cat", "a"], words, search=beam_search, n=3, max_new_tokens=12, canonical=True)
    assert [type(each) for each in found] == [Found, Found]
    for made in (one for of_prompt in found for one in of_prompt):
        own = loaded.tokenizer(made.text, add_special_tokens=False)["input_ids"]
        assert own == list(made.tokens[:-1])
    spelled = generate(loaded, "a", words, search=beam_search, n=4, max_new_tokens=12)
    assert any(each.text == found[1][0].text and each.tokens != found[1][0].tokens for each in spelled)


def test_what_makes_no_sense_is_refused(loaded, constraint, asked):
    with pytest.raises(UnsupportedError, match="a sampler draws texts and a search compares them"):
        asked(search=beam_search, sampler=smc)
    with pytest.raises(UnsupportedError, match="a sampler draws texts"):
        asked(must_include=["x"], sampler=smc)
    with pytest.raises(UnsupportedError, match="heal"):
        asked(search=beam_search, heal=True)
    with pytest.raises(UnsupportedError, match="seed"):
        asked(search=beam_search, seed=3)
    with pytest.raises(GuidedError, match="beam_search has no option 'num_beams'"):
        asked(search=beam_search, num_beams=3)
    with pytest.raises(UnsupportedError, match="beam_search places no phrases"):
        asked(search=beam_search, must_include=["x"])
    with pytest.raises(UnsupportedError, match="dynamic_beam_search excludes no phrases"):
        asked(search=dynamic_beam_search, must_exclude=["x"])
    with pytest.raises(TypeError, match=r"pass a function of guided\.search"):
        asked(search="beam")
    with pytest.raises(GuidedError, match="a phrase is empty"):
        asked(must_include=[""])
    with pytest.raises(UnsupportedError, match="a search needs a grammar"):
        generate(loaded, "a", TextPredicate(constraint.vocabulary, bool), search=beam_search)
    with pytest.raises(GuidedError, match="n_best is 9"):
        asked(search=beam_search, n=9)
    with pytest.raises(GuidedError, match="a phrase in words needs a tokenizer"):
        generate(TransformersModel(loaded.model), [1, 2], constraint, search=dynamic_beam_search, must_include=["a"])


def test_prompts_of_one_call_are_searched_together(loaded, constraint):
    """The same texts as one after another, in fewer passes."""
    model = TransformersModel(loaded)
    prompts = ["the cat", "yes no maybe", "[1"]
    options = {"search": beam_search, "width": 3, "max_new_tokens": BUDGET}
    before = model.calls.passes
    together = generate(model, prompts, constraint, **options)
    passes = model.calls.passes - before
    alone = [generate(model, prompt, constraint, **options) for prompt in prompts]
    for found, one in zip(together, alone, strict=True):
        same(found, one)
    assert passes < 0.6 * (model.calls.passes - before - passes)
