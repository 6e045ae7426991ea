"""Calls whose arguments have types: functions, aggregates, windows, and what SQL spells in its own way."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import (
    Action,
    Keyword,
    Literal,
    LiteralForm,
    Name,
    Names,
    Node,
    Rule,
    Sign,
    Spelled,
    choice,
    listed,
    maybe,
    seq,
    words,
)
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import EVERY
from guided.grammar.sql.query.typed import alternatives, frames, functions
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.arguments import (
    COMMA,
    argument,
    arguments,
    begin_argument,
    end_argument,
    end_call,
    frame_of,
    may_close,
    more_arguments,
)
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.columns.references import Qualifier
from guided.grammar.sql.query.typed.columns.row_names import RowName
from guided.grammar.sql.query.typed.columns.terms import TermQualifier
from guided.grammar.sql.query.typed.columns.traces import broken
from guided.grammar.sql.query.typed.columns.unsorted import has_groups
from guided.grammar.sql.query.typed.computed.contexts import (
    begin_part,
    leads,
    may_be_null,
    risky,
    unless_computed,
    varied,
)
from guided.grammar.sql.query.typed.computed.digits import UNSURE
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.frames import CONDITION, Calling, Operand
from guided.grammar.sql.query.typed.literals import Field, numbers_of, strings_of
from guided.grammar.sql.query.typed.parts.shares import shares
from guided.grammar.sql.query.typed.scope import Clause, Column, Pending, Query, is_open, queries_around
from guided.grammar.sql.query.typed.system import OF_SHARES, TypeSystem
from guided.grammar.sql.query.typed.types import ALL, BIT, MADE, SORTABLE, coerces, is_literal, members, only
from guided.grammar.sql.query.typed.windows import directed, ordering, over

__all__ = [
    "FunctionName", "call", "end_kind", "made", "may_aggregate", "may_qualify",
    "stronger", "windowed_call",
]  # fmt: skip

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")
_TO_COME = "NULL::timestamp"
"""As much as an argument of which nothing was read."""
_LATE = (Clause.ORDER, Clause.WINDOW, Clause.QUALIFY)
_NAMED = {
    "date": ("date",),
    "timestamp": ("timestamp", "timestamptz", "?stamp"),
    "interval": ("interval",),
    "time": ("time",),
}


_SPANS = ("YEARS", "MONTHS", "WEEKS", "DAYS", "HOURS", "MINS", "SECS")
"""The arguments of MAKE_INTERVAL, by their names."""
_FIELD_DIGITS = 9
"""Of fields of dates, and of places in a text: they have four bytes."""
_SHARES = only("int4", "numeric")
_TAINTS = ("", "aggregate", "window", "both", "rows", "volatile")
"""`Query.tainted`, weakest first."""


def stronger(one: str, other: str) -> str:
    """Of two `Query.tainted` the one that counts where both are."""
    return "both" if {one, other} == {"aggregate", "window"} else max(one, other, key=_TAINTS.index)


def _may_vary(query: Query) -> bool:
    """May what changes from call to call stand here?  It is no group, and no term of a window."""
    if query.aggregated and not has_groups(query):
        return False
    return not any(map(_reads_window, (query, *queries_around(query))))


def _reads_window(query: Query) -> bool:
    """Is a term of a window being read?"""
    return query.around_term is not None or query.clause is Clause.WINDOW


def may_aggregate(query: Query) -> bool:
    """May an aggregate be called here?"""
    if (query.recursion is not None and query.recursion.read) or frames.parameters(query.around):
        return False
    late = query.clause is Clause.HAVING or (query.clause in _LATE and query.is_grouped)
    if query.is_local or late:
        return late and not query.is_local
    starred = any(output.star is not None for output in query.outputs)
    barred = starred or bool(query.distinct_on) or query.ungrouped
    return query.clause is Clause.SELECT and not barred and has_groups(query)


def _defines_window(query: Query) -> bool:
    """Is the query in what defines a window, where DuckDB refuses windows?"""
    return query.system.lists and any(map(_reads_window, queries_around(query)))


def may_qualify(query: Query) -> Query | None:
    """Where QUALIFY may stand, which has a window."""
    return None if _defines_window(query) else query


def may_be_window(query: Query) -> bool:
    """May a window be used here?"""
    if _defines_window(query):
        return False
    if query.calls or frames.parameters(query.around):
        return False
    if query.clause is Clause.SELECT and query.aggregated and not has_groups(query):
        return False
    return query.clause in (Clause.SELECT, Clause.ORDER, Clause.QUALIFY)


_NO_WORDS = words_of(())
_OF_ROWS = ("to_json", "to_jsonb", "row_to_json", "json_agg", "jsonb_agg")
"""Functions of PostgreSQL whose argument may be a row of a source."""


class FunctionName:
    """A function of one kind, where such may be called; windows are aggregates, too."""

    price = 1

    def __init__(
        self,
        names: Iterable[str],
        kind: str,
        reserved: tuple[str, ...] = (),
        shortest: tuple[str, ...] = (),
        behind: str = "",
    ) -> None:
        self.label = {"scalar": "a function", "aggregate": "an aggregate"}.get(kind, "a window function")
        self.kind = kind
        self._words = words_of(name for name in names if name not in reserved)
        self._shortest = shortest
        self._behind = behind
        self.price = max(map(len, shortest), default=1)

    def allowed(self, query: Query) -> Names:
        """All of the kind, or none."""
        if self._opened(query) is None:
            return Names(_NO_WORDS)
        words, system = self._words, query.system
        if self.kind == "scalar" and system.volatile and not _may_vary(query):
            words = words_of(words.members - system.volatile)
        if not query.computed or self.kind != "scalar":
            return Names(words)
        members = words.members
        names = members & system.computable.keys() if query.computed.is_whole else members - system.failing
        return Names(functions.giving(system, frozenset(names), frames.leading(query.top)))

    def _opened(self, query: Query) -> Query | None:
        return opened(query, self.kind)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the call open."""
        found = self._opened(query)
        if found is None:
            return None
        if name in query.system.volatile:
            found = found._replace(tainted="volatile")
        found = do.without_null(found, name)
        return do.hear(found.pushed(Calling(name + self._behind)), name)

    def suggested(self, query: Query) -> Iterable[str]:
        """None, a literal is shorter, unless a group must be followed or nothing else may stand here."""
        return self._shortest or do.next_parts(query)


