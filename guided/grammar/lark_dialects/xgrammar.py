"""XGrammar's dialect of Lark as pieces, version 0.2.8: no lexer, every split of the text counts.

Ignored text may follow each lexeme.  Free text that rules with ``lazy``, ``stop`` or ``suffix`` end is read as XGrammar
reads it: by the first marker, in the shapes that its documentation lists; elsewhere such rules end as soon as they may.
Sources: XGrammar's documentation of the notation (``lark_grammar.md``) and trials with its matcher.
"""

from __future__ import annotations

from collections.abc import Sequence

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.folding import regular_language
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
from guided.grammar.named import IGNORED, NamedRules, Peer
from guided.grammar.pieces import Definition, Either, Name, Piece, Regular, Repeated, Special, row
from guided.grammar.pieces import Row as PieceRow
from guided.grammar.regular.commitment import ended_after, shortest_matches
from guided.grammar.regular.expr import alternation, concat, repeat
from guided.grammar.special import names_of_reference
from guided.grammar.tags.free_text import TEXT, text_up_to, text_without

__all__ = ["lower_xgrammar"]

_ANY_TEXT = frozenset(("(.|\\n)*", "(\\n|.)*", "(?:.|\\n)*", "(?:\\n|.)*", "[\\s\\S]*", "(?s:.*)"))
_LAZY = frozenset(("lazy", "stop", "suffix"))
_FREE_TEXT = Regular(TEXT, "free text")
_NOTHING = PieceRow(())


def lower_xgrammar(document: Document, inputs: Inputs) -> Lowered:
    """The rules of a document, ``start`` among them."""
    return _Lowering(document, inputs).lowered()


class _Trigger:
    """What ends free text: a text, or any one of some special tokens."""

    __slots__ = ("tokens", "word")

    def __init__(self, word: str, tokens: tuple[str, ...] = ()) -> None:
        self.word = word
        self.tokens = tokens


