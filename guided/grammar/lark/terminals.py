"""Lark's terminals as ordered patterns: match order, keywords inside names, ignored ones.

Source of every rule here: lark/lexer.py, `BasicLexer` and `_create_unless` (Lark 1.2, 1.3).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from guided.errors import GuidedError, UnsupportedError
from guided.grammar.lexing import LexerTerminal
from guided.grammar.regex.escapes import LIBRARY
from guided.grammar.regex.parse import parse
from guided.grammar.regex.syntax import Characters, Dialect
from guided.grammar.regular.characters import special_character


@dataclass(frozen=True, slots=True)
class Terminals:
    """All terminals in match order, and their indices by name.

    ``ignore``: terminals that are skipped and never parsed.  ``phantoms[i]`` is a terminal that stands for the ignored
    ``i`` when a keyword turned into it: Lark does not ignore such a token.
    """

    items: tuple[LexerTerminal, ...]
    index: dict[str, int]
    ignore: frozenset[int]
    phantoms: dict[int, int]


def for_dynamic_lexer(
    definitions: Sequence[Any],
    ignored: Sequence[str],
    used: Collection[str],
    special: Mapping[str, str],
    regex: bool = False,
) -> Terminals:
    """Lark's terminal definitions where each is matched alone; ``used`` are the names in rules.

    ``special``: the special token behind each terminal that stands for one.

    A terminal that is ignored and used in rules may be either: its ignored half gets an index of its own.  Raises
    `UnsupportedError`, `GrammarError` or `LimitError` naming the terminal.
    """
    found = for_contextual_lexer(definitions, ignored, special, keywords=False, regex=regex)
    items = list(found.items)
    ignore = set(found.ignore)
    for name in ignored:
        if name in used:
            ignore.remove(found.index[name])
            ignore.add(len(items))
            items.append(items[found.index[name]])
    return Terminals(tuple(items), found.index, frozenset(ignore), {})


_CLASS_OR_ESCAPE = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\(?![0-7]{3}).", re.DOTALL)


def in_match_order(definitions: Iterable[Any]) -> list[Any]:
    """Lark's terminals, the first that matches first."""
    return sorted(definitions, key=lambda d: (-d.priority, -d.pattern.max_width, -len(d.pattern.value), d.name))


def for_contextual_lexer(
    definitions: Sequence[Any],
    ignored: Sequence[str],
    special: Mapping[str, str],
    keywords: bool = True,
    regex: bool = False,
) -> Terminals:
    """Lark's terminal definitions in match order; with ``keywords``, also what a string inside a pattern does.

    ``regex``: are the patterns those of the `regex` package?

    ``special``: the special token behind each terminal that stands for one; what Lark holds for its text counts for
    nothing.

    Raises `UnsupportedError`, `GrammarError` or `LimitError` naming the terminal.
    """
    ordered = in_match_order(definitions)
    index = {str(definition.name): position for position, definition in enumerate(ordered)}
    ignore = frozenset(index[str(name)] for name in ignored)
    module: Any = importlib.import_module("regex") if regex else re
    items = [
        LexerTerminal(special[name], Characters(special_character(special[name])))
        if (name := str(definition.name)) in special
        else LexerTerminal(_shown(definition), _node(definition, regex))
        for definition in ordered
    ]
    phantoms: dict[int, int] = {}
    if keywords:
        _check_together(ordered, module)
        for position, definition in enumerate(ordered):
            if definition.pattern.type != "re":
                continue
            inside = [
                other for other in ordered if other.name not in special and _is_keyword(definition, other, module)
            ]
            if not inside:
                continue
            pairs = []
            # What Lark ignores it ignores before it looks for keywords.
            for other in inside if position not in ignore else ():
                target = index[str(other.name)]
                if target in ignore:
                    target = phantoms.setdefault(target, len(ordered) + len(phantoms))
                pairs.append((items[index[str(other.name)]].pattern, target))
            absorbed = {index[str(other.name)] for other in inside if other.pattern.flags <= definition.pattern.flags}
            # A phantom has no text of its own: its original is tried before it, and where that is absorbed it is too.
            absorbs = frozenset(absorbed | {phantoms[target] for target in absorbed if target in phantoms})
            items[position] = replace(items[position], keywords=tuple(pairs), absorbs=absorbs)
        items += [replace(items[original], keywords=(), absorbs=frozenset()) for original in phantoms]
    return Terminals(tuple(items), index, ignore, phantoms)


def _shown(definition: Any) -> str:
    """The name in the grammar's own words: terminals that Lark made up are shown as they were written."""
    name = str(definition.name)
    if name.startswith("__") and definition.pattern.raw:
        return str(definition.pattern.raw)
    return name


def _node(definition: Any, regex: bool) -> Any:
    try:
        return parse(definition.pattern.to_regexp(), Dialect.PYTHON, LIBRARY if regex else 0)
    except GuidedError as error:
        raise type(error)(
            f"terminal {_shown(definition)}: {error.what}",
            where=f"{error.where} of {definition.pattern.to_regexp()}" if error.where else None,
            remedy=error.remedy,
        ) from error


def _is_keyword(pattern: Any, string: Any, module: Any) -> bool:
    """Does the regex terminal match exactly the string terminal's text?"""
    if string.pattern.type != "str" or string.priority != pattern.priority:
        return False
    match = module.match(pattern.pattern.to_regexp(), string.pattern.value)
    return match is not None and match[0] == string.pattern.value


def _check_together(definitions: Sequence[Any], module: Any) -> None:
    """Lark joins terminals into one expression, in which flags, group names and group numbers may clash."""
    for definition in definitions:
        written = definition.pattern.to_regexp()
        if any(found[0][1] in "123456789" for found in _CLASS_OR_ESCAPE.finditer(written) if found[0][0] == "\\"):
            raise UnsupportedError(
                f"terminal {_shown(definition)}: a backreference by number in {written}: Lark joins all terminals into"
                " one regular expression, which numbers their groups anew",
                remedy="Name the group: (?P<quote>...), (?P=quote).",
            )
    try:
        module.compile("|".join(f"(?P<{d.name}>{d.pattern.to_regexp()})" for d in definitions))
    except module.error as error:
        raise UnsupportedError(
            f"Lark cannot join the terminals into one regular expression: {error}",
            remedy="Do not name groups in terminals, and write flags after the closing slash.",
        ) from error
