"""Calls of functions; some are spelled in a way of their own."""

from __future__ import annotations

from guided.grammar.attributed.nodes import (
    Action,
    Keyword,
    Literal,
    LiteralForm,
    Name,
    Node,
    Sign,
    Spelled,
    Star,
    choice,
    listed,
    maybe,
    seq,
    words,
)
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query import windows as window
from guided.grammar.sql.query.literals import AnyString, Size
from guided.grammar.sql.query.names.fixed import FixedName
from guided.grammar.sql.query.names.functions import FunctionName
from guided.grammar.sql.query.scope import CallKind, Mixture
from guided.grammar.sql.query.select.mysql.parts import MysqlParts

__all__ = ["call", "unit", "windows"]

_UNITS = """MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR"""
_LONG_UNITS = """SECOND_MICROSECOND MINUTE_MICROSECOND MINUTE_SECOND HOUR_MICROSECOND HOUR_SECOND HOUR_MINUTE
DAY_MICROSECOND DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH"""
_WINDOW = 14
"""Bytes of the shortest window in brackets: ends have no names of windows."""
_RANKS = ("rank", "dense_rank", "percent_rank", "cume_dist", "lag", "lead")
"""Window functions that want an order, and have no frame."""
_NUMBERS = ("row_number",)
"""Those without a frame."""
_GROUPS = ("ntile",)
"""Those like `_RANKS` whose argument is a number above 0, which the server checks where it is constant."""
_MOST_GROUPS = 9_999


_JSON = """json_array json_extract json_merge_patch json_merge_preserve json_pretty json_remove json_search json_compact
json_detailed json_loose json_normalize json_query""".split()  # noqa: SIM905
"""Functions whose value is of the type JSON."""
_MOMENTS = ("addtime", "subtime", "str_to_date", "add_months")
"""Functions that do not take such, as do those of `_SUMS`."""
_SUMS = ("extract", "date_add", "date_sub", "adddate", "subdate", "timestampadd")


def unit(*, long: bool = True) -> Node:
    """A unit of time."""
    return choice(*map(words, f"{_UNITS} {_LONG_UNITS if long else ''}".split()))


def call(parts: MysqlParts) -> Node:
    """A call of any function."""
    return choice(_scalar(parts), _aggregate(parts), *_windows(parts), _concatenation(parts), *_special(parts))


def _name(
    parts: MysqlParts,
    kind: CallKind,
    only: tuple[str, ...] = (),
    but: tuple[str, ...] = (),
    of: CallKind | None = None,
) -> Node:
    """The names of functions of a kind, each with its bracket; called as such, though they may be ``of`` another."""
    functions = {
        name: function
        for name, function in parts.catalog.functions_of(of or kind).items()
        if (name in only or not only) and name not in but
    }
    attached = parts.dialect.attached
    loose = {name: function for name, function in functions.items() if name not in attached}
    tight = {name: function for name, function in functions.items() if name in attached}
    found = []
    if loose:
        found.append(seq(Name(FunctionName(loose, kind), Spelled.WORD), parts.open))
    if tight:
        found.append(Name(FunctionName(tight, kind, is_attached=True), Spelled.WORD))
    return choice(*found)


def _some(parts: MysqlParts) -> Node:
    return choice(seq(), _arguments(parts))


def _arguments(parts: MysqlParts) -> Node:
    """One argument or more."""
    # What may refuse stands before the comma, behind which something must follow.
    return seq(Action(do.argument), listed(parts.expression, seq(Action(do.argument), parts.comma)))


def _closed(parts: MysqlParts) -> Node:
    return seq(Action(do.end_call), parts.close)


def _scalar(parts: MysqlParts) -> Node:
    known = parts.catalog.functions_of(CallKind.SCALAR)
    names = [_name(parts, CallKind.SCALAR, but=(*_JSON, *_MOMENTS))]
    for mixture, some in ((Mixture.JSON, _JSON), (Mixture.MOMENTS, _MOMENTS)):
        there = tuple(name for name in some if name in known)
        names.append(seq(Action(do.mixed(mixture)), _name(parts, CallKind.SCALAR, only=there)))
    return seq(choice(*names), _some(parts), _closed(parts))