class MadeBy(FunctionName):
    """A function that gives a type to which no cast leads, where only such may come."""

    def __init__(self, system: TypeSystem, kind: str) -> None:
        names = [name for name, rows in system.scalars.items() if all(given == kind for _, given in rows)]
        super().__init__(names, "scalar", shortest=tuple(sorted(names, key=len)[:1]))
        self._goal = BIT[kind]

    def _opened(self, query: Query) -> Query | None:
        top = query.top
        held = not top.type and frames.goal_of(top) & self._goal and not frames.at_operand(top)
        return query._replace(alone=False) if held else None


def opened(query: Query, kind: str) -> Query | None:
    """The query with a call of some kind begun."""
    found = do.at_operand(query if kind == "scalar" else varied(query))
    if found is None or kind == "scalar":
        return found
    if query.followed is not None:
        return None
    if not (may_aggregate(query) if kind == "aggregate" else may_be_window(query)):
        return None
    aggregated = query.aggregated or kind == "aggregate"
    tainted = stronger(query.tainted, kind)
    windowed = query.windowed or kind == "window"
    return found._replace(
        calls=(*query.calls, kind),
        tainted=tainted,
        aggregated=aggregated,
        windowed=windowed,
        trace=None if kind == "window" else broken(query.trace),
    )


def calling(name: str) -> do.Change:
    """The call of one function."""

    def change(query: Query) -> Query | None:
        found = do.at_operand(query)
        return None if found is None else do.hear(found.pushed(Calling(name)), name)

    return change


def _may_be_listed(query: Query) -> Query:
    """Behind a call that a subscript may follow."""
    return query.with_top(query.top._replace(indexed=True))


