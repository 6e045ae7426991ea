"""The dialects of Lark's notation that XGrammar (0.2.8) and llguidance (1.9.1) read: `guided.lark` with ``dialect``.

Neither is Lark: names, strings and patterns differ, there is no Lark lexer, and JSON Schemas, special tokens and whole
grammars stand inside.  A text is read here without Lark.

* ``tokens``, ``tree``, ``reader``: the notation of both.
* ``terminals``: what is a lexeme, as a regular language.
* ``rules``: what both read alike; ``xgrammar`` and ``llguidance``: how each cuts texts into lexemes.
* ``front``: the whole as a grammar.

Sources: the documentation of both projects (``lark_grammar.md``; ``syntax.md``) and trials with both.
"""
