"""SELECT statements as a tree of nodes; what names and actions mean is in `kinds` and `changes`."""

from __future__ import annotations

from guided.grammar.attributed.nodes import (
    Action,
    Choice,
    Literal,
    LiteralForm,
    Name,
    Node,
    Rule,
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
from guided.grammar.sql.query import kinds
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.dialect import Dialect
from guided.grammar.sql.query.literals import AnyString, Number, WholeNumber
from guided.grammar.sql.query.scope import CallKind, Clause, Query, bind

__all__ = ["select"]


def select(catalog: Catalog, dialect: Dialect) -> Node:
    """The SELECT statements over a catalog."""
    return _Statement(catalog, dialect).top()


class _Statement:
    """Makes the nodes; rules are kept, since they hold each other."""

    def __init__(self, catalog: Catalog, dialect: Dialect) -> None:
        self.catalog = catalog
        self.dialect = dialect
        self.expression = Rule("expression")
        self.compound = Rule("query")
        self.comma = Sign(",")
        self.open, self.close = Sign("("), Sign(")")
        self.number = Literal(LiteralForm.NUMBER, Number())
        self.string = Literal(LiteralForm.STRING, AnyString())
        self.bare = Name(kinds.BareColumn(catalog))
        self.quoted = Name(kinds.QuotedString(), Spelled.STRING)
        column = kinds.QualifiedColumn(catalog)
        self.any_qualifier = Name(kinds.Qualifier(catalog))
        self.qualifier = Name(kinds.Qualifier(catalog, column))
        self.qualified = Name(column)
        self.expression.body = self._disjunction()
        self.compound.body = self._compound()

    def top(self) -> Node:
        """A whole statement."""
        return seq(self.compound, maybe(Sign(";")))

    def bracketed(self, *, sees: bool, width: int | None, leave: do.Change = do.leave_operand) -> Node:
        """A query and the bracket behind it."""
        return seq(Action(do.enter(sees=sees, width=width)), self.compound, Action(leave), self.close)

    # Queries -------------------------------------------------------------------------------------------------------

    def _compound(self) -> Node:
        operator = choice(words("UNION"), words("UNION ALL"), words("INTERSECT"), words("EXCEPT"))
        core = self._core()
        return seq(
            maybe(self._with()),
            core,
            Star(seq(Action(do.next_part), operator, core)),
            maybe(self._order()),
            maybe(self._limit()),
        )

    def _with(self) -> Node:
        table = seq(
            Action(do.begin_table),
            Name(kinds.CommonTable()),
            maybe(self.open, listed(Name(kinds.NewColumn()), self.comma), self.close),
            words("AS"),
            self.open,
            Action(do.enter_table),
            self.compound,
            Action(do.leave_table),
            self.close,
        )
        return seq(words("WITH"), listed(table, self.comma))

    def _core(self) -> Node:
        group = seq(
            words("GROUP BY"),
            Action(do.begin_clause(Clause.GROUP)),
            listed(self._term(), self.comma),
            maybe(words("HAVING"), Action(do.begin_clause(Clause.HAVING)), self.expression),
        )
        where = seq(words("WHERE"), self.expression)
        sources = seq(Action(do.end_items), words("FROM"), Action(do.begin_from), self._sources())
        bound = seq(Action(bind), maybe(where), maybe(group))
        return seq(
            words("SELECT"),
            maybe(choice(words("DISTINCT"), words("ALL"))),
            self._items(),
            choice(seq(Action(do.end_items), Action(bind)), seq(sources, bound)),
        )

    def _items(self) -> Node:
        alias = Name(kinds.AliasOfColumn())
        implied = Name(kinds.AliasOfColumn(self.dialect.keywords))
        named = maybe(choice(seq(words("AS"), alias), implied))
        item = seq(
            Action(do.begin_item),
            # A text that ends soon has a value: `*` would need a FROM.
            Choice(
                (
                    seq(self.expression, self._named(named), Action(do.end_item)),
                    seq(Action(do.all_columns), Sign("*")),
                    seq(self.any_qualifier, Sign("."), Action(do.all_columns_of), Sign("*")),
                ),
                lambda query: 0,
            ),
        )
        return seq(item, Star(seq(self.comma, item), lambda query: bool(kinds.wanted_names(query))))

    @staticmethod
    def _named(named: Node) -> Node:
        """A name for a column; a text that ends soon gives one where a query around waits for it."""
        assert isinstance(named, Choice)
        return Choice(named.options, lambda query: 1 if kinds.wanted_names(query) else -1)

    def _order(self) -> Node:
        direction = maybe(choice(words("ASC"), words("DESC")))
        nulls = maybe(words("NULLS"), choice(words("FIRST"), words("LAST")))
        term = seq(
            choice(
                seq(Action(do.in_compound), Action(do.begin_term), choice(self.number, self.bare)),
                seq(Action(do.not_in_compound), Action(do.begin_term), self.expression),
            ),
            Action(do.end_term),
        )
        return seq(words("ORDER BY"), Action(do.begin_order), listed(seq(term, direction, nulls), self.comma))

    def _limit(self) -> Node:
        whole = Literal(LiteralForm.NUMBER, WholeNumber())
        return seq(words("LIMIT"), whole, maybe(choice(words("OFFSET"), self.comma), whole))

    def _term(self) -> Node:
        return seq(Action(do.begin_term), self.expression, Action(do.end_term))

    # FROM ----------------------------------------------------------------------------------------------------------

    def _sources(self) -> Node:
        plain, merging = self._source(kinds.Joining.PLAIN), self._source(kinds.Joining.USING)
        natural = self._source(kinds.Joining.NATURAL)
        settled = Action(do.settled)
        merged = listed(Name(kinds.MergedColumn(self.catalog)), seq(Action(do.may_merge), self.comma))
        condition = choice(
            settled,
            seq(words("ON"), settled, Action(do.begin_on), self.expression, Action(do.end_on)),
            seq(Action(do.may_merge), words("USING"), self.open, merged, settled, self.close),
        )
        side = choice(seq(), words("INNER"), seq(choice(*map(words, ("LEFT", "RIGHT", "FULL"))), maybe(words("OUTER"))))
        apart, alike = Action(self._may_join(kinds.Joining.PLAIN)), Action(self._may_join(kinds.Joining.NATURAL))
        more = choice(
            seq(apart, choice(self.comma, words("CROSS JOIN")), plain, settled),
            seq(side, words("JOIN"), merging, condition),
            seq(alike, words("NATURAL"), side, words("JOIN"), natural, Action(do.merge_all), settled),
        )
        return seq(plain, settled, Star(more))

    def _may_join(self, joining: kinds.Joining) -> do.Change:
        """Is there any source that can be joined so?"""
        name = kinds.TableName(self.catalog, joining)

        def change(query: Query) -> Query | None:
            derived = joining is kinds.Joining.PLAIN and do.may_derive(query) is not None
            return query if derived or len(name.allowed(query).words) else None

        return change

    def _source(self, joining: kinds.Joining) -> Node:
        alias = Name(kinds.AliasOfSource(self.catalog))
        implied = Name(kinds.AliasOfSource(self.catalog, self.dialect.keywords))
        named = choice(seq(words("AS"), alias), implied)
        table = seq(
            Name(kinds.TableName(self.catalog, joining)),
            Choice((named, Action(do.without_alias)), lambda query: 0 if kinds.wants_alias(query) else 1),
        )
        derived = seq(self.open, self.bracketed(sees=False, width=None, leave=do.leave), named)
        if joining is kinds.Joining.NATURAL:
            # Which of its columns are those of the sources before is not known until it ends.
            return table
        return choice(table, derived if joining is kinds.Joining.USING else seq(Action(do.may_derive), derived))

    # Expressions ---------------------------------------------------------------------------------------------------

    def _disjunction(self) -> Node:
        return listed(self._conjunction(), seq(words("OR"), Action(do.complex_value)))

    def _conjunction(self) -> Node:
        negated = seq(Star(seq(words("NOT"), Action(do.operand))), self._comparison())
        return listed(negated, seq(words("AND"), Action(do.complex_value)))

    def _comparison(self) -> Node:
        value = Rule("value", self._value())
        compare = choice(*map(Sign, self.dialect.comparisons))
        inside = choice(self.bracketed(sees=True, width=1), seq(listed(self.expression, self.comma), self.close))
        negatable = choice(
            seq(words("LIKE"), value, maybe(words("ESCAPE"), value)),
            *(seq(words(pattern), value) for pattern in self.dialect.patterns),
            seq(words("BETWEEN"), value, words("AND"), value),
            seq(words("IN"), self.open, Action(do.operand), inside),
        )
        tail = choice(
            seq(compare, value),
            seq(maybe(words("NOT")), negatable),
            seq(words("IS"), maybe(words("NOT")), maybe(words("DISTINCT FROM")), value),
            choice(words("ISNULL"), words("NOTNULL"), words("NOT NULL")),
        )
        return seq(value, Star(seq(Action(do.complex_value), tail)))

    def _value(self) -> Node:
        operator = choice(*map(Sign, self.dialect.operators))
        collated = maybe(words("COLLATE"), Name(kinds.FixedName("a collation", self.dialect.collations)))
        prefix = Star(seq(Action(do.not_alone), choice(*map(Sign, self.dialect.prefixes))))
        one = seq(prefix, self._atom(), collated)
        return listed(one, seq(Action(do.complex_value), operator))

    def _atom(self) -> Node:
        literal = choice(*map(words, self.dialect.constants))
        operand = Action(do.operand)
        case = seq(
            words("CASE"),
            operand,
            maybe(self.expression),
            Star(self._when()),
            self._when(),
            maybe(words("ELSE"), self.expression),
            words("END"),
        )
        cast = seq(words("CAST"), self.open, operand, self.expression, words("AS"), self._type(), self.close)
        exists = seq(words("EXISTS"), operand, self.open, self.bracketed(sees=True, width=None))
        inside = choice(
            seq(Action(do.deeper), self.expression, Action(do.shallower), self.close),
            seq(operand, self.bracketed(sees=True, width=1)),
        )
        return choice(
            seq(self.number, operand),
            seq(operand, self.string),
            seq(operand, literal),
            self.bare,
            *((seq(Action(do.not_in_compound), self.quoted),) if self.dialect.lexis.string_quotes else ()),
            seq(self.qualifier, Sign("."), self.qualified),
            self._call(),
            case,
            cast,
            exists,
            seq(self.open, Action(do.complex_value), inside),
        )

    def _when(self) -> Node:
        return seq(words("WHEN"), self.expression, words("THEN"), self.expression)

    def _type(self) -> Node:
        size = Literal(LiteralForm.NUMBER, WholeNumber())
        sizes = seq(self.open, size, maybe(self.comma, size), self.close)
        return seq(Name(kinds.FixedName("a type", self.dialect.types), Spelled.WORD), maybe(sizes))

    # Calls ---------------------------------------------------------------------------------------------------------

    def _call(self) -> Node:
        return choice(*(self._call_of(kind) for kind in CallKind))

    def _call_of(self, kind: CallKind) -> Node:
        name = Name(kinds.FunctionName(self.catalog.functions_of(kind), kind), Spelled.WORD)
        arguments = listed(seq(Action(do.argument), self.expression), self.comma)
        some = choice(seq(), arguments)
        closed = seq(Action(do.end_call), self.close)
        if kind is CallKind.SCALAR:
            return seq(name, self.open, some, closed)
        over = seq(words("OVER"), Action(do.may_be_window), self.open, self._window(), self.close)
        if kind is CallKind.WINDOW:
            return seq(name, self.open, some, closed, over)
        where = seq(words("FILTER"), self.open, words("WHERE"), Action(do.begin_filter), self.expression,
                    Action(do.end_filter), self.close)  # fmt: skip
        distinct = seq(words("DISTINCT"), Action(do.one_argument), Action(do.argument), self.expression, closed)
        every = seq(Action(do.counts_all), Sign("*"), self.close)
        plain = seq(choice(every, seq(some, closed)), maybe(where), maybe(over))
        return seq(name, self.open, choice(seq(distinct, maybe(where)), plain))

    def _window(self) -> Node:
        direction = maybe(choice(words("ASC"), words("DESC")))
        listing = listed(self.expression, self.comma)
        ordered = listed(seq(self.expression, direction), self.comma)
        bound = choice(
            words("UNBOUNDED PRECEDING"), words("CURRENT ROW"), seq(Literal(LiteralForm.NUMBER, WholeNumber()),
            words("PRECEDING")),
        )  # fmt: skip
        end = choice(
            words("UNBOUNDED FOLLOWING"), words("CURRENT ROW"), seq(Literal(LiteralForm.NUMBER, WholeNumber()),
            words("FOLLOWING")),
        )  # fmt: skip
        frame = seq(words("ROWS"), choice(bound, seq(words("BETWEEN"), bound, words("AND"), end)))
        return seq(
            Action(do.begin_window),
            maybe(words("PARTITION BY"), listing),
            maybe(words("ORDER BY"), ordered, maybe(frame)),
            Action(do.end_window),
        )
