"""`guided eval awrs`: weighted sampling beside masking, on four tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guided.cli.evaluations.shared import RUN, Evaluation, Out, RunOptions, Work, carry_out, check_plot
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import AsJson, ModelOptions, decoding
from guided.errors import GuidedError
from guided.eval.awrs.methods import MethodName
from guided.eval.awrs.problems import TaskName

if TYPE_CHECKING:
    from guided.eval.awrs.measures import AwrsMeasures
    from guided.eval.awrs.results import AwrsRecord

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
    from guided.eval.awrs.run import records_of, run_here, run_on_ray, tasks_for, tasks_left

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
        run = place.chosen(run_here, run_on_ray)
        work = Work.of(tasks, settings, log, done=records_of, left=tasks_left, run=run)
        carry_out(_evaluation(), work, {"settings": settings.as_record()}, out, plot=place.plot, as_json=as_json)


def _evaluation() -> Evaluation[AwrsRecord, AwrsMeasures]:
    from guided.eval.awrs.measures import measure
    from guided.eval.awrs.plot import save_plot
    from guided.eval.awrs.report import show_measures, summary_record

    return Evaluation(
        "answers",
        lambda record: f"{record.method}: {record.task} {record.id}",
        measure,
        summary_record,
        lambda console, measures, records: show_measures(console, measures),
        save_plot,
    )
