"""Schemas of a small benchmark, a runner of the command line, and the packaged model loaded once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from guided.cli.application import application
from guided.eval.corpus import SchemaRow

SCHEMAS = {
    "small---flag": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False},
    "small---person": {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "born": {"type": "string", "format": "date"}},
        "required": ["name", "born"],
        "additionalProperties": False,
    },
    "small---numbers": {"type": "array", "items": {"type": "integer", "minimum": 3, "maximum": 30}, "minItems": 2, "maxItems": 3},
    "hard---union": {
        "anyOf": [
            {"const": "yes"},
            {"type": "object", "required": ["n"], "properties": {"n": {"enum": [1, 2]}}, "additionalProperties": False},
        ]
    },
    "hard---never": {"type": "string", "minLength": 5, "maxLength": 2},
}  # fmt: skip
"""The last one is unsatisfiable: our engine refuses it."""


@pytest.fixture(scope="session")
def rows() -> list[SchemaRow]:
    return [SchemaRow(name, name.split("---")[0], schema) for name, schema in SCHEMAS.items()]


@pytest.fixture(scope="session")
def benchmark_folder(tmp_path_factory) -> Path:
    """The same as a folder with a schema a file."""
    root = tmp_path_factory.mktemp("benchmark")
    for name, schema in SCHEMAS.items():
        split, stem = name.split("---")
        (root / split).mkdir(exist_ok=True)
        (root / split / f"{stem}.json").write_text(json.dumps(schema))
    return root


@pytest.fixture
def guided_cli():
    """Run the command line in this process: ``guided_cli("check", "x.json") -> Result``."""

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(application, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture(scope="session")
def nano():
    from guided.hf import load

    return load("nano", device="cpu", local_files_only=True)


@pytest.fixture(scope="session")
def tokens(nano):
    """The packaged model's ids."""
    from guided.eval.engines.protocol import TokenSpace

    return TokenSpace(nano.tokenizer, nano.vocabulary, nano.vocabulary.size)
