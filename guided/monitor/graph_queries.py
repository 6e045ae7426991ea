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
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from guided.errors import UnsatisfiableError
from guided.monitor.live import TokenTree, name_bytes
from guided.monitor.triples import NOTHING_BOUND, Pattern, Solutions, Triples, Variable

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
    """What may stand in a slot, spelled and sorted, and the query after each."""

    spelled: tuple[bytes, ...]
    after: tuple[_Query, ...]


class GraphQueries:
    """The live language of queries; `guided.monitor.knowledge_graph` makes it of a graph.

    ``spelled[i]`` and ``literal[i]`` are of ``triples.terms[i]``: how SPARQL spells the term, None where it is never
    named, and whether it is a literal.  ``relations`` may stand in the middle; ``rebuild`` is what pickling keeps.
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
        self._solved: dict[tuple[Pattern, ...], Solutions] = {(): NOTHING_BOUND}
        self._values: dict[tuple[tuple[Pattern, ...], Variable], frozenset[int]] = {}
        self._options: dict[_Query, _Options] = {}
        self._may_begin = frozenset(term for term in triples.out if spelled[term] is not None and not literal[term])
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
            return self._enter(options.after[low])
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
        out = bytearray()
        query, low, high, depth = at
        while query.slot is not _Slot.DONE:
            options = self._of(query)
            places = range(low, high)
            best = min(places, key=lambda place: (len(options.spelled[place]), options.spelled[place]))
            out += options.spelled[best][depth:]
            query = options.after[best]
            low, high, depth = 0, len(self._of(query).spelled) if query.slot is not _Slot.DONE else 0, 0
        return bytes(out)

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
            found = _Options(tuple(spelled for spelled, _ in pairs), tuple(after for _, after in pairs))
            self._options[query] = found
        return found

    def _find(self, query: _Query) -> Iterator[tuple[bytes, _Query]]:
        if query.slot is _Slot.HEAD:
            for head in self.heads:
                after = _Query(_Slot.SUBJECT, head)
                if any(True for _ in self._subjects(after)):
                    yield head.text.encode(), after
        elif query.slot is _Slot.SUBJECT:
            for subject in self._subjects(query):
                yield self._text(subject), replace(query, slot=_Slot.RELATION, subject=subject)
        elif query.slot is _Slot.RELATION:
            assert query.subject is not None
            for relation in self._relations_of(query, query.subject):
                yield self._text(relation), replace(query, slot=_Slot.OBJECT, relation=relation)
        elif query.slot is _Slot.OBJECT:
            assert query.subject is not None and query.relation is not None
            for target in self._objects(query, query.subject, query.relation):
                patterns = (*query.patterns, (query.subject, query.relation, target))
                yield self._text(target), _Query(_Slot.MORE, query.head, patterns)
        else:
            assert query.head is not None
            if query.used >= query.head.projected:
                yield b"}", replace(query, slot=_Slot.DONE)
            more = replace(query, slot=_Slot.SUBJECT)
            if len(query.patterns) < self.max_patterns and any(True for _ in self._subjects(more)):
                yield b". ", more

    def _subjects(self, query: _Query) -> Iterator[Variable | int]:
        """The terms that can begin another pattern."""
        bound = [Variable(number) for number in range(query.bound)]
        if query.patterns and not bound:
            return
        for variable in bound:
            if self._begins(query, variable):
                yield variable
        if query.bound < len(self.names) and self._begins(query, Variable(query.bound)):
            yield Variable(query.bound)
        entities: Iterable[int] = self._may_begin
        if query.patterns:
            # The object will have to be a variable that is bound, so the subject is next to one of its values.
            entities = {
                begin
                for variable in bound
                for value in self._values_of(query, variable)
                for begins in self.triples.into.get(value, {}).values()
                for begin in begins
            } & self._may_begin
        for entity in entities:
            if self._begins(query, entity):
                yield entity

    def _begins(self, query: _Query, subject: Variable | int) -> bool:
        after = replace(query, slot=_Slot.RELATION, subject=subject)
        return any(True for _ in self._relations_of(after, subject))

    def _relations_of(self, query: _Query, subject: Variable | int) -> Iterator[int]:
        """The relations that touch what the subject may be, and for which some object can stand."""
        touching: set[int] = set()
        if isinstance(subject, Variable) and subject.number >= query.bound:
            if query.patterns:
                for number in range(query.bound):
                    for value in self._values_of(query, Variable(number)):
                        touching.update(self.triples.into.get(value, ()))
            else:
                touching = set(self._relations)
        else:
            for value in self._values_of(query, subject):
                touching.update(self.triples.out.get(value, ()))
        for relation in touching & self._relations:
            if any(True for _ in self._objects(query, subject, relation)):
                yield relation

    def _objects(self, query: _Query, subject: Variable | int, relation: int) -> Iterator[Variable | int]:
        """The terms that can end the pattern."""
        assert query.head is not None
        later = self.max_patterns - len(query.patterns) - 1
        missing = query.head.projected - query.used
        fresh = isinstance(subject, Variable) and subject.number >= query.bound
        joined = not query.patterns or (isinstance(subject, Variable) and not fresh)
        used = query.used
        if joined and used < len(self.names) and missing - 1 <= later:
            # With a variable as the object, any triple of the relation that the subject touches will do.
            yield Variable(used)
        if missing > later or (missing > 0 and not used):
            return
        for number in range(query.bound):
            if self._matches(query, (subject, relation, Variable(number))):
                yield Variable(number)
        if fresh and not query.patterns and self._loops(relation):
            yield subject
        if joined:
            targets: set[int] = set()
            if fresh:
                targets.update(end for ways in self.triples.out.values() for end in ways.get(relation, ()))
            else:
                for value in self._values_of(query, subject):
                    targets.update(self.triples.out.get(value, {}).get(relation, ()))
            for target in targets:
                if self._spelled[target] is not None:
                    yield target

    def _loops(self, relation: int) -> bool:
        return any(begin in ways.get(relation, ()) for begin, ways in self.triples.out.items())

    def _values_of(self, query: _Query, term: Variable | int) -> frozenset[int]:
        if not isinstance(term, Variable):
            return frozenset((term,))
        key = (query.patterns, term)
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = self._solutions(query.patterns).values(term)
        return found

    def _solutions(self, patterns: tuple[Pattern, ...]) -> Solutions:
        found = self._solved.get(patterns)
        if found is None:
            found = self.triples.extend(self._solutions(patterns[:-1]), patterns[-1])
            self._solved[patterns] = found
        return found

    def _matches(self, query: _Query, pattern: Pattern) -> bool:
        return bool(self._solutions((*query.patterns, pattern)).rows)

    def _text(self, term: Variable | int) -> bytes:
        if isinstance(term, Variable):
            return f"?{self.names[term.number]} ".encode()
        spelled = self._spelled[term]
        assert spelled is not None
        return spelled + b" "
