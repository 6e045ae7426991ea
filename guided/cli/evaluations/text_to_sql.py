"""`guided eval sql`: gold coverage, executable answers and right ones on Spider, defog's questions and BIRD."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guided.cli.evaluations.shared import RUN, Evaluation, Ray, RunOptions, Work, Workers, carry_out
from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import AsJson, ModelOptions, decoding
from guided.eval.text_to_sql.results import SqlMethod

if TYPE_CHECKING:
    from rich.console import Console

    from guided.eval.text_to_sql.measures import SqlMeasures
    from guided.eval.text_to_sql.results import SqlRecord

__all__ = ["sql"]


@dataclass(frozen=True)
class QuestionOptions:
    """Which questions are asked, as the command line says it."""

    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Spider (dev.json, database/), defog (questions.json or .csv, db/), BIRD (dev.json, dev_databases/).",
        ),
    ]
    db: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Where the databases are, with {db} for their names; without it in files of DIR."
        ),
    ] = None
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only questions about this database; may be repeated.")
    ] = None
    method: Annotated[
        list[SqlMethod] | None,
        typer.Option(
            metavar="|".join(SqlMethod),
            help="gold: is the gold query in the language; guided, none: the model with the mask and without; may be "
            "repeated.",
            show_default="gold, guided",
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most N questions; all without it.")] = None


@with_option_blocks
def sql(
    asked: QuestionOptions,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results.jsonl and summary.json go.")] = Path("sql"),
    sample_values: Annotated[
        int, typer.Option(min=0, metavar="N", help="As with `guided sql`: hold text columns to their values.")
    ] = 0,
    max_new_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most tokens of an answer.", rich_help_panel="Decoding")
    ] = 200,
    running: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Limit of one query on a database.", rich_help_panel=RUN)
    ] = 30.0,
    ray: Ray = False,
    workers: Workers = 2,
    failures: Annotated[
        int, typer.Option(min=0, metavar="N", help="Gold queries to list that are not covered; all are in the files.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Measure text to SQL: are gold queries in the language, do answers run, and do they return what the gold returns?

    **Coverage** is the share of gold queries that the language takes as they are written; where one leaves it is
    listed. **Match** is execution match: the same rows in any order of columns, in the gold's order where it has one,
    on every database file of the question (a test suite). Any of several accepted queries counts.

    Every result is written to results.jsonl when it is there; the same command goes on where it was stopped.

    **Examples:**

        guided eval sql --data spider/ --method gold
        guided eval sql --data defog/ --limit 50 --method guided --method none
        guided eval sql --data defog/ --db "postgresql://reader:secret@localhost/{db}"
        guided eval sql --data bird/ --model Qwen/Qwen2.5-Coder-7B-Instruct --ray --workers 8
    """
    from guided.cli.models import silence
    from guided.eval.text_to_sql.measures import measure
    from guided.eval.text_to_sql.questions import read_questions
    from guided.eval.text_to_sql.report import show_measures, show_uncovered, summary_record
    from guided.eval.text_to_sql.results import SqlLog, SqlSettings
    from guided.eval.text_to_sql.run import records_of, run_here, run_on_ray, tasks_for, tasks_left

    silence()
    settings = SqlSettings(
        model=running.model,
        device=running.device,
        offline=running.offline,
        max_new_tokens=max_new_tokens,
        temperature=decoding(None, running).temperature,
        seed=running.seed,
        sample_values=sample_values,
        seconds=seconds,
    )
    questions = read_questions(
        asked.data, url=asked.db, databases=asked.only or (), limit=asked.limit, seed=running.seed
    )
    methods = list(dict.fromkeys(asked.method or (SqlMethod.GOLD, SqlMethod.GUIDED)))
    tasks = tasks_for(questions, methods)

    def show(console: Console, measures: list[SqlMeasures], records: list[SqlRecord]) -> None:
        show_uncovered(console, records, failures)
        show_measures(console, measures)

    evaluation = Evaluation(
        "questions", lambda record: f"{record.method}: {record.database} {record.id}", measure, summary_record, show
    )
    with SqlLog(out / "results.jsonl") as log:
        run = RunOptions(ray, workers).chosen(run_here, run_on_ray)
        work = Work.of(tasks, settings, log, done=records_of, left=tasks_left, run=run)
        carry_out(evaluation, work, {"settings": settings.as_record()}, out, as_json=as_json)
