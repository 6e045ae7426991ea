"""Kernels of lexer states: how their edges are made, and how they read a byte."""
