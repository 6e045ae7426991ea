"""The databases that tests ask for are there, and hold what they were told."""

from __future__ import annotations

import pytest
import sqlalchemy

from tests.databases import DIALECTS, Databases


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_database_of_each_dialect(databases: Databases, dialect: str) -> None:
    url = databases(dialect).create("CREATE TABLE t (a INT, b VARCHAR(10))", "INSERT INTO t VALUES (1, 'é%s')")
    other = databases(dialect).create()
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT a, b FROM t").fetchall() == [(1, "é%s")]
    engine.dispose()
    assert other != url
