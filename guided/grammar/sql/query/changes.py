"""What happens to the attribute of a query between its lexemes: queries begin and end, calls, items, sources, terms."""

from __future__ import annotations

from collections.abc import Callable

from guided.grammar.attributed.watched import asked, gathered, grown, later
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.barred import barred_below
from guided.grammar.sql.query.names.columns import may_be_named
from guided.grammar.sql.query.names.sources import can_derive, mergeable, own_source, with_source
from guided.grammar.sql.query.nesting import Binding
from guided.grammar.sql.query.outer_joins import starred_names
from guided.grammar.sql.query.relations import EVERY, Relation, Source, bare_columns, mergeable_names
from guided.grammar.sql.query.scope import (
    Call,
    CallKind,
    Clause,
    Item,
    Mixture,
    Output,
    Pending,
    Query,
    Taint,
    bind,
    conflicts,
    has_star,
    is_demanded,
    unbound,
    waiting_among,
)
from guided.grammar.sql.query.set_operations import relation_of, result_of, terms_of

Change = Callable[[Query], Query | None]


# Queries within queries -----------------------------------------------------------------------------------------------


def enter(*, sees: bool, width: int | None) -> Change:
    """Begin a query in brackets; ``sees``: may it use names of the query around?"""

    def change(query: Query) -> Query | None:
        if not limits.may_enter(query):
            return None
        nesting = limits.nested(query, sees=sees)
        return Query(query, sees, query.tables, width=width, nesting=nesting, laws=query.laws, mixture=query.mixture)

    return change


def enter_member(query: Query) -> Query | None:
    """Begin the query of IN, ANY or ALL: of one column, and without LIMIT."""
    entered = enter(sees=True, width=1)(query)
    return None if entered is None else entered._replace(no_limit=True)


def enter_existing(query: Query) -> Query | None:
    """Begin the query of EXISTS, whose columns do not matter."""
    entered = enter(sees=True, width=None)(query)
    return None if entered is None else entered._replace(no_star=query.laws.star_first)


def enter_source(*, merging: bool) -> Change:
    """Begin a query in FROM; where a number of columns is missing it has them all.

    ``merging``: may USING join it?
    """

    def change(query: Query) -> Query | None:
        # A query that is no leaf keeps the room for this one, which may be a leaf itself.
        if limits.is_leaf(query):
            return None
        return Query(
            query,
            False,
            query.tables,
            width=query.missing_columns,
            nesting=limits.nested(query, sees=False),
            laws=query.laws,
            is_distinct=query.laws.distinct_columns,
            barred=barred_below(query, merging=merging),
            mixture=query.mixture,
        )

    return change


def enter_part(query: Query) -> Query | None:
    """Begin a part of a set operation in brackets, which is the whole statement."""
    return enter(sees=False, width=query.width)(query._replace(clause=Clause.VALUES))


def leave_part(query: Query) -> Query:
    """Behind it: its columns are the part's, by names that ORDER BY may use."""
    around = query.parent
    assert around is not None
    outputs = tuple(Output(name, is_alias=name is not None) for name in result_of(query))
    around = around._replace(outputs=outputs, bound=True, clause=Clause.VALUES, mixture=query.mixture)
    # An ORDER BY behind a single part is the part's.
    return around._replace(no_order=query.no_order and around.parts == 1)


def leave(query: Query) -> Query:
    """The query around, with the columns of the one that ends."""
    assert query.parent is not None
    return query.parent._replace(relation=relation_of(query, result_of(query)), mixture=query.mixture)


def leave_operand(query: Query) -> Query:
    """The query around one whose value is used."""
    around = query.parent
    assert around is not None
    nesting = around.nesting._replace(chained=query.nesting.chained)
    return around._replace(relation=None, nesting=nesting, mixture=query.mixture)


deeper = limits.opened(1)
"""A bracket."""
shallower = limits.closed


# The list of columns --------------------------------------------------------------------------------------------------


