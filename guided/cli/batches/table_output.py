"""The answers of a batch as a table: CSV, Arrow or Parquet, with the columns of the table that was asked.

A table of Parquet is written in one go, so lines are kept in a file beside it, ``FILE.lines``, until all are there; a
run that was stopped goes on with them.  Then the table is written, a thousand rows at a time, and that file goes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from guided.cli.batches.lines import BatchItem, BatchOutput
from guided.cli.batches.tables import ID, ROWS, Piece, TableFormat, TableReader, table_format
from guided.errors import GuidedError, UnsupportedError
from guided.reading.arrow import arrow_array, arrow_type, pyarrow_for
from guided.reading.records import CellKind, RecordColumn, members_of, record_columns

__all__ = ["TableOutput", "TablePlan"]


@dataclass(frozen=True)
class TablePlan:
    """What table the answers to a batch become."""

    path: str
    form: TableFormat
    source: TableReader | None
    """The table that is asked, whose columns come first; None where JSON Lines are, whose ids do."""
    members: tuple[RecordColumn, ...]
    """A column for each member of the value; one alone, of JSON, where ``into`` names it."""
    into: str | None = None
    has_facts: bool = False
    """Is there something to say of an answer besides its value, as samplers do?"""

    @classmethod
    def of(
        cls, path: str, batch: str, schema: Any, *, into: str | None = None, strict: bool = False, has_facts: bool
    ) -> TablePlan:
        """For answers that are valid against ``schema``, to the file ``batch``.

        Raises `GuidedError` for columns of one name, for a schema whose members are no columns, and where pyarrow is
        missing.
        """
        form, asked = table_format(path), table_format(batch)
        assert form is not None
        if form.separator is None:
            pyarrow_for(f"a {form.value} file")
        members = record_columns(schema, strict=strict) if into is None else (RecordColumn(into, CellKind.JSON),)
        source = None if asked is None else TableReader(batch, asked)
        plan = cls(path, form, source, members, into, has_facts)
        _check_names([name for name, _ in plan.own_columns], [column.name for column in plan.columns])
        return plan

    @property
    def own_columns(self) -> list[tuple[str, Any]]:
        """Names and Arrow's types of the columns before the answers; None is text."""
        if self.source is None:
            return [(ID, None)]
        return list(zip(self.source.names, self.source.types or [None] * len(self.source.names), strict=True))

    @property
    def columns(self) -> tuple[RecordColumn, ...]:
        """Those of the answers."""
        prefix = "" if self.into is None else f"{self.into}_"
        facts = [RecordColumn(f"{prefix}facts", CellKind.JSON)] if self.has_facts else []
        return (*self.members, *facts, RecordColumn(f"{prefix}error", CellKind.TEXT))

    def cells(self, line: str) -> list[str | None]:
        """The JSON texts of a batch's line, one for each of the columns."""
        parts = members_of(line)
        del parts["id"]
        value, error = parts.pop("value", None), parts.pop("error", None)
        if self.into is not None:
            found: list[str | None] = [value]
        else:
            members = {} if value is None else members_of(value)
            found = [members.get(column.name) for column in self.members]
        if self.has_facts:
            found.append("{" + ", ".join(f"{json.dumps(name)}: {raw}" for name, raw in parts.items()) + "}")
        return [*found, None if error is None else json.dumps(_in_words(json.loads(error)), ensure_ascii=False)]


def _in_words(error: dict[str, Any]) -> str:
    return str(GuidedError(error["message"], where=error["where"], remedy=error["remedy"]))


