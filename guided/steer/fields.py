"""What the settings of a steerer may be: the annotations of its fields, held when it is made.

``alpha: Annotated[float, Range(0, 1)]`` is the one place that says what ``alpha`` may be; a dataclass that derives from
`Checked` refuses anything else; a string beside a type says it in words.  Functions check their arguments with
`checked_number` and `checked_count`.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import functools
import math
import numbers
import types
import typing
from dataclasses import dataclass
from typing import Annotated, Any

import torch

from guided.errors import GuidedError
from guided.lm.given import language_model
from guided.lm.model import LanguageModel

__all__ = ["Checked", "Count", "Range", "checked_count", "checked_number"]


@dataclass(frozen=True)
class Range:
    """The numbers from ``least`` to ``most``; infinite ones only with ``infinite``, NaN never."""

    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    """Without ``least`` itself."""
    infinite: bool = False

    def __contains__(self, number: float) -> bool:
        if not (self.infinite or math.isfinite(number)):
            return False
        return self.least < number <= self.most if self.above else self.least <= number <= self.most

    def __str__(self) -> str:
        if self.least > -math.inf and self.most < math.inf:
            return f"from {self.least:g} to {self.most:g}"
        if self.least > -math.inf:
            return f"{'above' if self.above else 'at least'} {self.least:g}"
        return f"at most {self.most:g}" if self.most < math.inf else "a finite number"


Count = Annotated[int, Range(least=1)]

_ANY = Range()


class Checked:
    """A dataclass whose fields are what their annotations say, or a `GuidedError` says which is not.

    A list is taken for a tuple, a model of transformers for a `LanguageModel`.  What derives from it and has a
    ``__post_init__`` calls this one first.
    """

    def __post_init__(self) -> None:
        name = type(self).__name__
        hints = _hints(typing.cast("typing.Hashable", type(self)))
        for each in dataclasses.fields(typing.cast(Any, self)):
            if each.init:
                value = _checked(each.name, getattr(self, each.name), hints[each.name], name)
                object.__setattr__(self, each.name, value)


def checked_number(name: str, value: float, allowed: Range = _ANY, *, of: str) -> None:
    """Raise `GuidedError` unless ``value`` is a number and within ``allowed``; ``of`` names what takes it."""
    _checked(name, value, Annotated[float, allowed], of)


def checked_count(name: str, value: int, *, least: int = 1, of: str) -> None:
    """Raise `GuidedError` unless ``value`` is an integer of at least ``least``."""
    _checked(name, value, Annotated[int, Range(least)], of)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _checked(name: str, value: Any, hint: Any, of: str) -> Any:
    """The value, with lists as tuples and models behind their interface.

    Raises `GuidedError` where it is not what the annotation says.
    """
    kinds = _alternatives(hint)
    for kind in kinds:
        if _shape_fits(value, kind):
            if _is_tuple(kind):
                return _checked_items(name, value, kind, of)
            if _bare(kind) is LanguageModel:
                return language_model(value)
            if _in_range(value, kind):
                return value
            # A number of the right kind: what is wrong is its size.
            raise _refusal(name, value, str(_range_of(kind)), of)
    raise _refusal(name, value, " or ".join(map(_described, kinds)), of)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _bare(kind: Any) -> Any:
    """An annotation without its range."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) is Annotated else kind


def _range_of(kind: Any) -> Range:
    if typing.get_origin(kind) is Annotated:
        return next((note for note in typing.get_args(kind)[1:] if isinstance(note, Range)), _ANY)
    return _ANY


def _is_tuple(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple


def _shape_fits(value: Any, kind: Any) -> bool:
    """Whether a value is of this kind, its range and its items aside."""
    bare = _bare(kind)
    if bare is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool)
    if bare is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if _is_tuple(bare):
        return isinstance(value, (tuple, list))
    if typing.get_origin(bare) is collections.abc.Callable:
        return callable(value) and not isinstance(value, type(LanguageModel))
    if bare is LanguageModel:
        # A network of transformers, bare or as `guided.hf.load` gives it, is put behind the interface.
        network = getattr(value, "model", value)
        return isinstance(network, (LanguageModel, torch.nn.Module)) and not isinstance(value, type)
    return isinstance(value, bare)


def _in_range(value: Any, kind: Any) -> bool:
    return _bare(kind) not in (float, int) or value in _range_of(kind)


def _checked_items(name: str, value: Any, kind: Any, of: str) -> tuple[Any, ...]:
    kinds = typing.get_args(kind)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(value) != len(kinds):
        raise _refusal(name, value, f"{len(kinds)} values", of)
    return tuple(_checked(f"{name}[{i}]", item, one, of) for i, (item, one) in enumerate(zip(value, kinds)))


def _described(kind: Any) -> str:
    if typing.get_origin(kind) is Annotated:
        said = [note for note in typing.get_args(kind) if isinstance(note, str)]
        if said:
            return said[0]
    bare = _bare(kind)
    if bare is float:
        return "a number"
    if bare is int:
        return "a whole number"
    if bare is bool:
        return "True or False"
    if bare is type(None):
        return "None"
    if bare is LanguageModel:
        return "a language model"
    if _is_tuple(bare):
        return "a tuple"
    if typing.get_origin(bare) is collections.abc.Callable:
        return "a function"
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        return f"one of {', '.join(map(str, bare))}"
    return f"a {bare.__name__}"


def _refusal(name: str, value: object, allowed: str, of: str) -> GuidedError:
    return GuidedError(f"{name}={value!r} is not {allowed}", where=of, remedy=f"Pass a {name} that is {allowed}.")
