"""The attribute of a query whose types are followed: names as in `guided.grammar.sql.query.scope`, and their types.

Names that SELECT uses before FROM binds them are pending with the type that they are used as; FROM does not end before
each is a column of that type.  A `Query` is immutable; queries within queries are a chain by ``parent``.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Any, NamedTuple

from guided.grammar.attributed.records import quickly_replaced
from guided.grammar.sql.query.relations import EVERY
from guided.grammar.sql.query.typed.columns.traces import BREAK, left_of_groups, outside_groups
from guided.grammar.sql.query.typed.frames import UNKNOWN, Operand
from guided.grammar.sql.query.typed.relations import Relation, Source, bare_columns, have_column, starred
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import BIT, SORTABLE
from guided.grammar.sql.query.typed.undecided import is_undecided, members_of, stands_for

__all__ = [
    "Clause",
    "Computed",
    "Output",
    "Pending",
    "Query",
    "Recursion",
    "Term",
    "bind",
    "conflicts",
    "depends",
    "is_open",
    "needed",
    "queries_around",
    "queries_in_scope",
    "refer",
    "remaining",
    "size_of",
    "suits",
    "type_of",
    "unbound",
    "wanting",
]  # fmt: skip

Column = tuple[str | None, str]
"""A qualifier, or None, and a name."""


class Clause(Enum):
    """Where in a query the text is."""

    SELECT = "SELECT"
    FROM = "FROM"
    ON = "ON"
    WHERE = "WHERE"
    GROUP = "GROUP BY"
    HAVING = "HAVING"
    ORDER = "ORDER BY"
    LIMIT = "LIMIT"
    VALUES = "VALUES"
    WINDOW = "WINDOW"
    QUALIFY = "QUALIFY"


class Computed(IntEnum):
    """Does the engine compute what is read while it prepares, if it all is constant?"""

    NOT = 0
    """It does not, or what is read is not constant."""
    PART = 1
    """It does so for a part of an expression, wherever that stands, such as a condition of CASE."""
    SAFE = 2
    RISKY = 3
    """What was read may fail."""

    @property
    def is_whole(self) -> bool:
        """Does it compute all that is read, so that nothing in it may fail?"""
        return self >= Computed.SAFE


class Term(NamedTuple):
    """An expression of a window, which must be a group where rows are grouped, or made of groups."""

    loose: frozenset[Column]
    trace: tuple[str, ...] | None


class Output(NamedTuple):
    """A column of the result; ``star`` stands for all columns of a source, or of all of them (empty)."""

    name: str | None
    type: str
    star: str | None = None
    column: Column | None = None
    """The column that it is alone."""
    loose: frozenset[Column] = frozenset()
    """Columns outside aggregates, which must be grouped where rows are."""
    tainted: str = ""
    """The strongest that makes it no value of a row: ``aggregate``, ``window``, ``both``, ``rows``, ``volatile``."""
    trace: tuple[str, ...] | None = None
    """Its lexemes, where they are known."""
    terms: frozenset[Term] = frozenset()
    """Of its windows, what rows are parted and ordered by."""
    asked: bool = False
    """Has it a query within?"""
    refers: bool = False
    """Has it the name of a column before it in the result?"""
    implied: bool = False
    """Is its name that of a field, which only a query around knows?"""
    excluded: frozenset[str] = frozenset()
    """Of ``star``: the columns that it does not stand for."""
    replaced: tuple[Output, ...] = ()
    """Of ``star``: what stands for columns of their names."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Of ``star``: columns that get other names, with these."""


class Pending(NamedTuple):
    """A column that was named before FROM; ``type`` is empty where any will do, ``column`` `EVERY` for a source."""

    qualifier: str | None
    column: str
    type: str = ""
    local: bool = False
    """Must this query's own FROM bind it?  An aggregate of a query around would be that query's."""


class Recursion(NamedTuple):
    """The common table expression whose query is being read, which may read itself."""

    name: str
    names: tuple[str, ...] = ()
    """Of its columns, where they were listed."""
    relation: Relation | None = None
    """What may be read, once."""
    read: bool = False
    unites: bool = False
    """Is UNION its last operator?"""
    is_closed: bool = False
    """Had it another, behind which it does not read itself?"""
    sized: tuple[tuple[int, str], ...] = ()
    """Columns by their places whose types have a size, with the words of these: so must be those that are read."""


