"""The text of an ANTLR 4 grammar as rules: what is context-free of combined grammars, all else refused by its place.

Source: the meta-grammar of ANTLR 4.13 (``ANTLRLexer.g4``, ``ANTLRParser.g4``), and "The Definitive ANTLR 4 Reference".
"""

from __future__ import annotations

import re
from typing import NoReturn

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.antlr.tree import (
    Alternative,
    Any_,
    Block,
    CharacterClass,
    Element,
    End,
    Literal,
    Name,
    Not,
    Rule,
    Suffixed,
)
from guided.grammar.folding import place_of
from guided.grammar.regular.characters import CharacterSet, normalise
from guided.grammar.standard_ebnf.cutting import MAX_NESTING, Token, cut

__all__ = ["character_of", "read_antlr"]

_TOKENS = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>//[^\n]*|/\*(?s:.*?)\*/)
      | (?P<text>'(?:\\.|[^'\\\n])*')
      | (?P<class>\[(?:\\.|[^\]\\\n])*\])
      | (?P<action>\{)
      | (?P<name>[^\W\d_]\w*)
      | (?P<mark>->|\.\.|\+=|::|[:;|()?*+~.,=<>@#}]|=)""",
    re.VERBOSE,
)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_REMEDY = "Close quotes and brackets on their line."
_CODE = re.compile(r"\\u(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{4}))")


def read_antlr(text: str) -> tuple[dict[str, Rule], tuple[str, ...]]:
    """The rules by name in their order, and notes on what says nothing of the language.

    Raises `GrammarError`, `UnsupportedError` or `LimitError` with line and column.

    >>> rules, _ = read_antlr("grammar List; list: ID (',' ID)* EOF; ID: [a-z]+; WS: ' ' -> skip;")
    >>> [(rule.name, rule.is_lexer) for rule in rules.values()]
    [('list', False), ('ID', True), ('WS', True)]
    """
    return _Reader(text).grammar()


def character_of(written: str, at: int) -> tuple[str, int] | None:
    """The character that a text has at a place, escaped or not, and the place behind it; None for no escape."""
    if written[at] != "\\":
        return written[at], at + 1
    code = _CODE.match(written, at)
    if code is not None:
        point = int(code[1] or code[2], 16)
        return (chr(point), code.end()) if point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF else None
    letter = written[at + 1]
    if letter in _SHORT:
        return _SHORT[letter], at + 2
    return (letter, at + 2) if letter in "\\'-]" else None


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        first = 1 if text.startswith("\ufeff") else 0
        self.tokens = [*cut(text, _TOKENS, _REMEDY, first), Token("end", "", len(text))]
        self.at = 0
        self.depth = 0
        self.notes: dict[str, None] = {}

    # -- tokens ---------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.token
        self.at += token.kind != "end"
        return token

    def takes(self, *texts: str) -> bool:
        found = self.token.kind in ("mark", "name") and self.token.text in texts
        self.at += found
        return found

    def expect(self, mark: str, after: str) -> None:
        if not self.takes(mark):
            raise self.error(f"expected {mark!r} {after}", self.token, f"Write {mark!r} there.")

    def name(self, what: str) -> Token:
        if self.token.kind != "name":
            raise self.error(f"expected {what}", self.token, "Write a name there.")
        return self.take()

    def error(self, what: str, token: Token, remedy: str) -> GrammarError:
        return GrammarError(what, where=place_of(self.text, token.offset), remedy=remedy)

    def refuse(self, what: str, token: Token, remedy: str) -> NoReturn:
        raise UnsupportedError(what, where=place_of(self.text, token.offset), remedy=remedy)

    # -- the grammar ----------------------------------------------------------------------------------------------

    def grammar(self) -> tuple[dict[str, Rule], tuple[str, ...]]:
        first = self.token
        if first.text in ("lexer", "parser"):
            self.refuse(f"a {first.text} grammar", first, "Join lexer and parser rules in one grammar.")
        if not self.takes("grammar"):
            raise self.error("expected 'grammar'", first, "Begin with: grammar Name;")
        self.name("the grammar's name")
        self.expect(";", "behind the grammar's name")
        rules: dict[str, Rule] = {}
        while self.token.kind != "end":
            token = self.token
            if token.text == "@":
                self.refuse("a named action", token, "Leave it out: code is not read.")
            if self.takes("options"):
                self.options()
            elif token.text in ("import", "tokens", "mode"):
                self.refuse(f"{token.text!r}", token, "Write rules in one grammar with one mode.")
            elif self.takes("channels"):
                self.braces()
            else:
                rule = self.rule()
                if rule.name in rules:
                    raise self.error(f"rule {rule.name!r} is defined twice", token, "Join the definitions with '|'.")
                rules[rule.name] = rule
        return rules, tuple(self.notes)

    def braces(self) -> str:
        """What stands in braces, which are not looked into."""
        opened = self.token
        if opened.kind != "action":
            raise self.error("expected '{'", opened, "Write it in braces.")
        close = self.text.find("}", opened.offset)
        while self.token.kind != "end" and self.token.offset <= close:
            self.take()
        return self.text[opened.offset + 1 : close]

    def options(self) -> None:
        opened = self.token
        for option in filter(None, map(str.strip, self.braces().split(";"))):
            name = option.partition("=")[0].strip()
            if name not in ("language", "accessLevel", "exportMacro", "contextSuperClass"):
                self.refuse(f"the option {name!r}", opened, "Leave it out, and write what it stands for.")
            self.notes[f"the option {name} changes no text"] = None

    def rule(self) -> Rule:
        fragment = self.takes("fragment")
        token = self.name("a rule")
        if self.token.kind in ("class", "action") or self.token.text in ("returns", "locals", "throws", "@"):
            self.refuse("arguments and actions of a rule", self.token, "Leave them out: code is not read.")
        if self.takes("options"):
            self.options()
        self.expect(":", f"behind the name of rule {token.text!r}")
        found = Rule(token.text, (), token.offset, fragment)
        if fragment and not found.is_lexer:
            raise self.error("a fragment is a lexer rule", token, "Begin its name with a capital letter.")
        alternatives = self.alternatives(found.is_lexer)
        self.expect(";", f"at the end of rule {token.text!r}")
        if self.token.text in ("catch", "finally"):
            self.refuse("exceptions of a rule", self.token, "Leave them out: code is not read.")
        return Rule(token.text, alternatives, token.offset, fragment)

    def alternatives(self, lexer: bool) -> tuple[Alternative, ...]:
        found = [self.alternative(lexer)]
        while self.takes("|"):
            found.append(self.alternative(lexer))
        return tuple(found)

    def alternative(self, lexer: bool) -> Alternative:
        offset = self.token.offset
        if self.takes("<"):
            self.element_options()
        elements = []
        while self.token.kind != "end" and self.token.text not in ("|", ";", ")", "->", "#"):
            elements.append(self.element(lexer))
        commands = []
        if self.takes("#"):
            self.name("a label")
        if self.takes("->"):
            commands.append(self.command())
            while self.takes(","):
                commands.append(self.command())
        return Alternative(tuple(elements), offset, tuple(commands))

    def element_options(self) -> None:
        """``<assoc = right>``: how a text is read, not which are."""
        while not self.takes(">"):
            if self.take().kind == "end":
                raise self.error("expected '>'", self.token, "Close the options of the element.")

    def command(self) -> tuple[str, str, int]:
        token = self.name("a command")
        argument = ""
        if self.takes("("):
            argument = self.name("the argument of a command").text
            self.expect(")", "behind the argument of a command")
        if token.text not in ("skip", "channel", "type"):
            self.refuse(f"the command {token.text!r}", token, "Write tokens in one mode, each as one rule.")
        return token.text, argument, token.offset

    # -- elements -------------------------------------------------------------------------------------------------

    def element(self, lexer: bool) -> Element:
        token = self.token
        labelled = self.tokens[min(self.at + 1, len(self.tokens) - 1)].text in ("=", "+=")
        if token.kind == "name" and labelled:
            self.at += 2
        if self.token.kind == "action":
            self.refuse("an action or a predicate", self.token, "Leave it out: code is not read.")
        found = self.atom(lexer)
        if self.takes("<"):
            self.element_options()
        return self.suffixed(found, token)

    def suffixed(self, found: Element, token: Token) -> Element:
        bounds: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
        if self.token.kind == "mark" and self.token.text in bounds:
            low, high = bounds[self.take().text]
            greedy = not self.takes("?")
            return Suffixed(found, low, high, greedy, token.offset)
        return found

    def atom(self, lexer: bool) -> Element:
        token = self.take()
        if token.kind == "text":
            return self.literal(token, lexer)
        if token.kind == "class" and lexer:
            return CharacterClass(self.characters(token), token.offset)
        if token.kind == "class":
            self.refuse("arguments of a rule", token, "Leave them out: code is not read.")
        if token.kind == "name":
            return End(token.offset) if token.text == "EOF" else Name(token.text, token.offset)
        if token.text == ".":
            return Any_(token.offset)
        if token.text == "~":
            return self.negated(token, lexer)
        if token.text == "(":
            self.depth += 1
            if self.depth > MAX_NESTING:
                raise LimitError(
                    f"brackets nest deeper than {MAX_NESTING} levels",
                    where=place_of(self.text, token.offset),
                    remedy="Give the inner parts rules of their own.",
                )
            if self.takes("options"):
                self.options()
                self.expect(":", "behind options")
            alternatives = self.alternatives(lexer)
            self.expect(")", "at the end of a block")
            self.depth -= 1
            return Block(alternatives, token.offset)
        raise self.error(f"unexpected {token.text!r}", token, "An element is a rule, a text, a set or a block.")

    def negated(self, token: Token, lexer: bool) -> Element:
        if not self.takes("("):
            return Not((self.set_element(lexer),), token.offset)
        found = [self.set_element(lexer)]
        while self.takes("|"):
            found.append(self.set_element(lexer))
        self.expect(")", "at the end of a set")
        return Not(tuple(found), token.offset)

    def set_element(self, lexer: bool) -> Element:
        token = self.token
        if token.kind not in ("text", "class", "name"):
            raise self.error(f"unexpected {token.text!r} in a set", token, "Write characters or tokens behind '~'.")
        return self.atom(lexer)

    def literal(self, token: Token, lexer: bool) -> Element:
        text = self.unescaped(token)
        if lexer and self.takes(".."):
            other = self.take()
            last = self.unescaped(other) if other.kind == "text" else ""
            if len(text) != 1 or len(last) != 1 or text > last:
                raise self.error("a range goes from one character to a later one", token, "Write 'a'..'z'.")
            return CharacterClass(((ord(text), ord(last)),), token.offset)
        if not text:
            raise self.error("a text of no characters", token, "Leave it out.")
        return Literal(text, token.offset)

    def unescaped(self, token: Token) -> str:
        inside, found, at = token.text[1:-1], "", 0
        while at < len(inside):
            read = character_of(inside, at)
            if read is None:
                raise self.error(f"the escape {inside[at : at + 2]!r}", token, r"Use \n \r \t \b \f \\ \' and \uXXXX.")
            found, at = found + read[0], read[1]
        return found

    def characters(self, token: Token) -> CharacterSet:
        inside, at = token.text[1:-1], 0
        found: list[tuple[int, int]] = []
        while at < len(inside):
            if inside.startswith((r"\p", r"\P"), at):
                self.refuse("a property of Unicode", token, "Write the characters.")
            read = character_of(inside, at)
            if read is None:
                raise self.error(
                    f"the escape {inside[at : at + 2]!r}", token, r"Use \n \r \t \b \f \\ \] \- and \uXXXX."
                )
            first, at = read
            last = first
            if inside[at : at + 1] == "-" and at + 1 < len(inside):
                other = character_of(inside, at + 1)
                if other is None or other[0] < first:
                    raise self.error("a range goes from one character to a later one", token, "Turn it round.")
                last, at = other
            found.append((ord(first), ord(last)))
        if not found:
            raise self.error("a set of no characters", token, "Write some characters.")
        return normalise(found)
