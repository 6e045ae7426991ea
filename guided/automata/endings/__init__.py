"""Grammars with a lexer: which terminals can stand side by side, and what ends a text whatever matches owe."""
