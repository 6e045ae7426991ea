"""Other people's SQLite queries in the one spelling that `guided.sql` generates, by sqlglot; meaning is kept.

Names get the schema's letter case, tables of a join are called T1, T2, ... in the order of FROM, names of output
columns are dropped and their uses replaced by what they stand for, double-quoted strings get single quotes, a literal
compared with a column gets the column's type (SQLite's affinity converts it anyway), JOIN without ON becomes CROSS.
"""

from __future__ import annotations

from sqlglot import exp, parse_one

from guided.grammar.sql.schema import Column, ColumnKind, DatabaseSchema
from guided.grammar.sql.spelling import identifier


def canonical(query: str, schema: DatabaseSchema) -> str:
    tree = parse_one(query.strip().rstrip(";"), dialect="sqlite")
    tables = {table.name.lower(): table for table in schema.tables}
    for select in list(tree.find_all(exp.Select)):
        _select(select, tables)
    for node in list(tree.find_all(exp.Neg)):
        if isinstance(node.this, exp.Literal):
            node.replace(exp.Literal(this="-" + node.this.this, is_string=False))
    text = tree.sql(dialect="sqlite")
    # sqlglot writes these its own way; each has one spelling in the grammar.
    return text.replace(" IS NOT NULL", " IS NOT NULL")


def _sources(select: exp.Select) -> list[exp.Expression]:
    first = select.args.get("from_") or select.args.get("from")
    joins = select.args.get("joins") or []
    return [source for source in [first.this if first else None, *(join.this for join in joins)] if source is not None]


def _select(select: exp.Select, tables: dict) -> None:
    outputs = {}
    for item in list(select.expressions):
        if isinstance(item, exp.Alias):
            outputs[item.alias.lower()] = item.this
            item.replace(item.this.copy())
    sources = _sources(select)
    several = len(sources) > 1
    scope: list[tuple[str, object]] = []  # (name after, table or None)
    renamed: dict[str, str] = {}
    for place, source in enumerate(sources, 1):
        old = source.alias_or_name.lower()
        table = tables.get(source.name.lower()) if isinstance(source, exp.Table) else None
        aliased = bool(source.alias)
        new = f"T{place}" if several and aliased else (table.name if table is not None else f"T{place}")
        renamed[old] = new
        if isinstance(source, exp.Table) and table is not None:
            source.set("this", _identifier(table.name))
            source.set("alias", exp.TableAlias(this=exp.to_identifier(new)) if several and aliased else None)
        else:
            source.set("alias", exp.TableAlias(this=exp.to_identifier(new)))
        scope.append((new, table))
    if several and any(name.startswith("T") for name, table in scope if table is not None and name != table.name):
        # Some tables have aliases and some have not: give all of them one.
        for place, (source, (name, table)) in enumerate(zip(sources, scope, strict=True), 1):
            if table is not None and name == table.name:
                renamed[source.alias_or_name.lower()] = f"T{place}"
                source.set("alias", exp.TableAlias(this=exp.to_identifier(f"T{place}")))
                scope[place - 1] = (f"T{place}", table)
    for join in select.args.get("joins") or []:
        if not join.args.get("on") and not join.args.get("using"):
            join.set("kind", "CROSS")
    for column in [node for node in select.find_all(exp.Column) if node.find_ancestor(exp.Select) is select]:
        _column(column, scope, renamed, outputs)
    for node in [node for node in select.find_all(exp.Expression) if node.find_ancestor(exp.Select) is select]:
        _literals(node, scope)


def _identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=identifier(name) != name)


def _find(name: str, qualifier: str, scope: list) -> Column | None:
    for bound, table in scope:
        if table is not None and (not qualifier or bound.lower() == qualifier.lower()):
            for column in table.columns:
                if column.name.lower() == name.lower():
                    return column
    return None


def _column(node: exp.Column, scope: list, renamed: dict[str, str], outputs: dict) -> None:
    if isinstance(node.this, exp.Star):
        node.set("table", exp.to_identifier(renamed.get(node.table.lower(), node.table)))
        return
    qualifier = renamed.get(node.table.lower(), node.table) if node.table else ""
    found = _find(node.name, qualifier, scope)
    if found is not None:
        node.set("this", _identifier(found.name))
        if qualifier:
            node.set("table", _identifier(qualifier))
    elif not qualifier and node.this.quoted:
        node.replace(exp.Literal(this=node.name, is_string=True))
    elif not qualifier and node.name.lower() in outputs:
        node.replace(outputs[node.name.lower()].copy())


def _literals(node: exp.Expression, scope: list) -> None:
    if isinstance(node, (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)):
        pairs = [(node.this, node.expression), (node.expression, node.this)]
    elif isinstance(node, exp.Between):
        pairs = [(node.this, node.args["low"]), (node.this, node.args["high"])]
    elif isinstance(node, exp.In):
        pairs = [(node.this, item) for item in node.expressions]
    elif isinstance(node, exp.Like):
        pairs = []
    else:
        return
    for column, value in pairs:
        if isinstance(column, exp.Column) and isinstance(value, exp.Literal):
            found = _find(column.name, column.table, scope)
            if found is not None and found.kind is ColumnKind.TEXT and not value.is_string:
                value.replace(exp.Literal(this=value.this, is_string=True))
            elif found is not None and found.kind is ColumnKind.NUMBER and value.is_string and _is_number(value.this):
                value.replace(exp.Literal(this=value.this, is_string=False))


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
