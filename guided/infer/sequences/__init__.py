"""Samplers of whole sequences, by repeated attempts from the prompt or by Markov chains over finished ones.

Here: what was visited and learned, and the samplers.  Not here: populations that grow token by token.
"""
