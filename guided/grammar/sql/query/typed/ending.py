"""How much an expression in progress takes to its end, told by its types alone (`typed.frames`).

It is what a search for an end does first (`frames.soon`, `frames.finish`, `expressions`), without a text: an operand
as short as its goal allows, and then casts, tests and operators until the expression may end.
"""

from __future__ import annotations

from functools import cache, cached_property, lru_cache, reduce
from operator import or_

from guided.grammar.attributed.measures import Measure
from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.frames import Operand
from guided.grammar.sql.query.typed.literals import Text, strings_of
from guided.grammar.sql.query.typed.parts.nested import written
from guided.grammar.sql.query.typed.types import (
    ALL,
    BIT,
    HELD,
    bits_of,
    cast_targets,
    is_literal,
    members,
    only,
    turns_into,
)

__all__ = ["Ending"]

_FRESH = "NULL::timestamptz[]::text"
"""A value with two casts: an expression of which nothing was read, or an operand whose type no operator wants."""
_TYPES = ("timestamptz[ ]", "DECIMAL(28,28)")
"""As much as the dearest type of an engine behind a cast."""
_MOST = 8
"""Steps after which an expression counts as the dearest."""
_DETOUR = "CHAR(1)"
"""A type from which a cast leads to all others, where none leads there at once."""


class Ending:
    """What is enough to the ends of expressions, of one engine, by a measure."""

    def __init__(self, dialect: TypedDialect, measure: Measure) -> None:
        self.system = dialect.system
        text = self._text = lru_cache(maxsize=1 << 12)(measure.text)
        types = max(map(text, _TYPES))
        kinds = [one.name for one in dialect.nested]
        nested = {kind: text(written(dialect, kind)) for kind in kinds}
        brackets = text("[ ]")
        self.dearest_type = max(types, *map(text, dialect.type_words), *(one + brackets for one in nested.values()))
        self.fresh = text(_FRESH) + 2 * (self.dearest_type - types)
        self.dearest = 2 * self.fresh + text("::" + _DETOUR)
        """Enough for any one expression in progress: two operands, and a cast more."""
        self.any_array = text(" NULL::") + self.dearest_type
        """What stands in the brackets of ANY and ALL."""
        self._detour = text(_DETOUR)
        self._test = text(" IS NULL")
        self._cast = text("::")
        shortest: dict[str, str] = {}
        for word, name in dialect.type_words.items():
            shortest[name] = min(word, shortest.get(name, word), key=len)
        self._words = {name: text(word) for name, word in shortest.items()} | nested
        self._literals = {"int4": text(" 1"), "bool": text(" TRUE"), "'null": text(" NULL"), "'text": text(" ''")}
        held = (one.kind for one in strings_of(dialect))
        self._literals.update(
            (one.name, text(" " + one.shortest)) for one in held if isinstance(one, Text) and one.name in HELD
        )
        self.begun = lru_cache(maxsize=1 << 14)(self._begun)
        self.behind = lru_cache(maxsize=1 << 14)(self._behind)
        self.value = lru_cache(maxsize=1 << 14)(self._value)
        self.more = cache(self._more)
        self._sources = cache(self._sources_of)

    def word(self, name: str) -> int:
        """The name of a type behind a cast."""
        array = name[:1] == "_"
        brackets = self._text("[ ]") if array else 0
        return min(self.dearest_type, self._words.get(name[array:], self.dearest_type) + brackets)

    def _value(self, goal: int) -> int:
        """An expression of which nothing was read."""
        return self._begun(Operand(self.system, goal))

    def _begun(self, operand: Operand) -> int:
        """What ends an expression, from where an operand must come or has come."""
        found = 0
        for _ in range(_MOST):
            if not operand.type and operand.waits and operand.waits[-1].operator == "quantified":
                # ANY or ALL, whose own lexemes are nodes, and what is in its brackets.
                found += self.any_array
                operand = frames.as_condition(operand._replace(waits=operand.waits[:-1]), "quantified")
                continue
            if not operand.type:
                name = frames.soon(operand)
                after = frames.read(operand, name) if frames.fits(operand, name) else None
                if after is None:
                    return self.dearest
                found += self._literals.get(name, self._literals["'text"])
                operand = after
                continue
            step = frames.finish(operand)
            after = None
            match step:
                case "":
                    return found if frames.whole(operand) is not None else self.dearest
                case "cast":
                    targets = [
                        name for name in frames.target_types(operand) if turns_into(self.system, operand.type, name)
                    ]
                    target = min(targets, key=self.word, default="text")
                    found += self._cast + max(map(self.word, targets), default=self._detour)
                    after = frames.cast(operand, target)
                case "and":
                    found += self._text(" AND")
                    after = frames.between_done(operand)
                case "test":
                    found += self._test
                    before = frames.before_test(operand, "is", ALL)
                    after = None if before is None else frames.as_condition(before, "is")
                case _:
                    found += self._text(f" {'AT TIME ZONE' if step == 'at' else step} ")
                    after = frames.operated(operand, step)
            if after is None:
                return self.dearest
            operand = after
        return self.dearest

    def _behind(self, operand: Operand) -> int:
        """What ends an expression once an operand was read whose type is not known yet: those of casts."""
        if operand.waits and operand.waits[-1].operator == "quantified":
            return self.begun(operand)
        goal = frames.goal_of(operand)
        if not goal & cast_targets(self.system):
            read = (frames.read(operand, name) for name in members(goal) if name not in HELD)
            return max((self.begun(after) for after in read if after is not None), default=0)
        targets = frames.target_types(operand)
        found = max(self._test, self._cast + max(map(self.word, targets), default=self.dearest_type))
        if self._every & ~reduce(or_, map(self._sources, targets), 0):
            found += self._cast + self._detour
        # Of BETWEEN a bound is still to come, and of others perhaps an operator and its operand.
        read = (frames.read(operand, name) for name in targets)
        found += max((self.begun(after) for after in read if after is not None), default=self.dearest)
        return found

    @cached_property
    def _every(self) -> int:
        """The types of values."""
        return sum(bit for name, bit in bits_of(self.system) if not is_literal(name))

    def _sources_of(self, target: str) -> int:
        """The types from which a cast leads to one."""
        return sum(bit for name, bit in bits_of(self.system) if turns_into(self.system, name, target))

    def _more(self, name: str, given: int) -> int:
        """The arguments that a function may still want when so many are given."""
        found = 0
        for parameters, _ in self.system.functions.get(name, ()):
            wanted = [one for one in parameters if not one.endswith("...")][given:]
            found = max(found, sum(self._text(", ") + self._argument(one) for one in wanted))
        return found

    @cached_property
    def dearest_call(self) -> int:
        """The arguments of any function."""
        return max((self.more(name, 0) for name in self.system.functions), default=0)

    def _argument(self, parameter: str) -> int:
        if parameter.startswith("any"):
            return self._text("NULL")
        return self.value(only(parameter)) if parameter in BIT else self._text("NULL")
