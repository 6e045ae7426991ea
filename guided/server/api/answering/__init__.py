"""From what was wanted to texts, token by token or whole."""
