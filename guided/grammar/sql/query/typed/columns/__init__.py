"""Columns as they are referred to: which are in scope, and as which types they are read before FROM tells it."""
