"""`GraphQueries`: the live language of SPARQL queries whose every triple pattern has a match with those before.

After SPARKLE (Lee and Shin, 2024).  A query is a row of slots (head, subject, relation, object, and so on), each a
choice among spelled terms; which ones depends on the patterns so far: a relation must touch the entity or one of the
values that a variable can still have, through all patterns.  So a query never names what does not exist, always runs,
and always has a result.  States are pairs of the query so far, as terms, and the slice of the slot's sorted options
that the letters so far begin.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from guided.constraint.live import TokenTree, name_bytes
from guided.errors import UnsatisfiableError
from guided.monitor.triples import NOTHING_BOUND, Bindings, Pattern, Triples, Variable

__all__ = ["GraphQueries", "Head"]


class _Slot(Enum):
    HEAD = "the form of the query"
    SUBJECT = "a subject"
    RELATION = "a relation"
    OBJECT = "an object"
    MORE = "another pattern or the end"
    DONE = "the end of the text"


@dataclass(frozen=True)
class Head:
    """How a query begins."""

    text: str
    projected: int
    """The first so many variables must be bound."""


@dataclass(frozen=True)
class _Query:
    """What is written: whole slots only."""

    slot: _Slot
    head: Head | None = None
    patterns: tuple[Pattern, ...] = ()
    subject: Variable | int | None = None
    relation: int | None = None

    @property
    def used(self) -> int:
        """Variables that occur so far, the open pattern's subject included."""
        terms = [term for pattern in self.patterns for term in (pattern[0], pattern[2])] + [self.subject]
        return 1 + max((term.number for term in terms if isinstance(term, Variable)), default=-1)

    @property
    def bound(self) -> int:
        """Variables that occur in whole patterns."""
        return replace(self, subject=None).used


_State = tuple[_Query, int, int, int]
"""``options[low:high]`` of the query's next slot begin with the letters so far, ``depth`` bytes of them."""


@dataclass(frozen=True)
class _Options:
    """What may stand in a slot, spelled and sorted, and what each stands for: a head, a term, a mark."""

    spelled: tuple[bytes, ...]
    meant: tuple[Any, ...]


