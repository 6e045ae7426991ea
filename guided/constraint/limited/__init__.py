"""Texts that take a number of tokens at most: what was read of them is counted beside the automaton."""
