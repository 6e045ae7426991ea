"""Kernels compiled ahead of time, into one shared library that needs neither Numba nor NumPy's headers to run.

`build` makes it (`python -m guided.kernels.ahead`): Numba lowers every kernel once (`lowering`), LLVM optimises all of
them together for each level of processors (`levels`), with a function of Python's C interface for each kernel that
Python calls (`wrappers`), and a linker makes a library of that (`linking`).  `library` finds and loads it.

A library lies beside these files, with the digest of all sources of `guided.kernels` in its name: one of other sources
is not found.
"""
