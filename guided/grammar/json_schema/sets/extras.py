"""Undeclared members of an object: which sorts there are, by name, value and the conditions of ``some`` they meet.

Names of a class that holds only a few are declared one by one where members are counted: undeclared names are not told
apart, declared ones are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from guided.collection import untrack
from guided.errors import LimitError
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.sets.shape import Need, ObjectShape, class_need, is_false
from guided.grammar.json_schema.sets.strings import every_word
from guided.grammar.regular.derivative import edges, inhabited, possible_edges
from guided.grammar.regular.expr import EMPTY, Expr, complement, intersection
from guided.grammar.regular.texts import CONTENT, holds_word

MAX_CONDITIONS = 5
"""Conditions that some undeclared member of one object must meet; n of them make up to 2**n sorts of members."""
MAX_SORTS = 128
"""Sorts of undeclared members of one object."""
FEW_NAMES = 64
"""Names of a class up to which they are told apart."""
FEW_STEPS = 1000
"""Derivatives taken to find that a class has few names."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Undeclared members: their names, their values, and the bit set of conditions in ``some`` that they meet."""

    names: Expr
    need: Need
    meets: int


def extras(thing: ObjectShape) -> list[Extra]:
    """Every sort of undeclared member; `LimitError` when conditions combine in too many ways."""
    found = []
    for language, need in thing.classes:
        names = other_names(thing, language)
        if names is not EMPTY:
            found.append(Extra(names, need, 0))
    if len(thing.some) > MAX_CONDITIONS:
        raise refusals.MEMBER_CONDITIONS.at(limit=MAX_CONDITIONS)
    for number, (language, need) in enumerate(thing.some):
        more = []
        for extra in found:
            both = extra.names if language is CONTENT else intersection((extra.names, language))
            if both is not EMPTY and inhabited(both):
                more.append(Extra(both, extra.need | need, extra.meets | 1 << number))
        found += more
        if len(found) > MAX_SORTS:
            raise refusals.MEMBER_SORTS.at(limit=MAX_SORTS)
    # Kept with the graph; in no cycle.
    for extra in found:
        untrack(extra)
    untrack(found)
    return found


def goals(thing: ObjectShape) -> int:
    """The bit set of all conditions in ``some``."""
    return (1 << len(thing.some)) - 1


def few_names_declared(thing: ObjectShape) -> list[ObjectShape]:
    """The same objects, as a union, with the names of small classes declared where members are counted."""
    if not thing.some and thing.low <= len(thing.required):
        return [thing]
    names: list[str] = []
    for language in (
        *(language for language, need in thing.classes if not is_false(need)),
        *(p[0] for p in thing.some),
    ):
        names.extend(few_words(other_names(thing, language)) or ())
    return with_names(thing, list(dict.fromkeys(names))) if names else [thing]


def with_names(thing: ObjectShape, names: list[str]) -> list[ObjectShape]:
    """The same objects, as a union, with these names declared."""
    declared = {**thing.declared, **{name: class_need(thing.classes, name) for name in names}}
    result = [replace(thing, declared=declared, some=())]
    for pair in thing.some:
        found = []
        for shape in result:
            for name in names:
                if holds_word(pair[0], name):
                    members = {**shape.declared, name: shape.declared[name] | pair[1]}
                    found.append(replace(shape, declared=members, required=shape.required | {name}))
            if other_names(shape, pair[0]) is not EMPTY:
                found.append(replace(shape, some=(*shape.some, pair)))
        result = found
    return [shape for shape in result if shape.high is None or len(shape.required) <= shape.high]


@lru_cache(maxsize=4096)
def few_words(language: Expr) -> tuple[str, ...] | None:
    """The words of a language, or None when they may be many."""
    found: list[bytes] = []
    steps = 0
    try:
        work: list[tuple[Expr, bytes, frozenset[Expr]]] = [(language, b"", frozenset())] if inhabited(language) else []
        while work:
            state, text, path = work.pop()
            steps += 1
            if state in path or steps > FEW_STEPS or len(found) > FEW_NAMES:
                return None
            if state.nullable:
                found.append(text)
            if not path and _branches_widely(state):
                return None
            for low, high, target in edges(state):
                if high - low >= FEW_NAMES:
                    return None
                work.extend((target, text + bytes((byte,)), path | {state}) for byte in range(low, high + 1))
    except LimitError:
        return None
    return tuple(sorted(text.decode() for text in found)) if len(found) <= FEW_NAMES else None


def _branches_widely(language: Expr) -> bool:
    """May one of many bytes come first?  Asked without looking at all that may follow."""
    return any(high - low >= FEW_NAMES and inhabited(target) for low, high, target in possible_edges(language))


def other_names(thing: ObjectShape, language: Expr) -> Expr:
    """The names of a class that are not declared; EMPTY when there are none."""
    return _without(language, frozenset(thing.declared))


@lru_cache(maxsize=16384)
def _without(language: Expr, names: frozenset[str]) -> Expr:
    if language is not CONTENT:
        # What holds a name less has one thing fewer to combine: of a pattern its own states remain.
        names = frozenset([name for name in names if holds_word(language, name)])
    if not names:
        return language
    rest = intersection((language, complement(every_word(names))))
    return rest if language is CONTENT or inhabited(rest) else EMPTY
