"""XGrammar's EBNF, version 0.2.8: GBNF's looks, with rules wherever a line begins with one, options and macros.

* ``tokens``: the text cut into tokens, with their places.
* ``options``: what stands in brackets behind a rule's name.
* ``macros``: ``Regex``, ``Substring``, ``Token``, ``TagDispatch``.
* ``reader``: the rules as pieces, which `guided.grammar.folding` lowers.

Sources: XGrammar's documentation of the notation (``ebnf_grammar.md``) and trials with its parser and matcher.
"""

from guided.grammar.ebnf.front import ebnf

__all__ = ["ebnf"]
