"""A picture of a run: quality against milliseconds a token, a panel for each task, free and constrained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guided.errors import GuidedError
from guided.eval.decoding_methods.measures import DecodingMeasures
from guided.eval.decoding_methods.names import Mode
from guided.eval.plot import can_plot

__all__ = ["save_plot"]


def save_plot(measures: Sequence[DecodingMeasures], path: Path) -> None:
    """Draw the measures to a file whose suffix says the format.

    Raises `GuidedError` when matplotlib is missing or does not know the format.
    """
    if not can_plot():
        raise GuidedError("a plot needs matplotlib", remedy="Install it: pip install 'guided-decoding[eval]'.")
    from matplotlib.figure import Figure

    shown = [one for one in measures if one.quality is not None and one.ms is not None]
    tasks = list(dict.fromkeys(one.task for one in shown)) or [""]
    methods = list(dict.fromkeys(one.method for one in shown))
    figure = Figure(figsize=(9.0, 3.2 * len(tasks)), layout="constrained")
    panels = figure.subplots(len(tasks), 1, squeeze=False)[:, 0]
    for axes, task in zip(panels, tasks, strict=True):
        for one in shown:
            if one.task != task or one.quality is None or one.ms is None:
                continue
            color = f"C{methods.index(one.method) % 10}"
            free = one.mode == Mode.FREE.value
            place, mean = one.ms.mean, one.quality.mean
            axes.errorbar(
                [place], [mean], [[mean - one.quality.low], [one.quality.high - mean]], color=color, alpha=0.4
            )
            axes.plot([place], [mean], "o", color=color, mfc="white" if free else color)
            axes.annotate(one.method, (place, mean), fontsize=6, xytext=(3, 3), textcoords="offset points")
        axes.set_xscale("log")
        axes.set_ylim(-0.05, 1.05)
        axes.set_ylabel(task)
    panels[-1].set_xlabel("milliseconds a token; filled: constrained; bars: 95 % bootstrap intervals of quality")
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise GuidedError(f"cannot write the plot {str(path)!r}: {error}", remedy="Name a .png or .svg.") from error
