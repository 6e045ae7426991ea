"""The commands of `guided eval`, one a file, and what they share.

Here: arguments, runs that go on, printed tables.  Not here: the evaluations, which are in `guided.eval`.
"""
