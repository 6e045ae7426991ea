"""Random texts of SQLite's SELECT: SQLite prepares each, and none comes to a dead end.

All of it: ``GUIDED_TEST_ALL=1 pytest -m "slow or not slow" tests/unit/grammar/sql/query/test_sqlite_at_random.py``.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import reflect
from guided.grammar.sql.query.language import query_language
from tests.amounts import ALL, some
from tests.unit.grammar.sql.query.random_queries import begun
from tests.unit.grammar.sql.query.test_queries import DATABASE, refusal

TEXTS = 10_000
STEPS = 100_000


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("random") / "concerts.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(DATABASE)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def path(connection: sqlite3.Connection) -> Path:
    return Path(connection.execute("PRAGMA database_list").fetchone()[2])


@pytest.mark.timeout(3600 if ALL else 300)
@pytest.mark.parametrize("rare", [False, True])
def test_random_texts_are_prepared(rare: bool, path: Path, connection: sqlite3.Connection) -> None:
    # What was read is kept by a language, so a new one for each thousand texts.
    language = query_language(reflect(str(path)))
    for seed in range(some(TEXTS // 2, 266)):
        if seed and seed % 1000 == 0:
            language = query_language(reflect(str(path)))
        rng = random.Random(seed)
        text, at = begun(rng, language, rng.choice([3, 8, 15, 30, 60]), rare=rare)
        rest = language.rest(at)
        assert len(rest) <= language.price(at), text
        whole = text + rest.decode()
        assert refusal(language, whole) is None, whole
        connection.execute("EXPLAIN " + whole)


@pytest.mark.timeout(3600 if ALL else 300)
@pytest.mark.parametrize("forward", [True, False])
def test_random_bytes_come_to_no_dead_end(forward: bool, path: Path, connection: sqlite3.Connection) -> None:
    rng = random.Random(0)
    steps = 0
    while steps < some(STEPS // 2, 480):
        language = query_language(reflect(str(path)), forward=forward)
        steps += sum(_walk(rng, language, connection) for _ in range(some(50, 24)))


def _walk(rng: random.Random, language: AttributedLanguage, connection: sqlite3.Connection) -> int:
    """Random bytes, each of them as likely, up to some length; what ends them makes a query. The number of bytes."""
    at, text = language.start, bytearray()
    for _ in range(rng.choice([20, 60, 200])):
        byte = rng.choice(language.following(at) or b"\0")
        after = language.step(at, byte)
        if after is None:
            break
        at = after
        text.append(byte)
    rest = language.rest(at)
    assert len(rest) <= language.price(at), text
    connection.execute("EXPLAIN " + (text + rest).decode())
    return len(text)
