"""Random schemas with finitely many instances, and all their texts: the twin of what a checked constraint allows.

Instances are listed from the schema's structure, in compact form and every order of members; which of them count is for
`jsonschema` to say.  It shares nothing with the engine.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema

SCALARS = [2, 20, 12, 5, 0.5, "a", "ab", "b", "", "é", 'q"', None, True, False]
"""No 1 beside True: jsonschema takes ``[[true], [1], [true]]`` for distinct items."""
NAMES = ["a", "b", "ab", "c"]
MOST = 4000
"""Instances beyond which a schema is given up."""


class TooMany(Exception):
    pass


def schema(rnd: random.Random, depth: int = 3) -> dict[str, Any]:
    """A schema whose instances are few, most of the time."""
    kind = rnd.random()
    if depth == 0 or kind < 0.25:
        return {"enum": rnd.sample(SCALARS, rnd.randint(1, 4))}
    if kind < 0.35:
        return {"anyOf": [schema(rnd, depth - 1), schema(rnd, depth - 1)]}
    if kind < 0.75:
        found: dict[str, Any] = {"type": "array", "items": schema(rnd, depth - 1), "maxItems": rnd.randint(1, 3)}
        if rnd.random() < 0.75:
            found["uniqueItems"] = True
        if rnd.random() < 0.5:
            found["minItems"] = rnd.randint(0, 3)
        if rnd.random() < 0.25:
            found["prefixItems"] = [schema(rnd, depth - 1) for _ in range(rnd.randint(1, 2))]
        return found
    found = {
        "type": "object",
        "maxProperties": rnd.randint(1, 3),
        "propertyNames": {"enum": rnd.sample(NAMES, rnd.randint(2, 4))},
        "additionalProperties": schema(rnd, depth - 1) if rnd.random() < 0.8 else False,
    }
    if rnd.random() < 0.5:
        found["properties"] = {name: schema(rnd, depth - 1) for name in rnd.sample(NAMES, rnd.randint(1, 2))}
    if rnd.random() < 0.3:
        found["required"] = rnd.sample(found["propertyNames"]["enum"], 1)
    if rnd.random() < 0.3:
        found["minProperties"] = rnd.randint(0, 2)
    return found


def texts(root: dict[str, Any]) -> set[bytes]:
    """Every instance as compact JSON text, names in every order; `TooMany` when there are more than `MOST`."""
    valid = jsonschema.Draft202012Validator(root).is_valid
    return {
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() for value in values(root) if valid(value)
    }


def values(root: dict[str, Any]) -> list[Any]:
    """Values that come near the schema: all that are valid, and others; objects in every order of members."""
    if "enum" in root:
        return list(root["enum"])
    if "anyOf" in root:
        return [value for option in root["anyOf"] for value in values(option)]
    if root["type"] == "array":
        found: list[Any] = []
        prefix = [values(option) for option in root.get("prefixItems", ())]
        rest = values(root["items"])
        for size in range(root["maxItems"] + 1):
            found += map(list, _product([(prefix[i] if i < len(prefix) else rest) for i in range(size)], len(found)))
        return found
    found = []
    declared = {name: values(option) for name, option in root.get("properties", {}).items()}
    other = values(root["additionalProperties"]) if root["additionalProperties"] else []
    for size in range(root["maxProperties"] + 1):
        for names in itertools.permutations(root["propertyNames"]["enum"], size):
            found += (
                dict(zip(names, chosen, strict=True))
                for chosen in _product([declared.get(name, other) for name in names], len(found))
            )
    return found


def _product(parts: list[list[Any]], already: int) -> list[tuple[Any, ...]]:
    count = already + 1
    for part in parts:
        count *= max(len(part), 1)
        if count > MOST:
            raise TooMany
    return list(itertools.product(*parts))
