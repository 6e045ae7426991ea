"""How many draft tokens a round asks for.

Here: the seam `Policy` and everything that keeps it.  Not here: when a draft model itself stops.
"""
