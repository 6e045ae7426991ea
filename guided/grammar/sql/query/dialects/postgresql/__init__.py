"""PostgreSQL as of version 18."""
