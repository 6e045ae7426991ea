"""Conditions of which an object meets at least one: the opposite of "all members are so", kept without a product.

What is not in any of n branches of a ``oneOf`` breaks each of them in some way.  Written out these ways are a product;
as n clauses they are a sum.  A clause whose ways are all but one impossible is that way, and one of which a way surely
holds says nothing; few that are left are written out after all, many are kept track of by an automaton over members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.algebra import intersect_objects
from guided.grammar.json_schema.extras import Extra, extras, few_words, other_names
from guided.grammar.json_schema.shape import Clause, Need, ObjectShape, class_need, is_false, negate
from guided.grammar.json_schema.strings import CONTENT, holds_word
from guided.grammar.regular.expr import Expr

FEW_WAYS = 16
"""Objects that one with clauses is written out to, where it is in no more: engines know plain members better."""
MAX_STEPS = 20_000
"""Steps between the states of one object with clauses; a few microseconds each."""
MAX_OPTIONS = 64
"""Values of one member that are told apart by the clauses they meet."""

Dead = Callable[[Need], bool]
"""Is a need surely empty?"""

State = tuple[int, int, int, bool]
"""The declared member that may come next, the clauses still to be met (a bit set), how many members there are (capped
where it makes no further difference), and are there any?"""


def simplified(thing: ObjectShape, dead: Dead) -> ObjectShape | None:
    """The same objects with fewer clauses, and ways to meet them; None when some clause cannot be met."""
    while True:
        kept: list[Clause] = []
        single: ObjectShape | None = None
        for clause in thing.clauses:
            ways: list[ObjectShape] = []
            for way in clause:
                holds = _holds(thing, way, dead)
                if holds:
                    break
                if holds is None:
                    ways.append(way)
            else:
                if not ways:
                    return None
                if single is None and len(ways) == 1 and not ways[0].some and not thing.some:
                    single = ways[0]
                else:
                    kept.append(clause if len(ways) == len(clause) else tuple(ways))
        if len(kept) < len(thing.clauses) or kept != list(thing.clauses):
            thing = replace(thing, clauses=tuple(kept))
        if single is None:
            return thing
        found = intersect_objects(thing, single)
        if not found:
            return None
        (thing,) = found
        if any(dead(thing.declared[name]) for name in thing.required):
            return None


def _holds(thing: ObjectShape, way: ObjectShape, dead: Dead) -> bool | None:
    """Does a way to meet a clause surely hold for all of the objects (True), or for none (False)?"""
    needed = max(thing.low, len(thing.required))
    if way.high is not None:
        return True if thing.high is not None and thing.high <= way.high else None if needed <= way.high else False
    if way.low:
        return True if needed >= way.low else None if thing.high is None or way.low <= thing.high else False
    if way.some:
        ((language, bad),) = way.some
        for name, need in thing.declared.items():
            if holds_word(language, name) and not dead(need | bad):
                return None
        return False if all(dead(need | bad) for _, need in thing.classes) else None
    ((name, bad),) = way.declared.items()
    need = thing.member(name)
    there, must = name in thing.required, name in way.required
    if (there or not must) and (bad <= need or dead(need | negate(bad, ""))):
        return True
    return False if (there or must) and (dead(bad) or dead(need | bad)) else None


def written_out(
    thing: ObjectShape, living: Callable[[tuple[ObjectShape, ...]], tuple[ObjectShape, ...]], limit: int
) -> tuple[ObjectShape, ...] | None:
    """The same objects without clauses, as a union; None when that takes more than so many."""
    found: tuple[ObjectShape, ...] = (replace(thing, clauses=()),)
    for clause in thing.clauses:
        found = living(tuple([both for one in found for way in clause for both in intersect_objects(one, way)]))
        if len(found) > limit:
            return None
    return found


def told_apart(thing: ObjectShape) -> ObjectShape:
    """The same objects, with the names declared that clauses are about, and those of classes that have few."""
    others = [(other_names(thing, language), bad) for language, bad in thing.some]
    clauses = (*thing.clauses, *[(ObjectShape({}, some=(pair,)),) for pair in others])
    names = dict.fromkeys([name for clause in clauses for way in clause for name in way.declared])
    languages = [language for language, need in thing.classes if not is_false(need)]
    languages += [way.some[0][0] for clause in clauses for way in clause if way.some]
    for language in dict.fromkeys(languages):
        names.update(dict.fromkeys(few_words(other_names(thing, language)) or ()))
    more = {name: class_need(thing.classes, name) for name in names if name not in thing.declared}
    return replace(thing, declared={**thing.declared, **more}, some=(), clauses=clauses)


@dataclass(frozen=True, slots=True)
class Step:
    """One more member, declared or of a sort of others: what it must be, and the state after it."""

    name: str | None
    extra: Extra | None
    need: Need
    state: State


class MemberWalk:
    """The automaton over the members of an object with clauses, in the order of the schema; no member is read yet."""

    start: State

    def __init__(self, thing: ObjectShape, dead: Dead) -> None:
        self.thing = thing
        self._names = tuple(thing.declared)
        self._of_name: list[dict[Need, int]] = [{} for _ in self._names]
        self._absent = [0] * len(self._names)
        self._counted: list[tuple[int, ObjectShape]] = []
        self._read_clauses()
        self.extras = self._sorts()
        low = 0 if thing.low <= len(thing.required) else thing.low
        bounds = [low, *(way.low for _, way in self._counted)]
        above = [high + 1 for high in (thing.high, *(way.high for _, way in self._counted)) if high is not None]
        self._cap = max(*bounds, *above, 0)
        self._low = low
        any_extra = 0
        for extra in self.extras:
            any_extra |= extra.meets
        for bit, _ in self._counted:
            any_extra |= bit
        self._later = [any_extra] * (len(self._names) + 1)
        """The clauses that may be met by members from each on, or by their number."""
        for at in range(len(self._names) - 1, -1, -1):
            here = self._absent[at]
            for bits in self._of_name[at].values():
                here |= bits
            self._later[at] = self._later[at + 1] | here
        self.start = (0, (1 << len(thing.clauses)) - 1, 0, False)
        self._steps = self._explore(dead)

    def _read_clauses(self) -> None:
        places = {name: at for at, name in enumerate(self._names)}
        for number, clause in enumerate(self.thing.clauses):
            bit = 1 << number
            for way in clause:
                if way.low or way.high is not None:
                    self._counted.append((bit, way))
                elif way.some:
                    ((language, bad),) = way.some
                    for at, name in enumerate(self._names):
                        if holds_word(language, name):
                            self._meet(at, bad, bit)
                else:
                    ((name, bad),) = way.declared.items()
                    self._meet(places[name], bad, bit)
                    if name not in way.required:
                        self._absent[places[name]] |= bit

    def _meet(self, at: int, bad: Need, bit: int) -> None:
        self._of_name[at][bad] = self._of_name[at].get(bad, 0) | bit

    def _sorts(self) -> list[Extra]:
        """The sorts of undeclared members, with the clauses that they meet."""
        meets: dict[tuple[Expr, Need], int] = {}
        for number, clause in enumerate(self.thing.clauses):
            for way in clause:
                for pair in way.some:
                    meets[pair] = meets.get(pair, 0) | 1 << number
        found = []
        bits = list(meets.values())
        for extra in extras(replace(self.thing, some=tuple(meets))):
            met = 0
            for number, bit in enumerate(bits):
                if extra.meets >> number & 1:
                    met |= bit
            found.append(replace(extra, meets=met))
        return found

    def accepts(self, state: State) -> bool:
        """May the object end here?"""
        at, open_, count, _ = state
        for later in range(at, len(self._names)):
            if self._names[later] in self.thing.required:
                return False
            open_ &= ~self._absent[later]
        for bit, way in self._counted:
            if count >= way.low and (way.high is None or count <= way.high):
                open_ &= ~bit
        return not open_ and count >= self._low

    def _next(self, state: State, dead: Dead) -> Iterator[Step]:
        at, open_, count, _ = state
        thing = self.thing
        if thing.high is not None and count >= thing.high:
            return
        after = min(count + 1, self._cap)
        for extra in self.extras:
            yield Step(None, extra, extra.need, (at, open_ & ~extra.meets, after, True))
        for place in range(at, len(self._names)):
            name = self._names[place]
            for need, met in self._options(place, open_, dead):
                yield Step(name, None, need, (place + 1, open_ & ~met, after, True))
            if name in thing.required:
                return
            open_ &= ~self._absent[place]
            if open_ & ~self._later[place + 1]:
                return

    def _options(self, place: int, open_: int, dead: Dead) -> list[tuple[Need, int]]:
        """What a member can be, by the clauses that it surely meets; a value can be in several."""
        found = [(self.thing.declared[self._names[place]], 0)]
        forced = open_ & ~self._later[place + 1]
        for bad, bits in self._of_name[place].items():
            bits &= open_
            if not bits:
                continue
            more = []
            for need, met in found:
                if not bits & ~met:
                    more.append((need, met))
                elif bad <= need or dead(need | negate(bad, "")):
                    more.append((need, met | bits))
                else:
                    if not bits & forced & ~met or self._may_meet(place, bits & forced & ~met, bad):
                        more.append((need, met))
                    if not dead(need | bad):
                        more.append((need | bad, met | bits))
            found = more
            if len(found) > MAX_OPTIONS:
                raise refusals.CLAUSES.at(limit=MAX_OPTIONS)
        return [(need, met) for need, met in found if not forced & ~met]

    def _may_meet(self, place: int, bits: int, but: Need) -> bool:
        """Are the clauses met by other values of a member, too?"""
        others = 0
        for bad, met in self._of_name[place].items():
            if bad != but:
                others |= met
        return not bits & ~others

    def _explore(self, dead: Dead) -> dict[State, list[Step]]:
        table: dict[State, list[Step]] = {self.start: []}
        taken = 0
        for state in (order := [self.start]):
            row = table[state] = list(self._next(state, dead))
            taken += len(row) + 1
            if taken > MAX_STEPS:
                raise refusals.CLAUSE_STEPS.at(limit=MAX_STEPS)
            for step in row:
                if step.state not in table:
                    table[step.state] = []
                    order.append(step.state)
        return table

    def needs(self) -> set[Need]:
        """Every need that a member can have."""
        return {step.need for row in self._steps.values() for step in row}

    def living(self, alive: Callable[[Need], bool]) -> dict[State, list[Step]]:
        """The states from which the object can end, each with its steps; empty when it cannot end at all."""
        rows = {state: [step for step in row if alive(step.need)] for state, row in self._steps.items()}
        sources: dict[State, list[State]] = {state: [] for state in rows}
        for state, row in rows.items():
            for step in row:
                sources[step.state].append(state)
        live = {state for state in rows if self.accepts(state)}
        work = list(live)
        while work:
            for source in sources[work.pop()]:
                if source not in live:
                    live.add(source)
                    work.append(source)
        if self.start not in live:
            return {}
        found = {self.start: [step for step in rows[self.start] if step.state in live]}
        for state in (order := [self.start]):
            for step in found[state]:
                if step.state not in found:
                    found[step.state] = [more for more in rows[step.state] if more.state in live]
                    order.append(step.state)
        return found


def merged(things: tuple[ObjectShape, ...]) -> tuple[ObjectShape, ...]:
    """The objects of a union, those that one clause tells of or that are a single way put together to one clause."""
    ways: list[ObjectShape] = []
    others = []
    for thing in things:
        if _is_bare(thing) and len(thing.clauses) == 1:
            ways.extend(thing.clauses[0])
        elif not thing.clauses and _is_way(thing):
            ways.append(thing)
        else:
            others.append(thing)
    if len(ways) < 2:
        return things
    return (*others, any_of(ways))


def any_of(ways: list[ObjectShape]) -> ObjectShape:
    """The objects that meet one of several conditions, each of a single member or of the number of members."""
    return ways[0] if len(ways) == 1 else ObjectShape({}, clauses=(tuple(dict.fromkeys(ways)),))


def _is_bare(thing: ObjectShape) -> bool:
    """Does an object shape say nothing apart from its clauses?"""
    any_class = len(thing.classes) == 1 and thing.classes[0][0] is CONTENT and not thing.classes[0][1]
    return any_class and not thing.declared and not thing.low and thing.high is None and not thing.some


def _is_way(thing: ObjectShape) -> bool:
    """Does an object shape say a single thing, of one member or of their number?"""
    if len(thing.classes) > 1 or thing.classes[0][0] is not CONTENT or thing.classes[0][1]:
        return False
    if thing.some:
        return len(thing.some) == 1 and not thing.required and all(not need for need in thing.declared.values())
    said = len(thing.declared) + bool(thing.low) + (thing.high is not None)
    return said == 1