def begin_item(query: Query) -> Query | None:
    """One more column, if as many are demanded."""
    if is_demanded(query) and _is_wide(query):
        return None
    if (query.is_distinct and _is_lonely(query)) or not limits.fits_item(query):
        return None
    return begun(query)._replace(item=Item.FRESH, taint=Taint.NONE, item_of="", has_call=False)


@asked("width", "outputs")
def _is_wide(query: Query) -> bool:
    """Has the result as many columns as are demanded?"""
    assert query.width is not None
    return len(query.outputs) >= query.width or query.is_starred


@gathered("outputs", False)
def _is_lonely(output: Output) -> bool:
    """Has a column a name that another could have as well?"""
    return output.is_lonely


_READ = frozenset(("item", "taint", "named"))


def _plain_output(query: Query) -> Output:
    """The column that was read, whatever its name is."""
    return Output(query.item if isinstance(query.item, str) else None, query.taint, is_alias=query.named)


def end_item(query: Query) -> Query | None:
    """The column is whole; None where it must have another name."""
    if _gives_names(query) and not query.named and _is_row_number(query):
        return None
    if not query.is_distinct and not query.barred and not query.laws.selected_first:
        output = later(query, _READ, _plain_output)
        return grown(query, "outputs", output)._replace(item=Item.FRESH, taint=Taint.NONE, named=False)
    name = query.item if isinstance(query.item, str) else None
    output = Output(name, query.taint, is_alias=query.named)
    if query.is_distinct and name is None:
        # Its name is its text, which is not known here: it is told from others only if it has a bracket.
        if query.outputs and not query.has_call:
            return None
        if any(other.name is None or "(" in other.name for other in query.outputs):
            return None
        output = output._replace(is_lonely=not query.has_call)
    elif not query.named and name is not None:
        starred = query.is_distinct and any(other.star is not None for other in query.outputs)
        if starred or not may_be_named(query, name):
            return None
    plain = query.plain
    if query.laws.selected_first and name is not None and not query.named:
        plain |= {(query.item_of, name)}
    return query._replace(outputs=(*query.outputs, output), item=Item.FRESH, taint=Taint.NONE, named=False, plain=plain)


@asked("item")
def _is_row_number(query: Query) -> bool:
    """Is the column the number of a row alone?"""
    return query.item is Item.ROW_NUMBER


@asked("parent", "sees_parent", "result")
def _gives_names(query: Query) -> bool:
    """Are its columns those of a source?"""
    within = query.parent is not None and query.parent.clause is not Clause.VALUES
    return within and not query.sees_parent and query.result is None


def end_items(query: Query) -> Query | None:
    """Behind the last column: as many as are demanded."""
    return query if not is_demanded(query) or _is_filled(query) else None


@asked("width", "outputs")
def _is_filled(query: Query) -> bool:
    """Has the result just as many columns as are demanded?"""
    return len(query.outputs) == query.width or query.is_starred


def all_columns(query: Query) -> Query | None:
    """``*``; where a number of columns is demanded it is alone, and FROM must have as many."""
    demanded = is_demanded(query)
    alone = demanded or query.laws.star_first or query.is_distinct
    if (alone and query.outputs) or (query.no_star and demanded):
        return None
    if not _may_be_starred(query) or (demanded and limits.is_leaf(query)):
        return None
    return grown(query, "outputs", Output(None, star=""))._replace(needs_from=True)


def _may_be_starred(query: Query) -> bool:
    return not has_star(query) or sum(output.star is not None for output in query.outputs) < limits.MOST_STARS


def all_columns_of(query: Query) -> Query | None:
    """``t.*``."""
    if not _may_be_starred(query):
        return None
    if is_demanded(query) or (query.is_distinct and query.outputs):
        return None
    if query.barred and any(pending.column in query.barred for pending in query.pending):
        return None
    waits = grown(query, "pending", Pending(query.name, EVERY, True))
    return grown(waits, "outputs", Output(None, star=query.name))._replace(name="")


