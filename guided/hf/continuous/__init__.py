"""transformers' continuous batching: a grammar for each request.

`generation` is the call for a list of prompts, `processor` what a manager of one's own takes.  Facts are those of
transformers 5.23.0.
"""

from guided.hf.continuous.generation import generate_batch

__all__ = ["generate_batch"]
