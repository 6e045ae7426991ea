"""FROM: tables, sub-queries and joins, of which a comma binds more loosely than the words."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Choice, Name, Node, Star, choice, listed, maybe, seq, words
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query import common_tables as tables
from guided.grammar.sql.query.names import sources as names
from guided.grammar.sql.query.names.schemas import table_name
from guided.grammar.sql.query.scope import unbound
from guided.grammar.sql.query.select.mysql.parts import MysqlParts
from guided.grammar.sql.query.select.sources import may_join

__all__ = ["sources"]


def sources(parts: MysqlParts) -> Node:
    """What stands behind FROM."""
    plain, merging = _source(parts, names.Joining.PLAIN), _source(parts, names.Joining.USING)
    natural = _source(parts, names.Joining.NATURAL)
    settled = Action(do.settled)
    merged = listed(Name(names.MergedColumn(parts.catalog)), seq(Action(do.may_merge), parts.comma))
    condition = choice(
        seq(settled, words("ON"), Action(do.begin_on), parts.expression, Action(do.end_on)),
        seq(Action(do.may_merge), words("USING"), parts.open, merged, settled, parts.close),
    )
    outer = seq(Action(tables.not_within_itself), choice(words("LEFT"), words("RIGHT")), maybe(words("OUTER")))
    inner = choice(words("JOIN"), words("INNER JOIN"), words("CROSS JOIN"))
    apart = Action(may_join(parts, names.Joining.PLAIN))
    alike = Action(may_join(parts, names.Joining.NATURAL))
    natural_side = choice(seq(), words("INNER"), outer)
    more = Choice(
        (
            seq(inner, merging, choice(Action(do.unconditioned), condition)),
            seq(outer, words("JOIN"), merging, condition),
            seq(words("STRAIGHT_JOIN"), merging, choice(Action(do.unconditioned), condition)),
            seq(apart, Action(do.comma), parts.comma, plain, settled),
            seq(alike, words("NATURAL"), natural_side, words("JOIN"), natural, Action(do.merge_all), settled),
        ),
        # What waits for a sub-query can only be joined with USING.
        lambda query: 0 if unbound(query) and not names.can_derive(query) else -1,
    )
    return seq(plain, settled, Star(seq(Action(do.may_widen), more)))


def _source(parts: MysqlParts, joining: names.Joining) -> Node:
    alias = Name(names.AliasOfSource(parts.catalog), is_exact=parts.is_exact)
    implied = Name(names.AliasOfSource(parts.catalog, parts.dialect.keywords), is_exact=parts.is_exact)
    named = choice(seq(words("AS"), alias), implied)
    table = seq(
        table_name(names.TableName(parts.catalog, joining), is_exact=parts.is_exact),
        Choice((named, Action(do.without_alias)), lambda query: 0 if names.wants_alias(query) else 1),
    )
    entered = Action(do.enter_source(merging=joining is names.Joining.USING))
    derived = seq(parts.open, entered, parts.compound, Action(do.leave), parts.close, named)
    if joining is names.Joining.NATURAL:
        # Which of its columns are those of the sources before is not known until it ends.
        return table
    return choice(table, derived if joining is names.Joining.USING else seq(Action(do.may_derive), derived))
