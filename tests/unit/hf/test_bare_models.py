"""Samplers and searches take a model of transformers as it is: what they find is what they find of the wrapped one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guided
from guided import infer, search
from guided.hf.language_model import TransformersModel
from tests.amounts import each

PROMPT = [5, 6]

SAMPLERS = {
    "importance": lambda *given: infer.importance(0, *given, n=3, max_tokens=6),
    "smc": lambda *given: infer.smc(0, *given, n=3, max_tokens=6, proposal=given[0]),
    "smc_steer": lambda *given: infer.smc_steer(0, *given, n=2, expansions=2, max_tokens=6),
    "local": lambda *given: infer.local(0, *given, n=2, max_tokens=6),
    "cars": lambda *given: infer.cars(0, *given, n=2, max_tokens=6),
    "asap": lambda *given: infer.asap(0, *given, n=2, max_tokens=6),
    "mcmc": lambda *given: infer.mcmc(0, *given, n=2, max_tokens=6, steps=2),
    "annealed": lambda *given: infer.annealed(0, *given, n=2, max_tokens=6),
    "best_of_n": lambda *given: infer.best_of_n(0, *given, n=2, max_tokens=6),
    "exact": lambda *given: infer.exact(*given, max_tokens=6),
    "distortion": lambda model, prompt, constraint: infer.distortion(
        model, prompt, constraint, [constraint.vocabulary.tokens.index(b"a")]
    ),
    "choice_probabilities": lambda *given: infer.choice_probabilities(*given),
    "potential": lambda model, prompt, constraint: infer.ModelPotential(model, prompt, constraint.vocabulary).prefix_at(
        (7,)
    ),
}

SEARCHES = {
    "beam": lambda *given: search.beam_search(*given, max_tokens=6),
    "beams of several": lambda model, prompt, constraint: search.beam_search_each(
        model, [prompt], [constraint], max_tokens=6
    ),
    "best first": lambda *given: search.best_first_beam_search(*given, max_tokens=6),
    "a star": lambda *given: search.a_star_search(*given, max_tokens=6),
    "lattice": lambda *given: search.lattice_search(*given, max_tokens=6),
    "blocks": lambda *given: search.block_search(
        *given, value=lambda texts: [float(len(text)) for text in texts], seed=0, max_tokens=6
    ),
    "spans": lambda model, prompt, constraint: search.best_spans(model, prompt, [7, 8, 9]),
}


def said(found: Any) -> Any:
    """What a run found, without what it counted."""
    for name in ("particles", "hypotheses", "per_token", "probabilities"):
        if hasattr(found, name):
            return getattr(found, name)
    return [said(each) for each in found] if isinstance(found, list) and hasattr(found[0], "cost") else found


@pytest.mark.parametrize("name", each([*SAMPLERS, *SEARCHES], 2))
def test_a_bare_model_is_the_wrapped_one(name: str, llama: Any, vocabulary: guided.Vocabulary) -> None:
    constraint = guided.compile(guided.regex("a|bc|d{2}"), vocabulary)
    run = {**SAMPLERS, **SEARCHES}[name]
    bare, wrapped = (said(run(model, PROMPT, constraint)) for model in (llama, TransformersModel(llama)))
    if isinstance(bare, np.ndarray):
        assert bare.tolist() == wrapped.tolist()
    else:
        assert bare == wrapped


def test_what_is_no_model_is_said(vocabulary: guided.Vocabulary) -> None:
    constraint = guided.compile(guided.choice(["a"]), vocabulary)
    for run in (SAMPLERS["smc"], SAMPLERS["exact"], SEARCHES["beam"], SEARCHES["spans"]):
        with pytest.raises(guided.GuidedError, match="no language model"):
            run(object(), PROMPT, constraint)
