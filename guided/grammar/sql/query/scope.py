"""The attribute of a query: what its names may be, as far as it has been read.

SELECT comes before FROM.  So names that are used before FROM binds them are *pending*: FROM does not end before each
is a column of exactly one source, or of a query around.  There is always a FROM that binds them: a sub-query can define
any names, and a join with USING makes equal names one.  The idea of guards is PICARD's (Scholak et al., 2021).

A `Query` is immutable; queries within queries are a chain by ``parent``.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import NamedTuple

from guided.grammar.attributed.records import quickly_replaced
from guided.grammar.attributed.watched import asked, gathered, grown
from guided.grammar.attributed.words import Words
from guided.grammar.sql.query.laws import SQLITE_LAWS, Laws
from guided.grammar.sql.query.nesting import Nesting
from guided.grammar.sql.query.relations import EVERY, ROW_NAMES, Bare, Relation, Source, bare_columns, starred

__all__ = [
    "Call", "CallKind", "Clause", "Item", "Mixture", "Output", "Pending", "Query", "Recursion", "Taint", "Window",
    "WindowNeed", "WindowUse", "aliases", "bare_names", "barred_by_star", "bind", "clashing",
    "conflicts", "has_alias", "has_star", "has_windows", "is_barred", "is_demanded", "is_full", "is_local", "is_part",
    "knows", "must_be_whole", "refer", "taken_names", "unbound", "used_of", "waiting_among", "waiting_names",
]  # fmt: skip


class Clause(Enum):
    """Where in a query the text is."""

    # Python's own hashes the name, in Python; queries are looked up all the time.
    __hash__ = object.__hash__

    SELECT = "SELECT"
    FROM = "FROM"
    ON = "ON"
    WHERE = "WHERE"
    VALUES = "VALUES"
    GROUP = "GROUP BY"
    HAVING = "HAVING"
    WINDOW = "WINDOW"
    ORDER = "ORDER BY"
    COMPOUND_ORDER = "ORDER BY of a set operation"


class Taint(Enum):
    """What an expression holds that may not stand everywhere."""

    __hash__ = object.__hash__

    NONE = 0
    AGGREGATE = 1
    WINDOW = 2


class Item(Enum):
    """What is known of the name of the column that is being read, beside the names themselves."""

    __hash__ = object.__hash__

    FRESH = "nothing was read"
    COMPLEX = "no column alone"
    ROW_NUMBER = "the number of a row of SQLite, whose name is the primary key's if that is the same"


class Output(NamedTuple):
    """A column of the result; ``star`` stands for all columns of a source, or of all of them (empty)."""

    name: str | None
    taint: Taint = Taint.NONE
    star: str | None = None
    is_alias: bool = False
    """Was the name given with AS?"""
    is_lonely: bool = False
    """Has it a name of the engine's making that another column could have as well?"""


class CallKind(Enum):
    """Kinds of functions."""

    __hash__ = object.__hash__

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    WINDOW = "window"


class WindowNeed(Enum):
    """What the window must be that a name will stand for."""

    ANY = "any"
    UNFRAMED = "without a frame: another extends it"
    UNORDERED = "without an order: another that extends it has one"


class WindowUse(NamedTuple):
    """The name of a window before that is defined."""

    name: str
    need: WindowNeed


class Window(NamedTuple):
    """A window, as far as it was read; ``ordered`` also where the one that it extends is."""

    name: str = ""
    base: str = ""
    ordered: bool = False
    framed: bool = False


class Recursion(NamedTuple):
    """A common table expression within itself: one source of a later query of its set operation."""

    name: str
    relation: Relation | None = None
    """None in its first query, which says what its columns are."""
    is_used: bool = False


class Mixture(Enum):
    """Functions of MariaDB that do not take each other's values: a statement has those of one kind."""

    __hash__ = object.__hash__

    JSON = "JSON"
    MOMENTS = "sums of dates and intervals"


class Call(NamedTuple):
    """A function whose arguments are being read; ``high`` is None where any number may come."""

    kind: CallKind
    low: int
    high: int | None
    given: int = 0


