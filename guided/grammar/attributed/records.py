"""Attributes with many fields, of which a few are replaced at each lexeme."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["quickly_replaced"]

Record = TypeVar("Record", bound=type)


def quickly_replaced(kind: Record) -> Record:
    """Give a `NamedTuple` a ``_replace`` that does as its own: that takes 3.3 us where there are 46 fields, this 0.9.

    A mask replaces fields up to thousands of times.

    >>> from typing import NamedTuple
    >>> @quickly_replaced
    ... class Point(NamedTuple):
    ...     x: int
    ...     y: int
    >>> Point(1, 2)._replace(y=3)
    Point(x=1, y=3)
    """
    made: Any = kind
    places = {name: place for place, name in enumerate(made._fields)}
    new = tuple.__new__

    def _replace(self: Any, /, **values: Any) -> Any:
        found = list(self)
        for name, value in values.items():
            found[places[name]] = value
        return new(made, found)

    made._replace = _replace
    return kind
