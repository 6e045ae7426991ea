"""A picture of a run: accuracy of each method on each task, and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guided.errors import GuidedError
from guided.eval.awrs.measures import AwrsMeasures
from guided.eval.plot import can_plot

__all__ = ["save_plot"]


def save_plot(measures: Sequence[AwrsMeasures], path: Path) -> None:
    """Draw the measures to a file whose suffix says the format.

    Raises `GuidedError` when matplotlib is missing or does not know the format.
    """
    if not can_plot():
        raise GuidedError("a plot needs matplotlib", remedy="Install it: pip install 'guided-decoding[eval]'.")
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(one.task for one in measures))
    methods = list(dict.fromkeys(one.method for one in measures))
    figure = Figure(figsize=(10.0, 7.0), layout="constrained")
    above, calls, times = figure.subplots(3, 1, sharex=True)
    width = 0.8 / len(methods)
    for number, method in enumerate(methods):
        found = {one.task: one for one in measures if one.method == method}
        offset = width * (number - (len(methods) - 1) / 2)
        known = [(place + offset, found[task]) for place, task in enumerate(tasks) if task in found]
        color = f"C{number}"
        places = [place for place, _ in known]
        accuracy, errors = [one.accuracy for _, one in known], [one.standard_error for _, one in known]
        above.bar(places, accuracy, width, yerr=errors, color=color, label=method)
        for axes, values in (
            (calls, [(place, one.calls_per_token) for place, one in known]),
            (times, [(place, one.seconds) for place, one in known]),
        ):
            shown = [(place, value) for place, value in values if value]
            axes.bar([place for place, _ in shown], [value for _, value in shown], width, color=color)
    above.set_ylim(0, 1.05)
    above.set_ylabel("accuracy")
    calls.set_yscale("log")
    calls.set_ylabel("constraint calls\nper token")
    times.set_yscale("log")
    times.set_ylabel("seconds\nper problem")
    times.set_xticks(range(len(tasks)), tasks)
    figure.legend(*above.get_legend_handles_labels(), ncols=len(methods), fontsize="small", loc="outside upper center")
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise GuidedError(f"cannot write the plot {str(path)!r}: {error}", remedy="Name a .png or .svg.") from error
