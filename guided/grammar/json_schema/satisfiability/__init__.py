"""Which needs have a value, how many, and whether there are enough different ones.

Here: fixpoints and counts over everything reachable.  Not here: what a need is expanded to, and how it is written.
"""
