"""One token and its weight, properly weighted for the model times a potential.

Here: the protocol and its samplers.  Not here: what joins tokens to sequences.
"""
