"""Parts of texts by the names that a grammar's rules give them (`guided.grammar.named`).

* `leaves`: what is read at once; `slots`: the rules as places and ways between them.
* `chart`: all derivations of a text, and the one that is told; `parts`: the named parts of it.
"""
