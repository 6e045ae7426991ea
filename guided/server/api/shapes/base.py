"""`Asked` and `Answered`: what the bodies of requests and of answers have in common."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

__all__ = ["Answered", "Asked", "JsonData", "only"]


class Asked(BaseModel):
    """Part of a request: a field that is not declared is refused, and no value is turned into one of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class Answered(BaseModel):
    """Part of an answer: its schema admits no fields but those declared."""

    model_config = ConfigDict(extra="forbid")


JsonData: TypeAlias = dict[str, Any] | list[Any] | str | float | int | bool | None
"""Any JSON value."""


def only(kind: Any, *values: Any, why: str = "this server does not support it") -> Any:
    """The type of a field of which only these values, and null, can be honoured; any other is refused.

    >>> from pydantic import TypeAdapter
    >>> TypeAdapter(only(float, 0)).validate_python(0.0)
    0.0
    """

    def check(value: Any) -> Any:
        if value is None or any((value == known and type(value) is not bool) or value is known for known in values):
            return value
        allowed = " or ".join(repr(known) for known in values)
        raise PydanticCustomError(
            "unsupported_value",
            "{why}: leave it out{or_pass}",
            {"why": why, "or_pass": f", or pass {allowed}" if values else ""},
        )

    note: dict[str, Any] = {
        "description": f"Not supported: {'null' if not values else f'only null and {list(values)}'}."
    }
    return Annotated[kind | None, AfterValidator(check), Field(json_schema_extra=note)]
