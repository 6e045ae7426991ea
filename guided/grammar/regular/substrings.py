"""The texts that neighbouring chunks of a list make: what substring constructs of other engines match."""

from __future__ import annotations

from collections.abc import Sequence

from guided.grammar.regular.expr import EPSILON, Expr, alternation, concat, literal

__all__ = ["neighbouring_chunks"]


def neighbouring_chunks(chunks: Sequence[str]) -> Expr:
    """Any run of neighbouring chunks, joined; also none, the empty text.

    >>> from guided.grammar.regular.derivative import matches
    >>> language = neighbouring_chunks(["abc", "de", "fg"])
    >>> [matches(language, text) for text in (b"", b"abcde", b"defg", b"ab", b"abcfg")]
    [True, True, True, False, False]
    """
    beginnings = [EPSILON]
    rest = EPSILON
    for chunk in reversed(chunks):
        rest = alternation([EPSILON, concat(literal(chunk.encode()), rest)])
        beginnings.append(rest)
    return alternation(beginnings)
