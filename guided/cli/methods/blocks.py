"""Blocks of options: a frozen dataclass whose fields are options that belong together, as one parameter of a command.

Typer knows no such parameter.  `with_option_blocks` gives it the fields one by one, and the command the dataclass.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

__all__ = ["with_option_blocks"]


def with_option_blocks(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose options are the fields of a block wherever a parameter's type is a dataclass.

    The command gets each block's values together.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    blocks: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = inspect.Parameter.KEYWORD_ONLY
        annotation = hints[parameter.name]
        if not dataclasses.is_dataclass(annotation):
            parameters.append(parameter.replace(kind=kind, annotation=annotation))
            continue
        assert isinstance(annotation, type)
        blocks[parameter.name] = annotation
        shared = get_type_hints(annotation, include_extras=True)
        for field in dataclasses.fields(annotation):
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=shared[field.name]))

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        for name, block in blocks.items():
            given[name] = block(**{field.name: given.pop(field.name) for field in dataclasses.fields(block)})
        command(**given)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped
