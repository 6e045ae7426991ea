"""Random JSON Schemas over a small world of names and values, and random instances that come near them."""

from __future__ import annotations

import random
from typing import Any

NAMES = ["a", "b", "ab", "c"]
WORDS = ["", "a", "b", "ab", "ba", "aab", "é", "x\ny", "12"]
NUMBERS = [0, 1, -1, 2, 3, 6, 10, 0.5, 1.5, -2.5, 7, 12, 100, 1.0]
PATTERNS = ["a", "^a", "b$", "^a*$", "^[ab]+$", "^.$", "[0-9]", "^(?!a)", "a.?b"]
TYPES = ["null", "boolean", "number", "integer", "string", "array", "object"]


def schema(rnd: random.Random, depth: int = 3, names: tuple[str, ...] = ()) -> Any:
    """A schema; ``names`` are definitions that it may refer to."""
    roll = rnd.random()
    if roll < 0.06:
        return rnd.random() < 0.7
    if names and roll < 0.16:
        found: dict[str, Any] = {"$ref": f"#/$defs/{rnd.choice(names)}"}
        return found if rnd.random() < 0.7 else {**found, **_assertions(rnd, 0, ())}
    result = _assertions(rnd, depth, names)
    if depth > 0 and rnd.random() < 0.45:
        result.update(_applicators(rnd, depth - 1, names))
    return result


def document(rnd: random.Random, depth: int = 3) -> Any:
    """A schema with a few definitions, which may be recursive below a property or item."""
    names = tuple(rnd.sample(["p", "q"], rnd.randint(0, 2)))
    root = schema(rnd, depth, names)
    if isinstance(root, bool) or not names:
        return root
    # A definition refers to others only from below, so that no schema applies itself to the same value.
    return {**root, "$defs": {name: _assertions(rnd, 2, names) for name in names}}


def _assertions(rnd: random.Random, depth: int, names: tuple[str, ...]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    kind = rnd.random()
    types = rnd.sample(TYPES, rnd.randint(1, 3))
    if kind < 0.75:
        result["type"] = types[0] if rnd.random() < 0.6 else types
    else:
        types = TYPES
    if rnd.random() < 0.08:
        result["enum"] = [value(rnd, 2) for _ in range(rnd.randint(1, 4))]
    elif rnd.random() < 0.05:
        result["const"] = value(rnd, 2)
    if ("number" in types or "integer" in types) and rnd.random() < 0.5:
        for keyword in rnd.sample(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], rnd.randint(0, 2)):
            result[keyword] = rnd.choice(NUMBERS)
        if rnd.random() < 0.3:
            result["multipleOf"] = rnd.choice([1, 2, 3, 0.5, 1.5, 2.5])
    if "string" in types and rnd.random() < 0.5:
        if rnd.random() < 0.5:
            result["pattern"] = rnd.choice(PATTERNS)
        if rnd.random() < 0.4:
            result["minLength"] = rnd.randint(0, 2)
        if rnd.random() < 0.4:
            result["maxLength"] = rnd.randint(0, 3)
    if depth > 0 and "array" in types and rnd.random() < 0.8:
        if rnd.random() < 0.4:
            result["prefixItems"] = [schema(rnd, depth - 1, names) for _ in range(rnd.randint(1, 2))]
        if rnd.random() < 0.6:
            result["items"] = schema(rnd, depth - 1, names)
        if rnd.random() < 0.3:
            result["minItems"] = rnd.randint(0, 2)
        if rnd.random() < 0.3:
            result["maxItems"] = rnd.randint(0, 3)
        if rnd.random() < 0.2:
            result["contains"] = schema(rnd, depth - 1, names)
            if rnd.random() < 0.3:
                result["minContains"] = rnd.randint(0, 3)
            if rnd.random() < 0.3:
                result["maxContains"] = rnd.randint(0, 2)
        if rnd.random() < 0.12:
            result["uniqueItems"] = True
        if rnd.random() < 0.12:
            result["unevaluatedItems"] = rnd.choice([False, False, schema(rnd, depth - 1, names)])
    if depth > 0 and "object" in types and rnd.random() < 0.85:
        _object(rnd, result, depth - 1, names)
    return result


