"""Kernels of masks: walks of token tries, effects of tokens, and rows of bits."""
