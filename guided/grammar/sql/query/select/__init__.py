"""SELECT statements as a tree of nodes, a module a clause; what names and actions mean is in `kinds` and `changes`."""