def _object(rnd: random.Random, result: dict[str, Any], depth: int, names: tuple[str, ...]) -> None:
    if rnd.random() < 0.7:
        result["properties"] = {n: schema(rnd, depth, names) for n in rnd.sample(NAMES, rnd.randint(1, 3))}
    if rnd.random() < 0.4:
        result["required"] = rnd.sample(NAMES, rnd.randint(0, 2))
    if rnd.random() < 0.45:
        result["additionalProperties"] = rnd.choice([False, True, schema(rnd, depth, names)])
    if rnd.random() < 0.25:
        chosen = rnd.sample(PATTERNS, rnd.randint(1, 2))
        result["patternProperties"] = {p: schema(rnd, depth, names) for p in chosen}
    if rnd.random() < 0.12:
        result["minProperties"] = rnd.randint(0, 2)
    if rnd.random() < 0.12:
        result["maxProperties"] = rnd.randint(0, 3)
    if rnd.random() < 0.08:
        result["propertyNames"] = rnd.choice([{"pattern": "a"}, {"maxLength": 1}, {"enum": ["a", "c"]}, True])
    if rnd.random() < 0.15:
        result["unevaluatedProperties"] = rnd.choice([False, False, schema(rnd, depth, names)])
    if rnd.random() < 0.08:
        result["dependentRequired"] = {rnd.choice(NAMES): rnd.sample(NAMES, rnd.randint(0, 2))}
    if rnd.random() < 0.05:
        # Applied to the same value, so without references: a schema must not apply itself to the same value.
        result["dependentSchemas"] = {rnd.choice(NAMES): schema(rnd, depth, ())}


def _applicators(rnd: random.Random, depth: int, names: tuple[str, ...]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for keyword in rnd.sample(["allOf", "anyOf", "oneOf", "not", "if"], rnd.randint(1, 2)):
        if keyword == "not":
            result["not"] = schema(rnd, depth, names)
        elif keyword == "if":
            result["if"] = schema(rnd, depth, names)
            for branch in rnd.sample(["then", "else"], rnd.randint(1, 2)):
                result[branch] = schema(rnd, depth, names)
        else:
            result[keyword] = [schema(rnd, depth, names) for _ in range(rnd.randint(1, 3))]
    return result


def value(rnd: random.Random, depth: int = 3) -> Any:
    """Any JSON value of the small world."""
    kind = rnd.randrange(7 if depth > 0 else 5)
    if kind == 0:
        return rnd.choice([None, True, False])
    if kind in (1, 2):
        return rnd.choice(NUMBERS)
    if kind in (3, 4):
        return rnd.choice(WORDS)
    if kind == 5:
        return [value(rnd, depth - 1) for _ in range(rnd.randint(0, 3))]
    return {name: value(rnd, depth - 1) for name in rnd.sample(NAMES, rnd.randint(0, 3))}


def towards(rnd: random.Random, target: Any, root: Any, depth: int = 4) -> Any:
    """A value that tries to be valid against ``target``, and often is."""
    if not isinstance(target, dict) or depth < 0 or rnd.random() < 0.06:
        return value(rnd, 2)
    if "$ref" in target and rnd.random() < 0.9:
        return towards(rnd, root["$defs"][target["$ref"].rsplit("/", 1)[1]], root, depth - 1)
    if "const" in target:
        return target["const"]
    if "enum" in target:
        return rnd.choice(target["enum"])
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in target and rnd.random() < 0.4:
            return towards(rnd, rnd.choice(target[keyword]), root, depth - 1)
    types = target.get("type", TYPES)
    kind = types if isinstance(types, str) else rnd.choice(types)
    if kind == "array":
        prefix = target.get("prefixItems", [])
        low, high = target.get("minItems", 0), target.get("maxItems", 3)
        size = rnd.randint(min(low, high), max(low, high))
        rest = target.get("items", True)
        return [towards(rnd, prefix[i] if i < len(prefix) else rest, root, depth - 1) for i in range(size)]
    if kind == "object":
        found = {}
        members = target.get("properties", {})
        for name in NAMES:
            wanted = name in target.get("required", ())
            if wanted or rnd.random() < (0.5 if name in members else 0.2):
                found[name] = towards(rnd, members.get(name, target.get("additionalProperties", True)), root, depth - 1)
        names = list(found)
        rnd.shuffle(names)
        return {name: found[name] for name in names}
    if kind == "string":
        return rnd.choice(WORDS)
    if kind in ("number", "integer"):
        return rnd.choice(NUMBERS)
    return None if kind == "null" else rnd.random() < 0.5
