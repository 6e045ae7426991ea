"""The names that mean something in a query: others are all alike there."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.watched import asked, gathered
from guided.grammar.sql.query.relations import Source
from guided.grammar.sql.query.scope import Output, Pending, Query

__all__ = ["known_names", "told_names"]

_ELSE = ("tables", "relation", "name", "uses", "defined", "recursion")
_OWN = ("pending", "outputs", "sources", "result", *_ELSE)
"""Fields that hold names."""


def known_names(query: Query) -> frozenset[str]:
    """The names that mean something in a query or around it."""
    found: set[str] = set()
    at: Query | None = query
    while at is not None:
        found |= _own_names(at)
        at = at.parent
    return frozenset(found)


def _own_names(query: Query) -> set[str]:
    """Those that mean something in the query itself."""
    parts = (
        *map(_of_pending, query.pending), *map(_of_source, query.sources), *map(_of_output, query.outputs),
        _of_result(query),
    )  # fmt: skip
    return _else_names(query).union(*parts)


def _of_pending(pending: Pending) -> tuple[str, ...]:
    return pending.column, pending.qualifier or ""


def _of_source(source: Source) -> tuple[str, ...]:
    return source.name, *source.relation.names


def _of_output(output: Output) -> tuple[str, ...]:
    return (output.name or "",)


def _of_result(query: Query) -> tuple[str, ...]:
    return tuple(name or "" for name in query.result or ())


def _else_names(query: Query) -> set[str]:
    found = {name for name, _ in query.tables}
    if query.relation is not None:
        found |= query.relation.names
    found.add(query.name)
    found.update(use.name for use in query.uses)
    found.update(window.name for window in query.defined)
    if query.recursion is not None and query.recursion.relation is not None:
        found |= query.recursion.relation.names
    return found


def told_names(query: Query, among: frozenset[str], before: str) -> frozenset[str]:
    """Those of some texts which, behind the one ``before``, are such names."""
    found = _told_here(query, among, before)
    return found if query.parent is None else found | told_names(query.parent, among, before)


@asked(*_OWN)
def _told_here(query: Query, among: frozenset[str], before: str) -> frozenset[str]:
    if query.__class__ is Query:
        return _known(_own_names(query), among, before)
    # Of a watched query each part is asked by itself.
    found = _told_pending(query, among, before) | _told_outputs(query, among, before)
    found |= _told_sources(query, among, before) | _told_result(query, among, before)
    return found | _told_else(query, among, before)


def _known(names: Iterable[str], among: frozenset[str], before: str) -> frozenset[str]:
    size = len(before)
    return among.intersection([name[size:] for name in names if name.startswith(before)])


@gathered("pending", frozenset[str]())
def _told_pending(pending: Pending, among: frozenset[str], before: str) -> frozenset[str]:
    return _known(_of_pending(pending), among, before)


@gathered("outputs", frozenset[str]())
def _told_outputs(output: Output, among: frozenset[str], before: str) -> frozenset[str]:
    return _known(_of_output(output), among, before)


@gathered("sources", frozenset[str]())
def _told_sources(source: Source, among: frozenset[str], before: str) -> frozenset[str]:
    return _known(_of_source(source), among, before)


@asked("result")
def _told_result(query: Query, among: frozenset[str], before: str) -> frozenset[str]:
    return _known(_of_result(query), among, before)


@asked(*_ELSE)
def _told_else(query: Query, among: frozenset[str], before: str) -> frozenset[str]:
    return _known(_else_names(query), among, before)
