"""Questions to SQL: the grammar is made from the live database, so no query names what is not there.

python examples/text_to_sql.py
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import guided
from guided import hf, nano
from guided.grammar.sql import DatabaseSchema, reflect, run_query

MUSEUM = """
CREATE TABLE artists (id INTEGER PRIMARY KEY, name TEXT, country TEXT, born INTEGER);
CREATE TABLE paintings (
    id INTEGER PRIMARY KEY, title TEXT, artist_id INTEGER REFERENCES artists (id), year INTEGER, price REAL
);
INSERT INTO artists VALUES (1, 'Anker', 'Denmark', 1859), (2, 'Zorn', 'Sweden', 1860), (3, 'Kroyer', 'Denmark', 1851);
INSERT INTO paintings VALUES
    (1, 'Sunlight', 1, 1891, 120.5), (2, 'Midsummer', 2, 1897, 300.0), (3, 'Hip hip', 3, 1888, 410.0),
    (4, 'Harvest', 1, 1905, 99.0);
"""
QUESTIONS = (
    "How many paintings are there?",
    "List the name of artists whose country is Denmark.",
    "What is the average price of paintings?",
    "How many artists are there for each country?",
    "Show the title of paintings whose year is greater than 1890.",
)


def prompt_for(database: DatabaseSchema, question: str) -> str:
    """The packaged model's prompt; another model wants another one."""
    tables = [
        nano.Table(
            table.name,
            tuple(nano.Column(column.name, column.type) for column in table.columns),
            tuple(nano.ForeignKey(key.columns[0], key.table, key.referred[0]) for key in table.foreign_keys),
        )
        for table in database.tables
    ]
    return nano.sql_prompt(tables, question, database.dialect)


def main() -> None:
    """Answer every question from a database made on the spot."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "museum.db"
        connection = sqlite3.connect(path)
        connection.executescript(MUSEUM)
        connection.close()
        database = reflect(str(path))
        grammar = guided.sql(database)
        model = hf.load()
        for question in QUESTIONS:
            made = guided.generate(model, prompt_for(database, question), grammar, max_new_tokens=120)
            result = run_query(str(path), made.text)
            print(f"{question}\n    {made.text}\n    {', '.join(result.columns)}: {list(result.rows)}")


if __name__ == "__main__":
    main()
