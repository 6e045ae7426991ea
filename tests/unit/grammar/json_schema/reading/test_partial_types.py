"""Every beginning of a JSON text as its type has it."""

from __future__ import annotations

import datetime
from typing import Annotated, Optional

import pytest
from pydantic import AliasChoices, BaseModel, Field, RootModel, ValidationError

from guided.grammar.json_schema.reading.partial_types import typed_so_far
from guided.reading.partial_json import partial_json


class City(BaseModel):
    name: str
    founded: Optional[datetime.date] = None  # noqa: UP045


class Tags(RootModel[list[str]]):
    pass


class Person(BaseModel):
    full_name: Annotated[str, Field(alias="fullName")]
    age: Annotated[int, Field(ge=0)] = 5
    cities: list[City] = []
    home: City | None = Field(default=None, validation_alias=AliasChoices("home", "house"))
    tags: Tags = Tags([])


TEXT = (
    '{"fullName": "Ada", "cities": [{"name": "Paris", "founded": "0250-01-01"}, {"name": "Oslo"}], "age": 12,'
    ' "home": {"name": "Rome", "founded": null}, "tags": ["x", "y"]}'
)


def so_far(text: str, source: object = Person) -> Person:
    found = partial_json(text)
    return typed_so_far(source, found.value, found.path)


def test_every_prefix() -> None:
    whole = Person.model_validate_json(TEXT)
    fields = 0
    for end in range(1, len(TEXT)):
        made = so_far(TEXT[:end])
        assert type(made) is Person
        assert set(made.__dict__) == made.model_fields_set
        assert len(made.model_fields_set) >= fields
        fields = len(made.model_fields_set)
        assert whole.full_name.startswith(made.__dict__.get("full_name", ""))
        for have, want in zip(made.__dict__.get("cities", []), whole.cities, strict=False):
            assert type(have) is City
            for name in have.model_fields_set:
                assert name == "founded" or want.name.startswith(have.name)
    assert so_far(TEXT) == whole


def test_what_is_whole_is_validated_and_what_is_not_is_plain() -> None:
    made = so_far(TEXT[: TEXT.index("}, {")])
    assert made.cities[0].__dict__ == {"name": "Paris", "founded": datetime.date(250, 1, 1)}
    begun = so_far(TEXT[: TEXT.index("-01-01")])
    assert begun.cities[0].founded == "0250"
    assert not hasattr(begun, "age"), "a default is nothing that has come"
    assert so_far(TEXT[: TEXT.index(', "y"')]).tags == ["x"]


def test_checks_of_a_field_hold_when_it_is_whole() -> None:
    assert so_far('{"age": -1').age == -1
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        so_far('{"age": -1,')


def test_types_that_are_no_records() -> None:
    assert so_far("[1, 2", list[float]) == [1.0, 2]
    assert so_far('{"a": 1', dict[str, int]) == {"a": 1}
    assert so_far('"ab', str) == "ab"
