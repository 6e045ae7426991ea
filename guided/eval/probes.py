"""Instances that show whether an engine enforces a keyword: valid ones, and ones that break just that keyword.

A **mutant** of a keyword is an instance that jsonschema refuses, that it accepts once the keyword is taken out of the
schema, and about which it names that keyword.  Candidates come from two sources, and only those that jsonschema
confirms are kept: our own engine draws instances of the schema with the keyword negated and the way to it forced
(`guided.eval.occurrences`), and valid instances are changed in one place.  Draws are functions of the seed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import guided
from guided.errors import GuidedError
from guided.eval.byte_sampling import compile_bytes, rambling_text
from guided.eval.occurrences import Occurrence, Path, at, negated, occurrences, reached, routes, subschemas, without
from guided.eval.time_limit import OutOfTimeError, time_limit
from guided.eval.validation import parse_strictly, validator_for

__all__ = ["FALSE_SCHEMA", "Probes", "find_probes", "relaxed", "written"]

FALSE_SCHEMA = "false"
"""Stands for the keyword where a subschema is ``false``."""
PER_SOURCE = 3
"""Mutants kept for a keyword from each of the two sources; engines that enforce it partly may fail on either kind."""
MOST_VALID = 12
"""Valid instances kept, those that come to different places first."""
DRAWS = 3
"""Instances drawn from each schema."""
STEPS = 12
"""Bytes that the second of them is drawn freely; the first is a shortest one, the others ramble longer."""
DRAW_SECONDS = 5.0
MOST_SLOW_DRAWS = 3
"""How often drawing may take longer than that, which is a hundred times the usual, before changes have to do."""
MOST_CHANGES = 4000
"""Changed instances that are tried in all: at 0.2 ms for a small schema this is a second."""


@dataclass
class Probes:
    """What was found for a schema."""

    valid: list[Any] = field(default_factory=list)
    mutants: dict[Occurrence, list[Any]] = field(default_factory=dict)
    unprobed: list[Occurrence] = field(default_factory=list)
    """Asserting keywords for which no mutant was found."""


def written(value: Any) -> str:
    """An instance as the text that engines are given: compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def find_probes(schema: Any, seed: int = 0) -> Probes:
    """The probes of a schema.  Raises what jsonschema raises for a schema that it cannot judge with."""
    return _Search(schema, seed).run()


