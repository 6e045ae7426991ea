"""`guided eval diffusion`: records, what is gone on with, the table, and fields counted."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

import guided
from guided.eval.diffusion.comparisons import Basis, Counted, compare
from guided.eval.diffusion.languages import grammar_of, is_valid
from guided.eval.diffusion.methods import METHODS
from guided.eval.diffusion.report import measure, save_plot, show_measures, summary_record
from guided.eval.diffusion.results import DiffusionLog, DiffusionRecord, DiffusionSettings, key_of
from guided.eval.diffusion.run import RUN
from guided.eval.diffusion.tasks import FrontEnd, fields_right, read_tasks
from guided.eval.steering.measures import Estimate
from tests.amounts import some


def test_a_run_is_gone_on_with_and_measured(tmp_path):
    settings = DiffusionSettings()
    of_records = [each for each in FrontEnd if each is not FrontEnd.SQL]
    tasks = [
        (task, METHODS[name])
        for task in read_tasks(1, of_records)
        for name in ("free, 1 steps", "solved, 1 steps", "intersection, 1 steps")
    ]
    path = tmp_path / "results.jsonl"
    with DiffusionLog(path) as log:
        RUN.run_here(tasks[:2], settings, log)
    with DiffusionLog(path) as log:
        assert RUN.tasks_left(tasks, settings, log) == tasks[2:]
        RUN.run_here(tasks, settings, log)
        records = RUN.records_of(tasks, settings, log)
    assert len(path.read_text().splitlines()) == 9
    measures = measure(records)
    assert len(measures) == 9
    for solved in (one for one in measures if one.decoder == "solved"):
        # A canvas of 96 positions is one pass; only a text that is longer needs another.
        assert solved.tasks == 1 and solved.valid.mean == 1.0 and 1 <= solved.passes <= 2 and solved.reasons == 0
    console = Console(width=100, record=True, file=io.StringIO())
    show_measures(console, measures)
    shown = console.export_text()
    assert all(title in shown for title in ("json schema", "regex", "gbnf")) and "sql" not in shown
    save_plot(measures, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_a_published_decoder_that_cannot_do_a_front_end_is_in_the_table_all_the_same(tmp_path):
    """A gap of any length in a statement may hold any number of subqueries."""
    with DiffusionLog(tmp_path / "results.jsonl") as log:
        RUN.run_here([(read_tasks(1, [FrontEnd.SQL])[0], METHODS["intersection, 1 steps"])], DiffusionSettings(), log)
        (one,) = measure(list(log.records.values()))
    assert (one.front_end, one.tasks, one.valid.mean, one.reasons) == ("sql", 1, 0.0, 1)
    console = Console(width=100, record=True, file=io.StringIO())
    show_measures(console, [one])
    assert "intersection, 1 steps" in console.export_text()


@pytest.mark.parametrize("front_end", list(FrontEnd))
def test_right_answers_are_in_the_grammars_and_judged_valid_and_others_are_not(front_end):
    vocabulary = guided.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    tasks = read_tasks(some(20, 5), [front_end])
    assert {task.front_end for task in tasks} == {front_end}
    for task in tasks:
        text = task.answer if front_end is FrontEnd.SQL else json.dumps(task.answer, ensure_ascii=False)
        assert task.right(text) == 1 and is_valid(task, text)
        constraint = guided.compile(grammar_of(task), vocabulary)
        cut = text if front_end is FrontEnd.SQL else text[:-1]
        for other in (text, cut, f"{text} 1", text.replace(":", ";"), text.replace("SELECT", "SELECT SELECT")):
            state = constraint.start
            for byte in other.encode():
                state = constraint.advance(state, byte)
            # The judges know nothing of the engine.
            assert constraint.is_accepting(state) == is_valid(task, other) == (other == text), other


def test_tasks_of_the_front_ends_take_turns_and_none_is_twice():
    tasks = read_tasks(200)
    assert [task.front_end for task in tasks[:8]] == [*FrontEnd, *FrontEnd]
    assert len({task.prompt for task in tasks}) == len({task.id for task in tasks}) == len(tasks) == 500


def record(method, task="t0", right=1.0, passes=1, front_end="json schema"):
    return DiffusionRecord(f"{method} {task}", task, front_end, method, True, right, passes)


def test_what_cannot_be_written_is_a_record_with_its_reason(tmp_path):
    settings = DiffusionSettings(max_new_tokens=2)
    with DiffusionLog(tmp_path / "results.jsonl") as log:
        RUN.run_here([(read_tasks(1)[0], METHODS["solved, 1 steps"])], settings, log)
        (record,) = log.records.values()
    assert not record.valid and "no text of the grammar has 2 tokens" in record.reason
    assert DiffusionRecord.of(json.loads(record.line())) == record


def test_keys_differ_where_results_might():
    task, other = read_tasks(1)[:2]
    first, second = list(METHODS.values())[:2]
    keys = {
        key_of(task, first, DiffusionSettings()),
        key_of(other, first, DiffusionSettings()),
        key_of(task, second, DiffusionSettings()),
        key_of(task, first, DiffusionSettings(max_new_tokens=5)),
    }
    assert len(keys) == 4
    assert key_of(task, first, DiffusionSettings(offline=True)) in keys


@pytest.mark.parametrize(("written", "share"), [
    ('{"a": 1, "b": {"c": "x"}}', 1.0), ('{"a": true, "b": {"c": "x"}}', 0.5), ('{"a": 1}', 0.5), ("{", 0.0),
    ('{"a": 1, "b": {"c": "x"}, "d": 2}', 2 / 3), ("[]", 0.0),
])  # fmt: skip
def test_fields(written, share):
    assert fields_right(written, {"a": 1, "b": {"c": "x"}}) == pytest.approx(share)


def test_a_record_without_fields_can_be_right():
    assert (fields_right("{}", {}), fields_right('{"a": 1}', {}), fields_right("", {})) == (1.0, 0.0, 0.0)


def test_methods_are_compared_text_by_text_at_equal_steps_and_at_equal_passes():
    def records(method, shares, passes):
        return [record(method, f"t{i}", share, passes) for i, share in enumerate(shares)]

    found = compare([
        *records("solved, 8 steps", [1.0, 0.5, 0.5, 1.0], 8),
        *records("joint commits, 8 steps", [0.5, 0.0, 0.0, 0.5], 6),
        *records("joint commits, 16 steps", [1.0, 0.0, 0.5], 12),
        *records("joint commits, 32 steps", [1.0, 1.0, 1.0, 1.0], 24),
        *records("free, 4 steps", [0.0, 0.0, 0.0, 0.0], 4),
    ])  # fmt: skip
    assert {one.counted for one in found} == {Counted.FIELDS}
    facts = {(one.other, one.basis): (one.tasks, one.difference) for one in found}
    assert set(facts) == {
        ("joint commits, 8 steps", Basis.STEPS), ("joint commits, 16 steps", Basis.PASSES),
        ("free, 4 steps", Basis.PASSES),
    }  # fmt: skip
    # Every text half better: no doubt about the difference, though the intervals of the two means overlap.
    assert facts["joint commits, 8 steps", Basis.STEPS] == (4, Estimate(0.5, 0.5, 0.5))
    assert facts["joint commits, 16 steps", Basis.PASSES][0] == 3
    console = Console(width=100, record=True, file=io.StringIO())
    show_measures(console, [], found)
    assert "at equal passes" in (text := console.export_text()) and "+50.0 (+50.0 to +50.0)" in text


def test_statements_are_compared_apart_from_fields():
    records = [
        record("solved, 1 steps"), record("free, 1 steps", right=0.5),
        record("solved, 1 steps", "q0", 0.0, front_end="sql"), record("free, 1 steps", "q0", 1.0, front_end="sql"),
        record("solved, 1 steps", "r0", 1.0, front_end="regex"), record("free, 1 steps", "r0", 0.0, front_end="regex"),
    ]  # fmt: skip
    found = compare(records)
    means = {(one.counted, one.basis): (one.tasks, one.difference.mean) for one in found}
    assert means == {
        **{(Counted.FIELDS, basis): (2, 0.75) for basis in Basis},
        **{(Counted.STATEMENTS, basis): (1, -1.0) for basis in Basis},
    }
    written = json.loads(json.dumps(summary_record(measure(records), records, {"settings": {}}, 6)))
    assert (written["done"], written["of"], len(written["measures"])) == (6, 6, 6)
    assert [one["counted"] for one in written["differences"]] == [*["fields of records"] * 2, *["statements"] * 2]
    assert {one["basis"] for one in written["differences"]} == {basis.value for basis in Basis}
