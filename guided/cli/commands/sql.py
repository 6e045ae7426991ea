"""`guided sql`: a question and a database to one SELECT statement, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from guided.cli.methods.blocks import with_option_blocks
from guided.cli.methods.options import (
    AsJson,
    MaxNewTokens,
    ModelOptions,
    SamplingOptions,
    decoding,
    searches,
)
from guided.cli.methods.steered import Steered
from guided.cli.output import print_error, print_json, print_note, stdout_console
from guided.errors import GuidedError, LimitError

if TYPE_CHECKING:
    from guided.cli.trace import TracedToken
    from guided.grammar.sql import DatabaseSchema

__all__ = ["sql"]


class Joins(str, Enum):
    """Values of --joins."""

    AUTO = "auto"
    KEYS = "keys"
    ANY = "any"


SHOWN_CELL = 80
"""Characters of a value that a table cell shows."""


@dataclass(frozen=True)
class QueryOptions:
    """Which database is asked, what its statements may hold, and what is shown, as the command line says it."""

    db: Annotated[str, typer.Option("--db", metavar="URL", help="sqlite:///x.db, or the path of a SQLite file.")]
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
    joins: Annotated[
        Joins,
        typer.Option(
            help="Join on declared keys and equal names only, or on any columns; auto: keys if there are any."
        ),
    ] = Joins.AUTO
    no_run: Annotated[bool, typer.Option("--no-run", help="Print the statement only.")] = False
    max_rows: Annotated[int, typer.Option(min=1, metavar="N", help="Most rows to fetch.")] = 100


@with_option_blocks
def sql(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know, in words.")],
    query: QueryOptions,
    max_new_tokens: MaxNewTokens = None,
    running: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    sampling: SamplingOptions = SamplingOptions(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Answer a question from a database by one SELECT statement over its own tables and columns.

    The grammar is made from the live database, so the model cannot name a table or column that is not there. The
    statement runs read-only, within limits.

    **Examples:**

        guided sql --db sqlite:///shop.db "How many orders did each customer make?"
        guided sql --db shop.db --sample-values 50 --explain "Which products cost more than 50?"
        guided sql --db shop.db --no-run --json "Which order has the highest price?" | jq -r .sql
        guided sql --db shop.db --sampler smc --particles 16 --replay run.html "Which order has the highest price?"
        guided sql --db shop.db --search best-first:beams=8 --must-include "ORDER BY" "Orders by price?"
    """
    import guided
    from guided.cli.inputs import located
    from guided.cli.methods.drafting import drafts_in_words
    from guided.cli.methods.sampling import check_sampling
    from guided.cli.methods.writing import write_texts
    from guided.cli.models import budget_for, compile_for, load_model, seed_draws, worded
    from guided.eval.requests import sql_request
    from guided.grammar.sql import reflect

    check_sampling(sampling, running)
    if query.explain:
        _check_explaining(sampling)
    if not question.strip():
        raise GuidedError("the question is empty", remedy='Ask something: "How many users are there?"')
    how = decoding(max_new_tokens, running)
    database = reflect(query.db, sample_values=query.sample_values)
    with located(query.db):
        grammar = guided.sql(database, aliases=_aliases(running.model), joins=_joins(query.joins, database))
    if not as_json:
        for note in grammar.notes:
            print_note(note)
    loaded = load_model(running.model, device=running.device, offline=running.offline, quiet=as_json)
    with located(query.db):
        constraint = compile_for(grammar, loaded, quiet=as_json)
    seed_draws(how)
    prompt, n_tokens = worded(loaded, sql_request(running.model, database, question))
    budget = budget_for(loaded, constraint, n_tokens, how.max_new_tokens)
    ready = Steered(loaded, sampling, running, as_json)
    trace = _trace(constraint, budget) if query.explain else None
    traces = [] if trace is None else [trace]
    (made,) = write_texts(ready, [prompt], constraint, how, max_new_tokens=budget, processors=traces, quiet=as_json)
    if made.drafts is not None and not as_json:
        print_note(drafts_in_words(made.drafts))
    steps = [] if trace is None else trace.tokens(made.tokens)
    record: dict[str, Any] = {"sql": made.text, "model": running.model, "tokens": made.tokens, **made.facts}
    if grammar.notes:
        record["notes"] = list(grammar.notes)
    if query.explain:
        record["trace"] = _records(steps)
    if not as_json:
        _show_statement(made.text, steps)
    if not query.no_run:
        _show_answer(record, query, as_json)
    elif as_json:
        print_json(record)


