"""Measures as a table for people and as data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from guided.eval.awrs.measures import AwrsMeasures
from guided.eval.awrs.results import AwrsRecord, Ending

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show_measures", "summary_record"]


def summary_record(
    measures: Sequence[AwrsMeasures], records: Sequence[AwrsRecord], facts: dict[str, Any], n_tasks: int
) -> dict[str, Any]:
    """Everything as JSON data: ``facts`` about the run, the measures, and what was not answered with the reason."""
    return {
        **facts,
        "done": len(records),
        "of": n_tasks,
        "measures": [one.as_record() for one in measures],
        "not_answered": [
            {"task": one.task, "id": one.id, "method": one.method, "ending": one.ending.value, "reason": one.reason}
            for one in records
            if one.ending is not Ending.ANSWERED
        ],
    }


def show_measures(console: Console, measures: Sequence[AwrsMeasures]) -> None:
    """One table, a section for each task."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="weighted sampling", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("task", "method"):
        table.add_column(heading, no_wrap=True)
    for heading in ("n", "left out", "accuracy", "best", "log ml", "calls", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, one in enumerate(measures):
        last = number + 1 == len(measures) or measures[number + 1].task != one.task
        table.add_row(
            one.task,
            one.shown,
            str(one.problems),
            str(one.refused),
            f"{one.accuracy:.1%} ±{one.standard_error:.1%}",
            f"{one.best:.1%}",
            "-" if one.log_ml is None else f"{one.log_ml:.2f}/{one.with_evidence}",
            "-" if one.calls_per_token is None else f"{one.calls_per_token:.2f}",
            "-" if one.seconds is None else f"{one.seconds:.2f}",
            end_section=last,
        )
    judges = {one.task: one.judge for one in measures if one.judge}
    table.caption = (
        "n: problems asked; left out: the condition or the prompt cannot be had; accuracy: the posterior's weight on"
        " right answers, with the standard error over problems; best: the likeliest is right; log ml: mean over as many"
        " problems; calls of the constraint for a token and seconds for a problem: medians. Judges: "
        + ", ".join(f"{task}: {judge}" for task, judge in judges.items())
    )
    table.caption_justify = "left"
    console.print(table)
