"""Plain questions in many wordings about a random schema, each with the SELECT, in its dialect, that answers it."""

from __future__ import annotations

import random
from collections.abc import Callable

from names import plural
from sql_corpus import Field, Relation, Schema, said_date

__all__ = ["AGGREGATES", "Pair", "condition", "quoted", "random_question", "said_column", "said_rows"]

Pair = tuple[str, str]
"""A question and its SQL."""


def said_column(rng: random.Random, field: Field) -> str:
    """How a question names a column: mostly in words, sometimes as the identifier itself."""
    return field.bare if rng.random() < 0.25 else field.name.spoken


def said_rows(rng: random.Random, relation: Relation) -> str:
    """How a question names the rows of a table."""
    return relation.bare if rng.random() < 0.12 else plural(relation.name.spoken)


def quoted(value: str) -> str:
    """The value as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def _join_words(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def condition(rng: random.Random, field: Field, column: str) -> Pair:
    """A restriction that follows a noun (``whose age is over 30``) and its SQL over ``column``."""
    said = said_column(rng, field)
    draw = rng.random()
    if field.kind == "bool":
        if draw < 0.5:
            return rng.choice([f"that are {said}", f"where {said} is true", f"with {said} set"]), (
                field.spelling.truth(column, True)
            )
        return rng.choice([f"that are not {said}", f"where {said} is false", f"without {said} set"]), (
            field.spelling.truth(column, False)
        )
    if draw < 0.04:
        return rng.choice([f"without a {said}", f"that have no {said}", f"with no {said}"]), f"{column} IS NULL"
    value = rng.choice(field.pool)
    if field.kind == "text":
        return _text_condition(rng, field, said, column, value)
    if field.kind == "date":
        written = said_date(rng, value)
        if draw < 0.35:
            return rng.choice([f"with {said} after {written}", f"whose {said} is later than {written}"]), (
                f"{column} > '{value}'"
            )
        if draw < 0.7:
            return rng.choice([f"with {said} before {written}", f"whose {said} is earlier than {written}"]), (
                f"{column} < '{value}'"
            )
        if draw < 0.78:
            year = value[:4]
            return rng.choice([f"with {said} in {year}", f"whose {said} is in {year}"]), (
                field.spelling.in_year(column, year)
            )
        if draw < 0.88:
            return rng.choice([f"with {said} on {written}", f"whose {said} is {written}"]), f"{column} = '{value}'"
        other = rng.choice(field.pool)
        low, high = sorted([value, other])
        english = f"with {said} between {said_date(rng, low)} and {said_date(rng, high)}"
        return english, f"{column} BETWEEN '{low}' AND '{high}'"
    if draw < 0.12:
        low, high = sorted([value, rng.choice(field.pool)], key=float)
        return rng.choice([f"with {said} between {low} and {high}", f"whose {said} is between {low} and {high}"]), (
            f"{column} BETWEEN {low} AND {high}"
        )
    if rng.random() < 0.4:
        value = str(int(float(value)))
    operator, phrases = rng.choice(_COMPARISONS)
    phrase = rng.choice(phrases)
    english = rng.choice([f"with {said} {phrase} {value}", f"whose {said} is {phrase} {value}"])
    if operator == "=":
        english = rng.choice([f"with {said} {value}", f"whose {said} is {value}", f"with a {said} of {value}"])
    familiar = _FAMILIAR_COMPARISONS.get((field.bare.lower(), operator))
    if familiar and rng.random() < 0.5:
        english = f"{familiar} {value}"
    return english, f"{column} {operator} {value}"


_COMPARISONS: list[tuple[str, list[str]]] = [
    (">", ["greater than", "more than", "above", "over", "higher than", "larger than"]),
    (">", ["greater than", "more than", "above", "over", "higher than", "larger than"]),
    ("<", ["less than", "below", "under", "lower than", "smaller than"]),
    ("<", ["less than", "below", "under", "lower than", "smaller than"]),
    (">=", ["at least", "no less than"]),
    ("<=", ["at most", "no more than"]),
    ("=", ["equal to"]),
]

_FAMILIAR_COMPARISONS = {
    ("age", ">"): "older than",
    ("age", "<"): "younger than",
    ("price", ">"): "costing more than",
    ("price", "<"): "cheaper than",
    ("salary", ">"): "earning more than",
    ("salary", "<"): "earning less than",
    ("year", ">"): "after",
    ("year", "<"): "before",
}


def _text_condition(rng: random.Random, field: Field, said: str, column: str, value: str) -> Pair:
    draw = rng.random()
    if draw < 0.12:
        word = value.split()[0]
        forms = [
            (f"whose {said} contains {word}", f"%{word}%"),
            (f"whose {said} starts with {word}", f"{word}%"),
            (f"whose {said} ends with {value.split()[-1]}", f"%{value.split()[-1]}"),
        ]
        english, pattern = rng.choice(forms)
        return english, f"{column} LIKE {quoted(pattern)}"
    if draw < 0.2:
        return rng.choice([f"whose {said} is not {value}", f"with a {said} other than {value}"]), (
            f"{column} != {quoted(value)}"
        )
    if draw < 0.28 and len(field.pool) > 1:
        values = rng.sample(field.pool, min(len(field.pool), rng.choice([2, 2, 3])))
        english = ", ".join(values[:-1]) + " or " + values[-1]
        return rng.choice([f"whose {said} is {english}", f"with {said} {english}"]), (
            f"{column} IN ({', '.join(map(quoted, values))})"
        )
    shown = f"'{value}'" if rng.random() < 0.15 else value
    english = rng.choice(
        [f"whose {said} is {shown}", f"with {said} {shown}", f"where {said} is {shown}", f"with the {said} {shown}"]
    )
    if field.bare.lower() in ("city", "country", "region") and rng.random() < 0.6:
        english = rng.choice([f"in {value}", f"from {value}", f"that live in {value}"])
    if field.bare.lower() in ("department", "category", "genre", "team") and rng.random() < 0.6:
        english = rng.choice([f"in the {value} {said}", f"in {value}", f"of the {said} {value}"])
    if field.bare.lower() in ("name", "title") and rng.random() < 0.5:
        english = rng.choice([f"named {value}", f"called {value}"])
    return english, f"{column} = {quoted(value)}"


def _where(rng: random.Random, relation: Relation, chance: float, prefix: str = "") -> Pair:
    """Zero, one or two conditions: `` whose ..`` and `` WHERE ..``, each with its leading space, or empty."""
    fields = relation.of_kind("int", "real", "text", "date", "bool")
    if not fields or rng.random() > chance:
        return "", ""
    english, sql = condition(rng, first := rng.choice(fields), prefix + first.id)
    if len(fields) > 1 and rng.random() < 0.25:
        second = rng.choice([field for field in fields if field is not first])
        more, more_sql = condition(rng, second, prefix + second.id)
        word = "or" if rng.random() < 0.3 else "and"
        return f" {english} {word} {more}", f" WHERE {sql} {word.upper()} {more_sql}"
    return " " + english, f" WHERE {sql}"


def _shown(rng: random.Random, relation: Relation, most: int = 3) -> list[Field]:
    fields = [field for field in relation.fields if field.references is None]
    return rng.sample(fields, min(len(fields), rng.choice([n for n in (1, 1, 1, 2, 2, 3) if n <= most])))


def _which(rng: random.Random, relation: Relation) -> Pair:
    """Questions that do not say what to show: rows by their label, or one row's values by its label."""
    label, rows = relation.label, said_rows(rng, relation)
    others = [field for field in relation.of_kind("int", "real", "text", "date", "bool") if field is not label]
    if label.pool and others and rng.random() < 0.4:
        value, field = rng.choice(label.pool), rng.choice(others)
        of = rng.choice([value, value, f"the {relation.name.spoken} {value}"])
        start = rng.choice(["What is the", "Show the", "Tell me the", "Find the"])
        sql = f"SELECT {field.id} FROM {relation.id} WHERE {label.id} = {quoted(value)}"
        return f"{start} {said_column(rng, field)} of {of}", sql
    if not others:
        return f"{rng.choice(['List', 'Show'])} the {rows}", f"SELECT * FROM {relation.id}"
    field = rng.choice(others)
    english, where = condition(rng, field, field.id)
    if english.startswith("with ") and rng.random() < 0.6:
        english = "have " + english.removeprefix("with ")
    elif english.startswith("that are "):
        english = english.removeprefix("that ")
    else:
        english = f"are there {english}" if rng.random() < 0.5 else english
    return f"Which {rows} {english}", f"SELECT {label.id} FROM {relation.id} WHERE {where}"


