"""ANTLR's parser rules as rules of the IR, over the tokens that reach the parser.

ANTLR's parser finds a parse where there is one (Parr, Harwell, Fisher, "Adaptive LL(*) Parsing", 2014), and its order
of alternatives and its associativity say which: so they say nothing of the language, and nor does greed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.antlr.lexer_rules import Lexer
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
from guided.grammar.ir import Body, Choice, Reference, Repetition, Sequence, Terminal
from guided.grammar.ir import Rule as GrammarRule
from guided.grammar.regular.expr import EMPTY

__all__ = ["literals_of", "read_parser"]


def literals_of(rules: Mapping[str, Rule]) -> dict[str, int]:
    """The texts in parser rules, in the order in which they come, with their places."""
    found: dict[str, int] = {}
    for rule in rules.values():
        if not rule.is_lexer:
            for element in _inside(rule.alternatives):
                if isinstance(element, Literal):
                    found.setdefault(element.text, element.offset)
    return found


def _inside(alternatives: tuple[Alternative, ...]) -> Iterator[Element]:
    waiting = [element for alternative in reversed(alternatives) for element in reversed(alternative.elements)]
    while waiting:
        element = waiting.pop()
        yield element
        match element:
            case Suffixed(inner):
                waiting.append(inner)
            case Not(elements):
                waiting += reversed(elements)
            case Block(inner_alternatives):
                waiting += [each for other in reversed(inner_alternatives) for each in reversed(other.elements)]


def read_parser(
    rules: Mapping[str, Rule], start: str | None, lexer: Lexer, text: str
) -> tuple[tuple[GrammarRule, ...], int]:
    """The rules, and which is the start; raises `GrammarError` or `UnsupportedError` with line and column."""
    parser = [rule for rule in rules.values() if not rule.is_lexer]
    names = [rule.name for rule in parser]
    if not names:
        raise GrammarError("there is no parser rule", remedy="Write one: its name begins with a small letter.")
    first = names[0] if start is None else start
    if first not in names:
        raise GrammarError(f"there is no parser rule {first!r}", remedy=f"Its rules are {', '.join(names)}.")
    return _Parser(parser, first, lexer, text).read(), names.index(first)


class _Parser(Located):
    def __init__(self, rules: list[Rule], start: str, lexer: Lexer, text: str) -> None:
        self.rules = rules
        self.numbers = {rule.name: number for number, rule in enumerate(rules)}
        self.start = start
        self.lexer = lexer
        self.text = text
        self.at_end: set[int] = set()
        """Places of ``EOF`` where the text ends anyway."""

    def read(self) -> tuple[GrammarRule, ...]:
        self.check_recursion()
        start = self.rules[self.numbers[self.start]]
        called = [e for rule in self.rules for e in _inside(rule.alternatives) if e == Name(self.start, e.offset)]
        if not called:
            self.find_ends(start.alternatives)
        return tuple(GrammarRule(rule.name, self.alternatives(rule.alternatives)) for rule in self.rules)

    def check_recursion(self) -> None:
        """Raise for a rule that comes back to itself before any token, but for alternatives that begin with it."""
        nullable: set[str] = set()
        while more := [
            r.name for r in self.rules if r.name not in nullable and _may_be_empty(r.alternatives, nullable)
        ]:
            nullable.update(more)
        lefts = {rule.name: _lefts(rule, nullable) & set(self.numbers) for rule in self.rules}
        for rule in self.rules:
            seen: set[str] = set()
            waiting = list(lefts[rule.name])
            while waiting:
                name = waiting.pop()
                if name not in seen:
                    seen.add(name)
                    waiting += lefts[name]
            if rule.name in seen:
                raise self.error(
                    GrammarError,
                    f"the rule {rule.name} comes back to itself on the left by another way than its own alternatives",
                    rule.offset,
                    "Begin an alternative of it with itself, or turn the recursion round.",
                )

    def find_ends(self, alternatives: tuple[Alternative, ...]) -> None:
        """The last elements of the start rule, which no other calls."""
        for alternative in alternatives:
            if alternative.elements:
                match alternative.elements[-1]:
                    case End(offset):
                        self.at_end.add(offset)
                    case Block(inner):
                        self.find_ends(inner)

    def alternatives(self, alternatives: tuple[Alternative, ...]) -> Body:
        options = [self.sequence(each) for each in alternatives]
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self, alternative: Alternative) -> Body:
        if alternative.commands:
            raise self.error(
                GrammarError, "a command in a parser rule", alternative.commands[0][2], "Put it behind a lexer rule."
            )
        parts = [self.body(element) for element in alternative.elements if not self.ends(element)]
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def ends(self, element: Element) -> bool:
        if not isinstance(element, End):
            return False
        if element.offset not in self.at_end:
            raise self.error(
                UnsupportedError,
                "EOF elsewhere than at the end of the start rule",
                element.offset,
                "Write it there, in a rule that no other calls.",
            )
        return True

    def body(self, element: Element) -> Body:
        match element:
            case Literal(text):
                return self.token(f"'{text}'")
            case Name(name) if name in self.numbers:
                return Reference(self.numbers[name])
            case Name(name):
                if name not in self.lexer.types:
                    raise self.error(
                        GrammarError,
                        f"{name}, which is no rule whose tokens reach the parser",
                        element.offset,
                        "Define it, and let it neither be a fragment nor skipped.",
                    )
                return self.token(name)
            case Any_():
                return self.tokens(self.all_tokens())
            case Not(elements):
                left_out = {number for inner in elements for number in self.numbers_of(inner)}
                return self.tokens([number for number in self.all_tokens() if number not in left_out])
            case Suffixed(inner, low, high):
                return Repetition(self.body(inner), low, high)
            case Block(alternatives):
                return self.alternatives(alternatives)
            case CharacterClass() | End():
                raise self.error(GrammarError, "no token", element.offset, "Write a token or a rule.")

    def all_tokens(self) -> list[int]:
        return sorted({number for numbers in self.lexer.types.values() for number in numbers})

    def numbers_of(self, element: Element) -> tuple[int, ...]:
        name = (
            f"'{element.text}'" if isinstance(element, Literal) else element.name if isinstance(element, Name) else ""
        )
        if name not in self.lexer.types:
            raise self.error(GrammarError, "a set of more than tokens", element.offset, "Name tokens behind '~'.")
        return self.lexer.types[name]

    def token(self, name: str) -> Body:
        return self.tokens(self.lexer.types[name])

    def tokens(self, numbers: tuple[int, ...] | list[int]) -> Body:
        found = [Terminal(EMPTY, self.lexer.terminals[number].name, number) for number in numbers]
        return found[0] if len(found) == 1 else Choice(tuple(found))


def _may_be_empty(alternatives: tuple[Alternative, ...], nullable: set[str]) -> bool:
    return any(all(_is_nullable(element, nullable) for element in each.elements) for each in alternatives)


def _is_nullable(element: Element, nullable: set[str]) -> bool:
    match element:
        case Suffixed(inner, low):
            return low == 0 or _is_nullable(inner, nullable)
        case Block(alternatives):
            return _may_be_empty(alternatives, nullable)
        case Name(name):
            return name in nullable
    return isinstance(element, End)


def _lefts(rule: Rule, nullable: set[str]) -> set[str]:
    """The names that may come first in a rule, but for itself where an alternative begins with it."""
    found: set[str] = set()
    for alternative in rule.alternatives:
        elements = alternative.elements
        if not elements or elements[0] != Name(rule.name, elements[0].offset):
            found |= _first_of(elements, nullable)
    return found


def _first_of(elements: tuple[Element, ...], nullable: set[str]) -> set[str]:
    found: set[str] = set()
    for element in elements:
        match element:
            case Name(name):
                found.add(name)
            case Suffixed(inner):
                found |= _first_of((inner,), nullable)
            case Block(alternatives):
                for each in alternatives:
                    found |= _first_of(each.elements, nullable)
        if not _is_nullable(element, nullable):
            break
    return found
