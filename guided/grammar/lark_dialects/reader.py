"""The tokens of a grammar in a dialect of Lark's notation as a tree.

What neither dialect has, templates, priorities, ``%declare`` and ``%override``, is refused where it stands.  What a
tree means is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.folding import place_of
from guided.grammar.lark_dialects.parameters import (
    ARGUMENTS,
    COMPARISONS,
    Argument,
    Bits,
    Compared,
    Condition,
    Connected,
    Constant,
    Masked,
    Stepped,
)
from guided.grammar.lark_dialects.tokens import Token, TokenKind, cut
from guided.grammar.lark_dialects.tree import (
    Alternatives,
    Both,
    CharacterRange,
    Conditional,
    Counted,
    Dialect,
    Document,
    Import,
    Json,
    Literal,
    Nested,
    Node,
    NotIn,
    OtherGrammar,
    Pattern,
    Row,
    RuleDefinition,
    SpecialToken,
    Structured,
    Symbol,
)

__all__ = ["read"]

MAX_NESTING = 100
"""Brackets inside each other; what follows recurses."""
MOST = (1 << 64) - 1
"""The greatest parameter of a rule."""
_TEXT_ATTRIBUTES = frozenset(("capture", "stop_capture"))
_NUMBER_ATTRIBUTES = frozenset(("max_tokens", "max_chars", "temperature"))
_MARKER_ATTRIBUTES = frozenset(("stop", "suffix"))
_OPTIONS = {Dialect.LLGUIDANCE: "%llguidance", Dialect.XGRAMMAR: "%grammar_options"}


def read(text: str, dialect: Dialect) -> Document:
    """The tree of ``text``; raises `GrammarError`, `UnsupportedError` and `LimitError` with line and column.

    >>> [rule.name for rule in read('start: NUMBER+\\nNUMBER: /[0-9]/', Dialect.XGRAMMAR).definitions]
    ['start', 'NUMBER']
    """
    reader = _Reader(text, dialect)
    document = reader.document(nested=False)
    return document


class _Reader:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.tokens = cut(text)
        self.at = 0
        self.depth = 0

    def document(self, nested: bool) -> Document:
        offset = self.token.offset
        definitions: list[RuleDefinition] = []
        ignored: list[Node] = []
        imports: list[Import] = []
        options: dict[str, Any] = {}
        self.skip_lines()
        while self.token.kind is not TokenKind.END and not (nested and self.sees("}")):
            token = self.token
            if token.kind is TokenKind.NAME:
                definitions.append(self.definition())
            elif token.text == "%ignore":
                self.at += 1
                ignored.append(self.alternatives())
            elif token.text == "%import":
                self.at += 1
                imports += self.imports()
            elif token.text == _OPTIONS[self.dialect] and isinstance(token.value, dict):
                self.at += 1
                options |= token.value
            else:
                raise self.no_item(token)
            if not (self.token.kind in (TokenKind.NEW_LINE, TokenKind.END) or (nested and self.sees("}"))):
                raise self.error(f"unexpected {self.token.text!r}", self.token, "End the rule with a new line.")
            self.skip_lines()
        return Document(tuple(definitions), tuple(ignored), tuple(imports), options, offset)

    def no_item(self, token: Token) -> GrammarError | UnsupportedError:
        if token.kind is TokenKind.DIRECTIVE:
            return UnsupportedError(
                f"{token.text} is no directive of {self.dialect.value}'s dialect",
                where=self.place(token),
                remedy=f"It has %import, %ignore and {_OPTIONS[self.dialect]} {{...}}.",
            )
        return self.error(f"unexpected {token.text!r}", token, "A rule begins on a new line: name: ...")

    def imports(self) -> list[Import]:
        first = self.token
        path = self.name("the path of an import")
        while self.takes("."):
            path += "." + self.name("a name behind '.'")
        if self.takes("("):
            found = []
            while True:
                offset = self.token.offset
                name = self.name("the name of a terminal")
                found.append(Import(f"{path}.{name}", name, offset))
                if not self.takes(","):
                    break
            self.expect(")")
            return found
        name = path.rpartition(".")[2]
        if self.takes("->"):
            name = self.name("a name behind '->'")
        return [Import(path, name, first.offset)]

    def definition(self) -> RuleDefinition:
        token = self.token
        name = self.name("the name of a rule").lstrip("!?")
        has_parameter = self.dialect is Dialect.LLGUIDANCE and self.takes("::")
        if has_parameter and self.name("'_', the parameter of the rule") != "_":
            raise self.error("a rule's parameter is '_'", token, f"Write {name}::_ : ...")
        for mark, what in (("::", "parameters of rules"), ("{", "templates"), (".", "priorities")):
            if self.sees(mark):
                raise UnsupportedError(
                    f"{what}, here of {name!r}",
                    where=self.place(self.token),
                    remedy="Write the rules out." if mark != "." else "Leave the priority out.",
                )
        attributes: Mapping[str, Node | str | None] = {}
        if self.sees("["):
            if RuleDefinition(name, Row((), 0), 0).is_terminal:
                raise self.error(f"attributes of the terminal {name!r}", self.token, "Only rules have attributes.")
            attributes = self.attributes(name)
        self.expect(":")
        return RuleDefinition(name, self.alternatives(), token.offset, attributes, has_parameter)

    def attributes(self, rule: str) -> dict[str, Node | str | None]:
        self.expect("[")
        found: dict[str, Node | str | None] = {}
        while not self.sees("]"):
            token = self.token
            key = self.name("an attribute")
            if key in found:
                raise self.error(f"the attribute {key} is there twice", token, "Keep one.")
            if key == "lazy":
                found[key] = None
            elif key == "capture" and not self.sees("="):
                found[key] = rule
            elif key in _TEXT_ATTRIBUTES:
                self.expect("=")
                value = self.atom()
                if not isinstance(value, Literal) or value.ignore_case or not value.text:
                    raise self.error(f"{key} takes a text", token, f'Write {key}="name".')
                found[key] = value.text
            elif key in _NUMBER_ATTRIBUTES:
                self.expect("=")
                found[key] = self.number(whole=key != "temperature")
            elif key in _MARKER_ATTRIBUTES:
                self.expect("=")
                found[key] = self.marker(key)
            else:
                known = "capture, stop_capture, lazy, stop, suffix, max_tokens, temperature"
                raise self.error(f"the attribute {key!r} is not known", token, f"Known are {known}.")
            if not self.takes(","):
                break
        self.expect("]")
        if {"stop", "suffix"} <= found.keys():
            raise self.error(f"rule {rule!r} has both stop and suffix", self.token, "Keep one.")
        if "stop_capture" in found and not found.keys() & _MARKER_ATTRIBUTES:
            raise self.error(f"rule {rule!r} has stop_capture alone", self.token, "Add stop=... or suffix=...")
        return found

    def marker(self, key: str) -> Node:
        token = self.token
        value = self.atom()
        if not isinstance(value, (Literal, Pattern, Symbol, Structured)) or (
            isinstance(value, Symbol) and not RuleDefinition(value.name, value, 0).is_terminal
        ):
            raise self.error(f"{key} takes a text, a pattern or a terminal", token, f'Write {key}="end".')
        if self.dialect is Dialect.XGRAMMAR and isinstance(value, Literal) and not value.text:
            raise self.error(f"{key} is empty", token, f'Write {key}="end".')
        return value

    # Expressions

    def alternatives(self) -> Node:
        offset = self.token.offset
        options = [self.conjunction()]
        while self.takes_bar():
            options.append(self.conjunction())
        return options[0] if len(options) == 1 else Alternatives(tuple(options), offset)

    def takes_bar(self) -> bool:
        """Step over '|', which may begin a line; and over the ends of lines before a bracket that closes."""
        start = self.at
        while self.token.kind is TokenKind.NEW_LINE:
            self.at += 1
        if self.takes("|"):
            return True
        if not (self.depth and self.sees(")", "]")):
            self.at = start
        return False

    def conjunction(self) -> Node:
        offset = self.token.offset
        parts = [self.row()]
        while self.takes("&"):
            parts.append(self.row())
        if self.takes("->"):
            self.name("a name behind '->'")
        if len(parts) > 1 and self.dialect is Dialect.XGRAMMAR:
            raise self.not_in_dialect("&", offset)
        body = parts[0] if len(parts) == 1 else Both(tuple(parts), offset)
        if self.token.text != "%if":
            return body
        if self.dialect is Dialect.XGRAMMAR:
            raise self.not_in_dialect("%if", offset)
        self.at += 1
        return Conditional(body, self.condition(), offset)

    def row(self) -> Node:
        offset = self.token.offset
        parts = []
        while not (
            self.token.kind in (TokenKind.NEW_LINE, TokenKind.END)
            or self.token.text == "%if"
            or self.sees("|", ")", "]", "}", "&", "->")
        ):
            parts.append(self.counted())
        return parts[0] if len(parts) == 1 else Row(tuple(parts), offset)

    def counted(self) -> Node:
        offset = self.token.offset
        negated = self.takes("~")
        body = self.atom()
        if negated:
            if self.dialect is Dialect.XGRAMMAR:
                raise self.not_in_dialect("~", offset)
            body = NotIn(body, offset)
        for mark, low, high in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self.takes(mark):
                return Counted(body, low, high, offset)
        if self.sees("~") and self.tokens[self.at + 1].kind is TokenKind.NUMBER:
            self.at += 1
            return self.bounds(body, "..", offset)
        if self.takes("{"):
            found = self.bounds(body, ",", offset)
            self.expect("}")
            return found
        return body

    def bounds(self, body: Node, between: str, offset: int) -> Node:
        low = 0 if between == "," and self.sees(",") else int(self.number(whole=True))
        high: int | None = low
        if self.takes(between):
            high = None if between == "," and self.sees("}") else int(self.number(whole=True))
        if high is not None and high < low:
            raise self.error("the counts of this repetition are in the wrong order", self.token, "The lower one first.")
        return Counted(body, low, high, offset)

    def number(self, whole: bool) -> str:
        token = self.token
        self.at += 1
        text = token.text
        if token.kind is not TokenKind.NUMBER or (whole and not text.isdigit()) or text.startswith("-"):
            raise self.error("expected a number", token, "Write it without a sign.")
        if len(text) > 9:
            raise LimitError("a number is too large", where=self.place(token), remedy="Stay below 10**9.")
        return text

    def not_in_dialect(self, operator: str, offset: int) -> UnsupportedError:
        return UnsupportedError(
            f"{operator}, which XGrammar does not have",
            where=place_of(self.text, offset),
            remedy="Read the text in llguidance's dialect, or write it without.",
        )

    def atom(self) -> Node:
        token = self.token
        self.at += 1
        match token.kind:
            case TokenKind.STRING:
                return self.literal(token)
            case TokenKind.PATTERN:
                end = token.text.rindex("/")
                return Pattern(token.text[1:end], token.text[end + 1 :], token.offset)
            case TokenKind.NAME:
                return self.symbol(token)
            case TokenKind.SPECIAL:
                return SpecialToken(token.text, token.offset)
            case TokenKind.GRAMMAR:
                return OtherGrammar(token.text[1:], token.offset)
            case TokenKind.DIRECTIVE:
                return self.directive(token)
            case TokenKind.MARK if token.text in ("(", "["):
                return self.group(token)
            case _:
                shown = repr(token.text) if token.text.strip() else token.kind.value
                raise self.error(f"unexpected {shown}", token, "Expected a string, a pattern, a name or a group.")

    def literal(self, token: Token) -> Node:
        ignore_case = token.text.endswith("i")
        if not self.takes(".."):
            return Literal(token.value, ignore_case, token.offset)
        other = self.token
        self.at += 1
        ends = (token.value, other.value)
        if other.kind is not TokenKind.STRING or ignore_case or other.text.endswith("i") or [*map(len, ends)] != [1, 1]:
            raise self.error("a range goes from one character to another", token, 'Write "a".."z".')
        if ends[1] < ends[0]:
            raise self.error("the ends of this range are in the wrong order", token, "Write the lower one first.")
        return CharacterRange(ord(ends[0]), ord(ends[1]), token.offset)

    def symbol(self, token: Token) -> Node:
        if self.takes("::"):
            if self.dialect is Dialect.XGRAMMAR:
                raise self.not_in_dialect("a parameter of a rule", token.offset)
            return Symbol(token.text.lstrip("!?"), token.offset, self.argument())
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else token
        if self.sees("{") and after.kind is not TokenKind.NUMBER and after.text != ",":
            raise UnsupportedError("a template", where=self.place(self.token), remedy="Write the rules out.")
        return Symbol(token.text.lstrip("!?"), token.offset)

    # Parameters

    def argument(self) -> Argument:
        """What a use passes on: ``_``, a number, or a function of the parameter."""
        token = self.token
        if token.kind is TokenKind.NUMBER:
            return Constant(self.parameter())
        name = self.name("what to pass on")
        if name == "_":
            return Masked()
        if name not in ARGUMENTS:
            raise self.error(f"there is no function {name!r} of a parameter", token, f"Known: {', '.join(ARGUMENTS)}.")
        self.expect("(")
        found: Argument
        if name in ("incr", "decr"):
            found = Stepped(self.bits(), name == "incr")
        else:
            value = self.parameter() if name in ("bit_and", "bit_or") else 1 << self.bit(63)
            kept = {"bit_and": value, "clear_bit": MOST & ~value}.get(name, MOST)
            found = Masked(kept, value if name in ("bit_or", "set_bit") else 0)
        self.expect(")")
        return found

    def condition(self) -> Condition:
        """What ``%if`` asks of the parameter."""
        token = self.token
        name = self.name("a condition")
        if name == "true":
            if self.takes("("):
                self.expect(")")
            return Connected("and", ())
        self.enter(token)
        self.expect("(")
        found: Condition
        if name in ("and", "or"):
            left = self.condition()
            self.expect(",")
            found = Connected(name, (left, self.condition()))
        elif name == "not":
            found = Connected("not", (self.condition(),))
        elif name in ("bit_set", "bit_clear"):
            at = self.bit(63)
            found = Compared("eq", Bits(at, at + 1), int(name == "bit_set"))
        elif name in ("is_ones", "is_zeros"):
            bits = self.bits()
            found = Compared("eq", bits, bits.most if name == "is_ones" else 0)
        elif name.removeprefix("bit_count_") in COMPARISONS:
            bits = self.bits()
            self.expect(",")
            counted = name.startswith("bit_count_")
            number = self.bit(63) if counted else self.parameter()
            found = Compared(name.removeprefix("bit_count_"), bits, number, counted)
        else:
            raise self.error(f"there is no condition {name!r}", token, "For example lt(_, 3), bit_set(2), not(...).")
        self.expect(")")
        self.depth -= 1
        return found

    def bits(self) -> Bits:
        """``_`` or ``[low:high]``."""
        token = self.token
        if not self.takes("["):
            if self.name("'_' or '[low:high]'") != "_":
                raise self.error("expected '_' or '[low:high]'", token, "Write _ for all bits.")
            return Bits()
        low = self.bit(63)
        self.expect(":")
        high = self.bit(64)
        self.expect("]")
        if high <= low:
            raise self.error("the ends of these bits are in the wrong order", token, "The second is beyond the last.")
        return Bits(low, high)

    def bit(self, most: int) -> int:
        token = self.token
        found = self.parameter()
        if found > most:
            raise self.error(f"the number is greater than {most}", token, "Parameters have 64 bits.")
        return found

    def parameter(self) -> int:
        token = self.token
        self.at += 1
        text = token.text.lower()
        digits = text[2:] if text.startswith("0x") else text
        number = int(text, 16 if text.startswith("0x") else 10) if digits.isalnum() and len(digits) <= 20 else -1
        if token.kind is not TokenKind.NUMBER or not 0 <= number <= MOST:
            raise self.error("expected a number of up to 64 bits", token, "Write 7, or 0x7.")
        return number

    def directive(self, token: Token) -> Node:
        if token.text == "%json":
            return Json(token.value, token.offset)
        if token.text == "%regex":
            return Structured(token.value, token.offset)
        if token.text == "%lark":
            self.enter(token)
            self.expect("{")
            nested = Nested(self.document(nested=True), token.offset)
            self.expect("}")
            self.depth -= 1
            return nested
        raise UnsupportedError(
            f"{token.text} inside a rule", where=self.place(token), remedy="Here stand %json, %regex and %lark."
        )

    def group(self, token: Token) -> Node:
        self.enter(token)
        inside = self.alternatives()
        self.expect(")" if token.text == "(" else "]")
        self.depth -= 1
        return inside if token.text == "(" else Counted(inside, 0, 1, token.offset)

    def enter(self, token: Token) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise LimitError(
                f"brackets nest deeper than {MAX_NESTING} levels",
                where=self.place(token),
                remedy="Give the inner parts rules of their own.",
            )

    # Tokens

    @property
    def token(self) -> Token:
        return self.tokens[min(self.at, len(self.tokens) - 1)]

    def skip_lines(self) -> None:
        while self.token.kind is TokenKind.NEW_LINE:
            self.at += 1

    def sees(self, *marks: str) -> bool:
        return self.token.kind is TokenKind.MARK and self.token.text in marks

    def takes(self, mark: str) -> bool:
        found = self.sees(mark)
        self.at += found
        return found

    def expect(self, mark: str) -> None:
        if not self.takes(mark):
            shown = repr(self.token.text) if self.token.text.strip() else self.token.kind.value
            raise self.error(f"expected {mark!r} before {shown}", self.token, f"Add the {mark!r}.")

    def name(self, what: str) -> str:
        token = self.token
        if token.kind is not TokenKind.NAME:
            raise self.error(f"expected {what}", token, "Names are letters, digits, '_' and '-'.")
        self.at += 1
        return token.text

    def place(self, token: Token) -> str:
        return place_of(self.text, token.offset)

    def error(self, what: str, token: Token, remedy: str) -> GrammarError:
        return GrammarError(what, where=self.place(token), remedy=remedy)
