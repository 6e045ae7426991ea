"""`guided extract` on a model with random weights: whatever it writes validates, whole and within the budget."""

from __future__ import annotations

import csv
import json
import os
import re
import select
import subprocess
import sys
import threading

import jsonschema
import pytest
import typer.main

from guided.cli.application import application
from tests.amounts import each
from tests.unit.cli.conftest import PERSON, one_line


def test_the_output_validates(guided_cli, person, letter, model_folder):
    result = guided_cli("extract", "-s", person, letter, "-m", model_folder)
    assert result.exit_code == 0
    assert result.stderr == ""
    jsonschema.validate(json.loads(result.stdout), PERSON)
    assert result.stdout.endswith("}\n")


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


@pytest.mark.parametrize("budget", each([30, 40, 100], 2))
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
    assert any(drawn("--sample", "--seed", seed) != first for seed in (0, 2))
    assert drawn("--temperature", 0, "--seed", 5) == drawn()


def test_a_batch_keeps_order_and_names(guided_cli, person, model_folder, tmp_path):
    lines = [
        '"Ada is 36."',
        "",
        '{"id": "g", "text": "Grace was 85"}',
        '"line\u2028separator"',
        '"' + "word " * 2000 + '"',
        r'"half of a pair: \ud800"',
    ]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(lines))
    result = guided_cli("extract", "-s", person, "--batch", path, "-m", model_folder, "--batch-size", 3)
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["id"] for one in records] == [0, "g", 2, 3, 4]
    for one in records[:3]:
        jsonschema.validate(one["value"], PERSON)
    assert [one["error"]["kind"] for one in records[3:]] == ["LimitError", "GuidedError"]
    assert result.exit_code == 1
    assert "2 of 5 texts failed" in one_line(result.stderr)


def test_a_text_of_a_batch_has_the_room_that_it_has_alone(guided_cli, model_folder, tmp_path):
    """Beside one that leaves room for few tokens, too."""
    schema = tmp_path / "long.json"
    schema.write_text('{"type": "array", "items": {"type": "string", "minLength": 40}, "minItems": 1}')
    texts = ["word " * 152, "Ida"]
    options = ("-s", schema, "-m", model_folder)
    stdin = "\n".join(map(json.dumps, texts))
    result = guided_cli("extract", *options, "--batch", stdin=stdin)
    assert result.exit_code == 0, result.output
    alone = [json.loads(guided_cli("extract", *options, stdin=text).stdout) for text in texts]
    assert [json.loads(line)["value"] for line in result.stdout.splitlines()] == alone
    assert len(json.dumps(alone[1])) > len(json.dumps(alone[0]))


def test_what_is_wrong_with_a_line_is_that_lines_error(guided_cli, person, model_folder):
    lines = [
        b'"Ada is 36."',
        b"{",
        b'{"id": "n", "text": 3}',
        b'""',
        b'{"id": "e", "text": " "}',
        b"\xff",
        b"[1]",
        b'"Ada"',
    ]
    stdin = b"\xef\xbb\xbf" + b"\n".join(lines)
    result = guided_cli("extract", "-s", person, "--batch", "-m", model_folder, "--batch-size", 3, stdin=stdin)
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["id"] for one in records] == [0, 1, "n", 3, "e", 5, 6, 7]
    assert ["value" in one for one in records] == [True, *[False] * 6, True]
    faults = [one["error"] for one in records if "error" in one]
    assert [fault["where"] for fault in faults] == [
        "standard input, line 2, column 2", *(f"standard input, line {n}" for n in range(3, 8))
    ]  # fmt: skip
    for fault, says in zip(faults, ["not JSON", "no text", "empty", "empty", "not UTF-8", "neither"], strict=True):
        assert says in fault["message"] and fault["remedy"]
    assert result.exit_code == 1 and "6 of 8 texts failed" in one_line(result.stderr)


def test_a_batch_without_lines_or_file_stops_before_anything_is_done(guided_cli, person, model_folder, tmp_path):
    for file, stdin, says in (("-", "\n\n", "the batch has no lines"), (tmp_path / "no", None, "cannot be read")):
        result = guided_cli("extract", "-s", person, "--batch", file, "-m", model_folder, stdin=stdin)
        assert result.exit_code == 2 and result.stdout == "" and says in one_line(result.stderr)
    result = guided_cli("extract", "-s", person, "--resume", tmp_path / "no", "-m", model_folder)
    assert result.exit_code == 2 and "only a batch" in one_line(result.stderr)


