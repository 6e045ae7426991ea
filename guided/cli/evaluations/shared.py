"""What the commands of `guided eval` share: runs that are stopped and gone on with, and what they leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from guided.cli.exits import ExitCode
from guided.cli.output import print_json, print_note, stdout_console
from guided.errors import GuidedError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["RUN", "Out", "Plot", "RunOptions", "check_plot", "leave_behind", "run_or_go_on"]

Kept = TypeVar("Kept")

RUN = "Run"
"""The panel of options about how an evaluation runs."""

Out: TypeAlias = Annotated[Path, typer.Option(metavar="DIR", help="Where results.jsonl, summary.json and plot.png go.")]
Plot: TypeAlias = Annotated[
    bool | None, typer.Option(help="Draw plot.png; by default where matplotlib is installed.", rich_help_panel=RUN)
]
Ray: TypeAlias = Annotated[
    bool, typer.Option("--ray", help="Run on Ray: the cluster of RAY_ADDRESS, else this machine.", rich_help_panel=RUN)
]
Workers: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Workers on Ray, each with its own model.", rich_help_panel=RUN)
]


@dataclass(frozen=True)
class RunOptions:
    """Where an evaluation runs, and whether it ends with a plot, as the command line says it."""

    ray: Ray = False
    workers: Workers = 2
    plot: Plot = None


def check_plot(plot: bool | None) -> None:
    """Raise `GuidedError` before any work where a plot was asked for that cannot be drawn."""
    from guided.eval.plot import can_plot

    if plot and not can_plot():
        raise GuidedError("--plot needs matplotlib", remedy="Install it: pip install 'guided-decoding[eval]'.")


def run_or_go_on(
    path: Path,
    total: int,
    results: Callable[[], list[Kept]],
    run: Callable[[], None],
    conclude: Callable[[list[Kept]], None],
    *,
    quiet: bool,
) -> None:
    """Do what is left of ``total`` results in the file ``path``, and conclude with what there is, also when stopped.

    Ends with the exit code of an interruption after Ctrl-C.  Raises `typer.Exit` when it was stopped.
    """
    before = len(results())
    if before and not quiet:
        print_note(f"{before} of {total} results are in {path} already")
    interrupted = False
    try:
        run()
    except KeyboardInterrupt:
        interrupted = True
    found = results()
    if interrupted and not quiet:
        print_note(f"interrupted with {len(found)} of {total} results; the same command goes on from there")
    conclude(found)
    if interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def leave_behind(
    out: Path,
    summary: dict[str, Any],
    records: Sequence[object],
    *,
    show: Callable[[Console], None],
    as_json: bool,
    draw: Callable[[Path], None] | None = None,
    plot: bool | None = None,
) -> None:
    """Write the summary, and the plot where there is something to draw; print the summary, or ``show`` it to people.

    Without ``draw`` the evaluation has no plot.
    """
    from guided.eval.plot import can_plot

    (out / "summary.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", "utf-8")
    drawn = False
    if draw is not None and records and (can_plot() if plot is None else plot):
        draw(out / "plot.png")
        drawn = True
    if as_json:
        print_json(summary)
        return
    show(stdout_console())
    written = ["results.jsonl", "summary.json", *(["plot.png"] if drawn else [])]
    print_note(f"written to {out}: {', '.join(written)}")
    if draw is not None and not drawn and plot is None and records:
        print_note("no plot: matplotlib is not installed (pip install 'guided-decoding[eval]')")
