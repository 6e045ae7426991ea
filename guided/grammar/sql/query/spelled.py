"""Literals that are held to a spelling: regular expressions and dates, which MariaDB reads while it prepares."""

from __future__ import annotations

from guided.grammar.attributed.lexis import ascii_lower
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.sql.query.days import DAY
from guided.grammar.sql.query.scope import Query

__all__ = ["DATE", "MOMENT", "PATTERN", "AliasInQuotes", "SpelledString", "may_be_any"]

_PLAIN = "[A-Za-z0-9 _,;:@#%&=<>!/~-]"
_ITEM = (
    "([A-Za-z0-9 _,;:@#%&=<>!/~.+*?()|]|a-[b-z]|A-[B-Z]|0-[1-9]|[[]:(alpha|digit|alnum|space|upper|lower|punct):\\])"
)
_CLASS = rf"\[\^?{_ITEM}{{1,40}}-?\]"
_TIMES = "([*+?]|[{][0-9]{1,2}(,[}]|[}])|[{](0,[1-9]|1,[1-9]|2,[2-9]|3,[3-9])[}])?"
_PIECE = rf"({_PLAIN}|[.]|{_CLASS}){_TIMES}"
_INNER = rf"(\^?({_PIECE}){{0,40}}[$]?)"
_GROUP = rf"\({_INNER}(\|{_INNER}){{0,20}}\)[*+?]?"
_BRANCH = rf"\^?({_PIECE}|{_GROUP}){{0,60}}[$]?"
PATTERN = Spellings(rf"{_BRANCH}(\|{_BRANCH}){{0,20}}")
"""Regular expressions of PCRE and ICU without escapes, of one level of groups."""
DATE = Spellings(DAY)
MOMENT = Spellings(rf"({DAY}) ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,6}})?")


_SIGN = r"[!#-&(-\[\]-~]"
_NAME = Spellings(rf"{_SIGN}([ ]?{_SIGN}){{0,50}}")


def may_be_any(query: Query) -> Query | None:
    """A column whose name may be any."""
    return None if query.is_distinct or query.barred else query


class AliasInQuotes:
    """The name of a column as a string, where it may be any."""

    label = "a name for the column"
    shortest = "'a'"

    def allowed(self, query: Query) -> Spellings:
        """ASCII without quotes, in words of one blank between them."""
        return _NAME

    def after(self, query: Query, text: str) -> Query:
        """The query with the name noted."""
        return query._replace(item=ascii_lower(text), named=True)


class SpelledString:
    """A string of some spelling; its ``label`` says which."""

    def __init__(self, label: str, spellings: Spellings) -> None:
        self.label = label
        self.shortest = "'" + min(spellings.members, key=len) + "'"
        self._spellings = spellings

    def allowed(self, query: Query) -> Spellings:
        """Those of the spelling."""
        return self._spellings

    def after(self, query: Query) -> Query:
        """The query as it was."""
        return query