def test_a_batch_that_was_stopped_goes_on(guided_cli, person, model_folder, tmp_path):
    texts, out = tmp_path / "texts.jsonl", tmp_path / "people.jsonl"
    texts.write_text("\n".join(['"Ada is 36."', '{"id": "g", "text": "Grace was 85"}', "{", '"Ida"', '"Bob"']))

    def run(*options):
        command = ["extract", "-s", person, "--batch", texts, "-m", model_folder, "--batch-size", 2]
        return guided_cli(*command, "--out", out, *options)

    first = run()
    whole = out.read_bytes()
    assert first.exit_code == 1 and first.stdout == "" and whole.count(b"\n") == 5
    assert run().exit_code == 2 and out.read_bytes() == whole, "a file is not overwritten"
    lines = whole.splitlines(keepends=True)
    for kept in (b"".join(lines[:3]) + lines[3][:7], whole):
        out.write_bytes(kept)
        again = run("--resume")
        assert again.exit_code == 1 and "1 of 5 texts failed" in one_line(again.stderr)
        assert [json.loads(line)["id"] for line in out.read_bytes().splitlines()] == [0, "g", 2, 3, 4]
        assert out.read_bytes().startswith(b"".join(lines[: kept.count(b"\n")]))
    out.write_bytes(lines[1])
    wrong = run("--resume")
    assert wrong.exit_code == 2 and "people.jsonl, line 1" in one_line(wrong.stderr)
    out.write_bytes(b"")
    assert run("--resume").exit_code == 1 and out.read_bytes().count(b"\n") == 5


def test_a_table_becomes_a_table(guided_cli, person, model_folder, tmp_path):
    letters, out = tmp_path / "letters.csv", tmp_path / "people.csv"
    letters.write_text('letter,place\n"Ada is 36, or so.",London\n,Paris\nIda\n')
    command = ["extract", "-s", person, "--batch", letters, "--column", "letter", "-m", model_folder, "--out", out]
    result = guided_cli(*command)
    assert result.exit_code == 1 and result.stdout == "" and "2 of 3 texts failed" in one_line(result.stderr)
    ada, paris, cut = csv.DictReader(out.open())
    jsonschema.validate({"name": ada["name"], "age": int(ada["age"])}, PERSON)
    assert (ada["letter"], ada["place"], ada["error"]) == ("Ada is 36, or so.", "London", "")
    assert (paris["place"], paris["name"], paris["age"]) == ("Paris", "", "") and "empty" in paris["error"]
    assert (cut["letter"], cut["place"]) == ("", "") and "1 cells" in cut["error"]
    whole = out.read_bytes()
    assert guided_cli(*command).exit_code == 2 and guided_cli(*command, "--resume").exit_code == 1
    assert out.read_bytes() == whole and sorted(tmp_path.iterdir()) == [letters, out, person]
    lines = guided_cli(*command[:-2])
    assert [json.loads(line)["id"] for line in lines.stdout.splitlines()] == [0, 1, 2]
    assert json.loads(lines.stdout.splitlines()[0])["value"]["name"] == ada["name"]


def test_members_of_lines_may_be_named(guided_cli, person, model_folder):
    stdin = '{"letter": "Ada is 36."}\n{"text": "Ada"}'
    result = guided_cli("extract", "-s", person, "--batch", "--column", "letter", "-m", model_folder, stdin=stdin)
    first, second = map(json.loads, result.stdout.splitlines())
    assert "value" in first and "no letter" in second["error"]["message"]


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--column", "x"], 2, "only a batch has columns"),
        (["--batch", "--into", "x"], 2, "only a table has columns"),
        (["--batch", "--into", "x", "--out", "x.jsonl"], 2, "only a table has columns"),
        (["--batch", "--out", "open.csv", "-s", "OPEN"], 3, "members that it does not declare"),
        (["--batch", "--out", "no/such/folder.csv", "-s", "OPEN", "--strict"], 2, "cannot be written"),
    ],
)
def test_columns_that_cannot_be(guided_cli, person, letter, model_folder, tmp_path, options, code, says):
    opened = tmp_path / "open.json"
    opened.write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    options = [opened if option == "OPEN" else option for option in options]
    result = guided_cli("extract", "-s", person, "-m", model_folder, *options, stdin='"Ada"')
    assert result.exit_code == code and says in one_line(result.stderr), result.stderr