def _check_explaining(sampling: SamplingOptions) -> None:
    """Raise `GuidedError` where no tokens are taken one by one that could be coloured."""
    if sampling.sampler is not None:
        raise GuidedError(
            "the colours are those of one text under the mask, and a sampler writes many",
            where="--explain",
            remedy="Use --replay FILE.html with --sampler.",
        )
    if searches(sampling):
        raise GuidedError(
            "the colours are those of tokens taken one by one, and a search compares whole texts",
            where="--explain",
            remedy="Leave it out, or --search, --must-include and --must-exclude.",
        )
    if sampling.draft is not None:
        raise GuidedError(
            "the colours are of what the model says of each token, and drafts leave out passes",
            where="--explain",
            remedy="Leave out --explain or --draft.",
        )


def _joins(wanted: Joins, database: DatabaseSchema) -> str:
    if wanted is not Joins.AUTO:
        return str(wanted.value)
    return "keys" if any(table.foreign_keys for table in database.tables) else "any"


def _aliases(model: str) -> str:
    """The packaged model was trained to call tables by their own names; others may like T1 and T2."""
    from guided.eval.requests import PACKAGED

    return "names" if model == PACKAGED else "both"


def _trace(constraint: Any, budget: int) -> Any:
    from guided.cli.trace import MaskTrace

    return MaskTrace(constraint, budget)


def _records(steps: list[TracedToken]) -> list[dict[str, Any]]:
    from guided.cli.trace import as_record

    return [as_record(step) for step in steps]


def _show_answer(record: dict[str, Any], query: QueryOptions, as_json: bool) -> None:
    """Run the statement of a record, and print the rows."""
    from guided.grammar.sql import run_query

    try:
        result = run_query(query.db, record["sql"], limit_rows=query.max_rows)
    except GuidedError as error:
        _failed(record, error, as_json)
    if as_json:
        plain = [[_plain(value) for value in row] for row in result.rows]
        print_json({**record, "columns": list(result.columns), "rows": plain, "more": result.truncated})
    else:
        _show_rows(result.columns, list(result.rows), result.truncated)


def _failed(record: dict[str, Any], error: GuidedError, as_json: bool) -> NoReturn:
    """Report a statement that was written but could not be run: the model's fault, so the answer is no."""
    from guided.cli.exits import ExitCode, describe

    code = ExitCode.LIMIT if isinstance(error, LimitError) else ExitCode.NO
    if as_json:
        print_json({**record, "error": {**describe(error), "exit_code": int(code)}})
    else:
        print_error(error, as_json=False)
    raise typer.Exit(code)


def _show_statement(statement: str, steps: list[TracedToken]) -> None:
    """The statement: traced, highlighted, or on a pipe as it is."""
    from rich.syntax import Syntax

    out = stdout_console()
    if steps:
        from guided.cli.trace_view import show_trace

        show_trace(out, steps)
    elif out.is_terminal:
        out.print(Syntax(statement, "sql", background_color="default", word_wrap=True))
    else:
        out.print(statement, markup=False, soft_wrap=True)


def _show_rows(columns: tuple[str, ...], rows: list[tuple[Any, ...]], more: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    out = stdout_console()
    counted = f"{len(rows)} row" + ("" if len(rows) == 1 else "s")
    caption = f"{counted}, and there are more: raise --max-rows" if more else counted
    table = Table(caption=caption, caption_justify="left")
    for index, name in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[index], (int, float, type(None))) for row in rows)
        table.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    out.print(table)


def _cell(value: Any) -> Any:
    from rich.text import Text

    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, bytes):
        return Text(f"<{len(value)} bytes>", style="dim")
    text = str(value)
    return Text(text if len(text) <= SHOWN_CELL else text[: SHOWN_CELL - 1] + "…")


def _plain(value: Any) -> Any:
    """A value of SQLite as JSON data: blobs in hexadecimal, infinities as text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return value