@quickly_replaced
class Query(NamedTuple):
    """One SELECT, as far as it has been read."""

    system: TypeSystem
    parent: Query | None = None
    sees_parent: bool = False
    """May names of the query around be used here?"""
    is_source: bool = False
    """Does it stand in FROM?"""
    in_part: bool = False
    """Is it in brackets, as a part of a set operation?"""
    tables: tuple[tuple[str, Relation], ...] = ()
    """Common table expressions in scope, the nearest first."""
    pending: frozenset[Pending] = frozenset()
    sources: tuple[Source, ...] = ()
    bound: bool = False
    clause: Clause = Clause.SELECT
    outputs: tuple[Output, ...] = ()
    goals: tuple[int, ...] | None = None
    """The types that each column of the result may have, where their number is demanded."""
    result: tuple[tuple[str | None, str], ...] | None = None
    """Of a set operation: the columns so far."""
    operators: frozenset[str] = frozenset()
    """Of a set operation: its operators so far."""
    distinct: bool = False
    frame: Any = None
    """The expression that is being read, or a call or the like whose next part comes (`typed.frames`)."""
    around: tuple[Any, ...] = ()
    """What waits around it, the outermost first."""
    value: str = ""
    """The type of the expression that was read last, with its name and, where it is one alone, its column."""
    label: tuple[str, int] = ("", 0)
    column: Column | None = None
    loose: frozenset[Column] = frozenset()
    tainted: str = ""
    terms: frozenset[Term] = frozenset()
    asked: bool = False
    refers: bool = False
    around_term: frozenset[Column] | None = None
    """Of a column of the result in a window of which an expression is read: the loose columns so far."""
    calls: tuple[str, ...] = ()
    """Aggregates and windows whose arguments are being read."""
    alone: bool = False
    """Is what is read the beginning of a term of GROUP BY or ORDER BY, where a literal alone is a position?"""
    aggregated: bool = False
    """Is there an aggregate?"""
    grouped: bool = False
    """Was GROUP BY read?"""
    groups: frozenset[Column] = frozenset()
    all_grouped: bool = False
    """Was it GROUP BY ALL?"""
    several_groupings: bool = False
    """Are rows grouped by some of the groups, too, so that no column depends on a key?"""
    grouped_outputs: frozenset[int] = frozenset()
    commas: bool = False
    """Are the sources separated by commas? What is joined then has other names in its condition."""
    distinct_on: frozenset[Column] = frozenset()
    """The columns of DISTINCT ON, with which ORDER BY must begin."""
    ordered: frozenset[Column] = frozenset()
    """The columns that ORDER BY has."""
    schema: str = ""
    """A schema whose name was just read."""
    crossed: bool = False
    """Is the source that is being read one that USING cannot follow?"""
    half: int | None = None
    """The sources before one that SEMI or ANTI JOIN begins, whose columns nothing names behind its condition."""
    needs_from: bool = False
    name: str = ""
    """A qualifier or table whose name was just read."""
    relation: Relation | None = None
    """What was just read of FROM."""
    depth: int = 0
    trace: tuple[str, ...] | None = None
    """Lexemes of the column that is being read."""
    recursion: Recursion | None = None
    windowed: bool = False
    """Is there a window?"""
    windows: frozenset[str] = frozenset()
    """The names of windows that are used, and those that WINDOW has."""
    defined_windows: frozenset[str] = frozenset()
    copied: frozenset[tuple[str, bool]] = frozenset()
    """Those from which others go on, and whether these have an order of their own."""
    groupings: frozenset[Column] = frozenset()
    """The arguments of GROUPING, which must be groups."""
    grouped_traces: frozenset[tuple[str, ...]] = frozenset()
    """Expressions that are groups, by their lexemes."""
    followed: frozenset[tuple[str, ...]] | None = None
    """What must be left of the term that is read, which is one of the columns; with a ``trace``: of a group in it."""
    no_null: int = 0
    """In the arguments of a function for which NULL matters: the number of frames around it, else none."""
    cell: int = 0
    """The place in a row of VALUES, or in a list of a source's columns."""
    barred: frozenset[str] = frozenset()
    """Names that no column of a source may have, since they were read as something else."""
    ungrouped: bool = False
    """Is a row of a source a value of the result, so that rows are not grouped?"""
    paths: frozenset[tuple[str, str]] = frozenset()
    """Structs with a field each, of which no source may have the names: a column of its would come first."""
    digits: int = 0
    """Of a decimal that is a type, before its scale."""
    computed: Computed = Computed.NOT
    amount: int = 0
    """Where that is computed: the digits of the expression that was read last (`typed.computed.digits`)."""

    @property
    def given_names(self) -> list[str | None]:
        """The names of the result that its own clauses know."""
        return [None if output.implied else output.name for output in self.outputs]

    @property
    def used(self) -> frozenset[Column]:
        """The columns outside aggregates that the result has so far."""
        terms = [*self.terms, *(term for output in self.outputs for term in output.terms)]
        loose = [*(output.loose for output in self.outputs), *(term.loose for term in terms)]
        return self.loose.union(self.around_term or (), *loose)

    @property
    def own_names(self) -> frozenset[str]:
        """The names of the sources."""
        return frozenset(source.name for source in self.sources)

    def source(self, name: str) -> Source | None:
        """The source of this query by a name."""
        return next((source for source in self.sources if source.name == name), None)

    @property
    def outside(self) -> Query | None:
        """The query around, if its names may be used here."""
        return self.parent if self.sees_parent and self.clause is not Clause.LIMIT else None

    @property
    def top(self) -> Operand:
        """The expression that is being read."""
        top = self.frame
        assert isinstance(top, Operand)
        return top

    def with_top(self, frame: Any) -> Query:
        """The query with another frame in place of the innermost."""
        return self._replace(frame=frame)

    def pushed(self, frame: Any) -> Query:
        """The query with one more frame."""
        if self.computed.is_whole and isinstance(frame, Operand):
            frame = frame._replace(computed=True)
        if self.frame is None:
            return self._replace(frame=frame)
        return self._replace(frame=frame, around=(*self.around, self.frame))

    def popped(self) -> Query:
        """The query without the innermost frame."""
        return self._replace(frame=self.around[-1] if self.around else None, around=self.around[:-1])

    @property
    def is_local(self) -> bool:
        """Is the text in the arguments of an aggregate?"""
        return "aggregate" in self.calls

    @property
    def is_grouped(self) -> bool:
        """Do the rows of the result stand for groups?"""
        return self.grouped or self.aggregated

    @property
    def is_starred(self) -> bool:
        """Are there columns of the result that only the sources will tell?"""
        return any(output.star is not None for output in self.outputs)

    @property
    def awaiting(self) -> Query | None:
        """The query that waits for names, as whose source this one's columns are given; by its first part only."""
        around = self.parent
        if around is None or self.result is not None:
            return None
        if not self.is_source:
            return around.awaiting if around.clause is Clause.VALUES and not around.sources and self.in_part else None
        if around.clause is not Clause.FROM or around.bound:
            return None
        waits = bool(around.pending or around.barred) or (around.is_starred and around.awaiting is not None)
        return around if waits else None

    @property
    def named_tables(self) -> tuple[tuple[str, Relation], ...]:
        """The common table expressions that FROM may name, the nearest first."""
        own = self.recursion
        if own is None or own.relation is None or own.read or self.aggregated:
            return self.tables
        if self.clause is not Clause.SELECT and not all(size_of(self, place) == size for place, size in own.sized):
            return self.tables
        return ((own.name, own.relation), *self.tables)


