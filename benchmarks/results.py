"""What a part of the suite hands back: tables, curves and bars, in a form that is JSON, Markdown and plots alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Bar", "Curves", "Progress", "Result", "Setting", "Table"]


@dataclass(frozen=True)
class Setting:
    """What a run measures, the same for all its parts."""

    tokenizer: Path
    """A tokenizer's folder, or its ``tokenizer.json``."""
    data: Path | None = None
    """MaskBench's rows, or your own in their form; parts that need them are left out without."""
    model: Path | None = None
    """A small model that transformers loads, for `generate`; the packaged one by default."""
    engines: tuple[str, ...] = ()
    quick: bool = False
    """Fewer schemas, sizes and repetitions: the whole suite in minutes, with less certain tails."""
    seed: int = 0

    def as_json(self) -> dict[str, Any]:
        """For the report, and for the process that runs a part."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Setting:
        """The inverse of `as_json`."""
        paths = {name: Path(record[name]) for name in ("tokenizer", "data", "model") if record[name] is not None}
        return cls(**{**record, **paths, "engines": tuple(record["engines"])})


@dataclass(frozen=True)
class Table:
    """Rows of cells: text, numbers, or None where there is nothing to say."""

    title: str
    columns: list[str]
    rows: list[list[Any]]
    note: str = ""


@dataclass(frozen=True)
class Curves:
    """Lines of one plot: points ``[x, y]`` by the line's name."""

    title: str
    x: str
    y: str
    lines: dict[str, list[list[float]]]
    log_x: bool = True
    log_y: bool = True


@dataclass(frozen=True)
class Bar:
    """A figure that must not be passed: ``measured <= allowed``."""

    what: str
    measured: float | None
    allowed: float
    unit: str

    @property
    def holds(self) -> bool:
        """False too where nothing could be measured."""
        return self.measured is not None and self.measured <= self.allowed


@dataclass(frozen=True)
class Result:
    """All that a part found."""

    tables: list[Table] = field(default_factory=list)
    curves: list[Curves] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain records, with each bar's verdict."""
        record = asdict(self)
        for bar, kept in zip(self.bars, record["bars"], strict=True):
            kept["holds"] = bar.holds
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Result:
        """The inverse of `as_json`."""
        bars = [Bar(**{name: value for name, value in bar.items() if name != "holds"}) for bar in record["bars"]]
        tables = [Table(**table) for table in record["tables"]]
        return cls(tables, [Curves(**curves) for curves in record["curves"]], bars, record["raw"])


class Progress:
    """A bar on standard error while something is measured; nothing where that is not a terminal."""

    def __init__(self, title: str) -> None:
        self.title = title

    @contextmanager
    def steps(self, what: str, total: int) -> Iterator[_Steps]:
        """A bar of ``total`` steps: call what comes out of it with the name of each step before it is taken."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(),
            TimeRemainingColumn(), TextColumn("{task.fields[step]}"),
        )  # fmt: skip
        with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
            task = bars.add_task(f"{self.title}: {what}", total=total, step="")
            yield _Steps(lambda done, step: bars.update(task, completed=done, step=step))


class _Steps:
    def __init__(self, update: Any) -> None:
        self._update = update
        self._done = -1

    def __call__(self, step: str = "") -> None:
        self._done += 1
        self._update(self._done, step)


def rounded(value: float | None, digits: int = 3) -> float | None:
    """So many significant digits."""
    return None if value is None else float(f"{value:.{digits}g}")


def spread_row(name: str, found: dict[str, float], columns: Sequence[str]) -> list[Any]:
    """A table's row of percentiles, None where there are none."""
    return [name, *(found.get(column) for column in columns)]
