"""`States`: the states of a live language by number; values that were not asked for in a while are read again.

A number never changes its meaning, and a process that serves for days comes to any number of states.  Their values can
be large: a place in a query whose types are followed holds 100 KB.  So only those that were asked for last are kept,
and any other is found from the state before it and the bytes from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["States"]


class States:
    """Numbers for the values of an automaton from ``first`` on, which is that of ``start``.

    At least the ``most`` / 2 values that were asked for last are kept, and no more than ``most``.  Equal ones have one
    number while they are.  ``step`` gives equal values for equal texts, None where no text goes on so.

    >>> states = States(0, lambda value, byte: value + byte if value < 200 else None, first=2, most=4)
    >>> numbers = [states.after(2, bytes([byte])) for byte in range(100, 110)]
    >>> numbers, states.after(2, bytes([60, 40])), states.value(3), states.after(2, bytes([200, 1]))
    ([3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 13, 100, None)
    """

    def __init__(self, start: Hashable, step: Callable[[Any, int], Any], first: int, most: int) -> None:
        self._start = start
        self._step = step
        self._first = first
        self._room = max(2, most // 2)
        self._origins: list[tuple[int, bytes]] = [(first, b"")]
        """Of each state one before it, and the bytes from there on."""
        self._older: tuple[dict[int, Any], dict[Hashable, int]] = {}, {}
        self._recent: tuple[dict[int, Any], dict[Hashable, int]] = {first: start}, {start: first}
        """Values by number and numbers by value, of those that were asked for since the older ones became old."""

    def __len__(self) -> int:
        return len(self._origins)

    def forget(self, start: Hashable, step: Callable[[Any, int], Any]) -> None:
        """Forget all values: from now on they are those of another automaton with the same texts."""
        self._start, self._step = start, step
        self._older = {}, {}
        self._recent = {self._first: start}, {start: self._first}

    def value(self, number: int) -> Any:
        """The value of a state; where it was forgotten its text is read again from one that was not."""
        found = self._recent[0].get(number)
        if found is None:
            found = self._older[0].get(number)
            if found is None:
                found = self._again(number)
            self._keep(number, found)
        return found

    def after(self, before: int, data: bytes) -> int | None:
        """The state behind some bytes, None where the language does not have them."""
        value = self._read(self.value(before), data)
        if value is None:
            return None
        number = self._recent[1].get(value)
        if number is None:
            number = self._older[1].get(value)
            if number is None:
                number = self._first + len(self._origins)
                self._origins.append((before, data))
            self._keep(number, value)
        return number

    def _read(self, value: Any, data: bytes) -> Any:
        for byte in data:
            if value is None:
                return None
            value = self._step(value, byte)
        return value

    def _again(self, number: int) -> Any:
        texts: list[bytes] = []
        found = None
        while found is None:
            number, data = self._origins[number - self._first]
            texts.append(data)
            found = self._recent[0].get(number, self._older[0].get(number))
        return self._read(found, b"".join(reversed(texts)))

    def _keep(self, number: int, value: Any) -> None:
        values, numbers = self._recent
        if len(values) >= self._room:
            self._older = self._recent
            values, numbers = self._recent = {self._first: self._start}, {self._start: self._first}
        values[number] = value
        numbers[value] = number
