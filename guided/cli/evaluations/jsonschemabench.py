"""`guided eval jsonschemabench`: the JSONSchemaBench evaluation of an engine with a model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guided.cli.evaluations.shared import RUN, Evaluation, Out, RunOptions, Work, carry_out, check_plot
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import AsJson, ModelOptions, decoding
from guided.eval.engines.names import EngineName

if TYPE_CHECKING:
    from rich.console import Console

    from guided.eval.measures import Measures
    from guided.eval.records import Record
    from guided.eval.settings import Settings

__all__ = ["jsonschemabench"]

SHOWN_FAILURES = 20


@dataclass(frozen=True)
class RowOptions:
    """Which rows of the data set are run, as the command line says it."""

    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="At most N schemas, in turn from every split; all without it."),
    ] = None
    split: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this split (Github_easy); may be repeated.")
    ] = None


@dataclass(frozen=True)
class EngineLimits:
    """What an engine may take for a schema, as the command line says it."""

    compile_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Limit of compiling one schema.", rich_help_panel=RUN)
    ] = 40.0
    generate_seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Limit of generating one output.", rich_help_panel=RUN)
    ] = 60.0
    isolate: Annotated[
        bool | None,
        typer.Option(
            help="Run in a process that is killed when an engine hangs; by default with any engine but ours.",
            rich_help_panel=RUN,
        ),
    ] = None

    def isolated(self, engines: Collection[EngineName]) -> bool:
        """Do engines run in a process of their own?"""
        return bool({*engines} - {EngineName.GUIDED, EngineName.NONE}) if self.isolate is None else self.isolate


@with_option_blocks
def jsonschemabench(
    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="The data set's snapshot (parquet, JSON, JSON Lines), the repository's data folder, or MaskBench's"
            " rows (.jsonl, .jsonl.gz).",
        ),
    ],
    engine: Annotated[
        list[EngineName],
        typer.Option(
            metavar="|".join(name.value for name in EngineName),
            help="What constrains the model; repeat it to compare engines in one run.",
        ),
    ] = [EngineName.GUIDED],  # noqa: B006 - typer copies it
    chosen: RowOptions = RowOptions(),
    out: Out = Path("jsonschemabench"),
    max_new_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most tokens of an output.", rich_help_panel="Decoding")
    ] = 512,
    running: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    limits: EngineLimits = EngineLimits(),
    place: RunOptions = RunOptions(),  # noqa: B008 - frozen
    failures: Annotated[
        int, typer.Option(min=0, metavar="N", help="Failures to list here; all are in the files.")
    ] = SHOWN_FAILURES,
    as_json: AsJson = False,
) -> None:
    """Measure coverage, compliance and speed on JSONSchemaBench: one output for each schema, checked by jsonschema.

    **Declared coverage** is the share of schemas that the engine takes, **empirical coverage** the share of valid
    outputs, **compliance** the second divided by the first. GCT is the time to compile, TTFT to the first token,
    TPOT per further token.

    Every result is written to results.jsonl when it is there. Stop it whenever you like: the same command goes on
    where it stopped and repeats nothing.

    **Examples:**

        guided eval jsonschemabench --data JSONSchemaBench/ --limit 100
        guided eval jsonschemabench --data maskbench.jsonl.gz --engine guided --engine xgrammar --engine none
        guided eval jsonschemabench --data data/ --split Github_easy --model Qwen/Qwen2.5-0.5B-Instruct
        guided eval jsonschemabench --data data/ --ray --workers 8
    """
    from guided.cli.models import silence
    from guided.eval.corpus import choose, read_rows
    from guided.eval.distributed import run_on_ray
    from guided.eval.records import RecordLog
    from guided.eval.run import records_of, run_here, tasks_for, tasks_left
    from guided.eval.settings import Settings

    silence()
    check_plot(place.plot)
    how = decoding(max_new_tokens, running)
    settings = Settings(
        model=running.model,
        device=running.device,
        offline=running.offline,
        max_new_tokens=max_new_tokens,
        temperature=how.temperature,
        seed=running.seed,
        compile_seconds=limits.compile_seconds,
        generate_seconds=limits.generate_seconds,
    )
    rows = choose(read_rows(data), chosen.limit, chosen.split or ())
    tasks = tasks_for(rows, list(dict.fromkeys(engine)))
    here = partial(run_here, isolate=limits.isolated(engine))
    with RecordLog(out / "results.jsonl") as log:
        run = place.chosen(here, run_on_ray)
        work = Work.of(tasks, settings, log, done=records_of, left=tasks_left, run=run)
        carry_out(_evaluation(failures), work, _facts(settings), out, plot=place.plot, as_json=as_json)


def _evaluation(shown: int) -> Evaluation[Record, Measures]:
    from guided.eval.measures import measure
    from guided.eval.plot import save_plot
    from guided.eval.report import failures_of, show_failures, show_measures, summary_record

    def show(console: Console, measures: list[Measures], records: list[Record]) -> None:
        show_failures(console, failures_of(records), shown)
        show_measures(console, measures)

    return Evaluation(
        "schemas", lambda record: f"{record.engine}: {record.id}", measure, summary_record, show, save_plot
    )


def _facts(settings: Settings) -> dict[str, Any]:
    import os
    import platform

    from guided.eval.engines.names import engine_version

    versions = {name.value: engine_version(name) for name in EngineName if engine_version(name)}
    machine = {"system": platform.platform(), "python": platform.python_version(), "processors": os.cpu_count()}
    return {"settings": settings.as_record(), "versions": versions, "machine": machine}