def _fields(dialect: TypedDialect) -> dict[tuple[int, str], list[str]]:
    """What EXTRACT takes, by the types that have such fields and the type that it gives."""
    goals: dict[tuple[str, str], int] = {}
    for kind, names, given in dialect.fields:
        for word in names.split():
            goals[word, given] = goals.get((word, given), 0) | sum(BIT[name] for name in _NAMED[kind])
    found: dict[tuple[int, str], list[str]] = {}
    for (word, given), goal in goals.items():
        found.setdefault((goal, given), []).append(word)
    return found


def _texts(dialect: TypedDialect) -> int:
    """What stands for a text without a cast that is written."""
    return only(*(name for name in dialect.system.types if coerces(dialect.system, name, "text")))


def _begin_narrow(goal: int) -> do.Change:
    """An argument of POSITION."""

    def change(query: Query) -> Query:
        return query.pushed(Operand(query.system, goal, narrow=True))

    return change


def _begin_extract(query: Query) -> Query:
    return do.without_null(query, "extract")


def _of_text(query: Query) -> Query | None:
    """Behind the first argument of SUBSTRING, if it is a text."""
    return query if functions.call_of(query.system, "substr", (*frame_of(query).types, "int4")) == "text" else None


def _end_substring(query: Query) -> Query | None:
    """Behind the arguments of SUBSTRING in either spelling."""
    types = frame_of(query).types
    kind = functions.call_of(query.system, "substr", types if len(types) > 1 else (*types, "int4"))
    below = query.popped() if frame_of(query).digits <= _FIELD_DIGITS else risky(query.popped())
    return None if kind is None else do.read(do.hear(below, ")"), kind, ("substring", 2))


def end_kind(query: Query) -> Query:
    """Behind what belongs to an aggregate or a window."""
    return query._replace(calls=query.calls[:-1])


def counts_all(query: Query) -> Query | None:
    """``*``, the argument of COUNT."""
    return query if frame_of(query).name == "count" else None


def counts_source(query: Query) -> Query | None:
    """``*`` behind a source, the argument of COUNT."""
    if is_open(query):
        return query._replace(name="", pending=query.pending | {Pending(query.name, EVERY, "", True)})
    return query._replace(name="")


def distinct(query: Query) -> Query:
    """DISTINCT before the argument of an aggregate."""
    return query.with_top(frame_of(query)._replace(distinct=True))


def has_columns(query: Query) -> Query | None:
    """Where an argument of DISTINCT is a column, which alone may say the order."""
    return query._replace(name="") if frame_of(query).columns else None


def _columns(query: Query) -> tuple[Column, ...]:
    """Those columns, as they were written."""
    return frame_of(query).columns


def _may_be_row(query: Query) -> Query | None:
    """Where a row may be the only argument of a function."""
    frame = frame_of(query)
    return query if frame.name in _OF_ROWS and not frame.types and not frame.distinct else None


class OrderColumn:
    """Such a column, behind its source or as it was written without one."""

    label = "an argument"
    price = 64

    def allowed(self, query: Query) -> Names:
        """Those of the source, or that were written without."""
        return Names(words_of(name for where, name in _columns(query) if (where or "") == query.name))

    def after(self, query: Query, name: str) -> Query:
        """The query as it was."""
        return query._replace(name="")

    def suggested(self, query: Query) -> Iterable[str]:
        """Any of them."""
        return sorted(self.allowed(query).words.members)


def begin_filter(query: Query) -> Query:
    """Behind FILTER (WHERE."""
    return query._replace(calls=(*query.calls, "aggregate"))


def _within(name: str) -> do.Change:
    """The type of an ordered-set aggregate, by what its rows are ordered by."""

    def change(query: Query) -> Query | None:
        ended = do.end(query)
        if ended is None:
            return None
        frame = frame_of(ended)
        kind = functions.call_of(query.system, name, (*frame.types, ended.value))
        return None if kind is None else do.read(ended.popped(), kind, (name, 2))

    return change


def begin_order(query: Query) -> Query | None:
    """A term by which the rows of an aggregate are ordered."""
    found = do.push(query, SORTABLE)
    return None if found is None else found._replace(alone=not query.system.constant_order)


