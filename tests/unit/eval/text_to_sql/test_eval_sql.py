"""`guided eval sql`: questions read from small folders, coverage and answers, and runs that go on where they stopped."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

import guided
from guided.errors import GuidedError
from guided.eval.text_to_sql.coverage import coverage
from guided.eval.text_to_sql.evaluator import SqlEvaluator, statement_of
from guided.eval.text_to_sql.measures import measure
from guided.eval.text_to_sql.questions import read_questions
from guided.eval.text_to_sql.results import SqlLog, SqlMethod, SqlOutcome, SqlRecord, SqlSettings, key_of
from guided.eval.text_to_sql.run import records_of, run_here, tasks_for, tasks_left
from guided.grammar.sql import reflect
from tests.databases import Databases

SETTINGS = SqlSettings(max_new_tokens=300)
METHODS = (SqlMethod.GOLD, SqlMethod.GUIDED, SqlMethod.NONE)


def fill(path: Path, *names: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE pet (name TEXT, age INT)")
    connection.executemany("INSERT INTO pet VALUES (?, ?)", [(name, len(name)) for name in names])
    connection.commit()
    connection.close()


@pytest.fixture(scope="module")
def spider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("spider")
    fill(root / "database" / "pets" / "pets.sqlite", "Rex", "Tommy")
    fill(root / "database" / "pets" / "other.sqlite", "Anna")
    fill(root / "database" / "empty" / "empty.sqlite")
    rows = [
        {"db_id": "pets", "question": "How many pets are there?", "query": "SELECT COUNT(*) FROM pet"},
        {"db_id": "empty", "question": "How many pets are there?", "query": "SELECT COUNT(*) FROM pet"},
        {"db_id": "pets", "question": "Names?", "query": "SELECT nothing FROM pet"},
        {"db_id": "pets", "question": "Names?", "query": "SELECT name FROM pet WHERE x"},
    ]
    (root / "dev.json").write_text(json.dumps(rows))
    return root


@pytest.fixture(scope="module")
def finished(spider: Path, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("out") / "results.jsonl"
    tasks = tasks_for(read_questions(spider), METHODS)
    with SqlLog(path) as log:
        run_here(tasks, SETTINGS, log)
        return path, tasks, records_of(tasks, SETTINGS, log)


def test_questions_of_three_data_sets(spider: Path, tmp_path: Path) -> None:
    questions = read_questions(spider)
    assert [question.id for question in questions] == ["dev/0", "dev/1", "dev/2", "dev/3"]
    assert [Path(url).name for url in questions[0].urls] == ["pets.sqlite", "other.sqlite"], "its own file comes first"
    assert len(read_questions(spider, limit=2, seed=3)) == 2
    assert read_questions(spider, limit=2, seed=3) == read_questions(spider, limit=2, seed=3)
    assert [question.database for question in read_questions(spider, databases=["empty"])] == ["empty"]
    assert read_questions(spider, url="postgresql://h/{db}")[0].urls == ("postgresql://h/pets",)
    fill(tmp_path / "db" / "pets.sqlite", "Rex")
    (tmp_path / "questions.csv").write_text("db_name,question,query,instructions\npets,How many?,SELECT 1;,Count.\n")
    (defog,) = read_questions(tmp_path)
    assert (defog.gold, defog.hint) == ("SELECT 1;", "Count.")
    bird = tmp_path / "bird"
    fill(bird / "dev_databases" / "pets" / "pets.sqlite", "Rex")
    row = {"db_id": "pets", "question": "How many?", "evidence": "count", "SQL": "SELECT 1"}
    (bird / "dev.json").write_text(json.dumps([row]))
    assert read_questions(bird)[0].hint == "count"


def test_data_that_are_none(spider: Path, tmp_path: Path) -> None:
    with pytest.raises(GuidedError, match="no questions"):
        read_questions(tmp_path)
    with pytest.raises(GuidedError, match="no questions"):
        read_questions(spider, databases=["gone"])
    for text, what in (
        ("{", "cannot be read"),
        ("{}", "no list"),
        ('[{"db_id": "x"}]', "no database, text or query"),
        ('[{"db_id": "x", "question": "?", "query": "SELECT 1"}]', "'x' of a question is not there"),
    ):
        (tmp_path / "dev.json").write_text(text)
        with pytest.raises(GuidedError, match=what) as caught:
            read_questions(tmp_path)
        assert caught.value.remedy


def test_gold_queries(finished) -> None:
    _, _, records = finished
    gold = {record.id: record for record in records if record.method == "gold"}
    assert gold["dev/0"].gold_runs and gold["dev/0"].gold_covered and gold["dev/0"].gold_at is None
    assert not gold["dev/2"].gold_runs and "nothing" in gold["dev/2"].error and gold["dev/2"].gold_covered is False
    assert gold["dev/3"].gold_at is not None and "|" in gold["dev/3"].gold_near
    timed = [record for record in gold.values() if record.compile_s is not None]
    assert len(timed) == 2 and all(record.first_mask_ms for record in timed), "once for each database"
    assert len(gold["dev/0"].mask_us) > 3


def test_answers_run_and_are_judged_where_there_are_rows(finished) -> None:
    _, _, records = finished
    guided_ones = {record.id: record for record in records if record.method == "guided"}
    assert all(record.outcome is SqlOutcome.DONE and record.executable for record in guided_ones.values())
    assert guided_ones["dev/0"].match is True and guided_ones["dev/1"].match is None
    assert guided_ones["dev/2"].match is False, "the gold does not run, so no answer is its"
    by_name = {one.method: one for one in measure(records)}
    assert by_name["gold"].gold_runs == 0.5 and by_name["gold"].covered == 1.0
    assert by_name["guided"].judged == 3 and by_name["guided"].match == pytest.approx(1 / 3)
    assert by_name["guided"].executable == 1.0


def test_a_suite_wants_the_answer_on_every_database(spider: Path) -> None:
    evaluator = SqlEvaluator(SETTINGS)
    question = read_questions(spider)[0]
    database = evaluator._database(question.urls[0])
    assert evaluator._judged(question, database, "SELECT COUNT(*) FROM pet")["match"] is True
    assert evaluator._judged(question, database, "SELECT 2")["match"] is False
    assert evaluator._judged(question, database, "SELECT COUNT(*), 5 FROM pet") == {
        "executable": True, "match": False, "holds": True,
    }  # fmt: skip
    wrong = evaluator._judged(question, database, "SELECT COUNT( FROM pet")
    assert wrong["executable"] is False and wrong["match"] is False and "syntax" in wrong["error"]


def test_a_run_goes_on_and_repeats_nothing(finished) -> None:
    path, tasks, records = finished
    lines = path.read_bytes().splitlines(keepends=True)
    short = path.with_name("short.jsonl")
    short.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    with SqlLog(short) as log:
        assert len(tasks_left(tasks, SETTINGS, log)) == 1
        run_here(tasks, SETTINGS, log)
        again = records_of(tasks, SETTINGS, log)
    assert [(r.key, r.sql, r.match) for r in again] == [(r.key, r.sql, r.match) for r in records]
    assert SqlRecord.of(json.loads(records[0].line())) == records[0]


def test_keys(spider: Path, tmp_path: Path) -> None:
    question = read_questions(spider)[0]
    moved = read_questions(spider, url=None)[0]
    keys = {
        key_of(question, SqlMethod.GOLD, SETTINGS),
        key_of(question, SqlMethod.NONE, SETTINGS),
        key_of(question, SqlMethod.GOLD, SqlSettings(max_new_tokens=9)),
    }
    assert len(keys) == 3 and key_of(moved, SqlMethod.GOLD, SqlSettings(max_new_tokens=300, offline=True)) in keys


def test_a_database_that_is_gone_is_refused(spider: Path) -> None:
    (question,) = read_questions(spider, databases=["empty"])
    gone = type(question)(question.id, "x", question.question, question.gold, ("/nowhere/x.sqlite",))
    record = SqlEvaluator(SETTINGS).evaluate(gone, SqlMethod.GUIDED)
    assert record.outcome is SqlOutcome.REFUSED and "no such database file" in record.reason
    assert measure([record])[0].refused == 1
    long = type(question)(question.id, "x", "word " * 20_000, question.gold, question.urls)
    record = SqlEvaluator(SETTINGS).evaluate(long, SqlMethod.GUIDED)
    assert record.outcome is SqlOutcome.REFUSED and "room" in record.reason


def test_where_a_text_leaves_a_language(spider: Path) -> None:
    schema = reflect(spider / "database" / "pets" / "pets.sqlite")
    evaluator = SqlEvaluator(SETTINGS)
    constraint = guided.compile(guided.sql(schema), evaluator.loaded.vocabulary)
    assert coverage(constraint, "SELECT name FROM pet").at is None
    assert coverage(constraint, "SELECT name FROM").at == len("SELECT name FROM")
    left = coverage(constraint, "SELECT name FROM dog")
    assert left.at == len("SELECT name FROM ") and left.near == "SELECT name FROM |dog"


def test_statements_in_free_text() -> None:
    assert statement_of("SELECT 1") == "SELECT 1"
    assert statement_of("\nSELECT a\nFROM t;\n\nThis lists a.") == "SELECT a\nFROM t;"
    assert statement_of("Here:\n```\nSELECT 1\n") == "SELECT 1"


def test_the_command(guided_cli, spider: Path, tmp_path: Path) -> None:
    arguments = ("eval", "sql", "--data", spider, "--out", tmp_path / "out", "--method", "gold")
    shown = guided_cli(*arguments)
    assert shown.exit_code == 0 and "100.0%" in shown.stdout and "gold" in shown.stdout
    again = guided_cli(*arguments, "--json")
    summary = json.loads(again.stdout)
    assert summary["done"] == summary["of"] == 4 and summary["measures"][0]["covered"] == 1.0
    missing = guided_cli("eval", "sql", "--data", tmp_path / "nowhere")
    assert missing.exit_code != 0 and "no questions" in missing.stderr


@pytest.mark.slow
def test_ray_answers_as_here(spider: Path, tmp_path: Path, finished) -> None:
    pytest.importorskip("ray")
    from guided.eval.text_to_sql.run import run_on_ray

    _, tasks, records = finished
    with SqlLog(tmp_path / "results.jsonl") as log:
        run_on_ray(tasks, SETTINGS, log, workers=1)
        found = records_of(tasks, SETTINGS, log)
    assert [(r.key, r.sql, r.match) for r in found] == [(r.key, r.sql, r.match) for r in records]


def test_another_dialect_is_refused_in_words(databases: Databases, spider: Path) -> None:
    """Until its language is there."""
    url = databases("duckdb").create("CREATE TABLE pet (name VARCHAR, age INTEGER)")
    question = read_questions(spider, url=url)[0]
    record = SqlEvaluator(SETTINGS).evaluate(question, SqlMethod.GOLD)
    assert record.outcome in (SqlOutcome.REFUSED, SqlOutcome.DONE)
    assert record.outcome is SqlOutcome.DONE or "dialect" in record.reason
