"""`guided eval awrs`: tasks read from a small folder, methods, measures, and runs that go on where they stopped."""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3

import pytest

from guided.errors import GuidedError
from guided.eval.awrs.measures import measure
from guided.eval.awrs.methods import PARTICLES, MethodName
from guided.eval.awrs.molecules import SHOWN, is_molecule
from guided.eval.awrs.problems import Problem, TaskName, read_problems
from guided.eval.awrs.results import AwrsLog, AwrsRecord, AwrsSettings, Ending, key_of
from guided.eval.awrs.run import records_of, run_here, tasks_for, tasks_left
from guided.eval.awrs.text_to_sql import same_answer

pytest.importorskip("sqlalchemy")
pytest.importorskip("regex")

PATTERNS = ["[0-9]{1,2}", "^(?>a|b)c?$", "(unclosed"]
"""Read by our grammar; asked of the package regex; nothing at all."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder in the layout of the data, with one or two problems of each task."""
    root = tmp_path_factory.mktemp("awrs")
    (root / "awrs").mkdir()
    with (root / "awrs" / "patterns.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["regex"], *([pattern] for pattern in PATTERNS)])
    (root / "awrs" / "GDB17_sample.txt").write_text("\n".join("C" * n for n in range(1, SHOWN + 2)))
    (root / "text2sql" / "spider").mkdir(parents=True)
    connection = sqlite3.connect(root / "text2sql" / "pets.sqlite")
    connection.executescript("CREATE TABLE pet (name TEXT, age INT); INSERT INTO pet VALUES ('Rex', 3), ('Tom', 5);")
    connection.close()
    questions = [
        {"db_id": "pets", "question": "How many pets are there?", "query": "SELECT count(*) FROM pet"},
        {"db_id": "empty", "question": "How many?", "query": "SELECT 1"},
    ]
    (root / "text2sql" / "spider" / "dev.json").write_text(json.dumps(questions))
    row = {"id": "small---flag", "schema": {"type": "boolean"}, "tests": []}
    with gzip.open(root / "maskbench-dev.jsonl.gz", "wt") as packed:
        packed.write(json.dumps(row) + "\n")
    return root


SETTINGS = AwrsSettings(particles=3, max_new_tokens=16, seconds=60)


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """All tasks by all methods, once."""
    path = tmp_path_factory.mktemp("out") / "results.jsonl"
    tasks = tasks_for(read_problems(data, list(TaskName), 3, 0), list(MethodName))
    tasks = [task for task in tasks if task[0].task is not TaskName.MOLECULES or task[0].id == "list/0"]
    with AwrsLog(path) as log:
        run_here(tasks, SETTINGS, log)
        return path, tasks, records_of(tasks, SETTINGS, log)


def test_problems_are_those_that_can_be_judged(data):
    problems = read_problems(data, list(TaskName), None, 0)
    counts = {task: sum(problem.task is task for problem in problems) for task in TaskName}
    assert counts == {TaskName.SQL: 1, TaskName.PATTERNS: 3, TaskName.MOLECULES: 20, TaskName.JSON: 1}
    assert read_problems(data, list(TaskName), 2, 5) == read_problems(data, list(TaskName), 2, 5)
    with pytest.raises(GuidedError, match="is not there"):
        read_problems(data / "awrs", [TaskName.SQL], None, 0)


def test_everything_is_answered_but_what_is_no_pattern(finished):
    _, tasks, records = finished
    assert len(records) == len(tasks)
    endings = {(record.id, record.ending) for record in records if record.ending is not Ending.ANSWERED}
    assert endings == {("pattern/2", Ending.REFUSED)}
    for record in records:
        if record.ending is Ending.ANSWERED:
            assert 0 <= record.accuracy <= 1
            assert record.n == 3
            assert record.tokens > 0


def test_what_the_condition_holds_is_right(finished):
    """The judges know nothing of the conditions, and agree with them: all weight that ended is on right answers."""
    _, _, records = finished
    methods = {MethodName.RERANK, MethodName.TWISTED, MethodName.AWRS}
    held = [
        r for r in records if r.method in methods and r.task in ("patterns", "json") and r.ending is Ending.ANSWERED
    ]
    assert any(record.satisfied for record in held)
    for record in held:
        assert record.accuracy == pytest.approx(record.satisfied)
        assert (record.log_ml is not None) == (record.satisfied > 0)
    awrs = [record for record in held if record.method == MethodName.AWRS.value]
    assert all(record.accuracy == pytest.approx(1) for record in awrs)


def test_a_run_goes_on_and_repeats_nothing(finished, monkeypatch):
    path, tasks, records = finished
    lines = path.read_bytes().splitlines(keepends=True)
    short = path.with_name("short.jsonl")
    short.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    with AwrsLog(short) as log:
        left = tasks_left(tasks, SETTINGS, log)
        assert len(left) == 1
        run_here(tasks, SETTINGS, log)
        again = records_of(tasks, SETTINGS, log)
    # The same seeds give the same texts and weights, whatever was run before.
    assert [(r.key, r.accuracy, r.log_ml, r.text) for r in again] == [
        (r.key, r.accuracy, r.log_ml, r.text) for r in records
    ]


def test_keys_tell_settings_apart(data, tmp_path):
    problem = read_problems(data, [TaskName.SQL], None, 0)[0]
    moved = Problem(problem.task, problem.id, {**problem.content, "database": str(tmp_path / "pets.sqlite")})
    keys = {
        key_of(problem, MethodName.AWRS, SETTINGS),
        key_of(problem, MethodName.LOCAL, SETTINGS),
        key_of(problem, MethodName.AWRS, AwrsSettings(seed=1)),
    }
    assert len(keys) == 3
    assert key_of(moved, MethodName.AWRS, SETTINGS) in keys


def test_statements_are_judged_by_their_rows(data):
    path = str(data / "text2sql" / "pets.sqlite")
    count = same_answer(path, "SELECT count(*) FROM pet")
    assert count("SELECT count(name) FROM pet")
    assert not count("SELECT 3")
    assert not count("SELECT nothing FROM nowhere")
    assert not count("DELETE FROM pet")
    names = same_answer(path, "SELECT name FROM pet")
    assert names("SELECT name FROM pet ORDER BY age DESC")
    assert not same_answer(path, "SELECT name FROM pet ORDER BY age")("SELECT name FROM pet ORDER BY age DESC")


def test_molecules():
    pytest.importorskip("rdkit")
    assert is_molecule("CC(=O)O")
    assert [is_molecule(text) for text in ("", "C1CC", "C(C)(C)(C)(C)C", "C C", "not one")] == [False] * 5


def test_measures_of_results_worked_out_by_hand():
    def record(number, ending=Ending.ANSWERED, **values):
        return AwrsRecord(str(number), "sql", str(number), "awrs-smc", ending, **values)

    [found] = measure(
        [
            record(1, accuracy=1.0, best=True, log_ml=-1.0, tokens=10, constraint_calls=20, seconds=1.0),
            record(2, accuracy=0.0, best=False, tokens=10, constraint_calls=40, seconds=3.0),
            record(3, Ending.TIME, accuracy=0.0, best=False, seconds=2.0),
            record(4, Ending.REFUSED),
        ]
    )
    assert (found.problems, found.refused, found.failed) == (3, 1, 1)
    assert found.accuracy == pytest.approx(1 / 3)
    assert found.standard_error == pytest.approx(1 / 3)
    assert (found.log_ml, found.with_evidence, found.calls_per_token, found.seconds) == (-1.0, 1, 3.0, 2.0)


def test_rejection_is_named_only_where_it_was_run():
    def record(number, method, **values):
        return AwrsRecord(str(number), "sql", str(number), method, Ending.ANSWERED, **values)

    for tested, name in ((0, "smc, masks"), (7, "awrs-smc"), (None, "awrs-smc")):
        records = [record(1, "awrs-smc", tokens=10, tested=0), record(2, "awrs-smc", tokens=10, tested=tested)]
        [found] = measure(records if tested is not None else [record(1, "awrs-smc", tokens=10)])
        assert found.shown == name and found.method == "awrs-smc"
        assert found.tested_per_token == (None if tested is None else tested / 20)
    [found] = measure([record(1, "local", tokens=10, tested=0)])
    assert found.shown == "local"


def test_the_command(guided_cli, data, tmp_path):
    options = ("--data", data, "--task", "json", "--limit", 1, "--max-new-tokens", 12)
    options = (*options, "--method", "local", "--method", "awrs-smc", "--out", tmp_path / "out")
    result = guided_cli("eval", "awrs", *options)
    assert result.exit_code == 0
    # The packaged model's vocabulary is small: every token came from a mask, and nothing was rejected.
    assert "smc, masks" in result.stdout and "awrs-smc" not in result.stdout
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["done"] == summary["of"] == 2
    assert {one["method"] for one in summary["measures"]} == {"local", "awrs-smc"}
    again = guided_cli("eval", "awrs", *options, "--json")
    assert json.loads(again.stdout)["measures"] == summary["measures"]
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 2


def test_the_plot(finished, tmp_path):
    pytest.importorskip("matplotlib")
    from guided.eval.awrs.plot import save_plot

    save_plot(measure(finished[2]), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"


def test_what_is_misspelt(guided_cli, data):
    result = guided_cli("eval", "awrs", "--data", data, "--method", "magic")
    assert result.exit_code == 2
    assert all(method.value in result.stderr for method in PARTICLES)