def _aggregate(parts: MysqlParts) -> Node:
    apart = ("group_concat", "count")
    unlike = tuple(
        name for name in parts.catalog.functions_of(CallKind.AGGREGATE) if name not in _DISTINCT and name not in apart
    )
    over = maybe(_over(parts, orders=False, frames=True))
    one = seq(Action(do.argument), parts.expression)
    every = seq(Action(do.counts_all), Sign("*"), parts.close)
    several = seq(words("DISTINCT"), _arguments(parts), _closed(parts))
    single = seq(one, _closed(parts))
    distinct = seq(words("DISTINCT"), one, _closed(parts))
    return choice(
        seq(_name(parts, CallKind.AGGREGATE, only=("count",)), choice(several, seq(choice(every, single), over))),
        seq(_name(parts, CallKind.AGGREGATE, only=_DISTINCT), choice(distinct, seq(single, over))),
        seq(_name(parts, CallKind.AGGREGATE, only=unlike), _some(parts), _closed(parts), over),
    )


_DISTINCT = ("sum", "avg", "min", "max")
"""Aggregates of one argument that may be DISTINCT."""


def _concatenation(parts: MysqlParts) -> Node:
    """GROUP_CONCAT."""
    direction = maybe(choice(words("ASC"), words("DESC")))
    ordered = maybe(words("ORDER BY"), listed(seq(parts.expression, direction), parts.comma))
    separator = maybe(words("SEPARATOR"), Literal(LiteralForm.STRING, AnyString()))
    name = _name(parts, CallKind.AGGREGATE, only=("group_concat",))
    return seq(name, maybe(words("DISTINCT")), _arguments(parts), ordered, separator, _closed(parts))


def _windows(parts: MysqlParts) -> tuple[Node, ...]:
    some = _some(parts)
    number = seq(Action(do.argument), Literal(LiteralForm.NUMBER, Size(1, _MOST_GROUPS)))
    kinds_of = (
        (_name(parts, CallKind.WINDOW, only=_RANKS), some, True, False),
        (_name(parts, CallKind.WINDOW, only=_GROUPS), number, True, False),
        (_name(parts, CallKind.WINDOW, only=_NUMBERS), some, False, False),
        (_name(parts, CallKind.WINDOW, but=(*_RANKS, *_GROUPS, *_NUMBERS)), some, False, True),
    )
    # An aggregate with OVER may have others within: its rows are groups.
    aggregates = _name(parts, CallKind.WINDOW, only=("count", *_DISTINCT), of=CallKind.AGGREGATE)
    every = seq(Action(do.counts_all), Sign("*"), parts.close)
    one = seq(Action(do.argument), parts.expression, _closed(parts))
    return (
        *(
            seq(name, arguments, _closed(parts), _over(parts, orders=orders, frames=frames))
            for name, arguments, orders, frames in kinds_of
        ),
        seq(aggregates, choice(every, one), _over(parts, orders=False, frames=True)),
    )


def _over(parts: MysqlParts, *, orders: bool, frames: bool) -> Node:
    """OVER and its window; ``orders``: must it have an order?"""
    direction = maybe(choice(words("ASC"), words("DESC")))
    partition = maybe(words("PARTITION BY"), listed(parts.expression, parts.comma))
    order = seq(words("ORDER BY"), listed(seq(parts.expression, direction), parts.comma))
    frame = maybe(_frame(parts)) if frames else seq()
    inline = seq(
        parts.open,
        Action(window.begin_window),
        partition,
        order if orders else choice(seq(), order),
        frame,
        Action(window.end_window),
        parts.close,
    )
    return seq(Action(window.may_be_window), words("OVER"), choice(inline, Name(window.WindowName(price=_WINDOW))))


def windows(parts: MysqlParts) -> Node:
    """The clause WINDOW; all functions take a window with an order and without a frame, so all have one."""
    direction = maybe(choice(words("ASC"), words("DESC")))
    partition = maybe(words("PARTITION BY"), listed(parts.expression, parts.comma))
    order = seq(words("ORDER BY"), listed(seq(parts.expression, direction), parts.comma))
    one = seq(
        Name(window.NewWindow()),
        words("AS"),
        Action(window.begin_window),
        parts.open,
        partition,
        order,
        Action(window.end_window),
        parts.close,
        Action(window.define_window),
    )
    clause = seq(Action(window.begin_windows), words("WINDOW"), one, Star(seq(parts.comma, one), window.wants_window))
    return seq(maybe(clause), Action(window.end_windows))