def complex_value(query: Query) -> Query:
    """An operator: what is read is no column alone."""
    grouping = query.clause is Clause.GROUP and query.laws.selected_first
    if (query.clause is not Clause.SELECT and not grouping) or is_complex(query):
        return query
    return query._replace(item=Item.COMPLEX)


@asked("item")
def is_complex(query: Query) -> bool:
    """Is what was read no column alone?"""
    return query.item is Item.COMPLEX


def operator(query: Query) -> Query | None:
    """An operator behind a value, None where that must be the whole term."""
    return None if query.is_whole else complex_value(query)


def joined_by(binding: Binding) -> Change:
    """An operator of some precedence behind its left operand."""

    def change(query: Query) -> Query | None:
        if binding is Binding.AND and _may_be_position(query):
            return None
        found = operator(query)
        return None if found is None else limits.binds(found, binding)

    return change


def _may_be_position(query: Query) -> bool:
    """Is this a whole term of GROUP BY or ORDER BY?  SQLite reads ``x AND 0`` as 0 there, which is no position."""
    return query.clause in (Clause.GROUP, Clause.ORDER) and all(one.is_bracket for one in query.nesting.outer)


def negated(query: Query) -> Query | None:
    """NOT."""
    return limits.binds(operand(query), Binding.NOT)


def opened(cost: int) -> Change:
    """An operand that has an end of its own begins, with so many entries of the parser's stack."""
    open_ = limits.opened(cost)

    def change(query: Query) -> Query | None:
        return open_(operand(query))

    return change


def may_open(query: Query) -> Query | None:
    """A bracket."""
    return complex_value(query) if limits.has_room(query, 1) else None


def may_list(query: Query) -> Query | None:
    """IN."""
    return query if limits.has_room(query, limits.MEMBERS) else None


def mixed(mixture: Mixture) -> Change:
    """A function that does not take the values of those of another kind."""

    def change(query: Query) -> Query | None:
        return query._replace(mixture=mixture) if query.mixture in (None, mixture) else None

    return change


def negation(query: Query) -> Query:
    """Behind NOT; TRUE and FALSE stay numbers."""
    return complex_value(query)


def may_ask(query: Query) -> Query | None:
    """EXISTS, which opens one entry more than the bracket of its query."""
    return query if limits.may_enter(query) else None


opened_limit = limits.opened(limits.LIMIT)
opened_call = limits.opened(limits.CALL)
opened_case = limits.opened(limits.CASE)
closed = limits.closed
begun = limits.begun


def begin_members(query: Query) -> Query | None:
    """The list of IN."""
    return limits.opened(limits.MEMBERS)(query)


def operand(query: Query) -> Query:
    """An operand that is no column begins."""
    return complex_value(query)._replace(alone=False)


def call(query: Query) -> Query:
    """A function that is spelled in a way of its own."""
    return operand(query)._replace(has_call=query.is_distinct, held=None)


def not_alone(query: Query) -> Query | None:
    """A sign before a number, which must not be a position."""
    return None if query.alone else complex_value(query)


# FROM -----------------------------------------------------------------------------------------------------------------


def begin_from(query: Query) -> Query:
    """Behind FROM."""
    return query._replace(clause=Clause.FROM)


def without_alias(query: Query) -> Query | None:
    """A relation that goes by its own name."""
    return own_source(query) if _is_unnamed(query) else None


@asked("name", "sources")
def _is_unnamed(query: Query) -> bool:
    """Has no source the name of the relation that was read?"""
    return bool(query.name) and query.name not in query.own_names


def begin_arguments(relation: Relation) -> Change:
    """The bracket of a function in FROM: its own columns make others ambiguous already."""

    def change(query: Query) -> Query:
        return begun(query)._replace(clause=Clause.ON, sources=(*query.sources, Source("", relation)))

    return change


