"""Expressions whose types are followed: operands, what stands around them, and operators in a flat row.

Which operator binds more tightly is not in the tree but in the attribute (`typed.frames`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from guided.grammar.attributed.nodes import (
    Action,
    Choice,
    Literal,
    LiteralForm,
    Name,
    Names,
    Node,
    Rule,
    Seq,
    Sign,
    Spelled,
    Star,
    choice,
    listed,
    maybe,
    seq,
    words,
)
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.typed import alternatives, frames, new_names, queries
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.arguments import COMMA
from guided.grammar.sql.query.typed.calls import call, made
from guided.grammar.sql.query.typed.columns import references as names
from guided.grammar.sql.query.typed.columns.catalog import MOST_VARIANTS, Catalog
from guided.grammar.sql.query.typed.columns.groupings import grouping
from guided.grammar.sql.query.typed.columns.results import ResultName
from guided.grammar.sql.query.typed.columns.unsorted import next_group
from guided.grammar.sql.query.typed.computed.contexts import (
    begin_part,
    casting,
    is_part,
    lacks_query,
    leading,
    leads,
    leads_list,
    may_be_null,
    mixing,
    unless_computed,
    varied,
    wants_query,
)
from guided.grammar.sql.query.typed.computed.digits import UNSURE, amount_of_cast
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.frames import UNKNOWN
from guided.grammar.sql.query.typed.literals import (
    Digits,
    Escape,
    Number,
    Scale,
    Size,
    Text,
    TypedText,
    numbers_of,
    strings_of,
    without_scale,
)
from guided.grammar.sql.query.typed.operators import COMPARISONS, EQUALITIES
from guided.grammar.sql.query.typed.parts.arrows import arrows
from guided.grammar.sql.query.typed.parts.lambdas import Parameter, lambdas
from guided.grammar.sql.query.typed.parts.nested import parts_of_nested, type_node
from guided.grammar.sql.query.typed.relations import bare_columns
from guided.grammar.sql.query.typed.row_values import compared_row
from guided.grammar.sql.query.typed.scope import Clause, Query
from guided.grammar.sql.query.typed.types import (
    ALL,
    ANY_NULL,
    BIT,
    HELD,
    LISTS,
    LITERALS,
    NO_LISTS,
    OTHER,
    is_literal,
    members,
    only,
    turns_into,
)
from guided.grammar.sql.query.typed.undecided import example, is_undecided, stands_for

__all__ = ["beginning_with", "casts", "columns", "expression"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")
_ROOM = {"smallint": 4, "int2": 4}
"""The digits for which types have room by their words, where others have the same type."""


class TypeName:
    """The type that a cast leads to; ``behind`` says that the operand is right before it, without a bracket."""

    label = "a type"

    def __init__(self, dialect: TypedDialect, *, behind: bool, array: bool = False) -> None:
        known = dialect.system.types
        self.words = {word: name for word, name in dialect.type_words.items() if not array or "_" + name in known}
        self.price = max(map(len, self.words))
        self.shortest = {name: word for word, name in sorted(self.words.items(), key=lambda item: -len(item[0]))}
        self.behind = behind
        self.array = array

    def allowed(self, query: Query) -> Names:
        """Those to which there is a cast."""
        source = query.top.type if self.behind else query.value
        found = [word for word in self.words if turns_into(query.system, source, self._of(word))]
        if query.computed:
            sure = [word for word in found if _is_sure(query, source, self._of(word), self.behind)]
            if sure or not self._is_other(query):
                return Names(words_of(sure or found))
            return Names(words_of(()))
        return Names(words_of(found))

    def _is_other(self, query: Query) -> bool:
        """Does it become a list that no constant fails, where this is none, or the other way round?"""
        if not is_part(query):
            return False
        top = query.top._replace(type="") if self.behind else query.top
        source = query.top.type if self.behind else query.value
        others = members(frames.leading(top) & (NO_LISTS if self.array else LISTS))
        return any(
            turns_into(query.system, source, name) and _is_sure(query, source, name, self.behind) for name in others
        )

    def _of(self, word: str) -> str:
        return ("_" if self.array else "") + self.words[word]

    def _has(self, name: str) -> bool:
        return name.startswith("_") is self.array and name.removeprefix("_") in self.shortest

    def after(self, query: Query, name: str) -> Query | None:
        """The query behind the cast."""
        to = cast_to(self._of(name), behind=self.behind, room=_ROOM.get(name, 0), any_=True, word=name)
        return to(query)

    def suggested(self, query: Query) -> Iterable[str]:
        """One with which the expression may end, else text."""
        targets = [part[2:].partition(" ") for part in do.next_parts(query) if part[:2] == "::"]
        if targets:
            had = ((name.removeprefix("_"), word) for name, _, word in targets if self._has(name))
            return [word if word in self.words else self.shortest[name] for name, word in had]
        found = list(self._suggested(query))
        if query.computed:
            # There it may be none of these.
            words = self.allowed(query).words.members
            found = [word for word in found if word in words]
            found += sorted(words.difference(found), key=lambda word: (len(word), word))
        return found

    def _suggested(self, query: Query) -> Iterable[str]:
        if not self.behind:
            return ("text",)
        source = query.top.type
        wished = [wish] if (wish := _wish(query)) else list(frames.target_types(query.top))
        found = [name for name in wished if turns_into(query.system, source, name) and self._has(name)]
        if not found:
            return () if self.array else ("text",)
        return sorted((self.shortest[name.removeprefix("_")] for name in found), key=len)


def begin_cast(query: Query) -> Query | None:
    """The operand of CAST."""
    return query.pushed(leading(query, ALL))


def _is_sure(query: Query, source: str, target: str, behind: bool) -> bool:
    """Is a cast one that no constant fails, and that needs no other?"""
    top = query.top._replace(type="") if behind else query.top
    leads_on = frames.leading(top) == ALL or frames.hopes(top) & BIT[target]
    return bool(leads_on) and not amount_of_cast(source, 0, target)[1]


def cast_to(target: str, *, behind: bool, room: int = 0, any_: bool = False, word: str = "") -> do.Change:
    """A cast to one type, which may have ``room`` for so many digits; ``word`` is how it is written.

    Where constants are computed it must be one that they do not fail, unless it is ``any_``.
    """

    def change(query: Query) -> Query | None:
        source = query.top.type if behind else query.value
        if not turns_into(query.system, source, target):
            return None
        # DuckDB takes groups for others where their types are written in other words.
        heard = f"{target} {word}" if word and query.system.lists else target
        if query.computed and not any_ and not _is_sure(query, source, target, behind):
            return None
        if behind:
            found = do.cast(query, target, heard)
            return found and casting(found, source, query.top.digits, target, room)
        label = query.label if query.label[1] > 1 else (target.removeprefix("_"), 1)
        found = do.read(do.hear(query, "::" + heard), target, label)
        return found and casting(found, source, query.amount, target, room)

    return change


def _cast_to_nested(target: str, *, behind: bool) -> do.Change:
    """A cast to a struct, a map or a list of such."""
    to = cast_to(target, behind=behind, any_=True)

    def change(query: Query) -> Query | None:
        source = query.top.type if behind else query.value
        fails = is_part(query) and not _is_sure(query, source, target, behind)
        return None if fails else to(query)

    return change


def _type(dialect: TypedDialect, *, behind: bool) -> Node:
    to = partial(cast_to, behind=behind)
    size = Literal(LiteralForm.NUMBER, Size(1, 999))
    sized = [
        seq(Action(to(name)), Action(do.untraced), words(word), _OPEN, size, _CLOSE)
        for word, name in dialect.sized_types.items()
    ]
    decimal = choice(words("DECIMAL"), words("NUMERIC"))
    scaled = []
    for name, least, most in dialect.scaled_types:
        digits = Literal(LiteralForm.NUMBER, Digits(max(1, least), dialect.most_digits), hears=True)
        scale = seq(_COMMA, Literal(LiteralForm.NUMBER, Scale(least, most), hears=True))
        scaled.append(
            seq(Action(to(name, room=UNSURE)), Action(do.untraced), decimal, _OPEN, digits,
                scale if least else choice(scale, Action(without_scale)), _CLOSE)
        )  # fmt: skip
    several = [seq(Action(to(name, word=word.lower())), words(word)) for word, name in dialect.type_phrases.items()]
    array = seq(Name(TypeName(dialect, behind=behind, array=True), Spelled.WORD), Sign("["), Sign("]"))

    def preferred(query: Query) -> int:
        if not behind:
            return 1 if is_part(query) and not frames.leading(query.top) & NO_LISTS else 0
        wished = [wish] if (wish := _wish(query)) else frames.target_types(query.top)
        if all(name[0] == "_" for name in wished):
            return min((places.get(name, 1) for name in wished), default=1)
        return min((places.get(name, 0) for name in wished), default=0)

    places = {name: 2 + place for place, (name, _, _) in enumerate(dialect.scaled_types) if name != "numeric"}
    word = Name(TypeName(dialect, behind=behind), Spelled.WORD)
    kinds = [prefix + one.name for one in dialect.nested for prefix in ("", "_")]
    nested = [seq(Action(_cast_to_nested(kind, behind=behind)), type_node(dialect, kind)) for kind in kinds]
    options = (word, array, *scaled, *several, *sized, *nested)
    places.update((kind, options.index(one)) for kind, one in zip(kinds, nested, strict=True))
    return Choice(options, preferred)


def _wish(query: Query) -> str:
    """The type that a column of a source must have, for which the query around waits."""
    if query.clause is not Clause.SELECT or query.around or query.frame is None or query.top.waits:
        return ""
    found = new_names.wanted(query)
    if not found or not is_undecided(awaited := found[0][1]):
        return found[0][1] if found else ""
    given = query.top.type
    return given if given and stands_for(query.system, awaited, given) else example(query.system, awaited)


def finish(query: Query) -> str:
    """What ends the expression soon (`typed.frames.finish`)."""
    top = query.top
    if query.computed and lacks_query(query):
        return mixing(query)
    wish = _wish(query)
    if wish and top.type and top.type != wish and top.tight and not top.waits and top.type != UNKNOWN:
        return "cast"
    return frames.finish(top)


def expression(dialect: TypedDialect, catalog: Catalog, body: Rule, query: Rule) -> tuple[Node, Node]:
    """Any expression, and any operand; ``body`` is the rule that it will be, ``query`` that of queries."""
    signs = choice(*(seq(Action(do.sign(text)), Sign(text)) for text in "-+"))
    prefixes = Star(choice(seq(Action(do.negation), words("NOT")), signs))
    one = seq(prefixes, _operand(dialect, catalog, body, query), _behind(dialect, body, query))
    steps = (arrows(),) if dialect.system.lists else ()
    return seq(one, _rows(dialect, one, body, query), *steps), one


def beginning_with(dialect: TypedDialect, first: Node, one: Node, body: Node, query: Node) -> Node:
    """Expressions whose first operand is of some kind, without a sign before it; ``one`` is any operand."""
    return seq(first, _behind(dialect, body, query), _rows(dialect, one, body, query))


def _rows(dialect: TypedDialect, one: Node, body: Node, query: Node) -> Node:
    """Operators with their right operands."""
    return Star(_row(dialect, one, body, query), lambda query: finish(query) not in ("", "cast", "test"))


def _heard(text: str) -> Node:
    """Keywords that tell expressions apart."""
    return seq(words(text), Action(do.heard(text)))


def _cast(dialect: TypedDialect) -> Node:
    return seq(Action(do.castable), Sign("::"), _type(dialect, behind=True))


def casts(dialect: TypedDialect) -> Node:
    """Any number of casts behind an operand."""
    return Star(_cast(dialect))


def _behind(dialect: TypedDialect, body: Node, query: Node) -> Node:
    """What follows an operand: casts, subscripts, tests."""
    cast = _cast(dialect)
    whole = seq(Action(do.begin(only(*dialect.wholes))), Action(begin_part), body, Action(do.end))
    colon = seq(Sign(":"), Action(do.heard(":")))
    slice_ = seq(colon, maybe(whole), Action(do.end_slice))
    element = seq(Action(do.subscript), Sign("["), choice(seq(whole, choice(Action(do.end_subscript), slice_)), slice_),
                  Sign("]"))  # fmt: skip
    not_ = maybe(words("NOT"), Action(do.heard("not")))
    null = seq(
        Action(do.null_test),
        choice(
            seq(words("IS"), not_, words("NULL"), Action(do.heard("null"))),
            seq(words("ISNULL"), Action(do.heard("null"))),
            seq(words("NOTNULL"), Action(do.heard("not null"))),
        ),
    )
    truth = seq(Action(do.truth_test), words("IS"), not_,
                choice(*(_heard(word) for word in ("TRUE", "FALSE", "UNKNOWN"))))  # fmt: skip
    element_ = seq(Action(alternatives.begin_element), body, Action(alternatives.end_element))
    elements = seq(element_, Star(seq(COMMA, element_), alternatives.wants_element), Action(alternatives.end_list))
    inside = choice(seq(Action(queries.enter_list), query, Action(queries.leave_list)), elements)
    none_of = maybe(words("NOT"), Action(alternatives.negated_list))
    among = seq(Action(alternatives.begin_list), none_of, words("IN"), _OPEN, inside, _CLOSE)
    options = (cast, null, element, truth, among, *parts_of_nested(dialect, body))

    def preferred(query: Query) -> int:
        return {"cast": 0, "test": 1}.get(finish(query), -1)

    return Star(Choice(options, preferred), lambda query: finish(query) in ("cast", "test"))


def _row(dialect: TypedDialect, one: Node, body: Node, query: Node) -> Node:
    """An operator and its right operand."""
    not_ = maybe(words("NOT"), Action(do.heard("not")))
    # Equality is an operator of its own where it takes more.
    apart = EQUALITIES if "equal" in dialect.system.operators else ()
    compare = choice(*(seq(Sign(text), Action(do.heard(text))) for text in COMPARISONS if text not in apart))
    equal = choice(*(seq(Sign(text), Action(do.heard(text))) for text in apart))
    comparison = choice(equal, compare)
    array = seq(Action(alternatives.begin_any), body, Action(alternatives.end_any))
    some = seq(choice(words("ANY"), words("SOME")), Action(do.some))
    several = seq(Action(queries.may_quantify), Action(do.untraced), choice(some, words("ALL")), _OPEN,
                  choice(array, seq(Action(queries.enter_any), query, Action(queries.leave_any))), _CLOSE)  # fmt: skip
    patterns = choice(*(_heard(word) for word in dialect.patterns if word != "GLOB"))
    globs = (seq(_heard("GLOB"), one),) if "GLOB" in dialect.patterns else ()
    simple = choice(*(_heard(word) for word in dialect.patterns if " " not in word))
    escape = maybe(Action(do.pattern_ends), Action(do.untraced), words("ESCAPE"), Literal(LiteralForm.STRING, Escape()))
    # Where a comparison with ANY or ALL binds in its own way it is an operator of its own.
    levels = dialect.system.levels
    quantified = "quantified" in levels
    right = one if quantified else choice(one, several)
    like = choice(seq(patterns, one, escape), *globs, *(() if quantified else (seq(simple, several),)))
    matches = choice(
        *(seq(words(text) if text[0].isalpha() else Sign(text), Action(do.heard(text))) for text in dialect.matches)
    )
    options: dict[str, Node] = {
        "and": seq(Action(do.second_bound), words("AND"), one),
        **{text: seq(Action(do.operator(text)), Sign(text), one) for text in dialect.signs},
        "at": seq(Action(do.operator("at")), words("AT TIME ZONE"), one),
        "compare": seq(Action(do.operator("compare")), compare, right),
        **({"equal": seq(Action(do.operator("equal")), equal, right)} if apart else {}),
        **({"quantified": seq(Action(do.quantified), comparison, several)} if quantified else {}),
        "conjunction": seq(Action(do.conjunction), words("AND"), one),
        "disjunction": seq(Action(do.operator("or")), words("OR"), one),
        "like": seq(Action(do.operator("like")), not_, like),
        "~": seq(Action(do.operator("~")), matches, one),
        **({"among": seq(Action(do.operator("among")), not_, words("IN"), one)} if "among" in levels else {}),
        "between": seq(Action(do.operator("between")), not_, words("BETWEEN"), one),
        "is": seq(Action(do.operator("is")), words("IS"), not_, words("DISTINCT FROM"), one),
    }
    places = {name: place for place, name in enumerate(options)}
    return Choice(tuple(options.values()), lambda query: places.get(finish(query), -1))


def columns(catalog: Catalog) -> tuple[list[Name], Node]:
    """Columns without a qualifier, by variants, and with one."""
    variants = range(MOST_VARIANTS + 1)
    bare = [Name(names.BareColumn(catalog, variant)) for variant in variants]
    anything = names.QualifiedColumn(catalog, None)
    qualified = seq(
        Action(varied), Action(do.at_column), Name(names.Qualifier(catalog, anything)), Sign("."),
        choice(*(Name(names.QualifiedColumn(catalog, variant)) for variant in variants)),
    )  # fmt: skip
    return bare, qualified


def _operand(dialect: TypedDialect, catalog: Catalog, body: Rule, query: Rule) -> Node:
    """One operand."""
    bare, qualified = columns(catalog)
    constants = [
        seq(Action(do.fitting(name)), _heard(word), Action(do.operand(name)))
        for word, name in (("NULL", "'null"), ("TRUE", "bool"), ("FALSE", "bool"))
    ]
    hidden = dialect.system.moments & catalog.types.keys()
    moments = [
        seq(
            Action(do.at_operand),
            leads(dialect.system, name),
            _heard(word),
            Action(do.operand(name, (word.lower(), 2))),
        )
        for word, name in dialect.moments.items()
        if word.lower() not in hidden
    ]
    typed = [
        seq(
            Action(do.at_operand),
            Action(do.begins(f"{name} '")),
            leads(dialect.system, name),
            words(word),
            Literal(LiteralForm.STRING, TypedText(spelling, name), hears=True),
        )
        for word, spelling, name in dialect.typed_texts
    ]
    spans = [
        seq(Action(do.at_operand), Action(do.untraced), leads(dialect.system, "interval"), words("INTERVAL"),
            Literal(form, Size(0, 9999)), choice(*map(words, dialect.span_units)),
            Action(do.operand("interval", ("interval", 1))))
        for form in dialect.span_forms
    ]  # fmt: skip
    numbers, strings, calls = numbers_of(dialect), strings_of(dialect), made(dialect, body)
    brackets, list_ = _bracketed(dialect, catalog, body, query)
    last = len(brackets)
    opened = Choice((call(dialect, catalog, body), *brackets), partial(_bracket, last, list_ + 1))
    options = (
        numbers[0], constants[1], strings[-1], constants[0], bare[1], qualified, *bare[2:], bare[0],
        *numbers[1:], *strings[:-1], constants[2], *moments, *typed, *spans,
        seq(Action(do.open_operand), opened),
        *grouping(dialect, catalog), *((Name(ResultName()),) if dialect.system.aliases else ()),
        *((Name(Parameter()),) if dialect.system.lists else ()), *calls.values(),
    )  # fmt: skip
    made_by = {BIT[kind]: options.index(one) for kind, one in calls.items()}

    held = {
        one.kind.name: place
        for place, one in enumerate(options)
        if isinstance(one, Literal) and isinstance(one.kind, Number | Text) and one.kind.name in HELD
    }

    dated = {
        name: options.index(one) for one, (_, _, name) in reversed([*zip(typed, dialect.typed_texts, strict=True)])
    }

    asking = next(place for place, one in enumerate(options) if isinstance(one, Seq) and one.parts[-1] is opened)

    def preferred(query: Query) -> int:
        if _bracket(last, list_ + 1, query) >= 0:
            return asking
        if group := next_group(query):
            where, name = group
            found = bare_columns(query.sources).unique.get(name)
            return 4 if found is not None and found[0] == where else 5
        wish = _wish(query)
        if wish:
            return 0 if wish == "int4" else 3
        if query.alone:
            return -1
        if (goal := frames.goal_of(query.top)) in made_by:
            return made_by[goal]
        if query.no_null and frames.soon(query.top) == ANY_NULL:
            return next((dated[name] for name in frames.target_types(query.top) if name in dated), -1)
        return {"int4": 0, "bool": 1, "'text": 2, **held}.get(frames.soon(query.top), 3)

    return Choice(options, preferred)


def _bracket(last: int, list_: int, query: Query) -> int:
    """Which bracket a text that ends soon has: the ``last``, which may hold a query, or a list in place of NULL."""
    if wants_query(query):
        return last
    if not (query.no_null and query.system.lists) or frames.soon(query.top) != ANY_NULL:
        return -1
    return list_ if all(name[0] == "_" for name in frames.target_types(query.top)) else -1


def _bracketed(dialect: TypedDialect, catalog: Catalog, body: Rule, query: Rule) -> tuple[list[Node], int]:
    """CASE, CAST, EXISTS, ARRAY and brackets, and the place of a list among them, -1 where it is none by itself."""
    then = seq(words("THEN"), Action(alternatives.alternative()), body, Action(alternatives.end_alternative))
    when = seq(words("WHEN"), Action(alternatives.begin_when), body, Action(do.end), then)
    case = seq(
        Action(may_be_null), words("CASE"), Action(alternatives.begin_alternatives("case")),
        maybe(Action(alternatives.begin_subject), body, Action(alternatives.end_subject)), when, Star(when),
        maybe(words("ELSE"), Action(do.heard("else")), Action(alternatives.alternative()), body,
              Action(alternatives.end_alternative)),
        Action(alternatives.end_alternatives("case")), words("END"),
    )  # fmt: skip
    cast = seq(
        words("CAST"), Action(do.at_operand), Action(do.heard("cast")), _OPEN, Action(begin_cast), body, Action(do.end),
        words("AS"), _type(dialect, behind=False), _CLOSE,
    )  # fmt: skip
    try_cast = seq(
        Action(unless_computed), words("TRY_CAST"), Action(do.at_operand), Action(do.heard("try")), _OPEN,
        Action(begin_cast), body, Action(do.end), words("AS"), _type(dialect, behind=False), _CLOSE,
    )  # fmt: skip
    # A query is no part that is followed.
    nested = seq(Action(queries.may_nest), Action(do.begins("a query")))
    exists = seq(
        nested,
        words("EXISTS"),
        _OPEN,
        Action(queries.enter_exists),
        query,
        Action(queries.leave_exists),
        _CLOSE,
    )
    elements = ALL & sum(bit for name, bit in BIT.items() if is_literal(name) or "_" + name in BIT)
    list_ = seq(
        Action(queries.begin_list), Action(leads_list), Action(alternatives.begin_alternatives("array")), Sign("["),
        listed(
            seq(Action(alternatives.alternative(elements, listed=True)), body, Action(alternatives.end_alternative)),
            COMMA,
        ),
        Action(alternatives.end_array), Action(queries.end_list), Sign("]"),
    )  # fmt: skip
    array = seq(Action(queries.may_list), words("ARRAY"), list_)
    known = elements & ~sum(BIT[name] for name in LITERALS)
    apart = Action(queries.not_first_of_any)
    rows = seq(
        *((apart,) if dialect.system.lists else ()),
        nested,
        words("ARRAY"),
        _OPEN,
        Action(queries.enter(known)),
        query,
        Action(queries.leave_array),
        _CLOSE,
    )
    shut = seq(Action(queries.shallower), _CLOSE)
    inner = seq(Action(queries.deeper), body, choice(shut, compared_row(body, query)))
    value = seq(
        apart, Action(varied), Action(queries.enter(ALL & ~BIT[OTHER])), query, Action(queries.leave_value), _CLOSE
    )
    found = [case, cast, exists, array, rows]
    if dialect.system.lists:
        found += [list_, try_cast, lambdas(dialect, catalog, body)]
    opened = Choice((inner, value), lambda query: 1 if wants_query(query) else -1)
    place = found.index(list_) if list_ in found else -1
    return [*found, seq(Action(queries.may_open), _OPEN, opened)], place
