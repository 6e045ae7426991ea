"""Constants that an engine computes while it prepares a query, and what of them may fail then."""
