"""A picture of a run: coverage by split, and how the times are spread, engine by engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guided.errors import GuidedError
from guided.eval.measures import ALL_SPLITS, Measures

__all__ = ["can_plot", "save_plot"]

_TIMES = (
    ("gct_s", "grammar compilation (s)"),
    ("ttft_s", "time to first token (s)"),
    ("tpot_ms", "time per token (ms)"),
)


def can_plot() -> bool:
    """Is matplotlib installed?"""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def save_plot(measures: Sequence[Measures], path: Path) -> None:
    """Draw the measures to a file whose suffix says the format (``.png``, ``.svg``, ``.pdf``).

    Raises `GuidedError` when matplotlib is missing or does not know the format.
    """
    if not can_plot():
        raise GuidedError("a plot needs matplotlib", remedy="Install it: pip install 'guided-decoding[eval]'.")
    from matplotlib.figure import Figure

    engines = list(dict.fromkeys(one.engine for one in measures))
    splits = list(dict.fromkeys(one.split for one in measures if one.split != ALL_SPLITS))
    splits += [ALL_SPLITS]
    known = {(one.engine, one.split): one for one in measures}
    figure = Figure(
        figsize=(min(max(9.0, 0.5 + 0.22 * len(splits) * (len(engines) + 1)), 18.0), 7.5), layout="constrained"
    )
    above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
    _coverage(above.subplots(), engines, splits, known)
    for axes, (name, label) in zip(below.subplots(1, len(_TIMES)), _TIMES, strict=True):
        _times(axes, engines, known, name, label)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise GuidedError(f"cannot write the plot {str(path)!r}: {error}", remedy="Name a .png or .svg.") from error


def _coverage(axes: Any, engines: list[str], splits: list[str], known: dict[tuple[str, str], Measures]) -> None:
    """Bars of empirical coverage, with the declared coverage as an outline around each."""
    width = 0.8 / len(engines)
    for number, engine in enumerate(engines):
        places = [place + width * (number - (len(engines) - 1) / 2) for place in range(len(splits))]
        found = [known.get((engine, split)) for split in splits]
        empirical = [0.0 if one is None else one.empirical or 0.0 for one in found]
        declared = [0.0 if one is None else one.declared or 0.0 for one in found]
        color = f"C{number}"
        axes.bar(places, empirical, width, color=color, label=engine)
        axes.bar(places, declared, width, fill=False, edgecolor=color, linewidth=1)
    axes.set_xticks(range(len(splits)), splits, rotation=30, ha="right")
    axes.set_ylim(0, 1.05)
    axes.set_ylabel("share of schemas")
    axes.set_title("empirical coverage (outline: declared coverage)")
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles, labels, ncols=len(engines), fontsize="small", loc="outside upper right")


def _times(axes: Any, engines: list[str], known: dict[tuple[str, str], Measures], name: str, label: str) -> None:
    """Median with a line up to the 90th and a cross at the 99th percentile, on a logarithmic axis."""
    for number, engine in enumerate(engines):
        one = known.get((engine, ALL_SPLITS))
        spread = None if one is None else one.times[name]
        if spread is None:
            continue
        color = f"C{number}"
        axes.plot([number, number], [spread.p50, spread.p90], color=color)
        axes.plot([number], [spread.p50], "o", color=color)
        axes.plot([number], [spread.p99], "x", color=color)
    axes.set_yscale("log")
    axes.set_xticks(range(len(engines)), engines, rotation=30, ha="right")
    axes.set_xlim(-0.5, len(engines) - 0.5)
    axes.set_title(f"{label}: p50 to p90, p99", fontsize="small")
