"""Drafts without a model: from the text so far, collections of texts, counts, and what the constraint forces.

Here: guesses at a next token, tables they come from, and drafters made of them.  Not here: what runs a network.
"""
