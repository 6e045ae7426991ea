"""Types of expressions, as PostgreSQL has them: which casts there are, and which operator or function is meant."""
