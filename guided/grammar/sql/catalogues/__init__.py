"""Tables and columns as each engine's own catalogue has them, read through a session that only reads.

One engine a file.  Values of columns are sampled in `guided.grammar.sql.sampling`.
"""
