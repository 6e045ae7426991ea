"""Measures as a table for people and as data for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from guided.eval.steering.measures import Estimate, SteeringMeasures
from guided.eval.steering.results import Ending, SteeringRecord

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show_measures", "summary_record"]


def summary_record(
    measures: Sequence[SteeringMeasures], records: Sequence[SteeringRecord], facts: dict[str, Any], n_tasks: int
) -> dict[str, Any]:
    """Everything as JSON data: ``facts`` about the run, the measures, and what was not written with the reason."""
    return {
        **facts,
        "done": len(records),
        "of": n_tasks,
        "measures": [one.as_record() for one in measures],
        "not_written": [
            {"task": one.task, "id": one.id, "method": one.method, "ending": one.ending.value, "reason": one.reason}
            for one in records
            if one.ending is not Ending.WRITTEN
        ],
    }


def show_measures(console: Console, measures: Sequence[SteeringMeasures]) -> None:
    """One table, a method a row."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="base against steered", title_justify="left", box=SIMPLE_HEAD, padding=0)
    for heading in ("method", "measure"):
        table.add_column(heading, no_wrap=True)
    for heading in ("n", "base", "with", "difference", "ppl"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in measures:
        if one.base is None or one.steered is None or one.difference is None:
            table.add_row(one.method, _measure(one), "0", "-", "-", "-", "-", one.verdict)
            continue
        table.add_row(
            one.method,
            _measure(one),
            str(one.prompts),
            f"{one.base.mean:.2f}",
            f"{one.steered.mean:.2f}",
            _interval(one.difference),
            f"x{_ratio(one):.2f}",
            one.verdict,
        )
    lines = [
        "n: prompts; base, with: the measure without and with the method; difference: of both, with the 95 % bootstrap"
        " interval over prompts; ppl: how many times the perplexity of the texts under the model as it is; -: less is"
        " better."
    ]
    lines += [f"{one.method}: {one.not_written} not written: {one.reason}" for one in measures if one.not_written]
    table.caption = "\n".join(lines)
    table.caption_justify = "left"
    console.print(table)


def _measure(one: SteeringMeasures) -> str:
    return one.measure if one.higher else f"{one.measure} -"


def _ratio(one: SteeringMeasures) -> float:
    assert one.base_perplexity is not None and one.steered_perplexity is not None
    return one.steered_perplexity / one.base_perplexity


def _interval(one: Estimate) -> str:
    return f"{one.mean:+.2f} [{one.low:+.2f}, {one.high:+.2f}]"