def begin_within(query: Query) -> Query | None:
    """Behind WITHIN GROUP (ORDER BY."""
    frame = frame_of(query)
    found = functions.next_types(query.system, frame.name, frame.types) & SORTABLE
    begun = do.push(query, found & ~sum(BIT[name] for name in members(found) if is_literal(name)))
    return None if begun is None else begun._replace(alone=not query.system.constant_order)


def call(dialect: TypedDialect, catalog: Catalog, expression: Rule) -> Node:
    """A call of any function."""
    return choice(
        *_scalars(dialect, catalog, expression), *_aggregates(dialect, catalog, expression),
        _window_function(dialect, expression), *_spelled(dialect, expression),
    )  # fmt: skip


def windowed_call(dialect: TypedDialect, catalog: Catalog, expression: Rule) -> Node:
    """A call with OVER."""
    return choice(_aggregates(dialect, catalog, expression)[1], _window_function(dialect, expression, "rank"))


def made(dialect: TypedDialect, expression: Node) -> dict[str, Node]:
    """Calls where an operand is wanted to which no cast leads, by its type."""
    given = {rows[0].result for rows in dialect.system.scalars.values()}
    names = {kind: Name(MadeBy(dialect.system, kind), Spelled.WORD) for kind in MADE if kind in given}
    rest = (_OPEN, arguments(expression), Action(end_call), _CLOSE)
    return {kind: seq(name, *rest) for kind, name in names.items()}


def _scalars(dialect: TypedDialect, catalog: Catalog, expression: Node) -> list[Node]:
    row = RowName(catalog)
    rows = (seq(Action(_may_be_row), Name(row)),) if dialect.system.spelled else ()
    some = choice(seq(), arguments(expression), *rows)
    closed = seq(Action(end_call), _CLOSE)
    named = Name(FunctionName(dialect.system.scalars, "scalar", dialect.word_functions), Spelled.WORD)
    called = (
        seq(Action(do.hears(name)), Action(unless_computed), leads(dialect.system, "text"), Keyword(name),
            Action(calling(name)))
        for name in dialect.word_functions
    )  # fmt: skip
    reserved = choice(*called)
    listed_ = (Action(_may_be_listed),) if dialect.system.lists else ()

    def there_is(query: Query) -> Query | None:
        begun = calling("row_to_json")(query)
        names = None if begun is None else row.allowed(begun)
        return query if names is not None and (names.free or len(names.words)) else None

    of_row = seq(Action(there_is), words("ROW_TO_JSON"), Action(calling("row_to_json")), _OPEN, Name(row), closed)
    return [seq(choice(named, reserved), _OPEN, some, closed, *listed_), *((of_row,) if rows else ())]