def _list(rng: random.Random, relation: Relation, _: Schema) -> Pair:
    if rng.random() < 0.22:
        return _which(rng, relation)
    english, where = _where(rng, relation, 0.75)
    rows = said_rows(rng, relation)
    if rng.random() < 0.2:
        start = rng.choice(["List all", "Show all", "Show all columns of the", "Find all", "Show me all", "Get all"])
        return f"{start} {rows}{english}", f"SELECT * FROM {relation.id}{where}"
    shown = _shown(rng, relation)
    said = _join_words([said_column(rng, field) for field in shown])
    start = rng.choice(
        ["List the", "Show the", "What is the", "What are the", "Find the", "Give me the", "Return the", "Get the"]
    )
    middle = rng.choice([f"of all {rows}", f"of {rows}", f"of the {rows}", f"of {rows}"])
    columns = ", ".join(field.id for field in shown)
    distinct = rng.random() < 0.15
    if distinct:
        said = rng.choice(["distinct ", "different ", "unique "]) + said
    sql = f"SELECT {'DISTINCT ' if distinct else ''}{columns} FROM {relation.id}{where}"
    return f"{start} {said} {middle}{english}", sql


def _count(rng: random.Random, relation: Relation, _: Schema) -> Pair:
    english, where = _where(rng, relation, 0.75)
    rows = said_rows(rng, relation)
    texts = relation.of_kind("text")
    if texts and rng.random() < 0.2:
        field = rng.choice(texts)
        said = plural(said_column(rng, field))
        form = rng.choice([f"How many different {said} do {rows} have", f"Count the distinct {said} of {rows}"])
        return form + english, f"SELECT COUNT(DISTINCT {field.id}) FROM {relation.id}{where}"
    form = rng.choice(
        [f"How many {rows} are there", f"How many {rows}", f"Count the {rows}", f"What is the number of {rows}"]
    )
    return form + english, f"SELECT COUNT(*) FROM {relation.id}{where}"


