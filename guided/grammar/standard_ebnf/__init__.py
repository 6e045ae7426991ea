"""The EBNF of standards: ISO/IEC 14977 and the W3C's, in which XML's recommendation is written.

* ``iso``, ``w3c``: the two notations as pieces, which `guided.grammar.folding` lowers.
* ``exceptions``: ``A - B``, exact where both are regular.

`guided.ebnf` reads them with ``dialect=``.  Neither has a lexer: rules are about characters, and every split
counts.
"""
