"""Measures and failures as tables for people and as data for machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from guided.eval.measures import ALL_SPLITS, Measures
from guided.eval.records import Outcome, Record

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["failures_of", "show_failures", "show_measures", "summary_record"]

_OUTCOME_COLUMNS = tuple(outcome for outcome in Outcome if outcome not in (Outcome.VALID, Outcome.SKIPPED))


def failures_of(records: Iterable[Record]) -> list[Record]:
    """Every result that is not a valid output, the skipped included."""
    return [record for record in records if record.outcome is not Outcome.VALID]


def summary_record(
    measures: Sequence[Measures], records: Sequence[Record], facts: dict[str, Any], n_tasks: int
) -> dict[str, Any]:
    """Everything as JSON data: ``facts`` about the run, the measures, and each failure with its schema and reason."""
    return {
        **facts,
        "done": len(records),
        "of": n_tasks,
        "measures": [one.as_record() for one in measures],
        "failures": [
            {"engine": one.engine, "split": one.split, "id": one.id, "outcome": one.outcome.value, "reason": one.reason}
            for one in failures_of(records)
        ],
    }


def show_measures(console: Console, measures: Sequence[Measures]) -> None:
    """Three tables: coverage by split, times by split, and how the failures are spread."""
    from rich.table import Table

    table = Table(title="coverage", title_justify="left")
    for heading in ("engine", "split"):
        table.add_column(heading, no_wrap=True)
    for heading in ("schemas", "declared", "empirical", "compliance"):
        table.add_column(heading, justify="right")
    for one in measures:
        shares = (_share(value) for value in (one.declared, one.empirical, one.compliance))
        table.add_row(one.engine, one.split, str(one.schemas), *shares, end_section=one.split == ALL_SPLITS)
    console.print(table)
    table = Table(title="milliseconds, median", title_justify="left")
    for heading in ("engine", "split"):
        table.add_column(heading, no_wrap=True)
    for heading in ("n", "GCT", "TTFT", "TPOT", "mask"):
        table.add_column(heading, justify="right")
    for one in measures:
        compared = next((spread.n for spread in one.times.values() if spread is not None), 0)
        medians = (
            _median(one, name, factor)
            for name, factor in (("gct_s", 1000), ("ttft_s", 1000), ("tpot_ms", 1), ("mask_ms", 1))
        )
        if compared:
            table.add_row(one.engine, one.split, str(compared), *medians, end_section=one.split == ALL_SPLITS)
    table.caption = "over the n schemas that every engine of this run answered validly; mask: the engine's part of TPOT"
    table.caption_justify = "left"
    console.print(table)
    counts = Table(title="outcomes", title_justify="left")
    counts.add_column("engine")
    shown = [outcome for outcome in _OUTCOME_COLUMNS if any(one.outcomes.get(outcome.value) for one in measures)]
    for outcome in (Outcome.VALID, *shown, Outcome.SKIPPED):
        counts.add_column(outcome.value, justify="right")
    for one in measures:
        if one.split == ALL_SPLITS:
            found = (one.outcomes.get(outcome.value, 0) for outcome in (Outcome.VALID, *shown, Outcome.SKIPPED))
            counts.add_row(one.engine, *map(str, found))
    console.print(counts)


def show_failures(console: Console, failures: Sequence[Record], most: int) -> None:
    """The first ``most`` failures, a line each."""
    from rich.table import Table
    from rich.text import Text

    if not failures or not most:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), title="failures", title_justify="left")
    for heading in ("engine", "schema", "outcome", "reason"):
        table.add_column(heading, overflow="fold")
    for one in failures[:most]:
        table.add_row(one.engine, Text(one.id), one.outcome.value, Text(one.reason))
    if len(failures) > most:
        table.caption = f"and {len(failures) - most} more, all of them in the results file"
        table.caption_justify = "left"
    console.print(table)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _median(one: Measures, name: str, factor: float) -> str:
    spread = one.times[name]
    return "-" if spread is None else f"{factor * spread.p50:.3g}"
