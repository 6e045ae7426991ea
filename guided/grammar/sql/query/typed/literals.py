"""Literals in queries whose types are followed: each is held to the texts that the engine reads as its type."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Literal, LiteralForm
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.attributed.states import ANY
from guided.grammar.attributed.words import Words, numbers_between, words_of
from guided.grammar.sql.query.days import DAY
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed import clauses, frames
from guided.grammar.sql.query.typed.computed.contexts import scaled
from guided.grammar.sql.query.typed.computed.digits import digits_of, digits_of_text
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.frames import Calling
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.types import BIT, ENUMS

__all__ = [
    "PATTERNS", "Escape", "Field", "Number", "Percent", "Place", "Position", "Size", "Text", "TypedText", "numbers_of",
    "strings_of",
]  # fmt: skip

_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_UNITS = ("years?", "months?|mons?", "weeks?", "days?", "hours?|hrs?", "minutes?|mins?", "seconds?|secs?")
_HELD_FIELDS = BIT["'field"] | BIT["'part"]
_NOTHING = words_of(())
_LONG = ANY.decode()
"""What is heard of a text that was not kept."""


def _span() -> str:
    """An interval: each unit once, in their order."""
    parts = [f"(-?[0-9]{{1,4}} ?({unit}))" for unit in _UNITS]
    found = parts[-1]
    for part in reversed(parts[:-1]):
        found = f"({part}( {found})?|{found})"
    # Without regard to case in ASCII only: a long s is no letter of a unit.
    return f"(?ai:{found})"


_FIELD = "century|decade|year|quarter|month|week|day|hour|minute|second|millisecond|microsecond"


def _regex() -> str:
    """Regular expressions as RE2 takes them: groups within groups, alternatives, classes, anchors at their ends."""
    times = "|".join(f"{low}(,[{low}-9]?)?" for low in range(10))
    repeated = rf"([*+?]\??|\{{({times})\}})?"
    classes = r"\[\^?(a-z|A-Z|0-9|\\[dwsDWS.-]|[A-Za-z0-9 _.,:;@#%&/+*?()$!<>=~])+-?\]"
    piece = rf"(?:([A-Za-z0-9 _.,:;@#%&/=<>~!-]|\\[dwsbDWS.+*?(){{}}|$/-]|\\\[|\\\]|{classes}){repeated})"
    for _ in range(2):
        branch = rf"(?:\^?{piece}+\$?)"
        piece = rf"(?:{piece}|\((\?:)?{branch}(\|{branch})*\){repeated})"
    branch = rf"(?:\^?{piece}*\$?)"
    return rf"{branch}(\|{branch})*"


def _json() -> str:
    """Objects and arrays of JSON, three within one another."""
    text = r'"[A-Za-z0-9 _.,:;@#%&/=<>~+*?!()$-]*"'
    value = rf"({text}|-?(0|[1-9][0-9]{{0,14}})(\.[0-9]{{1,9}})?|true|false|null)"
    found = ""
    for _ in range(3):
        found = rf"(\{{( ?{text}: ?{value}(, ?{text}: ?{value})*)? ?\}}|\[( ?{value}(, ?{value})*)? ?\])"
        value = rf"({value}|{found})"
    return found


def _array() -> str:
    """Arrays of texts, with and without quotes."""
    word = r"[A-Za-z0-9_.@/:+#-]+"
    item = rf"({word}( {word})*|\"[A-Za-z0-9 _.,:;@#%&/=<>~+*?!()$-]*\")"
    return rf"\{{({item}(, ?{item})*)?\}}"


def _json_path() -> str:
    """Paths of SQL's standard into JSON: members, elements, and a comparison or one filter of such."""
    steps = r"(\.([A-Za-z_][A-Za-z0-9_]*|\*)|\[(\*|last|0|[1-9][0-9]{0,2})\])*"
    value = r"(\"[A-Za-z0-9 _.,:;@#%&/=<>~+*?!()$-]*\"|-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,9})?|true|false|null)"
    compared = rf"{steps} ?(==|!=|<>|<|<=|>|>=) ?{value}"
    condition = f"@{compared}"
    found = rf"{steps}( ?\? ?\({condition}( ?(&&|\|\|) ?{condition})*\){steps})?"
    return rf"((strict|lax) )?\$({compared}|{found})"


