"""The kinds of names in a query: which may stand at a place, what they change, and which end a text soon."""