AGGREGATES = {
    "AVG": ["average", "mean"],
    "SUM": ["total", "sum of the", "overall"],
    "MIN": ["lowest", "minimum", "smallest"],
    "MAX": ["highest", "maximum", "largest"],
}


def _aggregate(rng: random.Random, relation: Relation, schema: Schema) -> Pair:
    numbers = relation.of_kind("int", "real")
    if not numbers:
        return _list(rng, relation, schema)
    english, where = _where(rng, relation, 0.55)
    field = rng.choice(numbers)
    function = rng.choice(list(AGGREGATES))
    said = f"{rng.choice(AGGREGATES[function])} {said_column(rng, field)}"
    calls = f"{function}({field.id})"
    if rng.random() < 0.2:
        second = rng.choice(list(AGGREGATES))
        other = rng.choice(numbers)
        said += f" and the {rng.choice(AGGREGATES[second])} {said_column(rng, other)}"
        calls += f", {second}({other.id})"
    start = rng.choice(["What is the", "Find the", "Show the", "Compute the", "Give me the"])
    return f"{start} {said} of {rng.choice(['all ', '', 'the '])}{said_rows(rng, relation)}{english}", (
        f"SELECT {calls} FROM {relation.id}{where}"
    )


_SUPERLATIVES = {
    ("age", True): "oldest",
    ("age", False): "youngest",
    ("price", True): "most expensive",
    ("price", False): "cheapest",
    ("salary", True): "best paid",
    ("salary", False): "worst paid",
    ("year", True): "newest",
    ("year", False): "oldest",
    ("date", True): "latest",
    ("date", False): "earliest",
    ("rating", True): "best rated",
    ("rating", False): "worst rated",
}