PATTERNS = {
    "'whole": "-?[0-9]{1,4}",
    "'integer": "-?[0-9]{5,9}",
    "'decimal": r"-?[0-9]{1,9}\.[0-9]{1,9}",
    "'date": DAY,
    "'timestamp": rf"({DAY})[ T]{_CLOCK}(\+00|Z)?",
    "'time": _CLOCK,
    "'interval": _span(),
    "'bool": "(?ai:true|false|yes|no|t|f|y|n)",
    "'json": _json(),
    "'array": _array(),
    "'field": f"(?ai:{_FIELD})",
    "'part": f"(?ai:{_FIELD}|dow|doy|isodow|isoyear|weekday|dayofweek|dayofyear)",
    "'uuid": "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "'format": "([ -$&(-~]|%[abcdfghjmnpuwxyzABGHIMSTUVWXYZ]|%-[dmyHIMSj])+",
    "'regex": _regex(),
    "'flags": "[ims]",
    "'replaced": "g|gi|i|im|s",
    "'jsonpath": _json_path(),
    "'config": "simple|english|german|french|spanish|italian|portuguese|dutch|russian",
    "'query": r"!?[A-Za-z]+(:\*)?( ?[&|] ?!?[A-Za-z]+(:\*)?)*",
    "'bounds": r"[\[(][\])]",
    "'path": r"(\$(\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]{1,3}\])*|[A-Za-z_][A-Za-z0-9_]*)",
}
_SPELLINGS = {name: Spellings(pattern) for name, pattern in PATTERNS.items()}
_SHORTEST = {
    "int4": "1",
    "int8": "3000000000",
    "numeric": "1.0",
    "float8": "1e0",
    "'share": "1",
    "'digits": "1",
    "'code": "1",
}
_TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "decade", "century")
_FIELDS = {
    "date_trunc": words_of(_TRUNCATED),
    "date_part": words_of([*_TRUNCATED, "dow", "doy", "epoch", "isodow", "isoyear"]),
}
"""What a function takes as the name of a field."""


def _fields(query: Query) -> Words | None:
    """The names of fields of a date, if one is read."""
    if not query.around or query.top.waits or query.top.goal & _HELD_FIELDS:
        return None
    call = query.around[-1]
    return _FIELDS.get(call.name) if isinstance(call, Calling) and not call.types else None


def _followed(
    query: Query, values: Words | Spellings | None, quote: str = "", before: str = ""
) -> Words | Spellings | None:
    """Some literals, where the expression must become a group those that come next of it."""
    if query.followed is None:
        return values
    begin, end = before + quote, len(quote)
    parts = [part[len(begin) : len(part) - end] for part in do.next_parts(query) if part.startswith(begin)]
    return words_of(part for part in parts if values is None or part in values)


class Number:
    """A number that the engine reads as one type."""

    label = "a number"

    def __init__(self, name: str, pattern: str) -> None:
        self.name = name
        self.values = Spellings(pattern)
        self.shortest = _SHORTEST[name]

    def allowed(self, query: Query) -> Words | Spellings | None:
        """All of the type, where one may stand."""
        fits = not query.alone and frames.fits(query.top, self.name)
        return _followed(query, self.values) if fits else _NOTHING

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query behind it."""
        digits = digits_of_text(text) if query.computed else 0
        return do.read(do.hear(query, text), self.name, digits=digits)


class Text:
    """A string literal by what it can be read as."""

    label = "a string"

    def __init__(self, name: str, labels: tuple[str, ...] = ()) -> None:
        self.name = name
        self.values = None if name == "'text" else words_of(labels) if labels else _SPELLINGS[name]
        self.shortest = "''" if self.values is None else "'" + self.values.sorted[0].decode() + "'"

    def allowed(self, query: Query) -> Words | Spellings | None:
        """Those of its spelling, any if it is a text; only where one may stand."""
        if query.alone or not frames.fits(query.top, self.name):
            return _NOTHING
        fields = _fields(query)
        if fields is not None:
            return _followed(query, fields, "'") if self.name == "'text" else _NOTHING
        return _followed(query, self.values, "'")

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query behind it; of a long text it is not known which."""
        known = text != _LONG
        heard = do.hear(query, f"'{text}'") if known else do.untraced(query)
        return do.read(heard, self.name, digits=digits_of(self.name))


