"""Where output goes: results to standard output, everything for people's eyes in between to standard error.

With ``--json`` standard output gets exactly one JSON object (one a line for batches), errors included, and standard
error stays empty.  Rich decides on colour: none on a pipe or with ``NO_COLOR``.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

from guided.cli.exits import describe

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["json_line", "print_error", "print_json", "print_note", "print_text", "stderr_console", "stdout_console"]


_LINE_BREAKS = re.compile(r"[ \t]*[\r\n][ \t\r\n]*")


def stdout_console() -> Console:
    """A console on the present standard output; made anew, since tests and callers redirect it."""
    from rich.console import Console

    return Console(highlight=False)


def stderr_console() -> Console:
    """A console on the present standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_text(text: str) -> None:
    """Text as it is, with a newline: never wrapped, never coloured."""
    data = (text + "\n").encode("utf-8", "surrogateescape")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text + "\n")
    else:
        sys.stdout.flush()
        buffer.write(data)
        buffer.flush()


def print_json(record: dict[str, Any], **raw: str) -> None:
    """One object on one line; see `json_line`."""
    print_text(json_line(record, **raw))


def json_line(record: dict[str, Any], **raw: str) -> str:
    """An object as JSON; ``raw`` are members whose values are JSON texts already, which come first as they are."""
    # A line break in a JSON text is white space between its parts: inside a string it would be an escape.
    members = [f"{json.dumps(name)}: {_LINE_BREAKS.sub(' ', text)}" for name, text in raw.items()]
    members += [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in record.items()]
    return "{" + ", ".join(members) + "}"


def print_note(text: str) -> None:
    """A remark on standard error, on one line."""
    _line("note", "dim", text)


def print_error(error: BaseException, as_json: bool) -> None:
    """The one line, or with ``as_json`` the one object, that says what went wrong."""
    record = describe(error)
    if as_json:
        print_json({"error": record})
        return
    place = f" (at {record['where']})" if record["where"] else ""
    message = f"{record['message'].rstrip('.')}{place}"
    _line("error", "bold red", f"{message}. {record['remedy']}" if record["remedy"] else message)


def _line(word: str, style: str, text: str) -> None:
    from rich.text import Text

    line = Text.assemble("guided: ", (f"{word}:", style), " ", " ".join(text.split()))
    stderr_console().print(line, soft_wrap=True)
