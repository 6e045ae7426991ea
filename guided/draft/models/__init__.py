"""Drafts by models: smaller ones, ones of another vocabulary, and the first or fewer layers of the model itself.

Here: those drafters, the shapes of their trees, and what tells them to stop.  Not here: heads on the target.
"""
