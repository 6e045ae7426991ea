"""The measures against counts made by hand."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from guided.eval.measures import ALL_SPLITS, measure
from guided.eval.records import Outcome, Record
from guided.eval.report import failures_of, show_failures, show_measures, summary_record


def record(engine, name, outcome, **times):
    split = name.split("---")[0]
    return Record(f"{engine} {name}", name, split, engine, outcome, **times)


def times(first):
    return {"gct_s": first, "ttft_s": 2 * first, "tpot_ms": 3 * first, "mask_ms": first}


RECORDS = [
    record("guided", "a---1", Outcome.VALID, **times(1.0)),
    record("guided", "a---2", Outcome.VALID, **times(100.0)),
    record("guided", "a---3", Outcome.REFUSED, reason="no"),
    record("guided", "b---1", Outcome.VALID, **times(3.0)),
    record("guided", "b---2", Outcome.SKIPPED),
    record("xgrammar", "a---1", Outcome.VALID, **times(2.0)),
    record("xgrammar", "a---2", Outcome.INVALID, **times(0.001)),
    record("xgrammar", "a---3", Outcome.UNFINISHED, **times(5.0)),
    record("xgrammar", "b---1", Outcome.VALID, **times(4.0)),
    record("xgrammar", "b---2", Outcome.SKIPPED),
    record("none", "a---1", Outcome.INVALID, **times(0.5)),
    record("none", "a---2", Outcome.VALID, **times(0.5)),
]


def of(engine, split=ALL_SPLITS, records=RECORDS):
    (found,) = [one for one in measure(records) if (one.engine, one.split) == (engine, split)]
    return found


def test_coverage_and_compliance():
    ours = of("guided")
    assert (ours.schemas, ours.skipped) == (4, 1)
    assert (ours.declared, ours.empirical, ours.compliance) == (3 / 4, 3 / 4, 1.0)
    theirs = of("xgrammar")
    assert (theirs.declared, theirs.empirical, theirs.compliance) == (1.0, 2 / 4, 2 / 4)
    assert of("xgrammar", "a").empirical == pytest.approx(1 / 3)
    assert theirs.outcomes == {"valid": 2, "invalid": 1, "unfinished": 1, "skipped": 1}


def test_a_model_by_itself_declares_nothing():
    alone = of("none")
    assert (alone.declared, alone.compliance, alone.empirical) == (None, None, 0.5)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.COMPILE_TIME, Outcome.CRASHED])
def test_what_is_not_declared(outcome):
    assert of("guided", records=[record("guided", "a---1", outcome)]).declared == 0.0


@pytest.mark.parametrize("outcome", [Outcome.INVALID, Outcome.UNFINISHED, Outcome.GENERATE_TIME, Outcome.DEAD_END])
def test_what_is_declared_but_not_covered(outcome):
    found = of("guided", records=[record("guided", "a---1", outcome)])
    assert (found.declared, found.empirical, found.compliance) == (1.0, 0.0, 0.0)


def test_times_are_of_the_schemas_that_all_engines_answered():
    """a---2 is fast in one engine because its answer is wrong, so it is compared in none."""
    assert (of("guided").times["gct_s"].n, of("guided").times["gct_s"].max) == (2, 3.0)
    assert of("xgrammar").times["gct_s"].p50 == 2.0
    assert of("none").times["gct_s"].n == 1, "the model alone is timed where the engines were, and asked for nothing"
    alone = [one for one in RECORDS if one.engine == "guided"]
    assert of("guided", records=alone).times["gct_s"].n == 3


def test_the_order_of_the_table():
    keys = [(one.engine, one.split) for one in measure(RECORDS)]
    assert keys == [
        ("guided", "a"), ("guided", "b"), ("guided", "all"),
        ("xgrammar", "a"), ("xgrammar", "b"), ("xgrammar", "all"),
        ("none", "a"), ("none", "all"),
    ]  # fmt: skip


def test_nothing_measured():
    assert measure([]) == []
    only_skipped = of("guided", records=[record("guided", "a---1", Outcome.SKIPPED)])
    assert (only_skipped.schemas, only_skipped.declared, only_skipped.empirical) == (0, None, None)


def test_summary_and_tables_name_every_failure():
    measures = measure(RECORDS)
    summary = summary_record(measures, RECORDS, {"machine": "here"}, 20)
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["done"], summary["of"], summary["machine"]) == (12, 20, "here")
    assert [one["id"] for one in summary["failures"] if one["engine"] == "guided"] == ["a---3", "b---2"]
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show_measures(console, measures)
    show_failures(console, failures_of(RECORDS), 2)
    text = console.export_text()
    assert "75.0%" in text and "50.0%" in text
    assert "a---3" in text and "and 4 more" in text


def test_the_plot_is_an_image(tmp_path):
    pytest.importorskip("matplotlib")
    from guided.errors import GuidedError
    from guided.eval.plot import save_plot

    save_plot(measure(RECORDS), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    save_plot(measure(RECORDS), tmp_path / "plot.svg")
    assert b"<svg" in (tmp_path / "plot.svg").read_bytes()
    with pytest.raises(GuidedError, match="cannot write the plot"):
        save_plot(measure(RECORDS), tmp_path / "plot.docx")
