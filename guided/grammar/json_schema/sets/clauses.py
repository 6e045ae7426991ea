"""Conditions of which an object meets at least one: the opposite of "all members are so", kept without a product.

What is not in any of n branches of a ``oneOf`` breaks each of them in some way.  Written out these ways are a product;
as n clauses they are a sum.  A clause whose ways are all but one impossible is that way, and one of which a way surely
holds says nothing; few that are left are written out after all, many are kept track of by an automaton over members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.sets.algebra import intersect_objects
from guided.grammar.json_schema.sets.disjoint import listed_values
from guided.grammar.json_schema.sets.extras import Extra, extras, few_words, other_names
from guided.grammar.json_schema.sets.shape import OF_TYPES, Clause, Need, ObjectShape, class_need, is_false, negate
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.texts import CONTENT, holds_word

FEW_WAYS = 16
"""Objects that one with clauses is written out to, where it is in no more: engines know plain members better."""
MAX_STEPS = 20_000
"""Steps between the states of one object with clauses; a few microseconds each."""
MAX_OPTIONS = 512
"""Values of one member that are told apart by the clauses they meet."""

MAX_COMPARED = 512
"""Ways to meet the clauses that are compared, each two of them, 0.1 us for a pair."""

Dead = Callable[[Need], bool]
"""Is a need surely empty?"""

State = tuple[int, int, int, bool]
"""The declared members that can come no more (a bit set), the clauses still to be met (another), how many members there
are (capped where it makes no further difference), and are there any?"""


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
    thing: ObjectShape, living: Callable[[tuple[ObjectShape, ...]], tuple[ObjectShape, ...]], dead: Dead, limit: int
) -> tuple[ObjectShape, ...] | None:
    """The same objects without clauses, as a union; None when that takes more than so many."""
    found: dict[frozenset[ObjectShape], tuple[ObjectShape, ...]] = {frozenset(): (replace(thing, clauses=()),)}
    for clause in thing.clauses:
        more: dict[frozenset[ObjectShape], tuple[ObjectShape, ...]] = {}
        for chosen, things in found.items():
            # What holds already asks for no choice.
            if all(any(_holds(one, way, dead) for way in clause) for one in things):
                more[chosen] = things
                continue
            for way in clause:
                both = living(tuple([both for one in things for both in intersect_objects(one, way)]))
                if both:
                    more[chosen | {way}] = both
        found = {chosen: more[chosen] for chosen in _least(list(more))}
        if sum(map(len, found.values())) > limit:
            return None
    return tuple([one for things in found.values() for one in things])


def _least(choices: list[frozenset[ObjectShape]]) -> list[frozenset[ObjectShape]]:
    """The choices but for those that choose what another does, and more; where they are too many, all of them."""
    if len(choices) > MAX_COMPARED:
        return choices
    return [one for one in choices if not any(other < one for other in choices)]


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
    """The automaton over the members of an object with clauses, in the order of the schema or in any."""

    def __init__(self, thing: ObjectShape, dead: Dead, in_order: bool) -> None:
        self.thing = thing
        self._in_order = in_order
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
        self._besides = 0
        """The clauses that may be met by undeclared members, or by the number of members."""
        for extra in self.extras:
            self._besides |= extra.meets
        for bit, _ in self._counted:
            self._besides |= bit
        self._about = list(self._absent)
        """The clauses that each declared member may meet, there or not."""
        for at, ways in enumerate(self._of_name):
            for bits in ways.values():
                self._about[at] |= bits
        self._required = sum(1 << at for at, name in enumerate(self._names) if name in thing.required)
        self._behind: dict[int, int] = {}
        self.start: State = (0, (1 << len(thing.clauses)) - 1, 0, False)
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
        gone, open_, count, _ = state
        if self._required & ~gone:
            return False
        for at, absent in enumerate(self._absent):
            if not gone >> at & 1:
                open_ &= ~absent
        for bit, way in self._counted:
            if count >= way.low and (way.high is None or count <= way.high):
                open_ &= ~bit
        return not open_ and count >= self._low

    def _next(self, state: State, dead: Dead) -> Iterator[Step]:
        gone, open_, count, _ = state
        if self.thing.high is not None and count >= self.thing.high:
            return
        after = min(count + 1, self._cap)
        for extra in self.extras:
            yield Step(None, extra, extra.need, (gone, open_ & ~extra.meets, after, True))
        for place, name in enumerate(self._names):
            bit = 1 << place
            if gone & bit:
                continue
            for need, met in self._options(place, open_, open_ & ~self._met_behind(gone | bit), dead):
                yield Step(name, None, need, (gone | bit, open_ & ~met, after, True))
            if self._in_order:
                # Those that come later have left this one out.
                gone |= bit
                open_ &= ~self._absent[place]
                if self._required & bit or open_ & ~self._met_behind(gone):
                    return

    def _met_behind(self, gone: int) -> int:
        """The clauses that may still be met once some declared members can come no more."""
        found = self._behind.get(gone)
        if found is None:
            found = self._besides
            for at, about in enumerate(self._about):
                if not gone >> at & 1:
                    found |= about
            self._behind[gone] = found
        return found

    def _options(self, place: int, open_: int, forced: int, dead: Dead) -> list[tuple[Need, int]]:
        """What a member can be, by the clauses that it surely meets, all ``forced`` ones; a value can be in several."""
        found = [(self.thing.declared[self._names[place]], 0)]
        for bad, bits in self._of_name[place].items():
            bits &= open_
            if not bits:
                continue
            more = []
            good = negate(bad, "")
            # Constants exclude each other, and so do types: told apart by them, values are of few sorts.
            telling = good in OF_TYPES or listed_values(good) is not None
            for need, met in found:
                if not bits & ~met:
                    more.append((need, met))
                elif bad <= need or dead(need | good):
                    more.append((need, met | bits))
                else:
                    if not bits & forced & ~met or self._may_meet(place, bits & forced & ~met, bad):
                        more.append((need | good if telling else need, met))
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
