"""DuckDB as of version 2."""