def _order(rng: random.Random, relation: Relation, schema: Schema) -> Pair:
    keys = relation.of_kind("int", "real", "date") or relation.of_kind("text")
    if not keys:
        return _list(rng, relation, schema)
    key = rng.choice(keys)
    descending = rng.random() < 0.6
    shown = _shown(rng, relation, 2)
    columns = ", ".join(field.id for field in shown)
    said = _join_words([said_column(rng, field) for field in shown])
    english, where = _where(rng, relation, 0.35)
    suffix = " DESC" if descending else ""
    rows = said_rows(rng, relation)
    start = rng.choice(["List the", "Show the", "Find the", "Give me the"])
    if rng.random() < 0.5:
        order = (
            rng.choice(["in descending order of", "from highest to lowest", "in decreasing order of"])
            if descending
            else rng.choice(["in ascending order of", "ordered by", "sorted by", "in order of"])
        )
        if order == "from highest to lowest":
            order = f"ordered by {said_column(rng, key)} from highest to lowest"
        else:
            order += f" {said_column(rng, key)}"
        return f"{start} {said} of {rows}{english} {order}", (
            f"SELECT {columns} FROM {relation.id}{where} ORDER BY {key.id}{suffix}"
        )
    number = rng.choice([1, 1, 2, 3, 5, 10, rng.randint(2, 20)])
    most = rng.choice(["highest", "largest", "greatest"]) if descending else rng.choice(["lowest", "smallest"])
    superlative = _SUPERLATIVES.get((key.bare.lower(), descending))
    if superlative and rng.random() < 0.6:
        rows = rows if number > 1 else relation.name.spoken
        question = f"{start} {said} of the {f'{number} ' if number > 1 else ''}{superlative} {rows}{english}"
    elif number == 1 and key.kind != "text" and rng.random() < 0.35:
        label = relation.label
        columns = label.id
        verb = rng.choice(["has", "is the one with", "with"])
        question = f"Which {relation.name.spoken}{english} {verb} the {most} {said_column(rng, key)}"
    elif number == 1:
        question = f"{start} {said} of the {relation.name.spoken}{english} with the {most} {said_column(rng, key)}"
    elif rng.random() < 0.5:
        question = f"{start} {said} of the {number} {rows}{english} with the {most} {said_column(rng, key)}"
    else:
        end = "top" if descending else "bottom"
        question = f"{start} {said} of the {end} {number} {rows}{english} by {said_column(rng, key)}"
    return question, f"SELECT {columns} FROM {relation.id}{where} ORDER BY {key.id}{suffix} LIMIT {number}"


def _group(rng: random.Random, relation: Relation, schema: Schema) -> Pair:
    groups = relation.of_kind("text", "bool") or relation.of_kind("int")
    if not groups:
        return _count(rng, relation, schema)
    by = rng.choice(groups)
    numbers = [field for field in relation.of_kind("int", "real") if field is not by]
    rows, said = said_rows(rng, relation), said_column(rng, by)
    each = rng.choice([f"for each {said}", f"per {said}", f"by {said}", f"grouped by {said}"])
    english, where = _where(rng, relation, 0.2)
    tail = f" FROM {relation.id}{where} GROUP BY {by.id}"
    draw = rng.random()
    if draw < 0.3 or not numbers:
        form = rng.choice([f"How many {rows} are there{english} {each}", f"Count the {rows}{english} {each}"])
        return form, f"SELECT {by.id}, COUNT(*){tail}"
    if draw < 0.65:
        function, field = rng.choice(list(AGGREGATES)), rng.choice(numbers)
        what = f"{rng.choice(AGGREGATES[function])} {said_column(rng, field)}"
        start = rng.choice(["What is the", "Show the", "Find the"])
        return f"{start} {what} of {rows}{english} {each}", f"SELECT {by.id}, {function}({field.id}){tail}"
    if draw < 0.85:
        number = rng.randint(1, 9)
        operator, phrase = rng.choice([(">", "more than"), (">=", "at least"), ("<", "fewer than")])
        start = rng.choice(["Which", "Find each", "List every"])
        verb = "have" if start == "Which" else "with"
        named = plural(said) if start == "Which" else said
        return f"{start} {named} {verb} {phrase} {number} {rows}{english}", (
            f"SELECT {by.id}{tail} HAVING COUNT(*) {operator} {number}"
        )
    least = rng.random() < 0.3
    start = rng.choice(["Which", "Find the", "What is the"])
    middle = "has" if start == "Which" else "with"
    form = f"{start} {said} {middle} the {'fewest' if least else 'most'} {rows}{english}"
    return form, f"SELECT {by.id}{tail} ORDER BY COUNT(*){'' if least else ' DESC'} LIMIT 1"


