"""Python types and signatures, by way of pydantic."""

from __future__ import annotations

import dataclasses
import enum
import json
import pickle
from typing import Annotated, Any, Literal, TypedDict

import pydantic
import pytest

from guided.errors import GuidedError
from guided.grammar.json_schema import json_schema
from guided.grammar.json_schema.reading.source import read
from tests.twin.earley import accepts


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Entry(TypedDict, total=False):
    title: str
    tags: list[Literal["a", "b"]]


class Node(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(min_length=1, max_length=3)]
    colour: Colour | None = None
    children: list["Node"] = []
    where: Point | None = None


def search(query: str, limit: int = 10, _private: bool = False) -> list[str]:
    """Not called."""
    raise AssertionError((query, limit, _private))


def anything(first, **rest: int):  # type: ignore[no-untyped-def]
    raise AssertionError((first, rest))


def verdicts(source: Any, *texts: str) -> list[bool]:
    grammar = json_schema(source)
    return [accepts(grammar, text.encode()) for text in texts]


def test_models() -> None:
    good = '{"name": "ab", "colour": "red", "children": [{"name": "c"}], "where": {"x": 1, "y": 2.5}}'
    bad = [good.replace("red", "green"), good.replace('"ab"', '"abcd"'), good.replace('"x": 1, ', ""), "{}"]
    assert verdicts(Node, good, *bad) == [True, False, False, False, False]
    Node.model_validate(json.loads(good))


def test_plain_types() -> None:
    assert verdicts(Point, '{"x": 1}', '{"y": 1}') == [True, False]
    assert verdicts(Entry, '{"tags": ["a"]}', '{"tags": ["c"]}', "{}") == [True, False, True]
    assert verdicts(Colour, '"red"', '"green"') == [True, False]
    assert verdicts(Literal[1, "a"], "1", '"a"', "2") == [True, True, False]
    assert verdicts(list[int], "[1, 2]", '["a"]') == [True, False]
    assert verdicts(int | None, "null", "3", '"3"') == [True, True, False]
    assert verdicts(dict[str, bool], '{"a": true}', '{"a": 1}') == [True, False]
    assert verdicts(tuple[int, str], '[1, "a"]', "[1]") == [True, False]


def rows(entries: list[Entry], last: Entry | None = None) -> None:
    raise AssertionError((entries, last))


def test_typed_dicts_inside_other_types() -> None:
    assert verdicts(list[Entry], '[{"title": "x"}]', '[{"title": 1}]') == [True, False]
    assert verdicts(dict[str, Entry], '{"a": {"tags": []}}', '{"a": {"tags": 1}}') == [True, False]
    assert verdicts(rows, '{"entries": [{}], "last": null}', '{"entries": [1]}') == [True, False]


def test_signatures() -> None:
    assert verdicts(search, '{"query": "x", "limit": 3}', '{"limit": 3}', '{"query": "x", "other": 1}') == [
        True,
        False,
        False,
    ]
    assert verdicts(search, '{"query": "x", "_private": true}', '{"query": "x", "_private": 1}') == [True, False]
    assert verdicts(anything, '{"first": [1]}', '{"first": 1, "more": 2}', '{"more": 2}') == [True, True, False]
    assert read(search)["properties"]["limit"]["default"] == 10  # type: ignore[index]


def test_grammars_of_local_types_are_picklable() -> None:
    class Local(pydantic.BaseModel):
        a: int

    again = pickle.loads(pickle.dumps(json_schema(Local)))
    assert accepts(again, b'{"a": 1}')


def test_what_has_no_schema_is_an_error() -> None:
    class Opaque:
        pass

    def positional(a: int, /) -> None:
        raise AssertionError(a)

    def variadic(*a: int) -> None:
        raise AssertionError(a)

    for source in (Opaque, positional, variadic, 5, 1.5, [1], None):
        with pytest.raises(GuidedError):
            json_schema(source)  # type: ignore[arg-type]
