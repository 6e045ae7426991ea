"""Greedy decoding with drafts is plain decoding, token for token: the packaged model, many prompts, grammars, batches."""

from __future__ import annotations

import itertools

import pytest

import guided
from guided.draft import (
    UCB,
    Aggressive,
    Beam,
    BestFirst,
    Branching,
    Chain,
    Chosen,
    Confidence,
    Datastore,
    Drafting,
    Dynamic,
    EarlyExit,
    Fixed,
    ForcedBytes,
    Goodput,
    HeadStopped,
    Heuristic,
    MaskCounts,
    Model,
    NGrams,
    PromptLookup,
    Recycling,
    Staged,
    TriGrams,
    Union,
    auto,
    early_exits,
    speculate,
)
from guided.hf.draft_heads import nano_heads, nano_small, nano_stopping_head
from guided.hf.language_model import TransformersModel
from guided.hf.loading import load
from guided.hf.skipped_layers import SkippedLayers
from guided.nano import extraction_prompt
from tests.amounts import each, some

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
NAMES = ["Anna Smith", "Peter Jones", "Maria Garcia", "Li Wei", "Omar Haddad", "Ingrid Berg", "Tom Miller", "Eva Novak"]
CITIES = ["Berlin", "Lisbon", "Oslo", "Prague", "Vienna", "Madrid", "Athens", "Dublin"]
FORMS = [
    "{name} is {age} years old and lives in {city}.",
    "In {city} we met {name}, who is {age}.",
    "{name} ({age}) comes from {city}.",
    "At {age}, {name} moved to {city}.",
    "{city} is where {name}, {age}, was born.",
]
GRAMMARS = {
    "schema": guided.json_schema(PERSON, whitespace=" ?"),
    "compact": guided.json_schema(PERSON, whitespace="compact"),
    "words": guided.regex("[A-Z][a-z]{0,9}( [a-zA-Z]{1,9}){1,5}[.]"),
    "list": guided.lark('start: "[" (item ("," item)*)? "]"\nitem: /"[a-zA-Z0-9 ]{0,12}"/ | start'),
}


@pytest.fixture(scope="module")
def nano():
    loaded = load("nano", device="cpu")
    return loaded, TransformersModel(loaded)


def drafts(model):
    """Every way to draft, new."""
    layers, small = SkippedLayers(model), nano_small(model)
    return {
        "small model": Drafting(Model(small, Chain(8, Confidence()), by_rule=True), Fixed(8)),
        "small tree and guessers": Drafting(
            Union(BestFirst(PromptLookup(), MaskCounts()), Model(small, Branching((2, 1, 1)), by_rule=True)), Fixed(12)
        ),
        "small model, stopped": Drafting(HeadStopped(small, nano_stopping_head(), by_rule=True, most=8), Fixed(8)),
        "medusa": Drafting(nano_heads(model, "medusa"), Fixed(12)),
        "hydra": Drafting(BestFirst(nano_heads(model, "hydra"), PromptLookup()), Fixed(8)),
        "early exits": Drafting(EarlyExit(early_exits(layers, [2, 4]), 6, by_rule=True), Fixed(4)),
        "skipped layers": Drafting(
            Model(layers.without(frozenset(layers.sublayers[2:5])), Chain(4), by_rule=True), Fixed(4)
        ),
        "lookup": Drafting(PromptLookup(), Fixed(10)),
        "aggressive": Drafting(Aggressive(), Fixed(6)),
        "recycling": Drafting(Recycling(), Fixed(30)),
        "tri-grams": Drafting(TriGrams(), Fixed(12)),
        "guessers": Drafting(
            BestFirst(ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), Recycling()), Heuristic(8)
        ),
        "datastore": Drafting(Datastore.of([[5, 6, 7, 8] * 5, list(range(300))]), Fixed(6)),
        "union": Drafting(Union(PromptLookup(), Recycling(), share=0.6), UCB()),
        "chosen": Drafting(Chosen(PromptLookup(), Recycling(), TriGrams()), Fixed(8)),
        "auto": auto(),
        "chain": Drafting(Model(model, Chain(3, Confidence())), Fixed(3)),
        "staged": Drafting(Staged(model, PromptLookup(), 4), Fixed(4)),
        "tree": Drafting(Model(model, Branching((2, 1)), by_rule=True), Goodput((2, 4))),
        "dynamic": Drafting(Model(model, Dynamic(0.3, 2)), Fixed(4)),
        "beam": Drafting(Model(model, Beam(2, 2)), Fixed(4)),
    }


def compare(nano, texts, grammars, sizes, max_tokens):
    """Decode every text under every grammar in every way and size of batch; the number of texts compared."""
    loaded, model = nano
    compiled = [guided.compile(GRAMMARS[name], loaded.vocabulary) for name in grammars]
    rows = [
        (loaded.tokenizer(extraction_prompt(PERSON, text))["input_ids"], constraint)
        for text, constraint in itertools.product(texts, compiled)
    ]
    plain, _ = speculate(0, model, *map(list, zip(*rows, strict=True)), max_tokens=max_tokens, greedy=True)
    assert len({text.tokens for text in plain}) > len(rows) // 4
    compared = 0
    for size in sizes:
        for name, drafting in drafts(model).items():
            found = []
            passes = tokens = 0
            for first in range(0, len(rows), size):
                prompts, constraints = map(list, zip(*rows[first : first + size], strict=True))
                part, counts = speculate(
                    1, model, prompts, constraints, drafting.drafter,
                    max_tokens=max_tokens, greedy=True, policy=drafting.policy,
                )  # fmt: skip
                found += part
                passes, tokens = passes + counts.row_passes, tokens + counts.tokens
            assert found == plain, (name, size)
            assert passes <= tokens
            compared += len(found)
    return compared


def texts(n):
    """Different texts."""
    found = [
        form.format(name=NAMES[i % 8], age=20 + 7 * i % 70, city=CITIES[(3 * i + j) % 8])
        for i, (j, form) in itertools.product(range(8), enumerate(FORMS))
    ]
    return found[:: max(1, len(found) // n)][:n]


def test_greedy_output_is_the_same(nano):
    assert compare(nano, texts(some(2)), each(["schema", "words", "list"], 2), [6], 20) >= 40


def test_rows_alone_are_the_same(nano):
    assert compare(nano, texts(2), ["compact"], [1, 2], 20) >= 50


@pytest.mark.slow
def test_drafts_without_a_model_save_more_than_half_of_the_passes(nano):
    loaded, model = nano
    constraint = guided.compile(GRAMMARS["schema"], loaded.vocabulary)
    drafter = auto().drafter
    passes = tokens = 0
    for text in texts(10):
        prompt = loaded.tokenizer(extraction_prompt(PERSON, text))["input_ids"]
        _, counts = speculate(0, model, [prompt], [constraint], drafter, greedy=True, policy=Fixed(16), max_tokens=60)
        passes, tokens = passes + counts.passes, tokens + counts.tokens
    assert passes <= 0.45 * tokens


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("size", [1, 7, 32])
def test_greedy_output_is_the_same_over_thousands(nano, size):
    assert compare(nano, texts(20), list(GRAMMARS), [size], 40) >= 1000
