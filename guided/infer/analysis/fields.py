"""What weighted JSON texts say together about each field: the probability of every value that it has in one of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from guided.errors import GuidedError, LimitError, TextError
from guided.html import card, facts, share, table
from guided.infer.weights import normalised
from guided.reading.json_pointer import pointer_of
from guided.reading.json_stream import JsonStream

__all__ = ["Alternative", "FieldPosterior", "field_posteriors", "posteriors", "spans_of"]


_SHOWN = 20
"""Values that a notebook shows of a field."""

_DEPTH = 200
"""Levels of nesting: pointers and the comparison of values cost their square, and Python's stack holds 1,000."""


@dataclass(frozen=True)
class Alternative:
    """One value of a field.

    >>> from guided import infer
    >>> found = infer.field_posteriors(['{"age": 3}', '{"age": 3}', '{"age": 4}', '{"age": 3}'])
    >>> [(each.value, each.probability, each.count) for each in found["/age"].alternatives]
    [(3, 0.75, 3), (4, 0.25, 1)]
    """

    value: Any
    """As `json.loads` gives it; values are the same when they are the same JSON values, whatever the spelling."""
    probability: float
    """The weight of the texts in which the field has this value."""
    standard_error: float
    """Of ``probability``, for independent weighted samples: ``sqrt(sum w_i^2 (1[value] - probability)^2)``."""
    count: int
    """How many texts have it."""


@dataclass(frozen=True)
class FieldPosterior:
    """What is known of one field.

    >>> from guided import infer
    >>> city = infer.field_posteriors(['{"city": "Oslo"}', '{"city": "Rome"}', '{"city": "Oslo"}', "{}"])["/city"]
    >>> city.best, city.absent, round(city.entropy, 2)
    ('Oslo', 0.25, 1.04)
    """

    pointer: str
    alternatives: tuple[Alternative, ...]
    """The likeliest first."""
    absent: float
    """The weight of the texts that do not have the field."""

    def _repr_html_(self) -> str:
        rows = [
            (
                json.dumps(each.value, ensure_ascii=False),
                share(each.probability),
                share(each.standard_error),
                each.count,
            )
            for each in self.alternatives[:_SHOWN]
        ]
        more = max(len(self.alternatives) - _SHOWN, 0)
        shown = table(("value", "probability", "standard error", "texts"), rows, more)
        absent = [("absent", share(self.absent))] if self.absent else []
        return card(f"Posterior of {self.pointer or 'the whole text'}", shown, facts(absent) if absent else "")

    @property
    def best(self) -> Any:
        """The likeliest value where the field is there."""
        return self.alternatives[0].value

    @property
    def entropy(self) -> float:
        """Entropy in nats over the values and absence: 0 where all agree."""
        shares = [each.probability for each in self.alternatives] + [self.absent]
        return -math.fsum(share * math.log(share) for share in shares if share > 0) + 0.0


class _Drawn(Protocol):
    @property
    def data(self) -> bytes: ...
    @property
    def logw(self) -> float: ...
    @property
    def finished(self) -> bool: ...


class _Weighted(Protocol):
    @property
    def particles(self) -> Sequence[_Drawn]: ...


def posteriors(result: _Weighted) -> dict[str, FieldPosterior]:
    r"""The posterior of each field of a `Population`, of `Samples` or an `Enumeration`; see `field_posteriors`.

    What did not end is left out, like everything of weight 0.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> digits = guided.Vocabulary.from_tokens([b'{"n": ', b"1}", b"2}", None], eos_ids=[3])
    >>> model = TableModel.of({}, otherwise=[0.25, 0.375, 0.125, 0.25], eos_ids=[3])
    >>> grammar = guided.compile(guided.regex(r'\{"n": [12]\}'), digits)
    >>> found = infer.posteriors(infer.exact(model, [0], grammar, max_tokens=3))["/n"]
    >>> [(each.value, round(each.probability, 3)) for each in found.alternatives]
    [(1, 0.75), (2, 0.25)]
    """
    particles = [particle for particle in result.particles if particle.finished and particle.logw > -math.inf]
    return field_posteriors([particle.data for particle in particles], [particle.logw for particle in particles])


