"""Questions as analysts ask them, each with its SELECT in the schema's dialect: names for results, HAVING, CASE, dates,
joins of three tables, outer joins, windows, correlated sub-queries and WITH.

The plainer questions are `sql_questions`; a question never leaves open which columns are shown, in which order.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable

from names import MONTHS, plural
from sql_corpus import Field, Relation, Schema
from sql_questions import AGGREGATES, Pair, condition, said_column, said_rows

__all__ = ["FORMS", "everyday_question", "has_chain"]

Form = Callable[[random.Random, Relation, Schema], Pair | None]
"""Makes a question about a table, or None where its columns do not lend themselves to it."""

_RESULT_NAMES = ("n", "total", "result", "value", "figure", "share", "outcome", "number", "answer", "summary")
_BARE_KINDS = ("int", "real", "text", "date", "bool")


def _named(rng: random.Random, expression: str, chance: float = 0.6) -> Pair:
    """`` as x`` for the question and ``expression AS x`` for the statement, or neither."""
    if rng.random() > chance:
        return "", expression
    name = rng.choice(_RESULT_NAMES) if rng.random() < 0.5 else f"{rng.choice(_RESULT_NAMES)}_{rng.randint(1, 99)}"
    return rng.choice([f" as {name}", f", called {name}", f" (call it {name})"]), f"{expression} AS {name}"


def _aggregate(rng: random.Random, relation: Relation, prefix: str = "") -> tuple[str, str, Field] | None:
    """`average age`, `AVG(age)` and the column, over a number of the table."""
    numbers = relation.of_kind("int", "real")
    if not numbers:
        return None
    field, function = rng.choice(numbers), rng.choice(list(AGGREGATES))
    return f"{rng.choice(AGGREGATES[function])} {said_column(rng, field)}", f"{function}({prefix}{field.id})", field


def _start(rng: random.Random) -> str:
    return rng.choice(["Show the", "List the", "Find the", "What is the", "Give me the"])


def _named_result(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    made = _aggregate(rng, relation)
    if made is None:
        return None
    said, call, _ = made
    called, shown = _named(rng, call, 1.0)
    english, where = "", ""
    fields = relation.of_kind(*_BARE_KINDS)
    if rng.random() < 0.4:
        english, sql = condition(rng, by := rng.choice(fields), by.id)
        english, where = " " + english, f" WHERE {sql}"
    return f"{_start(rng)} {said} of {said_rows(rng, relation)}{english}{called}", (
        f"SELECT {shown} FROM {relation.id}{where}"
    )


def _ordered_groups(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    groups = relation.of_kind("text", "bool")
    if not groups:
        return None
    by = rng.choice(groups)
    made = _aggregate(rng, relation) if rng.random() < 0.5 else None
    said, call = (made[0], made[1]) if made else ("number", "COUNT(*)")
    called, shown = _named(rng, call)
    group = said_column(rng, by)
    largest = rng.random() < 0.7
    tail = f"FROM {relation.id} GROUP BY {by.id} ORDER BY {call}{' DESC' if largest else ''}"
    question = f"{_start(rng)} {said} of {said_rows(rng, relation)} {rng.choice(['per', 'by', 'for each'])} {group}"
    question += f"{called}, {rng.choice(['largest', 'highest'] if largest else ['smallest', 'lowest'])} first"
    if rng.random() < 0.3:
        number = rng.choice([3, 5, 10])
        question, tail = f"{question}, only {number}", f"{tail} LIMIT {number}"
    return question, f"SELECT {by.id}, {shown} {tail}"


def _having(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    groups, made = relation.of_kind("text", "bool"), _aggregate(rng, relation)
    if not groups or made is None:
        return None
    by, (said, call, field) = rng.choice(groups), made
    value = rng.choice(field.pool)
    operator, phrase = rng.choice([(">", "above"), (">", "over"), ("<", "below"), (">=", "of at least")])
    group, rows = said_column(rng, by), said_rows(rng, relation)
    tail = f"FROM {relation.id} GROUP BY {by.id} HAVING {call} {operator} {value}"
    if rng.random() < 0.5:
        verb = rng.choice(["have", "show"])
        return f"Which {plural(group)} of {rows} {verb} a {said} {phrase} {value}", f"SELECT {by.id} {tail}"
    called, shown = _named(rng, call)
    question = f"{_start(rng)} {said} of {rows} per {group}{called}, where it is {phrase.removeprefix('of ')} {value}"
    return question, f"SELECT {by.id}, {shown} {tail}"


def _chains(schema: Schema) -> list[tuple[Relation, Field, Relation, Field, Relation]]:
    return [
        (child, key, middle, second, top)
        for child, key, middle in schema.links
        for other, second, top in schema.links
        if other is middle and top is not child and top is not middle
    ]


def has_chain(schema: Schema) -> bool:
    """Whether a table refers to one that refers to a third."""
    return bool(_chains(schema))


def _three_tables(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    chains = _chains(schema)
    if not chains:
        return None
    child, key, middle, second, top = rng.choice(chains)
    joined = (
        f"FROM {child.id} AS t1 JOIN {middle.id} AS t2 ON t1.{key.id} = t2.{middle.fields[0].id}"
        f" JOIN {top.id} AS t3 ON t2.{second.id} = t3.{top.fields[0].id}"
    )
    rows, between, above = said_rows(rng, child), middle.name.spoken, top.name.spoken
    far = f"the {above} of their {between}"
    by = rng.choice(top.of_kind(*_BARE_KINDS) or [top.fields[0]])
    draw = rng.random()
    if draw < 0.3:
        shown = rng.choice(child.of_kind(*_BARE_KINDS) or [child.fields[0]])
        question = f"{_start(rng)} {said_column(rng, shown)} of {rows} with the {said_column(rng, by)} of {far}"
        return question, f"SELECT t1.{shown.id}, t3.{by.id} {joined}"
    if draw < 0.6 and by.pool:
        english, sql = condition(rng, by, f"t3.{by.id}")
        if rng.random() < 0.4:
            question = (
                f"{rng.choice(['How many', 'Count the'])} {rows} of {plural(between)} of {plural(above)} {english}"
            )
            return question, f"SELECT COUNT(*) {joined} WHERE {sql}"
        shown = rng.choice(child.of_kind(*_BARE_KINDS) or [child.fields[0]])
        question = (
            f"{_start(rng)} {said_column(rng, shown)} of {rows} of {plural(between)} of {plural(above)} {english}"
        )
        return question, f"SELECT t1.{shown.id} {joined} WHERE {sql}"
    label = top.label
    made = _aggregate(rng, child, "t1.") if rng.random() < 0.5 else None
    said, call = (made[0], made[1]) if made else ("number", "COUNT(*)")
    called, result = _named(rng, call)
    question = f"{_start(rng)} {said} of {rows} per {said_column(rng, label)} of {far}{called}"
    tail = f"GROUP BY t3.{label.id}"
    if rng.random() < 0.3:
        question, tail = f"{question}, {rng.choice(['largest', 'highest'])} first", f"{tail} ORDER BY {call} DESC"
    return question, f"SELECT t3.{label.id}, {result} {joined} {tail}"


def _dates(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    dates = relation.of_kind("date")
    if not dates:
        return None
    field, spelling = rng.choice(dates), schema.spelling
    said, rows, date = said_column(rng, field), said_rows(rng, relation), rng.choice(field.pool)
    draw = rng.random()
    if draw < 0.35:
        unit, call = rng.choice([("year", spelling.year(field.id)), ("month", spelling.month(field.id))])
        made = _aggregate(rng, relation) if rng.random() < 0.4 else None
        what, result = (made[0], made[1]) if made else ("number", "COUNT(*)")
        called, shown = _named(rng, result, 0.4)
        question = f"{_start(rng)} {what} of {rows} per {unit} of {said}{called}"
        return question, f"SELECT {call}, {shown} FROM {relation.id} GROUP BY {call} ORDER BY 1"
    day = datetime.date.fromisoformat(date)
    if draw < 0.6:
        when, sql = f"in {MONTHS[day.month - 1]} {day.year}", f"{spelling.month(field.id)} = '{date[:7]}'"
    elif draw < 0.8:
        when, sql = f"since {day.year}", spelling.since_year(field.id, date[:4])
    else:
        shown = rng.choice(relation.of_kind("text", "int", "real") or [relation.fields[0]])
        newest = rng.random() < 0.6
        function, word = (
            ("MAX", rng.choice(["latest", "newest"])) if newest else ("MIN", rng.choice(["earliest", "first"]))
        )
        question = f"{_start(rng)} {said_column(rng, shown)} of the {rows} with the {word} {said}"
        inner = f"(SELECT {function}({field.id}) FROM {relation.id})"
        return question, f"SELECT {shown.id} FROM {relation.id} WHERE {field.id} = {inner}"
    if rng.random() < 0.5:
        return f"How many {rows} have a {said} {when}", f"SELECT COUNT(*) FROM {relation.id} WHERE {sql}"
    shown = rng.choice(relation.of_kind("text", "int", "real") or [relation.fields[0]])
    return f"{_start(rng)} {said_column(rng, shown)} of {rows} with {said} {when}", (
        f"SELECT {shown.id} FROM {relation.id} WHERE {sql}"
    )


_LABELS = (("high", "low"), ("yes", "no"), ("big", "small"), ("good", "bad"), ("expensive", "cheap"), ("old", "new"))


def _cases(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    fields, rows = relation.of_kind(*_BARE_KINDS), said_rows(rng, relation)
    if not fields:
        return None
    numbers, draw = relation.of_kind("int", "real"), rng.random()
    if draw < 0.5 and numbers:
        field, (first, other) = rng.choice(numbers), rng.choice(_LABELS)
        value, shown = rng.choice(field.pool), relation.label
        called, case = _named(rng, f"CASE WHEN {field.id} > {value} THEN '{first}' ELSE '{other}' END", 0.5)
        question = (
            f"{_start(rng)} {said_column(rng, shown)} of {rows} and '{first}' where {said_column(rng, field)} is "
        )
        question += (
            f"{rng.choice(['above', 'over', 'more than'])} {value}, {rng.choice(['else', 'otherwise'])} '{other}'"
        )
        return question + called, f"SELECT {shown.id}, {case} FROM {relation.id}"
    field = rng.choice(fields)
    english, sql = condition(rng, field, field.id)
    if draw < 0.75:
        called, share = _named(rng, f"AVG(CASE WHEN {sql} THEN 1.0 ELSE 0.0 END)", 0.5)
        start = rng.choice(["What share of", "What fraction of", "Find the share of"])
        return f"{start} {rows} are those {english}{called}", f"SELECT {share} FROM {relation.id}"
    groups = [group for group in relation.of_kind("text", "bool") if group is not field]
    if not groups:
        return None
    by = rng.choice(groups)
    called, total = _named(rng, f"SUM(CASE WHEN {sql} THEN 1 ELSE 0 END)", 0.5)
    question = f"For each {said_column(rng, by)} count the {rows} {english}{called}, also where there are none"
    return question, f"SELECT {by.id}, {total} FROM {relation.id} GROUP BY {by.id}"


def _missing(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    fields = relation.of_kind("text", "int", "real")
    if not fields:
        return None
    field, rows = rng.choice(fields), said_rows(rng, relation)
    if field.kind == "text":
        other = rng.choice(["unknown", "none", "missing", "other", "n/a"])
        said, value = rng.choice([other, f"'{other}'"]), f"'{other}'"
    else:
        said = value = str(rng.choice([0, 0, 1, -1, 100]))
    called, shown = _named(rng, f"COALESCE({field.id}, {value})", 0.4)
    where = rng.choice(["where it is missing", "if there is none", "where empty", "instead of nulls"])
    return f"{_start(rng)} {said_column(rng, field)} of {rows}, {said} {where}{called}", (
        f"SELECT {shown} FROM {relation.id}"
    )


def _outer(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    if not schema.links:
        return None
    child, key, parent = rng.choice(schema.links)
    label, rows, parents = parent.label, said_rows(rng, child), said_rows(rng, parent)
    joined = f"FROM {parent.id} AS t1 LEFT JOIN {child.id} AS t2 ON t2.{key.id} = t1.{parent.fields[0].id}"
    none = rng.choice(["those without any", "where it has none"])
    each = f"for each {said_column(rng, label)} of {parents}, also {none}"
    called, shown = _named(rng, f"COUNT(t2.{child.fields[0].id})", 0.5)
    question = f"{rng.choice(['Count the', 'How many'])} {rows} {each}{called}"
    return question, f"SELECT t1.{label.id}, {shown} {joined} GROUP BY t1.{label.id}"


def _functions(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    rows, draw = said_rows(rng, relation), rng.random()
    numbers, texts = relation.of_kind("int", "real"), relation.of_kind("text")
    if numbers and (draw < 0.6 or not texts):
        field, digits = rng.choice(numbers), rng.choice([0, 1, 2, 2, 2])
        average = schema.spelling.rounded(f"AVG({field.id})", digits, field.kind == "int")
        called, shown = _named(rng, average, 0.4)
        said = f"{rng.choice(AGGREGATES['AVG'])} {said_column(rng, field)}"
        rounding = f", rounded to {digits} {rng.choice(['decimals', 'digits', 'places'])}"
        groups = relation.of_kind("text", "bool")
        if groups and rng.random() < 0.5:
            by = rng.choice(groups)
            question = f"{_start(rng)} {said} of {rows} per {said_column(rng, by)}{rounding}{called}"
            return question, f"SELECT {by.id}, {shown} FROM {relation.id} GROUP BY {by.id}"
        return f"{_start(rng)} {said} of {rows}{rounding}{called}", f"SELECT {shown} FROM {relation.id}"
    if not texts:
        return None
    field = rng.choice(texts)
    said = said_column(rng, field)
    function, how = rng.choice(
        [
            ("UPPER", f"{said} in upper case"),
            ("LOWER", f"{said} in lower case"),
            ("LENGTH", f"length of the {said}"),
        ]
    )
    return f"{_start(rng)} {how} of {rows}", f"SELECT {function}({field.id}) FROM {relation.id}"


def _ranked(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    numbers, groups = relation.of_kind("int", "real", "date"), relation.of_kind("text", "bool")
    if not numbers or not groups:
        return None
    field, label = rng.choice(numbers), relation.label
    groups = [group for group in groups if group is not label]
    descending, draw = rng.random() < 0.7, rng.random()
    order = f"ORDER BY {field.id}{' DESC' if descending else ''}"
    rows, said = said_rows(rng, relation), said_column(rng, field)
    first = rng.choice(["highest", "largest"] if descending else ["lowest", "smallest"])
    if groups and draw < 0.6:
        by = rng.choice(groups)
        called, rank = _named(rng, f"RANK() OVER (PARTITION BY {by.id} {order})", 0.5)
        within = f"within each {said_column(rng, by)}"
        question = f"{_start(rng)} {said_column(rng, label)} of {rows} and their rank by {said} {within}, {first} first"
        return question + called, f"SELECT {label.id}, {rank} FROM {relation.id}"
    called, rank = _named(rng, f"RANK() OVER ({order})", 0.5)
    question = f"{_start(rng)} {said_column(rng, label)} of {rows} and their rank by {said}, {first} first"
    return question + called, f"SELECT {label.id}, {rank} FROM {relation.id}"


def _correlated(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    draw = rng.random()
    if schema.links and draw < 0.5:
        child, key, parent = rng.choice(schema.links)
        fields = child.of_kind(*_BARE_KINDS)
        if not fields:
            return None
        field, label = rng.choice(fields), parent.label
        english, sql = condition(rng, field, f"t2.{field.id}")
        negative = rng.random() < 0.4
        some = rng.choice(["no", "not a single"]) if negative else rng.choice(["at least one", "some", "any"])
        exists = f"{'NOT ' if negative else ''}EXISTS (SELECT 1 FROM {child.id} AS t2 WHERE "
        exists += f"t2.{key.id} = t1.{parent.fields[0].id} AND {sql})"
        question = f"{_start(rng)} {said_column(rng, label)} of {said_rows(rng, parent)} that have {some} "
        return (
            question + f"{child.name.spoken} {english}",
            f"SELECT t1.{label.id} FROM {parent.id} AS t1 WHERE {exists}",
        )
    numbers = relation.of_kind("int", "real")
    label = relation.label
    groups = [group for group in relation.of_kind("text", "bool") if group is not label]
    if not numbers or not groups:
        return None
    field, by = rng.choice(numbers), rng.choice(groups)
    operator, phrase = rng.choice([(">", "above"), (">", "greater than"), ("<", "below")])
    said = said_column(rng, field)
    inner = f"(SELECT AVG(t2.{field.id}) FROM {relation.id} AS t2 WHERE t2.{by.id} = t1.{by.id})"
    question = (
        f"{_start(rng)} {said_column(rng, label)} of {said_rows(rng, relation)} whose {said} is {phrase} the average "
    )
    question += f"{rng.choice(['of their', 'for their'])} {said_column(rng, by)}"
    return question, f"SELECT t1.{label.id} FROM {relation.id} AS t1 WHERE t1.{field.id} {operator} {inner}"


def _with(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    if not schema.links:
        return None
    child, key, parent = rng.choice(schema.links)
    function = rng.choice(["AVG", "MAX", "MIN"])
    word = {"AVG": "average", "MAX": "largest", "MIN": "smallest"}[function]
    counted = f"WITH counts AS (SELECT {key.id}, COUNT(*) AS n FROM {child.id} GROUP BY {key.id})"
    question = rng.choice(["What is the", "Find the"]) + f" {word} number of {said_rows(rng, child)} per "
    return question + parent.name.spoken, f"{counted} SELECT {function}(n) FROM counts"


def _of_the_extreme(rng: random.Random, relation: Relation, schema: Schema) -> Pair | None:
    if not schema.links:
        return None
    child, key, parent = rng.choice(schema.links)
    numbers, shown = parent.of_kind("int", "real"), child.of_kind(*_BARE_KINDS)
    if not numbers or not shown:
        return None
    field, column, most = rng.choice(numbers), rng.choice(shown), rng.random() < 0.6
    word = rng.choice(["highest", "largest"] if most else ["lowest", "smallest"])
    function = "MAX" if most else "MIN"
    inner = f"(SELECT {function}({field.id}) FROM {parent.id})"
    question = (
        f"{_start(rng)} {said_column(rng, column)} of {said_rows(rng, child)} of the {parent.name.spoken} with the "
    )
    return question + f"{word} {said_column(rng, field)}", (
        f"SELECT {column.id} FROM {child.id} WHERE {key.id} IN"
        f" (SELECT {parent.fields[0].id} FROM {parent.id} WHERE {field.id} = {inner})"
    )


FORMS: tuple[tuple[Form, float], ...] = (
    (_named_result, 1.5),
    (_ordered_groups, 1.5),
    (_having, 1.5),
    (_three_tables, 3.0),
    (_dates, 2.0),
    (_cases, 1.2),
    (_missing, 0.7),
    (_outer, 1.0),
    (_functions, 1.0),
    (_ranked, 1.0),
    (_correlated, 1.2),
    (_with, 0.6),
    (_of_the_extreme, 0.8),
)
"""What is asked, and how often beside the others where the schema has the columns for it."""


def everyday_question(rng: random.Random, schema: Schema) -> Pair:
    """A question about the schema and the SELECT statement, in its dialect, that answers it."""
    forms, weights = [form for form, _ in FORMS], [weight for _, weight in FORMS]
    while True:
        made = rng.choices(forms, weights)[0](rng, rng.choice(schema.relations), schema)
        if made is not None:
            question, sql = made
            draw = rng.random()
            return question + ("?" if draw < 0.4 else "." if draw < 0.6 else ""), sql