def end_arguments(name: str) -> Change:
    """Behind its arguments: a relation that goes by the function's name."""

    def change(query: Query) -> Query:
        *sources, last = query.sources
        return end_on(query)._replace(sources=tuple(sources), relation=last.relation, name=name)

    return change


def without_name(query: Query) -> Query:
    """A sub-query whose columns need no qualifier."""
    return with_source(query, "")


def comma(query: Query) -> Query | None:
    """One more source behind a comma; None where one that is awaited has to be joined with USING."""
    if not query.laws.comma_apart:
        return query
    bare = bare_columns(query.sources)
    bound = waiting_among(query, bare.unique | bare.ambiguous)
    if any(pending.qualifier is not None and pending.column in bound for pending in unbound(query)):
        return None
    return query._replace(chain=len(query.sources))


def unconditioned(query: Query) -> Query | None:
    """Behind a join without a condition."""
    return None if conflicts(query) else query._replace(is_loose=True)


def settled(query: Query) -> Query | None:
    """A source that is there to stay: nothing that waits has become ambiguous."""
    return None if conflicts(query) else query


def may_widen(query: Query) -> Query | None:
    """One more source, unless FROM has all the columns or sources that it may have."""
    full = query.missing_columns == 0 or (not limits.fits_source(query) and bind(query) is not None)
    return None if full else query


def may_merge(query: Query) -> Query | None:
    """USING, where both sides have a column of one name."""
    return query if mergeable(query) else None


def merge_all(query: Query) -> Query | None:
    """NATURAL: equal names are one; None where the left side has one of them twice."""
    *left, right = query.sources[query.chain :]
    if right.relation.names & bare_columns(tuple(left)).ambiguous:
        return None
    merged = right._replace(merged=mergeable_names(tuple(left), right))
    return starred_names(query._replace(sources=(*query.sources[:-1], merged)))


def begin_on(query: Query) -> Query:
    """ON."""
    return begun(query)._replace(clause=Clause.ON)


def end_on(query: Query) -> Query:
    """Behind the condition of a join."""
    return begun(query)._replace(clause=Clause.FROM)


def may_derive(query: Query) -> Query | None:
    """A sub-query that is not joined with USING."""
    return query if can_derive(query) else None


# The clauses behind ---------------------------------------------------------------------------------------------------


def begin_clause(clause: Clause) -> Change:
    """Behind the keyword of a clause."""

    def change(query: Query) -> Query:
        grouped = query.grouped or clause is Clause.GROUP
        return begun(query)._replace(clause=clause, item=Item.COMPLEX, taint=Taint.NONE, grouped=grouped)

    return change


def may_begin(clause: Clause) -> Change:
    """The keyword of a clause for which there is room; recursive queries have no groups."""

    def change(query: Query) -> Query | None:
        if clause is Clause.GROUP and query.recursion is not None and query.recursion.is_used:
            return None
        return query if limits.clause_fits(query, clause) else None

    return change


def begin_order(query: Query) -> Query:
    """ORDER BY: of a set operation only columns of the result may follow."""
    if query.result is not None:
        return begin_compound_order(query)
    return begun(query)._replace(clause=Clause.ORDER, item=Item.COMPLEX, taint=Taint.NONE)


def begin_compound_order(query: Query) -> Query:
    """ORDER BY behind set operations, or behind brackets."""
    query = begun(query)
    result, terms = result_of(query), query.terms | terms_of(query)
    return query._replace(clause=Clause.COMPOUND_ORDER, item=Item.COMPLEX, taint=Taint.NONE, result=result, terms=terms)


def begin_term(query: Query) -> Query | None:
    """A term of GROUP BY or ORDER BY, where a number alone is a position."""
    chained = query.nesting.chained + 1
    if chained > limits.MOST_CHAINED:
        return None
    query = query._replace(nesting=query.nesting._replace(chained=chained, operators=frozenset()))
    if query.clause is Clause.GROUP and query.laws.selected_first:
        query = query._replace(item=Item.FRESH, item_of="")
    return query._replace(alone=True)