class GraphQueries:
    """The live language of queries; `guided.monitor.knowledge_graph` makes it of a graph.

    ``spelled[i]`` and ``literal[i]`` are of ``triples.terms[i]``: how SPARQL spells the term, None where it is never
    named, and whether it is a literal.  ``relations`` may stand in the middle; ``rebuild`` is what pickling keeps.
    Raises `UnsatisfiableError` where no query over the graph has a result.
    """

    def __init__(
        self,
        triples: Triples,
        spelled: Sequence[bytes | None],
        *,
        names: tuple[str, ...],
        max_patterns: int,
        heads: tuple[Head, ...],
        literal: Sequence[bool],
        relations: frozenset[int],
        rebuild: Any,
    ) -> None:
        self.triples = triples
        self.names = names
        self.max_patterns = max_patterns
        self.heads = heads
        self._spelled = spelled
        variables = [name.encode() for name in names]
        self._longest = 1 + max(len(text) for text in (*spelled, *variables) if text is not None)
        self._literal = literal
        self._relations = relations
        self._rebuild = rebuild
        self._solved: dict[tuple[Pattern, ...], Bindings] = {(): NOTHING_BOUND}
        self._pointing: dict[tuple[Pattern, ...], dict[int, set[int]]] = {}
        self._options: dict[_Query, _Options] = {}
        self._rests: dict[_Query, bytes] = {}
        self._may_begin = frozenset(term for term in triples.out if spelled[term] is not None and not literal[term])
        self._naming = {
            term: frozenset(
                relation
                for relation, ends in ways.items()
                if relation in relations and any(spelled[end] is not None for end in ends)
            )
            for term, ways in triples.out.items()
        }
        """For each term the relations that lead to a term that can be named."""
        first = self._enter(_Query(_Slot.HEAD))
        if first is None:
            raise UnsatisfiableError("no query over this graph has a result", remedy="Give a graph with named triples.")
        self.start: Hashable = first

    def __reduce__(self) -> tuple[Any, ...]:
        return self._rebuild  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"SPARQL over {len(self.triples.terms)} terms"

    # The live language ------------------------------------------------------------------------------------------

    def step(self, at: _State, byte: int) -> _State | None:
        """One more letter of an option; behind its last one, the next slot."""
        query, low, high, depth = at
        if query.slot is _Slot.DONE:
            return None
        options = self._of(query)

        def letter(option: bytes) -> int:
            return option[depth]

        low = bisect_left(options.spelled, byte, low, high, key=letter)
        high = bisect_left(options.spelled, byte + 1, low, high, key=letter)
        if low >= high:
            return None
        # Every option ends with a space or a bracket, so none begins another.
        if depth + 1 == len(options.spelled[low]):
            return self._enter(self._after(query, options.meant[low]))
        return query, low, high, depth + 1

    def _enter(self, query: _Query) -> _State | None:
        if query.slot is _Slot.DONE:
            return query, 0, 0, 0
        size = len(self._of(query).spelled)
        return (query, 0, size, 0) if size else None

    def following(self, at: _State) -> Sequence[int]:
        """The next letters of the options."""
        query, low, high, depth = at
        found = bytearray()
        while low < high:
            byte = self._of(query).spelled[low][depth]
            found.append(byte)
            low = bisect_left(self._of(query).spelled, byte + 1, low, high, key=lambda option: option[depth])
        return bytes(found)

    def may_end(self, at: _State) -> bool:
        """Behind the closing bracket."""
        return at[0].slot is _Slot.DONE

    def rest(self, at: _State) -> bytes:
        """The shortest option of each slot, and the end as soon as it may come: short, not always the shortest."""
        query, low, high, depth = at
        if query.slot is _Slot.DONE:
            return b""
        options = self._of(query)
        if low == 0 and high == len(options.spelled) and depth == 0:
            return self._rest_of(query)
        best = min(range(low, high), key=lambda place: (len(options.spelled[place]), options.spelled[place]))
        return options.spelled[best][depth:] + self._rest_of(self._after(query, options.meant[best]))

    def _rest_of(self, query: _Query) -> bytes:
        """From the beginning of a slot."""
        if query.slot is _Slot.DONE:
            return b""
        found = self._rests.get(query)
        if found is None:
            options = self._of(query)
            best = min(range(len(options.spelled)), key=lambda place: (len(options.spelled[place]), place))
            found = options.spelled[best] + self._rest_of(self._after(query, options.meant[best]))
            self._rests[query] = found
        return found

    def row(self, at: _State, tree: TokenTree) -> NDArray[Any] | None:
        """By walking."""
        return None

    def unfinished(self, at: _State, tree: TokenTree, limit: int) -> Iterable[int] | None:
        """None of them while there is room for all the patterns that may be left, at their longest."""
        patterns = self.max_patterns - len(at[0].patterns)
        head = 0 if at[0].head else max(len(head.text) for head in self.heads)
        return () if limit >= head + patterns * (3 * (self._longest + 1) + 2) + 1 else None

    def expected(self, at: _State) -> str:
        """The slot, and its next letters."""
        if at[0].slot is _Slot.DONE:
            return str(at[0].slot.value)
        return f"{at[0].slot.value}, {name_bytes(self.following(at))}"

    # Slots ------------------------------------------------------------------------------------------------------

    def _of(self, query: _Query) -> _Options:
        found = self._options.get(query)
        if found is None:
            pairs = sorted(self._find(query), key=lambda pair: pair[0])
            found = _Options(tuple(spelled for spelled, _ in pairs), tuple(meant for _, meant in pairs))
            self._options[query] = found
        return found

    def _after(self, query: _Query, meant: Any) -> _Query:
        """The query with one more slot filled."""
        if query.slot is _Slot.HEAD:
            return _Query(_Slot.SUBJECT, meant)
        if query.slot is _Slot.SUBJECT:
            return replace(query, slot=_Slot.RELATION, subject=meant)
        if query.slot is _Slot.RELATION:
            return replace(query, slot=_Slot.OBJECT, relation=meant)
        if query.slot is _Slot.OBJECT:
            assert query.subject is not None and query.relation is not None
            return _Query(_Slot.MORE, query.head, (*query.patterns, (query.subject, query.relation, meant)))
        return replace(query, slot=meant)

    def _find(self, query: _Query) -> Iterator[tuple[bytes, Any]]:
        if query.slot is _Slot.HEAD:
            for head in self.heads:
                if any(True for _ in self._subjects(_Query(_Slot.SUBJECT, head))):
                    yield head.text.encode(), head
        elif query.slot is _Slot.SUBJECT:
            yield from ((self._text(subject), subject) for subject in self._subjects(query))
        elif query.slot is _Slot.RELATION:
            assert query.subject is not None
            yield from ((self._text(each), each) for each in self._relations_of(query, query.subject))
        elif query.slot is _Slot.OBJECT:
            assert query.subject is not None and query.relation is not None
            yield from ((self._text(each), each) for each in self._objects(query, query.subject, query.relation))
        else:
            assert query.head is not None
            if query.used >= query.head.projected:
                yield b"}", _Slot.DONE
            more = replace(query, slot=_Slot.SUBJECT)
            if len(query.patterns) < self.max_patterns and any(True for _ in self._subjects(more)):
                yield b". ", _Slot.SUBJECT

    def _subjects(self, query: _Query) -> Iterator[Variable | int]:
        """The terms that can begin another pattern."""
        bound = [Variable(number) for number in range(query.bound)]
        if query.patterns and not bound:
            return
        for variable in bound:
            if self._begins(query, variable):
                yield variable
        if query.bound < len(self.names) and self._relations_of(query, Variable(query.bound)):
            yield Variable(query.bound)
        # What an entity must do for a relation to be found is the same for all of them.
        if not query.patterns:
            may_end_in_a_variable, may_end_otherwise = self._ends(query, 0)
            for entity in self._may_begin:
                into_variable = may_end_in_a_variable and not self._relations.isdisjoint(self.triples.out[entity])
                if into_variable or (may_end_otherwise and self._naming[entity]):
                    yield entity
        elif self._ends(query, query.bound)[1]:
            # The object will have to be a variable that is bound, so the subject is next to one of its values.
            for entity, relations in self._pointing_to(query).items():
                if entity in self._may_begin and not self._relations.isdisjoint(relations):
                    yield entity

    def _begins(self, query: _Query, variable: Variable) -> bool:
        """Is there a relation for a variable that is bound?  Nearly always its first value has one."""
        variable_ends, others_end = self._ends(query, query.bound)
        for value in self._bindings(query).values[variable] if variable_ends or others_end else ():
            if variable_ends and not self._relations.isdisjoint(self.triples.out.get(value, ())):
                return True
            if others_end and self._naming.get(value):
                return True
        return bool(self._relations_of(query, variable))

    def _ends(self, query: _Query, used: int) -> tuple[bool, bool]:
        """May a fresh variable end the open pattern, and may anything else, as far as the head's variables go?

        ``used`` counts the variables that occur, the pattern's subject included.
        """
        assert query.head is not None
        later = self.max_patterns - len(query.patterns) - 1
        missing = query.head.projected - used
        fresh = used < len(self.names) and missing - 1 <= later
        return fresh, not (missing > later or (missing > 0 and not used))

    def _relations_of(self, query: _Query, subject: Variable | int) -> set[int] | frozenset[int]:
        """The relations that touch what the subject may be, and for which some object can stand."""
        triples, first = self.triples, not query.patterns
        fresh = isinstance(subject, Variable) and subject.number >= query.bound
        variable_ends, others_end = self._ends(query, query.bound + fresh)
        found: set[int] = set()
        if isinstance(subject, Variable) and not fresh:
            values = self._bindings(query).values[subject]
            triples.steps += len(values)
            for value in values:
                found.update(triples.out.get(value, ()) if variable_ends else self._naming.get(value, ()))
            if not others_end:
                return found & self._relations if variable_ends else frozenset()
            if not variable_ends:
                for number in range(query.bound):
                    left = self._relations - found
                    found |= triples.leading(self._bindings(query), subject, Variable(number), left)
            return found & self._relations
        if fresh and first:
            if variable_ends:
                return self._relations
            named = {relation for relations in self._naming.values() for relation in relations}
            return (named | triples.loops.keys()) & self._relations if others_end else frozenset()
        if fresh:
            if others_end:
                for number in range(query.bound):
                    for value in self._bindings(query).values[Variable(number)]:
                        found.update(triples.into.get(value, ()))
            return found & self._relations
        assert isinstance(subject, int)
        if first:
            ways = triples.out.get(subject, {})
            if variable_ends:
                return self._relations & ways.keys()
            return self._naming.get(subject, frozenset()) if others_end else frozenset()
        return self._pointing_to(query).get(subject, set()) & self._relations if others_end else frozenset()

    def _objects(self, query: _Query, subject: Variable | int, relation: int) -> Iterator[Variable | int]:
        """The terms that can end the pattern."""
        fresh = isinstance(subject, Variable) and subject.number >= query.bound
        joined = not query.patterns or (isinstance(subject, Variable) and not fresh)
        variable_ends, others_end = self._ends(query, query.used)
        if joined and variable_ends:
            # With a variable as the object, any triple of the relation that the subject touches will do.
            yield Variable(query.used)
        if not others_end:
            return
        for number in range(query.bound):
            if self._matches(query, subject, relation, Variable(number)):
                yield Variable(number)
        if fresh and not query.patterns and self.triples.loops.get(relation):
            yield subject
        if joined:
            for target in self._targets(query, subject, relation):
                if self._spelled[target] is not None:
                    yield target

    def _targets(self, query: _Query, subject: Variable | int, relation: int) -> AbstractSet[int]:
        """The terms that a relation leads to from what the subject may be."""
        if not isinstance(subject, Variable):
            return self.triples.out.get(subject, {}).get(relation, frozenset())
        if subject.number >= query.bound:
            return self.triples.objects.get(relation, frozenset())
        values = self._bindings(query).values[subject]
        self.triples.steps += len(values)
        return {end for value in values for end in self.triples.out.get(value, {}).get(relation, ())}

    def _matches(self, query: _Query, subject: Variable | int, relation: int, target: Variable) -> bool:
        """Can the pattern end in a variable that is bound?"""
        if isinstance(subject, Variable) and subject.number < query.bound:
            return bool(self.triples.leading(self._bindings(query), subject, target, {relation}))
        if isinstance(subject, Variable):
            values = self._bindings(query).values[target]
            return any(relation in self.triples.into.get(value, ()) for value in values)
        ends: AbstractSet[int] = self.triples.out.get(subject, {}).get(relation, frozenset())
        return not self._bindings(query).values[target].isdisjoint(ends)

    def _pointing_to(self, query: _Query) -> dict[int, set[int]]:
        """For each term next to a value of a bound variable the relations that lead there."""
        found = self._pointing.get(query.patterns)
        if found is None:
            found = self._pointing[query.patterns] = {}
            values = {value for values in self._bindings(query).values.values() for value in values}
            for value in values:
                for relation, begins in self.triples.into.get(value, {}).items():
                    self.triples.steps += len(begins)
                    for begin in begins:
                        found.setdefault(begin, set()).add(relation)
        return found

    def _bindings(self, query: _Query) -> Bindings:
        found = self._solved.get(query.patterns)
        if found is None:
            before = self._bindings(replace(query, patterns=query.patterns[:-1]))
            found = self._solved[query.patterns] = self.triples.extend(before, query.patterns[-1])
        return found

    def _text(self, term: Variable | int) -> bytes:
        if isinstance(term, Variable):
            return f"?{self.names[term.number]} ".encode()
        spelled = self._spelled[term]
        assert spelled is not None
        return spelled + b" "
