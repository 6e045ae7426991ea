"""Drafts by Medusa and Hydra heads on the hidden state of the target, and how such heads are trained.

Here: networks, their files, their drafter, their training.  Not here: models that run by themselves.
"""
