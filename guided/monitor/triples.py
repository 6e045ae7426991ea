"""An in-memory index of a knowledge graph, and what the variables of a few triple patterns in it can be.

Patterns over variables are a graph of their own, and where that is a forest, as nearly all queries are, a variable's
values are found without ever listing solutions: each variable keeps the values that have a neighbour for every pattern
that it is in, until nothing changes (Yannakakis, 1981: in a forest each of these values is in a solution).  Where
patterns close a circle, solutions are listed, up to a bound.

Knows terms as ints and nothing of how queries are spelled.  Built from an rdflib graph; later changes of that graph are
not seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from guided.errors import LimitError

__all__ = ["NOTHING_BOUND", "Bindings", "Pattern", "Triples", "Variable"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable by its number."""

    number: int


Pattern = tuple["Variable | int", int, "Variable | int"]
"""Subject, relation, object: terms or variables; the relation is always a term."""

_Edge = tuple[Variable, Variable]
_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Bindings:
    """What the variables of some patterns can be, all of it in some solution."""

    possible: bool = True
    """Is there a solution?"""
    values: Mapping[Variable, AbstractSet[int]] = field(default_factory=dict)
    edges: Mapping[_Edge, tuple[tuple[int, bool], ...]] = field(default_factory=dict)
    """Between two variables the relations that must hold, with whether they lead from the first to the second."""
    patterns: tuple[Pattern, ...] = ()
    rows: tuple[dict[Variable, int], ...] | None = None
    """All solutions, where patterns close a circle."""


NOTHING_BOUND = Bindings()


