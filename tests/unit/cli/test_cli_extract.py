"""`guided extract` on a model with random weights: whatever it writes validates, whole and within the budget."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import pytest

from tests.unit.cli.conftest import PERSON, one_line


def test_the_output_validates(guided_cli, person, letter, model_folder):
    result = guided_cli("extract", "-s", person, letter, "-m", model_folder)
    assert result.exit_code == 0
    assert result.stderr == ""
    jsonschema.validate(json.loads(result.stdout), PERSON)
    assert result.stdout.count("\n") == 1


def test_standard_input_is_the_default(guided_cli, person, letter, model_folder):
    named = guided_cli("extract", "-s", person, letter, "-m", model_folder)
    piped = guided_cli("extract", "-s", person, "-m", model_folder, stdin=letter.read_text())
    assert piped.exit_code == 0
    assert piped.stdout == named.stdout
    schema_piped = guided_cli("extract", "-s", "-", letter, "-m", model_folder, stdin=person.read_text())
    assert schema_piped.stdout == named.stdout


def test_json_for_machines(guided_cli, person, letter, model_folder):
    plain = guided_cli("extract", "-s", person, letter, "-m", model_folder)
    result = guided_cli("extract", "-s", person, letter, "-m", model_folder, "--json")
    found = json.loads(result.stdout)
    assert found["value"] == json.loads(plain.stdout)
    assert found["tokens"] > 5
    assert found["model"] == str(model_folder)


@pytest.mark.parametrize("budget", [30, 40, 100])
def test_a_budget_never_cuts(guided_cli, tmp_path, letter, model_folder, budget):
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 3}
    path = tmp_path / "long.json"
    path.write_text(json.dumps(schema))
    result = guided_cli("extract", "-s", path, letter, "-m", model_folder, "--max-new-tokens", budget, "--json")
    found = json.loads(result.stdout)
    jsonschema.validate(found["value"], schema)
    assert found["tokens"] < budget


def test_limits(guided_cli, person, letter, model_folder):
    result = guided_cli("extract", "-s", person, letter, "-m", model_folder, "--max-new-tokens", 3)
    assert result.exit_code == 4
    assert "too few: the shortest answer takes" in one_line(result.stderr)
    result = guided_cli("extract", "-s", person, letter, "-m", model_folder, "--max-new-tokens", 1020)
    assert result.exit_code == 4
    assert "leaves no room" in one_line(result.stderr)
    result = guided_cli("extract", "-s", person, "-m", model_folder, stdin="word " * 2000)
    assert result.exit_code == 4
    assert "the model has room for 1024" in one_line(result.stderr)


def test_white_space_by_choice(guided_cli, person, letter, model_folder):
    for whitespace, spaces in (("compact", ("",)), ("\\n", ("\n",)), ("line", ("", " "))):
        result = guided_cli("extract", "-s", person, letter, "-m", model_folder, "--whitespace", whitespace)
        assert result.exit_code == 0, result.stderr
        text = result.stdout[:-1]
        jsonschema.validate(json.loads(text), PERSON)
        assert text[1 : text.index('"')] in spaces
        assert text[0] == "{"


def test_sampling_depends_on_the_seed_alone(guided_cli, person, letter, model_folder):
    def drawn(*options):
        return guided_cli("extract", "-s", person, letter, "-m", model_folder, *options).stdout

    first = drawn("--sample", "--seed", 1)
    assert first == drawn("--temperature", "1.0", "--seed", 1)
    assert len({drawn("--sample", "--seed", seed) for seed in range(4)}) > 1
    assert drawn("--temperature", 0, "--seed", 5) == drawn()


def test_a_batch_keeps_order_and_names(guided_cli, person, model_folder, tmp_path):
    lines = [
        '"Ada is 36."',
        "",
        '{"id": "g", "text": "Grace was 85"}',
        '"line\u2028separator"',
        '"' + "word " * 2000 + '"',
    ]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(lines))
    result = guided_cli("extract", "-s", person, "--batch", path, "-m", model_folder, "--batch-size", 3)
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["id"] for one in records] == [0, "g", 2, 3]
    for one in records[:3]:
        jsonschema.validate(one["value"], PERSON)
    assert records[3]["error"]["kind"] == "LimitError"
    assert result.exit_code == 1
    assert "1 of 4 texts failed" in one_line(result.stderr)


@pytest.mark.parametrize(
    ("text", "place"),
    [('"a"\n{"text": 3}\n', "line 2"), ('"a"\nb\n', "line 2, column 1"), ("\n\n", "the batch has no lines")],
)
def test_bad_batches_stop_before_anything_is_done(guided_cli, person, model_folder, text, place):
    result = guided_cli("extract", "-s", person, "--batch", "-", "-m", model_folder, stdin=text)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert place in one_line(result.stderr)


def test_numbers_are_printed_as_they_were_written(guided_cli, tmp_path, letter, model_folder):
    schema = tmp_path / "number.json"
    schema.write_text('{"const": 1e400}')
    result = guided_cli("check", schema, "--json")
    if result.exit_code:
        pytest.skip("numbers beyond double precision are refused")
    text = guided_cli("extract", "-s", schema, letter, "-m", model_folder, "--json").stdout
    assert "Infinity" not in text


def test_a_process_of_its_own_writes_nothing_to_standard_error(person, letter, model_folder):
    command = [sys.executable, "-m", "guided", "extract", "-s", person, letter, "-m", model_folder]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    jsonschema.validate(json.loads(done.stdout), PERSON)