def end_term(query: Query) -> Query:
    """Behind it."""
    if query.clause is Clause.GROUP and isinstance(query.item, str):
        query = query._replace(plain=query.plain | {(query.item_of, query.item)}, item=Item.COMPLEX)
    return query._replace(alone=False, is_whole=False)


def roll_up(query: Query) -> Query:
    """Behind WITH ROLLUP, after which MariaDB has no ORDER BY."""
    return query._replace(no_order=True)


def may_order(query: Query) -> Query | None:
    """ORDER BY, where it may be."""
    return None if query.no_order else query


def may_limit(query: Query) -> Query | None:
    """LIMIT, where it may be."""
    return None if query.no_limit or not limits.clause_fits(query, Clause.ORDER) else begun(query)


def in_compound(query: Query) -> Query | None:
    """Only in ORDER BY of a set operation."""
    return query if query.clause is Clause.COMPOUND_ORDER else None


def not_in_compound(query: Query) -> Query | None:
    """Not there."""
    return None if query.clause is Clause.COMPOUND_ORDER else query


# VALUES ---------------------------------------------------------------------------------------------------------------


def begin_values(query: Query) -> Query:
    """Behind VALUES: there is no FROM."""
    return query._replace(clause=Clause.VALUES, bound=True)


def first_value(query: Query) -> Query | None:
    """One more value of the first row, which says how many columns there are."""
    place = len(query.outputs)
    if place >= (limits.MOST_ITEMS if query.width is None else query.width):
        return None
    return begun(query)._replace(outputs=(*query.outputs, Output(f"column{place + 1}")))


def begin_row(query: Query) -> Query:
    """The first value of another row."""
    return begun(query)._replace(cells=1)


def next_value(query: Query) -> Query | None:
    """One more value of another row."""
    return begun(query)._replace(cells=query.cells + 1) if query.cells < len(query.outputs) else None


def end_row(query: Query) -> Query | None:
    """Behind the last value of another row."""
    return query._replace(cells=0) if query.cells == len(query.outputs) else None


def not_of_values(query: Query) -> Query | None:
    """A clause behind SELECT: VALUES has none."""
    return None if query.clause is Clause.VALUES else query


# Calls ----------------------------------------------------------------------------------------------------------------


def argument(query: Query) -> Query | None:
    """One more argument."""
    *outer, call = query.calls
    if call.high is not None and call.given >= call.high:
        return None
    # Where any number may come, it is of no matter how many there were beyond the least.
    given = call.given + 1 if call.high is not None else min(call.given + 1, call.low)
    return begun(query)._replace(calls=(*outer, call._replace(given=given)))


def end_call(query: Query) -> Query | None:
    """The bracket that closes a call with enough arguments."""
    *outer, call = query.calls
    return None if call.given < call.low else limits.closed(query)._replace(calls=tuple(outer))


def one_argument(query: Query) -> Query | None:
    """DISTINCT: an aggregate of one argument."""
    *outer, call = query.calls
    if call.low > 1:
        return None
    return query._replace(calls=(*outer, call._replace(high=1)))


def counts_all(query: Query) -> Query | None:
    """``*``, the argument of an aggregate that takes none."""
    *outer, call = query.calls
    return limits.closed(query)._replace(calls=tuple(outer)) if call.low == 0 else None


def begin_filter(query: Query) -> Query | None:
    """Behind FILTER (WHERE: as in the arguments of an aggregate."""
    opened = limits.opened(limits.FILTER)(query)
    return None if opened is None else opened._replace(calls=(*query.calls, Call(CallKind.AGGREGATE, 0, 0)))


def end_filter(query: Query) -> Query:
    """Behind its condition."""
    return limits.closed(query)._replace(calls=query.calls[:-1])
