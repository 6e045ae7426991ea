"""The demonstration: three commands of `guided` on files made on the spot, with the packaged model and no network.

    python examples/demo.py

Each command is printed before it runs; the first run on a machine compiles the kernels.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "city": {"type": "string"},
        "email": {"type": "string", "format": "email"},
    },
    "required": ["name", "age", "city", "email"],
    "additionalProperties": False,
}
LETTER = "Nina Berg is 34 years old, lives in Oslo and can be reached at nina@berg.org.\n"
SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), product TEXT, price REAL
);
INSERT INTO customers VALUES (1, 'Nina Berg', 'Oslo'), (2, 'Omar Haddad', 'Cairo'), (3, 'Ida Dahl', 'Oslo');
INSERT INTO orders VALUES (1, 1, 'lamp', 39.9), (2, 1, 'desk', 240.0), (3, 2, 'chair', 85.5), (4, 3, 'lamp', 39.9);
"""
QUESTIONS = (
    "How many customers are there for each city?",
    "Show the product and price of orders whose price is greater than 50.",
)


def main() -> None:
    """Make the files, run the commands, check what they print."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "person.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
        (here / "letter.txt").write_text(LETTER, encoding="utf-8")
        connection = sqlite3.connect(here / "shop.db")
        connection.executescript(SHOP)
        connection.close()
        _guided(here, "warmup")
        print(f"\n{LETTER}", end="")
        record = json.loads(_guided(here, "extract", "--schema", "person.json", "letter.txt"))
        jsonschema.validate(record, SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        print("(valid: jsonschema agrees)")
        for question in QUESTIONS:
            _guided(here, "sql", "--db", "sqlite:///shop.db", question)


def _guided(folder: Path, *arguments: str) -> str:
    print(f"\n$ guided {shlex.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "guided", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


if __name__ == "__main__":
    main()
