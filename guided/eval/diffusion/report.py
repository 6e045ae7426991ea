"""Measures of methods, as data, as tables and as a plot of quality against steps.

Methods are compared on the same texts (`guided.eval.diffusion.comparisons`): texts differ far more than methods do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError
from guided.eval.diffusion.comparisons import Basis, Comparison, compare
from guided.eval.diffusion.methods import METHODS, Decoder
from guided.eval.diffusion.results import DiffusionRecord
from guided.eval.plot import can_plot
from guided.eval.steering.measures import Estimate, estimate

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["DiffusionMeasures", "measure", "save_plot", "show_measures", "summary_record"]


@dataclass(frozen=True)
class DiffusionMeasures:
    """One method over its tasks; means, with 95 % bootstrap intervals over tasks."""

    method: str
    decoder: str
    tasks: int
    valid: Estimate
    right: Estimate
    passes: float
    ms_per_token: float
    reasons: int
    """Tasks without a text."""


def measure(records: Sequence[DiffusionRecord]) -> list[DiffusionMeasures]:
    """The measures of each method that has results, in the order of `METHODS`."""
    found: list[DiffusionMeasures] = []
    for method in METHODS.values():
        own = [record for record in records if record.method == method.name]
        if own:
            written = [record for record in own if not record.reason]
            found.append(
                DiffusionMeasures(
                    method.name,
                    method.decoder.value,
                    len(own),
                    estimate([float(record.valid) for record in own]),
                    estimate([record.right for record in own]),
                    sum(record.passes for record in written) / max(1, len(written)),
                    1000 * sum(record.seconds for record in written) / max(1, sum(r.tokens for r in written)),
                    len(own) - len(written),
                )
            )
    return found


def summary_record(
    measures: Sequence[DiffusionMeasures], records: Sequence[DiffusionRecord], facts: dict[str, Any], n_tasks: int
) -> dict[str, Any]:
    """Everything as JSON data."""
    without = [{"id": one.id, "method": one.method, "reason": one.reason} for one in records if one.reason]
    return {
        **facts, "done": len(records), "of": n_tasks, "measures": [asdict(one) for one in measures],
        "differences": [asdict(one) for one in compare(records)], "not_written": without,
    }  # fmt: skip


def show_measures(
    console: Console, measures: Sequence[DiffusionMeasures], differences: Sequence[Comparison] = ()
) -> None:
    """One table, a method a row; and how much more of the fields the solved grammar has right than other decoders."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="canvases", title_justify="left", box=SIMPLE_HEAD, padding=0)
    table.add_column("method", no_wrap=True)
    for heading in ("n", "valid", "fields right", "passes", "ms/token"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measures:
        right = f"{100 * one.right.mean:.1f} % ({100 * one.right.low:.1f} to {100 * one.right.high:.1f})"
        table.add_row(
            one.method, str(one.tasks), f"{100 * one.valid.mean:.0f} %", right, f"{one.passes:.1f}",
            f"{one.ms_per_token:.1f}",
        )  # fmt: skip
    console.print(table)
    for basis in Basis:
        rows = [one for one in differences if one.basis is basis]
        if rows:
            console.print(f"fields right, more than other decoders on the same texts, at {basis.value}")
            console.print(_differences(rows))


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
    """Quality against steps; raises `GuidedError` when matplotlib is missing or does not know the format."""
    if not can_plot():
        raise GuidedError("a plot needs matplotlib", remedy="Install it: pip install 'guided-decoding[eval]'.")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.subplots()
    for number, decoder in enumerate(Decoder):
        own, color = [one for one in measures if one.decoder == decoder.value], f"C{number}"
        if not own:
            continue
        line = [one for one in own if METHODS[one.method].steps is not None]
        low = [one.right.mean - one.right.low for one in line]
        high = [one.right.high - one.right.mean for one in line]
        places, means = [one.passes for one in line], [one.right.mean for one in line]
        axes.errorbar(places, means, [low, high], color=color, marker="o", capsize=3, label=decoder.value)
        for one in own:
            if METHODS[one.method].steps is None:
                axes.plot([one.passes], [one.right.mean], "s", color=color)
                axes.annotate(one.method.split(", ", 1)[1], (one.passes, one.right.mean), fontsize=7, rotation=15)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("forward passes a text")
    axes.set_ylabel("share of fields right, 95 % bootstrap interval")
    axes.legend(loc="lower right")
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise GuidedError(f"cannot write the plot {str(path)!r}: {error}", remedy="Name a .png or .svg.") from error
