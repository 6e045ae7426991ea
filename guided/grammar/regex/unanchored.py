"""What of a pattern still counts where any text may stand beside it.

Most patterns are searched for, and many end in a repetition that adds nothing then: a text with ``[0-9]+`` in it is a
text with a digit in it.  Without it such a pattern has fewer states, and is more often seen to be over.
"""

from __future__ import annotations

from guided.grammar.regex.syntax import Alternatives, Concatenation, Node, Quantified

__all__ = ["trimmed_beside_any_text"]


def trimmed_beside_any_text(node: Node, before: bool, after: bool) -> Node:
    """A tree without assertions that matches the same texts with any text before it, after it, or both.

    >>> from guided.grammar.regex.parse import parse
    >>> trimmed_beside_any_text(parse("a*[0-9]+xb*"), False, True) == parse("a*[0-9]+x")
    True
    """
    if before:
        node = _trimmed(node, 0)
    return _trimmed(node, -1) if after else node


_NOTHING = Concatenation(())


def _trimmed(node: Node, side: int) -> Node:
    """With any text at one side (0: before it, -1: behind it) the fewest copies are enough: it holds the others."""
    if isinstance(node, Concatenation):
        parts = list(node.parts)
        while parts:
            outermost = _trimmed(parts[side], side)
            if outermost != _NOTHING:
                parts[side] = outermost
                break
            del parts[side]
        return Concatenation(tuple(parts))
    if isinstance(node, Alternatives):
        options = tuple([_trimmed(option, side) for option in node.options])
        return _NOTHING if _NOTHING in options else Alternatives(options)
    if isinstance(node, Quantified):
        body = _trimmed(node.body, side) if node.low else _NOTHING
        if body == _NOTHING or node.low == 1:
            return body
        copies = Quantified(node.body, node.low - 1, node.low - 1)
        if body == node.body:
            return Quantified(body, node.low, node.low)
        return Concatenation((body, copies) if side == 0 else (copies, body))
    return node
