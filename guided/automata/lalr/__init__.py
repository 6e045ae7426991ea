"""LALR stacks: which lexer begins at one, and how much ends a text from it."""
