"""What a potential, a sampler or a function is, as a digest: equal where equal things were asked for, in any process.

Functions are compared by their code, defaults and the plain values they close over; constraints by their grammar and
vocabulary; options by their fields.  Objects whose content nobody can know have none: those who compare runs then look
at answers (`guided.infer.runs.checkpoint`).
"""

from __future__ import annotations

import functools
import hashlib
import re
import types
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from guided.constraint.limits import Limits
from guided.grammar.ir import Grammar
from guided.infer.potentials.potential import Potential
from guided.vocab.vocabulary import Vocabulary

__all__ = ["content_of", "described"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


class _UnknownError(Exception):
    """Something has no content that can be known."""


def content_of(value: Any) -> str | None:
    """Return the hex digest of what a value is; None where that cannot be known.

    >>> content_of((1, "a")) == content_of((1, "a")) != content_of((1, "b")), content_of(object())
    (True, None)
    """
    try:
        return _digest(value)
    except (_UnknownError, RecursionError):
        return None


def described(value: Any) -> str | None:
    """Return a kind and, where it is known, a digest: what checkpoints keep of arguments; None for None.

    >>> described(object()), described(None)
    ('object', None)
    """
    if value is None:
        return None
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    content = content_of(value)
    return name if content is None else f"{name} {content[:32]}"


def _digest(value: Any) -> str:
    kind, parts = _parts(value)
    found = hashlib.sha256(kind.encode("utf-8", "surrogatepass"))
    for part in parts:
        found.update(b"\0" + part.encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def _parts(value: Any) -> tuple[str, Iterable[str]]:
    """A name for the sort of value, and what makes it different from others of its sort."""
    kind = type(value).__qualname__
    if isinstance(value, Enum) or type(value) in _PLAIN:
        return kind, [repr(value)]
    if isinstance(value, (tuple, list)):
        return kind, [_digest(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return kind, sorted(_digest(part) for part in value)
    if isinstance(value, dict):
        return kind, sorted(_digest(key) + _digest(part) for key, part in value.items())
    if isinstance(value, re.Pattern):
        return kind, [repr(value.pattern), str(value.flags)]
    if isinstance(value, Vocabulary):
        return kind, [value.digest]
    if isinstance(value, Limits):
        # How much work may be spent changes no language.
        return kind, []
    if isinstance(value, Grammar):
        if value.key is None:
            raise _UnknownError
        return kind, [value.key]
    if isinstance(value, types.CodeType):
        consts = [_digest(part) for part in value.co_consts]
        return kind, [value.co_code.hex(), *consts, repr(value.co_names), repr(value.co_freevars)]
    if isinstance(value, types.FunctionType):
        closed = [_closed(cell) for cell in value.__closure__ or ()]
        given = [_closed_value(part) for part in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())]
        return kind, [_digest(value.__code__), *closed, *given]
    if isinstance(value, (types.BuiltinFunctionType, type)):
        return kind, [value.__qualname__]
    if isinstance(value, types.MethodType):
        return kind, [_closed_value(value.__self__), _digest(value.__func__)]
    if isinstance(value, functools.partial):
        return kind, [_digest(value.func), _digest(value.args), _digest(value.keywords)]
    if isinstance(value, Potential):
        own = value.content()
        if own is None:
            raise _UnknownError
        return kind, [_digest(own)]
    if is_dataclass(value):
        return kind, [each.name + _digest(getattr(value, each.name)) for each in fields(value)]
    if type(value) is not object and "__reduce__" in vars(type(value)):
        # Constraints say how they are made, for pickling.
        made = value.__reduce__()
        if isinstance(made, tuple) and len(made) == 2:
            return kind, [_digest(made[0]), _digest(made[1])]
    raise _UnknownError


def _closed(cell: Any) -> str:
    try:
        return _closed_value(cell.cell_contents)
    except ValueError:
        return "empty"


def _closed_value(value: Any) -> str:
    """What a function holds on to: its content, but only the type of what may change as the function is called."""
    if isinstance(value, (list, set, dict, bytearray)):
        return type(value).__qualname__
    return content_of(value) or type(value).__qualname__