class Pending(NamedTuple):
    """A column that was named before FROM; ``qualifier`` is None for one without."""

    qualifier: str | None
    column: str
    """`EVERY` where only the qualifier must exist."""
    local: bool = False
    """Must this query's own FROM bind it?  An aggregate of a query around would be that query's."""
    optional: bool = False
    """Is it a string where no source has such a column?"""


@quickly_replaced
class Query(NamedTuple):
    """One SELECT, as far as it has been read."""

    parent: Query | None = None
    sees_parent: bool = False
    """May names of the query around be used here?"""
    tables: tuple[tuple[str, Relation], ...] = ()
    """Common table expressions in scope, the nearest first."""
    pending: frozenset[Pending] = frozenset()
    sources: tuple[Source, ...] = ()
    bound: bool = False
    clause: Clause = Clause.SELECT
    outputs: tuple[Output, ...] = ()
    result: tuple[str | None, ...] | None = None
    """Of a set operation: the columns of its first query."""
    terms: frozenset[str] = frozenset()
    """Of a set operation: the names that its ORDER BY may use."""
    width: int | None = None
    """The number of columns that are demanded."""
    item: str | Item = Item.FRESH
    named: bool = False
    """Was the item given a name?"""
    taint: Taint = Taint.NONE
    """What the expression holds that is being read."""
    calls: tuple[Call, ...] = ()
    alone: bool = False
    """Is what is read the beginning of a term of GROUP BY or ORDER BY, where a number alone is a position?"""
    needs_from: bool = False
    grouped: bool = False
    """Was GROUP BY read?"""
    name: str = ""
    """A qualifier or table whose name was just read."""
    relation: Relation | None = None
    """What was just read of FROM, or what a sub-query has returned."""
    nesting: Nesting = Nesting()
    parts: int = 1
    """Queries of the set operation, this one with them."""
    uses: frozenset[WindowUse] = frozenset()
    """Windows that wait to be defined."""
    defined: tuple[Window, ...] = ()
    window: Window | None = None
    """The window that is being read."""
    recursion: Recursion | None = None
    """What is being defined, if the query is one of the set operation that defines it."""
    cells: int = 0
    """Values of a row of VALUES behind the first, or of a row that another is compared with."""
    row: int = 0
    """Values of the row that is compared with another, or with what a sub-query gives."""
    may_redefine: bool = False
    """May a common table expression have the name of a table of the database?  None before it has used that yet."""
    laws: Laws = SQLITE_LAWS
    chain: int = 0
    """The sources before the last comma, if the conditions of joins do not know them."""
    plain: frozenset[tuple[str, str]] = frozenset()
    """Columns that are selected or grouped by alone, with their qualifiers (or none), if HAVING knows no others."""
    item_of: str = ""
    """The qualifier of the item."""
    has_call: bool = False
    """Has the item a bracket of a function in it?"""
    is_whole: bool = False
    """Was a name read that must be the whole term?"""
    is_distinct: bool = False
    """Must the columns of the result have different names?"""
    barred: frozenset[str] = frozenset()
    """Names that no column of the result may have: they would be ambiguous in the query around."""
    is_loose: bool = False
    """Was a join read that has no condition, so that the words of later ones may be another's?"""
    is_joined: bool = False
    """Has the condition of a join a column without a qualifier?  SQLite looks for it among later sources as well."""
    before_outer: int = 0
    """The sources before the last RIGHT or FULL JOIN, where ``*`` names what USING makes one of two."""
    no_order: bool = False
    """Is ORDER BY not allowed, as behind ROLLUP?"""
    mixture: Mixture | None = None
    """What the whole statement has, so far, of what must not meet."""
    no_star: bool = False
    """Must a star be all there is?  MariaDB takes those of EXISTS for one column each."""
    no_limit: bool = False
    """Is LIMIT not allowed, as in IN?"""
    is_mixed: bool = False
    """Was an operator read, so that the next operand is no column alone?"""
    values: Words | None = None
    """Those of the column that was just read, if they are known."""
    held: Words | None = None
    """What a string is held to here: it is compared with a column."""
    lists: tuple[Words | None, ...] = ()
    """The same for the items of lists behind IN that are open."""

    @property
    def own_names(self) -> frozenset[str]:
        """The names of the sources."""
        return _own_names_of(self)

    @property
    def is_starred(self) -> bool:
        """Is `*` all that a query of a demanded width has?"""
        return is_demanded(self) and bool(self.outputs) and self.outputs[-1].star is not None

    @property
    def missing_columns(self) -> int | None:
        """Columns that FROM must still add where it has to have a number of them, else None."""
        return _missing_columns(self) if is_demanded(self) else None

    def source(self, name: str) -> Source | None:
        """The source of this query by a name."""
        return next((source for source in self.sources if source.name == name), None)

    @property
    def outside(self) -> Query | None:
        """The query around, if its names may be used here: SQLite's GROUP BY and ORDER BY have none of them."""
        return self.parent if self.sees_parent and self.clause not in (Clause.GROUP, Clause.ORDER) else None

    @property
    def columns(self) -> tuple[str | None, ...]:
        """The columns of the result, once the sources are known."""
        found: list[str | None] = []
        for output in self.outputs:
            if output.star is None:
                found.append(output.name)
            elif output.star:
                source = self.source(output.star)
                found += source.relation.columns if source is not None else ()
            else:
                found += starred(self.sources)
        return tuple(found)


