"""Kernels of the parser: continuations, LALR stacks, steps of a state, and what ends a text from them."""
