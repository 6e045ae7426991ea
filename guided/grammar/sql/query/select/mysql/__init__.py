"""The SELECT statements of MySQL and MariaDB, whose clauses and operators are their own."""
