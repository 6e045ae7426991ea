"""DuckDB's queries: each text is prepared by the engine, which knows best."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import reflect
from guided.grammar.sql.query.dialects.duckdb.types import declared
from guided.grammar.sql.query.dialects.duckdb.words import KEYWORDS, LEXIS
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.schema import DatabaseSchema
from tests.amounts import ALL, some
from tests.unit.grammar.sql.query import random_queries
from tests.unit.grammar.sql.query.test_queries import refusal

DATABASE = (
    "CREATE TABLE singer (singer_id integer PRIMARY KEY, name text, country varchar(30), age integer, is_male boolean,"
    " born date)",
    "CREATE TABLE concert (concert_id integer PRIMARY KEY, name text, stadium_id integer, year text, held timestamp,"
    " price numeric(10,2), seats bigint, tags text[], info json)",
    "CREATE TABLE singer_in_concert (concert_id integer, singer_id integer, since timestamptz, share double precision)",
    'CREATE TABLE "Order Items" (id hugeint, "group" text, "weird ""name" real, "Größe" smallint, key text, raw blob,'
    " place struct(x int), length interval, code utinyint, opens time, mood enum('a', 'b'), ratio decimal(18,12),"
    " u uuid)",
    "CREATE VIEW old AS SELECT name, age FROM singer WHERE age > 60",
)

TAKEN = """
SELECT name FROM (SELECT name FROM singer) s UNION SELECT country FROM (SELECT singer.country FROM singer) s ORDER BY name
SELECT x FROM (SELECT place.x FROM "Order Items") o
SELECT sum FROM (SELECT sum(age) AS sum FROM singer) s ORDER BY sum
SELECT geomean(age), first(name ORDER BY age) FILTER (is_male) FROM singer
SELECT x."*", x.* FROM (SELECT 1 AS "*") x
WITH RECURSIVE a AS (SELECT 1 UNION SELECT 2 EXCEPT SELECT 3 ORDER BY 1 LIMIT 1), b AS (SELECT 1 AS x ORDER BY x LIMIT 1) SELECT 1
WITH RECURSIVE a AS ((SELECT 1 UNION SELECT 2 ORDER BY 1) UNION (SELECT 3 LIMIT 1)) SELECT 1 UNION SELECT 2 ORDER BY 1
WITH RECURSIVE a AS (WITH b AS (SELECT 1 UNION SELECT 2 LIMIT 1) SELECT 1) SELECT 1
SELECT is_male IN (EXISTS (SELECT 1, 2), true), is_male IN (NOT EXISTS (SELECT 1, 2)) FROM singer
SELECT is_male IN (EXISTS (SELECT 1, 2)::bool), is_male IN ((EXISTS (SELECT 1, 2)) = true) FROM singer
SELECT is_male IN (name NOT IN (SELECT 'x')), is_male IN (name < ALL (SELECT 'x')), is_male IN ((SELECT true)) FROM singer
SELECT is_male IN (name IN ('x')), is_male IN (name NOT IN ((SELECT 'x'))) FROM singer
SELECT tags IN (ARRAY(SELECT name FROM singer)) FROM concert
SELECT is_male IN ((singer.name, age) NOT IN (SELECT 'x', 1)), is_male IN ((name, age) IN (('x', 1))) FROM singer
SELECT gcd(extract(day FROM born), 2), make_date(date_part('year', coalesce(born, CURRENT_DATE)), 1, 1) FROM singer
SELECT extract(day FROM (SELECT NULL::date)), coalesce(extract(day FROM born), NULL) FROM singer
SELECT * FROM (SELECT name, age AS n, born FROM singer) a JOIN (SELECT 1 AS n) b USING (n) UNION SELECT 'x', 1, born FROM singer
SELECT age = ANY (ARRAY[1] || ARRAY(SELECT 1)), age = ALL ([sum(singer_id)]) FROM singer GROUP BY age
SELECT count(*) FROM singer
SELECT .5 * age, -.25 FROM singer WHERE age>.5e1 AND age < 1.5
select Name , COUNTRY  from "SINGER" where AGE > 20 order by age desc nulls last
SELECT T1.name, count(*) FROM singer AS T1 JOIN singer_in_concert AS T2 ON T1.singer_id = T2.singer_id GROUP BY T1.name
SELECT name FROM singer WHERE singer_id NOT IN (SELECT singer_id FROM singer_in_concert)
SELECT name FROM singer WHERE born >= '1990-01-01' AND born < CURRENT_DATE - INTERVAL '18 years'
SELECT born + INTERVAL 3 DAY, held - INTERVAL '2' MONTHS FROM singer, concert
SELECT DATE_TRUNC('month', held) AS month, SUM(price * seats) AS total FROM concert GROUP BY month ORDER BY total DESC
SELECT STRFTIME(held, '%Y-%m') AS month, COUNT(*) FROM concert GROUP BY 1 ORDER BY 1 LIMIT 10 OFFSET 5
SELECT EXTRACT(YEAR FROM born) AS year, avg(age)::decimal(10, 2) FROM singer GROUP BY year HAVING count(*) > 1
SELECT country, SUM(CASE WHEN is_male THEN 1 ELSE 0 END) * 100.0 / NULLIF(COUNT(*), 0) AS share FROM singer GROUP BY country
SELECT CAST(COUNT(*) AS DOUBLE) / (SELECT COUNT(*) FROM concert) AS ratio FROM singer
WITH many AS (SELECT country, count(*) AS n FROM singer GROUP BY country) SELECT country FROM many WHERE n > 2
SELECT name, rank() OVER (PARTITION BY country ORDER BY age DESC) FROM singer
SELECT sum(age) FILTER (WHERE is_male), string_agg(DISTINCT name, ', '), array_agg(name ORDER BY age) FROM singer
SELECT name FROM singer WHERE name ILIKE '%a%' OR regexp_matches(country, '^f') AND name IS DISTINCT FROM 'x'
SELECT name FROM singer WHERE name ~ '^(A|B).*[a-z]$' AND country SIMILAR TO 'F.*'
SELECT info->>'$.city' AS city, (info->>'size')::int + 1 FROM concert
SELECT name FROM concert WHERE 'rock' = ANY(tags) AND tags[1] <> 'pop' AND list_contains(tags, 'jazz')
SELECT held AT TIME ZONE 'UTC', held::date - born FROM concert, singer
SELECT COALESCE(name, country, 'none'), GREATEST(age, 3.5) FROM singer WHERE age BETWEEN 20 AND 30 AND NOT is_male
SELECT name FROM singer UNION ALL SELECT name FROM concert ORDER BY name
SELECT date_part('year', held), date_diff('day', born, current_date), count(*) FROM concert, singer GROUP BY 1, 2
SELECT round(avg(price), 2), round(price * 1.1, 2), median(seats), quantile_cont(price, 0.9) FROM concert GROUP BY price
SELECT age // 10 * 10 AS decade, count(DISTINCT name) FROM singer GROUP BY age // 10 * 10
SELECT DISTINCT s.name, s.age AS years FROM main.singer s ORDER BY s.name, years
SELECT m.n, count(*) FROM generate_series(1, 12) AS m(n) LEFT JOIN concert ON EXTRACT(MONTH FROM held) = m.n GROUP BY m.n
SELECT country, is_male, count(*) FROM singer GROUP BY ROLLUP (country, is_male)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY age), arg_max(name, age) FROM singer
SELECT total, many.country FROM (SELECT country, count(*) AS total FROM singer GROUP BY country) AS many
SELECT "group", "weird ""name", "Größe" FROM "Order Items" WHERE length > '2 hours' AND mood = 'a'
SELECT s.name FROM singer s WHERE EXISTS (SELECT 1 FROM singer_in_concert x WHERE x.singer_id = s.singer_id)
SELECT count(*) FROM concert WHERE year = 2014 OR year <> 2015
SELECT name FROM singer WHERE age > ALL (SELECT 2) AND age + 1 >= ANY (SELECT seats FROM concert)
SELECT lag(age, 1, 0) OVER (ORDER BY age), age % 2, ratio * ratio, 2 ** 3 FROM singer, "Order Items"
SELECT s.name, l.n FROM singer s, LATERAL (SELECT count(*) AS n FROM singer_in_concert x WHERE x.singer_id = s.singer_id) l
SELECT s.name, l.name FROM singer s CROSS JOIN LATERAL (SELECT c.name FROM concert c WHERE c.stadium_id = s.age) AS l
SELECT v.a, v.b FROM (VALUES (1, 'x'), (2, 'y')) AS v(a, b)
VALUES (1, 'x'), (2, NULL) ORDER BY 1
WITH v(a, b) AS (VALUES (1, 'x'), (2, 'y')) SELECT a, b FROM v
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT n FROM t
WITH RECURSIVE t AS (SELECT singer_id, age AS a FROM singer UNION SELECT s.singer_id, a FROM t JOIN singer s USING (singer_id)) SELECT * FROM t
(SELECT name FROM singer ORDER BY age DESC LIMIT 3) UNION ALL (SELECT name FROM concert LIMIT 2) ORDER BY name
SELECT name FROM singer UNION (SELECT name FROM concert INTERSECT SELECT year FROM concert)
SELECT u.n FROM ((SELECT name AS n FROM singer) EXCEPT (SELECT name FROM concert)) u
SELECT t.a FROM (SELECT name, age FROM singer) AS t(a, b) WHERE b > 3
SELECT name, rank() OVER w, sum(age) OVER w FROM singer WINDOW w AS (PARTITION BY country ORDER BY age)
SELECT sum(age) OVER (ORDER BY born RANGE BETWEEN INTERVAL '7 days' PRECEDING AND CURRENT ROW) FROM singer
SELECT avg(age) OVER (ORDER BY age GROUPS 2 PRECEDING EXCLUDE CURRENT ROW) FROM singer
SELECT country, is_male, count(*) FROM singer GROUP BY GROUPING SETS ((country), (is_male), ())
SELECT country, is_male, count(*) FROM singer GROUP BY country, ROLLUP (is_male)
SELECT name FROM singer WHERE (name, age) = ('x', 3) OR (age, singer_id) > (30, 4)
SELECT name FROM singer WHERE (name, age) IN (('x', 3), ('y', 4))
SELECT name FROM singer WHERE (country, age) NOT IN (SELECT country, max(age) FROM singer GROUP BY country)
SELECT upper(name), count(*) FROM singer GROUP BY upper(name) ORDER BY upper(name) DESC, count(*)
SELECT CASE WHEN age > 30 THEN 1 ELSE 2 END, count(*) FROM singer GROUP BY 1 ORDER BY CASE WHEN age > 30 THEN 1 ELSE 2 END
SELECT age::text, count(*) FROM singer GROUP BY age::text ORDER BY age::text
SELECT DISTINCT upper(name) FROM singer ORDER BY upper(name)
SELECT name FROM singer WHERE name LIKE '50!%' ESCAPE '!'
SELECT count(*) FROM singer HAVING count(*) > 1
SELECT country, is_male, avg(age) FROM singer GROUP BY ALL ORDER BY ALL
SELECT name, row_number() OVER (PARTITION BY country ORDER BY age) AS rn FROM singer QUALIFY rn = 1
SELECT name FROM singer QUALIFY row_number() OVER (PARTITION BY country ORDER BY age) = 1 AND name <> 'x'
SELECT age + 1 AS next, count(*) AS n FROM singer WHERE next > 3 GROUP BY next HAVING n > 1
SELECT [1, 2, 3], ['a', name], TRY_CAST(name AS INTEGER) FROM singer
""".strip().splitlines()

REFUSED = """
SELECT -factorial(-1)
SELECT -week(INTERVAL '1 day')
SELECT -hamming('a', '')
VALUES (minute('7 years' + nullif('6 hours'::text::date, NULL)::datetime), (SELECT 0))
SELECT * FROM range('4', 5 + (SELECT 0))
VALUES (epoch(nullif(trunc(0)::text::date, NULL)), (SELECT 0))
VALUES (22::tinyint), ('5187')
SELECT date_part('wee\u212aday', DATE '2020-01-01')
SELECT sum FROM (SELECT sum(age) FROM singer) s
SELECT name FROM (SELECT name::varchar FROM singer) s
SELECT date FROM (SELECT CAST(held AS date) FROM concert) c
WITH c AS (SELECT max(age) FROM singer) SELECT max FROM c
SELECT count(*) FROM singer ORDER BY count
SELECT count(*) FROM singer HAVING count = 1
SELECT geomean(DISTINCT age) FROM singer
SELECT geomean(age) FILTER (is_male) FROM singer
SELECT geometric_mean(age) OVER () FROM singer
SELECT first(age) FILTER (is_male) OVER () FROM singer
SELECT rowid FROM (SELECT 1 AS rowid) x, singer
SELECT x."*" FROM singer x
WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT 2 LIMIT 3) SELECT 1
WITH RECURSIVE a(x) AS (WITH b AS (SELECT 1) SELECT 1 UNION SELECT 2 OFFSET 3) SELECT 1
WITH RECURSIVE a AS (SELECT 1), b AS (SELECT 1 EXCEPT SELECT 2 UNION VALUES (3) FETCH FIRST ROW ONLY) SELECT 1
WITH RECURSIVE a AS (SELECT 1 AS x UNION SELECT 2 ORDER BY x) SELECT 1
SELECT is_male IN (EXISTS (SELECT 1, 2)) FROM singer
SELECT is_male NOT IN ((EXISTS (SELECT 1, 2))) FROM singer
SELECT is_male IN (name IN (SELECT name FROM concert)) FROM singer
SELECT is_male IN (name IN ((SELECT 'x'))) FROM singer
SELECT is_male IN (tags IN (ARRAY(SELECT country FROM singer))) FROM singer, concert
SELECT is_male IN ((name = ANY (['x']))) FROM singer
SELECT is_male IN (name < SOME (SELECT 'x')) FROM singer
SELECT is_male NOT IN ((name, age) IN (SELECT 'x', 1)) FROM singer
SELECT gcd(extract(day FROM NULL::date), 0)
SELECT gcd(date_part('day', born + NULL::interval), 2) FROM singer
SELECT true >= extract(minute FROM coalesce(NULL::time, NULL)) FROM singer
SELECT * FROM (SELECT 'x' AS a, 1 AS b) q RIGHT JOIN (SELECT 1 AS b) r USING (b) GROUP BY q.b, a
SELECT 1 = ANY (ARRAY(SELECT 1))
SELECT 1 = ANY ((ARRAY(VALUES (1))))
SELECT 1 = ANY ((SELECT ARRAY[1]))
SELECT age, age = ALL ([sum((SELECT singer_id))]) FROM singer GROUP BY age
SELECT age IN (1, 2) > ALL (SELECT true) FROM singer
SELECT name LIKE 'a' > ALL (SELECT true) FROM singer
SELECT age > ALL (SELECT 2) + 1 FROM singer
SELECT upper(name < ANY (['a']) || 'x') FROM singer
SELECT nmae FROM singer
SELECT name FROM singer WHERE born > name
SELECT name FROM singer WHERE name > age
SELECT name + 1 FROM singer
SELECT age + '1' FROM singer
SELECT sum(name) FROM singer
SELECT name, count(*) FROM singer
SELECT singer_id, name FROM singer GROUP BY singer_id
SELECT name FROM singer GROUP BY country
SELECT name FROM singer WHERE count(*) > 1
SELECT CASE WHEN is_male THEN age ELSE name END FROM singer
SELECT upper(age) FROM singer
SELECT date_trunc('month', name) FROM singer
SELECT date_trunc('fortnight', born) FROM singer
SELECT strftime(born, '%Q') FROM singer
SELECT name FROM singer WHERE name ~ '('
SELECT name FROM singer WHERE name SIMILAR TO '('
SELECT quantile_cont(age, 1.5) FROM singer
SELECT string_agg(name, country) FROM singer
SELECT array_agg(name ORDER BY 'a') FROM singer
SELECT ratio * ratio * ratio * ratio FROM "Order Items"
SELECT name FROM singer WHERE name = "France"
SELECT 1 < 2 < 3
SELECT name IS NULL IN (TRUE) FROM singer
SELECT 'a' LIKE 'b' LIKE 'c'
SELECT date_trunc('month', held), count(*) FROM concert GROUP BY date_trunc('year', held)
SELECT name FROM private.singer
SELECT name FROM singer, concert
SELECT born IN (SELECT name FROM singer) FROM singer
SELECT position('a', name) FROM singer
VALUES (1, 2), (3)
VALUES (1), ('x')
WITH t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT n FROM t
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT name FROM t) SELECT n FROM t
SELECT v.c FROM (VALUES (1)) AS v(a)
SELECT v.a FROM (VALUES (1)) AS v(a, b)
(SELECT name FROM singer ORDER BY age) UNION SELECT name, age FROM singer
(VALUES (1)) UNION SELECT 1
SELECT rank() OVER w FROM singer
SELECT rank() OVER w FROM singer WINDOW v AS (ORDER BY age)
SELECT sum(age) OVER (ORDER BY name RANGE BETWEEN INTERVAL '7 days' PRECEDING AND CURRENT ROW) FROM singer
SELECT country, count(*) FROM singer GROUP BY GROUPING SETS ((is_male), ())
SELECT name FROM singer WHERE (name, age) = ('x', 3, 4)
SELECT name FROM singer WHERE (name, age) IN (SELECT name FROM singer)
SELECT upper(name), count(*) FROM singer GROUP BY upper(name) ORDER BY lower(name)
SELECT upper(name), count(*) FROM singer GROUP BY upper(name) ORDER BY upper(name) || name
SELECT name, count(*) FROM singer HAVING count(*) > 1
SELECT name FROM singer QUALIFY age = 1
SELECT count(*) AS n FROM singer WHERE n > 1
SELECT random() AS r FROM singer WHERE r > 0.5
SELECT country, rank() OVER () FROM singer GROUP BY ALL QUALIFY rank() OVER () = 1
""".strip().splitlines()

STRICTER = """
SELECT is_male IN (EXISTS (SELECT true)) FROM singer
SELECT is_male IN (1 = ANY ([1])) FROM singer
SELECT name FROM singer WHERE age = 'old'
SELECT name FROM singer WHERE age
SELECT name FROM singer WHERE born > '2020-02-30'
SELECT NOT name FROM singer
SELECT name FROM (SELECT (name) FROM singer) s
""".strip().splitlines()
"""What the engine prepares, but what would fail when it runs, what it reads otherwise, or what nobody writes."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("duckdb") / "music.duckdb"
    with duckdb.connect(str(found)) as connection:
        for statement in DATABASE:
            connection.execute(statement)
    return found