class _Lowering:
    def __init__(self, document: Document, inputs: Inputs) -> None:
        self.inputs = inputs
        self.document = document
        self.terminals = Terminals(document, Dialect.XGRAMMAR, inputs.text)
        self.rules = self.terminals.definitions
        options = {"allow_initial_skip": True, "no_forcing": False, "allow_invalid_utf8": False}
        check_options(document.options, options, inputs.place(document.offset))
        self.skip: Piece | None = None
        self.consumed: set[str] = set()
        """Rules of which the dispatch of tools is made: nothing else may name them."""
        if document.ignored:
            ignored = [self.terminals.language(node)[0] for node in document.ignored]
            self.skip = Regular(repeat(alternation(ignored)), IGNORED)

    def lowered(self) -> Lowered:
        start = self.rules.get("start")
        if start is None or start.is_terminal:
            raise GrammarError("there is no rule 'start'", remedy="Define it: start: ...")
        dispatch = None if "temperature" in start.attributes else self.dispatch(start)
        found: dict[str, Definition] = {}
        for rule in self.rules.values():
            if dispatch is not None and rule.name in self.consumed:
                self.check_consumed(rule)
                continue
            if rule.is_terminal:
                found[rule.name] = Definition(self.terminals.named(rule.name, rule.offset), rule.offset)
                continue
            note_attributes(rule, self.inputs)
            body = dispatch if rule is start and dispatch is not None else self.rule(rule)
            if rule is start:
                before = self.skip if self.document.options.get("allow_initial_skip") else None
                after = self.skip if "temperature" in rule.attributes else None
                body = row([piece for piece in (before, body, after) if piece is not None])
            found[rule.name] = Definition(body, rule.offset)
        said = {name: named_rule(self.rules[name], self.terminals, hides_stop=True) for name in found}
        rules = {name: rule for name, rule in said.items() if rule is not None}
        bounded = {
            rule.name: self.within_budget(rule, found)
            for rule in self.rules.values()
            if "max_chars" in rule.attributes and rule.name in found
        }
        named = NamedRules(
            found, "start", Peer.XGRAMMAR, rules, {name: piece.language for name, piece in bounded.items()}
        )
        narrowed = {name: Definition(piece, found[name].offset) for name, piece in bounded.items()}
        for rule in self.rules.values():
            if "max_tokens" in rule.attributes and rule.name in found:
                narrowed[rule.name] = self.within_tokens(rule, {**found, **narrowed})
        return Lowered({**found, **narrowed}, tuple(self.inputs.notes), named)

    # Rules

    def rule(self, rule: RuleDefinition) -> Piece:
        if "temperature" in rule.attributes:
            body = _unwrapped(rule.body)
            if isinstance(body, (Json, Nested, OtherGrammar)):
                return embedded(body, self.inputs)[0]
            return self.terminals.regular(rule.body, rule.name)
        if rule.attributes.keys() & _LAZY:
            return self.lazy(rule)
        return self.piece(rule.body)

    def lazy(self, rule: RuleDefinition) -> Piece:
        trigger = self.trigger(rule)
        if trigger is not None and _is_fixed_suffix(rule):
            raise UnsupportedError(
                f"rule {rule.name!r} is lazy free text up to a text, which XGrammar takes at the head of a tool only",
                where=self.inputs.place(rule.offset),
                remedy='Write it as: name[suffix="..."]: /(.|\\n)*/',
            )
        if trigger is not None:
            if trigger.tokens:
                return self.skipped(Either((_FREE_TEXT, row([_FREE_TEXT, Special(trigger.tokens)]))))
            ends = alternation([text_up_to(trigger.word, [trigger.word]), text_without([trigger.word])])
            return self.skipped(Regular(ends, f"text up to {trigger.word!r}"))
        language, is_text = self.terminals.language(rule.body)
        marker = rule.marker
        if marker is not None:
            language = concat(language, self.terminals.language(marker)[0])
        return Regular(shortest_matches(language), rule.name, is_text)

    def within_budget(self, rule: RuleDefinition, found: dict[str, Definition]) -> Regular:
        definition = found[rule.name]
        language = regular_language(definition.body, found)
        others = [other.name for other in self.rules.values() if "max_chars" in other.attributes and other is not rule]
        combined = bool(rule.attributes.keys() & _LAZY)
        if language is None or combined or self.reaches(rule, set(others)):
            what = "is not regular" if language is None else "has lazy, stop or suffix" if combined else "names another"
            raise UnsupportedError(
                f"max_chars of rule {rule.name!r}, which {what}",
                where=self.inputs.place(rule.offset),
                remedy="Count characters in the pattern: /(.|\\n){0,1000}/.",
            )
        limit = int(str(rule.attributes["max_chars"]))
        return Regular(ended_after(language, limit), f"{rule.name}[max_chars={limit}]")

    def within_tokens(self, rule: RuleDefinition, found: dict[str, Definition]) -> Definition:
        most = most_tokens(rule)
        language = regular_language(found[rule.name].body, found)
        others = {other.name for other in self.rules.values() if "max_tokens" in other.attributes and other is not rule}
        reads_more = rule.name == "start" and self.skip is not None
        if not most or language is None or reads_more or self.reaches(rule, others):
            what = "may take none" if not most else "is not regular" if language is None else "names another"
            raise UnsupportedError(
                f"max_tokens of rule {rule.name!r}, which {'ignores text around' if reads_more else what}",
                where=self.inputs.place(rule.offset),
                remedy="Give it to a rule that is one terminal, other than start: 1 or more tokens of a pattern.",
            )
        piece = Regular(language, f"{rule.name}[max_tokens={most}]", most_tokens=most)
        return Definition(piece, rule.offset)

    def reaches(self, rule: RuleDefinition, others: set[str]) -> bool:
        seen: set[str] = set()
        waiting = [rule.body]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Symbol) and node.name not in seen and node.name in self.rules:
                seen.add(node.name)
                waiting.append(self.rules[node.name].body)
            waiting += _children(node)
        return bool(seen & others)

    # Bodies

    def piece(self, node: Node) -> Piece:
        match node:
            case Row(parts):
                return row([self.piece(part) for part in parts])
            case Alternatives(options):
                return Either(tuple(self.piece(option) for option in options))
            case Counted(body, low, high):
                if stands_for_text(body) and (low, high) == (0, None):
                    self.inputs.notes.append(f"no special token is in the text at {self.inputs.place(node.offset)}")
                    return self.skipped(_FREE_TEXT)
                return Repeated(self.piece(body), low, high)
            case Symbol(name, offset):
                return self.symbol(name, offset)
            case SpecialToken():
                return self.skipped(special_piece(node, self.inputs))
            case Json() | Nested() | OtherGrammar():
                return self.skipped(embedded(node, self.inputs)[0])
            case Literal(text):
                found = self.terminals.regular(node, repr(text))
                return self.skipped(found) if text else _NOTHING
            case _:
                return self.skipped(self.terminals.regular(node, self.label(node)))

    def symbol(self, name: str, offset: int) -> Piece:
        rule = self.rules.get(name)
        if rule is None:
            raise GrammarError(
                f"{name!r} is not defined",
                where=self.inputs.place(offset),
                remedy="Define it, import it, or quote it.",
            )
        is_lexeme = rule.is_terminal or bool(rule.attributes.keys() & (_LAZY | {"temperature"}))
        return self.skipped(Name(name, offset)) if is_lexeme else Name(name, offset)

    def skipped(self, piece: Piece) -> Piece:
        return piece if self.skip is None else PieceRow((piece, self.skip))

    def label(self, node: Node) -> str:
        return f"/{node.pattern}/" if isinstance(node, Pattern) else f"the terminal at {self.inputs.place(node.offset)}"

    # Free text

    def is_any_text(self, node: Node) -> bool:
        node = _unwrapped(node)
        seen: set[str] = set()
        while isinstance(node, Symbol) and node.name in self.rules and node.name not in seen:
            seen.add(node.name)
            node = _unwrapped(self.rules[node.name].body)
        if not isinstance(node, Pattern) or not set(node.flags) <= set("isu"):
            return False
        pattern = "".join(node.pattern.split())
        return pattern == ".*" if "s" in node.flags else pattern in _ANY_TEXT

    def trigger(self, rule: RuleDefinition) -> _Trigger | None:
        """What ends the free text of a lazy rule, where it is one of the shapes that XGrammar knows."""
        marker = rule.marker
        if marker is not None:
            fixed = isinstance(marker, Literal) and not marker.ignore_case and self.is_any_text(rule.body)
            return _Trigger(marker.text) if fixed and isinstance(marker, Literal) else None
        if "lazy" not in rule.attributes:
            return None
        body = _unwrapped(rule.body)
        if isinstance(body, Pattern):
            word = _fixed_suffix(body)
            return None if word is None else _Trigger(word)
        if not isinstance(body, Row) or len(body.parts) != 2 or not self.is_any_text(body.parts[0]):
            return None
        last = body.parts[1]
        if isinstance(last, Literal) and last.text and not last.ignore_case:
            return _Trigger(last.text)
        return self.token_trigger(last)

    def token_trigger(self, node: Node) -> _Trigger | None:
        node = _unwrapped(node)
        if not isinstance(node, SpecialToken):
            return None
        where = self.inputs.place(node.offset)
        return _Trigger("", names_of_reference(node.reference, self.inputs.special_tokens, where))

    def dispatch(self, start: RuleDefinition) -> Piece | None:
        """The start rule ``(tool | ...)* tail`` where each tool begins with free text up to its trigger."""
        parts = start.body.parts if isinstance(start.body, Row) else (start.body,)
        if len(parts) != 2 or not isinstance(tail := _unwrapped(parts[1]), Symbol):
            return None
        loop = _unwrapped(parts[0])
        if not isinstance(loop, Counted) or (loop.low, loop.high) != (0, None) or not self.is_any_text(tail):
            return None
        inside = _unwrapped(loop.body)
        options = [_unwrapped(option) for option in inside.options] if isinstance(inside, Alternatives) else [inside]
        tools: list[tuple[_Trigger, Piece]] = []
        for option in options:
            tool = self.rules.get(option.name) if isinstance(option, Symbol) else None
            found = None if tool is None or tool.is_terminal else self.tool(tool)
            if found is None:
                return None
            tools.append(found)
            self.consumed.add(tool.name if tool is not None else "")
        if len({bool(trigger.tokens) for trigger, _ in tools}) > 1:
            raise UnsupportedError(
                "tools that begin with a text beside tools that begin with a special token",
                where=self.inputs.place(start.offset),
                remedy="Let all begin in one way.",
            )
        self.consumed.add(tail.name)
        if "max_chars" in start.attributes:
            raise UnsupportedError(
                "max_chars of a rule of tools around free text, which XGrammar passes over",
                where=self.inputs.place(start.offset),
                remedy="Leave it out.",
            )
        return self.around(tools, start)

    def check_consumed(self, rule: RuleDefinition) -> None:
        """XGrammar passes over ``max_chars`` here, refuses others, and leaves such rules empty for all others."""
        named = [other for other in self.rules.values() if other.name not in self.consumed and other.name != "start"]
        if rule.attributes.keys() & {"max_chars", "max_tokens", "capture"} or any(
            self.reaches(other, {rule.name}) for other in named
        ):
            raise UnsupportedError(
                f"rule {rule.name!r} is a part of the tools around free text, and has other attributes or uses",
                where=self.inputs.place(rule.offset),
                remedy="Give it a copy of its own for the other use; attributes belong to the rules that it names.",
            )

    def tool(self, rule: RuleDefinition) -> tuple[_Trigger, Piece] | None:
        parts = rule.body.parts if isinstance(rule.body, Row) else (rule.body,)
        first = _unwrapped(parts[0]) if parts else None
        if isinstance(first, Symbol) and first.name in self.rules:
            trigger = self.trigger(self.rules[first.name])
            if trigger is not None:
                self.consumed.add(first.name)
                return trigger, row([self.piece(part) for part in parts[1:]])
        if len(parts) >= 2 and self.is_any_text(parts[0]):
            trigger = self.token_trigger(parts[1])
            if trigger is not None:
                return trigger, row([self.piece(part) for part in parts[2:]])
        return None

    def around(self, tools: Sequence[tuple[_Trigger, Piece]], start: RuleDefinition) -> Piece:
        words = list(dict.fromkeys(trigger.word for trigger, _ in tools if trigger.word))
        if any(word != other and word in other for word in words for other in words):
            raise UnsupportedError(
                "a tool's text that contains another's, where XGrammar goes on with either",
                where=self.inputs.place(start.offset),
                remedy="Use texts none of which is inside another.",
            )
        calls: list[Piece] = []
        for trigger, rest in tools:
            if trigger.tokens:
                calls.append(row([_FREE_TEXT, Special(trigger.tokens), rest]))
            else:
                calls.append(row([Regular(text_up_to(trigger.word, words), f"text up to {trigger.word!r}"), rest]))
        after = Regular(text_without(words), "free text") if words else _FREE_TEXT
        return row([Repeated(Either(tuple(calls)), 0, None), after])


