"""SQLite's own clauses: what of https://sqlite.org/lang_select.html is in the language, and what only looks so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import reflect
from guided.grammar.sql.query.dialects.sqlite import SQLITE
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.query.scope import CallKind
from tests.unit.grammar.sql.query.test_queries import DATABASE, refusal

TAKEN = """
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
""".strip().splitlines()

REFUSED = """
WITH singer AS (SELECT * FROM singer) SELECT 1 FROM singer
WITH a AS (SELECT name FROM singer), singer AS (SELECT 1 AS q) SELECT 1 FROM a
SELECT * FROM singer UNION SELECT * FROM concert
SELECT * FROM singer UNION SELECT * FROM concert NATURAL JOIN singer_in_concert NATURAL JOIN old
SELECT a.name FROM singer a, concert b UNION SELECT 1 ORDER BY name
SELECT (SELECT s.name FROM concert UNION SELECT 1 ORDER BY name) FROM singer s
SELECT b.name FROM singer a JOIN concert b USING (name) UNION SELECT 1 ORDER BY name
SELECT name FROM singer LIMIT age
SELECT name FROM singer LIMIT (SELECT singer.age)
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


@pytest.mark.parametrize("kind", CallKind)
def test_functions_are_there_with_these_arities(kind: CallKind, connection: sqlite3.Connection) -> None:
    over = " OVER ()" if kind is CallKind.WINDOW else ""
    for function in SQLITE.functions:
        if function.kind is kind:
            assert function.high is not None
            for count in {function.low, min(function.low + 2, function.high), function.high}:
                connection.execute(f"EXPLAIN SELECT {function.name}({', '.join('1' * count)}){over}")
