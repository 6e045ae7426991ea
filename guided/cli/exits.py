"""Exit codes, and which error means which.  Nothing heavy is imported here."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError, VocabularyError

__all__ = ["EXIT_HELP", "ExitCode", "describe", "exit_code"]


class ExitCode(IntEnum):
    """What a command's exit status says; scripts may rely on these numbers."""

    OK = 0
    NO = 1
    """The command ran and the answer is no: text not accepted, a query that fails, a row of a batch that failed."""
    USAGE = 2
    """Wrong command line or bad input: no such file or model, broken JSON, a malformed grammar, no database."""
    REFUSED = 3
    """Well-formed, but it cannot be done exactly: unsupported, unsatisfiable, or not spellable by the tokenizer."""
    LIMIT = 4
    """A limit was reached: token budget, room in the model, counted work."""
    BUG = 70
    """An error that guided did not foresee (EX_SOFTWARE of sysexits.h); --debug shows where."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C (128 + SIGINT)."""


EXIT_HELP = (
    "**Exit codes:** 0 done · 1 the answer is no (text not accepted, query failed, rows of a batch failed) ·"
    " 2 wrong usage or bad input · 3 refused: unsupported or unsatisfiable · 4 a limit was reached ·"
    " 70 unforeseen error · 130 interrupted"
)
"""For the end of help pages, in Markdown."""

_REFUSALS = (UnsupportedError, UnsatisfiableError, VocabularyError)


def exit_code(error: BaseException) -> ExitCode:
    """The exit status for an error that ended a command.

    >>> exit_code(UnsatisfiableError("empty")).name, exit_code(ZeroDivisionError()).name
    ('REFUSED', 'BUG')
    """
    if isinstance(error, LimitError):
        return ExitCode.LIMIT
    if isinstance(error, _REFUSALS):
        return ExitCode.REFUSED
    if isinstance(error, GuidedError) or hasattr(error, "format_message"):
        return ExitCode.USAGE
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    return ExitCode.BUG


def describe(error: BaseException) -> dict[str, Any]:
    """An error for machines: its kind, message, place, remedy and exit code.

    ``kind`` is the name of a class in `guided.errors`, ``UsageError`` or ``InternalError``.
    """
    if isinstance(error, GuidedError):
        kind, message, where, remedy = type(error).__name__, error.what, error.where, error.remedy
    elif hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "guided"
        kind, message, where, remedy = "UsageError", error.format_message(), None, f"See {path} --help."
    else:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        message = type(error).__name__ + (f": {lines[0]}" if lines else "")
        kind, where, remedy = "InternalError", None, "Run it again with --debug to see where, and please report it."
    return {
        "kind": kind,
        "message": " ".join(message.split()),
        "where": where,
        "remedy": None if remedy is None else " ".join(remedy.split()),
        "exit_code": int(exit_code(error)),
    }
