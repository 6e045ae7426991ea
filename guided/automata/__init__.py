"""From the IR to lazy byte machines: ordered lexer states, parser sets.  Knows no tokens."""
