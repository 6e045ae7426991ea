"""Tables as batches: CSV, Arrow and Parquet files whose one column holds the texts, read a thousand rows at a time."""

from __future__ import annotations

import csv
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from guided.errors import GrammarError, GuidedError
from guided.grammar.sql.result_files import as_data
from guided.reading.arrow import pyarrow_for

__all__ = ["ID", "ROWS", "Piece", "TableFormat", "TableReader", "table_format"]

ROWS = 1024
"""Rows that are in memory at a time."""

ID = "id"
"""The column that names rows, where there is one; else they are numbered from 0."""

LONGEST_CELL = 2**31 - 1
"""Characters.  Python's own limit for CSV is 131,072, and a text may be a book."""


class TableFormat(Enum):
    """How a table is written; the values are files' suffixes."""

    CSV = ".csv"
    TSV = ".tsv"
    ARROW = ".arrow"
    PARQUET = ".parquet"

    @property
    def separator(self) -> str | None:
        """What stands between cells; None where a table is no text."""
        return {TableFormat.CSV: ",", TableFormat.TSV: "\t"}.get(self)


def table_format(path: str | None) -> TableFormat | None:
    """The format that a file's suffix names; None for all others, which are JSON Lines.

    >>> table_format("people.CSV"), table_format("people.jsonl")
    (<TableFormat.CSV: '.csv'>, None)
    """
    suffix = "" if path is None else Path(path).suffix.lower()
    return next((form for form in TableFormat if form.value == suffix), None)


class Piece(ABC):
    """Some rows of a table, by columns."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Of the whole table."""

    @abstractmethod
    def texts(self, column: int) -> list[str | None]:
        """The cells as text: of a CSV file, and for one."""

    @abstractmethod
    def array(self, column: int) -> Any:
        """The cells as an array of Arrow, of the type that they have."""

    @abstractmethod
    def values(self, column: int) -> list[Any]:
        """The cells as values of Python."""

    def fault(self, row: int) -> GuidedError | None:
        """What is wrong with a whole row."""
        return None

    @abstractmethod
    def place(self, row: int) -> str:
        """Where a row stands, for messages."""


@dataclass
class _TextPiece(Piece):
    """Rows of a CSV file: the line that each ends in, and its cells or what is wrong with it."""

    path: str
    width: int
    lines: list[int] = field(default_factory=list)
    rows: list[list[str | None] | GuidedError] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def n_columns(self) -> int:
        return self.width

    def texts(self, column: int) -> list[str | None]:
        return [None if isinstance(row, GuidedError) else row[column] for row in self.rows]

    def array(self, column: int) -> Any:
        pyarrow = pyarrow_for("a table of Arrow")
        return pyarrow.array(self.texts(column), pyarrow.string())

    def values(self, column: int) -> list[Any]:
        return list(self.texts(column))

    def fault(self, row: int) -> GuidedError | None:
        found = self.rows[row]
        return found if isinstance(found, GuidedError) else None

    def place(self, row: int) -> str:
        return f"{self.path}, line {self.lines[row]}"


@dataclass
class _ArrowPiece(Piece):
    """Rows of an Arrow or Parquet file, ``first`` being the number of the first, from 1."""

    path: str
    first: int
    batch: Any

    @property
    def n_rows(self) -> int:
        return int(self.batch.num_rows)

    @property
    def n_columns(self) -> int:
        return int(self.batch.num_columns)

    def texts(self, column: int) -> list[str | None]:
        pyarrow = pyarrow_for("a table of Arrow")
        cells, types = self.batch.column(column), pyarrow.types
        if not (types.is_nested(cells.type) or types.is_binary(cells.type) or types.is_large_binary(cells.type)):
            # Arrow's own spelling: dates of nanoseconds and decimals lose nothing.
            return list(cells.cast(pyarrow.string()).to_pylist())
        plain = [as_data(value) for value in cells.to_pylist()]
        return [each if each is None or isinstance(each, str) else json.dumps(each) for each in plain]

    def array(self, column: int) -> Any:
        return self.batch.column(column)

    def values(self, column: int) -> list[Any]:
        return list(self.batch.column(column).to_pylist())

    def place(self, row: int) -> str:
        return f"{self.path}, row {self.first + row}"


