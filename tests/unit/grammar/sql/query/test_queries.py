"""SELECT statements over a database: each text is prepared by SQLite itself, which knows best."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from guided.errors import UnsatisfiableError, UnsupportedError
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.nodes import Keyword, Sign
from guided.grammar.attributed.states import At
from guided.grammar.attributed.threads import Lexeme, LexemeKind
from guided.grammar.sql import Column, DatabaseSchema, Table, reflect
from guided.grammar.sql.query.language import query_language
from tests.amounts import each, some
from tests.unit.grammar.sql.query.random_queries import begun, read

DATABASE = """
CREATE TABLE singer (singer_id INTEGER PRIMARY KEY, name TEXT, country TEXT, age INTEGER, is_male BOOLEAN);
CREATE TABLE concert (concert_id INTEGER PRIMARY KEY, name TEXT, stadium_id INTEGER, year TEXT);
CREATE TABLE singer_in_concert (concert_id INTEGER, singer_id INTEGER);
CREATE TABLE "order items" (id INTEGER, "group" TEXT, "weird ""name" REAL, "Größe" INTEGER, key TEXT);
CREATE VIEW old AS SELECT name, age FROM singer WHERE age > 60;
"""

TAKEN = """
SELECT x."*", x.* FROM (SELECT 1 AS "*") x
SELECT 1 FROM concert JOIN singer ON concert.concert_id = 1 FULL JOIN singer_in_concert USING (concert_id)
SELECT 1 FROM concert JOIN singer ON concert_id = 1 RIGHT OUTER JOIN "order items" ON id = 1
SELECT count(*) FROM singer
SELECT GLOB('A*', name), like('%a', name) FROM singer WHERE glob('B*', country) ORDER BY name LIKE 'x'
select Name , COUNTRY  from Singer where AGE > 20 order by age desc
SELECT T1.name, count(*) FROM singer AS T1 JOIN singer_in_concert AS T2 ON T1.singer_id = T2.singer_id GROUP BY T1.name
SELECT name FROM singer WHERE country = "France"
SELECT s.name n FROM singer s WHERE s.age = (SELECT max(age) FROM singer)
SELECT name FROM singer WHERE singer_id NOT IN (SELECT singer_id FROM singer_in_concert)
SELECT name FROM singer UNION SELECT name FROM concert ORDER BY name LIMIT 3
SELECT count(*) FROM (SELECT country FROM singer GROUP BY country HAVING count(*) > 1) AS many
SELECT total, many.country FROM (SELECT country, count(*) AS total FROM singer GROUP BY country) AS many
WITH many AS (SELECT country, count(*) AS n FROM singer GROUP BY 1) SELECT country FROM many WHERE n > 2
WITH a(x, y) AS (SELECT name, age FROM singer), b AS (SELECT x FROM a) SELECT a.y FROM a JOIN b USING (x)
SELECT CASE WHEN age > 30 THEN 'old' ELSE 'young' END AS kind, avg(age) FROM singer GROUP BY kind ORDER BY 2 DESC
SELECT CAST(sum(age) AS REAL) / NULLIF(count(*), 0) AS mean FROM singer
SELECT name, rank() OVER (PARTITION BY country ORDER BY age DESC) FROM singer
SELECT sum(age) FILTER (WHERE is_male) FROM singer
SELECT name FROM singer WHERE EXISTS (SELECT 1 FROM singer_in_concert AS x WHERE x.singer_id = singer.singer_id)
SELECT (SELECT count(*) FROM singer_in_concert x WHERE x.singer_id = s.singer_id) AS shows, name FROM singer s
SELECT strftime('%Y-%m', year) AS month, COUNT(*) AS n FROM concert GROUP BY month ORDER BY n DESC NULLS LAST
SELECT * FROM singer NATURAL JOIN singer_in_concert
SELECT singer_id, concert.name FROM singer JOIN singer_in_concert USING (singer_id) JOIN concert USING (concert_id)
SELECT "group", `weird "name`, "Größe", key FROM "order items" WHERE "weird ""name" IS NOT NULL;
SELECT name FROM singer WHERE age BETWEEN 20 AND 30 AND NOT country LIKE '%land' ESCAPE '!'
SELECT DISTINCT country FROM singer WHERE name || ' ' || country <> 'it''s' COLLATE nocase
SELECT max(1, 2), max(age) FROM old
SELECT name FROM singer WHERE max(age, 3) > 4
SELECT a.name FROM singer a, singer b WHERE a.age < b.age
SELECT singer.* FROM singer CROSS JOIN concert
SELECT 1
""".strip().splitlines()

REFUSED = """
WITH json_each AS (SELECT 1) SELECT * FROM json_each('[]')
SELECT x."*" FROM singer x
SELECT 1 FROM concert JOIN singer ON concert_id = 1 FULL JOIN singer_in_concert USING (concert_id)
SELECT 1 FROM concert JOIN json_each(concert_id) NATURAL RIGHT JOIN singer_in_concert
SELECT nmae FROM singer
SELECT singer.nmae FROM singer
SELECT name FROM singr
SELECT T1.name FROM singer AS T2
SELECT name FROM singer, concert
SELECT name FROM singer WHERE concert.year = 1
SELECT count(age, name) FROM singer
SELECT abs() FROM singer
SELECT name FROM singer WHERE count(*) > 1
SELECT sum(count(*)) FROM singer
SELECT name FROM singer UNION SELECT name, age FROM singer
SELECT name FROM singer WHERE age IN (SELECT name, age FROM singer)
SELECT name FROM singer ORDER BY 2
SELECT name FROM singer GROUP BY 0
SELECT name FROM singer AS s WHERE singer.age > 1
SELECT name FROM singer UNION SELECT name FROM concert ORDER BY age
SELECT nofunction(name) FROM singer
SELECT rank() FROM singer
SELECT name FROM singer WHERE rank() OVER () = 1
SELECT *
SELECT name
SELECT a.name FROM singer a, concert a
SELECT x.name FROM (SELECT age FROM singer) AS x
SELECT age FROM singer JOIN concert USING (age)
SELECT count(*) n FROM singer WHERE n > 1
SELECT name FROM
""".strip().splitlines()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("queries") / "concerts.sqlite"
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


@pytest.fixture(scope="module")
def strict(path: Path) -> AttributedLanguage:
    return query_language(reflect(str(path)), forward=False)


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


@pytest.mark.parametrize(
    "text", ["DROP TABLE singer", "DELETE FROM singer", "PRAGMA user_version", "SELECT 1; SELECT 2"]
)
def test_only_one_query_is_taken(text: str, language: AttributedLanguage) -> None:
    assert refusal(language, text) is not None


def test_names_must_exist_at_once_without_forward_names(strict: AttributedLanguage) -> None:
    # A word may be an alias that FROM is to define, until no dot follows.
    assert refusal(strict, "SELECT nmae FROM singer") == len("SELECT nmae ")
    assert refusal(strict, "SELECT s.nmae FROM singer s") == len("SELECT s.n")
    assert refusal(strict, "SELECT s.country, s.year FROM singer s") == len("SELECT s.country, s.")
    assert refusal(strict, "SELECT s.name, t.year FROM singer s, concert t") is None
    assert refusal(strict, "SELECT s.rowid, s.country, t.year, t.oid FROM singer s, concert t") is None
    assert refusal(strict, "SELECT s.oid, s.nmae FROM singer s") == len("SELECT s.oid, s.n")


@pytest.mark.parametrize("forward", [True, False])
def test_random_texts_are_prepared(
    forward: bool, language: AttributedLanguage, strict: AttributedLanguage, connection: sqlite3.Connection
) -> None:
    chosen = language if forward else strict
    sizes = []
    for seed in range(some(1200, 80)):
        rng = random.Random(seed)
        text, at = begun(rng, chosen, rng.choice([3, 8, 15, 30, 60]))
        rest = chosen.rest(at)
        assert len(rest) <= chosen.price(at), text
        whole = text + rest.decode()
        assert refusal(chosen, whole) is None, whole
        connection.execute("EXPLAIN " + whole)
        sizes.append(len(whole))
    assert sum(sizes) > 80 * len(sizes)


def test_ends_get_shorter_byte_by_byte(language: AttributedLanguage) -> None:
    for text in each(TAKEN, 12):
        at = language.start
        for byte in text.encode():
            after = language.step(at, byte)
            assert after is not None
            at = after
            rest = language.rest(at)
            assert len(rest) <= language.price(at), (text, rest)
            for position in range(len(rest)):
                following = language.step(after, rest[position])
                assert following is not None
                after = following
                assert language.rest(after) == rest[position + 1 :]


@pytest.mark.parametrize(
    ("name", "end"),
    each(
        [
            ("G" * 63, ""),
            ('"' + "g" * 254, '"'),
            ('"' + "g" * 252 + "é", '"'),
            ("`" + "g" * 254, "`"),
            ("[" + "g" * 254, "]"),
        ],
        2,
    ),
)
def test_a_name_that_cannot_grow_and_is_taken_is_no_dead_end(language: AttributedLanguage, name: str, end: str) -> None:
    """A column or a query with all the bytes that a name may have, twice: the last of them makes it another name."""
    for text in (f"WITH a({name}{end}, {name}", f"WITH {name}{end}(c) AS (WITH {name}"):
        at: At | None = language.start
        for byte in text.encode()[:-1]:
            at = None if at is None else language.step(at, byte)
        assert at is not None
        assert language.step(at, name.encode()[-1]) is None
        for byte in language.following(at):
            after = language.step(at, byte)
            assert after is not None and language.rest(after)
    assert language.reads(f"WITH a({name}{end}, b) AS (SELECT 1, 2) SELECT 1 FROM a".encode())


def test_no_keyword_or_sign_is_a_dead_end(language: AttributedLanguage) -> None:
    beginnings = [
        *TAKEN, "SELECT abs(1", "SELECT (SELECT 1", "SELECT 1 UNION SELECT 2", "SELECT round(1, 2", "SELECT max(1",
        "SELECT 1 FROM singer GROUP BY age HAVING count(*)", "SELECT count(*) FILTER (WHERE age)",
    ]  # fmt: skip
    for seed in range(some(400, 8)):
        rng = random.Random(seed)
        beginnings.append(begun(rng, language, rng.choice([3, 8, 15, 30]))[0])
    for text in beginnings:
        at: At | None = language.start
        for byte in text.encode():
            at = None if at is None else language.step(at, byte)
        assert at is not None
        place = language.resolved(at)
        assert place is not None
        for open_ in place.opens:
            match open_.terminal:
                case Keyword(word):
                    lexeme = Lexeme(LexemeKind.WORD, word)
                case Sign(sign):
                    lexeme = Lexeme(LexemeKind.SIGN, sign)
                case _:
                    continue
            assert language.threads.after(place, lexeme, False) is not None, (text, lexeme.text)


def test_a_name_that_waits_for_a_sub_query_is_joined(language: AttributedLanguage) -> None:
    for text in ("SELECT nn, nn.s FROM", "SELECT nn, nn.s FROM (SELECT 1 nn) a,", "SELECT name, nn.s FROM singer,"):
        at: At | None = language.start
        for byte in text.encode():
            assert at is not None
            at = language.step(at, byte)
        assert at is not None
        assert len(language.rest(at)) <= language.price(at)


def test_the_number_of_a_row_has_a_name_where_it_is_the_column_of_a_source(language: AttributedLanguage) -> None:
    # The engine calls it rowid, or as the primary key.
    assert refusal(language, "SELECT 1 FROM (SELECT rowid FROM singer)") == len("SELECT 1 FROM (SELECT rowid FROM")
    at = read(language, language.start, "SELECT 1 FROM (SELECT oid")
    assert at is not None and len(language.rest(at)) <= language.price(at)


def test_true_is_no_word_where_a_table_has_a_column_of_that_name() -> None:
    # It is that column where one source has it, and ambiguous where two have.
    language = query_language(DatabaseSchema((Table("t", (Column("a"), Column("true"))), Table("s", (Column("a"),)))))
    assert not language.reads(b"SELECT TRUE FROM t, t AS u")
    assert not language.reads(b"SELECT a FROM t WHERE true")
    for text in (b'SELECT "true", FALSE FROM t', b"SELECT t.`true` FROM t, s"):
        assert language.reads(text)


def test_a_table_without_such_a_column_binds_the_number_of_its_rows() -> None:
    year = Table("year", (Column("rowid"), Column("a")), has_rowid=True)
    language = query_language(DatabaseSchema((year, Table("b", (Column("c"),), has_rowid=True))))
    # A second table with such a column would make the first name ambiguous: USING has none of b's.
    begun_ = "SELECT rowid, x.rowid FROM year JOIN b CROSS JOIN json_each"
    at = read(language, language.start, begun_)
    assert at is not None and language.rest(at) == b"(1)a JOIN b x"
    assert language.reads((begun_ + "(1)a JOIN b x").encode())


@pytest.mark.parametrize("text", ["SELECT 1 FROM json_tree(json) JOIN ", "SELECT key FROM json_each('') JOIN "])
def test_no_function_in_from_begins_whose_hidden_columns_are_named(text: str, language: AttributedLanguage) -> None:
    assert read(language, language.start, text + "singer") is not None
    called = read(language, language.start, text + "json_tree(")
    assert (called is None) == ("(json)" in text), "USING makes one of two keys, but not of hidden columns"
    assert called is None or language.rest(called)


def test_a_source_without_named_columns_has_no_column(language: AttributedLanguage, strict: AttributedLanguage) -> None:
    for chosen in (language, strict):
        assert refusal(chosen, "WITH a AS (SELECT 1) SELECT a.* FROM a") is None
        assert refusal(chosen, "WITH a AS (SELECT 1) SELECT 1 + a.x FROM a") == len("WITH a AS (SELECT 1) SELECT 1 + a")


def test_what_is_not_known_is_refused_by_name(path: Path) -> None:
    with pytest.raises(UnsupportedError, match="oracle"):
        query_language(DatabaseSchema(reflect(str(path)).tables, "oracle"))
    with pytest.raises(UnsatisfiableError, match="no tables"):
        query_language(DatabaseSchema(()))


def test_gold_queries_are_taken_as_they_are_written(data: Path) -> None:
    """Spider's and defog's development questions: 656 and 192 queries, of which SQLite prepares all."""
    folder = data / "text2sql"
    spider = [(row["db_id"], row["query"]) for row in json.loads((folder / "spider/dev.json").read_text())]
    defog = [
        (row["db_name"], query.strip())
        for row in json.loads((folder / "defog/questions.json").read_text())
        for query in row["query"].split(";")
        if query.strip()
    ]
    for name, queries in (("spider", spider), ("defog", defog)):
        languages = {
            db: query_language(reflect(str(folder / name / f"db/{db}.sqlite"))) for db in {q[0] for q in queries}
        }
        missing = [query for db, query in each(queries, 8) if refusal(languages[db], query) is not None]
        assert not missing


def test_a_table_hides_a_function_of_its_name() -> None:
    tables = (Table("json_each", (Column("a", "INTEGER"),)),)
    language = query_language(DatabaseSchema(tables))
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE json_each (a INTEGER)")
    with pytest.raises(sqlite3.OperationalError, match="not a function"):
        database.execute("SELECT 1 FROM json_each('[]')")
    assert not language.reads(b"SELECT 1 FROM json_each('[]')")
    assert language.reads(b"SELECT 1 FROM json_tree('[]')")
