"""What users write, as their type checkers see it: `make test-typing`.  Checked, never run.

`assert_type` holds what a call returns; a name without a type in our signatures would be an error of strict checking.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np
from typing_extensions import assert_type

import guided
from guided import hf
from guided.hf import Generation, LoadedModel


@dataclass
class Person:
    """A record."""

    name: str
    age: int


def grammars() -> list[guided.Grammar]:
    """Every front end gives a grammar."""
    return [
        guided.json_schema(Person),
        guided.json_schema({"type": "string"}, strict=True),
        guided.regex(r"[a-z]+"),
        guided.lark('start: "a"'),
        guided.gbnf('root ::= "a"'),
        guided.ebnf('root ::= "a"'),
        guided.choice(["yes", "no"]),
        guided.sequence("a", guided.optional(guided.choice(["b"]))),
        guided.either(guided.regex("a"), guided.regex("b")),
        guided.repeat(guided.regex("a"), 1, 3),
    ]


def masks(grammar: guided.Grammar) -> bytes:
    """A constraint's states are ints."""
    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    constraint = guided.compile(grammar, vocabulary)
    state = constraint.advance_bytes(constraint.start, b"a")
    assert_type(state, int)
    assert_type(constraint.is_accepting(state), bool)
    constraint.fill_mask(state, np.zeros(vocabulary.n_words, np.uint32))
    return constraint.forced(state)


def texts() -> str:
    """One prompt gives one result."""
    model = hf.load("nano")
    assert_type(model, LoadedModel)
    made = guided.generate(model, "A prompt", Person, max_new_tokens=20)
    assert_type(made, Generation)
    return made.text


def records(model: LoadedModel, letters: list[str]) -> list[Person]:
    """What is extracted is of the type that was asked for."""
    assert_type(guided.extract(model, "Ada is 36.", Person), Person)
    people = guided.extract(model, letters, Person, batch_size=4)
    assert_type(people, list[Person])
    return people


async def pieces(model: LoadedModel) -> AsyncIterator[str]:
    """A text as it comes."""
    async for item in guided.astream(model, "A prompt", Person):
        yield item.new


def refused(pattern: str) -> str | None:
    """An error says what, where and what to do."""
    try:
        guided.regex(pattern)
    except guided.UnsupportedError as error:
        return error.remedy
    return None