def test_lines_of_a_batch_come_before_later_ones_are_read(person, model_folder, monkeypatch):
    """Pipes that stay open: the first answer is there while the second text is not."""
    (read_text, write_text), (read_answer, write_answer) = os.pipe(), os.pipe()
    answers = []

    def ask():
        with os.fdopen(write_text, "wb", buffering=0) as texts, os.fdopen(read_answer, "rb") as lines:
            for text in (b'"Ada is 36."\n', b'"Ida is 12."\n'):
                texts.write(text)
                # What does not come before the texts end is no answer in time.
                answers.append(select.select([lines], [], [], 60)[0] and json.loads(lines.readline())["value"])

    monkeypatch.setattr(sys, "stdin", os.fdopen(read_text))
    monkeypatch.setattr(sys, "stdout", os.fdopen(write_answer, "w"))
    asking = threading.Thread(target=ask)
    asking.start()
    options = ["-s", person, "--batch", "-m", model_folder, "--batch-size", 1]
    assert not typer.main.get_command(application)(["extract", *map(str, options)], standalone_mode=False)
    asking.join(60)
    sys.stdin.close()
    sys.stdout.close()
    assert len(answers) == 2 and all(answers)


@pytest.mark.slow
def test_lines_of_a_batch_in_a_process(person, model_folder):
    """As above, and a process of its own, which loads everything first, writes nothing else."""
    command = [sys.executable, "-m", "guided", "extract", "-s", str(person), "--batch", "-m", str(model_folder)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*command, "--batch-size", "1"], **pipes) as process:
        try:
            for text in (b'"Ada is 36."\n', b'"Ida is 12."\n'):
                process.stdin.write(text)
                process.stdin.flush()
                assert json.loads(process.stdout.readline())["value"]
            process.stdin.close()
            # A process of its own writes nothing else, whatever the libraries would like to say when they are loaded.
            assert (process.wait(60), process.stderr.read()) == (0, b"")
        finally:
            process.kill()


def test_numbers_are_printed_as_they_were_written(guided_cli, tmp_path, letter, model_folder):
    schema = tmp_path / "number.json"
    schema.write_text('{"const": 1e400}')
    result = guided_cli("check", schema, "--json")
    if result.exit_code:
        pytest.skip("numbers beyond double precision are refused")
    text = guided_cli("extract", "-s", schema, letter, "-m", model_folder, "--json").stdout
    assert "Infinity" not in text


def test_a_denoiser_extracts_as_any_model_does_and_its_canvas_is_replayed(guided_cli, person, letter, tmp_path):
    page = tmp_path / "canvas.html"
    denoiser = ("-m", "nano-diffusion", "--max-new-tokens", "64")
    result = guided_cli("extract", "-s", person, letter, *denoiser, "--replay", page)
    assert result.exit_code == 0, result.stderr
    jsonschema.validate(json.loads(result.stdout), PERSON)
    data = json.loads(re.search(r"const data = (.*?), canvas = ", page.read_text("utf-8"), re.DOTALL)[1])
    assert "".join(data["final"][: data["n_text"]]) == result.stdout.strip()
    committed = sorted(step["start"] + place for step in data["steps"] for place in step["committed"])
    assert len(committed) == len(set(committed)) >= data["n_text"]


def test_a_message_of_a_proto_file(guided_cli, tmp_path, letter, model_folder):
    pytest.importorskip("grpc_tools")
    path = tmp_path / "person.proto"
    path.write_text('syntax = "proto3"; message Person { bool old = 1; } message Other { bool b = 1; }')
    result = guided_cli("extract", "-s", path, "--start", "Person", letter, "-m", model_folder)
    assert result.exit_code == 0, result.stderr
    assert set(json.loads(result.stdout)) <= {"old"}