def _aggregates(dialect: TypedDialect, catalog: Catalog, expression: Node) -> list[Node]:
    some = arguments(expression)
    closed = seq(Action(end_call), _CLOSE)
    only_if = maybe(words("WHERE")) if dialect.system.lists else words("WHERE")
    where = seq(words("FILTER"), _OPEN, only_if, Action(begin_filter), Action(do.begin(CONDITION)), expression,
                Action(do.end), Action(end_kind), _CLOSE)  # fmt: skip
    of_source = seq(Name(Qualifier(catalog)), Sign("."), Action(counts_source), Sign("*"))
    every = seq(Action(counts_all), choice(Sign("*"), of_source, *((seq(),) if dialect.system.lists else ())))
    ordered = maybe(Action(may_close), words("ORDER BY"), ordering(expression, begin_order))
    column = choice(Name(OrderColumn()), seq(Name(TermQualifier(_columns)), Sign("."), Name(OrderColumn())))
    by_argument = seq(Action(may_close), Action(has_columns), words("ORDER BY"), listed(directed(column), _COMMA))
    row = (seq(Action(_may_be_row), Name(RowName(catalog))),) if dialect.system.spelled else ()

    def given(some: Node, *others: Node) -> list[Node]:
        unique = seq(words("DISTINCT"), Action(distinct), some, maybe(by_argument))
        return [unique, seq(maybe(words("ALL")), choice(some, *others), ordered)]

    bare = dialect.system.bare_aggregates
    alone = seq(Name(FunctionName(bare, "aggregate"), Spelled.WORD), _OPEN, some, closed, Action(end_kind))
    behind = choice(Action(_may_be_listed), where) if dialect.system.lists else maybe(where)
    aggregate = seq(
        Name(FunctionName(dialect.system.aggregates.keys() - bare, "aggregate"), Spelled.WORD), _OPEN,
        choice(every, *given(some, *row)), closed, Action(end_kind), behind,
    )  # fmt: skip
    windowed = dialect.system.aggregates.keys() - dialect.system.no_windows - bare
    window = seq(
        Name(FunctionName(windowed, "window"), Spelled.WORD), _OPEN, choice(every, some), closed,
        maybe(where), over(dialect, expression), Action(end_kind),
    )  # fmt: skip
    share = choice(*numbers_of(dialect))
    of_shares: list[Node] = []
    some_shares: list[Node] = []
    if dialect.system.lists:
        of, two = dialect.system.of_shares, seq(argument(expression), COMMA, shares(dialect))
        called, windows = (Name(FunctionName(of, kind, behind=OF_SHARES), Spelled.WORD)
                           for kind in ("aggregate", "window"))  # fmt: skip
        some_shares = [shares(dialect)]
        of_shares = [
            seq(called, _OPEN, choice(*given(two)), closed, Action(end_kind), behind),
            seq(windows, _OPEN, two, closed, maybe(where), over(dialect, expression), Action(end_kind)),
        ]
    else:
        one = seq(Action(do.begin(_SHARES)), choice(*numbers_of(dialect)), Action(do.end))
        share = choice(share, seq(words("ARRAY"), Sign("["), listed(one, _COMMA), Sign("]"),
                                  Action(do.operand("_float8"))))  # fmt: skip
    parts = choice(seq(Action(begin_argument), share, Action(end_argument)), *some_shares)
    sets = [
        seq(
            Name(FunctionName([name], "aggregate"), Spelled.WORD), _OPEN,
            *((parts,) if name != "mode" else ()),
            _CLOSE,
            words("WITHIN GROUP"), _OPEN, words("ORDER BY"), Action(begin_within), expression, Action(_within(name)),
            maybe(choice(words("ASC"), words("DESC"))), _CLOSE, Action(end_kind), maybe(where),
        )
        for name in dialect.system.ordered_sets
    ]  # fmt: skip
    return [aggregate, window, *((alone,) if bare else ()), *of_shares, *sets]


def _window_function(dialect: TypedDialect, expression: Node, *shortest: str) -> Node:
    name = Name(FunctionName(dialect.system.windows, "window", shortest=shortest), Spelled.WORD)
    closed = seq(Action(end_call), _CLOSE)
    return seq(name, _OPEN, choice(seq(), arguments(expression)), closed, over(dialect, expression), Action(end_kind))


def _heard(text: str) -> Node:
    """Keywords that tell expressions apart."""
    return seq(words(text), Action(do.heard(text)))


