"""How engines find what a name means, where they differ."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SQLITE_LAWS", "Laws"]


@dataclass(frozen=True, eq=False)
class Laws:
    """What differs; the defaults are SQLite's."""

    distinct_columns: bool = False
    """Must the columns of a sub-query in FROM, and of a common table expression, have different names?"""
    star_first: bool = False
    """May ``*`` only be the first column?"""
    comma_apart: bool = False
    """Do the conditions of a join know only the sources behind the last comma?"""
    selected_first: bool = False
    """Are names of GROUP BY, HAVING and ORDER BY those of the result first, and those of HAVING no others?"""
    one_aggregate: bool = False
    """Has an aggregate no other in its arguments, not even in a sub-query?"""
    part_windows: bool = True
    """May ORDER BY of a part in brackets have a window?"""
    case_folded: bool = False
    """Are common table expressions of one name but for its letter case the same?"""
    lost_names: frozenset[str] = frozenset(["true", "false"])
    """Names that no column of a query has as a source: there it is called by its place instead."""


SQLITE_LAWS = Laws()
