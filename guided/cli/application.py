"""The application: its commands, its own options, and the one place where errors become exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from guided.cli.commands.bench import benchmarks
from guided.cli.commands.check import check
from guided.cli.commands.doctor import doctor
from guided.cli.commands.extract import extract
from guided.cli.commands.serve import serve
from guided.cli.commands.sql import sql
from guided.cli.commands.version import version, version_text
from guided.cli.commands.warmup import warmup
from guided.cli.configuration import ConfigurationChoice
from guided.cli.evaluations.evaluate import evaluations
from guided.cli.exits import EXIT_HELP, ExitCode, exit_code
from guided.cli.output import print_error, print_text
from guided.errors import GuidedError, extra_missing

__all__ = ["application", "run"]

DEBUG = "--debug"


class _Group(TyperGroup):
    """Turns every error into one line (or JSON object) and an exit code; ``--debug`` shows the traceback instead."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        own = given[: given.index("--")] if "--" in given else given
        debug = DEBUG in own
        # Wherever it stands: a user adds it to the end of the line that failed.
        arguments = [word for word in own if word != DEBUG] + given[len(own) :]
        try:
            with warnings.catch_warnings():
                if not debug:
                    warnings.simplefilter("ignore")
                code = super().main(arguments, prog_name, complete_var, False, windows_expand_args, **extra)
            sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                code = _failed(error, own, debug)
            else:
                # The reader (head, less) has enough.  What is left in the buffer must not fail again at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                code = ExitCode.NO
        except (KeyboardInterrupt, typer.Abort):
            code = ExitCode.INTERRUPTED
        except ModuleNotFoundError as error:
            code = _failed(extra_missing(error) or error, own, debug)
        except Exception as error:
            code = _failed(error, own, debug)
        if not standalone_mode:
            return code
        sys.exit(int(code or 0))


def _failed(error: Exception, arguments: Sequence[str], debug: bool) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        print_text(getattr(error, "message", ""))
        return ExitCode.USAGE
    if debug:
        traceback.print_exception(error)
    print_error(error, "--json" in arguments)
    return exit_code(error)


application = typer.Typer(
    cls=_Group,
    name="guided",
    help=(
        "Constrained decoding: a language model whose output is always in your schema, grammar or database."
        "\n\nTry these:"
        "\n\n    guided extract --schema person.json letter.txt"
        '\n\n    guided sql --db sqlite:///shop.db "How many customers are there for each city?"'
        "\n\n    guided serve"
        "\n\n    guided check person.json"
    ),
    epilog=EXIT_HELP,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        print_text(version_text())
        raise typer.Exit


REPORTS = ("doctor", "version")
"""Commands that run whatever the file of defaults says: people call them when something is wrong."""


@application.callback()
def _options(
    context: typer.Context,
    show: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show tracebacks; may stand anywhere on the line.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Take defaults from this file, instead of the nearest guided.toml or [tool.guided] of pyproject.toml"
            " in this folder or above.",
        ),
    ] = None,
    no_config: Annotated[bool, typer.Option("--no-config", help="Take defaults from no file.")] = False,
) -> None:
    """Options of `guided` itself; the first two act before this is called."""
    if config is not None and no_config:
        raise GuidedError("one file, or none", where="--no-config", remedy="Leave out one of the two options.")
    context.obj = ConfigurationChoice(config, no_config)
    if context.invoked_subcommand not in REPORTS:
        context.default_map = context.obj.defaults(context)


for _command in (extract, sql, serve, check, warmup, doctor, version):
    application.command(epilog=EXIT_HELP)(_command)
application.add_typer(evaluations)
application.add_typer(benchmarks)


def run() -> None:
    """Run the application on ``sys.argv`` and exit."""
    try:
        typer.main.get_command(application)(prog_name="guided")
    finally:
        # At the end of a process DuckDB's module writes 40 lines about its own types where torch is loaded.  Whoever
        # calls the commands within a process of their own keeps their stderr.
        if "duckdb" in sys.modules and "torch" in sys.modules and sys.exc_info()[0] is SystemExit:
            sys.stderr.flush()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
