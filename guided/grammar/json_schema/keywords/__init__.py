"""What the keywords of a schema mean: from places in a document to shapes.

Here: one file a family of keywords, and the report on all of them.  Not here: the algebra of shapes.
"""
