"""Kernels of tokens alone: tries, spelling a text, the tokenizer's own merges, and an index of token sequences."""
