"""What the commands of `guided eval` share: runs that are stopped and gone on with, and what they leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import typer

from guided.cli.exits import ExitCode
from guided.cli.output import print_json, print_note, stdout_console
from guided.cli.progress import counted_stages
from guided.errors import GuidedError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["RUN", "Evaluation", "Out", "Plot", "RunOptions", "Work", "carry_out", "check_plot"]

Kept = TypeVar("Kept")
Measured = TypeVar("Measured")

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

    def chosen(self, here: Callable[..., None], on_ray: Callable[..., None]) -> Callable[..., None]:
        """The one of both that runs the evaluation."""
        return partial(on_ray, workers=self.workers) if self.ray else here


@dataclass(frozen=True)
class Evaluation(Generic[Kept, Measured]):
    """How the results of an evaluation are told, measured and shown."""

    what: str
    """What is counted, as the bar calls it."""
    told: Callable[[Kept], str]
    """What the bar says of a result."""
    measure: Callable[[list[Kept]], list[Measured]]
    summary: Callable[[list[Measured], list[Kept], dict[str, Any], int], dict[str, Any]]
    """Everything as JSON data, of the measures, the results, facts about the run and the number of tasks."""
    show: Callable[[Console, list[Measured], list[Kept]], None]
    draw: Callable[[list[Measured], Path], None] | None = None
    """Draw the plot to a file; None where there is none."""


@dataclass(frozen=True)
class Work(Generic[Kept]):
    """What one command is to do: so many results in a file, of which some may be there."""

    path: Path
    total: int
    results: Callable[[], list[Kept]]
    """Those that are there."""
    left: Callable[[], int]
    run: Callable[..., None]
    """Do what is left, given ``on_stage`` and ``on_record``."""

    @classmethod
    def of(
        cls,
        tasks: Sequence[Any],
        settings: Any,
        log: Any,
        *,
        done: Callable[..., list[Kept]],
        left: Callable[..., Sequence[Any]],
        run: Callable[..., None],
        results_of: Callable[[Sequence[Any]], int] = len,
    ) -> Work[Kept]:
        """That of an evaluation's functions, which take its tasks, settings and log; ``results_of`` counts of tasks."""
        given = (tasks, settings, log)
        return cls(
            log.path, results_of(tasks), partial(done, *given), lambda: results_of(left(*given)), partial(run, *given)
        )


def check_plot(plot: bool | None) -> None:
    """Raise `GuidedError` before any work where a plot was asked for that cannot be drawn."""
    from guided.eval.plot import can_plot

    if plot and not can_plot():
        raise GuidedError("--plot needs matplotlib", remedy="Install it: pip install 'guided-decoding[eval]'.")


def carry_out(
    evaluation: Evaluation[Kept, Measured],
    work: Work[Kept],
    facts: dict[str, Any],
    out: Path,
    *,
    plot: bool | None = None,
    as_json: bool,
) -> None:
    """Do what is left of the work, and leave behind what there is of it in ``out``, also when it is stopped.

    Ends with the exit code of an interruption after Ctrl-C.  Raises `typer.Exit` when it was stopped.
    """
    before = len(work.results())
    if before and not as_json:
        print_note(f"{before} of {work.total} results are in {work.path} already")
    interrupted = False
    try:
        with counted_stages(evaluation.what, work.left(), quiet=as_json) as (stage, advance):
            work.run(on_stage=stage, on_record=lambda record: advance(evaluation.told(record)))
    except KeyboardInterrupt:
        interrupted = True
    found = work.results()
    if interrupted and not as_json:
        print_note(f"interrupted with {len(found)} of {work.total} results; the same command goes on from there")
    _leave_behind(evaluation, found, evaluation.measure(found), work.total, facts, out, plot, as_json)
    if interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)


def _leave_behind(
    evaluation: Evaluation[Kept, Measured],
    records: list[Kept],
    measures: list[Measured],
    n_tasks: int,
    facts: dict[str, Any],
    out: Path,
    plot: bool | None,
    as_json: bool,
) -> None:
    """Write the summary, and the plot where there is something to draw; print the summary, or show it to people."""
    from guided.eval.plot import can_plot

    summary = evaluation.summary(measures, records, facts, n_tasks)
    (out / "summary.json").write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", "utf-8")
    drawn = False
    if evaluation.draw is not None and records and (can_plot() if plot is None else plot):
        evaluation.draw(measures, out / "plot.png")
        drawn = True
    if as_json:
        print_json(summary)
        return
    evaluation.show(stdout_console(), measures, records)
    written = ["results.jsonl", "summary.json", *(["plot.png"] if drawn else [])]
    print_note(f"written to {out}: {', '.join(written)}")
    if evaluation.draw is not None and not drawn and plot is None and records:
        print_note("no plot: matplotlib is not installed (pip install 'guided-decoding[eval]')")
