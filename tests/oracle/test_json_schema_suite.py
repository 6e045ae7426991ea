"""The official JSON Schema test suite, every draft that is read: no wrong answer, and few refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import referencing
import referencing.jsonschema

import guided
from guided.errors import GuidedError, UnsatisfiableError
from guided.grammar.json_schema import json_schema
from tests import vocabularies
from tests.amounts import mostly_slow

DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", referencing.jsonschema.DRAFT4),
    "draft6": ("http://json-schema.org/draft-06/schema#", referencing.jsonschema.DRAFT6),
    "draft7": ("http://json-schema.org/draft-07/schema#", referencing.jsonschema.DRAFT7),
    "draft2019-09": ("https://json-schema.org/draft/2019-09/schema", referencing.jsonschema.DRAFT201909),
    "draft2020-12": ("https://json-schema.org/draft/2020-12/schema", referencing.jsonschema.DRAFT202012),
}
ALLOWED_REFUSALS = 2
"""Groups of one draft that may be refused."""

VOCABULARY = vocabularies.of_bytes()


def accepts(constraint: guided.Constraint, text: bytes) -> bool:
    state = constraint.advance_bytes(constraint.start, text)
    return state != 0 and constraint.is_accepting(state)


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


@pytest.mark.parametrize(
    "draft", mostly_slow(sorted(DRAFTS, key=["draft2020-12", "draft7", "draft4", "draft2019-09", "draft6"].index), 3)
)
def test_no_wrong_answer(data: Path, draft: str) -> None:
    suite = data / "json-schema-test-suite"
    uri, specification = DRAFTS[draft]
    known = registry(suite, specification)
    refused = 0
    wrong = []
    for path in sorted((suite / "tests" / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": uri, **schema}
            try:
                grammar = json_schema(schema, order="any", spelling="any", registry=known)
            except UnsatisfiableError as error:
                wrong += [(group["description"], str(error)) for case in group["tests"] if case["valid"]]
                continue
            except GuidedError as error:
                refused += 1
                wrong += [] if error.where else [(path.stem, group["description"], "refused without a pointer")]
                continue
            constraint = guided.compile(grammar, VOCABULARY)
            for case in group["tests"]:
                text = json.dumps(case["data"]).encode()
                if accepts(constraint, text) is not case["valid"]:
                    wrong.append((path.stem, group["description"], case["description"]))
    assert wrong == []
    assert refused <= ALLOWED_REFUSALS