@pytest.fixture(scope="module")
def schema(file: Path) -> DatabaseSchema:
    return reflect(str(file))


@pytest.fixture(scope="module")
def engine(file: Path, schema: DatabaseSchema) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(file), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def language(schema: DatabaseSchema) -> AttributedLanguage:
    return query_language(schema)


@pytest.fixture(scope="module")
def strict(schema: DatabaseSchema) -> AttributedLanguage:
    return query_language(schema, forward=False)


def prepare(engine: Any, text: str) -> None:
    """Have a query planned; a constant that cannot be computed then is no fault of its types."""
    try:
        engine.execute(f"EXPLAIN {text}")
    except (duckdb.ConversionException, duckdb.OutOfRangeException):
        pass
    except duckdb.InvalidInputException as error:
        if not any(
            text in str(error) for text in ("Division by zero", "value is out of range", "Could not parse string")
        ):
            raise
    except duckdb.NotImplementedException as error:
        if "Unknown TimeZone" not in str(error):
            raise


@pytest.mark.parametrize("text", TAKEN)
def test_what_the_engine_prepares_is_taken(text: str, language: AttributedLanguage, engine: Any) -> None:
    engine.execute(f"EXPLAIN {text}")
    assert refusal(language, text) is None


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_engine_refuses_is_refused(text: str, language: AttributedLanguage, engine: Any) -> None:
    with pytest.raises(duckdb.Error):
        engine.execute(f"EXPLAIN {text}")
    assert refusal(language, text) is not None


