"""Operations: which parameters they have, which content is theirs, and what their tools look like."""

from __future__ import annotations

import json
from typing import Any

import pytest

import guided
from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.openapi import operation, operations
from tests.vocabularies import of_bytes

pytest.importorskip("yaml")

PETS = """
openapi: 3.0.3
info: {title: Pets, version: 1.0.0}
paths:
  /pets/{id}:
    summary: Pets
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
      - {name: lang, in: query, schema: {type: string, enum: [no, en]}}
    get:
      operationId: getPet
      description: One pet
      parameters:
        - {name: lang, in: query, required: true, description: A language, schema: {type: string, enum: [fr]}}
        - {name: Accept, in: header, schema: {type: string}}
        - $ref: '#/components/parameters/Filter'
      responses:
        200: {content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
        4XX: {$ref: '#/components/responses/Problem'}
        default: {description: nothing}
    put:
      requestBody: {$ref: '#/components/requestBodies/Pet'}
      responses: {}
  /pets:
    post:
      operationId: addPet
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object}}}}
    delete:
      operationId: twice
      parameters:
        - {name: a, in: query, schema: {}}
        - {name: a, in: header, schema: {}}
    patch:
      operationId: twice
      parameters: [{name: body, in: query, schema: {}}]
      requestBody: {content: {application/json: {}}}
components:
  parameters:
    Filter:
      {name: filter, in: query, content: {application/json: {schema: {type: array, items: {type: boolean}}}}}
  requestBodies:
    Pet: {required: true, content: {application/json; charset=utf-8: {schema: {$ref: '#/components/schemas/Pet'}}}}
  responses:
    Problem: {content: {application/problem+json: {schema: {type: string}}}}
  schemas:
    Pet:
      type: object
      properties: {id: {type: integer, readOnly: true}, name: {type: string}}
      required: [id, name]
      additionalProperties: false
"""


def test_operations_in_their_order() -> None:
    assert [each.name for each in operations(PETS)] == ["getPet", "put_pets_id", "addPet", "twice", "twice"]
    assert operation(PETS, "GET /pets/{id}").name == operation(PETS, "getPet").name == "getPet"
    for name in ("twice", "nothing", "GET /pets", ""):
        with pytest.raises(GrammarError, match="operations"):
            operation(PETS, name)


def test_parameters_of_the_operation_come_before_those_of_the_path() -> None:
    assert operation(PETS, "getPet").parameters() == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "lang": {"type": "string", "enum": ["fr"], "description": "A language"},
            "filter": {"type": "array", "items": {"type": "boolean"}},
        },
        "additionalProperties": False,
        "required": ["id", "lang"],
    }


def test_what_a_request_and_a_response_hold() -> None:
    put, get = operation(PETS, "put_pets_id"), operation(PETS, "getPet")
    assert put.body()["$ref"] == get.response()["$ref"] == "#/$defs/Pet"
    assert put.body()["$defs"]["Pet"]["required"] == ["name"]
    assert put.body()["$defs"]["Pet"]["properties"]["id"] is False
    assert get.response("200")["$defs"]["Pet"]["required"] == ["id", "name"]
    assert get.response(404)["type"] == "string"


@pytest.mark.parametrize(
    ("call", "where", "kind"),
    [
        (
            lambda: operation(PETS, "getPet").response(500),
            "#/paths/~1pets~1{id}/get/responses/default/content",
            UnsupportedError,
        ),
        (lambda: operation(PETS, "put_pets_id").response(), "#/paths/~1pets~1{id}/put/responses", GrammarError),
        (lambda: operation(PETS, "getPet").body(), "#/paths/~1pets~1{id}/get", GrammarError),
        (lambda: operation(PETS, "addPet").body(), "#/paths/~1pets/post/requestBody/content", UnsupportedError),
        (lambda: operation(PETS, "DELETE /pets").parameters(), "#/paths/~1pets/delete/parameters/0", GrammarError),
        (lambda: operation(PETS, "PATCH /pets").arguments(), "#/paths/~1pets/patch/parameters", UnsupportedError),
    ],
)
def test_refusals_by_place(call: Any, where: str, kind: type[GuidedError]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.where == where
    assert caught.value.remedy


def test_other_media_types_are_named() -> None:
    add = operation(PETS, "addPet")
    assert add.body("application/x-www-form-urlencoded")["type"] == "object"
    assert add.arguments("application/x-www-form-urlencoded").get("required") is None


def test_a_tool_is_called_with_its_arguments() -> None:
    tool = operation(PETS, "put_pets_id").tool()
    assert tool["function"]["name"] == "put_pets_id"
    assert tool["function"]["description"] == "Pets"
    assert tool["function"]["parameters"]["required"] == ["id", "body"]
    vocabulary = of_bytes()
    constraint = guided.compile(guided.tool_calls([tool], special_tokens=()), vocabulary)

    def called(arguments: dict[str, Any]) -> bool:
        call = {"name": "put_pets_id", "arguments": arguments}
        state = constraint.advance_bytes(constraint.start, f"<tool_call>\n{json.dumps(call)}\n</tool_call>".encode())
        return bool(state) and constraint.is_accepting(state)

    assert called({"id": 1, "lang": "no", "body": {"name": "x"}})
    assert not called({"id": 1, "lang": "no", "body": {"id": 4, "name": "x"}})
    assert not called({"id": 1, "lang": False, "body": {"name": "x"}})
    assert not called({"id": 1})
