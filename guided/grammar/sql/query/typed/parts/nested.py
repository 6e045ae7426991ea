"""Structs and maps: ``s.field``, ``s['field']``, ``m['key']``, and the words of their types behind a cast."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Action, Literal, LiteralForm, Name, Names, Node, Sign, seq, words
from guided.grammar.attributed.words import Words, words_of
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.dialect import Nested, TypedDialect
from guided.grammar.sql.query.typed.frames import PATH, Asks
from guided.grammar.sql.query.typed.literals import Size
from guided.grammar.sql.query.typed.scope import Query, is_open, queries_in_scope
from guided.grammar.sql.query.typed.types import only

__all__ = ["parts_of_nested", "type_node", "written"]


def parts_of_nested(dialect: TypedDialect, body: Node) -> list[Node]:
    """What follows an operand that is a struct or a map."""
    structs = {one.name: dict(one.fields) for one in dialect.nested if one.fields}
    field = seq(Action(_at(structs)), Sign("."), Name(_Field(structs)))
    keyed = seq(
        Action(_at(structs)), Sign("["), Literal(LiteralForm.STRING, _FieldText(structs), hears=True), Sign("]")
    )
    found: list[Node] = [field, keyed] if structs else []
    for one in dialect.nested:
        if not one.fields:
            key = seq(Action(do.begin(only(one.key))), body, Action(do.end))
            found.append(seq(Action(_at([one.name])), Sign("["), key, Action(_value_of(one)), Sign("]")))
    return found


def _at(names: Iterable[str]) -> do.Change:
    """Behind an operand of one of some types, of which parts may be taken."""
    known = frozenset(names)

    def change(query: Query) -> Query | None:
        top = query.top
        return query if top.indexed and top.type in known else None

    return change


def _taken(query: Query, part: str, kind: str, label: tuple[str, int]) -> Query | None:
    """The query behind a part of its operand."""
    heard = do.hear(query, part)
    if heard is None:
        return None
    top = query.top._replace(type=kind, label=label, column=None, bound=False, indexed=True, asks=Asks.NOTHING)
    return heard.with_top(top)


def _value_of(one: Nested) -> do.Change:
    """Behind the key of a map."""

    def change(query: Query) -> Query | None:
        return _taken(query, "[key]", one.value, ("", 0))

    return change


class _Field:
    """A field of the struct that was read."""

    label = "a field"

    def __init__(self, structs: dict[str, dict[str, str]]) -> None:
        self._structs = structs
        self.price = max((len(name) + 2 for fields in structs.values() for name in fields), default=1)

    def _fields(self, query: Query) -> dict[str, str]:
        return self._structs[query.top.type]

    def allowed(self, query: Query) -> Names:
        """All of them."""
        fields = self._fields(query)
        return Names(words_of(name for name in fields if self.after(query, name) is not None))

    def after(self, query: Query, name: str) -> Query | None:
        """The query behind it; not where a source of the struct's name has such a column, which would come first."""
        top = query.top
        of_column = top.column is not None and not top.waits
        column = top.column[1] if top.column is not None else ""
        if column and name in _columns_of_source(query, column):
            return None
        label = (name, PATH) if of_column or top.label[1] == PATH else ("", 0)
        found = _taken(query, f"field {name}", self._fields(query)[name], label)
        if found is not None and column and is_open(query):
            found = found._replace(paths=found.paths | {(column, name)})
        return found

    def suggested(self, query: Query) -> Iterable[str]:
        """Those that come next of a group."""
        return [part[6:] for part in do.next_parts(query) if part.startswith("field ")]


def _columns_of_source(query: Query, name: str) -> Iterable[str]:
    """The columns of the sources of a name, of all queries in scope."""
    sources = (source for at in queries_in_scope(query) for source in at.sources if source.name == name)
    return {column for source in sources for column in source.relation.types}


class _FieldText(_Field):
    """A field as a text in brackets."""

    label = "a field"

    def __init__(self, structs: dict[str, dict[str, str]]) -> None:
        super().__init__(structs)
        self.shortest = "'" + "x" * self.price + "'"

    def allowed(self, query: Query) -> Words:  # type: ignore[override]
        """Those whose names have no quote."""
        return words_of(name for name in self._fields(query) if "'" not in name)

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query behind it."""
        return _taken(query, f"['{text}']", self._fields(query)[text], ("", 0))


class _Fixed:
    """A name that is written in the words of a type."""

    label = "the name of a field"

    def __init__(self, name: str) -> None:
        self._name = name.lower()
        self._names = Names(words_of([self._name]))
        self.price = len(name) + 2

    def allowed(self, query: Query) -> Names:
        """It alone."""
        return self._names

    def after(self, query: Query, name: str) -> Query | None:
        """The query as it was."""
        return query

    def suggested(self, query: Query) -> Iterable[str]:
        """It."""
        return [self._name]


def type_node(dialect: TypedDialect, kind: str) -> Node:
    """The words of a type behind a cast."""
    if kind[0] == "_":
        return seq(type_node(dialect, kind[1:]), Sign("["), Sign("]"))
    one = next((one for one in dialect.nested if one.name == kind), None)
    if one is None:
        return _scalar(dialect, kind)
    if not one.fields:
        pair = (type_node(dialect, one.key), Sign(","), type_node(dialect, one.value))
        return seq(words("MAP"), Sign("("), *pair, Sign(")"))
    fields: list[Node] = []
    for name, of in one.fields:
        fields += [Sign(","), Name(_Fixed(name)), type_node(dialect, of)]
    return seq(words("STRUCT"), Sign("("), *fields[1:], Sign(")"))


def _scalar(dialect: TypedDialect, kind: str) -> Node:
    scale = next((least for name, least, _ in dialect.scaled_types if name == kind), 0)
    if not scale:
        return words(_word(dialect, kind))
    digits, behind = (Literal(LiteralForm.NUMBER, Size(one, one)) for one in (dialect.most_digits, scale))
    return seq(words("DECIMAL"), Sign("("), digits, Sign(","), behind, Sign(")"))


def _word(dialect: TypedDialect, kind: str) -> str:
    return min((word for word, name in dialect.type_words.items() if name == kind), key=len)


def written(dialect: TypedDialect, kind: str) -> str:
    """The text of a type behind a cast, by which its price is told."""
    if kind[0] == "_":
        return written(dialect, kind[1:]) + "[ ]"
    one = next((one for one in dialect.nested if one.name == kind), None)
    if one is None:
        is_scaled = any(name == kind and least for name, least, _ in dialect.scaled_types)
        return "DECIMAL(38,28)" if is_scaled else _word(dialect, kind)
    if not one.fields:
        return f"MAP({written(dialect, one.key)}, {written(dialect, one.value)})"
    return "STRUCT(" + ", ".join(f'"{name}" {written(dialect, of)}' for name, of in one.fields) + ")"
