"""Measures as tables for people and as data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from guided.eval.decoding_methods.measures import DecodingMeasures
from guided.eval.decoding_methods.results import DecodingRecord, Ending
from guided.eval.steering.measures import Estimate

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show_measures", "summary_record"]


def summary_record(
    measures: Sequence[DecodingMeasures], records: Sequence[DecodingRecord], facts: dict[str, Any], n_tasks: int
) -> dict[str, Any]:
    """Everything as JSON data: ``facts`` about the run, the measures, and what was not written with the reason."""
    return {
        **facts,
        "done": len(records),
        "of": n_tasks,
        "comparisons": sum(one.p is not None for one in measures),
        "measures": [one.as_record() for one in measures],
        "not_written": [
            {"task": one.task, "id": one.id, "mode": one.mode, "method": one.method, "ending": one.ending.value,
             "reason": one.reason}
            for one in records
            if one.ending is not Ending.WRITTEN
        ],
    }  # fmt: skip


def show_measures(console: Console, measures: Sequence[DecodingMeasures]) -> None:
    """A table for each task and mode, a method a row."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    for task, mode in dict.fromkeys((one.task, one.mode) for one in measures):
        own = [one for one in measures if (one.task, one.mode) == (task, mode)]
        n = max(one.items for one in own)
        table = Table(title=f"{task}, {mode}: {n} prompts", title_justify="left", box=SIMPLE_HEAD, padding=0)
        table.add_column("method", no_wrap=True)
        for heading in ("quality", "less greedy", "p", "passes", "ms"):
            table.add_column(heading, justify="right", no_wrap=True)
        for one in own:
            if one.quality is None or one.passes is None or one.ms is None:
                table.add_row(one.method, *["-"] * 5)
                continue
            small = f"+{one.small_passes:.2f}" if one.small_passes else ""
            table.add_row(
                one.method, _share(one.quality), _signed(one.difference), _p(one), f"{one.passes.mean:.2f}{small}",
                f"{one.ms.mean:.1f}",
            )  # fmt: skip
        table.caption = "\n".join(
            f"{one.method}: {one.not_written} not written: {one.reason}" for one in own if one.not_written
        )
        table.caption_justify = "left"
        console.print(table)
    console.print(
        "quality, less greedy: means over prompts with 95 % bootstrap intervals; p: of the difference, paired,"
        " corrected for all differences here (Holm), * below 0.05; passes a token: of the model + of the small one; ms:"
        " milliseconds a token.",
        style="dim",
    )


def _share(one: Estimate) -> str:
    return f"{one.mean:.2f} {one.low:.2f}..{one.high:.2f}"


def _signed(one: Estimate | None) -> str:
    return "-" if one is None else f"{one.mean:+.2f} {one.low:+.2f}..{one.high:+.2f}"


def _p(one: DecodingMeasures) -> str:
    return "-" if one.adjusted_p is None else f"{one.adjusted_p:.3f}{'*' if one.differs else ' '}"
