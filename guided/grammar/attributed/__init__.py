"""L-attributed grammars: languages whose rules carry values from left to right, such as the names that are in scope.

A grammar is a tree of `nodes`; `threads` reads it, lexeme by lexeme; `lexis` cuts texts into lexemes; `closing` ends a
text; `language` puts them together as a language over bytes (`guided.constraint.live.LiveLanguage`).  Nothing here
knows SQL.

Sources: Knuth, *Semantics of Context-Free Languages*, 1968; Lewis, Rosenkrantz and Stearns, *Attributed Translations*,
1974 (L-attributed).
"""
