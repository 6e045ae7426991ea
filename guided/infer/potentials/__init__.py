"""What may be asked of a sequence: log weights for finished texts and for their prefixes.

Here: the protocol, constraints and functions of texts as potentials.  Not here: what draws from them.
"""