def _frame(parts: MysqlParts) -> Node:
    """A frame; RANGE has no offsets here, since these want an order by one number."""
    before, behind = seq(parts.whole, words("PRECEDING")), seq(parts.whole, words("FOLLOWING"))
    first, last, here = words("UNBOUNDED PRECEDING"), words("UNBOUNDED FOLLOWING"), words("CURRENT ROW")
    rows = choice(
        seq(choice(first, before), words("AND"), choice(before, here, behind, last)),
        seq(here, words("AND"), choice(here, behind, last)),
        seq(behind, words("AND"), choice(behind, last)),
    )
    ranges = seq(choice(first, here), words("AND"), choice(here, last))
    return choice(
        seq(words("ROWS"), choice(first, here, before, seq(words("BETWEEN"), rows))),
        seq(words("RANGE"), choice(first, here, seq(words("BETWEEN"), ranges))),
    )


# Functions with words between their arguments -------------------------------------------------------------------------


def _special(parts: MysqlParts) -> tuple[Node, ...]:
    expression, comma, close = parts.expression, parts.comma, parts.close
    two, three = seq(expression, comma, expression), seq(expression, comma, expression, comma, expression)
    interval = seq(words("INTERVAL"), expression, unit())
    side = choice(words("BOTH"), words("LEADING"), words("TRAILING"))
    moment = choice(*map(words, ("DATE", "TIME", "DATETIME", "TIMESTAMP")))
    piece = choice(seq(expression, words("FROM"), expression, maybe(words("FOR"), expression)), two, three)
    calls = (
        (("cast",), seq(expression, words("AS"), _type(parts))),
        (("convert",), seq(expression, choice(seq(comma, _type(parts)), seq(words("USING"), words("UTF8MB4"))))),
        (("extract",), seq(unit(), words("FROM"), expression)),
        (("date_add", "date_sub"), seq(expression, comma, interval)),
        (("adddate", "subdate"), seq(expression, comma, choice(interval, expression))),
        (("timestampdiff",), seq(unit(long=False), comma, two)),
        (("timestampadd",), seq(unit(long=False), comma, two)),
        (
            ("trim",),
            choice(
                seq(side, maybe(expression), words("FROM"), expression),
                seq(expression, maybe(words("FROM"), expression)),
            ),
        ),
        (("substring", "substr"), piece),
        (("position",), seq(parts.value, words("IN"), expression)),
        (("regexp_substr", "regexp_instr"), seq(expression, comma, parts.pattern)),
        (("regexp_replace",), seq(expression, comma, parts.pattern, comma, expression)),
        (("get_format",), seq(moment, comma, expression)),
        (("now", "curtime", "sysdate", "current_timestamp", "current_time", "utc_timestamp"), maybe(parts.fraction)),
        (("curdate", "current_date", "utc_date"), seq()),
    )
    opened, closed = Action(do.opened_call), Action(do.closed)
    return tuple(
        seq(
            *((Action(do.mixed(Mixture.MOMENTS)),) if names[0] in _SUMS else ()),
            *(opened, _called(names), Action(do.call), inside, closed, close),
        )
        for names, inside in calls
    )


def _called(names: tuple[str, ...]) -> Node:
    return Name(FixedName("a function", [f"{name}(" for name in names]), Spelled.WORD)


def _type(parts: MysqlParts) -> Node:
    sized = maybe(parts.open, parts.fraction, parts.close)
    length = seq(parts.open, parts.whole, parts.close)
    return choice(
        seq(choice(Keyword("char"), Keyword("binary")), maybe(length)),
        seq(Keyword("varchar"), length),
        seq(Keyword("decimal"), parts.precision()),
        seq(choice(Keyword("signed"), Keyword("unsigned")), maybe(words("INTEGER"))),
        *map(words, ("INTEGER", "INT", "DOUBLE", "FLOAT", "DATE")),
        seq(choice(Keyword("datetime"), Keyword("time")), sized),
    )
