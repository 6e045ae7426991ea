"""Texts that take a number of tokens at most, as grammars say it."""