class _Search:
    def __init__(self, schema: Any, seed: int) -> None:
        self.schema = schema
        self.seed = seed
        self.validator = validator_for(schema)
        self.validator.is_valid(None)
        self.all = occurrences(schema)
        self.nothings = [Occurrence(path, FALSE_SCHEMA) for path, part in subschemas(schema) if part is False]
        self.known = {*self.all, *self.nothings}
        self.places: dict[int, Path] = {}
        """Schema objects by identity: jsonschema names the very object in which an error arose."""
        self._index(schema, ())
        self.relaxed: dict[Occurrence, Any] = {}
        declared = (at(schema, one.path)[one.keyword] for one in self.all if one.keyword == "properties")
        self.orders = [list(properties) for properties in declared if isinstance(properties, dict)]
        self.found = Probes()
        self._seen: set[str] = set()
        self._slow_draws = 0

    def run(self) -> Probes:
        ways = routes(self.schema)
        self._take_valid(self._drawn(self.schema))
        for path, followed in ways.items():
            if path and len(self.found.valid) < MOST_VALID:
                self._take_valid(self._drawn(reached(self.schema, path, followed), 1))
        for one in self.all:
            if one.path in ways:
                for value in self._drawn(negated(self.schema, one, ways[one.path])):
                    self._take_mutant(value, PER_SOURCE)
        constants, names = self._constants(), self._names()
        left = MOST_CHANGES
        for value in self.found.valid:
            for changed in _changes(value, constants, names):
                left -= 1
                self._take_mutant(changed, 2 * PER_SOURCE)
                if left <= 0:
                    break
        asserting = (one for one in self.all if one.keyword not in _DESCENDING and one.path in ways)
        self.found.unprobed = [one for one in asserting if one not in self.found.mutants]
        order = {one: number for number, one in enumerate(self.all)}
        ranked = sorted(self.found.mutants, key=lambda one: order.get(one, len(order)))
        self.found.mutants = {one: self.found.mutants[one] for one in ranked}
        return self.found

    def _index(self, part: Any, path: Path) -> None:
        if isinstance(part, dict):
            self.places[id(part)] = path
            for key, value in part.items():
                self._index(value, (*path, key))
        elif isinstance(part, list):
            for index, value in enumerate(part):
                self._index(value, (*path, index))

    def _drawn(self, schema: Any, count: int = DRAWS) -> Iterator[Any]:
        """Instances that our engine draws from a schema; none where it refuses it, or takes too long."""
        if schema is None or self._slow_draws >= MOST_SLOW_DRAWS:
            return
        try:
            with time_limit(DRAW_SECONDS):
                constraint = compile_bytes(guided.json_schema(schema, whitespace="compact", spelling="any"))
            for number in range(count):
                with time_limit(DRAW_SECONDS):
                    text = rambling_text(constraint, self.seed + number, STEPS * number)
                yield parse_strictly(text)
        except (GuidedError, RecursionError, ValueError, OverflowError):
            return  # refused, or a number that no float holds
        except OutOfTimeError:
            self._slow_draws += 1

    def _take_valid(self, values: Iterator[Any]) -> None:
        for value in map(self._ordered, values):
            if self.validator.is_valid(value) and self._is_new(value):
                self.found.valid.append(value)

    def _ordered(self, value: Any) -> Any:
        """The instance with declared members first and in their order, as every engine takes them.

        An object's order is that of the ``properties`` of which it has the most; JSON Schema itself knows none.
        """
        if isinstance(value, list):
            return [self._ordered(part) for part in value]
        if not isinstance(value, dict):
            return value
        order = max(self.orders, key=lambda names: len(value.keys() & set(names)), default=[])
        names = [name for name in order if name in value]
        return {name: self._ordered(value[name]) for name in dict.fromkeys((*names, *value))}

    def _is_new(self, value: Any) -> bool:
        text = written(value)
        new = text not in self._seen
        self._seen.add(text)
        return new

    def _take_mutant(self, value: Any, most: int) -> None:
        """Keep an instance for the innermost keyword that is all it breaks, which may have ``most`` of them."""
        value = self._ordered(value)
        errors = list(self.validator.iter_errors(value))
        if not errors:
            return
        for blamed in self._blamed(errors):
            kept = self.found.mutants.get(blamed, [])
            if len(kept) >= most or value in kept:
                continue
            if self._relaxed(blamed).is_valid(value):
                self.found.mutants.setdefault(blamed, []).append(value)
                return

    def _blamed(self, errors: list[Any]) -> list[Occurrence]:
        """The keywords that errors name, innermost first."""
        found: list[Occurrence] = []
        stack = list(errors)
        while stack:
            error = stack.pop()
            stack += error.context or ()
            for one in self._named(error):
                modifiers = (Occurrence(one.path, name) for name in _MODIFIERS.get(one.keyword, ()))
                found += [other for other in (*modifiers, one) if other in self.known and other not in found]
        return sorted(found, key=lambda one: -len(one.path))

    def _named(self, error: Any) -> list[Occurrence]:
        """The keyword that an error is about; of a ``false``, jsonschema says only which keyword holds it."""
        if error.schema is False:
            path = tuple(error.absolute_schema_path)
            return [one for one in self.nothings if one.path[: len(path)] == path]
        place = self.places.get(id(error.schema))
        return [] if place is None else [Occurrence(place, str(error.validator))]

    def _relaxed(self, one: Occurrence) -> Any:
        if one not in self.relaxed:
            self.relaxed[one] = validator_for(relaxed(self.schema, [one]))
        return self.relaxed[one]

    def _constants(self) -> list[Any]:
        """Values that the schema itself mentions: the likeliest to matter somewhere."""
        found: list[Any] = []
        for one in self.all:
            value = at(self.schema, one.path)[one.keyword]
            if one.keyword == "const":
                found.append(value)
            elif one.keyword == "enum" and isinstance(value, list):
                found += value[:3]
            elif one.keyword in ("minLength", "maxLength") and isinstance(value, int) and value < MOST_CHARACTERS:
                found.append("x" * (value + 1 if one.keyword == "maxLength" else max(value - 1, 0)))
            elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGE:
                found += [value, value + 1, value - 1, value / 2]
        return found

    def _names(self) -> list[str]:
        """Names of properties that the schema mentions, and others."""
        known = [name for order in self.orders for name in order]
        return [*dict.fromkeys(known[:MOST_NAMES]), *_OTHER_NAMES]


