"""Measures as a table for people and as data for machines, and the gold queries that are not covered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from guided.eval.text_to_sql.measures import SqlMeasures
from guided.eval.text_to_sql.results import SqlOutcome, SqlRecord

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show_measures", "show_uncovered", "summary_record"]


def summary_record(
    measures: Sequence[SqlMeasures], records: Sequence[SqlRecord], facts: dict[str, Any], n_tasks: int
) -> dict[str, Any]:
    """Everything as JSON data: ``facts`` about the run, the measures, what is not covered, what was not answered."""
    return {
        **facts,
        "done": len(records),
        "of": n_tasks,
        "measures": [one.as_record() for one in measures],
        "uncovered": [
            {"id": one.id, "database": one.database, "at": one.gold_at, "near": one.gold_near}
            for one in _uncovered(records)
        ],
        "not_answered": [
            {"id": one.id, "method": one.method, "outcome": one.outcome.value, "reason": one.reason}
            for one in records
            if one.outcome is not SqlOutcome.DONE
        ],
    }


def show_uncovered(console: Console, records: Sequence[SqlRecord], shown: int) -> None:
    """The first gold queries that run and are not in the language, and where they leave it."""
    from rich.text import Text

    missing = _uncovered(records)
    for record in missing[:shown]:
        console.print(Text(f"{record.database} {record.id}, byte {record.gold_at}: {record.gold_near}"))
    if len(missing) > shown:
        console.print(Text(f"and {len(missing) - shown} more that are not in the language", style="dim"))


def show_measures(console: Console, measures: Sequence[SqlMeasures]) -> None:
    """One table, a line for each method."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="text to SQL", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for heading in ("n", "left out", "covered", "runs", "match", "s", "first ms", "masks us"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measures:
        runs = one.gold_runs if one.executable is None else one.executable
        masks = None if one.mask_p50_us is None else f"{one.mask_p50_us:g}/{one.mask_p99_us:g}"
        table.add_row(
            one.method,
            str(one.questions),
            str(one.refused),
            _percent(one.covered),
            _percent(runs),
            _percent(one.match) + (f"/{one.judged}" if one.judged else ""),
            "-" if one.seconds is None else f"{one.seconds:.2f}",
            "-" if one.first_mask_ms is None else f"{one.first_mask_ms:.1f}",
            masks or "-",
        )
    table.caption = (
        "n: questions; left out: the database, its language or the prompt cannot be had; covered: gold queries that run"
        " and are in the language; runs: queries that the engine runs; match: the gold's answer, of so many questions"
        " whose database holds rows; s: for an answer, first: the first mask of a database, medians; masks: p50 and p99"
        " along the gold"
    )
    table.caption_justify = "left"
    console.print(table)


def _uncovered(records: Sequence[SqlRecord]) -> list[SqlRecord]:
    return [record for record in records if record.gold_runs and record.gold_covered is False]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
