"""Monitors: constraints whose language follows from an analysis that runs while the text is written.

`live` turns an automaton over bytes into a constraint; `monitor` watches a free text and asks an analysis where it
triggers.  The rest are the languages and analyses: Python and language servers, SQL, knowledge graphs, entities and
documents.
"""
