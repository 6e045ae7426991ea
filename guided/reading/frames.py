"""Data frames of pandas and polars, and tables of Arrow: their columns read, and columns of Arrow added.

None of these libraries is imported before a frame of it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guided.errors import GuidedError, UnsupportedError
from guided.reading.arrow import pyarrow_for

__all__ = ["Frame", "is_frame"]

_LIBRARIES = {("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table")}


def is_frame(data: object) -> bool:
    """Is this a frame of a library that `Frame` knows?"""
    return any((_library(kind), kind.__name__) in _LIBRARIES for kind in type(data).__mro__)


def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0]


class Frame:
    """A frame, whichever library it is of.

    Raises `UnsupportedError` for a lazy one, and `GuidedError` where pyarrow is missing.
    """

    def __init__(self, data: Any) -> None:
        pyarrow_for("a data frame")
        self._data = data
        self._library = next(_library(kind) for kind in type(data).__mro__ if _library(kind) in dict(_LIBRARIES))
        if hasattr(data, "collect"):
            raise UnsupportedError("a lazy frame has no rows yet", remedy="Pass frame.collect().")

    @property
    def names(self) -> list[Any]:
        """The columns' names; of pandas they need not be texts."""
        return list(self._data.column_names if self._library == "pyarrow" else self._data.columns)

    def column(self, name: str) -> list[Any]:
        """The cells of a column; raises `GuidedError` where there is none of that name, or several."""
        if self.names.count(name) != 1:
            found = "no column" if name not in self.names else "several columns"
            raise GuidedError(
                f"the frame has {found} {name!r}, but {', '.join(map(repr, self.names))}",
                where="column",
                remedy="Pass column=, the name of the one that holds the texts.",
            )
        cells = self._data[name]
        return list(cells.to_pylist() if self._library == "pyarrow" else cells.to_list())

    def with_columns(self, columns: Mapping[str, Any]) -> Any:
        """A new frame of the same library, with these arrays of Arrow as further columns."""
        pyarrow = pyarrow_for("a data frame")
        if self._library == "pyarrow":
            made = self._data
            for name, array in columns.items():
                made = made.append_column(name, array)
            return made
        if self._library == "polars":
            import polars

            return self._data.hstack(polars.from_arrow(pyarrow.table(dict(columns))))
        import pandas

        made = self._data.copy(deep=False)
        for name, array in columns.items():
            # Not by way of NumPy, where integers beside missing ones become doubles.
            made[name] = pandas.arrays.ArrowExtensionArray(pyarrow.chunked_array([array]))
        return made