def _spelled(dialect: TypedDialect, expression: Node) -> list[Node]:
    """What has a spelling of its own."""
    text = seq(Action(do.begin(_texts(dialect)), _TO_COME), expression, Action(do.end))
    whole = seq(Action(do.begin(only(*dialect.wholes)), _TO_COME), expression, Action(do.end))
    number = seq(Action(do.begin(only("float8", "numeric", "int4", "int8")), _TO_COME), expression, Action(do.end))
    begin = Action(do.at_operand)
    begin_text, begin_whole = (seq(begin, leads(dialect.system, name)) for name in ("text", dialect.whole))

    def result(name: str, label: str) -> Action:
        return Action(do.operand(name, (label, 2), _FIELD_DIGITS if name == "int8" else UNSURE))

    fields = [
        seq(choice(*map(_heard, names), Literal(LiteralForm.STRING, Field(names), hears=True)),
            words("FROM"), Action(do.begin(goal), _TO_COME), expression, Action(do.end), Action(do.allows_null),
            result(given, "extract"))
        for (goal, given), names in _fields(dialect).items()
    ]  # fmt: skip
    extract = seq(
        begin_whole,
        words("EXTRACT"),
        Action(do.heard("extract")),
        Action(_begin_extract),
        _OPEN,
        choice(*fields),
        _CLOSE,
    )
    more = choice(seq(), seq(words("FROM"), text), seq(_COMMA, text))
    trims = choice(
        seq(choice(seq(words("FROM"), text), seq(text, more)), result("text", "btrim")),
        *(
            seq(words(word), maybe(text), words("FROM"), text, result("text", name))
            for word, name in (("BOTH", "btrim"), ("LEADING", "ltrim"), ("TRAILING", "rtrim"))
        ),
    )
    trim = seq(begin_text, words("TRIM"), Action(do.untraced), _OPEN, trims, _CLOSE)
    narrow = seq(Action(_begin_narrow(_texts(dialect)), _TO_COME), expression, Action(do.end))
    position = seq(
        begin_whole, words("POSITION"), Action(do.untraced), _OPEN, narrow, words("IN"), narrow,
        result(dialect.whole, "position"), _CLOSE,
    )  # fmt: skip
    place = seq(Action(do.begin(only(*dialect.wholes)), _TO_COME), Action(begin_part), expression, Action(do.end))
    long = seq(words("FOR"), Action(do.heard("for")), place)
    part = seq(Action(_of_text), choice(seq(words("FROM"), Action(do.heard("from")), place, maybe(long)), long))
    several_arguments = seq(more_arguments(expression), Action(may_close))
    if not dialect.system.lists:
        found = seq(Action(do.begin(_texts(dialect))), choice(*strings_of(dialect)), Action(do.end))
        several_arguments = choice(several_arguments, seq(Action(_of_text), COMMA, found))
        part = choice(part, seq(Action(_of_text), words("FROM"), Action(do.heard("from")), found))
    substring = seq(
        Action(do.hears("substr")), begin_text, words("SUBSTRING"), Action(calling("substr")), _OPEN,
        argument(expression), choice(several_arguments, part), Action(_end_substring), _CLOSE,
    )  # fmt: skip
    several = [
        seq(words(word), Action(alternatives.begin_alternatives(word.lower())), _OPEN,
            listed(seq(Action(alternatives.alternative(types)), expression, Action(alternatives.end_alternative)),
                   COMMA),
            Action(alternatives.end_alternatives(word.lower())), _CLOSE)
        for word, types in (("COALESCE", ALL), ("GREATEST", SORTABLE), ("LEAST", SORTABLE))
    ]  # fmt: skip
    nullif = seq(
        Action(may_be_null), words("NULLIF"), Action(alternatives.begin_alternatives("nullif")), _OPEN,
        Action(alternatives.alternative(SORTABLE)), Action(begin_part), expression,
        Action(alternatives.begin_nullif), _COMMA, expression,
        Action(alternatives.end_nullif), Action(alternatives.end_alternatives("nullif")), _CLOSE,
    )  # fmt: skip
    overlay = seq(
        words("OVERLAY"), begin, Action(do.untraced), _OPEN, text, words("PLACING"), text, words("FROM"), whole,
        maybe(words("FOR"), whole), result("text", "overlay"), _CLOSE,
    )  # fmt: skip
    # In their order: none may come twice.
    parts = [seq(words(name), Sign("=>"), whole if name != "SECS" else number) for name in _SPANS]
    spans = choice(*(seq(one, *(maybe(_COMMA, other) for other in parts[place + 1 :]))
                     for place, one in enumerate(parts)))  # fmt: skip
    interval = seq(
        words("MAKE_INTERVAL"), begin, Action(do.untraced), _OPEN, spans, result("interval", "make_interval"), _CLOSE,
    )  # fmt: skip
    others = () if dialect.system.lists else (overlay, interval)
    return [extract, trim, position, substring, *several, nullif, *others]