class Triples:
    """Triples by subject, by object and by relation."""

    def __init__(self, triples: Iterable[tuple[Any, Any, Any]], most_rows: int) -> None:
        self.terms: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.most_rows = most_rows
        self.steps = 0
        """Values looked at so far, a measure of the work done."""
        self.out: dict[int, dict[int, set[int]]] = {}
        self.into: dict[int, dict[int, set[int]]] = {}
        self.subjects: dict[int, set[int]] = {}
        """The terms that each relation leads from."""
        self.objects: dict[int, set[int]] = {}
        """The terms that each relation leads to."""
        self.loops: dict[int, set[int]] = {}
        """The terms that each relation leads from to themselves."""
        for triple in triples:
            subject, relation, target = (self._number(term) for term in triple)
            self.out.setdefault(subject, {}).setdefault(relation, set()).add(target)
            self.into.setdefault(target, {}).setdefault(relation, set()).add(subject)
            self.subjects.setdefault(relation, set()).add(subject)
            self.objects.setdefault(relation, set()).add(target)
            if subject == target:
                self.loops.setdefault(relation, set()).add(subject)

    def _number(self, term: Any) -> int:
        number = self.numbers.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
        return number

    def extend(self, bindings: Bindings, pattern: Pattern) -> Bindings:
        """The bindings that also meet one more pattern; `LimitError` when solutions must be listed and are too many."""
        subject, relation, target = pattern
        patterns = (*bindings.patterns, pattern)
        values, edges = dict(bindings.values), dict(bindings.edges)
        closes = False
        if isinstance(subject, Variable) and isinstance(target, Variable):
            if subject == target:
                _narrow(values, subject, self.loops.get(relation, _NONE))
            else:
                edge = (min(subject, target, key=_number_of), max(subject, target, key=_number_of))
                closes = edge not in edges and _path(edges, subject, target) is not None
                edges[edge] = (*edges.get(edge, ()), (relation, edge[0] == subject))
                _narrow(values, subject, self.subjects.get(relation, _NONE))
                _narrow(values, target, self.objects.get(relation, _NONE))
        elif isinstance(subject, Variable):
            _narrow(values, subject, self.into.get(target, {}).get(relation, _NONE))  # type: ignore[arg-type]
        elif isinstance(target, Variable):
            _narrow(values, target, self.out.get(subject, {}).get(relation, _NONE))
        elif target not in self.out.get(subject, {}).get(relation, _NONE):
            return Bindings(False, dict.fromkeys(values, _NONE), edges, patterns)
        if closes or bindings.rows is not None:
            return self._listed(bindings, pattern, edges)
        self._reduce(values, edges)
        return Bindings(bindings.possible and all(values.values()), values, edges, patterns)

    def _reduce(self, values: dict[Variable, AbstractSet[int]], edges: Mapping[_Edge, Any]) -> None:
        """Drop values without a neighbour, until none is dropped."""
        waiting = [*edges]
        while waiting:
            edge = waiting.pop()
            for own, other in (edge, edge[::-1]):
                forward = own == edge[0]
                before, there = values[own], values[other]
                self.steps += len(before)
                kept = {
                    value for value in before if not self._neighbours(value, edges[edge], forward).isdisjoint(there)
                }
                if len(kept) < len(before):
                    values[own] = kept
                    waiting += [each for each in edges if own in each and each not in waiting]

    def _neighbours(self, value: int, labels: Iterable[tuple[int, bool]], forward: bool) -> AbstractSet[int]:
        """The values that all relations of an edge join with this one."""
        found: AbstractSet[int] | None = None
        for relation, along in labels:
            index = self.out if along == forward else self.into
            ends = index.get(value, {}).get(relation, _NONE)
            found = ends if found is None else found & ends
            if not found:
                return _NONE
        return _NONE if found is None else found

    def leading(
        self, bindings: Bindings, first: Variable, second: Variable, relations: AbstractSet[int]
    ) -> frozenset[int]:
        """Those of some relations that lead from a value of one variable to one of another in the same solution."""
        left = set(relations)
        for value, connected in self._connected(bindings, first, second):
            if not left:
                break
            ways = self.out.get(value, {})
            self.steps += 1
            for relation in left & ways.keys():
                self.steps += 1
                if any(map(connected, ways[relation])):
                    left.discard(relation)
        return frozenset(relations - left)

    def _connected(self, bindings: Bindings, first: Variable, second: Variable) -> Iterator[tuple[int, Any]]:
        """For each value of a variable a test of the other's values: are both in one solution?"""
        if bindings.rows is not None:
            together: dict[int, set[int]] = {}
            for row in bindings.rows:
                together.setdefault(row[first], set()).add(row[second])
            for value, others in together.items():
                yield value, others.__contains__
            return
        there = bindings.values[second]
        if first == second:
            for value in bindings.values[first]:
                yield value, value.__eq__
            return
        path = _path(bindings.edges, first, second)
        if path is None:
            # Parts that share no variable: any pair will do.
            for value in bindings.values[first]:
                yield value, there.__contains__
            return
        *inner, last = path
        for value in bindings.values[first]:
            reached: AbstractSet[int] = {value}
            for edge, forward in inner:
                onto = bindings.values[edge[1] if forward else edge[0]]
                reached = {
                    end
                    for each in reached
                    for end in self._neighbours(each, bindings.edges[edge], forward)
                    if end in onto
                }
                self.steps += len(reached)
            yield value, partial(self._is_next_to, bindings.edges[last[0]], last[1], there, reached)

    def _is_next_to(
        self,
        labels: tuple[tuple[int, bool], ...],
        forward: bool,
        there: AbstractSet[int],
        reached: AbstractSet[int],
        end: int,
    ) -> bool:
        """Does an edge lead from what is reached to a value, and may that be one there?"""
        return end in there and not self._neighbours(end, labels, not forward).isdisjoint(reached)

    def _listed(self, bindings: Bindings, pattern: Pattern, edges: Mapping[_Edge, Any]) -> Bindings:
        """All solutions, one by one."""
        rows = bindings.rows
        if rows is None:
            rows = ({},)
            for earlier in bindings.patterns:
                rows = self._more_rows(rows, earlier)
        rows = self._more_rows(rows, pattern)
        names = rows[0] if rows else bindings.values
        values = {variable: frozenset(row[variable] for row in rows) for variable in names}
        return Bindings(bool(rows), values, edges, (*bindings.patterns, pattern), rows)

    def _more_rows(self, rows: Collection[dict[Variable, int]], pattern: Pattern) -> tuple[dict[Variable, int], ...]:
        found: list[dict[Variable, int]] = []
        subject, _, target = pattern
        for row in rows:
            for begin, end in self._matches(row, pattern):
                more = dict(row)
                if isinstance(subject, Variable):
                    more[subject] = begin
                if isinstance(target, Variable):
                    more[target] = end
                found.append(more)
                if len(found) > self.most_rows:
                    raise LimitError(
                        f"a query of the knowledge graph has more than {self.most_rows} solutions on the way",
                        remedy="Raise max_rows, or allow fewer patterns.",
                    )
        return tuple(found)

    def _matches(self, row: Mapping[Variable, int], pattern: Pattern) -> Iterator[tuple[int, int]]:
        subject, relation, target = pattern
        begins = row.get(subject) if isinstance(subject, Variable) else subject
        ends = row.get(target) if isinstance(target, Variable) else target
        starts = self.subjects.get(relation, _NONE) if begins is None else (begins,)
        if begins is None and ends is not None:
            starts = self.into.get(ends, {}).get(relation, _NONE)
        for begin in starts:
            targets = self.out.get(begin, {}).get(relation, _NONE)
            for end in targets if ends is None else (ends,) if ends in targets else ():
                if subject != target or end == begin:
                    yield begin, end


def _number_of(variable: Variable) -> int:
    return variable.number


def _narrow(values: dict[Variable, AbstractSet[int]], variable: Variable, to: AbstractSet[int]) -> None:
    known = values.get(variable)
    values[variable] = to if known is None else known & to


def _path(edges: Iterable[_Edge], first: Variable, second: Variable) -> list[tuple[_Edge, bool]] | None:
    """The edges from one variable to another, each with whether it is gone along; None where there is no way."""
    ways: dict[Variable, list[tuple[_Edge, bool]]] = {first: []}
    waiting = [first]
    while waiting:
        at = waiting.pop()
        if at == second:
            return ways[at]
        for edge in edges:
            if at in edge:
                after = edge[1] if at == edge[0] else edge[0]
                if after not in ways:
                    ways[after] = [*ways[at], (edge, at == edge[0])]
                    waiting.append(after)
    return None
