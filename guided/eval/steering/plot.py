"""A picture of a run: the difference that each method makes on its measure, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guided.errors import GuidedError
from guided.eval.plot import can_plot
from guided.eval.steering.measures import SteeringMeasures, Verdict

__all__ = ["save_plot"]

_COLORS = {Verdict.MOVES: "C0", Verdict.UNCLEAR: "0.5", Verdict.WORSE: "C3"}


def save_plot(measures: Sequence[SteeringMeasures], path: Path) -> None:
    """Draw the measures to a file whose suffix says the format.

    Raises `GuidedError` when matplotlib is missing or does not know the format.
    """
    if not can_plot():
        raise GuidedError("a plot needs matplotlib", remedy="Install it: pip install 'guided-decoding[eval]'.")
    from matplotlib.figure import Figure

    shown = [one for one in measures if one.difference is not None]
    figure = Figure(figsize=(9.0, 1.6 + 0.28 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for place, one in enumerate(shown):
        assert one.difference is not None
        sign = 1 if one.higher else -1
        ends = sorted((sign * one.difference.low, sign * one.difference.high))
        color = _COLORS[one.verdict]
        axes.plot(ends, [place, place], color=color)
        axes.plot([sign * one.difference.mean], [place], "o", color=color)
    axes.axvline(0.0, color="0.7", linewidth=1)
    axes.set_yticks(range(len(shown)), [f"{one.method}: {one.measure}" for one in shown])
    axes.invert_yaxis()
    axes.set_xlabel("steered less base, right is what the method is for; 95 % bootstrap interval")
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise GuidedError(f"cannot write the plot {str(path)!r}: {error}", remedy="Name a .png or .svg.") from error
