"""What all tokens of a vocabulary do from a lexer state: found once, and shared by all its grammars."""
