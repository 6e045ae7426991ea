"""`guided.tags`: free text in which triggers begin tags; a tag's content has a grammar, and after its end text goes on.

Where a tag begins is decided by the text alone: at the first trigger.  So the free text holds none, and may end in the
beginning of one only where the whole text ends or a special token begins a tag.  This is exact: the rules are in
`guided.grammar.tags.text_with_tags`, the automata in `guided.grammar.tags.free_text`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.embed import Assembly
from guided.grammar.ir import Body, Grammar, Terminal
from guided.grammar.tags.delimiters import Delimiter, Piece, parts_of, pieces_of, sequence, shown
from guided.grammar.tags.free_text import innermost, overlap, text_up_to, text_without
from guided.grammar.tags.text_with_tags import TextWithTags, choice

__all__ = ["Tag", "content_and_end", "tags"]


@dataclass(frozen=True)
class Tag:
    """A part of a text: ``begin``, then ``content``, then ``end``.

    ``begin`` and ``end`` are text, a `guided.special_token`, or a sequence of both; ``end`` may be empty, and a set of
    them is any one.  ``content`` is any grammar without a lexer; None is free text, which ends where an end first
    occurs, and in which ``max_tokens`` tokens at most begin.

    >>> import guided
    >>> grammar = guided.tags([Tag("<year>", guided.regex("[0-9]{4}"), "</year>")])
    >>> every_byte = guided.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
    >>> constraint = guided.compile(grammar, every_byte)
    >>> constraint.is_accepting(constraint.advance_bytes(constraint.start, b"Born in <year>1909</year>."))
    True
    """

    begin: Delimiter
    content: Grammar | None = None
    end: Delimiter | Set[Delimiter] = ""
    max_tokens: int | None = None


def tags(
    each: Sequence[Tag],
    /,
    *,
    triggers: Sequence[str] | None = None,
    at_least_one: bool = False,
    at_most_one: bool = False,
    stop_after_first: bool = False,
    free_text: bool = True,
    separator: str = "",
    excludes: Sequence[str] = (),
) -> Grammar:
    """Free text with tags in it, in any number and order: ``each`` are those that there may be.

    A tag begins at the first *trigger* in the text.  Triggers are the tags' beginnings, unless ``triggers`` gives
    shorter ones, each the beginning of some (``"<function="`` for ``"<function=a>"`` and ``"<function=b>"``): free text
    never holds a trigger, so what follows one is a tag.  Tags that begin with a special token are triggered by it, and
    with ``triggers`` that begin them not, so are tags with one further on in their beginning.

    ``at_least_one`` asks for one; ``at_most_one`` leaves only free text after the first, and ``stop_after_first``
    nothing.  ``free_text=False`` leaves out all of it: tags stand next to each other, with ``separator`` between.
    Free text does not hold ``excludes``, but may end in the beginning of one.

    Raises `GrammarError` for triggers that contradict each other, `UnsupportedError` for contents with a lexer (Lark).

    >>> import guided
    >>> call = Tag("<tool_call>", guided.json_schema({"type": "object"}), guided.special_token("<|end|>"))
    >>> tags([call], at_least_one=True).special_tokens
    ('<|end|>',)
    """
    each = tuple(each)
    options: dict[str, Any] = {
        "triggers": None if triggers is None else tuple(triggers),
        "at_least_one": at_least_one,
        "at_most_one": at_most_one,
        "stop_after_first": stop_after_first,
        "free_text": free_text,
        "separator": separator,
        "excludes": tuple(excludes),
    }
    if not each:
        raise GrammarError("no tags", remedy="Pass at least one Tag(begin, content, end).")
    if not isinstance(separator, str):
        raise GrammarError(f"a separator is text, not {separator!r}", remedy='Pass separator="..." as a string.')
    if separator and free_text:
        raise GrammarError(
            "a separator stands between tags that follow each other, and here free text does",
            remedy="Pass free_text=False with it.",
        )
    for number, tag in enumerate(each):
        if not isinstance(tag, Tag):
            raise GrammarError(f"{tag!r} is not a tag", where=f"tag {number}", remedy="Pass Tag(begin, content, end).")
    begins = [pieces_of(tag.begin, f"the begin of tag {number}") for number, tag in enumerate(each)]
    ends = [_ends_of(tag.end, f"the end of tag {number}") for number, tag in enumerate(each)]
    left_out = _excluded(excludes)
    assembly = Assembly()
    rests: list[Body] = []
    for number, (tag, end) in enumerate(zip(each, ends, strict=True)):
        if not begins[number]:
            raise GrammarError("a tag begins with nothing", where=f"tag {number}", remedy="Give it a begin.")
        rests.append(
            assembly.rule(shown(begins[number]), content_and_end(assembly, tag.content, end, number, tag.max_tokens))
        )
    text = TextWithTags(assembly, begins, _triggers(begins, triggers, left_out), rests, left_out)
    if not free_text:
        start = text.side_by_side(separator, at_least_one, at_most_one or stop_after_first)
    else:
        start = text.mixed(at_least_one, at_most_one, stop_after_first)
    contents = [tag.content and tag.content.key for tag in each]
    limits = [tag.max_tokens for tag in each]
    source = (plain(begins), list(map(plain, ends)), contents, limits, *options.values())
    return assembly.finish(start, source=source, rebuild=(tags, (each,), options))


def content_and_end(
    assembly: Assembly,
    content: Grammar | None,
    ends: Sequence[Sequence[Piece]],
    number: int,
    max_tokens: int | None = None,
) -> Body:
    """A tag's content and one of its ends; free content ends where the first piece of one first occurs.

    Raises `GrammarError` for free content without an end.
    """
    where = f"tag {number}"
    if content is not None:
        if max_tokens is not None:
            raise GrammarError(
                "max_tokens beside a content", where=where, remedy="Leave one out: it limits the tokens of free text."
            )
        closing = choice([sequence(parts_of(assembly, end)) for end in ends])
        return sequence([assembly.embed(content, where=where), closing])
    if not all(ends):
        raise GrammarError("free content without an end", where=where, remedy="Give the tag an end, or a content.")
    words = sorted({end[0] for end in ends if isinstance(end[0], str)})
    for word in words:
        if word not in innermost(words):
            raise GrammarError(
                f"the end {word!r} is never read in full: it holds another", where=where, remedy="Remove one of them."
            )
    if max_tokens is not None:
        after = choice([sequence(parts_of(assembly, end)) for end in ends])
        return sequence([_limited(assembly, words, max_tokens, where), after])
    return choice([sequence([*_free_up_to(assembly, end[0], words), *parts_of(assembly, end[1:])]) for end in ends])


def free_up_to(assembly: Assembly, piece: Piece, max_tokens: int | None) -> list[Body]:
    """Free text, and the piece where it first occurs."""
    words = [piece] if isinstance(piece, str) else []
    if max_tokens is not None:
        return [_limited(assembly, words, max_tokens, "thinking"), *parts_of(assembly, [piece])]
    return _free_up_to(assembly, piece, words)


def _free_up_to(assembly: Assembly, piece: Piece, words: Sequence[str]) -> list[Body]:
    """Text without any of the words, and the piece: one of them, or a special token."""
    if isinstance(piece, str):
        return [Terminal(text_up_to(piece, words), f"text up to {piece!r}")]
    return [Terminal(text_without(words), "text"), assembly.embed(piece)]


def _limited(assembly: Assembly, words: Sequence[str], max_tokens: int, where: str) -> Body:
    """Text of some tokens without any of the words, one of which comes behind it."""
    if overlap(words):
        # Behind text that holds none, a word would not be the first where the text ends in the beginning of one.
        raise UnsupportedError(
            f"max_tokens before {' or '.join(map(repr, words))}, the end of which begins one",
            where=where,
            remedy="Let the text end otherwise, with a special token for instance, or leave max_tokens out.",
        )
    return assembly.limited(text_without(words), where, max_tokens)


def plain(delimiters: Sequence[Sequence[Piece]]) -> list[list[tuple[str, str]]]:
    """Delimiters as plain values, for a key."""
    return [[("text", p) if isinstance(p, str) else ("special", p.special_tokens[0]) for p in d] for d in delimiters]


def _ends_of(end: Delimiter | Set[Delimiter], where: str) -> list[tuple[Piece, ...]]:
    """Each end in pieces, in an order that does not depend on the set's."""
    if not isinstance(end, Set):
        return [pieces_of(end, where)]
    if not end:
        raise GrammarError("a set of ends without any", where=where, remedy='Pass "" where nothing ends the tag.')
    return sorted((pieces_of(each, where) for each in end), key=lambda pieces: plain([pieces]))


