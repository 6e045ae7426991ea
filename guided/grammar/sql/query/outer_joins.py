"""RIGHT and FULL JOIN of SQLite: ``*`` names what USING makes one.

Of a source before such a join, ``*`` has the value of both sides for a column that USING or NATURAL makes one. SQLite
looks for it by its name alone, which must not be ambiguous.
"""

from __future__ import annotations

from guided.grammar.sql.query.scope import Pending, Query, conflicts, has_star

__all__ = ["begin_outer", "starred_names"]


def begin_outer(query: Query) -> Query | None:
    """RIGHT or FULL JOIN; None where ``*`` would be ambiguous already."""
    found = starred_names(query._replace(before_outer=len(query.sources)))
    return None if conflicts(found) else found


def starred_names(query: Query) -> Query:
    """The query in which what ``*`` looks for by name waits without a qualifier."""
    if not query.before_outer or not has_star(query):
        return query
    stars = {output.star for output in query.outputs}
    found: set[str] = set()
    for place, source in enumerate(query.sources[: query.before_outer]):
        if not stars.isdisjoint(("", source.name)):
            found.update(*(source.relation.visible & later.merged for later in query.sources[place + 1 :]))
    waiting = query.pending.union(Pending(None, name, True) for name in found)
    return query._replace(pending=waiting) if found else query
