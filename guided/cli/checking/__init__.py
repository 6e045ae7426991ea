"""The parts of `guided check`: grammars and tokenizers from arguments, facts, comparisons.

Here: what reads and describes a grammar.  Not here: what runs a model.
"""
