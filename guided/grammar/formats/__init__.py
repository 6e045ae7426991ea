"""Formats of strings as languages of texts: dates, addresses, host names (also of IDNA), patterns of ECMA-262.

Here: what front ends and constraints both need of a format.  Not here: when a schema asserts one.
"""
