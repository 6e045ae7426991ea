"""`guided eval diffusion`: a denoiser with and without its grammar solved, in few and many steps."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guided.cli.evaluations.shared import RUN as RUN_PANEL
from guided.cli.evaluations.shared import Out, Plot, check_plot, leave_behind, run_or_go_on
from guided.cli.methods.options import AsJson, Device, Offline
from guided.cli.progress import counted_stages
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.eval.diffusion.methods import DiffusionMethod
    from guided.eval.diffusion.results import DiffusionLog, DiffusionRecord, DiffusionSettings
    from guided.eval.diffusion.tasks import ExtractionTask

__all__ = ["diffusion"]


def diffusion(
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help='Only this method, such as "solved, 4 steps"; may be repeated.'),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N texts of each set, of 200.")] = 200,
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
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Processes, each with its own model.", rich_help_panel=RUN_PANEL)
    ] = 1,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare ways to fill canvases: free and under the grammar, in 1 to 32 steps and by confidence.

    Records are extracted from made-up texts; what is reported is how many validate, the share of fields that are right
    with its 95 % bootstrap interval, forward passes a text and time a token, and how much more of the fields the solved
    grammar has right than each other decoder, text by text. The plot shows quality against steps.

    Every result is written when it is there; the same command goes on where it was stopped.

    **Examples:**

        guided eval diffusion --limit 20
        guided eval diffusion --method "solved, 1 steps" --method "free, 32 steps"
    """
    from guided.cli.models import silence

    silence()
    check_plot(plot)
    from guided.eval.diffusion.comparisons import compare
    from guided.eval.diffusion.methods import METHODS
    from guided.eval.diffusion.report import measure, save_plot, show_measures, summary_record
    from guided.eval.diffusion.results import DiffusionLog, DiffusionSettings
    from guided.eval.diffusion.run import RUN
    from guided.eval.diffusion.tasks import read_tasks

    unknown = next((name for name in method or () if name not in METHODS), None)
    if unknown is not None:
        raise GuidedError(f"there is no method {unknown!r}", where="--method", remedy=f"Use {', '.join(METHODS)}.")
    chosen = [METHODS[name] for name in dict.fromkeys(method or METHODS)]
    settings = DiffusionSettings(model, device, offline)
    tasks = [(task, way) for task in read_tasks(limit) for way in chosen]

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


def _run(
    tasks: list[tuple[ExtractionTask, DiffusionMethod]],
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
