"""A trained model with a SentencePiece tokenizer, the real front ends and the real engine; text checked by `re`, `json`."""

from __future__ import annotations

import json
import re

import jsonschema
import numpy as np
import pytest
import torch

import guided
from guided.hf import GuidedLogitsProcessor, LoadedModel, generate, load
from tests.amounts import crossed, each
from tests.twin.slow_constraint import reference_generate

PATTERNS = {
    "sentence": r"(She|He|They) (was|were|liked to) [a-z ]{3,30}\.",
    "date": r"[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]",
    "free": r"[^\n]{0,40}the end",
    "accents": r"é+[à-ü]{2}!",
}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 1}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PROMPTS = ["Once upon a time, there was a girl named Lily.", "Tom and"]


@pytest.fixture(scope="module")
def stories(data) -> LoadedModel:
    folder = data / "models" / "stories260K"
    if not folder.is_dir():
        pytest.skip("no models in the test data")
    return load(folder, device="cpu")


class ByAdvance:
    """A constraint whose masks come from trying every token, so that the reference does not use the engine's masks."""

    def __init__(self, constraint):
        self.inner = constraint
        self.vocabulary, self.start, self.end = constraint.vocabulary, constraint.start, constraint.end
        self.advance = constraint.advance

    def fill_mask(self, state, row):
        row[:] = 0
        alive = np.array([self.inner.advance(state, token) != 0 for token in range(self.vocabulary.size)])
        packed = np.packbits(alive, bitorder="little")
        row.view(np.uint8)[: packed.size] = packed


@pytest.mark.parametrize("name", each(PATTERNS, len(PATTERNS)))
def test_greedy_lookup_and_assistant_agree_with_the_definition(name, stories):
    constraint = guided.compile(guided.regex(PATTERNS[name]), stories.vocabulary)
    processor = GuidedLogitsProcessor(constraint)
    for prompt in PROMPTS:
        ids = torch.tensor([stories.tokenizer.encode(prompt)])

        @torch.no_grad()
        def scores(new, ids=ids):
            return stories.model(torch.cat([ids, torch.tensor([new], dtype=torch.long)], 1)).logits[0, -1].numpy()

        expected = reference_generate(ByAdvance(constraint), scores, limit=60)
        for options in ({}, {"prompt_lookup_num_tokens": 4}, {"assistant_model": stories.model}):
            out = stories.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                logits_processor=[processor],
                max_new_tokens=60,
                do_sample=False,
                **options,
            )
            assert out[0, ids.shape[1] :].tolist() == expected, options


@pytest.mark.parametrize(
    ("name", "options"),
    crossed(PATTERNS, [{"do_sample": False}, {"do_sample": True}, {"num_beams": 4, "do_sample": False}], share=6),
)
def test_texts_match_their_pattern(name, options, stories):
    torch.manual_seed(1)
    results = generate(stories, PROMPTS, guided.regex(PATTERNS[name]), max_new_tokens=70, **options)
    for result in results:
        assert result.finished
        assert re.fullmatch(PATTERNS[name], result.text), result.text


@pytest.mark.slow
def test_records_satisfy_their_schema(stories):
    grammar = guided.json_schema(SCHEMA)
    torch.manual_seed(2)
    texts = [generate(stories, PROMPTS[0], grammar, do_sample=False, max_new_tokens=n).text for n in range(24, 60, 7)]
    sampled = generate(stories, PROMPTS[0], grammar, do_sample=True, num_return_sequences=8, max_new_tokens=50)
    for text in [*texts, *(result.text for result in sampled)]:
        jsonschema.validate(json.loads(text), SCHEMA)
