"""The official JSON Schema test suite, every draft that is read: no wrong answer, and few refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import referencing
import referencing.jsonschema

from guided.errors import GuidedError, UnsatisfiableError
from guided.grammar.json_schema import json_schema
from tests.twin.earley import accepts

DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", referencing.jsonschema.DRAFT4, 10),
    "draft6": ("http://json-schema.org/draft-06/schema#", referencing.jsonschema.DRAFT6, 10),
    "draft7": ("http://json-schema.org/draft-07/schema#", referencing.jsonschema.DRAFT7, 10),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", referencing.jsonschema.DRAFT201909, 90),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", referencing.jsonschema.DRAFT202012, 90),
}
"""Identifier, specification, and the groups that may be refused (unevaluated*, $dynamicRef, uniqueItems, ...)."""


def registry(suite: Path, specification: Any) -> referencing.Registry[Any]:
    found = []
    for path in (suite / "remotes").rglob("*.json"):
        uri = f"http://localhost:1234/{path.relative_to(suite / 'remotes').as_posix()}"
        contents = json.loads(path.read_text())
        try:
            resource = referencing.Resource.from_contents(contents, default_specification=specification)
        except referencing.exceptions.CannotDetermineSpecification:
            continue
        found.append((uri, resource))
    return referencing.Registry().with_resources(found)


@pytest.mark.parametrize("draft", sorted(DRAFTS))
def test_no_wrong_answer(data: Path, draft: str) -> None:
    suite = data / "json-schema-test-suite"
    uri, specification, allowed = DRAFTS[draft]
    known = registry(suite, specification)
    refused = 0
    wrong = []
    for path in sorted((suite / "tests" / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": uri, **schema}
            try:
                # The suite's required cases take format as an annotation.
                grammar = json_schema(schema, order="any", registry=known, assert_formats=False)
            except UnsatisfiableError as error:
                wrong += [(group["description"], str(error)) for case in group["tests"] if case["valid"]]
                continue
            except GuidedError as error:
                refused += 1
                wrong += [] if error.where else [(path.stem, group["description"], "refused without a pointer")]
                continue
            for case in group["tests"]:
                text = json.dumps(case["data"]).encode()
                if accepts(grammar, text) is not case["valid"]:
                    wrong.append((path.stem, group["description"], case["description"]))
    assert wrong == []
    assert refused <= allowed
