"""What is done with each element of a list: ``list_transform(l, lambda x: x * 2)``, ``list_filter``, ``list_reduce``.

A parameter is known in the body alone, where it hides columns of its name.  There the engine takes no query, and
neither aggregates nor windows are taken here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from guided.grammar.attributed.nodes import Action, Name, Names, Node, Sign, Spelled, choice, maybe, seq, words
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import LETTERS
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.computed.contexts import unless_computed
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.frames import CONDITION, Lambda, parameters
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import ALL, ANY_NULL, BIT, only, settled
from guided.grammar.sql.query.typed.undecided import is_undecided

__all__ = ["Parameter", "lambdas"]

_TRANSFORM = ("list_transform", "array_transform", "list_apply", "array_apply", "apply")
_FILTER = ("list_filter", "array_filter", "filter")
_REDUCE = ("list_reduce", "array_reduce", "reduce")
_INDEX = "int8"
"""The type of an element's place."""


def lambdas(dialect: TypedDialect, catalog: Catalog, body: Node) -> Node:
    """The functions of lists that take a lambda."""
    name = Name(_NewParameter(catalog, dialect.keywords))
    one, two = name, seq(name, Sign(","), name)
    ways = (
        (_TRANSFORM, seq(one, maybe(Sign(","), name)), _listable, _mapped),
        (_FILTER, seq(one, maybe(Sign(","), name)), lambda query: CONDITION, _as_it_was),
        (_REDUCE, seq(two, maybe(Sign(","), name)), _element, _reduced),
    )
    first = seq(Action(_begin_first), Sign(","), body, Action(do.end))
    found = []
    for names, named, goal, result in ways:
        more = (maybe(first),) if names is _REDUCE else ()
        call = seq(Name(_Function(names), Spelled.WORD), Sign("("), Action(_begin_list), body, Action(_end_list))
        each = seq(words("LAMBDA"), named, Sign(":"), Action(_begin_body(goal)), body, Action(_end_body))
        found.append(seq(call, Sign(","), each, *more, Action(_end_call(result)), Sign(")")))
    return seq(Action(unless_computed), choice(*found))


class _Function:
    """A function whose call begins."""

    label = "a function of a list and a lambda"
    price = max(map(len, _TRANSFORM))

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = Names(words_of(names))
        self._none = Names(words_of(()))
        self._reads_two = names is _REDUCE

    def allowed(self, query: Query) -> Names:
        """All of the kind, or none."""
        return self._names if do.open_operand(query) and query.followed is None else self._none

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the call open."""
        found = do.at_operand(query)
        found = found and do.untraced(found)
        return found and found.pushed(Lambda(reads_two=self._reads_two))

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a literal is shorter."""
        return ()


class _NewParameter:
    """A parameter, which no table has as a column."""

    label = "a name for the parameter"
    price = 1

    def __init__(self, catalog: Catalog, keywords: frozenset[str]) -> None:
        self._apart = keywords | catalog.names

    def allowed(self, query: Query) -> Names:
        """Any that is no word of the engine's, no column and no other parameter."""
        return Names(words_of(()), True, self._apart.union(query.frame.names, parameters(query.around)))

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted."""
        frame = query.frame
        if not name or name in self._apart or name in frame.names or name in parameters(query.around):
            return None
        return query.with_top(frame._replace(names=(*frame.names, name)))

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter."""
        return [letter for letter in LETTERS if self.after(query, letter) is not None]


class Parameter:
    """A parameter as an operand."""

    label = "a parameter"
    price = 64

    def allowed(self, query: Query) -> Names:
        """Those of the lambdas around."""
        return Names(words_of(parameters(query.around) if do.open_operand(query) else ()))

    def after(self, query: Query, name: str) -> Query | None:
        """The query behind it."""
        found = do.at_operand(query)
        found = found and do.read(found, parameters(query.around)[name], (name, 2))
        return found and found.with_top(found.top._replace(indexed=True))

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a literal is shorter."""
        return ()


@cache
def _lists(system: TypeSystem) -> int:
    """The types of lists."""
    return sum(BIT[name] for name in system.types if name[0] == "_")


def _begin_list(query: Query) -> Query | None:
    """Before the list."""
    return do.push(query, _lists(query.system))


def _end_list(query: Query) -> Query | None:
    """Behind it."""
    ended = do.end(query)
    return ended and ended.with_top(ended.frame._replace(list=ended.value))


@cache
def _listable_of(system: TypeSystem) -> int:
    """The types of which there are lists."""
    names = (name for name, bit in BIT.items() if ALL & bit and name != ANY_NULL and not is_undecided(name))
    return sum(BIT[name] for name in names if "_" + settled(system, name) in system.types)


def _listable(query: Query) -> int:
    """The types of what elements become."""
    return _listable_of(query.system)


def _element(query: Query) -> int:
    """The type of the elements, which those have that are made of two."""
    return BIT[query.frame.list[1:]]


def _begin_body(goal: Callable[[Query], int]) -> do.Change:
    """Behind the colon, before what must have one of some types."""

    def change(query: Query) -> Query | None:
        return do.push(query.with_top(query.frame._replace(open=True)), goal(query))

    return change


def _end_body(query: Query) -> Query | None:
    """Behind the body, where no parameter is known any more."""
    ended = do.end(query)
    return ended and ended.with_top(ended.frame._replace(open=False, body=ended.value))


def _begin_first(query: Query) -> Query | None:
    """Before the value with which the elements are reduced, as if it were the first of them."""
    element = query.frame.list[1:]
    return do.push(query, only(element) if element == "text" else BIT[element])


def _end_call(result: Callable[[Query], str]) -> do.Change:
    """Behind the arguments: an operand that a subscript may follow."""

    def change(query: Query) -> Query | None:
        found = do.read(query.popped(), result(query), ("", 0))
        return found and found.with_top(found.top._replace(indexed=True))

    return change


def _mapped(query: Query) -> str:
    """A list of what the body gives."""
    return "_" + settled(query.system, query.frame.body)


def _as_it_was(query: Query) -> str:
    """Some of the elements."""
    return str(query.frame.list)


def _reduced(query: Query) -> str:
    """One element."""
    return str(query.frame.list[1:])
