"""Literals that are held to a spelling: regular expressions and dates, which MariaDB reads while it prepares."""

from __future__ import annotations

from guided.grammar.attributed.spellings import Spellings
from guided.grammar.sql.query.scope import Query

__all__ = ["DATE", "MOMENT", "PATTERN", "SpelledString"]

_PLAIN = "[A-Za-z0-9 _,;:@#%&=<>!/~-]"
_ITEM = "([A-Za-z0-9 _,;:@#%&=<>!/~.]|a-[b-z]|A-[B-Z]|0-[1-9]|[[]:(alpha|digit|alnum|space|upper|lower|punct):\\])"
_CLASS = rf"\[\^?{_ITEM}{{1,40}}\]"
_TIMES = "([*+?]|[{][0-9]{1,2}(,[}]|[}])|[{](0,[1-9]|1,[1-9]|2,[2-9]|3,[3-9])[}])?"
_PIECE = rf"({_PLAIN}|[.]|{_CLASS}){_TIMES}"
_INNER = rf"(\^?({_PIECE}){{0,40}}[$]?)"
_GROUP = rf"\({_INNER}(\|{_INNER}){{0,20}}\)[*+?]?"
_BRANCH = rf"\^?({_PIECE}|{_GROUP}){{0,60}}[$]?"
PATTERN = Spellings(rf"{_BRANCH}(\|{_BRANCH}){{0,20}}")
"""Regular expressions of PCRE and ICU without escapes, of one level of groups."""
_DAY = "(19|20)[0-9][0-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
DATE = Spellings(_DAY)
"""Days that all months have; the last ones of a month are free strings elsewhere."""
MOMENT = Spellings(rf"{_DAY} ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{{1,6}})?")


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
