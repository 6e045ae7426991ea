"""Reading files and standard input, with errors that name the file, line and column."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guided.cli.output import print_note
from guided.errors import GrammarError, GuidedError

__all__ = ["STDIN", "located", "parse_json", "read_text", "shown_name"]

STDIN = "-"


def shown_name(path: str) -> str:
    """The name of an input in messages."""
    return "standard input" if path == STDIN else path


def read_text(path: str, what: str) -> str:
    """The text of a file or, for ``-``, of standard input; UTF-8, with or without a byte order mark.

    ``what`` names it in messages: "schema".  Raises `GuidedError`.
    """
    name = shown_name(path)
    try:
        if path == STDIN:
            if sys.stdin.isatty():
                print_note(f"reading the {what} from the terminal; end it with Ctrl-D on a line of its own")
            data = sys.stdin.buffer.read()
        else:
            data = Path(path).read_bytes()
    except FileNotFoundError:
        module, _, name = path.rpartition(":")
        remedy = "Check the path; - reads a pipe."
        if what == "schema" and module.endswith(".py"):
            remedy = f"A class is not read: write what {name}.model_json_schema() gives to a file."
        raise GuidedError(f"there is no {what} file {path!r}", remedy=remedy) from None
    except IsADirectoryError:
        raise GuidedError(f"the {what} {path!r} is a folder", remedy="Name a file in it.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GuidedError(f"the {what} {path!r} cannot be read: {reason}", remedy="Check the file.") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GuidedError(
            f"the {what} is not UTF-8", where=f"{name}, byte {error.start}", remedy="Save it as UTF-8."
        ) from None


def parse_json(text: str, what: str) -> Any:
    """The value of a JSON text; raises `GrammarError` with the line and column (not the file) of what is wrong."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise GrammarError(
            f"the {what} is not JSON: {error.msg}",
            where=f"line {error.lineno}, column {error.colno}",
            remedy="Correct the JSON text.",
        ) from None
    except (RecursionError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise GrammarError(f"the {what} cannot be read as JSON: {reason}") from None


@contextmanager
def located(path: str) -> Iterator[None]:
    """Puts the name of the input before the place in every `GuidedError` raised inside."""
    try:
        yield
    except GuidedError as error:
        place = shown_name(path) if error.where is None else f"{shown_name(path)}, {error.where}"
        raise type(error)(error.what, where=place, remedy=error.remedy) from error