class TableReader:
    """A file of rows.  Raises `GuidedError` where it cannot be read, and for columns that are named twice."""

    def __init__(self, path: str, form: TableFormat) -> None:
        self.path = path
        self.form = form
        self.types: list[Any] | None = None
        """Arrow's types of the columns; None where all is text."""
        with self._explained():
            self.names = self._header()
        if not self.names or "" in self.names:
            raise GrammarError("the table's first line names no columns", where=path, remedy="Write their names there.")
        if twice := next((name for name in self.names if self.names.count(name) > 1), None):
            raise GrammarError(f"two columns are named {twice!r}", where=path, remedy="Rename one.")

    def column(self, name: str) -> int:
        """The place of a column; raises `GuidedError` where there is none of that name."""
        if name in self.names:
            return self.names.index(name)
        known = ", ".join(map(repr, self.names))
        raise GuidedError(
            f"the table has no column {name!r}, but {known}",
            where=self.path,
            remedy="Say --column NAME. Cells of .csv are separated by commas, of .tsv by tabs.",
        )

    def pieces(self) -> Iterator[Piece]:
        """All rows, from the first."""
        with self._explained():
            yield from self._lines() if self.form.separator else self._batches()

    def _header(self) -> list[str]:
        if self.form.separator is None:
            with self._opened() as schema:
                self.types = list(schema.types)
                return list(schema.names)
        with open(self.path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            return next(csv.reader(file, delimiter=self.form.separator, strict=True), [])

    def _lines(self) -> Iterator[Piece]:
        csv.field_size_limit(LONGEST_CELL)
        piece = _TextPiece(self.path, len(self.names))
        with open(self.path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            reader = csv.reader(file, delimiter=self.form.separator or ",", strict=True)
            next(reader)
            while True:
                try:
                    cells = next(reader)
                except StopIteration:
                    break
                except csv.Error as error:
                    fault = GrammarError(
                        f"a row of the table is not CSV: {error}",
                        where=f"{self.path}, line {reader.line_num}",
                        remedy='Write quotes inside a cell twice, and the cell in quotes: "say ""yes""".',
                    )
                    piece.rows.append(fault)
                else:
                    if not cells:
                        continue
                    piece.rows.append(self._checked(cells, reader.line_num))
                piece.lines.append(reader.line_num)
                if len(piece.rows) == ROWS:
                    yield piece
                    piece = _TextPiece(self.path, len(self.names))
        if piece.rows:
            yield piece

    def _checked(self, cells: Sequence[str], line: int) -> list[str | None] | GuidedError:
        where = f"{self.path}, line {line}"
        if len(cells) != len(self.names):
            return GrammarError(
                f"a row of the table has {len(cells)} cells, and there are {len(self.names)} columns",
                where=where,
                remedy="Write a cell for each column; one with a separator in it in quotes.",
            )
        if any("\udc80" <= mark <= "\udcff" for cell in cells for mark in cell):
            return GrammarError("a row of the table is not UTF-8", where=where, remedy="Save it as UTF-8.")
        return [cell or None for cell in cells]

    def _batches(self) -> Iterator[Piece]:
        first = 1
        with self._opened() as opened:
            for batch in opened.batches():
                yield _ArrowPiece(self.path, first, batch)
                first += batch.num_rows

    @contextmanager
    def _opened(self) -> Iterator[_ArrowFile]:
        pyarrow = pyarrow_for(f"a {self.form.value} file")
        # The file is not mapped: whoever changes it while it is read must not end this process.
        with pyarrow.OSFile(self.path) as file:
            yield _ArrowFile(pyarrow, file, self.form)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno is None:
                raise self._none(error) from None
            raise GuidedError(
                f"the batch {self.path!r} cannot be read: {os.strerror(error.errno)}", remedy="Check the path."
            ) from None
        except (csv.Error, ValueError, NotImplementedError) as error:
            raise self._none(error) from None

    def _none(self, error: Exception) -> GuidedError:
        what = {TableFormat.ARROW: "an Arrow file", TableFormat.PARQUET: "Parquet"}.get(self.form, "CSV")
        return GrammarError(f"{self.path!r} is not {what}: {error}", remedy="Check the file, or its suffix.")


class _ArrowFile:
    """An open file of either kind: its columns, and its rows."""

    def __init__(self, pyarrow: Any, file: Any, form: TableFormat) -> None:
        if form is TableFormat.PARQUET:
            from pyarrow import parquet

            self._parquet = parquet.ParquetFile(file)
            schema = self._parquet.schema_arrow
        else:
            self._parquet, self._arrow = None, pyarrow.ipc.open_file(file)
            schema = self._arrow.schema
        self.names: list[str] = schema.names
        self.types: list[Any] = schema.types

    def batches(self) -> Iterator[Any]:
        """Record batches of at most `ROWS` rows."""
        if self._parquet is not None:
            yield from self._parquet.iter_batches(batch_size=ROWS)
            return
        for number in range(self._arrow.num_record_batches):
            batch = self._arrow.get_batch(number)
            for at in range(0, batch.num_rows, ROWS):
                yield batch.slice(at, ROWS)
