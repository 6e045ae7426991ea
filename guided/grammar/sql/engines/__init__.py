"""What differs between database engines: how nothing can be written, how a query is stopped, how names are quoted.

One engine a file.  What they hold, tables and columns, is read in `guided.grammar.sql.catalogues`.
"""
