"""`guided sql` on a model with random weights: the statement names what is there, runs, and is explained."""

from __future__ import annotations

import json
import re
import sqlite3

import pytest
import sqlglot

from tests.amounts import mostly_slow
from tests.tolerances import PASSES
from tests.unit.cli.conftest import one_line

QUESTION = "How old is Ada?"


def statement_of(guided_cli, database, model_folder, *options):
    result = guided_cli("sql", "--db", database, QUESTION, "-m", model_folder, "--no-run", "--json", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)["sql"]


@pytest.mark.parametrize("seed", mostly_slow(range(3), 1))
def test_statements_name_what_is_there(guided_cli, database, model_folder, seed):
    written = statement_of(guided_cli, database, model_folder, "--sample", "--seed", seed, "--max-new-tokens", 60)
    tree = sqlglot.parse_one(written, read="sqlite")
    assert {table.name for table in tree.find_all(sqlglot.exp.Table)} <= {"people"}
    connection = sqlite3.connect(database)
    connection.execute("EXPLAIN " + written)
    connection.close()


def test_the_answer_is_a_table(guided_cli, database, model_folder, monkeypatch):
    monkeypatch.setattr(
        "guided.cli.methods.writing.generate_batch", _writes("SELECT name, age FROM people ORDER BY age")
    )
    result = guided_cli("sql", "--db", f"sqlite:///{database}", QUESTION, "-m", model_folder)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "SELECT name, age FROM people ORDER BY age"
    assert "name" in lines[2]
    assert "age" in lines[2]
    assert [("Ada" in line, "36" in line) for line in lines].count((True, True)) == 1
    assert "NULL" in result.stdout
    assert "3 rows" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_note_where_the_budget_was_near(guided_cli, database, model_folder, monkeypatch):
    monkeypatch.setattr("guided.cli.methods.writing.generate_batch", _writes("SELECT name FROM people"))
    for budget, is_near in ((8, True), (80, False)):
        result = guided_cli("sql", "--db", database, QUESTION, "-m", model_folder, "--max-new-tokens", budget)
        assert result.exit_code == 0
        assert (f"of {budget} tokens" in " ".join(result.stderr.split())) is is_near


def test_names_that_only_a_sub_query_defines(tmp_path):
    from guided.cli.queries.asking import language_of
    from guided.cli.queries.options import QueryOptions
    from guided.grammar.sql import Column, DatabaseSchema, Table

    schema = DatabaseSchema((Table("people", (Column("name"),)),))
    for model, asked, is_there in (("nano", None, False), ("other", None, True), ("nano", True, True)):
        grammar = language_of(schema, QueryOptions(db="x.db", forward=asked), model)
        assert grammar.language().reads(b"SELECT n FROM (SELECT name AS n FROM people)") is is_there


def test_the_answer_for_machines(guided_cli, database, model_folder, monkeypatch):
    monkeypatch.setattr("guided.cli.methods.writing.generate_batch", _writes("SELECT id, name FROM people"))
    result = guided_cli("sql", "--db", database, QUESTION, "-m", model_folder, "--json", "--max-rows", 2)
    found = json.loads(result.stdout)
    assert found["columns"] == ["id", "name"]
    assert found["rows"] == [[1, "Ada"], [2, "Grace"]]
    assert found["more"]


def test_a_statement_that_fails_is_shown_and_the_answer_is_no(guided_cli, database, model_folder, monkeypatch):
    monkeypatch.setattr("guided.cli.methods.writing.generate_batch", _writes("SELECT salary FROM people"))
    result = guided_cli("sql", "--db", database, QUESTION, "-m", model_folder)
    assert result.exit_code == 1
    assert result.stdout == "SELECT salary FROM people\n"
    assert "the query failed: no such column" in one_line(result.stderr)
    result = guided_cli("sql", "--db", database, QUESTION, "-m", model_folder, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert found["error"]["exit_code"] == 1
    assert found["sql"] == "SELECT salary FROM people"


def _writes(statement):
    """Stands for the model where the test is about what follows."""

    def generate(*arguments, **options):
        from guided.hf import Generation

        return [Generation(statement, (5, 6), True)]

    return generate


def test_explain_is_the_probability_that_the_mask_took(guided_cli, database, model_folder):
    import torch

    from guided import hf
    from guided.eval.requests import sql_request
    from guided.grammar.sql import reflect

    result = guided_cli(
        "sql",
        "--db",
        database,
        QUESTION,
        "-m",
        model_folder,
        "--explain",
        "--no-run",
        "--json",
        "--max-new-tokens",
        60,
    )
    found = json.loads(result.stdout)
    trace = found["trace"]
    assert trace[-1]["text"] == "<end>"
    # The same from one pass over the whole text, with masks made by trying every token.
    import guided

    loaded = hf.load(model_folder)
    assert b"".join(loaded.vocabulary.token_bytes(step["token"]) for step in trace[:-1]).decode() == found["sql"]
    constraint = guided.compile(guided.sql(reflect(str(database))), loaded.vocabulary)
    prompt = loaded.tokenizer(sql_request(str(model_folder), reflect(str(database)), QUESTION))["input_ids"]
    tokens = [step["token"] for step in trace]
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([[*prompt, *tokens]])).logits[0]
    state = constraint.start
    for number, (step, token) in enumerate(zip(trace[:6], tokens, strict=False)):
        probabilities = torch.softmax(logits[len(prompt) - 1 + number].double(), -1)
        allowed = [t for t in range(loaded.vocabulary.size) if constraint.advance(state, t)]
        assert step["removed"] == pytest.approx(1 - float(probabilities[allowed].sum()), abs=PASSES)
        assert step["probability"] == pytest.approx(float(probabilities[token]), abs=PASSES)
        state = constraint.advance(state, token)
    assert max(step["removed"] for step in trace) > 0.5, "a random model must be corrected somewhere"


