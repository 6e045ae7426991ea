"""`guided eval decoding`: methods of decoding on the packaged tasks, quality against cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guided.cli.evaluations.shared import RUN, Evaluation, Out, RunOptions, Work, carry_out, check_plot
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import AsJson, Device, Offline
from guided.eval.decoding_methods.names import MethodName, Mode, TaskName

if TYPE_CHECKING:
    from guided.eval.decoding_methods.measures import DecodingMeasures
    from guided.eval.decoding_methods.results import DecodingRecord

__all__ = ["decoding"]


@with_option_blocks
def decoding(
    task: Annotated[
        list[TaskName] | None,
        typer.Option(metavar="|".join(TaskName), help="Only this task; may be repeated.", show_default="all"),
    ] = None,
    method: Annotated[
        list[MethodName] | None,
        typer.Option(metavar="NAME", help="Only this method, and greedy; may be repeated.", show_default="all"),
    ] = None,
    mode: Annotated[
        list[Mode] | None,
        typer.Option(metavar="|".join(Mode), help="Only without, or only with the grammar.", show_default="both"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N prompts of each task.")] = 60,
    out: Out = Path("decoding"),
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME_OR_PATH",
            help="One model for all tasks; prompts are those of the packaged ones.",
            rich_help_panel="Model",
            show_default="the packaged model of each task",
        ),
    ] = None,
    amateur: Annotated[
        str | None,
        typer.Option(
            metavar="NAME_OR_PATH",
            help="The small model, for contrastive-decoding and fast-slow.",
            rich_help_panel="Model",
            show_default="the packaged one of each task",
        ),
    ] = None,
    device: Device = None,
    offline: Offline = False,
    seed: Annotated[int, typer.Option(help="Seed of the draws.", rich_help_panel=RUN)] = 0,
    place: RunOptions = RunOptions(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Compare methods of decoding: quality and cost, free and under a grammar, each against greedy search.

    Records are extracted, questions answered and reviews gone on with, by the packaged models and without a download;
    texts are judged by counting, never by a model. What is reported is the quality with its 95 % bootstrap interval,
    the difference to greedy search with a p value that is corrected for the number of all comparisons (Holm), passes
    and milliseconds a token.

    Every result is written when it is there; the same command goes on where it was stopped.

    **Examples:**

        guided eval decoding --limit 20
        guided eval decoding --task facts --method beam --method mirostat --mode constrained
        guided eval decoding --model Qwen/Qwen2.5-1.5B --amateur Qwen/Qwen2.5-0.5B --ray --workers 8
    """
    from guided.cli.models import silence

    silence()
    check_plot(place.plot)
    from guided.eval.decoding_methods.results import DecodingLog, DecodingSettings
    from guided.eval.decoding_methods.run import records_of, run_here, run_on_ray, tasks_for, tasks_left

    settings = DecodingSettings(model, amateur, device, offline, seed)
    methods = list(dict.fromkeys([MethodName.GREEDY, *(method or MethodName)]))
    tasks = tasks_for(list(dict.fromkeys(task or TaskName)), list(dict.fromkeys(mode or Mode)), methods, limit)
    with DecodingLog(out / "results.jsonl") as log:
        run = place.chosen(run_here, run_on_ray)
        work = Work.of(tasks, settings, log, done=records_of, left=tasks_left, run=run)
        carry_out(_evaluation(), work, {"settings": settings.as_record()}, out, plot=place.plot, as_json=as_json)


def _evaluation() -> Evaluation[DecodingRecord, DecodingMeasures]:
    from guided.eval.decoding_methods.measures import measure
    from guided.eval.decoding_methods.plot import save_plot
    from guided.eval.decoding_methods.report import show_measures, summary_record

    return Evaluation(
        "texts",
        lambda record: f"{record.method}: {record.task} {record.id}",
        measure,
        summary_record,
        lambda console, measures, records: show_measures(console, measures),
        save_plot,
    )