@pytest.mark.parametrize("text", ["SELECT s.* EXCLUDE age RENAME age", "SELECT * EXCLUDE (age, age"])
def test_a_column_that_a_star_leaves_out_is_not_renamed(text: str, language: AttributedLanguage) -> None:
    at = random_queries.read(language, language.start, text)
    assert at is not None
    # So the name goes on: there may be a column of a longer one.
    assert not language.may_be_over(at) and language.end(at) is not None


def test_letters_of_intervals_are_ascii(language: AttributedLanguage) -> None:
    # Python's fold of a long s is an s; whether a query fails by it shows only when it is run, or constants are computed.
    assert refusal(language, "SELECT '3 mins'::interval") is None
    assert refusal(language, "SELECT INTERVAL '3 min\u017f'") is not None


def test_no_quote_comes_where_no_string_may_stand(language: AttributedLanguage) -> None:
    assert refusal(language, "SELECT * FROM unnest('") == len("SELECT * FROM unnest(")


@pytest.mark.parametrize("text", STRICTER)
def test_what_is_refused_though_the_engine_prepares_it(text: str, language: AttributedLanguage, engine: Any) -> None:
    engine.execute(f"EXPLAIN {text}")
    assert refusal(language, text) is not None


@pytest.mark.timeout(3600 if ALL else 300)
@pytest.mark.parametrize("forward", [True, False])
def test_random_texts_are_prepared(
    forward: bool, language: AttributedLanguage, strict: AttributedLanguage, engine: Any, monkeypatch: Any
) -> None:
    literals = (
        "''", "'a'", "'it''s'", "'2020-01-01'", "'12'", "'2 days'", "'{}'", "'10:00'", "'true'", "'month'", "'2.5'",
        "'%Y'",
    )  # fmt: skip
    monkeypatch.setattr(random_queries, "STRINGS", literals)
    chosen = language if forward else strict
    for seed in range(some(5000, 800)):
        rng = random.Random(seed)
        text, at = random_queries.begun(rng, chosen, rng.choice([3, 8, 15, 30, 60]), rare=seed % 2 == 1)
        rest = chosen.rest(at)
        assert len(rest) <= chosen.price(at), text
        whole = text + rest.decode()
        assert refusal(chosen, whole) is None, whole
        prepare(engine, whole)


def test_words_are_the_engines(engine: Any) -> None:
    rows = engine.execute("SELECT keyword_name, keyword_category FROM duckdb_keywords()").fetchall()
    reserved = {name for name, category in rows if category in ("reserved", "type_function")}
    assert reserved <= LEXIS.reserved
    for word in sorted({name for name, _ in rows} - reserved):
        engine.execute(f'EXPLAIN SELECT {word} + 1, x.{word} FROM (SELECT 1 AS "{word}") AS x WHERE {word} = 1')
        if word not in KEYWORDS:
            engine.execute(f"EXPLAIN SELECT age {word}, {word}.name FROM singer {word} JOIN concert ON true")


def test_the_types_of_columns_are_the_engines(engine: Any) -> None:
    rows = engine.execute("SELECT column_name, data_type FROM duckdb_columns() WHERE NOT internal").fetchall()
    found = {name: declared(kind) for name, kind in rows}
    assert found["price"] == "numeric" and found["ratio"] == "numeric2" and found["tags"] == "_text"
    assert found["code"] == "int2" and found["mood"] == "text" and found["place"] == "other"