def test_explain_for_people(guided_cli, database, model_folder):
    result = guided_cli(
        "sql", "--db", database, QUESTION, "-m", model_folder, "--explain", "--no-run", "--max-new-tokens", 50
    )
    assert result.exit_code == 0
    assert "probability that the mask took away" in result.stdout
    assert "likeliest without the mask" in result.stdout
    assert "\x1b" not in result.stdout


def test_colours_by_shade():
    from io import StringIO

    from rich.console import Console

    from guided.cli.trace import TracedToken
    from guided.cli.trace_view import show_trace

    def shown(**options):
        out = Console(file=StringIO(), width=100, **options)
        steps = [TracedToken(1, "SELECT", 0.9, 0.0, "SELECT"), TracedToken(2, " x", 0.01, 0.97, "\n")]
        show_trace(out, steps)
        return out.file.getvalue()

    coloured = shown(force_terminal=True, color_system="standard")
    plain = shown()
    assert "SELECT\x1b" in coloured
    assert "\x1b" not in plain
    assert "97.0%" in plain
    assert r"'\n'" in plain
    assert "SELECT x\n" in plain
    assert "41m x" in coloured
    assert "41m" not in shown(force_terminal=True, no_color=True)


def test_sampled_values_reach_the_grammar_and_the_prompt(database):
    from guided.eval.requests import PACKAGED, sql_request
    from guided.grammar.sql import reflect

    schema = reflect(str(database), sample_values=5)
    assert "/* Ada | Grace */" in sql_request("other/model", schema, QUESTION)
    assert sql_request(PACKAGED, schema, QUESTION).startswith("SQL\npeople(id int, name text, age int)\n")


def test_an_empty_question(guided_cli, database):
    result = guided_cli("sql", "--db", database, " ")
    assert result.exit_code == 2
    assert "the question is empty" in one_line(result.stderr)


def test_rows_in_other_forms(guided_cli, database, model_folder, monkeypatch, tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr("guided.cli.methods.writing.generate_batch", _writes("SELECT name, age FROM people"))
    asked = ("sql", "--db", database, QUESTION, "-m", model_folder)
    shown = guided_cli(*asked, "--format", "csv", "--max-rows", 2)
    assert shown.stdout == "name,age\nAda,36\nGrace,85\n"
    assert "SELECT name, age" in shown.stderr and "more rows" in shown.stderr
    assert json.loads(guided_cli(*asked, "--format", "json").stdout)["rows"][0] == ["Ada", 36]
    written = guided_cli(*asked, "--output", tmp_path / "rows.parquet")
    assert written.stdout == "SELECT name, age FROM people\n" and "3 rows written" in written.stderr
    assert parquet.read_table(tmp_path / "rows.parquet").column("age").to_pylist() == [36, 85, 41]
    found = json.loads(guided_cli(*asked, "--output", tmp_path / "rows.csv", "--json").stdout)
    assert found["n_rows"] == 3 and "rows" not in found and (tmp_path / "rows.csv").exists()


def test_the_plan(guided_cli, database, model_folder, monkeypatch):
    monkeypatch.setattr("guided.cli.methods.writing.generate_batch", _writes("SELECT name FROM people"))
    asked = ("sql", "--db", database, QUESTION, "-m", model_folder, "--explain-plan")
    assert guided_cli(*asked, "--no-run").stdout == "SELECT name FROM people\nSCAN people\n"
    found = json.loads(guided_cli(*asked, "--json").stdout)
    assert found["plan"] == "SCAN people" and len(found["rows"]) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--format", "parquet"], "for files"),
        (["--format", "table", "--output", "x.csv"], "for the screen"),
        (["--output", "x.pdf"], "no format"),
        (["--no-run", "--format", "csv"], "no rows"),
        (["--resume"], "only a batch"),
        (["--batch", "x.jsonl"], "those of the batch"),
        (["--rerank", "execution", "--sampler", "smc"], "chooses by itself"),
        (["--rerank", "execution", "--explain"], "colours are those of one"),
    ],
)
def test_options_that_contradict_each_other(guided_cli, database, options, said):
    result = guided_cli("sql", "--db", database, QUESTION, *options)
    assert result.exit_code == 2
    assert said in one_line(result.stderr)