def size_of(query: Query, place: int) -> str | None:
    """The words for the size of a column of the result, empty where it has none; None where it is not known.

    It is known of a column alone of a stored table that FROM has.
    """
    output = query.outputs[place] if place < len(query.outputs) and not query.is_starred else None
    column = None if output is None or output.column is None else _own(query, output.column)
    source = None if column is None else query.source(column[0] or "")
    if column is None or source is None or not source.relation.is_stored:
        return None
    return dict(source.relation.sizes).get(column[1], "")


def queries_in_scope(query: Query) -> Iterable[Query]:
    """The queries whose columns may be used, the nearest first."""
    at: Query | None = query
    while at is not None:
        yield at
        at = None if at.is_local else at.outside


def queries_around(query: Query) -> Iterable[Query]:
    """The queries within which one stands, whether it sees their names or not, the nearest first."""
    at = query.parent
    while at is not None:
        yield at
        at = at.parent


def is_open(query: Query) -> bool:
    """Are its sources still to come?"""
    return not query.bound and query.clause is Clause.SELECT


def refer(query: Query, used: Pending, *, in_group: bool = False) -> Query | None:
    """The query in which a column was used, ``in_group`` in what will be one; None where it has no meaning there."""
    if not query.bound and query.clause is Clause.SELECT:
        if used.column in query.barred:
            return None
        if query.is_local:
            used = used._replace(local=True)
        grouped = used.local or not query.aggregated or _may_be_in_groups(query, used, in_group)
        if not (grouped and _can_share(query, used)):
            return None
        noted = _noted(query, (used.qualifier, used.column))
        return None if noted is None else noted._replace(pending=query.pending | {used})
    qualifier, column, kind, local = used
    if qualifier is None:
        bare = bare_columns(query.sources)
        if column in bare.ambiguous:
            return None
        if column in bare.unique:
            where, found = bare.unique[column]
            return _noted(query, (where, column)) if _fits(query, kind, found) else None
    else:
        source = query.source(qualifier)
        if source is not None:
            if column == EVERY:
                return query
            given = source.relation.types.get(column)
            fits = given is not None and _fits(query, kind, given)
            return _noted(query, (qualifier, column)) if fits else None
    outside = query.outside
    if outside is None or local:
        return None
    changed = refer(outside, used)
    return None if changed is None else query._replace(parent=changed)


