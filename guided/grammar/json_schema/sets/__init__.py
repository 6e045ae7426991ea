"""Sets of JSON values as data, and their algebra: union, intersection, difference, exclusion.

Here: shapes, sets of strings, values, and operations on them.  Not here: keywords, and which shapes have a value.
"""
