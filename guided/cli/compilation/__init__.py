"""What `guided warmup` compiles, and how two processes share the work.

Here: calls of kernels.  Not here: the command.
"""
