"""Samplers, steering, drafts and searches, named on the command line in words.

Here: the options that have them, and functions from words to objects.  Not here: the methods themselves.
"""
