"""Measures of methods, as data, as a table for each front end and as a plot of quality against steps.

Methods are compared on the same texts (`guided.eval.diffusion.comparisons`): texts differ far more than methods do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError
from guided.eval.diffusion.comparisons import Basis, Comparison, Counted, compare
from guided.eval.diffusion.methods import METHODS, Decoder, DiffusionMethod
from guided.eval.diffusion.results import DiffusionRecord
from guided.eval.diffusion.tasks import FrontEnd
from guided.eval.plot import can_plot
from guided.eval.steering.measures import Estimate, estimate

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["DiffusionMeasures", "measure", "save_plot", "show_measures", "summary_record"]


@dataclass(frozen=True)
class DiffusionMeasures:
    """One method over the tasks of a front end; means, with 95 % bootstrap intervals over tasks."""

    front_end: str
    method: str
    decoder: str
    tasks: int
    valid: Estimate
    right: Estimate
    passes: float
    seconds: float
    """Elapsed for a text."""
    processor: float
    """Seconds of processor time for a text."""
    reasons: int
    """Tasks without a text."""


def measure(records: Sequence[DiffusionRecord]) -> list[DiffusionMeasures]:
    """The measures of each front end and method that has results, in the order of `FrontEnd` and of `METHODS`."""
    found: list[DiffusionMeasures] = []
    for front_end in FrontEnd:
        for method in METHODS.values():
            own = [one for one in records if one.front_end == front_end.value and one.method == method.name]
            if own:
                found.append(_measured(own, method))
    return found


def _measured(own: Sequence[DiffusionRecord], method: DiffusionMethod) -> DiffusionMeasures:
    written = [record for record in own if not record.reason]
    n = max(1, len(written))
    return DiffusionMeasures(
        own[0].front_end,
        method.name,
        method.decoder.value,
        len(own),
        estimate([float(record.valid) for record in own]),
        estimate([record.right for record in own]),
        sum(record.passes for record in written) / n,
        sum(record.seconds for record in written) / n,
        sum(record.processor for record in written) / n,
        len(own) - len(written),
    )


def summary_record(
    measures: Sequence[DiffusionMeasures], records: Sequence[DiffusionRecord], facts: dict[str, Any], n_tasks: int
) -> dict[str, Any]:
    """Everything as JSON data."""
    without = [{"id": one.id, "method": one.method, "reason": one.reason} for one in records if one.reason]
    differences = [{**asdict(one), "counted": one.counted.value, "basis": one.basis.value} for one in compare(records)]
    return {
        **facts, "done": len(records), "of": n_tasks, "measures": [asdict(one) for one in measures],
        "differences": differences, "not_written": without,
    }  # fmt: skip


def show_measures(
    console: Console, measures: Sequence[DiffusionMeasures], differences: Sequence[Comparison] = ()
) -> None:
    """A table for each front end, a method a row; and how much more the solved grammar has right than others."""
    for front_end in FrontEnd:
        own = [one for one in measures if one.front_end == front_end.value]
        if own:
            console.print(_table(front_end, own))
    for counted in Counted:
        for basis in Basis:
            rows = [one for one in differences if one.counted is counted and one.basis is basis]
            if rows:
                console.print(f"right {counted.value}, more than other decoders on the same texts, at {basis.value}")
                console.print(_differences(rows))


def _table(front_end: FrontEnd, measures: Sequence[DiffusionMeasures]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=front_end.value, title_justify="left", box=SIMPLE_HEAD, padding=0)
    table.add_column("method", no_wrap=True)
    what = "right" if front_end is FrontEnd.SQL else "fields right"
    for heading in ("n", "valid", what, "passes", "s", "processor s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measures:
        right = f"{100 * one.right.mean:.1f} % ({100 * one.right.low:.1f} to {100 * one.right.high:.1f})"
        spent = [f"{one.passes:.1f}", f"{one.seconds:.2f}", f"{one.processor:.2f}"]
        table.add_row(
            one.method, str(one.tasks), f"{100 * one.valid.mean:.0f} %", right,
            *(spent if one.reasons < one.tasks else ["", "", ""]),
        )  # fmt: skip
    return table


def _differences(rows: Sequence[Comparison]) -> Table:
    """A solved method a row, another decoder a column."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=0)
    table.add_column("method", no_wrap=True)
    others = list(dict.fromkeys(METHODS[one.other].decoder.value for one in rows))
    for other in others:
        table.add_column(other, justify="right")
    for method in dict.fromkeys(one.method for one in rows):
        cells = {METHODS[one.other].decoder.value: one.difference for one in rows if one.method == method}
        texts = [
            f"{100 * cells[other].mean:+.1f} ({100 * cells[other].low:+.1f} to {100 * cells[other].high:+.1f})"
            if other in cells
            else ""
            for other in others
        ]
        table.add_row(method, *texts)
    return table


def save_plot(measures: Sequence[DiffusionMeasures], path: Path) -> None:
    """Quality against passes, for each front end a picture.

    Raises `GuidedError` when matplotlib is missing or does not know the format.
    """
    if not can_plot():
        raise GuidedError("a plot needs matplotlib", remedy="Install it: pip install 'guided-decoding[eval]'.")
    from matplotlib.figure import Figure

    shown = [each for each in FrontEnd if any(one.front_end == each.value for one in measures)]
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(6.5 * columns, 4.5 * rows), layout="constrained")
    for number, front_end in enumerate(shown):
        axes = figure.add_subplot(rows, columns, number + 1)
        _draw(axes, [one for one in measures if one.front_end == front_end.value])
        axes.set_title(front_end.value)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("forward passes a text")
        of = "statements" if front_end is FrontEnd.SQL else "fields"
        axes.set_ylabel(f"share of {of} right, 95 % interval")
        axes.legend(loc="lower right", fontsize=8)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise GuidedError(f"cannot write the plot {str(path)!r}: {error}", remedy="Name a .png or .svg.") from error


def _draw(axes: Any, measures: Sequence[DiffusionMeasures]) -> None:
    """A decoder a line, over its numbers of steps; its other policies as squares."""
    for number, decoder in enumerate(Decoder):
        own, color = [one for one in measures if one.decoder == decoder.value and one.reasons < one.tasks], f"C{number}"
        line = [one for one in own if METHODS[one.method].steps is not None]
        if line:
            low = [one.right.mean - one.right.low for one in line]
            high = [one.right.high - one.right.mean for one in line]
            places, means = [one.passes for one in line], [one.right.mean for one in line]
            axes.errorbar(places, means, [low, high], color=color, marker="o", capsize=3, label=decoder.value)
        for one in own:
            if METHODS[one.method].steps is None:
                axes.plot([one.passes], [one.right.mean], "s", color=color)
                axes.annotate(METHODS[one.method].way, (one.passes, one.right.mean), fontsize=7, rotation=15)
