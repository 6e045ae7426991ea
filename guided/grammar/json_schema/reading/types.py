"""Python types and signatures as JSON Schema; pydantic does the conversion, and is imported only here."""

from __future__ import annotations

import collections.abc
import inspect
import sys
import types
import typing
from typing import Any, cast

from guided.errors import GrammarError, UnsupportedError

_SCALARS = (type(None), int, float, list, tuple, set)


def schema_of(source: Any) -> dict[str, Any]:
    """The JSON Schema of a type (anything ``pydantic.TypeAdapter`` takes) or of a callable's parameters.

    A class, a generic alias, ``Literal[...]`` or ``Annotated[...]`` is a type; a function or method is a callable,
    whose parameters become one object: those without default are required, others are not, and ``**kwargs`` admits
    further members.  Raises `GrammarError` for what is no type or callable.
    """
    if isinstance(source, _SCALARS):
        raise GrammarError(
            f"a schema cannot be read from {type(source).__name__} {source!r:.60}",
            remedy="Pass a JSON Schema (dict, bool or JSON text), a type, or a function.",
        )
    if inspect.isroutine(source):
        return _convert(_parameters(source), getattr(source, "__name__", repr(source)))
    return _convert(source, getattr(source, "__name__", repr(source)))


def adapter_of(source: Any) -> Any:
    """The ``pydantic.TypeAdapter`` of a type; of a callable, one that gives its arguments by name, as a dict."""
    import pydantic

    if inspect.isroutine(source):
        return _Arguments(_parameters(source))
    return source if isinstance(source, pydantic.TypeAdapter) else pydantic.TypeAdapter(_readable(source))


class _Arguments:
    """Validates the arguments of a callable."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def validate_json(self, text: str) -> dict[str, Any]:
        """The arguments that a JSON text names, validated; parameters that it leaves out keep their defaults."""
        made = self._model.model_validate_json(text)
        fields = {name: field.alias for name, field in self._model.model_fields.items()}
        named = {fields[name]: getattr(made, name) for name in made.model_fields_set if name in fields}
        return {**named, **(made.model_extra or {})}


def _convert(source: Any, name: str) -> dict[str, Any]:
    import pydantic

    source = _readable(source)
    try:
        adapter = source if isinstance(source, pydantic.TypeAdapter) else pydantic.TypeAdapter(source)
        schema: dict[str, Any] = adapter.json_schema(by_alias=True, mode="validation")
        return schema
    except (pydantic.errors.PydanticUserError, NameError) as error:
        first = str(error).splitlines()[0]
        raise UnsupportedError(
            f"the type {name} has no JSON Schema: {first}", remedy="Use types that pydantic can describe."
        ) from None


def _readable(source: Any) -> Any:
    """The type with every `typing.TypedDict` as that of typing_extensions: before 3.12 pydantic takes no other."""
    if sys.version_info >= (3, 12):
        return source
    if typing.is_typeddict(source) and type(source).__module__ == "typing":
        import typing_extensions

        hints = typing_extensions.get_type_hints(source, include_extras=True)
        members = {}
        for name, hint in hints.items():
            wrapper = typing_extensions.Required if name in source.__required_keys__ else typing_extensions.NotRequired
            bare = hint
            while cast(Any, typing.get_origin(bare)) in (typing_extensions.Required, typing_extensions.NotRequired):
                bare = typing.get_args(bare)[0]
            members[name] = wrapper[_readable(bare)]
        return typing_extensions.TypedDict(source.__name__, members)  # type: ignore[operator]
    parts = typing.get_args(source)
    origin = cast(Any, typing.get_origin(source))
    if not parts or origin is typing.Literal or origin is collections.abc.Callable:
        return source
    if origin is typing.Annotated:
        return typing.Annotated[(_readable(parts[0]), *parts[1:])]
    read = tuple(_readable(part) for part in parts)
    if read == parts:
        return source
    if origin is types.UnionType:
        return typing.Union[read]  # noqa: UP007
    return source.copy_with(read) if hasattr(source, "copy_with") else origin[read]


def _parameters(function: Any) -> Any:
    """A pydantic model of a callable's parameters."""
    import pydantic

    name = getattr(function, "__name__", repr(function))
    try:
        signature = inspect.signature(function, eval_str=True)
    except (ValueError, TypeError, NameError) as error:
        raise UnsupportedError(f"the signature of {name} cannot be read: {error}") from None
    fields: dict[str, Any] = {}
    extra = "forbid"
    for parameter in signature.parameters.values():
        annotation = Any if parameter.annotation is inspect.Parameter.empty else _readable(parameter.annotation)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            extra = "allow"
            continue
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise UnsupportedError(
                f"the parameter {parameter.name!r} of {name} cannot be passed by name",
                remedy="Use parameters that take keywords.",
            )
        field = f"parameter_{len(fields)}"
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[field] = (annotation, pydantic.Field(default, alias=parameter.name, title=parameter.name))
    config = pydantic.ConfigDict(extra=extra, arbitrary_types_allowed=False)  # type: ignore[typeddict-item]
    try:
        return pydantic.create_model(name, __config__=config, **fields)
    except pydantic.errors.PydanticUserError as error:
        first = str(error).splitlines()[0]
        raise UnsupportedError(f"the parameters of {name} have no JSON Schema: {first}") from None