def test_questions_of_a_table(guided_cli, database, model_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("guided.cli.methods.writing.generate_batch", _writes("SELECT name FROM people WHERE id = 1"))
    questions = tmp_path / "questions.csv"
    questions.write_text("id,question\nfirst,Who is first?\n,\n")
    command = ["sql", "--db", database, "-m", model_folder, "--batch", questions]
    first, second = map(json.loads, guided_cli(*command).stdout.splitlines())
    assert (first["id"], first["rows"]) == ("first", [["Ada"]]) and "empty" in second["error"]["message"]
    refused = guided_cli(*command, "--output", tmp_path / "x.csv")
    assert refused.exit_code == 2 and "answers are JSON Lines" in one_line(refused.stderr)


def test_a_batch_goes_on(guided_cli, database, model_folder, tmp_path):
    questions, answers = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    lines = ['{"id": "a", "question": "How old is Ada?"}', '"Who is old?"', '{"question": ""}', '{"text": "no"}']
    questions.write_text("\n".join(lines))
    arguments = (
        "sql", "--db", database, "-m", model_folder, "--batch", questions, "--output", answers, "--max-new-tokens", 40,
    )  # fmt: skip
    result = guided_cli(*arguments)
    assert result.exit_code == 1 and "2 of 4 questions failed" in result.stderr
    whole = answers.read_text()
    records = [json.loads(line) for line in whole.splitlines()]
    assert [record["id"] for record in records] == ["a", 1, 2, 3]
    assert all("rows" in record and record["sql"] for record in records[:2])
    assert "question is empty" in records[2]["error"]["message"] and "no question" in records[3]["error"]["message"]
    again = guided_cli(*arguments)
    assert again.exit_code == 2 and "is there already" in one_line(again.stderr) and "--output" in again.stderr
    answers.write_text("\n".join(whole.splitlines()[:1]) + '\n{"id": 1, "sq')
    assert guided_cli(*arguments, "--resume").exit_code == 1
    assert [json.loads(line)["sql"] for line in answers.read_text().splitlines()[:2]] == [r["sql"] for r in records[:2]]


def test_reranking(guided_cli, database, model_folder):
    result = guided_cli(
        "sql", "--db", database, QUESTION, "-m", model_folder, "--rerank", "execution", "--samples", 3, "--json",
        "--max-new-tokens", 40,
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found["rerank"]["samples"] == 3 and 1 <= found["rerank"]["votes"] <= 3
    assert "rows" in found


def test_questions_of_no_and_of_many_characters(guided_cli, database, model_folder):
    for question, said in (("", "the question is empty"), ("word " * 20_000, "the model has room for")):
        result = guided_cli("sql", "--db", database, question, "-m", model_folder)
        assert result.exit_code != 0
        assert said in one_line(result.stderr)


def test_half_of_a_surrogate_pair_is_the_fault_of_its_line_alone(guided_cli, database, model_folder, tmp_path):
    """As an argument that is no UTF-8 has it, or a JSON escape: the tokenizer would raise a TypeError."""
    result = guided_cli("sql", "--db", database, "Who is \udcff old?", "-m", model_folder)
    assert result.exit_code == 2 and "half of a surrogate pair" in one_line(result.stderr)
    questions = tmp_path / "questions.jsonl"
    questions.write_text('"Who is \\ud800 old?"\n"Who is old?"\n')
    result = guided_cli("sql", "--db", database, "-m", model_folder, "--batch", questions, "--max-new-tokens", 40)
    first, second = map(json.loads, result.stdout.splitlines())
    assert "half of a surrogate pair" in first["error"]["message"] and "rows" in second


def test_databases_that_cannot_be_asked(guided_cli):
    for url, said in (
        ("postgresql://user:secret@127.0.0.1:1/x", "Check the host and the port"),
        ("mysql://user:secret@127.0.0.1:1/x", "Check the host and the port"),
        ("oracle://user:secret@127.0.0.1/x", "dialect 'oracle' is not supported"),
    ):
        pytest.importorskip("psycopg")
        pytest.importorskip("pymysql")
        result = guided_cli("sql", "--db", url, QUESTION)
        assert result.exit_code in (2, 3)
        assert said in one_line(result.stderr) and "secret" not in result.stderr


def test_tables_that_the_question_is_about(guided_cli, model_folder, tmp_path):
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript("CREATE TABLE people (name); CREATE TABLE orders (price); CREATE TABLE shops (city)")
    connection.close()
    asked = ("sql", "--db", tmp_path / "shop.db", "-m", model_folder, "--no-run", "--max-new-tokens", 60)
    found = json.loads(guided_cli(*asked, "--json", "--link", 1, "Which order has the highest price?").stdout)
    assert found["notes"][0] == "of 3 tables only those may be named that fit the question best: orders"
    assert not {"people", "shops"} & set(re.findall(r"\w+", found["sql"].lower()))
    shown = guided_cli(*asked, "--link", 1, "Which order has the highest price?")
    assert "of 3 tables only those may be named" in " ".join(shown.stderr.split())
