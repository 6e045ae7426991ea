"""The options of `guided sql`, in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AnswerOptions", "ManyOptions", "QueryOptions", "Rerank", "Shown"]

_ANSWER = "Answer"
_MANY = "Batches and samples"


class Shown(str, Enum):
    """Values of --format."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


class Rerank(str, Enum):
    """Values of --rerank."""

    EXECUTION = "execution"


@dataclass(frozen=True)
class QueryOptions:
    """Which database is asked, and what its statements may hold, as the command line says it."""

    db: Annotated[
        str,
        typer.Option(
            "--db",
            metavar="URL",
            help="sqlite:///x.db, postgresql://user:password@host/name, mysql://.., mariadb://.., duckdb:///x.db, or"
            " the path of a SQLite or DuckDB file.",
        ),
    ]
    schema: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Read this schema besides the default one; may be repeated; '*': all."),
    ] = None
    explain: Annotated[
        bool, typer.Option("--explain", help="Colour the tokens by the probability that the mask took away.")
    ] = False
    sample_values: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Hold a text column's comparisons to its own values where it has at most N (0: any text).",
        ),
    ] = 0
    forward: Annotated[
        bool | None,
        typer.Option(
            "--forward/--no-forward",
            help="May SELECT use names that only a sub-query in FROM will define? By default not the packaged model.",
            show_default=False,
        ),
    ] = None
    link: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Of a large database only the N tables that fit the question best may be named; all without it.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True)
class AnswerOptions:
    """Whether and how the statement is run, and what is shown of the answer, as the command line says it."""

    no_run: Annotated[bool, typer.Option("--no-run", help="Print the statement only.", rich_help_panel=_ANSWER)] = False
    explain_plan: Annotated[
        bool,
        typer.Option("--explain-plan", help="Show how the engine would run it (EXPLAIN).", rich_help_panel=_ANSWER),
    ] = False
    max_rows: Annotated[int, typer.Option(min=1, metavar="N", help="Most rows to fetch.", rich_help_panel=_ANSWER)] = (
        100
    )
    seconds: Annotated[
        float, typer.Option(min=0.001, metavar="S", help="Most time that the query may take.", rich_help_panel=_ANSWER)
    ] = 60.0
    format: Annotated[
        Shown | None,
        typer.Option(
            help="How the rows are written; by default a table, or as --output FILE ends.",
            rich_help_panel=_ANSWER,
            show_default=False,
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the rows go (.json, .csv, .arrow, .parquet), or a batch's lines.",
            rich_help_panel=_ANSWER,
        ),
    ] = None  # fmt: skip


@dataclass(frozen=True)
class ManyOptions:
    """Batches of questions, and statements among which one is chosen, as the command line says it."""

    batch: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='Questions as JSON Lines (strings, or {"id": .., "question": ".."}), or the column `question` of a'
            " table (.csv, .tsv, .arrow, .parquet); the answers are JSON Lines, in order and as they come. What is"
            " wrong with a line is that line's error.",
            rich_help_panel=_MANY,
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the lines that --output FILE has already.", rich_help_panel=_MANY),
    ] = False
    rerank: Annotated[
        Rerank | None,
        typer.Option(
            help="Draw several statements, run them, and take the answer that most agree on. It helps where the model"
            " is unsure; the language alone keeps statements from failing.",
            rich_help_panel=_MANY,
        ),
    ] = None
    samples: Annotated[
        int, typer.Option(min=2, metavar="N", help="Statements that --rerank draws.", rich_help_panel=_MANY)
    ] = 8
