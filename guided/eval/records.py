"""Results and the file that holds them: append-only JSON Lines, a line for each schema and engine, written at once.

A run may be stopped at any moment, by Ctrl-C, a signal or the power.  What was finished is in the file, and a line that
was not written whole is read as if it were not there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, cast

from guided.errors import GuidedError

__all__ = ["JsonLine", "LineLog", "Outcome", "Record", "RecordLog", "digest_of"]

_BEGINNING = b'{"key": "'
"""Of every line that is ours."""


class Outcome(str, Enum):
    """What became of a schema in an engine."""

    VALID = "valid"
    """Compiled, ended, and jsonschema validates the output."""
    INVALID = "invalid"
    """Compiled and ended, but the output does not validate."""
    UNFINISHED = "unfinished"
    """Compiled, but the token budget ended the output."""
    REFUSED = "refused"
    """The engine raised while compiling."""
    COMPILE_TIME = "compile time"
    """Compiling took longer than its limit."""
    GENERATE_TIME = "generate time"
    """Generating took longer than its limit."""
    DEAD_END = "dead end"
    """The engine allowed no token and no end."""
    CRASHED = "crashed"
    """The engine or the model raised while generating."""
    SKIPPED = "skipped"
    """Not counted: the prompt does not fit the model, or jsonschema cannot judge the schema."""


class JsonLine:
    """A dataclass as a line of a results file."""

    def line(self) -> str:
        """The record as one line of JSON, newline included."""
        return json.dumps(dataclasses.asdict(cast(Any, self)), ensure_ascii=False) + "\n"


def digest_of(*facts: object) -> str:
    """24 hex digits of JSON data: a result's key."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Record(JsonLine):
    """One result; times in the units of their names, None where there was nothing to time."""

    key: str
    """See `guided.eval.settings.result_key`."""
    id: str
    split: str
    engine: str
    outcome: Outcome
    reason: str = ""
    """Why it is not valid, in a line."""
    gct_s: float | None = None
    """Grammar compilation time: from the schema as data to an engine that can be asked for a mask."""
    ttft_s: float | None = None
    """Time to first token: from the schema to the first chosen token, compilation included."""
    tpot_ms: float | None = None
    """Time per output token after the first; None for fewer than two."""
    mask_ms: float | None = None
    """Of that, the time inside the engine, per token."""
    n_prompt: int | None = None
    n_tokens: int | None = None
    """Chosen tokens, the end of text included."""
    text: str | None = None

    @classmethod
    def of(cls, values: dict[str, Any]) -> Record:
        """The record of a line's data; `TypeError`, `ValueError` or `KeyError` when it is none."""
        return cls(**{**values, "outcome": Outcome(values["outcome"])})


class Line(Protocol):
    """A result that is a line of a file, known by its key."""

    @property
    def key(self) -> str:
        """Equal for results of the same task under the same settings; the line's first member."""

    def line(self) -> str:
        """The result as one line of JSON, newline included."""


Kept = TypeVar("Kept", bound=Line)
Log = TypeVar("Log", bound="LineLog[Any]")


class LineLog(Generic[Kept]):
    """The results file of a run: what is in it, and one more line at a time.  Use it in a ``with`` statement.

    Each line is one ``write`` to a file that is open for appending, followed by ``fsync``, so that neither two
    processes nor a crash mixes lines up.
    """

    def __init__(self, path: Path, read: Callable[[dict[str, Any]], Kept]) -> None:
        """``read`` makes a result of a line's data; `TypeError`, `ValueError` or `KeyError` when it is none."""
        self.path = path
        self.records: dict[str, Kept] = {}
        """By key, in the order of the file; of equal keys the first."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise GuidedError(
                f"cannot write results to {str(path)!r}: {error}", remedy="Pass another --out."
            ) from error
        self._load(read)

    def _load(self, read: Callable[[dict[str, Any]], Kept]) -> None:
        data = self.path.read_bytes()
        end = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:end].split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                record = read(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                raise self._foreign(number) from error
            self.records.setdefault(record.key, record)
        cut_off = data[end:]
        if cut_off and not (cut_off.startswith(_BEGINNING) or _BEGINNING.startswith(cut_off)):
            raise self._foreign(data.count(b"\n") + 1)
        if cut_off:
            os.ftruncate(self._file, end)

    def _foreign(self, number: int) -> GuidedError:
        return GuidedError(
            "the results file has a line that is none of ours",
            where=f"{self.path}, line {number}",
            remedy="Pass another --out, or repair the file.",
        )

    def append(self, record: Kept) -> None:
        """Write a result to the disk and remember it."""
        os.write(self._file, record.line().encode("utf-8", "backslashreplace"))
        os.fsync(self._file)
        self.records.setdefault(record.key, record)

    def __enter__(self: Log) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


class RecordLog(LineLog[Record]):
    """The results file of ``guided eval jsonschemabench``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Record.of)
