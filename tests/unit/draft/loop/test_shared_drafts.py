"""Particles of the packaged model share drafts: the same texts and weights in far fewer passes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import guided
from guided.draft import Drafting, Fixed, auto
from guided.draft.heads.from_heads import Heads
from guided.errors import UnsupportedError
from guided.hf.language_model import TransformersModel
from guided.hf.loading import load
from guided.infer import smc
from guided.nano import extraction_prompt
from tests.tolerances import PASSES

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 999},
        "city": {"type": "string", "maxLength": 20},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}
TEXTS = ["Anna Smith is 31 years old and lives in Berlin.", "In Oslo we met Peter Jones, who is 64."]


def test_extraction_takes_half_of_the_passes_at_most():
    loaded = load("nano", device="cpu")
    model = TransformersModel(loaded)
    constraint = guided.compile(guided.json_schema(PERSON, whitespace=" ?"), loaded.vocabulary)
    draft = Drafting(auto().drafter, Fixed(16))
    passes = [0, 0]
    for text in TEXTS:
        prompt = loaded.tokenizer(extraction_prompt(PERSON, text))["input_ids"]
        plain, drafted = (smc(3, model, prompt, constraint, n=6, max_tokens=50, draft=each) for each in (None, draft))
        assert [one.tokens for one in plain] == [one.tokens for one in drafted]
        np.testing.assert_allclose(plain.logw, drafted.logw, atol=PASSES)
        passes[0] += plain.cost.model_calls
        passes[1] += drafted.cost.model_calls
        assert 0 < drafted.cost.met <= drafted.cost.drafted
    assert passes[1] <= 0.5 * passes[0]


def test_heads_are_refused_by_name():
    class Nothing(torch.nn.Module):
        sequential = False

    loaded = guided.Vocabulary.from_tokens([b"a", None], eos_ids=[1])
    constraint = guided.compile(guided.regex("a*"), loaded)
    model = guided.lm.TableModel.random(0, width=2, eos_ids=[1])
    with pytest.raises(UnsupportedError, match="drafts for particles"):
        smc(0, model, (0,), constraint, n=2, max_tokens=3, draft=Drafting(Heads(Nothing()), Fixed(2)))