@asked("width")
def is_demanded(query: Query) -> bool:
    """Is a number of columns demanded?"""
    return query.width is not None


@asked("sources")
def _own_names_of(query: Query) -> frozenset[str]:
    return frozenset(source.name for source in query.sources)


@asked("outputs", "sources", "width")
def _missing_columns(query: Query) -> int | None:
    assert query.width is not None
    return query.width - len(starred(query.sources)) if query.is_starred else None


@gathered("outputs", False)
def has_star(output: Output) -> bool:
    """Has the result all columns of some source?"""
    return output.star is not None


@gathered("outputs", frozenset[str]())
def aliases(output: Output, most: Taint) -> frozenset[str]:
    """The names that were given with AS to columns of the result which hold no more than this."""
    named = output.is_alias and output.name is not None and output.taint.value <= most.value
    return frozenset((output.name,)) if named and output.name is not None else frozenset()


@gathered("outputs", False)
def has_alias(output: Output, name: str) -> bool:
    """Was a name given to a column of the result?"""
    return output.is_alias and output.name == name


@gathered("pending", frozenset[str]())
def waiting_among(pending: Pending, names: frozenset[str]) -> frozenset[str]:
    """Those of some names that wait for FROM without a qualifier."""
    return names & {pending.column} if pending.qualifier is None else frozenset()


@gathered("pending", frozenset[str]())
def used_of(pending: Pending, qualifier: str) -> frozenset[str]:
    """The columns that wait with a qualifier."""
    return frozenset((pending.column,)) if pending.qualifier == qualifier else frozenset()


@asked("pending", "sources")
def _must_wait(query: Query, is_alone: bool) -> bool:
    """Does a name wait that no query around can bind?  Of such none are known where the query is alone."""
    return any(is_alone or pending.local for pending in unbound(query))


@asked("sources")
def _has_sources(query: Query) -> bool:
    return bool(query.sources)


@asked("result")
def is_part(query: Query) -> bool:
    """Is it a later query of a set operation?"""
    return query.result is not None


def is_local(query: Query) -> bool:
    """Is the text in the arguments of an aggregate?"""
    return any(call.kind is CallKind.AGGREGATE for call in query.calls)


@asked("sources", "clause", "laws", "chain", "is_loose", "calls", "outputs", "plain", "alone")
def bare_names(query: Query, inner: bool = False) -> Bare:
    """The names without a qualifier that the clause knows of the query itself; ambiguous ones are refused.

    ``inner``: is it a query within that asks?
    """
    found = bare_columns(query.sources)
    if inner and len(query.sources) == 1:
        found = found._replace(unique=found.unique - query.sources[0].relation.row_names)
    if query.clause is Clause.ON and query.laws.comma_apart:
        unique = found.unique & bare_columns(query.sources[query.chain :]).unique
        if query.is_loose:
            unique -= frozenset[str]().union(*(source.merged for source in query.sources))
        return Bare(unique, (found.unique | found.ambiguous) - unique)
    return _late_names(query, found, inner) if _looks_at_result(query) else found