def _unwrapped(node: Node) -> Node:
    while isinstance(node, Row) and len(node.parts) == 1:
        node = node.parts[0]
    return node


def _children(node: Node) -> Sequence[Node]:
    match node:
        case Row(parts) | Alternatives(parts):
            return parts
        case Counted(body):
            return (body,)
        case _:
            return ()


def _is_fixed_suffix(rule: RuleDefinition) -> bool:
    return not rule.attributes.keys() & {"stop", "suffix"} and isinstance(_unwrapped(rule.body), Pattern)


_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}


def _fixed_suffix(node: Pattern) -> str | None:
    """The text behind any text in a pattern, where it is only characters."""
    if not set(node.flags) <= set("su"):
        return None
    prefixes = [".*"] if "s" in node.flags else sorted(_ANY_TEXT)
    rest = next((node.pattern[len(prefix) :] for prefix in prefixes if node.pattern.startswith(prefix)), "")
    found = []
    at = 0
    while at < len(rest):
        letter = rest[at]
        if letter == "\\":
            letter = rest[at + 1 : at + 2]
            if letter not in _ESCAPED and (not letter or letter.isalnum()):
                return None
            letter = _ESCAPED.get(letter, letter)
            at += 1
        elif letter in ".^$*+?()[]{}|":
            return None
        found.append(letter)
        at += 1
    return "".join(found) or None
