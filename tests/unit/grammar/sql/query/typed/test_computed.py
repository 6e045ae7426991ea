"""Constants that DuckDB computes while it prepares.

In rows of VALUES, as arguments of functions in FROM, and as parts of expressions anywhere, such as conditions of CASE.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import reflect
from guided.grammar.sql.query.language import query_language
from tests.amounts import some
from tests.unit.grammar.sql.query import random_queries
from tests.unit.grammar.sql.query.test_queries import refusal

DATABASE = "CREATE TABLE t (id INTEGER, name VARCHAR, born DATE, tags VARCHAR[])"
TAKEN = """
VALUES (1, 'x', DATE '2024-01-01', CURRENT_DATE - INTERVAL 1 DAY, 1.5 * 2, 10 / 4.0, -1, 60 * 60 * 24)
VALUES (100::SMALLINT, 100.5::DECIMAL(10,2), CAST(5 AS SMALLINT), CAST(1.5 AS DECIMAL(4,2)), '12'::INTEGER)
VALUES (length('a') + 1, year(CURRENT_DATE) - 1, upper('a') || 'b', DATE('2024-01-01'), INTERVAL 2 DAY * 30)
VALUES (1), ('12')
VALUES (999999999 * 999999999, 'x'), ((SELECT 1), 'y')
SELECT * FROM range(1, 10 + 1)
SELECT * FROM generate_series(date_trunc('month', now()), now(), INTERVAL '1 month')
SELECT * FROM generate_series(CURRENT_DATE - INTERVAL 30 DAY, CURRENT_DATE::TIMESTAMP, INTERVAL 1 DAY)
SELECT * FROM generate_series(extract(year FROM CURRENT_DATE) - 5, extract(year FROM CURRENT_DATE))
SELECT * FROM range(999999999 * 999999999 + (SELECT 1))
SELECT * FROM unnest(string_split('a,b', ',')), unnest([1, 2, 3]) AS n
SELECT t.name, x FROM t, unnest(tags) AS x, range(id + upper('a')::INTEGER % 3) AS r
SELECT upper('a')::INTEGER + 1 // 0 FROM t
SELECT * FROM t TABLESAMPLE BERNOULLI (10 PERCENT), t AS u TABLESAMPLE SYSTEM (10)
SELECT rank() OVER (PARTITION BY (SELECT 1)), (SELECT rank() OVER () LIMIT 1) FROM t
""".strip().splitlines()
REFUSED = """
VALUES (upper('a')::INTEGER)
VALUES (999999999 * 999999999)
VALUES (100::DECIMAL(3,2))
VALUES (CAST(1000 AS TINYINT))
VALUES (5 // 0)
VALUES (1, now() AT TIME ZONE 'nowhere')
VALUES (INTERVAL 9999 YEARS * 999999)
VALUES (chr(-1))
VALUES ('a' || 'b' = 1)
VALUES ('12'), (1)
VALUES (NULL), ('12'), (1)
SELECT * FROM range(upper('a')::INTEGER)
SELECT * FROM unnest(upper('a')::INTEGER[])
SELECT * FROM t TABLESAMPLE BERNOULLI (10)
SELECT rank() OVER (PARTITION BY (SELECT rank() OVER ())) FROM t
SELECT rank() OVER w FROM t WINDOW w AS (ORDER BY EXISTS (FROM t QUALIFY rank() OVER () = 1))
""".strip().splitlines()
PARTS = """
SELECT -id, -5, -(id + 1), -abs(id), -sum(id), id * -1 // 2, -(upper('a') = 'b')::INTEGER FROM t GROUP BY ALL
SELECT id FROM t WHERE id > -5 AND strptime(name, '%Y') > '2020-01-01' AND id % 2 = 0 OR 1 = 1 AND name::INTEGER = 2
SELECT id FROM t WHERE name = 'x' AND CAST(name AS INTEGER) > 5 AND id = CAST(strftime(CURRENT_DATE, '%Y') AS INTEGER)
SELECT CASE WHEN 100.0 * id / 2 > 50 THEN 1 WHEN date(name) > born THEN 2 WHEN TRY_CAST(name AS INTEGER) = 3 THEN 4 END FROM t
SELECT CASE strftime(born, '%m') WHEN '01' THEN upper('a')::INTEGER END, NULLIF(trim(name), '')::INTEGER FROM t
SELECT CASE WHEN count(*) > 5 AND sum(1)::VARCHAR::INTEGER > 1 THEN 1 END, if(max(name) = 'a', max(name)::INTEGER, 0) FROM t
SELECT substr(name, strpos(name, 'a') + 1, 3), name[length(name)], split_part(name, '-', -1), array_to_string(tags, ',') FROM t
SELECT id FROM t WHERE name LIKE '%' || name || '%' OR name LIKE CAST(id AS VARCHAR) || '%' OR name ILIKE left(name, 3)
SELECT -CAST(name AS INTEGER), -CAST((t.name) AS INTEGER), -CAST(replace(name, ',', '') AS INTEGER) FROM t
SELECT id FROM t WHERE id > 1 AND 5 < CAST(name AS INTEGER) AND 5 < CAST(substr(name, 1, 2) AS INTEGER)
SELECT id FROM t WHERE id > 1 AND EXTRACT(year FROM CAST(name AS DATE)) = 2024 AND year(CAST(name AS DATE)) = 2024
SELECT substr(name, 1, CAST(name AS INTEGER)), -CAST((SELECT max(name) FROM t) AS INTEGER) FROM t
SELECT -CAST(max(name) AS INTEGER), substr('a', CAST(min(name) AS INTEGER)) FROM t
SELECT -(SELECT max(id) FROM t), id, -(SELECT max(born - DATE '2024-01-01') FROM t) FROM t
""".strip().splitlines()
FAILING_PARTS = """
SELECT -upper('a')::INTEGER
SELECT -(upper('a')::INTEGER + 1)
SELECT CASE WHEN upper('a')::BOOLEAN THEN 1 END
SELECT CASE upper('a')::INTEGER WHEN 1 THEN 1 END
SELECT CASE id WHEN 2 THEN 1 END, CASE WHEN [upper('a')::INTEGER] = [1] THEN 1 END FROM t
SELECT NULLIF(upper('a')::INTEGER, 1)
SELECT id > 1 AND upper('a')::BOOLEAN FROM t
SELECT id > 1 OR upper('a')::INTEGER = 1 FROM t
SELECT if(upper('a')::BOOLEAN, 1, 2)
SELECT substr(name, upper('a')::INTEGER) FROM t
SELECT substring(name FROM upper('a')::INTEGER FOR 1) FROM t
SELECT name[upper('a')::INTEGER] FROM t
SELECT name LIKE upper('a')::INTEGER::VARCHAR FROM t
SELECT name SIMILAR TO upper('a')::INTEGER::VARCHAR FROM t
SELECT split_part(upper('a')::INTEGER::VARCHAR, 'a', 1)
SELECT array_to_string(upper('a')::VARCHAR[], ',')
SELECT -upper('a')::INTEGER[]::VARCHAR::INTEGER
SELECT NULLIF(-0.5 = upper('a'), TRUE)
VALUES (NULLIF(upper('a')::INTEGER, 1)), ((SELECT 1))
SELECT '{}'::JSON ->> upper('a')::INTEGER::VARCHAR
SELECT -CAST(upper('a') AS INTEGER)
SELECT 'a' AS n, -CAST(n AS INTEGER) FROM t
SELECT -CAST((lower('a')) AS INTEGER), id FROM t
""".strip().splitlines()
BEGUN = """
VALUES (999999999 * 999999999
VALUES (999999999 * 999999999, 1), (
VALUES ((((((((999999999 * 999999999
VALUES (1, json_extract_string((nullif(
FROM range(999999999 * 999999999
FROM range(((((999999999 * 999999999
FROM generate_series(1, COALESCE(0 + length(
FROM unnest(CASE WHEN
SELECT -ifnull(
SELECT -CASE WHEN
SELECT -(length(upper('a')
SELECT -TRY_CAST(
SELECT [1] = [2] AND [ifnull(
SELECT NULLIF('a' || 'b' ||
SELECT -CASE 1 IN LEAST(NULL) ::
SELECT -CAST(upper('a')
SELECT -CAST(name
SELECT -CAST((t.
""".strip().splitlines()
BEGINNINGS = (
    "VALUES (", "VALUES (1, ", "FROM range(", "FROM unnest(", "FROM generate_series(1, ", "SELECT -", "SELECT CASE WHEN",
    "SELECT NULLIF(", "SELECT TRUE AND", "SELECT 'a' LIKE",
)  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("computed") / "t.duckdb"
    with duckdb.connect(str(found)) as connection:
        connection.execute(DATABASE)
    return found


@pytest.fixture(scope="module")
def language(file: Path) -> AttributedLanguage:
    return query_language(reflect(str(file)))


@pytest.fixture(scope="module")
def engine(file: Path) -> Any:
    with duckdb.connect(str(file), read_only=True) as connection:
        yield connection


@pytest.mark.parametrize("text", [*TAKEN, *PARTS])
def test_what_the_engine_prepares_is_taken(text: str, language: AttributedLanguage, engine: Any) -> None:
    engine.execute(f"EXPLAIN {text}")
    assert refusal(language, text) is None


@pytest.mark.parametrize("text", [*REFUSED, *FAILING_PARTS])
def test_what_the_engine_refuses_is_refused(text: str, language: AttributedLanguage, engine: Any) -> None:
    with pytest.raises(duckdb.Error):
        engine.execute(f"EXPLAIN {text}")
    assert refusal(language, text) is not None


@pytest.mark.parametrize("text", BEGUN)
def test_what_is_computed_ends_with_what_does_not_fail(text: str, language: AttributedLanguage, engine: Any) -> None:
    at = random_queries.read(language, language.start, text)
    assert at is not None
    end = language.end(at)
    assert end is not None and len(end) <= language.price(at)
    engine.execute(f"EXPLAIN {text}{end.decode()}")


def test_few_random_texts_have_constants_that_fail(language: AttributedLanguage, engine: Any) -> None:
    """What is left are functions and remainders that fail in parts, such as a condition of CASE."""
    failed, count = 0, some(600, 60)
    for seed in range(count):
        rng = random.Random(f"computed/{seed}")
        begins = BEGINNINGS[seed % len(BEGINNINGS)]
        text, at = random_queries.begun(rng, language, rng.choice([3, 6, 12, 20]), text=begins)
        end = language.end(at)
        assert end is not None and len(end) <= language.price(at), text
        try:
            engine.execute(f"EXPLAIN {text}{end.decode()}")
        except duckdb.Error:
            failed += 1
            print("FAILED", text, end)
    assert failed <= count * 0.01