def _join(rng: random.Random, relation: Relation, schema: Schema) -> Pair:
    if not schema.links:
        return _list(rng, relation, schema)
    child, key, parent = rng.choice(schema.links)
    joined = f"{child.id} JOIN {parent.id} ON {child.id}.{key.id} = {parent.id}.{parent.fields[0].id}"
    child_rows, parent_row = said_rows(rng, child), parent.name.spoken
    restricted = parent.of_kind("int", "real", "text", "date", "bool")
    shown = child.of_kind("int", "real", "text", "date", "bool")
    if rng.random() < 0.4:
        return _linked(rng, child, parent, joined)
    draw = rng.random()
    if not restricted or not shown:
        draw = 0.9
    if draw < 0.35:
        field, by = rng.choice(shown), rng.choice(restricted)
        english, where = condition(rng, by, f"{parent.id}.{by.id}")
        start = rng.choice(["List the", "Show the", "Find the", "What is the"])
        link = rng.choice(["of", "belonging to", "that belong to"])
        question = f"{start} {said_column(rng, field)} of {child_rows} {link} {plural(parent_row)} {english}"
        return question, f"SELECT {child.id}.{field.id} FROM {joined} WHERE {where}"
    if draw < 0.5:
        by = rng.choice(restricted)
        english, where = condition(rng, by, f"{parent.id}.{by.id}")
        form = f"How many {child_rows} {rng.choice(['belong to', 'do', 'are of'])} {plural(parent_row)} {english}"
        form = form.replace(" do ", " there are for ")
        return form, f"SELECT COUNT(*) FROM {joined} WHERE {where}"
    if draw < 0.75:
        field, other = rng.choice(shown), rng.choice(restricted)
        start = rng.choice(["Show the", "List the", "Give me the"])
        question = f"{start} {said_column(rng, field)} of {rng.choice(['all ', 'each ', ''])}{child_rows} with the "
        question += rng.choice(
            [f"{said_column(rng, other)} of their {parent_row}", f"{parent_row} {said_column(rng, other)}"]
        )
        return question, f"SELECT {child.id}.{field.id}, {parent.id}.{other.id} FROM {joined}"
    labels = parent.of_kind("text") or [parent.fields[0]]
    label = rng.choice(labels)
    numbers = child.of_kind("int", "real")
    grouped = f"FROM {joined} GROUP BY {parent.id}.{label.id}"
    of_parent = rng.choice(
        [f"for each {parent_row} {said_column(rng, label)}", f"per {said_column(rng, label)} of the {parent_row}"]
    )
    if numbers and rng.random() < 0.5:
        function, field = rng.choice(list(AGGREGATES)), rng.choice(numbers)
        what = f"{rng.choice(AGGREGATES[function])} {said_column(rng, field)}"
        start = rng.choice(["What is the", "Show the", "Find the"])
        question = f"{start} {what} of {child_rows} {of_parent}"
        return question, f"SELECT {parent.id}.{label.id}, {function}({child.id}.{field.id}) {grouped}"
    question = f"{rng.choice(['How many', 'Count the'])} {child_rows} {of_parent}"
    return question, f"SELECT {parent.id}.{label.id}, COUNT(*) {grouped}"


def _linked(rng: random.Random, child: Relation, parent: Relation, joined: str) -> Pair:
    """Questions about rows by what belongs to them: the most, more than so many, the total of one."""
    label, rows = parent.label, said_rows(rng, child)
    column, numbers = f"{parent.id}.{label.id}", child.of_kind("int", "real")
    draw = rng.random()
    if draw < 0.3:
        least = rng.random() < 0.25
        most = "fewest" if least else "most"
        start = rng.choice([f"Which {parent.name.spoken} has", f"Find the {parent.name.spoken} with"])
        tail = f"GROUP BY {column} ORDER BY COUNT(*){'' if least else ' DESC'} LIMIT 1"
        return f"{start} the {most} {rows}", f"SELECT {column} FROM {joined} {tail}"
    if draw < 0.5:
        number = rng.randint(1, 9)
        operator, phrase = rng.choice([(">", "more than"), (">=", "at least"), ("<", "fewer than")])
        start = rng.choice([f"Which {said_rows(rng, parent)} have", f"Find all {said_rows(rng, parent)} with"])
        tail = f"GROUP BY {column} HAVING COUNT(*) {operator} {number}"
        return f"{start} {phrase} {number} {rows}", f"SELECT {column} FROM {joined} {tail}"
    if draw < 0.75 and label.pool:
        value = rng.choice(label.pool)
        of = rng.choice([value, f"the {parent.name.spoken} {value}"])
        where = f"FROM {joined} WHERE {column} = {quoted(value)}"
        if numbers and rng.random() < 0.5:
            function, field = rng.choice(list(AGGREGATES)), rng.choice(numbers)
            what = f"{rng.choice(AGGREGATES[function])} {said_column(rng, field)}"
            question = f"{rng.choice(['What is the', 'Find the'])} {what} of {rows} {rng.choice(['of', 'for'])} {of}"
            return question, f"SELECT {function}({child.id}.{field.id}) {where}"
        question = rng.choice([f"How many {rows} does {of} have", f"Count the {rows} of {of}"])
        return question, f"SELECT COUNT(*) {where}"
    fields = child.of_kind("int", "real", "text", "date", "bool")
    shown = rng.choice(parent.of_kind("int", "real", "text", "date") or [label])
    if not fields:
        question = f"Count the {rows} per {parent.name.spoken}"
        return question, f"SELECT {column}, COUNT(*) FROM {joined} GROUP BY {column}"
    field = rng.choice(fields)
    english, where = condition(rng, field, f"{child.id}.{field.id}")
    start = rng.choice(["Show the", "List the", "Find the"])
    said, having = f"{said_column(rng, shown)} of {said_rows(rng, parent)}", rng.choice(["that have", "having"])
    question = f"{start} {said} {having} {rows} {english}"
    return question, f"SELECT {parent.id}.{shown.id} FROM {joined} WHERE {where}"


