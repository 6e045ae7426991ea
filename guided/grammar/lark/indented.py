"""Indentation as Lark's `Indenter` reads it: the grammar that is left when new lines and brackets are marks.

Lark's contextual lexer cuts the text, and the indenter puts INDENT and DEDENT between the tokens.  Here the terminal of
new lines, INDENT and DEDENT are characters that no text holds, and so is what stands behind brackets.  What reads the
text, keeps the columns and writes these marks is `guided.constraint.indented`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from guided.errors import UnsupportedError
from guided.grammar.lark.load import Loaded
from guided.grammar.lark.terminals import Terminals, in_match_order
from guided.grammar.lexing import CLOSE, DEDENT, INDENT, INSIDE, NEWLINE, OPEN, Indentation, LexerTerminal
from guided.grammar.regex.lower import lower
from guided.grammar.regex.parse import parse
from guided.grammar.regex.syntax import Characters, Concatenation, Dialect
from guided.grammar.regular.characters import Utf8, special_character
from guided.grammar.regular.derivative import edges, remainder
from guided.grammar.regular.expr import Expr

__all__ = ["marked_brackets", "with_marks"]


def _check_rules(loaded: Loaded, postlex: Any) -> None:
    """Raise `UnsupportedError` unless marks are nested in the rules so that every text can be completed."""
    newline, indent, dedent = postlex.NL_type, postlex.INDENT_type, postlex.DEDENT_type
    opens, closes = set(postlex.OPEN_PAREN_types), set(postlex.CLOSE_PAREN_types)
    layout = {newline, indent, dedent}
    expansions: dict[str, list[list[tuple[str, bool]]]] = {}
    for rule in loaded.rules:
        own = [(str(symbol.name), bool(symbol.is_term)) for symbol in rule.expansion]
        expansions.setdefault(str(rule.origin.name), []).append(own)
    has_layout: set[str] = set()
    loose: set[str] = set()
    """Rules that may end otherwise than with a new line or a dedent."""
    empty: set[str] = set()

    def lasts(symbols: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
        """What a text of these symbols may end with."""
        found = []
        for symbol, term in reversed(symbols):
            found.append((symbol, term))
            if term or symbol not in empty:
                break
        return found

    def is_loose(symbol: tuple[str, bool]) -> bool:
        return symbol[0] not in (newline, dedent) if symbol[1] else symbol[0] in loose

    changed = True
    while changed:
        changed = False
        for name, options in expansions.items():
            if name not in empty and any(all(not term and s in empty for s, term in option) for option in options):
                empty.add(name)
                changed = True
    changed = True
    while changed:
        changed = False
        for name, options in expansions.items():
            for option in options:
                if name not in has_layout and any(s in (layout if term else has_layout) for s, term in option):
                    has_layout.add(name)
                    changed = True
                if name not in loose and any(map(is_loose, lasts(option))):
                    loose.add(name)
                    changed = True

    def refuse(rule: str, what: str) -> UnsupportedError:
        return UnsupportedError(f"rule {rule!r}: {what}", remedy="Rewrite the rule as Lark's Python grammar has it.")

    for name, options in expansions.items():
        for option in options:
            stack: list[str] = []
            before: tuple[str, bool] = ("", True)
            for place, (symbol, term) in enumerate(option):
                if "(" in stack and symbol in (layout if term else has_layout):
                    raise refuse(name, "a new line or indentation stands between brackets, where the indenter drops it")
                if term and symbol == indent:
                    if before != (newline, True):
                        raise refuse(name, f"{indent} does not stand directly behind {newline}")
                    stack.append(indent)
                elif term and symbol == dedent:
                    if any(map(is_loose, lasts(option[:place]))):
                        raise refuse(name, f"{dedent} may stand behind something else than a new line")
                    if not stack or stack.pop() != indent:
                        raise refuse(name, f"{dedent} without {indent}")
                elif term and symbol in opens:
                    stack.append("(")
                elif term and symbol in closes and (not stack or stack.pop() != "("):
                    raise refuse(name, f"{symbol} closes nothing")
                before = symbol, term
            if stack:
                raise refuse(name, f"{indent} or a bracket is not closed")


def with_marks(loaded: Loaded, postlex: Any) -> tuple[Loaded, dict[str, str], Indentation]:
    """The grammar with terminals for the marks, the marks by terminal, and what reads the text.

    Raises `UnsupportedError` where the new line's terminal or a bracket cannot be told from other text.
    """
    from lark.lexer import PatternStr, TerminalDef

    names = {str(terminal.name): terminal for terminal in loaded.terminals}
    needed = [postlex.NL_type, *postlex.OPEN_PAREN_types, *postlex.CLOSE_PAREN_types]
    newline = names.get(postlex.NL_type)
    if newline is None or postlex.NL_type in loaded.ignore:
        raise UnsupportedError(
            f"the indenter's {postlex.NL_type} is no terminal that the rules read",
            remedy="Name the new line's terminal.",
        )
    for name in needed[1:]:
        if name in names and (names[name].pattern.type != "str" or names[name].pattern.flags):
            raise UnsupportedError(f"the indenter's bracket {name} is no plain string", remedy="Make it one.")
    _check_rules(loaded, postlex)
    pattern = LexerTerminal(postlex.NL_type, parse(newline.pattern.to_regexp(), Dialect.PYTHON))
    language = lower(pattern.pattern, Utf8())
    begins = _first_bytes(language)
    ordered = in_match_order(loaded.terminals)
    kept = []
    for place, other in enumerate(ordered):
        if other is newline:
            continue
        own = _first_bytes(lower(parse(other.pattern.to_regexp(), Dialect.PYTHON), Utf8()))
        if own.isdisjoint(begins):
            kept.append(other)
            continue
        certain = all((after := remainder(language, byte)) is not None and after.nullable for byte in own & begins)
        if not (own <= begins and certain and place > ordered.index(newline)):
            raise UnsupportedError(
                f"terminal {other.name} may begin where {postlex.NL_type} does",
                remedy="Let it begin otherwise, or let the new line's terminal match it.",
            )
        if any(str(symbol.name) == other.name for rule in loaded.rules for symbol in rule.expansion):
            raise UnsupportedError(
                f"{postlex.NL_type} is always read in the place of terminal {other.name}",
                remedy="Leave it out of the rules.",
            )
    marks = {postlex.NL_type: NEWLINE, postlex.INDENT_type: INDENT, postlex.DEDENT_type: DEDENT, "__INSIDE__": INSIDE}
    kept += [TerminalDef(name, PatternStr(f"\ue000{ord(mark)}\ue000"), 0) for name, mark in marks.items()]
    known = {str(terminal.name) for terminal in kept}
    reader = Indentation(
        pattern,
        postlex.tab_len,
        tuple(names[name].pattern.value.encode() for name in postlex.OPEN_PAREN_types if name in names),
        tuple(names[name].pattern.value.encode() for name in postlex.CLOSE_PAREN_types if name in names),
    )
    ignore = tuple(name for name in loaded.ignore if name in known)
    return replace(loaded, terminals=tuple(kept), ignore=(*ignore, "__INSIDE__")), marks, reader


def marked_brackets(terminals: Terminals, postlex: Any) -> Terminals:
    """Brackets with their marks behind them."""
    items = list(terminals.items)
    for names, mark in ((postlex.OPEN_PAREN_types, OPEN), (postlex.CLOSE_PAREN_types, CLOSE)):
        for name in names:
            if name in terminals.index:
                place = terminals.index[name]
                both = Concatenation((items[place].pattern, Characters(special_character(mark))))
                items[place] = replace(items[place], pattern=both)
    return replace(terminals, items=tuple(items))


def _first_bytes(language: Expr) -> set[int]:
    return {byte for low, high, _ in edges(language) for byte in range(low, high + 1)}
