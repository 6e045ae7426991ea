"""The rules of an EBNF text as pieces, with their options applied.

Raises errors with line and column; what the rules mean together is `guided.grammar.folding`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.ebnf.macros import MACROS, Arguments, Mention, Value, macro, other_tokens
from guided.grammar.ebnf.options import RuleOptions, read_options
from guided.grammar.ebnf.tokens import Token, TokenKind, character_at, cut
from guided.grammar.folding import place_of, regular_language
from guided.grammar.named import Ending, NamedRule, NamedRules, Peer
from guided.grammar.pieces import (
    Class,
    Definition,
    Either,
    Name,
    Piece,
    Regular,
    Repeated,
    Row,
    Text,
    pieces_of,
    row,
)
from guided.grammar.regular.characters import ANY_CHARACTER, CharacterSet, negate, normalise
from guided.grammar.regular.expr import Expr

__all__ = ["Read", "read_ebnf"]

MAX_NESTING = 100
"""Parentheses inside each other; what follows recurses."""
_CLASS_ESCAPES = "^$\\.*+?()[]{}|/-"


@dataclass(frozen=True, slots=True)
class Read:
    """The rules by name, in order, and what is to be said about them."""

    definitions: Mapping[str, Definition]
    notes: tuple[str, ...]
    named: NamedRules | None = None


def read_ebnf(text: str, special_tokens: Mapping[str, int] | None = None) -> Read:
    """All rules; ``special_tokens`` are a tokenizer's by name, for references by id.

    >>> list(read_ebnf('root ::= "a" | b\\nb ::= [0-9]{2,}').definitions)
    ['root', 'b']
    """
    return _Reader(text, special_tokens).read()


class _Reader:
    def __init__(self, text: str, special_tokens: Mapping[str, int] | None) -> None:
        self.text = text
        self.special_tokens = special_tokens
        self.tokens = cut(text)
        self.at = 0
        self.depth = 0
        self.notes: list[str] = []

    def read(self) -> Read:
        definitions: dict[str, Definition] = {}
        options: dict[str, RuleOptions] = {}
        while self.token.kind is not TokenKind.END:
            name = self.token
            if name.kind is not TokenKind.RULE:
                raise self.error(f"unexpected {name.text!r}", name, "A rule begins: name ::= ...")
            if name.text in definitions:
                raise self.error(f"rule {name.text!r} is defined twice", name, "Join the definitions with '|'.")
            self.at += 1
            if self.token.kind is TokenKind.CLASS:
                options[name.text] = read_options(self.token.text, name.text, self.place(name))
                self.notes += options[name.text].notes
                self.at += 1
            self.expect("::=", "after the name of a rule")
            definitions[name.text] = Definition(self.either(), name.offset)
            if self.takes("(="):
                self.either()
                self.expect(")", "after a look-ahead")
                self.notes.append(
                    f"rule {name.text}: its look-ahead is a hint for XGrammar's cache and narrows nothing"
                )
        changed = {rule: chosen for rule, chosen in options.items() if chosen.change_language}
        narrowed = self.with_options(definitions, changed)
        within = {rule: piece.language for rule, piece in narrowed.items()}
        rules = {rule: self.named(chosen, definitions) for rule, chosen in options.items() if chosen.name_parts}
        named = NamedRules(definitions, "root", Peer.XGRAMMAR, rules, within)
        changed_definitions = {rule: Definition(piece, definitions[rule].offset) for rule, piece in narrowed.items()}
        return Read({**definitions, **changed_definitions}, tuple(self.notes), named)

    def named(self, chosen: RuleOptions, definitions: Mapping[str, Definition]) -> NamedRule:
        """What a rule's options say about reading its texts."""
        ending = None
        if chosen.ending is not None:
            body = self.numbered(chosen.ending.body_rule, definitions)
            marker = self.numbered(chosen.ending.marker_rule, definitions)
            ending = Ending(body, marker, chosen.ending.n_bytes, chosen.ending.is_hidden)
        return NamedRule(chosen.capture, ending, chosen.marker_capture)

    def numbered(self, number: int | None, definitions: Mapping[str, Definition]) -> Expr | None:
        """The language of a rule by its place, as XGrammar prints those of bodies and markers."""
        names = list(definitions)
        if number is None or number >= len(names):
            return None
        return regular_language(definitions[names[number]].body, definitions)

    def with_options(
        self, definitions: dict[str, Definition], changed: Mapping[str, RuleOptions]
    ) -> dict[str, Regular]:
        """The rules of which the options change the language, which must be regular."""
        result: dict[str, Regular] = {}
        for rule, chosen in changed.items():
            definition = definitions[rule]
            where = place_of(self.text, definition.offset)
            option = chosen.shown
            inside = {piece.name for piece in pieces_of([definition.body]) if isinstance(piece, Name)}
            language = regular_language(definition.body, definitions)
            if language is None or self.reached(inside, definitions) & changed.keys():
                what = "is not regular" if language is None else "names another with lazy, max_chars or max_tokens"
                raise UnsupportedError(
                    f"rule {rule!r} has the option {option} and {what}",
                    where=where,
                    remedy="Write a rule of characters, strings and repetitions, without recursion and special tokens.",
                )
            result[rule] = Regular(chosen.applied(language), f"{rule}[{option}]", most_tokens=chosen.max_tokens)
        return result

    def reached(self, names: set[str], definitions: Mapping[str, Definition]) -> set[str]:
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found and name in definitions:
                found.add(name)
                waiting += [piece.name for piece in pieces_of([definitions[name].body]) if isinstance(piece, Name)]
        return found

    # Expressions

    def either(self) -> Piece:
        options = [self.sequence()]
        while self.takes("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def sequence(self) -> Piece:
        parts = [self.repeated()]
        while not (self.token.kind in (TokenKind.RULE, TokenKind.END) or self.sees("|", ")", "(=")):
            parts.append(self.repeated())
        return row(parts)

    def repeated(self) -> Piece:
        piece = self.element()
        for mark, fewest, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self.takes(mark):
                return Repeated(piece, fewest, most)
        opening = self.token
        if not self.takes("{"):
            return piece
        low = self.integer()
        high: int | None = low
        if self.takes(","):
            unbounded = self.sees("}") or self.token.text == "-1"
            self.at += self.token.text == "-1"
            high = None if unbounded else self.integer()
        if high is not None and high < low:
            raise self.error("the counts of this repetition are in the wrong order", opening, "Write {low,high}.")
        self.expect("}", "after the counts of a repetition")
        return Repeated(piece, low, high)

    def integer(self) -> int:
        token = self.token
        self.at += 1
        if token.kind is not TokenKind.NUMBER or token.text.startswith("-"):
            raise self.error("expected a number", token, "Write {m}, {m,} or {m,n}.")
        if len(token.text) > 10:
            raise LimitError("a repetition count is too large", where=self.place(token), remedy="Stay below 10**9.")
        return int(token.text)

    def element(self) -> Piece:
        token = self.token
        self.at += 1
        if token.kind is TokenKind.STRING:
            return Text(token.value)
        if token.kind is TokenKind.CLASS:
            return self.character_class(token)
        if token.kind is TokenKind.NAME:
            if token.text in MACROS:
                return self.macro(token)
            return Name(token.text, token.offset)
        if token.kind is TokenKind.MARK and token.text == "(":
            self.enter(token)
            inside: Piece = Row(()) if self.sees(")") else self.either()
            self.expect(")", "to close the group")
            self.depth -= 1
            return inside
        raise self.error(
            f"expected a string, a class, a name or a group before {token.text or token.kind.value!r}",
            token,
            'Write "" for the empty text, and quote what is text.',
        )

    def enter(self, token: Token) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise LimitError(
                f"parentheses nest deeper than {MAX_NESTING} levels",
                where=self.place(token),
                remedy="Give the inner parts rules of their own.",
            )

    def character_class(self, token: Token) -> Piece:
        inside, end = token.offset + 1, token.offset + len(token.text) - 1
        negated = self.text[inside] == "^"
        inside += negated
        characters: list[tuple[int, int]] = []
        while inside < end:
            low, inside = self.class_character(inside)
            high = low
            if self.text[inside] == "-" and inside + 1 < end:
                high, inside = self.class_character(inside + 1)
                if high < low:
                    raise self.error("the ends of a range are in the wrong order", token, "Write the lower one first.")
            characters.append((low, high))
        found: CharacterSet = normalise(characters)
        if negated:
            found = negate(found) if found else ANY_CHARACTER
        return Class(found) if found else Either(())

    def class_character(self, at: int) -> tuple[int, int]:
        """The code point at an offset, and the offset behind it."""
        if self.text[at] == "\\" and self.text[at + 1] in "dDsSwW":
            raise GrammarError(
                f"the escape \\{self.text[at + 1]} in a class",
                where=place_of(self.text, at),
                remedy="Write the ranges: [0-9], [ \\t\\n\\r], [a-zA-Z0-9_].",
            )
        code, width = character_at(self.text, at, _CLASS_ESCAPES)
        return code, at + width

    # Macros

    def macro(self, token: Token) -> Piece:
        arguments = self.arguments(token)
        text = token.text == "ExcludeToken" and self.sees("*")
        if text or token.text == "TokenTagDispatch":
            self.notes.append(f"no special token but those named is in the text of {token.text} at {self.place(token)}")
        if text:
            return other_tokens(arguments, self.special_tokens)
        return macro(token.text, arguments, self.special_tokens)

    def arguments(self, token: Token) -> Arguments:
        self.expect("(", f"after {token.text}")
        values: list[Value] = []
        named: dict[str, Value] = {}
        while not self.sees(")"):
            follows = self.tokens[self.at + 1]
            if self.token.kind is TokenKind.NAME and follows.text == "=" and follows.kind is TokenKind.MARK:
                name = self.token.text
                self.at += 2
                named[name] = self.value()
            else:
                values.append(self.value())
            if not self.takes(","):
                break
            if self.sees(")"):
                raise self.error("a macro's arguments end in a comma", self.token, "Leave it out.")
        self.expect(")", f"after the arguments of {token.text}")
        return Arguments(tuple(values), named, self.place(token))

    def value(self) -> Value:
        token = self.token
        self.at += 1
        if token.kind is TokenKind.STRING:
            return token.value
        if token.kind is TokenKind.NUMBER:
            return int(token.text[:20])
        if token.kind is TokenKind.NAME:
            return {"true": True, "false": False}.get(token.text, Mention(token.text, token.offset))
        if token.kind is TokenKind.MARK and token.text == "(":
            self.enter(token)
            items: list[Value] = []
            while not self.sees(")"):
                items.append(self.value())
                if not self.takes(","):
                    break
            self.expect(")", "after a tuple")
            self.depth -= 1
            return tuple(items)
        raise self.error(f"unexpected {token.text!r}", token, "Arguments are strings, numbers, true, false and rules.")

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[min(self.at, len(self.tokens) - 1)]

    def sees(self, *marks: str) -> bool:
        return self.token.kind is TokenKind.MARK and self.token.text in marks

    def takes(self, mark: str) -> bool:
        found = self.sees(mark)
        self.at += found
        return found

    def expect(self, mark: str, place: str) -> None:
        if not self.takes(mark):
            raise self.error(f"expected {mark!r} {place}", self.token, f"Add the {mark!r}.")

    def place(self, token: Token) -> str:
        return place_of(self.text, token.offset)

    def error(self, what: str, token: Token, remedy: str) -> GrammarError:
        return GrammarError(what, where=self.place(token), remedy=remedy)