def _nested(rng: random.Random, relation: Relation, schema: Schema) -> Pair:
    draw = rng.random()
    if schema.links and draw < 0.4:
        child, key, parent = rng.choice(schema.links)
        shown = _shown(rng, parent, 2)
        said = _join_words([said_column(rng, field) for field in shown])
        negative = rng.random() < 0.7
        have = rng.choice(["without", "that have no", "with no"]) if negative else rng.choice(["with", "that have"])
        columns = ", ".join(field.id for field in shown)
        question = f"{rng.choice(['List the', 'Show the', 'Find the'])} {said} of {said_rows(rng, parent)} {have} "
        question += plural(child.name.spoken)
        within = f"{'NOT ' if negative else ''}IN (SELECT {key.id} FROM {child.id})"
        return question, f"SELECT {columns} FROM {parent.id} WHERE {parent.fields[0].id} {within}"
    numbers = relation.of_kind("int", "real")
    if not numbers:
        return _count(rng, relation, schema)
    field = rng.choice(numbers)
    said = said_column(rng, field)
    operator, function, phrase = rng.choice(
        [
            (">", "AVG", f"whose {said} is above the average"),
            (">", "AVG", f"with {said} greater than the average {said}"),
            ("<", "AVG", f"whose {said} is below the average"),
            ("=", "MAX", f"whose {said} is the highest of all"),
            ("=", "MIN", f"whose {said} is the lowest of all"),
        ]
    )
    where = f"FROM {relation.id} WHERE {field.id} {operator} (SELECT {function}({field.id}) FROM {relation.id})"
    if rng.random() < 0.35:
        return f"How many {said_rows(rng, relation)} are there {phrase}", f"SELECT COUNT(*) {where}"
    shown = _shown(rng, relation, 2)
    start = rng.choice(["List the", "Show the", "Find the"])
    english = _join_words([said_column(rng, column) for column in shown])
    columns = ", ".join(column.id for column in shown)
    return f"{start} {english} of {said_rows(rng, relation)} {phrase}", f"SELECT {columns} {where}"


def _combined(rng: random.Random, relation: Relation, schema: Schema) -> Pair:
    fields = relation.of_kind("int", "real", "text", "date", "bool")
    if len(fields) < 2:
        return _list(rng, relation, schema)
    shown = rng.choice(relation.fields)
    first, second = rng.sample(fields, 2)
    left, left_sql = condition(rng, first, first.id)
    right, right_sql = condition(rng, second, second.id)
    operator, form = rng.choice(
        [
            ("UNION", "{left} together with those {right}"),
            ("INTERSECT", "{left} that are also among those {right}"),
            ("EXCEPT", "{left} except those {right}"),
        ]
    )
    select = f"SELECT {shown.id} FROM {relation.id} WHERE "
    question = (
        f"{rng.choice(['List the', 'Show the', 'Find the'])} {said_column(rng, shown)} of {said_rows(rng, relation)} "
    )
    return question + form.format(left=left, right=right), f"{select}{left_sql} {operator} {select}{right_sql}"


_FORMS: list[tuple[Callable[[random.Random, Relation, Schema], Pair], float]] = [
    (_list, 3.0),
    (_count, 1.8),
    (_aggregate, 1.8),
    (_order, 2.0),
    (_group, 2.0),
    (_join, 2.6),
    (_nested, 1.0),
    (_combined, 0.4),
]


def random_question(rng: random.Random, schema: Schema) -> Pair:
    """A question about the schema and the SELECT statement that answers it."""
    form = rng.choices([form for form, _ in _FORMS], [weight for _, weight in _FORMS])[0]
    question, sql = form(rng, rng.choice(schema.relations), schema)
    question = question.removesuffix("?")
    draw = rng.random()
    return question + ("?" if draw < 0.4 else "." if draw < 0.6 else ""), sql
