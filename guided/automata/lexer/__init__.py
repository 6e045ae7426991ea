"""Lexer states: from terminals to lazily made automata over bytes, and facts about their languages."""
