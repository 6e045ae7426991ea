"""Types as grammars, bare tokenizers and models as drafts: what users have is what they pass."""

from __future__ import annotations

import dataclasses
import enum
import pickle
from typing import Literal

import pydantic
import pytest
from typing_extensions import TypedDict

import guided
from guided.draft import Drafting
from guided.errors import GuidedError, TextError, VocabularyError
from guided.hf import LoadedModel, generate
from guided.infer import local
from guided.search import beam_search


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Person(pydantic.BaseModel):
    name: Literal["ann", "bob"]
    colour: Colour


@dataclasses.dataclass
class Point:
    x: Literal[1, 2]
    y: bool


class Named(TypedDict):
    name: Literal["ann"]


def paint(colour: Colour, *, twice: bool = False) -> None:
    """A function: its arguments are what is written."""


class Strict(pydantic.BaseModel):
    """A type that asks for more than its schema says."""

    n: Literal[1, 2]

    @pydantic.field_validator("n")
    @classmethod
    def never(cls, value: int) -> int:
        raise ValueError("no number is right")


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.mark.parametrize("kind", [
    Person, Point, Named, Colour, Literal["yes", "no"], list[Literal[1, 2]] | bool, bool | None,
], ids=str)  # fmt: skip
def test_a_type_gives_an_object_of_it(loaded, kind):
    made = generate(loaded, "the cat", kind, max_new_tokens=60)
    assert made.finished
    assert made.value == pydantic.TypeAdapter(kind).validate_json(made.text)
    if isinstance(kind, type):
        assert isinstance(made.value, dict if kind is Named else kind)
    assert pickle.loads(pickle.dumps(made)) == made


def test_functions_schemas_and_others(loaded):
    arguments = generate(loaded, "the cat", paint, max_new_tokens=60)
    assert isinstance(arguments.value["colour"], Colour) and set(arguments.value) <= {"colour", "twice"}
    schema = {"type": "array", "items": {"enum": [1, "a"]}, "minItems": 1, "maxItems": 2}
    for grammar in (schema, guided.json_schema(schema), guided.compile(schema, loaded)):
        value = generate(loaded, "the cat", grammar, max_new_tokens=60).value
        assert isinstance(value, list) and set(map(str, value)) <= {"1", "a"}
    assert generate(loaded, "the cat", guided.choice(["1", "2"]), max_new_tokens=8).value in ("1", "2")


def test_types_in_batches_with_samplers_searches_and_probabilities(loaded):
    made = generate(loaded, ["the cat", "yes"], [Person, Colour], max_new_tokens=60)
    assert isinstance(made[0].value, Person) and isinstance(made[1].value, Colour)
    kind = Literal["yes", "no"]
    drawn = generate(loaded, "a", kind, sampler=local, n=4, seed=1, max_new_tokens=12)
    assert {particle.text.strip() for particle in drawn.particles} <= {'"yes"', '"no"'}
    assert generate(loaded, "a", Colour, search=beam_search, max_new_tokens=8).hypotheses
    chances = guided.choice_probabilities(loaded, "a", guided.json_schema(kind, whitespace="compact"))
    assert sum(chances.probabilities.values()) == pytest.approx(1)


def test_a_value_needs_a_whole_text_that_the_type_takes(loaded):
    cut = generate(
        loaded, "the cat", guided.regex("[a-z]{20}"), stop_strings=["a", "e", "c", "i", "n"], max_new_tokens=40
    )
    assert not cut.finished
    with pytest.raises(TextError, match="cut before it was whole"):
        _ = cut.value
    made = generate(loaded, "the cat", Strict, max_new_tokens=60)
    with pytest.raises(pydantic.ValidationError, match="no number is right"):
        _ = made.value


@pytest.mark.parametrize("given", ["[a-z]+", 7, ["a", "b"]])
def test_what_is_no_grammar_is_told_so(loaded, given):
    with pytest.raises(TypeError, match=r"is no grammar: pass guided\.json_schema"):
        generate(loaded, "the cat", given)
    with pytest.raises(TypeError, match="is no grammar"):
        guided.compile(given, loaded)


def test_a_tokenizer_is_a_vocabulary(loaded, tokenizer, vocabulary):
    grammar = guided.regex("[a-z]{3}")
    assert guided.compile(grammar, tokenizer) is guided.compile(grammar, vocabulary)
    assert guided.compile(grammar, loaded).vocabulary == vocabulary
    assert guided.compile(Person, tokenizer) is guided.compile(guided.json_schema(Person), vocabulary)


@pytest.mark.parametrize("draft", ["lookup", True, "model", "loaded"])
def test_drafts_by_name_and_by_model(loaded, draft_llama, tokenizer, draft):
    grammar = guided.regex("([a-z]{2,4} ){3}")
    named = {"model": draft_llama, "loaded": LoadedModel("small", draft_llama, tokenizer)}
    plain = generate(loaded, "the cat sat", grammar, max_new_tokens=24)
    made = generate(loaded, "the cat sat", grammar, max_new_tokens=24, draft=named.get(draft, draft))
    assert made.token_ids == plain.token_ids and made.drafts is not None
    assert generate(loaded, "the cat sat", grammar, max_new_tokens=24, draft=False) == plain
    drawn = generate(
        loaded, "the cat sat", grammar, max_new_tokens=24, draft=named.get(draft, draft), do_sample=True, top_k=0
    )
    assert drawn.finished


def test_what_is_no_draft_is_refused(loaded, llama, other_tokenizer):
    for draft in ("recycle", 3, object()):
        with pytest.raises(GuidedError, match=r'Pass True, "lookup", a smaller model'):
            generate(loaded, "a", bool, draft=draft)
    with pytest.raises(VocabularyError, match="different ids"):
        generate(loaded, "a", bool, draft=LoadedModel("other", llama, other_tokenizer))
    assert isinstance(guided.draft.auto(), Drafting)
