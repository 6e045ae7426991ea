"""SQLite's own clauses: what of https://sqlite.org/lang_select.html is in the language, and what only looks so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.states import At
from guided.grammar.sql import Column, DatabaseSchema, Table, reflect
from guided.grammar.sql.query.dialects.sqlite import SQLITE
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.query.scope import CallKind
from tests.amounts import each
from tests.unit.grammar.sql.query.random_queries import read
from tests.unit.grammar.sql.query.test_queries import DATABASE, refusal

TAKEN = """
SELECT 1 AS a WHERE a = 1 AND EXISTS (SELECT 1 WHERE 1)
SELECT 1 AS a GROUP BY 1 HAVING a > 1 ORDER BY 1
SELECT .5 * age, -.25 FROM singer WHERE age>.5e1 AND age < 1.5
WITH singer AS (SELECT * FROM concert) SELECT stadium_id FROM singer
SELECT * FROM singer UNION SELECT * FROM singer WHERE age > 4
SELECT count(*) FROM (SELECT name FROM singer) JOIN (SELECT name, 1 FROM concert) USING (name)
SELECT * FROM singer a JOIN concert b ON 1 UNION ALL SELECT * FROM singer a LEFT JOIN concert b ON a.name = b.name
SELECT name FROM singer WHERE age IN (SELECT * FROM (SELECT age FROM old))
SELECT replace(name, 'a', 'b') FROM singer LIMIT -1 OFFSET 5
SELECT name FROM singer LIMIT (SELECT max(age) FROM singer), 2 * 3
SELECT name -> '$.a' ->> 'b' FROM singer
SELECT CAST(name AS DOUBLE PRECISION), CAST(age AS VARYING CHARACTER(20)) FROM singer
SELECT 1 UNION SELECT year FROM concert ORDER BY year COLLATE nocase, 1 DESC NULLS LAST
SELECT rank() OVER w FROM singer WINDOW w AS (ORDER BY age), v AS (w ROWS 1 PRECEDING)
SELECT rank() OVER (w ORDER BY age) FROM singer WINDOW w AS (PARTITION BY age)
SELECT name FROM singer WINDOW w AS () ORDER BY rank() OVER w
SELECT sum(age) OVER (ORDER BY age NULLS LAST RANGE BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM singer
SELECT sum(age) OVER (ORDER BY age GROUPS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING) FROM singer
SELECT sum(age) FILTER (WHERE age > 3) OVER w FROM singer GROUP BY age WINDOW w AS (ORDER BY sum(age)) ORDER BY 1
SELECT lag(age) OVER w, lead(age, 2, 0) OVER (w RANGE CURRENT ROW) FROM singer WINDOW w AS (ORDER BY age)
WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 10) SELECT x FROM c
WITH c AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM c WHERE x < 10) SELECT x FROM c
WITH c AS (SELECT 1 AS x INTERSECT SELECT 2 UNION SELECT * FROM c WHERE x < 10) SELECT x FROM c
WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c LEFT JOIN singer ON age = x ORDER BY 1 LIMIT 3) SELECT x FROM c
WITH a AS NOT MATERIALIZED (SELECT 1), b AS MATERIALIZED (SELECT 1) SELECT * FROM a, b
SELECT name FROM singer WHERE age > (WITH a AS (SELECT max(age) AS m FROM old) SELECT m FROM a)
VALUES (1, 'a'), (2, NULL) UNION SELECT age, name FROM singer ORDER BY 1
SELECT column1, v.column2 FROM (VALUES (1, 2)) AS v
SELECT (VALUES (age), (name)) FROM singer WHERE age IN (VALUES (1), (2))
SELECT a.value, a.key FROM singer, json_each(name) AS a LEFT JOIN json_tree(a.value, '$.x') ON json_tree.type = 'text'
SELECT name FROM singer WHERE (name, age) IN (SELECT name, max(age) FROM singer GROUP BY name)
SELECT a.name FROM singer a JOIN old b ON (a.name, a.age) = (b.name, b.age) WHERE (a.age, 1) NOT IN ((1, 2), (3, 4))
SELECT name FROM singer WHERE (name, age) >= (SELECT name, age FROM old) OR (age, name) IS NOT (1, 'a')
SELECT name FROM singer ORDER BY CASE WHEN age > 1 AND age < 3 THEN 1 END
SELECT rowid, s.oid FROM singer AS s WHERE rowid > 3 ORDER BY s._rowid_
SELECT name FROM singer WHERE rowid IN (SELECT c.rowid FROM concert c WHERE singer.rowid = c._rowid_)
SELECT json, root FROM json_each('[]')
SELECT s.name, concert.name FROM main.singer AS s JOIN Main.concert USING (name)
WITH singer AS (SELECT 1 AS x) SELECT s.name FROM main.singer AS s
SELECT * FROM singer RIGHT JOIN old USING (name) LEFT JOIN concert USING (name)
SELECT * FROM singer a RIGHT JOIN singer b ON a.name = b.name, concert
SELECT b.*, c.* FROM singer a NATURAL RIGHT JOIN singer b, concert c
SELECT b.* FROM singer a JOIN old b USING (name) RIGHT JOIN concert c ON c.name = b.name
SELECT 1 FROM singer a FULL JOIN singer b USING (name), concert
SELECT q.column1 FROM (SELECT 1 AS "true") q
WITH q("FALSE") AS (SELECT 1) SELECT q.column1 FROM q
SELECT age AS "true", count(*) FROM singer GROUP BY "true" UNION SELECT 1, 2 ORDER BY "true"
SELECT "true" FROM singer, (SELECT 1 AS "true")
SELECT [Name], s.[age] AS [the age, in "years"] FROM [singer] AS s WHERE s.[age] > 3 ORDER BY [the age, in "years"]
SELECT`name`FROM`singer`AS`s`WHERE`s`.`age`IS NULL OR`s`.`name`='a'ORDER BY`age`DESC
SELECT[name]FROM[main].[singer]AS[a[0]JOIN[concert][c]USING([name])WHERE[a[0].[age]OR[c].[year]=2
WITH [c d]([x], [[]) AS (SELECT 1, 2) SELECT [x][y], 1[z], 'a'[a b] FROM [C D] WHERE [[] IN (1)
SELECT sum(age) OVER W, name COLLATE [NoCase] FROM singer WINDOW w AS ()
SELECT [rowid], singer.[OID] FROM [singer]
SELECT x FROM (SELECT "x" FROM singer UNION SELECT 2)
SELECT name, x.* FROM singer JOIN (SELECT "name") x USING (name)
WITH c AS (SELECT rowid AS r, oid + 1 FROM singer UNION SELECT rowid, 2 FROM concert) SELECT r FROM c
SELECT name FROM singer WHERE EXISTS (SELECT rowid FROM concert) AND rowid IN (SELECT rowid FROM concert)
SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert a JOIN concert b ON country = 'x', singer c)
SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert a RIGHT JOIN concert b ON country = 'x' JOIN concert c)
SELECT 1 FROM concert a JOIN concert b ON "country" = 'x' LEFT JOIN singer c
SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert a JOIN concert b ON country = 'x' JOIN singer c JOIN singer d USING (country))
SELECT "x", "x" FROM singer ORDER BY "x"
SELECT 0x1F, -0XfFffFFFffFff, age & 0xE+1, 0xE-0x2e FROM singer WHERE age IN (0x0, 0x00a) ORDER BY age + 0x9
""".strip().splitlines()

REFUSED = """
SELECT * FROM singer a NATURAL RIGHT JOIN singer b, concert c
SELECT a.* FROM singer a FULL JOIN singer b USING (name), concert
SELECT * FROM singer a JOIN old b USING (name) RIGHT JOIN concert c ON c.name = b.name
SELECT * FROM singer a RIGHT JOIN (SELECT 1) ON 1 JOIN old b USING (name), (SELECT 'x' AS name)
SELECT * FROM singer a JOIN old b USING (name), concert c RIGHT JOIN (SELECT 1) ON 1
WITH singer AS (SELECT * FROM singer) SELECT 1 FROM singer
WITH a AS (SELECT name FROM singer), singer AS (SELECT 1 AS q) SELECT 1 FROM a
SELECT * FROM singer UNION SELECT * FROM concert
SELECT * FROM singer UNION SELECT * FROM concert NATURAL JOIN singer_in_concert NATURAL JOIN old
SELECT a.name FROM singer a, concert b UNION SELECT 1 ORDER BY name
SELECT (SELECT s.name FROM concert UNION SELECT 1 ORDER BY name) FROM singer s
SELECT b.name FROM singer a JOIN concert b USING (name) UNION SELECT 1 ORDER BY name
SELECT name FROM singer LIMIT age
SELECT name FROM singer LIMIT (SELECT singer.age)
SELECT rank() OVER w FROM singer
SELECT name, x.* FROM singer JOIN (SELECT "name") x
WITH c AS (SELECT rowid FROM singer_in_concert) SELECT rowid FROM c JOIN (SELECT 1 AS rowid)
SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert a JOIN concert b ON country = 'x', singer c, singer d)
SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert a JOIN concert b ON country = 'x' RIGHT JOIN singer c)
SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM concert a RIGHT JOIN concert b, json_each(country), singer c)
SELECT 1 FROM concert a RIGHT JOIN concert b ON "country" = 'x' JOIN singer c
SELECT 1 FROM concert a JOIN concert b ON "country" = 'x' JOIN singer c RIGHT JOIN concert d
SELECT "x" UNION SELECT 2 ORDER BY x
SELECT "x" ORDER BY x
SELECT x FROM (SELECT +"x")
SELECT rank() OVER w FROM singer WINDOW w AS (ORDER BY age ROWS 1 PRECEDING), v AS (w)
SELECT rank() OVER (w) FROM singer WINDOW w AS (ORDER BY age ROWS 1 PRECEDING)
SELECT rank() OVER (w ORDER BY age) FROM singer WINDOW w AS (ORDER BY age)
SELECT rank() OVER (w PARTITION BY age) FROM singer WINDOW w AS ()
SELECT name FROM singer ORDER BY rank() OVER w
SELECT sum(age) OVER (ORDER BY age, name RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM singer
SELECT sum(age) OVER (ORDER BY age RANGE BETWEEN 1 FOLLOWING AND 2 PRECEDING) FROM singer
SELECT rank() FILTER (WHERE age > 3) OVER () FROM singer
SELECT count(DISTINCT age) OVER () FROM singer
WITH c AS (SELECT x FROM c UNION SELECT 1) SELECT 1 FROM c
WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c UNION ALL SELECT 3) SELECT x FROM c
WITH c(x) AS (SELECT 1 UNION ALL SELECT c.x FROM c, c AS d) SELECT x FROM c
WITH c(x) AS (SELECT 1 UNION ALL SELECT 2 FROM (SELECT * FROM c)) SELECT x FROM c
WITH c(x) AS (SELECT 1 UNION ALL SELECT count(*) FROM c) SELECT x FROM c
WITH c(x) AS (SELECT 1 UNION ALL SELECT x FROM c GROUP BY 1) SELECT x FROM c
WITH c(x) AS (SELECT 1 UNION ALL SELECT rank() OVER () FROM c) SELECT x FROM c
WITH c(x) AS (SELECT 1 INTERSECT SELECT x FROM c) SELECT x FROM c
VALUES (1), (2) ORDER BY 1
VALUES (1, 2), (2)
VALUES (1), (count(*))
VALUES (1) UNION SELECT 2 ORDER BY column1
SELECT json_each.key FROM singer, json_each(name) AS a
SELECT key FROM singer, json_each(nope)
SELECT name FROM singer WHERE (name, age) = (1, 2, 3)
SELECT name FROM singer WHERE (name, age) IN (SELECT 1)
SELECT name FROM singer WHERE (name, age)
SELECT name FROM singer ORDER BY age AND 0
SELECT rowid FROM singer, concert
SELECT (SELECT rowid FROM concert, old) FROM singer
SELECT singer_id FROM (SELECT rowid FROM singer_in_concert)
SELECT json FROM json_each('[]'), (SELECT 1 AS json)
SELECT name FROM temp.singer
WITH c AS (SELECT 1 AS x) SELECT x FROM main.c
SELECT q."true" FROM (SELECT 1 AS "true") q
SELECT `false` FROM (SELECT 1 AS "false")
WITH q AS (SELECT 1 AS "true") SELECT q."true" FROM q
SELECT * FROM (SELECT 1 AS "true") a JOIN (SELECT 1 AS "true") b USING ("true")
SELECT []
SELECT 1 AS [a]]b]
SELECT [nmae] FROM singer
SELECT name FROM singer WHERE name = [it's]
SELECT [true]
SELECT [name FROM singer
SELECT 0x
SELECT 0xg
SELECT rank() OVER "w" FROM singer WINDOW w AS ()
SELECT rank() OVER (w) FROM singer WINDOW [w] AS ()
SELECT 0x1F.5
SELECT 0x1FFFFFFFFFFFFFFFF
SELECT -0x8000000000000000
SELECT name FROM singer ORDER BY 0x9
SELECT name, age FROM singer GROUP BY 0x3
SELECT name FROM singer UNION SELECT 1 ORDER BY 0x2
""".strip().splitlines()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "concerts.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(DATABASE)
    connection.close()
    return path


@pytest.fixture(scope="module")
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def language(path: Path) -> AttributedLanguage:
    return query_language(reflect(str(path)))


@pytest.mark.parametrize("text", TAKEN)
def test_what_sqlite_prepares_is_taken(text: str, language: AttributedLanguage, connection: sqlite3.Connection) -> None:
    connection.execute("EXPLAIN " + text)
    assert refusal(language, text) is None


@pytest.mark.parametrize("text", REFUSED)
def test_what_sqlite_refuses_is_refused(
    text: str, language: AttributedLanguage, connection: sqlite3.Connection
) -> None:
    with pytest.raises(sqlite3.OperationalError):
        connection.execute("EXPLAIN " + text)
    assert refusal(language, text) is not None


@pytest.mark.parametrize("forward", [True, False])
def test_a_name_with_the_bracket_that_closes_is_not_written_in_brackets(forward: bool) -> None:
    columns = ("a]b", "a]", "price [USD]", "[c", "a")
    language = query_language(DatabaseSchema((Table("t]", (*map(Column, columns),)),)), forward=forward)
    for text in ('SELECT "a]b", `a]`, "price [USD]" FROM `t]` WHERE [a] = 1', 'SELECT "t]".[[c] FROM "t]"'):
        assert language.reads(text.encode())
    for text in ("SELECT [a]]b] FROM `t]`", "SELECT [price [USD]] FROM `t]`", "SELECT [a]b] FROM `t]`"):
        assert not language.reads(text.encode())
    assert read(language, language.start, "SELECT a FROM [t") is None
    for begun in ("SELECT `t]`.[", "SELECT `t]`.[[", "SELECT 1 FROM `t]` WHERE [a"):
        at = read(language, language.start, begun)
        assert at is not None and language.reads((begun + language.rest(at).decode()).encode())
    at = read(language, language.start, "SELECT 1 FROM `t]` WHERE [")
    assert at is not None and bytes(language.following(at)) == b"A[a"


@pytest.mark.parametrize("kind", CallKind)
def test_functions_are_there_with_these_arities(kind: CallKind, connection: sqlite3.Connection) -> None:
    over = " OVER ()" if kind is CallKind.WINDOW else ""
    for function in SQLITE.functions:
        if function.kind is kind:
            assert function.high is not None
            for count in {function.low, min(function.low + 2, function.high), function.high}:
                connection.execute(f"EXPLAIN SELECT {function.name}({', '.join('1' * count)}){over}")


NESTED = """
1 OR 1 AND NOT 1 < - (
( (
1 + abs(
CASE 1 WHEN 1 THEN 1 ELSE
CAST(
( SELECT
1 FROM ( SELECT
1 FROM singer WHERE name = 1 AND age IN ( SELECT
1 FROM singer WHERE NOT EXISTS ( SELECT
1 FROM singer GROUP BY ( SELECT
1 FROM singer ORDER BY 1, ( SELECT
rank() OVER ( ORDER BY ( SELECT
sum(1) FILTER ( WHERE ( SELECT
1 LIMIT ( SELECT
( VALUES (1), (
1 +
1 AND
1 IS
1 IS NOT DISTINCT FROM
1 || 1 * 1 < 1 =
1,
1 UNION SELECT
coalesce(1, 1,
""".strip().splitlines()


@pytest.mark.parametrize("unit", each(NESTED, 3))
def test_what_is_repeated_stays_within_the_limits_of_sqlite(
    unit: str, language: AttributedLanguage, connection: sqlite3.Connection
) -> None:
    at: At | None = language.start
    text = "SELECT "
    for byte in text.encode():
        assert at is not None
        at = language.step(at, byte)
    for _ in range(600):
        assert at is not None
        after: At | None = at
        for byte in f"{unit} ".encode():
            after = None if after is None else language.step(after, byte)
        if after is None:
            break
        at, text = after, f"{text}{unit} "
    assert at is not None and len(text) > 3 * len(unit)
    rest = language.rest(at)
    assert len(rest) <= language.price(at)
    connection.execute("EXPLAIN " + text + rest.decode())
