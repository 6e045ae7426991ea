"""Where the keywords of a schema stand, how an instance gets there, and the schema without one of them.

JSON pointers are physical: a keyword of a definition is named where it is written, however many references lead to it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "ANNOTATIONS",
    "Occurrence",
    "Path",
    "at",
    "negated",
    "occurrences",
    "pointer_of",
    "reached",
    "routes",
    "subschemas",
    "without",
]

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root of a schema."""

ANNOTATIONS = frozenset(
    {
        "$schema", "$id", "id", "$anchor", "$comment", "$vocabulary", "$dynamicAnchor", "$recursiveAnchor",
        "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding",
        "contentMediaType", "contentSchema", "$defs", "definitions",
    }
)  # fmt: skip
"""Keywords that assert nothing by themselves."""

_SINGLE = frozenset(
    {
        "additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
        "unevaluatedItems", "unevaluatedProperties", "items", "contentSchema",
    }
)  # fmt: skip
_LISTS = frozenset(["allOf", "anyOf", "oneOf", "prefixItems", "items"])
_MAPS = frozenset(["properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "dependencies"])

_NEIGHBOURS = {
    "additionalProperties": ("properties", "patternProperties"),
    "unevaluatedProperties": ("properties", "patternProperties", "additionalProperties", "allOf", "anyOf", "oneOf"),
    "items": ("prefixItems",),
    "additionalItems": ("items",),
    "unevaluatedItems": ("prefixItems", "items", "contains", "allOf", "anyOf", "oneOf"),
    "minContains": ("contains",),
    "maxContains": ("contains",),
    "exclusiveMinimum": ("minimum",),
    "exclusiveMaximum": ("maximum",),
    "if": ("then", "else"),
}
"""Keywords beside a keyword that say what it means."""


@dataclass(frozen=True)
class Occurrence:
    """A keyword at a place of a schema."""

    path: Path
    """To the schema object that has the keyword."""
    keyword: str

    @property
    def pointer(self) -> str:
        """``#/properties/a/minLength``."""
        return pointer_of((*self.path, self.keyword))


def pointer_of(path: Path) -> str:
    """A path as a JSON pointer in a URI fragment.

    >>> pointer_of(("properties", "a/b", "items", 0))
    '#/properties/a~1b/items/0'
    """
    return "#" + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def at(schema: Any, path: Path) -> Any:
    """What stands at a path."""
    for step in path:
        schema = schema[step]
    return schema


def subschemas(schema: Any, path: Path = (), definitions: bool = True) -> Iterator[tuple[Path, Any]]:
    """Every schema in a schema, itself first, objects and booleans, with its path; definitions only if asked for."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in ("$defs", "definitions") and not definitions:
            continue
        if keyword in _MAPS and isinstance(value, dict):
            for name, part in value.items():
                if isinstance(part, (dict, bool)):
                    yield from subschemas(part, (*path, keyword, name), definitions)
        elif keyword in _LISTS and isinstance(value, list):
            for index, part in enumerate(value):
                if isinstance(part, (dict, bool)):
                    yield from subschemas(part, (*path, keyword, index), definitions)
        elif keyword in _SINGLE and isinstance(value, (dict, bool)):
            yield from subschemas(value, (*path, keyword), definitions)


def occurrences(schema: Any) -> list[Occurrence]:
    """Every keyword of a schema that is no annotation, in the order of the text."""
    return [
        Occurrence(path, keyword)
        for path, part in subschemas(schema)
        if isinstance(part, dict)
        for keyword in part
        if keyword not in ANNOTATIONS
    ]


def without(schema: Any, gone: Occurrence | list[Occurrence]) -> Any:
    """A copy of a schema without a keyword, or without several."""
    changed = copy.deepcopy(schema)
    for one in gone if isinstance(gone, list) else [gone]:
        try:
            at(changed, one.path).pop(one.keyword, None)
        except (KeyError, IndexError, TypeError):
            continue  # went with an outer one
    return changed


def routes(schema: Any) -> dict[Path, tuple[Path, ...]]:
    """For the place of every schema object, how to come there from the root: places at which a ``$ref`` is followed.

    The shortest chain of local references; places that none leads to (unused definitions) are left out.
    """
    known: dict[Path, tuple[Path, ...]] = {}
    queue: list[tuple[Path, tuple[Path, ...]]] = [((), ())]
    for start, followed in queue:
        for path, part in subschemas(at(schema, start), start, definitions=False):
            if path in known or not isinstance(part, dict):
                continue
            known[path] = followed
            target = _local_target(schema, part.get("$ref"))
            if target is not None and target not in known and all(target != queued for queued, _ in queue):
                queue.append((target, (*followed, path)))
    return known


def _local_target(schema: Any, reference: Any) -> Path | None:
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    path: list[str | int] = []
    place = schema
    for written in reference[1:].split("/")[1:]:
        step: str | int = written.replace("%25", "%").replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and str(step).isdigit():
            step = int(step)
        try:
            place = place[step]
        except (KeyError, IndexError, TypeError):
            return None
        path.append(step)
    return tuple(path)


def negated(schema: Any, one: Occurrence, followed: tuple[Path, ...]) -> Any | None:
    """A schema whose instances come to the place of a keyword and break it there; None where that cannot be written.

    Every step on the way is forced: properties become required, arrays get items, branches their own.  References on
    the way are replaced by copies of what they refer to.  Whoever uses it checks the instances against the schema.
    """
    return _forced(schema, _legs(one.path, followed), one.keyword)


def reached(schema: Any, path: Path, followed: tuple[Path, ...]) -> Any | None:
    """A schema whose instances come to a place, with all its keywords in force."""
    return _forced(schema, _legs(path, followed), None)


def _legs(path: Path, followed: tuple[Path, ...]) -> list[Path]:
    """Places to be at one after the other: each with a ``$ref`` to the beginning of the next, the last the goal."""
    return [*followed, path]


def _forced(schema: Any, legs: list[Path], keyword: str | None) -> Any | None:
    changed = copy.deepcopy(schema)
    here: Path = ()
    origin: Path = ()
    for number, goal in enumerate(legs):
        steps = goal[len(origin) :]
        place = _walk(changed, here, steps)
        if place is None:
            return None
        if number + 1 == len(legs):
            here = place
            break
        node = at(changed, place)
        target = _local_target(schema, node.get("$ref") if isinstance(node, dict) else None)
        if target is None:
            return None
        rest = {key: value for key, value in node.items() if key != "$ref"}
        copied = copy.deepcopy(at(schema, target))
        node.clear()
        node["allOf"] = [copied, rest] if rest else [copied]
        here = (*place, "allOf", 0)
        origin = target
    node = at(changed, here)
    if keyword is None:
        return changed
    if not isinstance(node, dict) or keyword not in node:
        return None
    wrong = {name: copy.deepcopy(node[name]) for name in (keyword, *_NEIGHBOURS.get(keyword, ())) if name in node}
    del node[keyword]
    node["allOf"] = [*node.get("allOf", []), {"not": wrong}]
    return changed


def _walk(schema: Any, here: Path, steps: Path) -> Path | None:
    """Go down by ``steps`` from ``here``, changing the schema so that an instance must go there; the place, or None."""
    while steps:
        node = at(schema, here)
        keyword = steps[0]
        value = node[keyword]
        if keyword in _MAPS or isinstance(value, list):
            if not _force(node, str(keyword), steps[1]):
                return None
            index: str | int = 0 if keyword in ("anyOf", "oneOf") else steps[1]
            here, steps = (*here, keyword, index), steps[2:]
        else:
            if not _force(node, str(keyword), None):
                return None
            here, steps = (*here, keyword), steps[1:]
    return here


def _force(node: dict[str, Any], keyword: str, name: str | int | None) -> bool:
    """Change a schema object so that instances are held against one of its parts; False where that is not possible."""
    if keyword == "properties":
        node["required"] = sorted({*_names(node.get("required")), str(name)})
        node.setdefault("type", "object")
    elif keyword in ("items", "prefixItems", "contains", "additionalItems", "unevaluatedItems"):
        before = name if isinstance(name, int) else 0
        if keyword in ("items", "unevaluatedItems") and name is None:
            before = len(node.get("prefixItems", []))
        elif keyword == "additionalItems" and isinstance(node.get("items"), list):
            before = len(node["items"])
        node["minItems"] = max(before + 1, _count(node.get("minItems")))
        node.setdefault("type", "array")
    elif keyword in ("patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties"):
        more = len(node.get("properties", {})) + 1 if keyword != "propertyNames" else 1
        node["minProperties"] = max(more, _count(node.get("minProperties")))
        node.setdefault("type", "object")
    elif keyword in ("anyOf", "oneOf") and isinstance(name, int):
        node[keyword] = [node[keyword][name]]
    elif keyword == "then" and "if" in node:
        node["allOf"] = [*node.get("allOf", []), copy.deepcopy(node["if"])]
    elif keyword == "else" and "if" in node:
        node["allOf"] = [*node.get("allOf", []), {"not": copy.deepcopy(node["if"])}]
    elif keyword in ("dependentSchemas", "dependencies"):
        node["required"] = sorted({*_names(node.get("required")), str(name)})
        node.setdefault("type", "object")
    else:
        return keyword == "allOf"
    return True


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _count(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) else 0
