"""Lark grammars: loaded by the Lark library itself, with Lark's meaning.

`lark` is the front end.  What Lark has compiled (rules, terminals, parse table) is read here into the IR; nothing of
Lark is needed afterwards.

* ``load``: call Lark, turn its errors into ours.
* ``terminals``: Lark's terminals as ordered patterns, with keywords and match order.
* ``tables``: the LALR parse table, unless the grammar has conflicts.
* ``rules``: the compiled rules as IR bodies.
"""

from guided.grammar.lark.front import lark

__all__ = ["lark"]