class TableOutput(BatchOutput):
    """A batch's lines, which become a table when all are there.

    Raises `GuidedError` for a file that is there and not to be gone on with.
    """

    def __init__(self, plan: TablePlan, resume: bool) -> None:
        self._plan, self._table = plan, Path(plan.path)
        self._kept = Path(f"{plan.path}.lines")
        self._is_whole = resume and self._table.exists() and not self._kept.exists()
        if self._is_whole:
            super().__init__(None, False)
            self._read_whole(plan)
            return
        if not resume and self._table.exists():
            raise GuidedError(
                f"{plan.path!r} is there already", where="--out", remedy="Add --resume to go on with it, or remove it."
            )
        super().__init__(str(self._kept), resume)

    def _read_whole(self, plan: TablePlan) -> None:
        """A table that an earlier run finished: how many rows it has, and how many errors."""
        table = TableReader(plan.path, plan.form)
        errors = table.column(self._plan.columns[-1].name)
        for piece in table.pieces():
            self.n_done += piece.n_rows
            self.n_failed += sum(error is not None for error in piece.texts(errors))

    def has(self, number: int, item: BatchItem) -> bool:
        """As of `BatchOutput`; of a whole table the number counts alone."""
        if not self._is_whole:
            return super().has(number, item)
        if number >= self.n_done:
            raise GuidedError(
                f"the table is whole with {self.n_done} rows, and the batch has more",
                where=str(self._table),
                remedy="Name another file, or remove this one.",
            )
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if kind is None and not self._is_whole:
            self._write_table()

    def _write_table(self) -> None:
        """The table from the lines and what was asked; in the place of none, whole or not at all."""
        new = Path(f"{self._table}.new")
        try:
            with (
                self._kept.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines,
                _table_writer(new, self._plan) as writer,
            ):
                for piece, names, rows in self._joined(lines):
                    writer.write(piece, names, [list(cells) for cells in zip(*rows, strict=True)])
            os.replace(new, self._table)
        except OSError as error:
            raise GuidedError(
                f"{str(self._table)!r} cannot be written: {error.strerror or error}",
                where="--out",
                remedy=f"The answers are in {self._kept}: make room, then add --resume.",
            ) from None
        except UnicodeEncodeError as error:
            raise UnsupportedError(
                f"an answer has half a surrogate pair, which is no UTF-8: {error.object[error.start : error.end]!a}",
                where=str(self._kept),
                remedy="Name one column for the JSON texts (--into), and add --resume.",
            ) from None
        finally:
            new.unlink(missing_ok=True)
        self._kept.unlink()

    def _joined(self, lines: Iterator[str]) -> Iterator[tuple[Piece | None, list[Any], list[list[str | None]]]]:
        """Rows that were asked, what names them, and the cells of their answers, together."""
        if self._plan.source is None:
            while chunk := list(islice(lines, ROWS)):
                yield None, [json.loads(line)["id"] for line in chunk], [self._plan.cells(line) for line in chunk]
            return
        for piece in self._plan.source.pieces():
            chunk = list(islice(lines, piece.n_rows))
            if len(chunk) < piece.n_rows:
                raise self._changed()
            yield piece, [], [self._plan.cells(line) for line in chunk]
        if next(lines, None) is not None:
            raise self._changed()

    def _changed(self) -> GuidedError:
        return GuidedError(
            "the batch changed while it was answered: it has other rows than there are answers",
            where=self._plan.source.path if self._plan.source else None,
            remedy=f"The answers are in {self._kept}.",
        )


def _check_names(own: Sequence[str], new: Sequence[str]) -> None:
    if both := next((name for name in new if name in own or new.count(name) > 1), None):
        raise UnsupportedError(
            f"two columns would be named {both!r}: one of the batch, and one of the answers",
            where="--out",
            remedy="Name one column for the answers: --into NAME. Or rename the batch's column.",
        )


@contextmanager
def _table_writer(path: Path, plan: TablePlan) -> Iterator[_CsvWriter | _ArrowWriter]:
    form, columns = plan.form, plan.columns
    if form.separator is not None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = _CsvWriter(file, form.separator, columns)
            writer.write_row([name for name, _ in plan.own_columns] + [column.name for column in columns])
            yield writer
        return
    pyarrow = pyarrow_for(f"a {form.value} file")
    fields = [(name, pyarrow.string() if kind is None else kind) for name, kind in plan.own_columns]
    schema = pyarrow.schema([*fields, *((column.name, arrow_type(column)) for column in columns)])
    if form is TableFormat.PARQUET:
        from pyarrow import parquet

        with parquet.ParquetWriter(path, schema) as sink:
            yield _ArrowWriter(pyarrow, sink, schema, columns)
        return
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, schema) as sink:
        yield _ArrowWriter(pyarrow, sink, schema, columns)


def _names_in_words(names: Sequence[Any]) -> list[str | None]:
    return [name if isinstance(name, str) else json.dumps(name, ensure_ascii=False) for name in names]


class _CsvWriter:
    """Rows as RFC 4180 has them.  A cell without a value is empty, and an empty text is in quotes."""

    def __init__(self, file: Any, separator: str, columns: Sequence[RecordColumn]) -> None:
        self._file, self._separator, self._columns = file, separator, columns
        self._special = re.compile(f'[{separator}"\r\n]|^$')

    def write(self, piece: Piece | None, names: list[Any], answers: list[list[str | None]]) -> None:
        """Some rows; ``names`` are those of rows that no table has."""
        own = [_names_in_words(names)] if piece is None else [piece.texts(n) for n in range(piece.n_columns)]
        new = [[column.text(raw) for raw in raws] for column, raws in zip(self._columns, answers, strict=True)]
        for row in zip(*own, *new, strict=True):
            self.write_row(row)

    def write_row(self, cells: Sequence[str | None]) -> None:
        """One row."""
        self._file.write(self._separator.join(map(self._quoted, cells)) + "\n")

    def _quoted(self, cell: str | None) -> str:
        if cell is None:
            return ""
        doubled = cell.replace('"', '""')
        return f'"{doubled}"' if self._special.search(cell) else cell


class _ArrowWriter:
    """Rows as record batches, into a file of Arrow or Parquet."""

    def __init__(self, pyarrow: Any, sink: Any, schema: Any, columns: Sequence[RecordColumn]) -> None:
        self._pyarrow, self._sink, self._schema, self._columns = pyarrow, sink, schema, columns

    def write(self, piece: Piece | None, names: list[Any], answers: list[list[str | None]]) -> None:
        """Some rows; ``names`` are those of rows that no table has."""
        if piece is None:
            own = [self._pyarrow.array(_names_in_words(names), self._pyarrow.string())]
        else:
            own = [piece.array(n) for n in range(piece.n_columns)]
        new = [arrow_array(column, raws) for column, raws in zip(self._columns, answers, strict=True)]
        self._sink.write_batch(self._pyarrow.record_batch([*own, *new], schema=self._schema))
