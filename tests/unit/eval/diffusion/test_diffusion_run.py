"""`guided eval diffusion`: records, what is gone on with, the table, and fields counted."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from guided.eval.diffusion.comparisons import Basis, compare
from guided.eval.diffusion.methods import METHODS
from guided.eval.diffusion.report import measure, save_plot, show_measures
from guided.eval.diffusion.results import DiffusionLog, DiffusionRecord, DiffusionSettings, key_of
from guided.eval.diffusion.run import RUN
from guided.eval.diffusion.tasks import fields_right, read_tasks
from guided.eval.steering.measures import Estimate


def test_a_run_is_gone_on_with_and_measured(tmp_path):
    settings = DiffusionSettings()
    tasks = [(task, METHODS[name]) for task in read_tasks(1) for name in ("free, 1 steps", "solved, 1 steps")]
    path = tmp_path / "results.jsonl"
    with DiffusionLog(path) as log:
        RUN.run_here(tasks[:2], settings, log)
    with DiffusionLog(path) as log:
        assert RUN.tasks_left(tasks, settings, log) == tasks[2:]
        RUN.run_here(tasks, settings, log)
        records = RUN.records_of(tasks, settings, log)
    assert len(path.read_text().splitlines()) == 4
    measures = {one.method: one for one in measure(records)}
    solved = measures["solved, 1 steps"]
    # A canvas of 96 positions is one pass; only a text that is longer needs another.
    assert solved.tasks == 2 and solved.valid.mean == 1.0 and 1 <= solved.passes <= 2 and solved.reasons == 0
    save_plot(list(measures.values()), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_what_cannot_be_written_is_a_record_with_its_reason(tmp_path):
    settings = DiffusionSettings(max_new_tokens=2)
    with DiffusionLog(tmp_path / "results.jsonl") as log:
        RUN.run_here([(read_tasks(1)[0], METHODS["solved, 1 steps"])], settings, log)
        (record,) = log.records.values()
    assert not record.valid and "no text of the grammar has 2 tokens" in record.reason
    assert DiffusionRecord.of(json.loads(record.line())) == record


def test_keys_differ_where_results_might():
    task, other = read_tasks(1)
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


def test_methods_are_compared_text_by_text_at_equal_steps_and_at_equal_passes():
    def records(method, shares, passes):
        return [
            DiffusionRecord(f"{method} {i}", f"t{i}", method, True, share, passes) for i, share in enumerate(shares)
        ]

    found = compare([
        *records("solved, 8 steps", [1.0, 0.5, 0.5, 1.0], 8),
        *records("joint commits, 8 steps", [0.5, 0.0, 0.0, 0.5], 6),
        *records("joint commits, 16 steps", [1.0, 0.0, 0.5], 12),
        *records("joint commits, 32 steps", [1.0, 1.0, 1.0, 1.0], 24),
        *records("free, 4 steps", [0.0, 0.0, 0.0, 0.0], 4),
    ])  # fmt: skip
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
