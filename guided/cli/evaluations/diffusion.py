"""`guided eval diffusion`: a denoiser with and without its grammar solved and as published, in few and many steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import typer

from guided.cli.evaluations.shared import RUN as RUN_PANEL
from guided.cli.evaluations.shared import Evaluation, Out, Plot, Work, carry_out, check_plot
from guided.cli.methods.options import AsJson, Device, Offline
from guided.errors import GuidedError

__all__ = ["diffusion"]

Named = TypeVar("Named")

Workers: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Processes, each with its own model.", rich_help_panel=RUN_PANEL)
]


def diffusion(
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help='Only this method, such as "solved, 4 steps"; may be repeated.'),
    ] = None,
    front_end: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only tasks of it: json schema, regex, gbnf or sql; may be repeated."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="At most N texts of each front end; there are 100, and 200 of JSON.")
    ] = 100,
    out: Out = Path("diffusion"),
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME_OR_PATH",
            help="The denoiser; prompts are those of the packaged one.",
            rich_help_panel="Model",
        ),
    ] = "nano-diffusion",
    device: Device = None,
    offline: Offline = False,
    workers: Workers = 1,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare ways to fill canvases: free, under the grammar and as published, in 1 to 32 steps and by confidence.

    Records are extracted from made-up texts, under their JSON Schema, a regex or a GBNF grammar, and questions about
    databases are answered in their SQL. There is a table for each front end: how many are valid, the share of fields or
    statements that are right with its 95 % bootstrap interval, forward passes and time a text. Then how much more the
    solved grammar has right than each other decoder, text by text. The plot shows quality against passes.

    Every result is written when it is there; the same command goes on where it was stopped.

    **Examples:**

        guided eval diffusion --limit 20
        guided eval diffusion --front-end sql --method "solved, 1 steps" --method "free, 32 steps"
    """
    from guided.cli.models import silence

    silence()
    check_plot(plot)
    from guided.eval.diffusion.comparisons import compare
    from guided.eval.diffusion.methods import METHODS
    from guided.eval.diffusion.report import measure, save_plot, show_measures, summary_record
    from guided.eval.diffusion.results import DiffusionLog, DiffusionSettings
    from guided.eval.diffusion.run import RUN
    from guided.eval.diffusion.tasks import FrontEnd, read_tasks
    from guided.eval.processes import run_in_processes

    methods = _named(method, METHODS, "method")
    front_ends = _named(front_end, {each.value: each for each in FrontEnd}, "front end")
    settings = DiffusionSettings(model, device, offline)
    tasks = [(task, way) for task in read_tasks(limit, front_ends) for way in methods]

    evaluation = Evaluation(
        "texts",
        lambda record: f"{record.method}: {record.id}",
        measure,
        summary_record,
        lambda console, measures, records: show_measures(console, measures, compare(records)),
        save_plot,
    )
    run = RUN.run_here if workers == 1 else partial(run_in_processes, RUN, workers=workers)
    with DiffusionLog(out / "results.jsonl") as log:
        work = Work.of(tasks, settings, log, done=RUN.records_of, left=RUN.tasks_left, run=run)
        carry_out(evaluation, work, {"settings": asdict(settings)}, out, plot=plot, as_json=as_json)


def _named(given: list[str] | None, known: Mapping[str, Named], kind: str) -> list[Named]:
    """What was asked for by name, all where nothing was."""
    unknown = next((name for name in given or () if name not in known), None)
    if unknown is not None:
        raise GuidedError(
            f"there is no {kind} {unknown!r}",
            where=f"--{kind.replace(' ', '-')}",
            remedy=f"Use {', '.join(known)}.",
        )
    return [known[name] for name in dict.fromkeys(given or known)]
