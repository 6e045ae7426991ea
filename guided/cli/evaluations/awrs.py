"""`guided eval awrs`: weighted sampling beside masking, on four tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guided.cli.evaluations.shared import RUN, Out, RunOptions, check_plot, leave_behind, run_or_go_on
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import AsJson, ModelOptions, decoding
from guided.cli.progress import counted_stages
from guided.errors import GuidedError
from guided.eval.awrs.methods import MethodName
from guided.eval.awrs.problems import TaskName

if TYPE_CHECKING:
    from guided.eval.awrs.results import AwrsLog, AwrsRecord, AwrsSettings
    from guided.eval.awrs.run import Task

__all__ = ["awrs"]


@with_option_blocks
def awrs(
    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="The folder with text2sql/ (sql), awrs/ (patterns, molecules) and maskbench-dev.jsonl.gz (json).",
        ),
    ],
    task: Annotated[
        list[TaskName] | None,
        typer.Option(metavar="|".join(TaskName), help="Only this task; may be repeated.", show_default="all"),
    ] = None,
    method: Annotated[
        list[MethodName] | None,
        typer.Option(metavar="|".join(MethodName), help="Only this method; may be repeated.", show_default="all"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most N problems of each task; all without it.")
    ] = None,
    out: Out = Path("awrs"),
    particles: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Particles or samples of every method.", show_default="the paper's"),
    ] = None,
    max_new_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most tokens of an answer.", rich_help_panel="Decoding")
    ] = 100,
    running: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Limit of one answer.", rich_help_panel=RUN)
    ] = 120.0,
    place: RunOptions = RunOptions(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Compare masking with sampling from the model's distribution given the constraint, on four tasks.

    **Tasks:** text to SQL, strings that patterns match, new molecules, JSON. **Methods:** the model alone (base),
    masking token by token (local), whole texts weighed afterwards (rerank), SMC with the condition as a twist, and SMC
    whose tokens are drawn by adaptive weighted rejection (awrs-smc).

    Every result is written when it is there; the same command goes on where it was stopped.

    **Examples:**

        guided eval awrs --data data/ --limit 20
        guided eval awrs --data data/ --task sql --method local --method awrs-smc
        guided eval awrs --data data/ --model Qwen/Qwen2.5-0.5B-Instruct --ray --workers 8
    """
    from guided.cli.models import silence
    from guided.eval.awrs.problems import read_problems
    from guided.eval.awrs.results import AwrsLog, AwrsSettings
    from guided.eval.awrs.run import records_of, tasks_for

    silence()
    check_plot(place.plot)
    if running.temperature == 0:
        raise GuidedError("samplers draw", where="--temperature 0", remedy="Give a temperature above 0, or none.")
    settings = AwrsSettings(
        model=running.model,
        device=running.device,
        offline=running.offline,
        max_new_tokens=max_new_tokens,
        temperature=decoding(None, running).temperature,
        particles=particles,
        seed=running.seed,
        seconds=seconds,
    )
    problems = read_problems(data, task or list(TaskName), limit, running.seed)
    tasks = tasks_for(problems, list(dict.fromkeys(method or MethodName)))
    with AwrsLog(out / "results.jsonl") as log:
        run_or_go_on(
            log.path,
            len(tasks),
            lambda: records_of(tasks, settings, log),
            lambda: _run(tasks, settings, log, place.workers if place.ray else None, quiet=as_json),
            lambda records: _conclude(records, settings, len(tasks), out, place.plot, as_json),
            quiet=as_json,
        )


def _run(tasks: list[Task], settings: AwrsSettings, log: AwrsLog, workers: int | None, *, quiet: bool) -> None:
    from guided.eval.awrs.run import run_here, run_on_ray, tasks_left

    with counted_stages("answers", len(tasks_left(tasks, settings, log)), quiet=quiet) as (stage, advance):

        def done(record: AwrsRecord) -> None:
            advance(f"{record.method}: {record.task} {record.id}")

        if workers is None:
            run_here(tasks, settings, log, on_stage=stage, on_record=done)
        else:
            run_on_ray(tasks, settings, log, workers=workers, on_stage=stage, on_record=done)


def _conclude(
    records: list[AwrsRecord], settings: AwrsSettings, n_tasks: int, out: Path, plot: bool | None, as_json: bool
) -> None:
    """Write the summary and the plot, and print what there is."""
    from guided.eval.awrs.measures import measure
    from guided.eval.awrs.plot import save_plot
    from guided.eval.awrs.report import show_measures, summary_record

    measures = measure(records)
    leave_behind(
        out,
        summary_record(measures, records, {"settings": settings.as_record()}, n_tasks),
        records,
        draw=lambda path: save_plot(measures, path),
        show=lambda console: show_measures(console, measures),
        plot=plot,
        as_json=as_json,
    )
