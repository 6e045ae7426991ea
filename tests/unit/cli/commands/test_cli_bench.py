"""`guided bench speculation` on the packaged model."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from guided.cli.application import application

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "person.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "texts.jsonl").write_text('"Anna Smith is 34."\n{"text": "Tom Lee turned 51."}\n')
    return [str(tmp_path / "person.json"), "--texts", str(tmp_path / "texts.jsonl"), "--max-new-tokens", "24"]


def test_the_table(files):
    result = CliRunner().invoke(application, ["bench", "speculation", *files, "--json", "--draft-model", "nano"])
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    ways = {way["name"]: way for way in record["ways"]}
    assert list(ways) == [
        "plain", "auto", "prompt lookup", "draft model", "transformers", "transformers, prompt lookup"
    ]  # fmt: skip
    assert record["texts"] == 2
    assert len({way["tokens"] for way in ways.values()}) == 1
    assert all(way["different_texts"] == 0 for way in ways.values())
    assert ways["plain"]["speed"] == 1.0
    # The target drafting for itself is right whenever it is sure enough to go on.
    assert ways["draft model"]["passes"] < ways["plain"]["passes"] / 2
    assert ways["auto"]["passes"] <= ways["plain"]["passes"]


def test_for_people(files):
    result = CliRunner().invoke(application, ["bench", "speculation", *files, "--limit", "1"])
    assert result.exit_code == 0, result.output
    assert "passes per" in result.output
    assert "transformers" in result.output


def test_sampling_is_refused(files):
    result = CliRunner().invoke(application, ["bench", "speculation", *files, "--sample", "--json"])
    assert result.exit_code != 0
    assert "greedily" in result.stdout