def _excluded(words: Sequence[str]) -> list[str]:
    if isinstance(words, str) or not all(isinstance(word, str) and word for word in words):
        raise GrammarError("excludes are texts that are not empty", remedy='Pass a list, such as ["</answer>"].')
    return sorted(set(words))


def _triggers(begins: Sequence[Sequence[Piece]], given: Sequence[str] | None, excludes: Sequence[str]) -> list[str]:
    """The triggers that are text; raises `GrammarError` where it is not certain which tag begins."""
    texts = [pieces[0] for pieces in begins if isinstance(pieces[0], str)]
    if given is None:
        # Of beginnings that continue another the shorter one is the trigger for both.
        found = sorted({text for text in texts if not any(o != text and text.startswith(o) for o in texts)})
    else:
        found = sorted(set(given))
        if isinstance(given, str) or not all(isinstance(trigger, str) and trigger for trigger in found):
            raise GrammarError("triggers are texts that are not empty", remedy='Pass a list, such as ["<function="].')
        for pieces in begins:
            text = pieces[0]
            # Without a trigger of its own the first special token in it tells that a tag begins.
            if all(isinstance(p, str) for p in pieces) and not any(str(text).startswith(t) for t in found):
                raise GrammarError(
                    f"no trigger begins the tag {text!r}", remedy="Add one: a beginning of it, or all of it."
                )
        for trigger in found:
            if not any(text.startswith(trigger) for text in texts):
                raise GrammarError(f"the trigger {trigger!r} begins no tag", remedy="Remove it.")
    for trigger in found:
        for other in found:
            if other != trigger and other in trigger:
                raise GrammarError(
                    f"the trigger {trigger!r} is never read in full: it holds {other!r}, which begins a tag first",
                    remedy="Change one of them.",
                )
        for word in excludes:
            if word in trigger or word.endswith(trigger):
                raise GrammarError(
                    f"the trigger {trigger!r} and the excluded text {word!r} end in the same place, or the text before",
                    remedy="Change one of them.",
                )
    return found
