"""`guided eval steering`: every steering method against the model without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guided.cli.evaluations.shared import RUN, Evaluation, Out, Plot, Work, carry_out, check_plot
from guided.cli.methods.options import AsJson, Device, Offline
from guided.eval.steering.names import MethodName

if TYPE_CHECKING:
    from guided.eval.steering.measures import SteeringMeasures
    from guided.eval.steering.results import SteeringRecord

__all__ = ["steering"]


def steering(
    method: Annotated[
        list[MethodName] | None,
        typer.Option(metavar="NAME", help="Only this method; may be repeated.", show_default="all"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N prompts of each task.")] = 100,
    out: Out = Path("steering"),
    tuning: Annotated[
        bool, typer.Option("--tuning", help="The prompts that strengths were chosen on, not the held-out ones.")
    ] = False,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME_OR_PATH",
            help="The model to steer: the packaged one of reviews, a folder, or a name on the hub.",
            rich_help_panel="Model",
        ),
    ] = "reviews",
    device: Device = None,
    offline: Offline = False,
    seed: Annotated[int, typer.Option(help="Seed of the draws.", rich_help_panel=RUN)] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare a model with itself steered, each method on the measure that it is for.

    Every method writes on held-out prompts of its own task with the packaged experts: an amateur, a praising and a
    complaining expert, reward models. Texts are judged by counting, never by a model. What is reported is the
    difference over prompts with its 95 % bootstrap interval, and the perplexity of the texts as the cost.

    Every result is written when it is there; the same command goes on where it was stopped.

    **Examples:**

        guided eval steering --limit 50
        guided eval steering --method dexperts --method rad
        guided eval steering --model Qwen/Qwen2.5-0.5B --method context-aware
    """
    from guided.cli.models import silence

    silence()
    check_plot(plot)
    from guided.eval.steering.prompts import Split
    from guided.eval.steering.results import SteeringLog, SteeringSettings
    from guided.eval.steering.run import batches_for, records_of, run_here, tasks_left

    settings = SteeringSettings(
        model=model, device=device, offline=offline, seed=seed, split=Split.TUNING if tuning else Split.HELD_OUT
    )
    batches = batches_for(list(dict.fromkeys(method or MethodName)), limit, settings)
    with SteeringLog(out / "results.jsonl") as log:
        work = Work.of(
            batches, settings, log, done=records_of, left=tasks_left, run=run_here,
            results_of=lambda some: sum(len(batch.prompts) for batch in some),
        )  # fmt: skip
        carry_out(_evaluation(), work, {"settings": settings.as_record()}, out, plot=plot, as_json=as_json)


def _evaluation() -> Evaluation[SteeringRecord, SteeringMeasures]:
    from guided.eval.steering.measures import measure
    from guided.eval.steering.plot import save_plot
    from guided.eval.steering.report import show_measures, summary_record

    return Evaluation(
        "texts",
        lambda record: f"{record.method}: {record.task} {record.id}",
        measure,
        summary_record,
        lambda console, measures, records: show_measures(console, measures),
        save_plot,
    )
