"""A statement run, and what is shown of its answer: a table, text on standard output, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from guided.cli.batches.tables import table_format
from guided.cli.output import print_error, print_json, print_note, print_text, stdout_console
from guided.cli.queries.options import AnswerOptions, ManyOptions, Shown
from guided.errors import GuidedError, LimitError

if TYPE_CHECKING:
    from guided.cli.trace import TracedToken
    from guided.grammar.sql import QueryResult

__all__ = ["check_answer", "failed", "form_of", "plan_of", "rows_of", "run_statement", "show_answer", "show_statement"]

SHOWN_CELL = 80
"""Characters of a value that a table cell shows."""


def check_answer(answer: AnswerOptions, many: ManyOptions) -> None:
    """Raise `GuidedError` before any work for options that contradict each other."""
    if many.batch is not None:
        if answer.format not in (None, Shown.JSON):
            raise GuidedError("a batch's answers are JSON Lines", where="--format", remedy="Leave it out.")
        if answer.output is not None and table_format(str(answer.output)) is not None:
            raise GuidedError("a batch's answers are JSON Lines", where="--output", remedy="Name a file .jsonl.")
        return
    if many.resume:
        raise GuidedError("only a batch is gone on with", where="--resume", remedy="Add --batch FILE.")
    if answer.no_run and (answer.output is not None or answer.format is not None):
        raise GuidedError("there are no rows to write", where="--no-run", remedy="Leave it out.")
    if form_of(answer) in (Shown.ARROW, Shown.PARQUET) and answer.output is None:
        raise GuidedError("this format is for files", where="--format", remedy="Name one: --output rows.parquet.")
    if form_of(answer) is Shown.TABLE and answer.output is not None:
        raise GuidedError("a table is for the screen", where="--format", remedy="Use csv, json, arrow or parquet.")


def form_of(answer: AnswerOptions) -> Shown:
    """How the rows are written."""
    from guided.grammar.sql.result_files import format_of

    if answer.format is not None:
        return answer.format
    return Shown.TABLE if answer.output is None else Shown(format_of(answer.output).value)


def run_statement(db: str, statement: str, answer: AnswerOptions) -> QueryResult:
    """The rows that a statement returns, within the limits."""
    from guided.grammar.sql import run_query

    return run_query(db, statement, limit_rows=answer.max_rows, seconds=answer.seconds)


def plan_of(db: str, statement: str) -> str:
    """How the engine would run it."""
    from guided.grammar.sql import explain_query

    return explain_query(db, statement)


def rows_of(result: QueryResult) -> dict[str, Any]:
    """The columns and rows as JSON data."""
    from guided.grammar.sql.result_files import as_data

    return {
        "columns": list(result.columns),
        "rows": [as_data(row) for row in result.rows],
        "more": result.truncated,
        "seconds": round(result.seconds, 6),
    }


def show_answer(record: dict[str, Any], db: str, answer: AnswerOptions, as_json: bool) -> None:
    """Run the statement of a record, and print or write the rows, and the plan before them."""
    plan: str | None = None
    result: QueryResult | None = None
    try:
        if answer.explain_plan:
            plan = plan_of(db, record["sql"])
        if not answer.no_run:
            result = run_statement(db, record["sql"], answer)
    except GuidedError as error:
        failed(record, error, as_json)
    if result is not None and answer.output is not None:
        _write(result, answer.output, form_of(answer))
    if as_json:
        rows = {} if result is None else rows_of(result)
        if answer.output is not None and result is not None:
            rows = {"output": str(answer.output), "n_rows": len(result.rows), "more": result.truncated}
        print_json({**record, **({} if plan is None else {"plan": plan}), **rows})
        return
    if plan is not None:
        print_text(plan)
    if result is not None:
        _show_result(result, answer)


def _write(result: QueryResult, path: Path, form: Shown) -> None:
    from guided.grammar.sql.result_files import ResultFormat, write_result

    write_result(result, path, ResultFormat(form.value))


def _show_result(result: QueryResult, answer: AnswerOptions) -> None:
    from guided.grammar.sql.result_files import csv_text, json_text

    form = form_of(answer)
    if form is Shown.TABLE:
        _show_rows(result)
        return
    if answer.output is not None:
        print_note(f"{_counted(result)} written to {answer.output}")
    else:
        print_text(json_text(result) if form is Shown.JSON else csv_text(result).removesuffix("\n"))
    if result.truncated:
        print_note("there are more rows: raise --max-rows")


def failed(record: dict[str, Any], error: GuidedError, as_json: bool) -> NoReturn:
    """Report a statement that was written but could not be run: the model's fault, so the answer is no."""
    from guided.cli.exits import ExitCode, describe

    code = ExitCode.LIMIT if isinstance(error, LimitError) else ExitCode.NO
    if as_json:
        print_json({**record, "error": {**describe(error), "exit_code": int(code)}})
    else:
        print_error(error, as_json=False)
    raise typer.Exit(code)


def show_statement(statement: str, steps: list[TracedToken], answer: AnswerOptions) -> None:
    """The statement: traced, highlighted, or on a pipe as it is; a note where standard output is for the rows."""
    from rich.syntax import Syntax

    if answer.output is None and form_of(answer) is not Shown.TABLE:
        print_note(statement)
        return
    out = stdout_console()
    if steps:
        from guided.cli.trace_view import show_trace

        show_trace(out, steps)
    elif out.is_terminal:
        out.print(Syntax(statement, "sql", background_color="default", word_wrap=True))
    else:
        out.print(statement, markup=False, soft_wrap=True)


def _counted(result: QueryResult) -> str:
    return f"{len(result.rows)} row" + ("" if len(result.rows) == 1 else "s")


def _show_rows(result: QueryResult) -> None:
    from decimal import Decimal

    from rich.table import Table
    from rich.text import Text

    counted = _counted(result)
    caption = f"{counted}, and there are more: raise --max-rows" if result.truncated else counted
    table = Table(caption=caption, caption_justify="left")
    for index, name in enumerate(result.columns):
        numbers = bool(result.rows) and all(
            isinstance(row[index], (int, float, Decimal, type(None))) for row in result.rows
        )
        table.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
    for row in result.rows:
        table.add_row(*(_cell(value) for value in row))
    stdout_console().print(table)


def _cell(value: Any) -> Any:
    from rich.text import Text

    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, (bytes, memoryview)):
        return Text(f"<{len(value)} bytes>", style="dim")
    text = str(value)
    return Text(text if len(text) <= SHOWN_CELL else text[: SHOWN_CELL - 1] + "…")
