"""Every bad input: one clear line that says what, where and what to do, and the documented exit code."""

from __future__ import annotations

import json
import sqlite3

import pytest

from guided.cli.exits import ExitCode, describe, exit_code
from guided.errors import GrammarError, GuidedError, LimitError, UnsatisfiableError, UnsupportedError, VocabularyError
from tests.unit.cli.conftest import one_line


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (GuidedError("x"), 2),
        (GrammarError("x"), 2),
        (UnsupportedError("x"), 3),
        (UnsatisfiableError("x"), 3),
        (VocabularyError("x"), 3),
        (LimitError("x"), 4),
        (ValueError("x"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes(error, code):
    assert exit_code(error) == code
    assert describe(error)["exit_code"] == code


def test_descriptions_are_on_one_line():
    found = describe(GuidedError("two\nlines", where="here", remedy="do\n  this"))
    assert (found["message"], found["where"], found["remedy"]) == ("two lines", "here", "do this")
    assert describe(ZeroDivisionError("no\nway"))["message"] == "ZeroDivisionError: no"


SCHEMAS = {
    "{\n  'a': 1}": (2, ["the schema is not JSON", "schema.json, line 2, column 3"]),
    "[1": (2, ["the schema is not JSON", "line 1, column 3"]),
    "7": (2, ["schema.json"]),
    '{"type": "strin"}': (2, ["schema.json, #"]),
    '{"type": "integer", "minimum": 5, "maximum": 3}': (3, ["schema.json", "#"]),
    '{"allOf": [{"type": "string"}, {"type": "null"}]}': (3, ["schema.json"]),
    '{"properties": {"a": {"pattern": "(a+)\\\\1"}}}': (3, ["schema.json, #/properties/a/pattern"]),
    '{"items": {"$ref": "https://example.com/a"}}': (3, ["schema.json, #/items/$ref", "nothing is fetched"]),
}


@pytest.mark.parametrize("text", SCHEMAS)
@pytest.mark.parametrize("command", ["extract", "check"])
def test_bad_schemas(guided_cli, tmp_path, monkeypatch, text, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(text)
    arguments = ["extract", "--schema", "schema.json"] if command == "extract" else ["check", "schema.json"]
    result = guided_cli(*arguments, stdin="a text")
    code, parts = SCHEMAS[text]
    line = one_line(result.stderr)
    assert (result.exit_code, result.stdout) == (code, ""), line
    assert line.startswith("guided: error: "), line
    assert [part for part in parts if part not in line] == [], line


GRAMMARS = {
    ("x.lark", 'start: "a" b\n'): (2, ["x.lark, line 1, column 12"]),
    ("x.lark", "start: A\n%declare A\n"): (3, ["x.lark, line 1, column 8", "%declare"]),
    ("x.gbnf", 'root ::= "a\n'): (2, ["x.gbnf, line 1"]),
    ("x.gbnf", "root ::= other\n"): (2, ["'other' is not defined", "line 1, column 10"]),
    ("x.gbnf", 'root ::= "a" root\n'): (3, ["x.gbnf", "root"]),
    ("x.regex", "(a"): (2, ["x.regex"]),
    ("x.regex", r"(a+)\1"): (3, ["x.regex", "4"]),
    ("x.regex", r"a(?=b)c"): (3, ["no text matches"]),
    ("x.txt", "a: 1"): (2, ["cannot be told from its name", "--format"]),
}


@pytest.mark.parametrize(("name", "text"), GRAMMARS)
def test_bad_grammars(guided_cli, tmp_path, monkeypatch, name, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    result = guided_cli("check", name)
    code, parts = GRAMMARS[name, text]
    line = one_line(result.stderr)
    assert (result.exit_code, result.stdout) == (code, ""), line
    assert [part for part in parts if part not in line] == [], line


def test_files_that_cannot_be_read(guided_cli, person, letter, tmp_path):
    bad = tmp_path / "latin.json"
    bad.write_bytes(b'{"title": "caf\xe9"}')
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n")
    for arguments, message in (
        (["check", "no/such.json"], "there is no grammar file 'no/such.json'"),
        (["extract", "-s", "nothing.json", letter], "there is no schema file 'nothing.json'"),
        (["extract", "-s", "mine.py:Person", letter], "write what Person.model_json_schema() gives to a file"),
        (["extract", "-s", person, "nothing.txt"], "there is no text file 'nothing.txt'"),
        (["extract", "-s", tmp_path, letter], "is a folder"),
        (["check", bad], f"the grammar is not UTF-8 (at {bad}, byte 14)"),
        (["extract", "-s", person, empty], "the text is empty"),
        (["extract", "-s", "-", "-"], "both the schema and the text"),
        (["extract", "-s", person, letter, "--order", "x"], "there is no order 'x'"),
        (["extract", "-s", person, letter, "--whitespace", "[a"], "--whitespace"),
    ):
        result = guided_cli(*arguments, stdin="")
        line = one_line(result.stderr)
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert message in line, line


def test_errors_for_machines(guided_cli, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text('{"type": "integer", "minimum": 5, "maximum": 3}')
    result = guided_cli("check", path, "--json")
    assert result.exit_code == 3
    assert result.stderr == ""
    error = json.loads(result.stdout)["error"]
    assert error["kind"] == "UnsatisfiableError"
    assert error["where"].startswith(f"{path}, #")
    assert error["exit_code"] == 3


def test_models_that_cannot_be_loaded(guided_cli, person, letter, model_folder, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors", "generation_config.json"):
        (bare / name).write_bytes((model_folder / name).read_bytes())
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    for model, message in (
        (tmp_path / "nothing", "no such folder"),
        (tmp_path, "holds no model"),
        (letter, "is a file, not a model's folder"),
        (bare, "has no tokenizer"),
        (broken, "cannot load the configuration"),
        ("a b/c", "a b/c"),
    ):
        result = guided_cli("extract", "-s", person, letter, "-m", model, "--offline")
        line = one_line(result.stderr)
        assert (result.exit_code, result.stdout) == (2, ""), line
        assert message in line, line


def test_databases_that_cannot_be_read(guided_cli, model_folder, tmp_path, letter):
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).close()
    empty.touch()
    torn = tmp_path / "torn.db"
    torn.write_bytes(b"SQLite format 3\x00" + b"\x01" * 500)
    missing = tmp_path / "missing.db"
    for url, code, message in (
        (missing, 2, "there is no such database file"),
        (f"sqlite:///{missing}", 2, "there is no such database file"),
        (letter, 2, "is not a SQLite database"),
        (torn, 2, "cannot be read"),
        (tmp_path, 2, "a folder"),
        (empty, 3, "no tables"),
        ("oracle://me:secret@host/x", 3, "'oracle' is not supported"),
        ("sqlite:://x", 2, "not a database URL"),
    ):
        result = guided_cli("sql", "--db", url, "How many?", "-m", model_folder)
        line = one_line(result.stderr)
        assert (result.exit_code, result.stdout) == (code, ""), line
        assert message in line, line
        assert "secret" not in line
    assert not missing.exists()


def test_an_unforeseen_error_is_one_line_and_debug_shows_more(guided_cli, person, monkeypatch):
    def fail(*arguments, **options):
        raise ZeroDivisionError("unforeseen\ntrouble")

    monkeypatch.setattr("guided.cli.commands.check.read_grammar", fail)
    result = guided_cli("check", person)
    assert result.exit_code == ExitCode.BUG
    assert "ZeroDivisionError: unforeseen" in one_line(result.stderr)
    assert "--debug" in result.stderr
    result = guided_cli("check", person, "--debug")
    assert result.exit_code == ExitCode.BUG
    assert "Traceback" in result.stderr


def test_interruption(guided_cli, person, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("guided.cli.commands.check.read_grammar", interrupt)
    assert guided_cli("check", person).exit_code == 130
