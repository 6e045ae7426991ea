"""SELECT statements of MariaDB: each text is prepared by the server itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import guided
from guided.constraint.attributed import AttributedConstraint
from guided.errors import GuidedError
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.states import At
from guided.grammar.sql import DatabaseSchema, reflect
from guided.grammar.sql.connection import open_session
from guided.grammar.sql.engines.session import ReadOnlySession
from guided.grammar.sql.query.dialects.mariadb import MARIADB
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.query.scope import CallKind
from tests.amounts import ALL, some
from tests.databases import Databases
from tests.unit.grammar.sql.query.random_queries import begun, read
from tests.unit.grammar.sql.query.test_queries import refusal

DATABASE = """
CREATE TABLE singer (singer_id INTEGER PRIMARY KEY, name VARCHAR(50), country VARCHAR(50), age INTEGER, is_male BOOLEAN)
CREATE TABLE concert (concert_id INTEGER PRIMARY KEY, name TEXT, stadium_id INTEGER, year TEXT, day DATE)
CREATE TABLE singer_in_concert (concert_id INTEGER, singer_id INTEGER)
CREATE TABLE `Order items` (id INTEGER, `group` TEXT, `weird ``name` DOUBLE, `Größe` INTEGER, `key` TEXT)
CREATE VIEW old AS SELECT name, age FROM singer WHERE age > 60
""".strip().splitlines()

TAKEN = r"""
WITH `a (` AS (SELECT 1 AS `b c(`) SELECT `b c(` FROM `a (`
WITH x AS (SELECT 1 AS `*`) SELECT x.`*`, x.* FROM x
(SELECT name FROM singer WHERE age > 3 ORDER BY age LIMIT 3) ORDER BY name LIMIT 1;
(SELECT DISTINCT *, 'it''s' AS `id` FROM concert AS x LEFT JOIN concert ON 1)
(SELECT max(name) AS m FROM singer GROUP BY age WITH ROLLUP) UNION (SELECT 1) ORDER BY m
SELECT ntile(4) OVER (PARTITION BY country ORDER BY age DESC) AS part, name FROM singer
SELECT count(*) FROM singer
SELECT .5 * age, -.25, DATE '1996-12-31' FROM singer WHERE age>.5e1 AND age < 1.5
select Name , COUNTRY  from singer where AGE > 20 order by age desc
SELECT T1.name, COUNT(*) FROM singer AS T1 JOIN singer_in_concert AS T2 ON T1.singer_id = T2.singer_id GROUP BY T1.name
SELECT name FROM singer WHERE country = "France" AND name <> 'it\'s' OR name LIKE '50\%' ESCAPE '|'
SELECT s.name FROM singer s, singer S WHERE s.age < S.age
SELECT s.name, concat(name, ' ', country) AS `a b` FROM singer s ORDER BY `a b`
SELECT name FROM singer UNION ALL SELECT name FROM concert ORDER BY name LIMIT 3, 4
SELECT name FROM singer INTERSECT SELECT name FROM concert EXCEPT SELECT 'a'
SELECT count(*) FROM (SELECT country, count(*) FROM singer GROUP BY country HAVING count(*) > 1) AS many
SELECT * FROM (SELECT s.*, row_number() OVER (PARTITION BY country ORDER BY age DESC) AS place FROM singer s) x WHERE place = 1
WITH many AS (SELECT country, count(*) AS n FROM singer GROUP BY 1) SELECT country FROM many WHERE n > 2
WITH a(x, y) AS (SELECT name, age FROM singer), b AS (SELECT x FROM a) SELECT a.y FROM a JOIN b USING (x)
SELECT CASE WHEN age > 30 THEN 'old' ELSE 'young' END AS kind, avg(age) FROM singer GROUP BY kind ORDER BY 2 DESC
SELECT country, count(*) AS n FROM singer GROUP BY country HAVING n > 1 AND country IS NOT NULL ORDER BY n DESC
SELECT date_format(day, '%Y-%m') AS month, COUNT(*) FROM concert WHERE day >= NOW() - INTERVAL 1 YEAR GROUP BY month
SELECT timestampdiff(YEAR, day, current_date), extract(MONTH FROM day), date_add(day, INTERVAL 1 + age DAY) FROM concert, singer
SELECT group_concat(DISTINCT name ORDER BY age DESC SEPARATOR ', ') FROM singer
SELECT CAST(age AS DECIMAL(10, 2)), convert(age, CHAR), IF(age > 3, 1, 2), ifnull(age, 0) FROM singer
SELECT 5 DIV 2, 5 MOD 2, 1 XOR 0, !1, 1 && 2 || 3, 1 <=> NULL, name SOUNDS LIKE 'a' FROM singer
SELECT trim(BOTH 'x' FROM name), substring(name FROM 2 FOR 3), position('a' IN name) FROM singer
SELECT name FROM singer WHERE age > ALL (SELECT age FROM singer WHERE country = 'x') AND age = ANY (SELECT 1)
SELECT name FROM singer WHERE age IS NOT TRUE AND NOT age BETWEEN 1 AND 2 AND name NOT IN (SELECT name FROM concert)
SELECT country, sum(age) FROM singer GROUP BY country WITH ROLLUP
SELECT a.name FROM singer a LEFT JOIN singer_in_concert b ON a.singer_id = b.singer_id WHERE b.singer_id IS NULL
SELECT name FROM singer NATURAL JOIN singer_in_concert
SELECT `group`, `weird ``name`, `GRößE`, `key` FROM `Order items` WHERE `größe` IS NULL OR 1 = 1 LIMIT 2 OFFSET 3;
SELECT sum(age) OVER (ORDER BY age ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM singer
SELECT country, sum(age) / sum(sum(age)) OVER (), max(count(*)) OVER (ORDER BY country) FROM singer GROUP BY country
SELECT 1 FROM DUAL WHERE EXISTS (SELECT 1 FROM singer)
SELECT count(DISTINCT name, age), count(DISTINCT name) FROM singer HAVING count(*) > 1
SELECT sum(age) + max(age) AS s FROM singer ORDER BY s
SELECT name AS "a b", age AS "n" FROM singer WHERE name REGEXP '^(A|B).*[a-z0-9]{2,3}$' ORDER BY n, `a b`
SELECT regexp_replace(country, '[0-9]+', '') FROM singer, concert WHERE day NOT RLIKE 'a' AND day > DATE '2020-02-28'
WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a WHERE x < 5) SELECT * FROM a
SELECT country AS 'The country', count(*) AS 'N (all)' FROM singer GROUP BY `the country` ORDER BY `N (all)` DESC
SELECT json_extract(name, '$.a'), json_value(name, '$.b') FROM singer
SELECT name FROM singer s WHERE (SELECT count(*) FROM singer_in_concert x WHERE x.singer_id = s.singer_id) > 2
SELECT name, rank() OVER w, sum(age) OVER w FROM singer WINDOW w AS (PARTITION BY country ORDER BY age DESC)
SELECT name FROM singer WHERE (name, age) = ('x', 3) OR (age, singer_id) > (30, 4)
SELECT name FROM singer WHERE (name, age) IN (('x', 3), ('y', 4))
SELECT name FROM singer WHERE (country, age) NOT IN (SELECT country, max(age) FROM singer GROUP BY country)
(SELECT name FROM singer ORDER BY age LIMIT 3) UNION ALL (SELECT name FROM concert LIMIT 2) ORDER BY name LIMIT 5
SELECT`name`FROM`singer`AS`s`WHERE`s`.`age`IS NULL OR`s`.`name`="a"ORDER BY`age`DESC
SELECT name`n`FROM singer`s`
SELECT DISTINCTROW country, max(age) FROM singer GROUP BY country
SELECT distinctrow s.* FROM singer s UNION DISTINCT SELECT DISTINCTROW * FROM singer
""".strip().splitlines()

REFUSED = r"""
SELECT [name] FROM singer
SELECT name AS [a b] FROM singer
SELECT.5
SELECT `𝄞`.x FROM (SELECT 1 AS x) `𝄞`
SELECT 1 FROM (SELECT * FROM singer s JOIN concert c ON TRUE) x
SELECT name FROM concert WHERE year BETWEEN.5 AND 1
SELECT x.`*` FROM singer x
(SELECT name FROM singer LIMIT 2) ORDER BY age
(SELECT name AS a, age AS a FROM singer) ORDER BY a
(SELECT max(name) AS m FROM singer GROUP BY age WITH ROLLUP) ORDER BY m
SELECT nmae FROM singer
SELECT name FROM Singer
SELECT S.name FROM singer s
SELECT count (*) FROM singer
SELECT name FROM singer HAVING age > 1
SELECT name FROM singer WHERE n = 1 GROUP BY name AS n
SELECT name AS n FROM singer WHERE n = 1
SELECT name AS n, country AS n FROM singer ORDER BY n
SELECT count(*) AS n FROM singer GROUP BY n
SELECT count(*) AS n FROM singer ORDER BY n + 1
SELECT 1, * FROM singer
SELECT 1 FROM (SELECT name, name FROM singer) x
SELECT 1 FROM (SELECT 1, 1) x
SELECT 1 FROM (SELECT * FROM singer, concert) x
SELECT 1 FROM (SELECT name FROM singer)
SELECT 1 FROM singer LEFT JOIN concert
SELECT 1 FROM singer FULL OUTER JOIN concert ON 1
SELECT 1 FROM singer s, concert c JOIN old o ON o.name = s.name
SELECT 1 FROM singer s, singer_in_concert c JOIN old o USING (name)
SELECT name FROM singer WHERE name IN (SELECT name FROM concert LIMIT 1)
SELECT rank() OVER () FROM singer
SELECT rank() OVER (ORDER BY age ROWS UNBOUNDED PRECEDING) FROM singer
SELECT sum(age) FILTER (WHERE age > 1) FROM singer
SELECT name FROM singer ORDER BY age NULLS LAST
SELECT country FROM singer GROUP BY country WITH ROLLUP ORDER BY country
SELECT name FROM singer ORDER BY 2
SELECT name FROM singer ORDER BY (2)
SELECT name FROM singer ORDER BY -1
SELECT sum(age, 2) FROM singer
SELECT sum(sum(age)) FROM singer
SELECT max(max(age) OVER ()) FROM singer
SELECT cast(1 AS DECIMAL(2, 10))
SELECT 1 = NOT 1
SELECT 1 IS 1
SELECT 1 == 1
WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT max(x) FROM a) SELECT * FROM a
WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x FROM a ORDER BY x) SELECT * FROM a
WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x FROM singer LEFT JOIN a ON 1) SELECT * FROM a
WITH a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT * FROM a
SELECT name FROM singer WHERE name REGEXP '('
SELECT DATE '2020-02-30'
SELECT name FROM singer ORDER BY FALSE
SELECT name FROM singer ORDER BY NOT TRUE
SELECT date_add(json_extract(name, '$.a'), INTERVAL 1 DAY) FROM singer
SELECT EXISTS (SELECT singer_in_concert.* FROM singer_in_concert UNION SELECT 1, 2)
SELECT 1 <=> ALL (SELECT 1)
SELECT CAST(1 AS VARCHAR)
SELECT trim(FROM 'a')
SELECT 'a\'
SELECT name FROM singer LIMIT 1 + 1
WITH a AS (SELECT 1), A AS (SELECT 2) SELECT 1
SELECT singer.name FROM singer AS _utf8
SELECT rank() OVER w FROM singer
SELECT rank() OVER w WINDOW w AS (ORDER BY 1)
SELECT name FROM singer WHERE (name, age) = ('x', 3, 4)
SELECT name FROM singer WHERE (name, age) IN (SELECT name FROM singer)
(SELECT name FROM singer) UNION (SELECT name, age FROM singer)
(WITH a AS (SELECT 1 AS x) SELECT x FROM a) UNION (SELECT 1)
SELECT EXISTS (SELECT 1 UNION SELECT s.age INTERSECT SELECT 1) FROM singer s
SELECT age FROM singer UNION SELECT name, age FROM singer
""".strip().splitlines()


@pytest.fixture(scope="module")
def url(databases: Databases) -> str:
    return databases("mariadb").create(*DATABASE)


@pytest.fixture(scope="module")
def schema(url: str) -> DatabaseSchema:
    return reflect(url)


@pytest.fixture(scope="module")
def session(url: str) -> Iterator[ReadOnlySession]:
    with open_session(url) as session:
        yield session


@pytest.fixture(scope="module")
def languages(schema: DatabaseSchema) -> tuple[AttributedLanguage, AttributedLanguage]:
    return query_language(schema), query_language(schema, forward=False)


def test_a_table_may_stand_behind_its_database(
    schema: DatabaseSchema, languages: tuple[AttributedLanguage, ...], session: ReadOnlySession
) -> None:
    for text, fits in (
        (f"SELECT s.name FROM {schema.default_schema}.singer s", True),
        ("SELECT 1 FROM d.singer", False),
    ):
        assert (refusal(languages[0], text) is None) is fits
        if fits:
            session.prepare(text)


@pytest.mark.parametrize("text", TAKEN)
def test_what_the_server_prepares_is_taken(
    text: str, languages: tuple[AttributedLanguage, ...], session: ReadOnlySession
) -> None:
    session.prepare(text)
    for language in languages:
        assert refusal(language, text) is None


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_server_refuses_is_refused(
    text: str, languages: tuple[AttributedLanguage, ...], session: ReadOnlySession
) -> None:
    with pytest.raises(GuidedError):
        session.prepare(text)
    for language in languages:
        assert refusal(language, text) is not None


def test_a_bracket_owes_no_other_part(languages: tuple[AttributedLanguage, ...]) -> None:
    begun_ = b"(SELECT distinct *, 'it''s' AS `id` FROM concert AS rowid LEFT JOIN concert"
    for language in languages:
        at: At | None = language.start
        for byte in begun_:
            assert at is not None
            at = language.step(at, byte)
        assert at is not None
        assert len(language.rest(at)) <= language.price(at)


@pytest.mark.parametrize("source", ["singer y, ", "concert y JOIN ", "concert y NATURAL JOIN "])
def test_columns_of_a_star_in_a_source_have_names_of_their_own(
    source: str, languages: tuple[AttributedLanguage, ...], session: ReadOnlySession
) -> None:
    text = f"SELECT 1 FROM (SELECT * FROM {source}"
    for language in languages:
        at = read(language, language.start, text)
        assert at is not None
        end = language.end(at)
        assert end is not None and len(end) <= language.price(at)
        session.prepare(text + end.decode())
        # No name ends the text, and another table would have an equal one.
        assert refusal(language, f"{text}{source.split()[0]}, singer z") is not None


@pytest.mark.timeout(3600 if ALL else 300)
def test_random_texts_are_prepared(languages: tuple[AttributedLanguage, ...], session: ReadOnlySession) -> None:
    """The server computes constants while it prepares, and refuses those that overflow: one text of a thousand."""
    sizes, overflows = [], 0
    trials = some(10_000, 400)
    for seed in range(trials):
        rng = random.Random(seed)
        language = languages[seed % 2]
        text, at = begun(rng, language, rng.choice([3, 8, 15, 30, 60]))
        rest = language.rest(at)
        assert len(rest) <= language.price(at), text
        whole = text + rest.decode()
        assert refusal(language, whole) is None, whole
        try:
            session.prepare(whole)
        except GuidedError as error:
            assert "out of range" in str(error), whole
            overflows += 1
        sizes.append(len(whole))
    assert sum(sizes) > 50 * len(sizes)
    assert overflows <= 1 + trials // 1000


@pytest.mark.parametrize("function", MARIADB.functions, ids=lambda function: function.name)
def test_functions_take_as_many_arguments_as_the_server_says(function: object, session: ReadOnlySession) -> None:
    name, low, high = function.name, function.low, function.high  # type: ignore[attr-defined]
    window = " OVER (ORDER BY 1)" if function.kind is CallKind.WINDOW else ""  # type: ignore[attr-defined]
    if name == "count":
        low = high = 1
    for count in range(low, 1 + (high if high is not None else low + 3)):
        session.prepare(f"SELECT {name}({', '.join(['1'] * count)}){window}")


def test_names_in_double_quotes_where_the_mode_says_so(schema: DatabaseSchema) -> None:
    text = 'SELECT "name" FROM singer WHERE "name" = \'a\\\' OR 1 = 1'
    assert refusal(query_language(schema), text) is not None
    modes = ("ANSI_QUOTES", "NO_BACKSLASH_ESCAPES")
    assert refusal(query_language(replace(schema, modes=modes)), text) is None


@pytest.mark.parametrize("text", ["SELECT abs(1", "SELECT json_pretty(1 ", "SELECT count(DISTINCT 1", "SELECT sum(1"])
def test_no_comma_follows_the_last_argument(schema: DatabaseSchema, text: str) -> None:
    language = query_language(schema)
    at: At | None = language.start
    for byte in text.encode():
        assert at is not None
        at = language.step(at, byte)
    assert at is not None
    after = language.step(at, ord(","))
    assert after is None or language.end(after) is not None
    assert (after is None) is not text.startswith("SELECT count")


def test_what_only_mariadb_has_is_none_of_mysql(schema: DatabaseSchema) -> None:
    language = query_language(replace(schema, dialect="mysql"))
    assert refusal(language, "SELECT ifnull(age, 1) FROM singer") is None
    assert refusal(language, "SELECT nvl(age, 1) FROM singer") is not None
    assert refusal(language, "SELECT age AS rank FROM singer") is not None


def test_masks_are_the_tokens_that_can_be_read(languages: tuple[AttributedLanguage, ...]) -> None:
    pieces = [
        "count(",
        " count(*)",
        "count",
        "Order",
        " `Order items`",
        "order",
        "T1.",
        "t1",
        "it\\'s",
        "\\",
        "')",
        '"a',
    ]
    pieces += [
        f"{first}{second}" for first in "abcdefghijkST" for second in ("e", "ing", "(", "()", " = ", "'", '"', ".")
    ]
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in dict.fromkeys(pieces)]
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    row = np.zeros(vocabulary.n_words, np.uint32)
    for language in languages:
        constraint = AttributedConstraint(language, vocabulary)
        for text in (TAKEN[3], TAKEN[4], TAKEN[25]):
            state = constraint.start
            for place, byte in enumerate(text.encode()):
                if ALL or place % 4 == 0:
                    constraint.fill_mask(state, row)
                    for token in range(vocabulary.size):
                        allowed = bool(row[token >> 5] >> (token & 31) & 1)
                        assert allowed is (constraint.advance(state, token) != 0), (text, vocabulary.token_bytes(token))
                state = constraint.advance(state, byte)
            assert constraint.is_accepting(state)
