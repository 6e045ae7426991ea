"""ANTLR's lexer rules as terminals: the longest match of all, of equally long ones the first rule's.

What is not greedy commits: once one of its ways has matched, a rule's ways behind it are given up, as ANTLR's
``LexerATNSimulator`` does with those that have "passed through a non-greedy decision".  So that all ways of a terminal
have, when one has matched, something of fixed length must stand before; other rules are refused.

Texts in parser rules are tokens of their own before all others, but for those that one lexer rule is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from guided.errors import GrammarError, GuidedError, LimitError, UnsupportedError
from guided.grammar.antlr.tree import (
    Alternative,
    Any_,
    Block,
    CharacterClass,
    Element,
    End,
    Literal,
    Located,
    Name,
    Not,
    Rule,
    Suffixed,
)
from guided.grammar.lexing import Beside, LexerTerminal
from guided.grammar.regex.plain import widths
from guided.grammar.regex.syntax import Alternatives, Characters, Concatenation, Node, Quantified
from guided.grammar.regular.characters import ANY_CHARACTER, CharacterSet, negate, normalise

__all__ = ["Lexer", "read_lexer"]

MOST_PIECES = 20_000
"""Characters, sets and blocks of one rule with its fragments written out: 0.5 s to compile.  Each of n fragments may
name the next one twice, which is 2^n."""


@dataclass(frozen=True, slots=True)
class Lexer:
    """The terminals in the order of their rules, and which of them are tokens of which type."""

    terminals: tuple[LexerTerminal, ...]
    types: Mapping[str, tuple[int, ...]]
    """Of the token types that reach the parser, by name, or by text in quotes."""
    ignored: tuple[int, ...]


def read_lexer(rules: Mapping[str, Rule], literals: Mapping[str, int], text: str) -> Lexer:
    """The lexer of a grammar; ``literals`` are the texts in its parser rules, each with its first place.

    Raises `UnsupportedError` or `GrammarError` with the place of a rule that recurs or matches the empty text, or of
    what is not greedy and stands where it might not commit.
    """
    return _Lexer(rules, literals, text).read()


class _Lexer(Located):
    def __init__(self, rules: Mapping[str, Rule], literals: Mapping[str, int], text: str) -> None:
        self.rules = {name: rule for name, rule in rules.items() if rule.is_lexer}
        self.literals = literals
        self.text = text
        self.open: list[str] = []
        self.terminals: list[LexerTerminal] = []
        self.types: dict[str, list[int]] = {}
        self.ignored: list[int] = []
        self.n_rules = 0
        self.pieces = 0
        """Of the rule that is read."""

    def read(self) -> Lexer:
        named = self.aliases()
        for literal in self.literals:
            if literal not in named:
                self.add(repr(literal), Concatenation(tuple(_exactly(each) for each in literal)), False)
                self.types[f"'{literal}'"] = [len(self.terminals) - 1]
                self.n_rules += 1
        for rule in self.rules.values():
            if not rule.fragment:
                self.rule(rule)
                self.n_rules += 1
        for literal, name in named.items():
            self.types[f"'{literal}'"] = self.types.get(name, [])
        return Lexer(
            tuple(self.terminals), {name: tuple(found) for name, found in self.types.items()}, tuple(self.ignored)
        )

    def aliases(self) -> dict[str, str]:
        """The texts that one rule is, and no other, by the rule's name."""
        found: dict[str, list[str]] = {}
        for rule in self.rules.values():
            if rule.fragment or len(rule.alternatives) != 1:
                continue
            elements = rule.alternatives[0].elements
            if len(elements) == 1 and isinstance(elements[0], Literal):
                found.setdefault(elements[0].text, []).append(rule.name)
        return {text: names[0] for text, names in found.items() if len(names) == 1}

    def add(self, label: str, pattern: Node, gives_up: bool) -> None:
        beside = Beside(self.n_rules, gives_up)
        self.terminals.append(LexerTerminal(label, pattern, beside=beside))

    def rule(self, rule: Rule) -> None:
        shortest: int | None = None
        self.pieces = 0
        for alternative in rule.alternatives:
            if alternative.commands and len(rule.alternatives) > 1:
                where = alternative.commands[0][2]
                raise self.error(GrammarError, "a command behind one of several", where, "Put the others in brackets.")
            elements = list(self.spliced(alternative.elements))
            place = next((at for at, element in enumerate(elements) if _is_lazy(element)), None)
            pattern = self.sequence(elements, alternative.offset)
            least = widths(pattern)[0]
            if least == 0:
                raise self.error(
                    GrammarError,
                    f"the lexer rule {rule.name} matches the empty text",
                    rule.offset,
                    "Let it match one character.",
                )
            if place is not None:
                before = widths(self.sequence(elements[:place], alternative.offset))
                if before[0] != before[1] or (shortest is not None and shortest < before[0]):
                    raise self.refused(elements[place])
            for element in elements if place is None else elements[:place]:
                self.check_greedy(element)
            for element in elements[place or 0 :]:
                self.check_greedy(element.element if _is_lazy(element) and isinstance(element, Suffixed) else element)
            shortest = least if shortest is None else min(shortest, least)
            self.alternative(rule, alternative, pattern, place is not None)

    def alternative(self, rule: Rule, alternative: Alternative, pattern: Node, gives_up: bool) -> None:
        number = len(self.terminals)
        self.add(rule.name, pattern, gives_up)
        name = rule.name
        for command, argument, offset in alternative.commands:
            if command == "type":
                if argument not in self.rules:
                    raise self.error(
                        UnsupportedError, f"the token type {argument}, which is no rule", offset, "Name a lexer rule."
                    )
                name = argument
            elif command == "skip" or argument != "DEFAULT_TOKEN_CHANNEL":
                self.ignored.append(number)
                return
        self.types.setdefault(name, []).append(number)

    def refused(self, element: Element) -> GuidedError:
        return self.error(
            UnsupportedError,
            "what is not greedy behind a part of varying length, or inside a block or fragment",
            element.offset,
            "Begin the rule with it behind a text of fixed length, or write the characters that it may hold.",
        )

    def check_greedy(self, element: Element) -> None:
        """Raise for what is not greedy anywhere inside."""
        match element:
            case Suffixed(inner, _, _, greedy):
                if not greedy:
                    raise self.refused(element)
                self.check_greedy(inner)
            case Block(alternatives):
                for alternative in alternatives:
                    for inner in alternative.elements:
                        self.check_greedy(inner)
            case Name(name) if name in self.rules and name not in self.open:
                self.open.append(name)
                for alternative in self.rules[name].alternatives:
                    for inner in alternative.elements:
                        self.check_greedy(inner)
                self.open.pop()

    def spliced(self, elements: tuple[Element, ...]) -> Iterator[Element]:
        """The elements, with the content of blocks of one alternative and no suffix in their place."""
        for element in elements:
            if isinstance(element, Block) and len(element.alternatives) == 1:
                yield from self.spliced(element.alternatives[0].elements)
            else:
                yield element

    # -- patterns -------------------------------------------------------------------------------------------------

    def sequence(self, elements: list[Element] | tuple[Element, ...], offset: int) -> Node:
        return Concatenation(tuple(self.node(element) for element in elements))

    def node(self, element: Element) -> Node:
        self.pieces += len(element.text) if isinstance(element, Literal) else 1
        if self.pieces > MOST_PIECES:
            raise self.error(
                LimitError,
                f"a lexer rule of more than {MOST_PIECES} pieces, with its fragments written out",
                element.offset,
                "Let the parser put the parts together.",
            )
        match element:
            case Literal(text):
                return Concatenation(tuple(_exactly(each) for each in text))
            case CharacterClass(ranges):
                return Characters(ranges)
            case Any_():
                return Characters(ANY_CHARACTER)
            case Not():
                return Characters(negate(self.set_of(element)))
            case Suffixed(inner, low, high, greedy):
                body = self.node(inner)
                if high is None and widths(body)[0] == 0:
                    what = "a repetition of what may be empty"
                    raise self.error(GrammarError, what, element.offset, "Let each copy match something.")
                return Quantified(body, low, high, greedy)
            case Block(alternatives):
                options = tuple(self.sequence(each.elements, each.offset) for each in alternatives)
                return options[0] if len(options) == 1 else Alternatives(options)
            case End():
                raise self.error(
                    UnsupportedError, "EOF in a lexer rule", element.offset, "Leave it to the parser rules."
                )
            case Name(name):
                return self.called(name, element.offset)

    def called(self, name: str, offset: int) -> Node:
        rule = self.rules.get(name)
        if rule is None:
            what = "a parser rule" if name[:1].islower() else f"rule {name}, which is not defined,"
            raise self.error(GrammarError, f"{what} in a lexer rule", offset, "Name a lexer rule or a fragment.")
        if name in self.open:
            raise self.error(
                UnsupportedError,
                f"the lexer rule {name}, which comes back to itself",
                offset,
                "Let the parser nest it.",
            )
        self.open.append(name)
        options = tuple(self.sequence(each.elements, each.offset) for each in rule.alternatives)
        self.open.pop()
        return options[0] if len(options) == 1 else Alternatives(options)

    def set_of(self, element: Element) -> CharacterSet:
        """The characters of a set behind ``~``."""
        found: list[tuple[int, int]] = []
        assert isinstance(element, Not)
        for inner in element.elements:
            match inner:
                case CharacterClass(ranges):
                    found += ranges
                case Literal(text) if len(text) == 1:
                    found.append((ord(text), ord(text)))
                case _:
                    raise self.error(
                        UnsupportedError,
                        "a set of more than characters",
                        inner.offset,
                        "Write the characters in brackets.",
                    )
        return normalise(found)


def _is_lazy(element: Element) -> bool:
    return isinstance(element, Suffixed) and not element.greedy


def _exactly(character: str) -> Characters:
    return Characters(((ord(character), ord(character)),))
