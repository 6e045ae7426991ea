"""Grammars put together: one after another, one of several, repeated; and free text to stand between them.

The language is that of the context-free whole: every way to cut a text into parts counts.  Where a part should end at
the first text that may follow it, say so: free text by its ``excludes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from guided.errors import GrammarError, UnsatisfiableError
from guided.grammar.embed import Assembly
from guided.grammar.given import grammar_of
from guided.grammar.ir import Body, Choice, Grammar, Repetition, Terminal
from guided.grammar.ir import Sequence as Parts
from guided.grammar.regular.expr import literal
from guided.grammar.regular.lengths import with_length
from guided.grammar.regular.texts import CHARACTER
from guided.grammar.tags.free_text import innermost, text_without

__all__ = ["Part", "either", "free_text", "optional", "repeat", "sequence"]

Part: TypeAlias = "str | Grammar | type | Mapping[str, Any]"
"""A text, a grammar without a lexer, or what stands for one: a type or a JSON Schema as data."""


def sequence(*parts: Part) -> Grammar:
    """The parts one after another.

    Raises `GrammarError` for lone surrogates in a text, `UnsupportedError` for a grammar with a lexer (Lark).

    >>> import guided
    >>> sequence("Answer: ", guided.choice(["yes", "no"]))
    <Grammar 'sequence': 2 rules, lexing none>
    """
    assembly = Assembly()
    bodies = [_body(assembly, part, f"part {number}") for number, part in enumerate(parts)]
    return _finished(assembly, "sequence", Parts(tuple(bodies)), sequence, parts, {})


def either(*options: Part) -> Grammar:
    """Any one of the options; of texts alone, `guided.choice`.

    >>> import guided
    >>> either("none", guided.regex("[0-9]+"))
    <Grammar 'either': 2 rules, lexing none>
    """
    if not options:
        raise UnsatisfiableError("a choice without options", remedy="Give at least one.")
    assembly = Assembly()
    bodies = [_body(assembly, option, f"option {number}") for number, option in enumerate(options)]
    return _finished(assembly, "either", Choice(tuple(bodies)), either, options, {})


def repeat(part: Part, low: int = 0, high: int | None = None, *, separator: Part = "") -> Grammar:
    """``low`` to ``high`` texts of ``part`` (None: any number), with ``separator`` between neighbours.

    Counts are not written out: a bound of a million costs what the generated text visits.

    >>> import guided
    >>> repeat(guided.regex("[a-z]+"), 1, separator=", ")
    <Grammar 'repeated': 2 rules, lexing none>
    """
    if low < 0 or (high is not None and high < low):
        raise GrammarError(f"{low} to {high} repetitions", remedy="Let 0 <= low <= high; high=None is no limit.")
    assembly = Assembly()
    body = _body(assembly, part, "the repeated part")
    between = None if separator == "" else _body(assembly, separator, "the separator")
    options = {"separator": separator}
    given = (part, low, high)
    return _finished(assembly, "repeated", Repetition(body, low, high, between), repeat, given, options)


def optional(part: Part) -> Grammar:
    """The part, or nothing.

    >>> import guided
    >>> letters = guided.Vocabulary.from_tokens([b"n", b"o", None], eos_ids=[2])
    >>> constraint = guided.compile(guided.sequence("no", optional("n")), letters)
    >>> [constraint.is_accepting(constraint.advance_bytes(constraint.start, text)) for text in (b"no", b"non", b"n")]
    [True, True, False]
    """
    return repeat(part, 0, 1)


def free_text(*, excludes: Sequence[str] = (), max_chars: int | None = None, max_tokens: int | None = None) -> Grammar:
    """Any text in which none of ``excludes`` occurs, of up to ``max_chars`` characters and ``max_tokens`` tokens.

    It may end in the beginning of an excluded text.  Special tokens are never part of it.

    >>> free_text(excludes=["</answer>"], max_chars=200)
    <Grammar 'text': 1 rules, lexing none>
    """
    if isinstance(excludes, str) or not all(isinstance(word, str) and word for word in excludes):
        raise GrammarError("excludes are texts that are not empty", remedy='Pass a list, such as ["</answer>"].')
    if max_chars is not None and max_chars < 0:
        raise GrammarError(f"at most {max_chars} characters", remedy="Pass 0 or more.")
    words = tuple(excludes)
    for word in words:
        _text(word, "excludes")
    language = text_without(innermost(words))
    if max_chars is not None:
        language = with_length(language, CHARACTER, 0, max_chars)
    assembly = Assembly()
    options = {"excludes": words, "max_chars": max_chars, "max_tokens": max_tokens}
    start = assembly.rule("text", assembly.limited(language, "text", max_tokens))
    source = sorted(set(words)), max_chars, max_tokens
    return assembly.finish(start, source=source, rebuild=(free_text, (), options))


def _finished(
    assembly: Assembly, name: str, body: Body, made_by: Any, parts: tuple[Any, ...], options: dict[str, Any]
) -> Grammar:
    texts = [part if isinstance(part, (str, int)) else None for part in (*parts, *options.values())]
    return assembly.finish(assembly.rule(name, body), source=texts, rebuild=(made_by, parts, options))


def _body(assembly: Assembly, part: Part, where: str) -> Body:
    if isinstance(part, str):
        return Terminal(literal(_text(part, where)), repr(part)) if part else Parts(())
    return assembly.embed(grammar_of(part), where=where)


def _text(text: str, where: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise GrammarError(
            f"{text!r} holds a lone surrogate, which no text can", where=where, remedy="Remove it."
        ) from None
