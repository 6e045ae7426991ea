"""`guided check --report`: what becomes of each keyword of a schema in our engine."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import typer

from guided.cli.checking.grammars import read_schema
from guided.cli.exits import ExitCode
from guided.cli.inputs import located, shown_name
from guided.cli.notations import Format
from guided.cli.output import print_json, stdout_console

if TYPE_CHECKING:
    from guided.grammar.json_schema import Line

__all__ = ["show_report"]

_STYLES = {"masked": "green", "checked": "cyan", "annotation": "dim", "refused": "bold red"}


def show_report(path: str, format: Format | None, *, start: str | None, order: str, as_json: bool) -> None:
    """Print how each keyword is enforced; exits with 3 when one is refused, after what could be said."""
    from guided.grammar.json_schema import Enforcement, schema_report

    schema = read_schema(path, format, "--report", start)
    with located(path):
        report = schema_report(schema, order=order)
    if as_json:
        lines = [{"pointer": line.pointer, "enforcement": line.enforcement.value, "why": line.why} for line in report]
        print_json({"schema": shown_name(path), "report": lines})
    else:
        stdout_console().print(_table(report))
    if any(line.enforcement is Enforcement.REFUSED for line in report):
        raise typer.Exit(ExitCode.REFUSED)


def _table(report: tuple[Line, ...]) -> Any:
    from rich.table import Table
    from rich.text import Text

    counts = Counter(line.enforcement.value for line in report)
    caption = ", ".join(f"{counts[name]} {name}" for name in _STYLES if counts[name]) or "no keywords"
    table = Table(caption=caption, caption_justify="left")
    for heading in ("keyword", "enforcement", "why"):
        table.add_column(heading, overflow="fold")
    for line in report:
        name = line.enforcement.value
        table.add_row(Text(line.pointer), Text(name, style=_STYLES[name]), Text(line.why))
    return table