def field_posteriors(texts: Sequence[str | bytes], logw: ArrayLike | None = None) -> dict[str, FieldPosterior]:
    """The probability of each field's value over weighted JSON texts, by JSON pointer, in order of first appearance.

    ``logw`` are log weights, not normalised; None is the same for all.  Every value is a field, containers and array
    items included; ``""`` is the whole.  Raises `TextError` for a text that is not JSON, and `GuidedError` when there
    is none with a weight.

    >>> found = field_posteriors(['{"a": 1}', '{"a": 1.0, "b": []}', '{"a": 2}', '{"a": 1}'])
    >>> [(each.value, each.probability) for each in found["/a"].alternatives], found["/b"].absent
    ([(1, 0.75), (2, 0.25)], 0.75)
    """
    weights = normalised(np.zeros(len(texts)) if logw is None else np.asarray(logw, np.float64))
    if weights.shape != (len(texts),):
        raise GuidedError(f"{weights.size} weights for {len(texts)} texts", remedy="Give one for each.")
    if not weights.any():
        raise GuidedError("no text has a weight", remedy="Raise max_tokens or the number of particles.")
    counts: dict[str, dict[str, list[int]]] = {}
    values: dict[tuple[str, str], Any] = {}
    for number, text in enumerate(texts):
        if weights[number] == 0:
            continue
        for pointer, value in _fields(text):
            key = _key(value)
            values.setdefault((pointer, key), value)
            counts.setdefault(pointer, {}).setdefault(key, []).append(number)
    found = {}
    for pointer, by_value in counts.items():
        alternatives = [
            _alternative(values[pointer, key], weights, np.array(members)) for key, members in by_value.items()
        ]
        alternatives.sort(key=lambda each: -each.probability)
        present = math.fsum(each.probability for each in alternatives)
        missing = sum(map(len, by_value.values())) < np.count_nonzero(weights)
        found[pointer] = FieldPosterior(pointer, tuple(alternatives), max(0.0, 1.0 - present) if missing else 0.0)
    return found


def _alternative(value: Any, weights: np.ndarray[Any, Any], members: np.ndarray[Any, Any]) -> Alternative:
    share = float(weights[members].sum())
    squares = weights**2
    inside = float(squares[members].sum())
    outside = float(squares.sum()) - inside
    error = math.sqrt(max(0.0, inside * (1 - share) ** 2 + outside * share**2))
    return Alternative(value, min(share, 1.0), error, len(members))


def _fields(text: str | bytes) -> list[tuple[str, Any]]:
    """Every value of a JSON text by its pointer, containers before what they hold."""
    stream = JsonStream()
    stream.append(text)
    found: list[tuple[str, Any]] = []
    waiting: list[tuple[int, str, Any]] = [(0, "", stream.close())]
    while waiting:
        depth, pointer, value = waiting.pop()
        if depth > _DEPTH:
            raise LimitError(
                f"a value is nested more than {_DEPTH} deep", remedy="Bound the depth in the schema that is sampled."
            )
        found.append((pointer, value))
        inside: Iterable[tuple[str | int, Any]] = ()
        if isinstance(value, dict):
            inside = value.items()
        elif isinstance(value, list):
            inside = enumerate(value)
        waiting += reversed([(depth + 1, pointer + pointer_of([key]), item) for key, item in inside])
    return found


def _key(value: Any) -> str:
    """One text for each JSON value: names in order, and 1.0 like 1, which JSON Schema takes for the same number."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


class _Spans(JsonStream):
    """A JSON text whose values are noted with their places."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: dict[str, tuple[int, int]] = {}

    def _finished(self, value: Any, start: int, end: int) -> None:
        self.spans[pointer_of(item.key for item in self._stack if item.key is not None)] = (start, end)


def spans_of(data: bytes) -> dict[str, tuple[int, int]]:
    """Where each value of a whole JSON text stands, ``data[start:end]``, by pointer, in order of appearance.

    Raises `TextError` for bytes that are not UTF-8.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise TextError(
            "the text is not UTF-8", where=f"offset {error.start}", remedy="Pass a sequence that ended."
        ) from None
    reader = _Spans()
    reader.append(text)
    reader.close()
    at = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(character.encode()) for character in text])])
    spans = sorted(reader.spans.items(), key=lambda item: (item[1][0], -item[1][1]))
    return {pointer: (int(at[start]), int(at[end])) for pointer, (start, end) in spans}
