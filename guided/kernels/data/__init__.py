"""The flat arrays of kernels: what each holds, how a kernel reaches them, and how it asks for what is missing."""
