"""Schemas that ask for more than a server should give: each refused or bounded, none twice the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def hostile(n: int) -> dict[str, Any]:
    """The schema of a number."""
    return _KINDS[n % len(_KINDS)](n)


def _subsets(n: int) -> dict[str, Any]:
    """Exactly one of many sets of members: all of their combinations."""
    options = [{"required": [f"a{n}_{i}", f"b{i % 7}"]} for i in range(18)]
    return {"type": "object", "oneOf": options}


def _repeated(n: int) -> dict[str, Any]:
    """Classes repeated by the thousand, around one another."""
    return {"type": "string", "pattern": f"^((a|b{{0,{900 + n}}}){{0,900}}c){{0,900}}$"}


def _far_from_the_end(n: int) -> dict[str, Any]:
    """A pattern whose automaton has two to the power of its number of states."""
    return {"type": "string", "pattern": f"^[ab]*a[ab]{{{40 + n}}}$"}


def _both(n: int) -> dict[str, Any]:
    """Patterns that must all hold."""
    return {"allOf": [{"type": "string", "pattern": f"^(.*{chr(97 + i)}.*){{{i + 1}}}$"} for i in range(12 + n % 7)]}


def _nested(n: int) -> dict[str, Any]:
    """Choices of choices of choices, each level three times as often."""
    schema: dict[str, Any] = {"type": "integer", "multipleOf": n + 3}
    for level in range(7):
        schema = {"anyOf": [{"properties": {f"p{level}": schema}}, {"items": schema}, {"not": schema}]}
    return schema


def _multiples(n: int) -> dict[str, Any]:
    """A remainder by a large number in every item, none twice."""
    item = {"type": "integer", "multipleOf": 1_000_003 + 2 * n, "not": {"multipleOf": 7}}
    return {"type": "array", "items": item, "uniqueItems": True, "minItems": 200}


def _itself(n: int) -> dict[str, Any]:
    """A schema that is not itself."""
    return {"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "properties": {f"k{n}": {"$ref": "#/$defs/a"}}}


def _many_names(n: int) -> dict[str, Any]:
    """Thousands of members, patterns of names, and all that is left over."""
    return {
        "type": "object",
        "properties": {f"name{n}_{i}": {"enum": [i, f"{i}"]} for i in range(2000)},
        "patternProperties": {f"^[a-z]{{{i}}}x": {"type": "integer"} for i in range(1, 20)},
        "unevaluatedProperties": False,
        "minProperties": 50,
    }


_KINDS: tuple[Callable[[int], dict[str, Any]], ...] = (
    _subsets, _repeated, _far_from_the_end, _both, _nested, _multiples, _itself, _many_names,
)  # fmt: skip