def _fits(query: Query, wanted: str, given: str) -> bool:
    """Is a column of a source what was awaited, and one that could be grouped where SELECT has it?"""
    grouped = query.clause is Clause.SELECT and query.aggregated and not query.is_local
    return stands_for(query.system, wanted, given) and not (grouped and not SORTABLE & BIT[given])


def _may_be_in_groups(query: Query, used: Pending, in_group: bool) -> bool:
    """Can a column be grouped, or is it in groups only, as one that has no order must be?"""
    alike = [one for one in (*query.pending, used) if one[:2] == used[:2] and not one.local]
    unsorted = [one for one in alike if one.type and not SORTABLE & BIT[one.type]]
    return not unsorted or (in_group and len(unsorted) == len(alike) and used[:2] not in query.groupings)


def _can_share(query: Query, used: Pending) -> bool:
    """Is there a FROM for a column with and without qualifiers?  USING must make one of them, if types allow."""
    same = [pending for pending in (*query.pending, used) if pending.column == used.column]
    if len({pending.qualifier is None for pending in same}) == 1:
        return True
    types = [members_of(query.system, pending.type) for pending in same if pending.type]
    return not types or any(SORTABLE & BIT[name] for name in frozenset(types[0]).intersection(*types))


def _noted(query: Query, column: Column) -> Query | None:
    """The query in which one of its own columns was used; where rows are grouped it must be."""
    if query.is_local:
        return query
    if query.clause is Clause.SELECT:
        return query._replace(loose=query.loose | {column})
    late = query.clause in (Clause.ORDER, Clause.WINDOW, Clause.QUALIFY)
    if query.clause is Clause.HAVING or (late and query.is_grouped):
        return query if depends(query, column) or query.followed is not None else _following(query)
    return query


def _following(query: Query) -> Query | None:
    """The query in which what is read must become one of the groups, as which it has begun."""
    if query.trace is None or query.clause not in (Clause.ORDER, Clause.HAVING):
        return None
    left = left_of_groups(query.trace, query.grouped_traces)
    return query._replace(followed=left, trace=(BREAK,)) if left else None


def depends(query: Query, column: Column) -> bool:
    """Is a column of a source one of the groups, or does it depend on them?"""
    if column in query.groups:
        return True
    source = query.source(column[0] or "")
    key = frozenset() if source is None or query.several_groupings else source.relation.key
    return bool(key) and all((column[0], name) in query.groups for name in key)


def needed(query: Query) -> frozenset[Column]:
    """The columns of a query with its sources that must still be grouped."""
    if not query.is_grouped:
        return frozenset()
    outputs = [output for place, output in enumerate(query.outputs) if place not in query.grouped_outputs]
    every: list[Output | Term] = [*outputs, *(term for output in outputs for term in output.terms)]
    parts = [outside_groups(one.loose, one.trace, query.grouped_traces) for one in every]
    loose = frozenset(column for part in parts for column in part if not depends(query, column))
    return loose | (query.groupings - query.groups)


def remaining(query: Query) -> frozenset[Column]:
    """The columns of DISTINCT ON that ORDER BY must still have before others."""
    return query.distinct_on - query.ordered


def unbound(query: Query) -> frozenset[Pending]:
    """Pending names that no source of the query has, to stay."""
    sources = query.sources[: query.half]
    bare = bare_columns(sources)
    names = {source.name for source in sources}
    return frozenset(
        pending
        for pending in query.pending
        if (pending.column not in bare.unique if pending.qualifier is None else pending.qualifier not in names)
    )


