"""Numba loops over flat arrays: no objects, no strings, nothing compiled at import.

Import a kernel module only where it is called for the first time; importing this package loads nothing.
"""
