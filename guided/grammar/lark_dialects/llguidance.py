"""llguidance's dialect of Lark as pieces, version 1.9.1.

Its lexer takes the longest match among all lexemes that may come; grammars in which that matters are refused by
`guided.grammar.lark_dialects.lexing`, and for all others every split of the text counts, as for GBNF.
Sources: llguidance's documentation of the notation (``syntax.md``) and trials with its matcher.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.lark_dialects.ignored import with_ignored
from guided.grammar.lark_dialects.lexing import Ends, Lexeme, settled
from guided.grammar.lark_dialects.parameters import Constant
from guided.grammar.lark_dialects.rules import (
    Inputs,
    Lowered,
    check_options,
    embedded,
    most_tokens,
    named_rule,
    note_attributes,
    special_piece,
    stands_for_text,
)
from guided.grammar.lark_dialects.terminals import Terminals
from guided.grammar.lark_dialects.tree import (
    Alternatives,
    Conditional,
    Counted,
    Dialect,
    Document,
    Json,
    Literal,
    Nested,
    Node,
    OtherGrammar,
    Pattern,
    Row,
    RuleDefinition,
    SpecialToken,
    Symbol,
)
from guided.grammar.named import IGNORED, NamedRule, NamedRules, Peer
from guided.grammar.pieces import Definition, Either, Name, Piece, Regular, Repeated, Whole, row
from guided.grammar.pieces import Row as PieceRow
from guided.grammar.regular.commitment import shortest_matches
from guided.grammar.regular.decide import is_subset
from guided.grammar.regular.expr import EPSILON, Expr, alternation, concat
from guided.grammar.tags.free_text import TEXT

__all__ = ["lower_llguidance"]

MAX_INSTANCES = 2_000
"""Rules with their parameters: permutations of ten things are 1,024."""
_NOTHING = PieceRow(())
_RULE = re.compile(r"[\w-]+")
"""The name of a rule in that of one made of it: its parameter and place follow."""
_NUMBERS = frozenset(b"0123456789.eE+-")
_JSON_FIRST = sum(1 << byte for byte in b'"-0123456789[{tfn')
_NO_NUMBERS = frozenset(("object", "array", "string", "boolean", "null"))


def lower_llguidance(document: Document, inputs: Inputs) -> Lowered:
    """The rules of a document that ``start`` reaches."""
    return _Lowering(document, inputs).lowered()


class _Lowering:
    def __init__(self, document: Document, inputs: Inputs) -> None:
        self.inputs = inputs
        self.document = document
        self.terminals = Terminals(document, Dialect.LLGUIDANCE, inputs.text)
        self.rules = self.terminals.definitions
        options = {"allow_initial_skip": True, "no_forcing": True, "ignore_once": True, "allow_invalid_utf8": False}
        check_options(document.options, options, inputs.place(document.offset))
        self.ignored: Expr | None = None
        self.once = bool(document.options.get("ignore_once"))
        if document.ignored:
            self.ignored = alternation([self.terminals.language(node)[0] for node in document.ignored])
            # What two of them in a row match, the longest match takes as one.
            self.once = self.once or is_subset(concat(self.ignored, self.ignored), self.ignored)
        self.lexemes: dict[int, Lexeme] = {}
        self.parameter: int | None = None
        """That of the rule that is being lowered."""
        self.kept: list[Piece] = []
        self.alike: set[int] = set()
        """The grammars inside that ignore what this one does: llguidance reads them with one lexer."""

    def lowered(self) -> Lowered:
        start = self.rules.get("start")
        if start is None or start.is_terminal:
            raise GrammarError("there is no rule 'start'", remedy="Define it: start: ...")
        bodies: dict[str, Piece] = {}
        waiting: list[tuple[str, int | None]] = [("start", None)]
        while waiting:
            name, self.parameter = waiting.pop()
            shown = _instance(name, self.parameter)
            if shown in bodies:
                continue
            if len(bodies) >= MAX_INSTANCES:
                raise LimitError(
                    f"the parameters of rules have more than {MAX_INSTANCES} values",
                    where=self.inputs.place(self.rules[name].offset),
                    remedy="Bound them by conditions, %if lt(_, 100), or use fewer bits.",
                )
            self.named: list[tuple[str, int | None]] = []
            bodies[shown] = self.rule(self.rules[name])
            waiting += self.named
        if self.ignored is not None:
            bodies = with_ignored(bodies, "start", self.copy, self.skip, self.is_apart)
            if self.document.options.get("allow_initial_skip"):
                bodies["start"] = row([self.skip(), bodies["start"]])
        bodies, ends = settled(bodies, "start", self.lexemes)
        definitions = {name: Definition(body, start.offset) for name, body in bodies.items()}
        named = NamedRules(definitions, "start", Peer.LLGUIDANCE, self.named_rules(definitions))
        return Lowered(definitions, tuple(dict.fromkeys(self.inputs.notes)), named, ends)

    def named_rules(self, names: Iterable[str]) -> dict[str, NamedRule]:
        """What the rules say of their texts, by the names of those that were made of them."""
        found = {}
        for shown in names:
            said = named_rule(self.rules[_RULE.findall(shown)[0]], self.terminals, hides_stop=False)
            if said is not None:
                found[shown] = said
        return found

    # Rules

    def rule(self, rule: RuleDefinition) -> Piece:
        attributes = rule.attributes
        if rule.has_parameter and attributes.keys() - {"capture"}:
            raise UnsupportedError(
                f"attributes of rule {rule.name!r}, which has a parameter",
                where=self.inputs.place(rule.offset),
                remedy="Give them to a rule without one that it names.",
            )
        most = most_tokens(rule)
        if most == 0:
            return _NOTHING
        if "max_chars" in attributes:
            raise GrammarError(
                "max_chars is no attribute of llguidance's",
                where=self.inputs.place(rule.offset),
                remedy="Count characters in the pattern: /(.|\\n){0,1000}/.",
            )
        note_attributes(rule, self.inputs)
        if "stop" in attributes:
            return self.stopped(rule)
        if attributes.keys() & {"lazy", "suffix"}:
            language, is_text = self.terminals.language(rule.body)
            if rule.marker is not None:
                language = concat(language, self.terminals.language(rule.marker)[0])
            return self.lexeme(Regular(shortest_matches(language), rule.name, is_text, most), rule.offset, lazy=True)
        if "temperature" in attributes or most is not None:
            body = _unwrapped(rule.body)
            if isinstance(body, (Json, Nested, OtherGrammar)) and most is None:
                return self.whole(body, joins=False)
            language, is_text = self.terminals.language(rule.body)
            return self.lexeme(Regular(language, rule.name, is_text, most), rule.offset)
        return self.piece(rule.body)

    def stopped(self, rule: RuleDefinition) -> Piece:
        """A rule that only the end of the text stops, ``stop=""``: the lexeme, behind which nothing may come.

        Or one with its marker, where that stands again behind each use: llguidance reads it twice then.
        """
        marker = rule.marker
        if not isinstance(marker, Literal) or "lazy" in rule.attributes:
            raise self.takes_back(rule, rule.offset)
        if marker.text and (self.ignored is not None or rule.name == "start"):
            raise self.takes_back(rule, rule.offset)
        language, is_text = self.terminals.language(rule.body)
        if marker.text:
            language = shortest_matches(concat(language, self.terminals.language(marker)[0]))
            return self.lexeme(Regular(language, rule.name, is_text, most_tokens(rule)), rule.offset, lazy=True)
        lexeme = Lexeme(self.inputs.place(rule.offset), at_end=True)
        return self.known(Regular(language, rule.name, is_text, most_tokens(rule)), lexeme)

    def takes_back(self, rule: RuleDefinition, offset: int) -> UnsupportedError:
        return UnsupportedError(
            f"stop of rule {rule.name!r}: llguidance takes back the tokens of what it matches",
            where=self.inputs.place(offset),
            remedy="Write suffix=..., which leaves it in the text, or the same text again behind each use of the rule.",
        )

    def in_row(self, parts: Sequence[Node]) -> Iterator[Piece]:
        """The parts one after another; a marker that stands again behind its rule is in the rule's lexeme."""
        for number, part in enumerate(parts):
            if number and self.restores(parts[number - 1], part):
                continue
            if number + 1 < len(parts) and isinstance(part, Symbol) and self.restores(part, parts[number + 1]):
                self.named.append((part.name, None))
                yield Name(part.name, part.offset)
                continue
            yield self.piece(part)

    def restores(self, node: Node, behind: Node) -> bool:
        """Is one a rule with ``stop``, and the other its marker?"""
        rule = self.rules.get(node.name) if isinstance(node, Symbol) and node.argument is None else None
        if rule is None or "stop" not in rule.attributes or rule.has_parameter or not isinstance(behind, Literal):
            return False
        marker = rule.marker
        same = isinstance(marker, Literal) and not (marker.ignore_case or behind.ignore_case)
        return same and isinstance(marker, Literal) and bool(marker.text) and marker.text == behind.text

    def piece(self, node: Node) -> Piece:
        match node:
            case Row(parts):
                return row(list(self.in_row(parts)))
            case Alternatives(options):
                return Either(tuple(self.piece(option) for option in options))
            case Counted(body, low, high):
                if stands_for_text(body) and (low, high) == (0, None):
                    self.inputs.notes.append(f"no special token is in the text at {self.inputs.place(node.offset)}")
                    return self.lexeme(Regular(TEXT, "free text"), node.offset)
                return Repeated(self.piece(body), low, high)
            case Conditional(body, condition, offset):
                if self.parameter is None:
                    raise self.no_parameter("a condition in a rule without a parameter", offset)
                return self.piece(body) if condition.holds(self.parameter) else Either(())
            case Symbol():
                return self.symbol(node)
            case SpecialToken():
                piece = special_piece(node, self.inputs)
                return self.known(piece, Lexeme(self.inputs.place(node.offset)))
            case Json() | Nested() | OtherGrammar():
                return self.whole(node, joins=True)
            case Literal(text) if not text:
                return _NOTHING
            case _:
                language, is_text = self.terminals.language(node)
                return self.lexeme(Regular(language, _label(node), is_text), node.offset)

    def symbol(self, node: Symbol) -> Piece:
        rule = self.rules.get(node.name)
        if rule is None or rule.is_terminal:
            found = self.terminals.named(node.name, node.offset)
            return self.lexeme(Regular(found.language, found.label, found.is_text), node.offset)
        if rule.has_parameter is (node.argument is None):
            what = "needs a parameter" if rule.has_parameter else "has no parameter"
            raise self.no_parameter(f"rule {node.name!r} {what}", node.offset)
        if "stop" in rule.attributes and not (isinstance(rule.marker, Literal) and not rule.marker.text):
            raise self.takes_back(rule, node.offset)
        value = None
        if node.argument is not None:
            if self.parameter is None and not isinstance(node.argument, Constant):
                raise self.no_parameter("there is no parameter here to pass on", node.offset)
            value = node.argument.of(self.parameter or 0)
        self.named.append((node.name, value))
        return Name(_instance(node.name, value), node.offset)

    def no_parameter(self, what: str, offset: int) -> GrammarError:
        remedy = "Write name::_ where the rule is defined, and name::0 where it begins."
        return GrammarError(what, where=self.inputs.place(offset), remedy=remedy)

    def whole(self, node: Json | Nested | OtherGrammar, joins: bool) -> Piece:
        piece, ends = embedded(node, self.inputs)
        if isinstance(node, Json):
            if isinstance(node.schema, dict) and "x-guidance" in node.schema:
                where = self.inputs.place(node.offset)
                self.inputs.notes.append(f"x-guidance of the schema at {where} is not read: the layout is guided's own")
            more = 0 if _ends_with_no_number(node.schema) else _bits(_NUMBERS)
            ends = Ends(_JSON_FIRST, more, joins)
        if isinstance(node, Nested) and joins and self.ignores_the_same(node.document):
            self.alike.add(id(piece))
        return self.known(piece, Lexeme(self.inputs.place(node.offset), ends=ends))

    def ignores_the_same(self, document: Document) -> bool:
        inside = Terminals(document, Dialect.LLGUIDANCE, self.inputs.text)
        ignored = [inside.language(node)[0] for node in document.ignored]
        return bool(ignored) and alternation(ignored) is self.ignored and not document.options

    def lexeme(self, piece: Regular, offset: int, lazy: bool = False) -> Piece:
        return self.known(piece, Lexeme(self.inputs.place(offset), lazy))

    def known(self, piece: Piece, lexeme: Lexeme) -> Piece:
        """The leaf, with what is known of it; it is kept, for it is known by its id."""
        self.kept.append(piece)
        self.lexemes[id(piece)] = lexeme
        return piece

    def copy(self, piece: Piece, ends: bool) -> Piece:
        copied = self.known(replace(piece), replace(self.lexemes[id(piece)], ends_text=ends))
        if id(piece) in self.alike:
            self.alike.add(id(copied))
        return copied

    def is_apart(self, piece: Piece) -> bool:
        """Is it another grammar, with other ignored text?"""
        return isinstance(piece, Whole) and id(piece) not in self.alike

    def skip(self) -> Piece:
        piece = Regular(self.ignored or EPSILON, IGNORED)
        where = self.inputs.place(self.document.ignored[0].offset)
        return Repeated(self.known(piece, Lexeme(where)), 0, 1 if self.once else None)


def _instance(rule: str, parameter: int | None) -> str:
    return rule if parameter is None else f"{rule}::{parameter}"


def _unwrapped(node: Node) -> Node:
    while isinstance(node, Row) and len(node.parts) == 1:
        node = node.parts[0]
    return node


def _label(node: Node) -> str:
    match node:
        case Pattern(pattern):
            return f"/{pattern}/"
        case Literal(text):
            return repr(text)
        case _:
            return type(node).__name__.lower()


def _bits(values: frozenset[int]) -> int:
    return sum(1 << value for value in values)


def _ends_with_no_number(schema: Any) -> bool:
    """Is it plain that no value of the schema is a number?"""
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return kinds in _NO_NUMBERS
    if isinstance(kinds, list):
        return all(kind in _NO_NUMBERS for kind in kinds)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list):
        return not any(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    options = schema.get("anyOf", schema.get("oneOf"))
    return isinstance(options, list) and all(map(_ends_with_no_number, options))