class TypedText:
    """The text behind the name of a type, as of DATE '2020-01-01'."""

    label = "a text of the type"

    def __init__(self, name: str, target: str) -> None:
        self.values = _SPELLINGS[name]
        self.target = target
        self.shortest = "'" + self.values.sorted[0].decode() + "'"

    def allowed(self, query: Query) -> Words | Spellings | None:
        """Those of its spelling."""
        return _followed(query, self.values, "'", f"{self.target} ")

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query behind it."""
        return do.read(do.hear(query, f"{self.target} '{text}'"), self.target, (self.target, 1), digits_of(self.target))


class Field:
    """The name of a field of a date, in quotes."""

    label = "a field"

    def __init__(self, names: Iterable[str]) -> None:
        self.values = Spellings(f"(?ai:{'|'.join(names)})")
        self.shortest = "'" + self.values.sorted[0].decode() + "'"

    def allowed(self, query: Query) -> Words | Spellings | None:
        """All of them."""
        return _followed(query, self.values, "'")

    def after(self, query: Query, text: str) -> Query | None:
        """The query behind it."""
        return do.hear(query, f"'{text}'")


class Escape:
    """The character behind ESCAPE."""

    label = "a character"
    shortest = "'!'"
    _values = words_of("!\\#|$/~^@")

    def allowed(self, query: Query) -> Words | Spellings | None:
        """The same everywhere."""
        return self._values

    def after(self, query: Query) -> Query | None:
        """The query behind it: the pattern is whole."""
        found = frames.escaped(query.top)
        return None if found is None else query.with_top(found)


class Size:
    """A whole number that is no value, from one to another."""

    label = "a whole number"

    def __init__(self, low: int, high: int) -> None:
        self.shortest = str(low)
        self._values = numbers_between(low, high)

    def allowed(self, query: Query) -> Words | Spellings | None:
        """The same everywhere."""
        return self._values

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query as it was."""
        return query


class Percent:
    """A part of a hundred, above none."""

    label = "a percentage"
    shortest = "1"
    _values = Spellings(r"100|[1-9][0-9]?(\.[0-9]{1,4})?|0?\.[0-9]{0,3}[1-9]")

    def allowed(self, query: Query) -> Words | Spellings | None:
        """The same everywhere."""
        return self._values

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query as it was."""
        return query


class Digits(Size):
    """How many digits a decimal has, which holds those behind its point (`Scale`, or `without_scale`)."""

    label = "a number of digits"

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query with the digits noted."""
        return query._replace(digits=int(text))


class Scale:
    """How many of them are behind the point."""

    label = "a number of digits behind the point"

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high
        self.shortest = str(low)

    def allowed(self, query: Query) -> Words | Spellings | None:
        """Not more than there are."""
        return numbers_between(self.low, min(self.high, query.digits))

    def after(self, query: Query, text: str) -> Query | None:
        """The query as it was before the digits."""
        return scaled(query, query.digits - int(text))._replace(digits=0)


def without_scale(query: Query) -> Query:
    """Behind the digits of a decimal, none of which is said to be behind its point."""
    return scaled(query, query.digits)._replace(digits=0)


class Position:
    """The position of a column of the result as a term of GROUP BY or ORDER BY."""

    label = "the position of a column"
    shortest = "1"

    def allowed(self, query: Query) -> Words | Spellings | None:
        """Those of columns that may be such a term."""
        count = len(query.outputs)
        return words_of(str(place + 1) for place in range(count) if clauses.may_order(query, place))

    def after(self, query: Query) -> Query | None:
        """The query as it was; `Place` is for where it matters which."""
        return query


class Place:
    """The position of one column of the result, as a term of GROUP BY."""

    label = "the position of a column"

    def __init__(self, place: int) -> None:
        self.place = place
        self.shortest = str(place + 1)
        self._values = words_of([self.shortest])

    def allowed(self, query: Query) -> Words | Spellings | None:
        """It, if rows may be grouped by it."""
        fits = self.place < len(query.outputs) and clauses.may_order(query, self.place)
        return self._values if fits else _NOTHING

    def after(self, query: Query) -> Query | None:
        """The query with the term."""
        return clauses.term_of(query, self.place)


def numbers_of(dialect: TypedDialect) -> list[Literal]:
    """Numbers by their types, whole ones first."""
    return [Literal(LiteralForm.NUMBER, Number(name, pattern), hears=True) for name, pattern in dialect.numbers.items()]


def strings_of(dialect: TypedDialect) -> list[Literal]:
    """Strings by what they can be read as; any text gives way to those that are known."""
    found: list[Literal] = []
    labels = {f"'{name}": of for name, of in zip(ENUMS, dialect.enums, strict=False)}
    for name in (*labels, *dialect.strings):
        any_ = name == "'text"
        keeps = do.is_heard if any_ else None
        found.append(
            Literal(LiteralForm.STRING, Text(name, labels.get(name, ())), gives_way=any_, hears=True, keeps=keeps)
        )
    return found