_MODIFIERS = {
    "minimum": ("exclusiveMinimum",),
    "maximum": ("exclusiveMaximum",),
    "contains": ("minContains", "maxContains"),
}
"""Keywords in whose name jsonschema does not speak: in draft 4 ``exclusiveMinimum`` is a flag of ``minimum``."""
MOST_CHARACTERS = 2000
LARGE = 1e15
"""From here on neighbours of a number are not told apart as floats."""
MOST_NAMES = 30
_OTHER_NAMES = ("x", "extra_1", "Äé 0")


_DESCENDING = frozenset(
    {
        "properties", "patternProperties", "items", "prefixItems", "additionalItems", "propertyNames", "allOf",
        "if", "then", "else", "$ref", "$dynamicRef", "$recursiveRef", "dependentSchemas",
    }
)  # fmt: skip
"""Keywords that break only by what is in them, where it is named."""


def relaxed(schema: Any, gone: list[Occurrence]) -> Any:
    """A copy of a schema without some keywords, a ``false`` among them made ``true``."""
    changed = without(schema, [one for one in gone if one.keyword != FALSE_SCHEMA])
    for one in gone:
        if one.keyword == FALSE_SCHEMA:
            if not one.path:
                return True
            at(changed, one.path[:-1])[one.path[-1]] = True
    return changed


_POOL: tuple[Any, ...] = (None, True, 0, 1, -1, 0.5, 1000000, "", "x", "~ !", "a" * 300, [], {}, [None], {"x": 1})


def _changes(value: Any, constants: list[Any], names: list[str]) -> Iterator[Any]:
    """The instance with one place changed, place by place."""
    for path in _places(value):
        here = at(value, path)
        for other in (*constants, *_changed(here, names), *_POOL):
            if type(other) is type(here) and other == here:
                continue
            if not path:
                yield copy.deepcopy(other)
                continue
            whole = copy.deepcopy(value)
            at(whole, path[:-1])[path[-1]] = copy.deepcopy(other)
            yield whole


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _places(part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _places(part, (*path, index))


def _changed(value: Any, names: list[str]) -> Iterator[Any]:
    """The neighbours of a value: one thing less, one more, one different."""
    if isinstance(value, str):
        yield from (value[:-1], value[1:], value + "x", value + value, value.upper(), f" {value}", value + "\n")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if abs(value) < LARGE:
            yield from (value + 1, value - 1, value + 0.5, -value, value * 10, value / 3)
    elif isinstance(value, list):
        yield from (value[:-1], value[1:], [*value, *value], value[::-1])
        for other in (*value[:3], *_POOL[:10]):
            yield [*value, other]
    elif isinstance(value, dict):
        for name in value:
            yield {key: part for key, part in value.items() if key != name}
        for name in names:
            for other in (None, "x", 1):
                if name not in value:
                    yield {**value, name: other}
