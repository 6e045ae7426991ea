"""Regular expressions in Python's and ECMA-262's notation: parsing, and lowering to languages over bytes."""