def _looks_at_result(query: Query) -> bool:
    """Are names those of the result first?"""
    late = query.clause in (Clause.GROUP, Clause.HAVING, Clause.ORDER)
    return query.laws.selected_first and late and all(call.kind is CallKind.SCALAR for call in query.calls)


def _late_names(query: Query, found: Bare, inner: bool) -> Bare:
    """Where names of the result come first: those of which only one column is meant."""
    times = Counter(name for name in query.columns if name is not None)
    tainted = {output.name: output.taint for output in query.outputs if output.taint is not Taint.NONE}
    everywhere = found.unique | found.ambiguous | frozenset(times)
    if query.clause is Clause.HAVING:
        grouped = frozenset(name for _, name in query.plain) & found.unique
        unique = {name for name in grouped if not times[name]}
        most = Taint.NONE if inner else Taint.AGGREGATE
        unique |= {name for name in times if times[name] == 1 and tainted.get(name, most).value <= most.value}
        return Bare(frozenset(unique), everywhere - unique)
    unique = {name for name in found.unique if times[name] < 2 and tainted.get(name) is not Taint.WINDOW}
    for name in times:
        taint = tainted.get(name, Taint.NONE)
        if times[name] > 1 or (query.clause is Clause.GROUP and taint is not Taint.NONE):
            continue
        if query.alone or (taint is not Taint.AGGREGATE and name not in found.ambiguous):
            unique.add(name)
    return Bare(frozenset(unique), everywhere - unique)


def must_be_whole(query: Query, name: str) -> bool:
    """Does a name mean a column of the result only if it is the whole term?"""
    if not _looks_at_result(query) or query.clause is Clause.HAVING:
        return False
    bare = bare_columns(query.sources)
    if name in bare.unique:
        return False
    return name in bare.ambiguous or any(
        output.name == name and output.taint is Taint.AGGREGATE for output in query.outputs
    )


def knows(query: Query, qualifier: str, column: str) -> bool:
    """May a column of a source be used in the clause?"""
    source = query.source(qualifier)
    if source is None or column not in source.relation.named:
        return False
    if query.laws.comma_apart and query.clause is Clause.ON:
        return source in query.sources[query.chain :]
    if query.clause is Clause.HAVING and _looks_at_result(query):
        return (
            (qualifier, column) in query.plain
            or (("", column) in query.plain and column in bare_columns(query.sources).unique)
            or any(output.star in ("", qualifier) for output in query.outputs)
        )
    return True


def is_barred(query: Query, column: str) -> bool:
    """Would a column of some source get into the result by its star, though none of that name may be there?"""
    return column in barred_by_star(query)


def barred_by_star(query: Query) -> frozenset[str]:
    """The names that no column of a source may have, since the result has all of them."""
    if not has_star(query):
        return frozenset()
    named = frozenset(output.name for output in query.outputs if output.name is not None)
    return query.barred | (named if query.is_distinct else frozenset())


MOST_PENDING = 300
"""Columns that wait for FROM: a sub-query may have to define them, and results have at most 2,000 columns in SQLite."""
MOST_QUALIFIERS = 24
"""Sources that wait for FROM; a join has at most 64 in SQLite."""


def is_full(query: Query, qualifier: str | None) -> bool:
    """May no more names of a source, or without one, wait for FROM?"""
    if _few_wait(query):
        return False
    waiting = {pending.qualifier for pending in query.pending}
    return len(query.pending) >= MOST_PENDING or (qualifier not in waiting and len(waiting) >= MOST_QUALIFIERS)


_SPARE = 8
"""Names that a question about few of them leaves room for."""


@asked("pending", spare=_SPARE)
def _few_wait(query: Query) -> bool:
    """Do so few names wait for FROM that some more may?"""
    if len(query.pending) + _SPARE >= MOST_PENDING:
        return False
    return len(query.pending) + _SPARE < MOST_QUALIFIERS or (
        len({pending.qualifier for pending in query.pending}) + _SPARE < MOST_QUALIFIERS
    )


def has_windows(query: Query) -> bool:
    """May windows be used in the clause that is read?"""
    if query.clause is not Clause.ORDER:
        return query.clause is Clause.SELECT
    in_part = query.parent is not None and query.parent.clause is Clause.VALUES
    return query.laws.part_windows or not in_part


