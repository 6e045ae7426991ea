"""What a caller passes as a schema, and the places in it.

Here: sources, Python types, documents with their references.  Not here: what a keyword means.
"""
