"""`guided.think`: free reasoning text, and then a grammar."""

from __future__ import annotations

from guided.errors import GrammarError
from guided.grammar.embed import Assembly
from guided.grammar.ir import Body, Choice, Grammar, Terminal
from guided.grammar.regular.expr import literal, repeat
from guided.grammar.tags.delimiters import Delimiter, parts_of, pieces_of, sequence
from guided.grammar.tags.structural import free_up_to, plain

__all__ = ["think"]

MAX_NEWLINES = 2
"""Line ends between the thinking and the answer, unless ``separator`` is given: templates of reasoning models have
one or two."""


def think(
    grammar: Grammar,
    *,
    begin: Delimiter | None = "<think>",
    end: Delimiter = "</think>",
    separator: str | None = None,
    optional: bool = False,
    max_tokens: int | None = None,
) -> Grammar:
    """Free text between ``begin`` and the first ``end``, and after it a text of ``grammar``.

    ``begin`` and ``end`` are text, or special tokens where the model's tokenizer has them so:
    ``guided.special_token("</think>")``.  ``begin=None``: the prompt ended with it already.  ``separator`` is the text
    between ``end`` and the answer; None is up to two line ends.  ``optional`` allows the answer alone.  Of the free
    text ``max_tokens`` tokens at most begin in it.

    Raises `UnsupportedError` for a grammar with a lexer (Lark), which cannot be a part of another.

    >>> import guided
    >>> think(guided.choice(["yes", "no"]))
    <Grammar 'thinking and an answer': 2 rules, lexing none>
    """
    opening = () if begin is None else pieces_of(begin, "begin")
    closing = pieces_of(end, "end")
    if not closing:
        raise GrammarError("thinking without an end", remedy="Pass the text or special token that ends it.")
    if begin is not None and not opening:
        raise GrammarError("thinking begins with nothing", remedy="Pass begin=None if the prompt has begun it.")
    assembly = Assembly()
    answer = assembly.embed(grammar, where="the answer")
    between = literal(b"\n") if separator is None else literal(separator.encode())
    if separator is None:
        between = repeat(between, 0, MAX_NEWLINES)
    parts: list[Body] = [
        *parts_of(assembly, opening),
        *free_up_to(assembly, closing[0], max_tokens),
        *parts_of(assembly, closing[1:]),
        *([] if separator == "" else [Terminal(between, "line ends" if separator is None else repr(separator))]),
        answer,
    ]
    body = sequence(parts)
    start = assembly.rule("thinking and an answer", Choice((body, answer)) if optional else body)
    source = (plain((opening, closing)), separator, optional, max_tokens)
    options = {
        "begin": begin, "end": end, "separator": separator, "optional": optional, "max_tokens": max_tokens,
    }  # fmt: skip
    return assembly.finish(start, source=source, rebuild=(think, (grammar,), options))
