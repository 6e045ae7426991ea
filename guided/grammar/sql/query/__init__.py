"""SELECT statements as an L-attributed grammar: which tables, columns and aliases are in scope is its attribute."""
