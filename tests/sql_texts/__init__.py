"""Random texts of SQL, each prepared by the real engine: what the tests do with a few thousand, with any number.

python -m tests.sql_texts --dialect duckdb --drawn terminals --texts 10000 --log duckdb.jsonl
python -m tests.sql_texts --dialect postgresql --drawn tokens --steps 1000000 --log postgresql.jsonl
python -m tests.sql_texts --dialect sqlite --drawn model --texts 10000 --log model.jsonl
"""
