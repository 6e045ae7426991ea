"""PostgreSQL's queries: each text is prepared by a server, which knows best."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.states import At
from guided.grammar.sql import reflect
from guided.grammar.sql.query.language import query_language
from tests.amounts import ALL, some
from tests.databases import Databases
from tests.unit.grammar.sql.query import random_queries

DATABASE = (
    "CREATE TABLE singer (singer_id integer PRIMARY KEY, name text, country varchar(30), age integer, is_male boolean,"
    " born date)",
    "CREATE TABLE concert (concert_id integer PRIMARY KEY, name text, stadium_id integer, year text, at timestamp,"
    " price numeric(10,2), seats bigint, tags text[], info jsonb)",
    "CREATE TABLE singer_in_concert (concert_id integer, singer_id integer, since timestamptz, share double precision)",
    'CREATE TABLE "Order Items" (id integer, "group" text, "weird ""name" real, "Größe" smallint, key text, raw json,'
    " place point, length interval, code char(3))",
    "CREATE VIEW old AS SELECT name, age FROM singer WHERE age > 60",
)

TAKEN = """
SELECT 1 FROM singer WHERE NULLIF(age, singer_id)::bool AND NULLIF(age, NULL)::bool
SELECT value ^ 2 FROM json_each(NULL) AS e(k, v), (SELECT 2 AS value) x
SELECT x."*", x.* FROM (SELECT 1 AS "*") x
(SELECT * FROM "Order Items" LIMIT 1) UNION ALL (SELECT * FROM "Order Items")
SELECT * FROM (SELECT name, age AS n, born FROM singer) a JOIN (SELECT 1 AS n) b USING (n) UNION SELECT 1, 'x', born FROM singer
SELECT * FROM (SELECT 'x' AS a, 1 AS b, true AS c) q JOIN (SELECT 1 AS b, true AS c) r USING (c, b) UNION SELECT true, 1, 'x'
SELECT * FROM (SELECT 'x' AS a, 1 AS b) q RIGHT JOIN (SELECT 1 AS b) r USING (b) GROUP BY b, a
SELECT 1 = ANY (ARRAY(SELECT 1))
SELECT count(*) FROM singer
SELECT count(raw), max(raw ->> 'a') FILTER (WHERE raw IS NOT NULL) FROM "Order Items"
SELECT .5 * age, -.25 FROM singer WHERE age>.5e1 AND age < 1.5
select Name , COUNTRY  from Singer where AGE > 20 order by age desc nulls last
SELECT T1.name, count(*) FROM singer AS T1 JOIN singer_in_concert AS T2 ON T1.singer_id = T2.singer_id GROUP BY T1.name
SELECT s.name, s.age, count(*) FROM singer s JOIN singer_in_concert USING (singer_id) GROUP BY s.singer_id
SELECT name FROM singer WHERE singer_id NOT IN (SELECT singer_id FROM singer_in_concert)
SELECT name FROM singer WHERE born >= '1990-01-01' AND born < CURRENT_DATE - INTERVAL '18 years'
SELECT DATE_TRUNC('month', at) AS month, SUM(price * seats) AS total FROM concert GROUP BY month ORDER BY total DESC
SELECT TO_CHAR(at, 'YYYY-MM') AS month, COUNT(*) FROM concert GROUP BY 1 ORDER BY 1 LIMIT 10 OFFSET 5
SELECT EXTRACT(YEAR FROM born) AS year, avg(age)::numeric(10, 2) FROM singer GROUP BY year HAVING count(*) > 1
SELECT country, SUM(CASE WHEN is_male THEN 1 ELSE 0 END) * 100.0 / NULLIF(COUNT(*), 0) AS share FROM singer GROUP BY country
SELECT CAST(COUNT(*) AS FLOAT) / (SELECT COUNT(*) FROM concert) AS ratio FROM singer
WITH many AS (SELECT country, count(*) AS n FROM singer GROUP BY country) SELECT country FROM many WHERE n > 2
SELECT name, rank() OVER (PARTITION BY country ORDER BY age DESC) FROM singer
SELECT sum(age) FILTER (WHERE is_male), string_agg(DISTINCT name, ', '), array_agg(name ORDER BY age) FROM singer
SELECT name FROM singer WHERE name ILIKE '%a%' OR country ~* '^f' AND name IS DISTINCT FROM 'x'
SELECT info->>'city' AS city, (info->'size')::text::int + 1 FROM concert WHERE info @> '{"open": "yes"}'
SELECT name FROM concert WHERE 'rock' = ANY(tags) AND tags[1] <> 'pop'
SELECT at AT TIME ZONE 'UTC', at::date - born FROM concert, singer
SELECT COALESCE(name, country, 'none'), GREATEST(age, 3.5) FROM singer WHERE age BETWEEN 20 AND 30 AND NOT is_male
SELECT name FROM singer UNION ALL SELECT name FROM concert ORDER BY name
SELECT date_trunc('month', at), count(*) FROM concert GROUP BY date_trunc('month', concert.at)
SELECT to_char(at, 'YYYY-MM') AS m, sum(price) FROM concert GROUP BY to_char(at, 'YYYY-MM') ORDER BY m
SELECT CASE WHEN age > 30 THEN 1 ELSE 2 END, count(*) FROM singer GROUP BY CASE WHEN age > 30 THEN 1 ELSE 2 END
SELECT at::date, count(*) FROM concert GROUP BY at::date
SELECT DISTINCT s.name, s.age AS years FROM public.singer s ORDER BY s.name, years
SELECT DISTINCT ON (s.country) s.country, s.name FROM singer s ORDER BY s.country, s.age DESC
SELECT DISTINCT ON (name) singer.name, upper(name) AS n, country AS age FROM singer ORDER BY name
(SELECT length, place FROM "Order Items") UNION ALL SELECT DISTINCT ON (age) NULL, NULL AS n FROM singer
SELECT m.n, count(*) FROM generate_series(1, 12) AS m(n) LEFT JOIN concert ON EXTRACT(MONTH FROM at) = m.n GROUP BY m.n
SELECT name, tag FROM concert, unnest(tags) AS tag
SELECT country, is_male, count(*) FROM singer GROUP BY ROLLUP (country, is_male)
SELECT s.name, c.name FROM singer s FULL OUTER JOIN concert c ON s.singer_id = c.stadium_id
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM singer
SELECT total, many.country FROM (SELECT country, count(*) AS total FROM singer GROUP BY country) AS many
SELECT avg(total) FROM (SELECT country, count(*) AS total FROM singer GROUP BY country) AS many
SELECT "group", "weird ""name", "Größe" FROM "Order Items" WHERE length > '2 hours'
SELECT s.name FROM singer s WHERE EXISTS (SELECT 1 FROM singer_in_concert x WHERE x.singer_id = s.singer_id)
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
SELECT s.name, l.name FROM singer s LEFT JOIN LATERAL (SELECT c.name FROM concert c ORDER BY c.at = s.born LIMIT 1) l ON TRUE
SELECT name, tag FROM concert CROSS JOIN LATERAL unnest(tags) AS tag
SELECT name FROM concert LEFT JOIN LATERAL unnest(tags) AS tag ON TRUE
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
SELECT string_agg(name, chr(10)), chr(128512) || chr(9) FROM singer
""".strip().splitlines()

UNPLANNED = """
SELECT chr(0) FROM singer
SELECT chr(55296) FROM singer
SELECT chr(1114112) FROM singer
SELECT chr(1 - 1) FROM singer
""".strip().splitlines()

REFUSED = """
SELECT info @? '$[08]' FROM concert
SELECT DISTINCT ON (name) upper(name) AS name FROM singer ORDER BY singer.name
SELECT DISTINCT ON (name) name, country AS name FROM singer
(SELECT length, place FROM "Order Items") UNION ALL SELECT DISTINCT ON (age) NULL, NULL AS age FROM singer
SELECT count(raw), raw FROM "Order Items" GROUP BY raw
SELECT 1 FROM singer WHERE NULLIF(age, 2.5)::bool
SELECT value ^ 2 FROM json_each(NULL)
SELECT value - 1 FROM LATERAL json_each('{}') AS e
SELECT x."*" FROM singer x
SELECT * FROM (SELECT name, age AS n, born FROM singer) a JOIN (SELECT 1 AS n) b USING (n) UNION SELECT 'x', 1, born FROM singer
SELECT * FROM (SELECT 'x' AS a, 1 AS b, true AS c) q JOIN (SELECT 1 AS b, true AS c) r USING (c, b) UNION SELECT 1, true, 'x'
SELECT * FROM (SELECT 'x' AS a, 1 AS b) q RIGHT JOIN (SELECT 1 AS b) r USING (b) GROUP BY q.b, a
SELECT 1 = ANY ((SELECT ARRAY[1]))
SELECT nmae FROM singer
SELECT name FROM singer WHERE age = 'old'
SELECT name FROM singer WHERE age = name
SELECT name FROM singer WHERE age
SELECT name + 1 FROM singer
SELECT sum(name) FROM singer
SELECT name, count(*) FROM singer
SELECT name FROM singer GROUP BY country
SELECT name FROM singer WHERE born > '2020-02-30'
SELECT Name FROM "Singer"
SELECT name FROM singer WHERE count(*) > 1
SELECT name FROM singer UNION SELECT age FROM singer
SELECT DISTINCT NULL UNION SELECT age FROM singer
SELECT age FROM singer UNION ALL SELECT DISTINCT NULL
SELECT DISTINCT 1, 'true' UNION SELECT 1, true
SELECT CASE WHEN is_male THEN 1 ELSE 'no' END FROM singer
SELECT upper(age) FROM singer
SELECT date_trunc('month', name) FROM singer
SELECT DISTINCT raw FROM "Order Items"
SELECT DISTINCT name FROM singer ORDER BY age
SELECT name FROM singer WHERE name = "France"
SELECT a.name FROM singer a, concert b JOIN concert c ON a.name = c.name
SELECT 1 < 2 < 3
SELECT date_trunc('month', at), count(*) FROM concert GROUP BY date_trunc('year', at)
SELECT EXTRACT(YEAR FROM at), count(*) FROM concert GROUP BY EXTRACT(MONTH FROM at)
SELECT DISTINCT ON (s.country) s.country, s.name FROM singer s ORDER BY s.age, s.country
SELECT name FROM private.singer
SELECT name, singer_id FROM singer GROUP BY CUBE (singer_id)
SELECT s.name FROM singer s FULL JOIN concert c ON s.singer_id < c.stadium_id
SELECT substr(name, 3000000000) FROM singer
SELECT rank() OVER w FROM singer
SELECT rank() OVER w FROM singer WINDOW v AS (ORDER BY age)
SELECT sum(age) OVER (ORDER BY name RANGE BETWEEN INTERVAL '7 days' PRECEDING AND CURRENT ROW) FROM singer
SELECT country, count(*) FROM singer GROUP BY GROUPING SETS ((is_male), ())
SELECT name FROM singer WHERE (name, age) = ('x', 3, 4)
SELECT name FROM singer WHERE (name, age) IN (SELECT name FROM singer)
SELECT upper(name), count(*) FROM singer GROUP BY upper(name) ORDER BY lower(name)
SELECT upper(name), count(*) FROM singer GROUP BY upper(name) ORDER BY upper(name) || name
SELECT DISTINCT upper(name) FROM singer ORDER BY lower(name)
SELECT name, count(*) FROM singer HAVING count(*) > 1
VALUES (1, 2), (3)
VALUES (1), ('x')
WITH t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT n FROM t
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT name FROM t) SELECT n FROM t
SELECT v.c FROM (VALUES (1)) AS v(a)
SELECT v.a FROM (VALUES (1)) AS v(a, b)
(SELECT name FROM singer ORDER BY age) UNION SELECT name, age FROM singer
SELECT l.n FROM singer s, (SELECT s.age AS n) l
SELECT s.name FROM singer s RIGHT JOIN LATERAL (SELECT s.age) l ON TRUE
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1.5 FROM t) SELECT n FROM t
WITH RECURSIVE t AS (SELECT price AS n FROM concert UNION ALL SELECT n + 1.5 FROM t) SELECT n FROM t
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT count(*)::int FROM t) SELECT n FROM t
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT 2 FROM singer LEFT JOIN t ON TRUE) SELECT n FROM t
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n FROM t LIMIT 3) SELECT n FROM t
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT a.n FROM t a, t b) SELECT n FROM t
""".strip().splitlines()


@pytest.fixture(scope="module")
def url(databases: Databases) -> str:
    return databases("postgresql").create(*DATABASE)


@pytest.fixture(scope="module")
def cursor(url: str) -> Iterator[Any]:
    import sqlalchemy

    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection.connection.driver_connection.cursor()
    engine.dispose()


@pytest.fixture(scope="module")
def language(url: str) -> AttributedLanguage:
    return query_language(reflect(url))


@pytest.fixture(scope="module")
def strict(url: str) -> AttributedLanguage:
    return query_language(reflect(url), forward=False)


def prepare(cursor: Any, text: str) -> None:
    """Have a query analysed, with its literals, and planned; a value that cannot be computed is no fault of it."""
    import psycopg

    cursor.execute(f"PREPARE asked AS {text.removesuffix(';')}")
    cursor.execute("DEALLOCATE asked")
    with contextlib.suppress(psycopg.errors.DataError, psycopg.errors.ProgramLimitExceeded):
        cursor.execute(f"EXPLAIN {text}")


def refusal(language: AttributedLanguage, text: str) -> int | None:
    """The byte at which a text leaves the language, its length where it is not whole, None where it is in it."""
    at: At | None = language.start
    data = text.encode()
    for position, byte in enumerate(data):
        assert at is not None
        at = language.step(at, byte)
        if at is None:
            return position
    assert at is not None
    return None if language.may_end(at) else len(data)


@pytest.mark.parametrize("text", TAKEN)
def test_what_the_server_prepares_is_taken(text: str, language: AttributedLanguage, cursor: Any) -> None:
    prepare(cursor, text)
    assert refusal(language, text) is None


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_server_refuses_is_refused(text: str, language: AttributedLanguage, cursor: Any) -> None:
    import psycopg

    with pytest.raises(psycopg.Error):
        prepare(cursor, text)
    assert refusal(language, text) is not None


@pytest.mark.parametrize("text", UNPLANNED)
def test_what_the_server_does_not_plan_is_refused(text: str, language: AttributedLanguage, cursor: Any) -> None:
    import psycopg

    prepare(cursor, text)
    with pytest.raises(psycopg.Error), cursor.connection.transaction():
        cursor.execute(f"EXPLAIN {text}")
    assert refusal(language, text) is not None


@pytest.mark.timeout(3600 if ALL else 300)
@pytest.mark.parametrize("forward", [True, False])
def test_random_texts_are_prepared(
    forward: bool, language: AttributedLanguage, strict: AttributedLanguage, cursor: Any, monkeypatch: Any
) -> None:
    literals = (
        "''",
        "'a'",
        "'it''s'",
        "'2020-01-01'",
        "'12'",
        "'2 days'",
        "'{}'",
        "'10:00'",
        "'true'",
        "'month'",
        "'2.5'",
    )
    monkeypatch.setattr(random_queries, "STRINGS", literals)
    chosen = language if forward else strict
    for seed in range(some(5000, 800)):
        rng = random.Random(seed)
        text, at = random_queries.begun(rng, chosen, rng.choice([3, 8, 15, 30, 60]))
        rest = chosen.rest(at)
        assert len(rest) <= chosen.price(at), text
        whole = text + rest.decode()
        assert refusal(chosen, whole) is None, whole
        prepare(cursor, whole)