def wanting(query: Query) -> frozenset[Pending]:
    """Those that the source which is being read should have."""
    return unbound(query) if query.half is None else frozenset()


def suits(query: Query, pending: Pending, kind: str) -> bool:
    """May a column of a type stand for one that waits, also where that must be grouped?"""
    # Those in aggregates need not be, but those in GROUPING; one that is used without an order is within a group.
    is_group = (query.aggregated and not pending.local) or pending[:2] in query.groupings
    held = is_group and pending.type != kind and not SORTABLE & BIT[kind]
    return not held and stands_for(query.system, pending.type, kind)


def conflicts(query: Query) -> frozenset[str]:
    """Pending names without a qualifier that several sources have."""
    waiting = {pending.column for pending in query.pending if pending.qualifier is None}
    return bare_columns(query.sources).ambiguous & waiting


def bind(query: Query) -> Query | None:
    """The query behind its FROM clause, None while some name waits for a source."""
    if conflicts(query) or (query.needs_from and not query.sources):
        return None
    missing = unbound(query)
    if missing and (query.parent is None or any(pending.local for pending in missing)):
        return None
    after = query._replace(pending=frozenset(), bound=True, clause=Clause.WHERE, relation=None, name="")
    for pending in sorted(missing, key=str):
        outside = after.outside
        if outside is None or pending.local or (query.system.lists and have_column(query.sources, pending.qualifier)):
            return None
        changed = refer(outside, pending)
        if changed is None:
            return None
        after = after._replace(parent=changed)
    outputs = tuple(bound for output in query.outputs for bound in _bound(after, output))
    if query.outputs and not outputs:
        return None
    if query.distinct and not all(SORTABLE & BIT[output.type] for output in outputs):
        return None
    distinct_on, groupings = (
        frozenset(own for own in (_own(after, column) for column in columns) if own is not None)
        for columns in (query.distinct_on, query.groupings)
    )
    return after._replace(outputs=outputs, distinct_on=distinct_on, groupings=groupings)


def _bound(query: Query, output: Output) -> list[Output]:
    """A column of the result with its sources and types, ``*`` written out."""
    if output.star is not None:
        columns = starred(query.sources, output.star, shared_first=query.system.shared_first)
        instead = {one.name: one for one in output.replaced}
        new = dict(output.renamed)
        return [
            _bound(query, instead[name])[0]
            if name in instead
            else Output(new.get(name or "", name), kind, None, (where, name or ""), frozenset([(where, name or "")]))
            for where, name, kind in columns
            if name not in output.excluded
        ]
    column = None if output.column is None else _own(query, output.column)
    kind = output.type
    if output.column is not None and (kind == UNKNOWN or is_undecided(kind)):
        kind = type_of(query, output.column) or kind
    loose, trace = _loose(query, output.loose), _all_traced(query, output.trace)
    terms = frozenset(Term(_loose(query, term.loose), _all_traced(query, term.trace)) for term in output.terms)
    return [output._replace(column=column, type=kind, loose=loose, trace=trace, terms=terms)]


def _loose(query: Query, columns: frozenset[Column]) -> frozenset[Column]:
    """The query's own of some columns."""
    return frozenset(own for own in (_own(query, column) for column in columns) if own is not None)


def _all_traced(query: Query, trace: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if trace is None else tuple(_traced(query, part) for part in trace)


def _traced(query: Query, part: str) -> str:
    """A part of a column as it is in clauses behind FROM: a column with the source that has it."""
    if not part.startswith("."):
        return part
    own = _own(query, (None, part[1:]))
    return part if own is None else f"{own[0] or ''}.{own[1]}"


def _own(query: Query, column: Column) -> Column | None:
    """A column by the source of the query that has it, None where a query around has it."""
    qualifier, name = column
    if qualifier is None:
        where = bare_columns(query.sources).unique.get(name)
        return None if where is None else (where[0], name)
    return column if query.source(qualifier) is not None else None


def type_of(query: Query | None, column: Column) -> str | None:
    """The type of a column in a query or around it."""
    qualifier, name = column
    while query is not None:
        if qualifier is None:
            where = bare_columns(query.sources).unique.get(name)
            if where is not None:
                return where[1]
        else:
            source = query.source(qualifier)
            if source is not None:
                if source.relation.is_value and name == source.name:
                    return source.relation.columns[0][1]
                return source.relation.types.get(name)
        query = query.outside
    return None
