"""Batches: JSON Lines or a table in, a line out for each, in order and as it comes; a run that was stopped goes on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from guided.cli.batches.tables import ID, TableReader, table_format
from guided.cli.inputs import STDIN, shown_name
from guided.cli.output import json_line, print_text
from guided.errors import GrammarError, GuidedError
from guided.grammar.sql.result_files import as_data

__all__ = ["BatchItem", "BatchOutput", "read_batch"]

_REMEDY = 'Write one JSON string a line, or objects {{"{name}": "..."}}.'


@dataclass(frozen=True)
class BatchItem:
    """One line or row of a batch; ``id`` is what it gave as its name, else its number from 0."""

    id: Any
    text: str
    fault: GuidedError | None = None
    """What is wrong with it."""


def read_batch(path: str, *, name: str = "text") -> Iterator[BatchItem]:
    """The items of a table, of a JSON Lines file or, for ``-``, of standard input, as they come.

    A table is a file whose suffix says so (`table_format`); its texts are in the column ``name``.  Of JSON Lines each
    line is a string, or an object with a text under ``name`` and perhaps ``id``; empty lines are skipped.  A line that
    is neither, a row that is malformed, or a text that is empty, is an item with a fault.  Raises `GuidedError` for a
    file that cannot be read, and for one without lines or without that column.
    """
    if path != STDIN and (form := table_format(path)) is not None:
        table = TableReader(path, form)
        return _rows(table, table.column(name), name)
    if path == STDIN:
        lines: IO[bytes] = sys.stdin.buffer
    else:
        try:
            lines = Path(path).open("rb")  # noqa: SIM115 - closed by `_items`
        except OSError as error:
            raise GuidedError(
                f"the batch {path!r} cannot be read: {error.strerror or error}",
                remedy="Check the path; - reads a pipe.",
            ) from None
    return _items(lines, path, name)


def _items(lines: IO[bytes], path: str, name: str) -> Iterator[BatchItem]:
    n_items = 0
    with lines:
        for number, line in enumerate(lines, 1):
            data = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).rstrip(b"\r\n")
            if data.strip():
                yield _item(data, n_items, f"{shown_name(path)}, line {number}", name)
                n_items += 1
    if not n_items:
        raise GrammarError("the batch has no lines", where=shown_name(path), remedy="Write one JSON text a line.")


def _rows(table: TableReader, column: int, name: str) -> Iterator[BatchItem]:
    named = table.names.index(ID) if ID in table.names else None
    n_items = 0
    for piece in table.pieces():
        texts = piece.values(column)
        names = [None] * piece.n_rows if named is None else [as_data(each) for each in piece.values(named)]
        for row, (text, given) in enumerate(zip(texts, names, strict=True)):
            fault = piece.fault(row)
            if fault is None and text is not None and not isinstance(text, str):
                what = f"the cell is a {type(text).__name__}, not a text"
                fault = GrammarError(what, where=piece.place(row), remedy=f"Make {name} a column of texts.")
            elif fault is None and not (text or "").strip():
                fault = GrammarError(f"the {name} is empty", where=piece.place(row), remedy="Give some text.")
            yield BatchItem(n_items if given is None else given, "" if fault else text, fault)
            n_items += 1
    if not n_items:
        raise GrammarError("the batch has no rows", where=table.path, remedy="Write one row for each text.")


def _item(data: bytes, number: int, place: str, member: str) -> BatchItem:
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        what = "UTF-8" if isinstance(error, UnicodeDecodeError) else "JSON"
        said = getattr(error, "msg", None) or str(error) or type(error).__name__
        fault = GrammarError(
            f"a line of the batch is not {what}: {said}", where=place + column, remedy=_REMEDY.format(name=member)
        )
        return BatchItem(number, "", fault)
    if isinstance(value, str):
        value = {member: value}
    if not isinstance(value, dict):
        fault = GrammarError(
            "a line of the batch is neither a string nor an object", where=place, remedy=_REMEDY.format(name=member)
        )
        return BatchItem(number, "", fault)
    name, text = value.get("id", number), value.get(member)
    if not isinstance(text, str):
        fault = GrammarError(f"a line of the batch has no {member}", where=place, remedy=_REMEDY.format(name=member))
        return BatchItem(name, "", fault)
    if not text.strip():
        return BatchItem(name, "", GrammarError(f"the {member} is empty", where=place, remedy="Give some text."))
    return BatchItem(name, text)


class BatchOutput:
    """Where the lines of a batch go: standard output, or a file that a later run can go on with.

    ``n_done`` lines are there already.  Raises `GuidedError` for a file that is there and not to be gone on with.
    """

    def __init__(self, path: str | None, resume: bool, *, option: str = "--out") -> None:
        """``option`` is what the command line calls the file."""
        self.n_done = 0
        self.n_failed = 0
        """Lines with an error, those of earlier runs included."""
        self._path = path
        self._file: IO[bytes] | None = None
        self._done: list[Any] = []
        if path is None:
            if resume:
                raise GuidedError("nothing to go on with", where="--resume", remedy=f"Name the file: {option} FILE.")
            return
        try:
            self._file = Path(path).open("r+b" if resume and os.path.exists(path) else "x+b")  # noqa: SIM115 - its own
        except FileExistsError:
            raise GuidedError(
                f"{path!r} is there already", where=option, remedy="Add --resume to go on with it, or remove it."
            ) from None
        except OSError as error:
            raise GuidedError(
                f"{path!r} cannot be written: {error.strerror or error}", where=option, remedy="Name another file."
            ) from None
        self._read()

    def _read(self) -> None:
        """What earlier runs wrote; a last line that was cut is written again."""
        assert self._file is not None
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                record = json.loads(line)
                self._done.append(record["id"])
            except (ValueError, KeyError, TypeError):
                raise GuidedError(
                    "a line is none of a batch's", where=f"{self._path}, line {number}", remedy="Name another file."
                ) from None
            self.n_failed += "error" in record
            whole += len(line)
        self._file.seek(whole)
        self._file.truncate()
        self.n_done = len(self._done)

    def has(self, number: int, item: BatchItem) -> bool:
        """Is the line of this item, the so many-th, there already?  Raises `GuidedError` where another's is."""
        if number >= self.n_done:
            return False
        if self._done[number] != item.id:
            raise GuidedError(
                f"the line is that of {self._done[number]!r}, and the batch has {item.id!r} there",
                where=f"{self._path}, line {number + 1}",
                remedy="Go on with the batch that the file is of, or name another file.",
            )
        return True

    def write(self, record: dict[str, Any], **raw: str) -> None:
        """One line, at once."""
        self.n_failed += "error" in record
        line = json_line(record, **raw)
        if self._file is None:
            print_text(line)
        else:
            self._file.write(line.encode("utf-8", "surrogateescape") + b"\n")
            self._file.flush()

    def __enter__(self) -> BatchOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