def refer(query: Query, pending: Pending, *, inner: bool = False) -> Query | None:
    """The query in which a name was used, None where it has no meaning there; ``inner``: was it used within?"""
    if inner and pending.qualifier is None and pending.column in ROW_NAMES and query.laws is SQLITE_LAWS:
        # The number of a row of a query around needs a qualifier.
        return None
    if not query.bound and query.clause is Clause.SELECT:
        barred = is_barred(query, pending.column)
        return None if barred else grown(query, "pending", pending)
    qualifier, column, local, optional = pending
    if qualifier is None:
        bare = bare_names(query, inner)
        if column in bare.ambiguous:
            return None
        if column in bare.unique:
            if optional:
                return None
            if query.clause is Clause.ON:
                # Sources that come later must not make it ambiguous.
                return grown(query._replace(is_joined=True), "pending", pending)
            return query
        if query.clause is Clause.ON and not query.laws.comma_apart:
            # A source that comes later may have it; two must not, and none beside RIGHT JOIN (`barred_below`).
            query = grown(query, "pending", pending._replace(local=True, optional=True))
    else:
        source = query.source(qualifier)
        if source is not None:
            return query if column == EVERY or knows(query, qualifier, column) else None
    outside = query.outside
    if outside is None or local:
        return query if optional else None
    changed = refer(outside, pending, inner=True)
    return None if changed is None else query._replace(parent=changed)


@asked("sources", "pending", "is_distinct", "outputs")
def conflicts(query: Query) -> frozenset[str]:
    """Pending names without a qualifier that several sources have."""
    return clashing(query, bare_columns(query.sources).ambiguous)


def clashing(query: Query, names: frozenset[str]) -> frozenset[str]:
    """Those of some names that no two sources may have."""
    if not names or (query.is_distinct and has_output_of_all(query)):
        return names
    return waiting_among(query, names)


@gathered("outputs", False)
def has_output_of_all(output: Output) -> bool:
    """Has the result all columns of all sources?"""
    return output.star == ""


def waiting_names(query: Query) -> frozenset[str]:
    """Names without a qualifier that must not become ambiguous by a source."""
    found = frozenset(pending.column for pending in query.pending if pending.qualifier is None)
    if query.is_distinct and has_output_of_all(query):
        bare = bare_columns(query.sources)
        return found | bare.unique | bare.ambiguous
    return found


def taken_names(query: Query) -> frozenset[str]:
    """Names that wait without a qualifier, and that a source has; USING makes one of each and of another source's."""
    bare = bare_columns(query.sources)
    return clashing(query, bare.unique | bare.ambiguous)


@asked("pending", "sources")
def unbound(query: Query) -> frozenset[Pending]:
    """Pending names that no source of the query has."""
    bare = bare_columns(query.sources)
    names = query.own_names
    return frozenset(
        pending
        for pending in query.pending
        if not pending.optional
        and (pending.column not in bare.unique if pending.qualifier is None else pending.qualifier not in names)
    )


def bind(query: Query) -> Query | None:
    """The query behind its FROM clause, None while some name waits for a source."""
    if query.needs_from and not _has_sources(query):
        return None
    if _must_wait(query, query.outside is None) or conflicts(query):
        return None
    left = _left_strings(query)
    missing = unbound(query)
    after = query._replace(pending=frozenset(), bound=True, clause=Clause.WHERE, relation=None, name="")
    for pending in sorted((*missing, *left), key=str) if missing or left else ():
        outside = after.outside
        if outside is None or pending.local:
            if pending.optional:
                continue
            return None
        changed = refer(outside, pending, inner=True)
        if changed is None and pending.optional:
            # A column of the query around after all, or ambiguous there.
            changed = refer(outside, pending._replace(optional=False), inner=True)
        if changed is None:
            return None
        after = after._replace(parent=changed)
    if is_demanded(after) and not _is_of_width(after):
        return None
    return after


@asked("pending", "sources")
def _left_strings(query: Query) -> frozenset[Pending]:
    """Pending names that are strings where no query around has such a column."""
    taken = bare_columns(query.sources).unique
    return frozenset(pending for pending in query.pending if pending.optional and pending.column not in taken)


@asked("outputs", "sources", "width")
def _is_of_width(query: Query) -> bool:
    return len(query.columns) == query.width
