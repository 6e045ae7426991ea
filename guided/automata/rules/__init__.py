"""The rule graph: from the rules of a grammar to nodes that kernels walk, with their prices."""
