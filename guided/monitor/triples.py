"""An in-memory index of a knowledge graph, and the solutions of a few triple patterns in it.

Knows terms as ints and nothing of how queries are spelled.  Built from an rdflib graph; later changes of that graph are
not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from guided.errors import LimitError

__all__ = ["Pattern", "Solutions", "Triples", "Variable"]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable by its number."""

    number: int


Pattern = tuple["Variable | int", int, "Variable | int"]
"""Subject, relation, object: terms or variables; the relation is always a term."""


@dataclass(frozen=True)
class Solutions:
    """All ways to bind the variables of some patterns; ``rows`` are in the order of ``variables``."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[int, ...], ...]

    def values(self, variable: Variable) -> frozenset[int]:
        """What a variable may be."""
        place = self.variables.index(variable)
        return frozenset(row[place] for row in self.rows)


NOTHING_BOUND = Solutions((), ((),))


class Triples:
    """Triples by subject, by object and by relation."""

    def __init__(self, triples: Iterable[tuple[Any, Any, Any]], most_rows: int) -> None:
        self.terms: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.most_rows = most_rows
        self.out: dict[int, dict[int, set[int]]] = {}
        self.into: dict[int, dict[int, set[int]]] = {}
        for triple in triples:
            subject, relation, target = (self._number(term) for term in triple)
            self.out.setdefault(subject, {}).setdefault(relation, set()).add(target)
            self.into.setdefault(target, {}).setdefault(relation, set()).add(subject)
        self._values: dict[tuple[int, Variable], frozenset[int]] = {}

    def _number(self, term: Any) -> int:
        number = self.numbers.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
        return number

    def extend(self, solutions: Solutions, pattern: Pattern) -> Solutions:
        """The solutions that also meet one more pattern; `LimitError` when they are too many."""
        subject, _, target = pattern
        fresh = [
            term for term in dict.fromkeys((subject, target))
            if isinstance(term, Variable) and term not in solutions.variables
        ]  # fmt: skip
        rows: dict[tuple[int, ...], None] = {}
        for row in solutions.rows:
            for ends in self._matches(solutions, row, pattern):
                more = tuple(ends[0] if term == subject else ends[1] for term in fresh)
                rows[row + more] = None
                if len(rows) > self.most_rows:
                    raise LimitError(
                        f"a query of the knowledge graph has more than {self.most_rows} solutions on the way",
                        remedy="Raise max_rows, or allow fewer patterns.",
                    )
        return Solutions((*solutions.variables, *fresh), tuple(rows))

    def _matches(self, solutions: Solutions, row: tuple[int, ...], pattern: Pattern) -> Iterator[tuple[int, int]]:
        subject, relation, target = pattern
        begins = self._bound(solutions, row, subject)
        ends = self._bound(solutions, row, target)
        if begins is not None:
            targets = self.out.get(begins, {}).get(relation, ())
            for end in targets if ends is None else (ends,) if ends in targets else ():
                if subject != target or end == begins:
                    yield begins, end
        elif ends is not None:
            for begin in self.into.get(ends, {}).get(relation, ()):
                yield begin, ends
        else:
            for begin, relations in self.out.items():
                for end in relations.get(relation, ()):
                    if subject != target or end == begin:
                        yield begin, end

    @staticmethod
    def _bound(solutions: Solutions, row: tuple[int, ...], term: Variable | int) -> int | None:
        if not isinstance(term, Variable):
            return term
        return row[solutions.variables.index(term)] if term in solutions.variables else None
