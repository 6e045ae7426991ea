"""Strings whose format no small regular language tells: patterns and host names, read by an automaton of their own."""
