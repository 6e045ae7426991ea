"""Values of types of which only the beginning has come."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any

from guided.grammar.json_schema.reading.types import adapter_of

__all__ = ["typed_so_far"]


def typed_so_far(source: Any, value: Any, path: Sequence[str | int] | None) -> Any:
    """The value so far as its type has it; ``path`` leads to the innermost part in progress, None where all is there.

    A part that is whole is validated by its own type.  Of a pydantic model in progress an object of that model has the
    fields that have begun, and no others, defaults neither: ``model_fields_set`` names them.  Lists in progress hold
    their items, the last one so far; all else in progress is plain data.  Checks of a class as a whole come when it is
    whole.  Raises what the type's validation raises.
    """
    if path is None:
        return adapter_of(source).validate_json(json.dumps(value))
    source = _without_none(source)
    if isinstance(value, dict) and _is_record(source):
        return _record(source, value, path)
    if isinstance(value, list) and typing.get_origin(source) is list:
        (item,) = typing.get_args(source)
        return [typed_so_far(item, each, _inner(path, place)) for place, each in enumerate(value)]
    return value


def _record(model: Any, value: dict[str, Any], path: Sequence[str | int]) -> Any:
    """An object of a pydantic model with the fields that have begun."""
    found = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias or field.alias
        written = alias if isinstance(alias, str) else name
        if written in value:
            source = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
            found[name] = typed_so_far(source, value[written], _inner(path, written))
    made = model.model_construct(_fields_set=set(found), **{_constructed(model, name): found[name] for name in found})
    for name in set(made.__dict__) - set(found):
        del made.__dict__[name]
    return made


def _constructed(model: Any, name: str) -> str:
    """What `model_construct` takes a field by: its alias, where it has one that is a text."""
    alias = model.model_fields[name].alias
    return alias if isinstance(alias, str) else name


def _inner(path: Sequence[str | int], key: str | int) -> Sequence[str | int] | None:
    """The path within a part; None where that part is not in progress."""
    return path[1:] if path and path[0] == key else None


def _without_none(source: Any) -> Any:
    """The type itself of ``Annotated[...]`` and of an optional one."""
    while typing.get_origin(source) is Annotated:
        source = typing.get_args(source)[0]
    if typing.get_origin(source) in (typing.Union, types.UnionType):
        others = [each for each in typing.get_args(source) if each is not type(None)]
        if len(others) == 1:
            return _without_none(others[0])
    return source


def _is_record(source: Any) -> bool:
    """Is it a pydantic model whose JSON is an object of its fields?"""
    import pydantic

    return (
        isinstance(source, type)
        and issubclass(source, pydantic.BaseModel)
        and not issubclass(source, pydantic.RootModel)
    )
