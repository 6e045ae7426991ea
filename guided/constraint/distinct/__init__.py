"""Names and items that must not repeat: an automaton beside the grammar's, which remembers those already used."""
