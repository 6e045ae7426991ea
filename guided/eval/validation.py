"""Is a text a valid instance of a schema?  The verdict of jsonschema, which knows nothing of any engine."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

__all__ = ["NoVerdictError", "parse_strictly", "schema_fault", "validator_for", "why_invalid"]

MAX_MESSAGE = 300
"""Characters of jsonschema's message that are kept; it quotes whole instances."""


class NoVerdictError(Exception):
    """jsonschema cannot judge: a reference leads nowhere, a pattern is no regular expression, a number is too large."""


def validator_for(schema: Any) -> Any:
    """A jsonschema validator of the draft that ``$schema`` names (default 2020-12), formats checked.

    Formats whose checker needs a package that is not installed are not checked: ``pip install 'jsonschema[format]'``.
    """
    import jsonschema

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def schema_fault(schema: Any) -> str | None:
    """Why a schema is none of its own draft, in a line; None when it is one."""
    import jsonschema

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        return f"not a schema of its draft: {_short(error.message)} (at {error.json_path})"
    except RecursionError:
        return "nested too deeply for jsonschema"
    return None


def why_invalid(text: str, schema: Any) -> str | None:
    """Why a text is no valid instance, in a line; None when it is one.

    Raises `NoVerdictError` where jsonschema cannot say.
    """
    import jsonschema

    try:
        value = parse_strictly(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {_short(str(error))}"
    except OverflowError as error:
        raise NoVerdictError(str(error)) from error
    try:
        found = next(validator_for(schema).iter_errors(value), None)
    except jsonschema.ValidationError as error:
        return _short(error.message)
    except Exception as error:  # unresolvable references, broken patterns and types that are none, each of its own kind
        raise NoVerdictError(f"{type(error).__name__}: {_short(str(error))}") from error
    if found is None:
        return None
    return f"{_short(found.message)} (at {found.json_path}, {found.validator})"


def parse_strictly(text: str) -> Any:
    """The value of a JSON text; `ValueError` for NaN and Infinity, which Python reads and JSON does not have.

    Raises `OverflowError` for ``1e999``, which JSON has and Python reads as infinity.
    """

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no JSON")

    def finite(written: str) -> float:
        value = float(written)
        if math.isinf(value):
            raise OverflowError(f"no float holds {written}")
        return value

    return json.loads(text, parse_constant=refuse, parse_float=finite)


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"
