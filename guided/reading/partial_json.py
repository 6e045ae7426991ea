"""`guided.partial_json`: what the beginning of a JSON text says already."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from guided.reading.json_pointer import pointer_of, tokens_of
from guided.reading.json_stream import FieldState, JsonStream, field_state

__all__ = ["PartialJson", "partial_json"]


@dataclass(frozen=True, eq=False)
class PartialJson:
    """What the beginning of a JSON text says; nothing appended later changes it.

    Pointers are JSON pointers (RFC 6901); the empty one is the whole value.
    """

    value: Any
    """The value so far; None before there is one (see ``has_value``)."""
    has_value: bool
    """Is there a value to show?"""
    is_whole: bool
    """Is this a whole JSON text already?  A number at the top is, though it may go on."""
    path: tuple[str | int, ...] | None
    """The names and indices that lead to the innermost value in progress; None when nothing is."""
    has_begun: bool
    """Has the value begun, whether or not there is something to show?"""

    def state(self, pointer: str) -> FieldState:
        """How far the value at a pointer has come; cost: the length of the pointer."""
        tokens = tokens_of(pointer)
        return field_state(self.value, tokens, self.path) if self.has_begun else FieldState.NOT_STARTED

    @cached_property
    def in_progress(self) -> tuple[str, ...]:
        """The values that have begun and not ended, outermost first: each is inside the one before."""
        path = self.path
        return () if path is None else tuple(pointer_of(path[:length]) for length in range(len(path) + 1))

    @cached_property
    def complete(self) -> frozenset[str]:
        """All values that are complete; made on first use, at the cost of writing out every pointer."""
        found: list[str] = []
        unfinished = frozenset(self.in_progress)
        waiting: list[tuple[str, Any]] = [("", self.value)] if self.has_value else []
        while waiting:
            pointer, value = waiting.pop()
            if pointer not in unfinished:
                found.append(pointer)
            if isinstance(value, dict):
                waiting += [(pointer + pointer_of((name,)), item) for name, item in value.items()]
            elif isinstance(value, list):
                waiting += [(f"{pointer}/{index}", item) for index, item in enumerate(value)]
        return frozenset(found)


def partial_json(text: str | bytes | JsonStream, *, final: bool = False) -> PartialJson:
    r"""The best value that ``text``, the beginning of a JSON text, has already, and which parts of it are complete.

    Strings in progress are there as far as they have come, numbers as the longest number so far, names when they are
    whole.  ``final`` says that the text ends here, and must be whole.  Of a `JsonStream`, which reads text as it comes,
    this is a copy of the value so far.  Raises `TextError` with the offset for what begins no JSON text.

    >>> so_far = partial_json('{"city": "Par", "days": [1, 2')
    >>> so_far.value, sorted(so_far.complete), so_far.in_progress
    ({'city': 'Par', 'days': [1, 2]}, ['/city', '/days/0'], ('', '/days', '/days/1'))
    >>> partial_json('{"note": "caf\\u00').value
    {'note': 'caf'}
    """
    if isinstance(text, JsonStream):
        stream = text
        if final:
            stream.close()
        value = _copy(stream.value)
    else:
        stream = JsonStream()
        stream.append(text)
        value = stream.close() if final else stream.value
    begun = stream.has_value or stream.path is not None
    return PartialJson(value, stream.has_value, stream.is_whole, stream.path, begun)


def _copy(value: Any) -> Any:
    """A copy of objects and arrays at every depth, without recursion."""
    holder: list[Any] = [value]
    waiting: list[Any] = [holder]
    while waiting:
        container = waiting.pop()
        for key, item in container.items() if isinstance(container, dict) else enumerate(container):
            if isinstance(item, dict | list):
                container[key] = item.copy()
                waiting.append(container[key])
    return holder[0]
