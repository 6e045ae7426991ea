"""`guided eval diffusion`: a denoiser with and without its grammar solved and as published, in few and many steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from guided.cli.evaluations.shared import RUN as RUN_PANEL
from guided.cli.evaluations.shared import Out, Plot, check_plot, leave_behind, run_or_go_on
from guided.cli.methods.options import AsJson, Device, Offline
from guided.cli.progress import counted_stages
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.eval.diffusion.methods import DiffusionMethod
    from guided.eval.diffusion.results import DiffusionLog, DiffusionRecord, DiffusionSettings
    from guided.eval.diffusion.tasks import DiffusionTask

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

    methods = _named(method, METHODS, "method")
    front_ends = _named(front_end, {each.value: each for each in FrontEnd}, "front end")
    settings = DiffusionSettings(model, device, offline)
    tasks = [(task, way) for task in read_tasks(limit, front_ends) for way in methods]

    def conclude(records: list[DiffusionRecord]) -> None:
        measures = measure(records)
        leave_behind(
            out,
            summary_record(measures, records, {"settings": asdict(settings)}, len(tasks)),
            records,
            draw=lambda path: save_plot(measures, path),
            show=lambda console: show_measures(console, measures, compare(records)),
            plot=plot,
            as_json=as_json,
        )

    with DiffusionLog(out / "results.jsonl") as log:
        run_or_go_on(
            log.path,
            len(tasks),
            lambda: RUN.records_of(tasks, settings, log),
            lambda: _run(tasks, settings, log, workers, quiet=as_json),
            conclude,
            quiet=as_json,
        )


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


def _run(
    tasks: list[tuple[DiffusionTask, DiffusionMethod]],
    settings: DiffusionSettings,
    log: DiffusionLog,
    workers: int,
    *,
    quiet: bool,
) -> None:
    """Run what is left, here or in several processes."""
    from guided.eval.diffusion.run import RUN
    from guided.eval.processes import run_in_processes

    with counted_stages("texts", len(RUN.tasks_left(tasks, settings, log)), quiet=quiet) as (stage, advance):

        def done(record: DiffusionRecord) -> None:
            advance(f"{record.method}: {record.id}")

        if workers == 1:
            RUN.run_here(tasks, settings, log, on_stage=stage, on_record=done)
        else:
            run_in_processes(RUN, tasks, settings, log, workers=workers, on_stage=stage, on_record=done)
