"""What must be known of a grammar before it is lowered: which rules can finish, be empty, and begin with which.

Works on the IR alone.  Also gives every body that lowering will share (member values, counted repetition bodies) a
rule of its own, so that a counter's thousandth state calls the same rule as its first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from guided.errors import UnsatisfiableError
from guided.grammar.components import components
from guided.grammar.goals import fewest_to_meet
from guided.grammar.ir import (
    AnyTerminal,
    Body,
    Choice,
    Common,
    DeferredMembers,
    Grammar,
    ListedTerminal,
    Mark,
    Member,
    Members,
    RangedTerminal,
    Reference,
    Repetition,
    Rule,
    RuleProvider,
    Sequence,
    Terminal,
)
from guided.grammar.regular.derivative import inhabited
from guided.grammar.regular.expensive import is_expensive
from guided.grammar.regular.expr import Expr
from guided.grammar.rules import every_rule

UNROLLED = 3
"""Counted repetitions up to this bound are written out; larger ones count in lazily made nodes."""


@dataclass(frozen=True)
class Analysis:
    """Rules with helpers added, and facts per rule; ``rank`` orders rules before all that they may begin with."""

    rules: RuleProvider
    productive: frozenset[int]
    nullable: frozenset[int]
    rank: tuple[int, ...]
    component: tuple[frozenset[int] | None, ...]
    """For left-recursive rules, all rules of the same cycle; None for others."""

    marks: Mapping[int, Mark] = field(default_factory=dict)
    """The rules that have a mark."""

    whole: bool = False
    """Is it known that every part of every rule derives some text?"""

    common: Common | None = None
    """Rules that other grammars have too."""

    patterns: tuple[Expr, ...] = ()
    """Terminals that are expensive to read for the first time."""

    met_whole: tuple[Expr, ...] = ()
    """Terminals of which the first mask asks for most of many states."""

    finishing: dict[Body, bool] = field(default_factory=dict, repr=False)
    """What `can_finish` has answered: the same parts are asked about wherever they are lowered."""

    def usable(self, members: tuple[Member, ...]) -> list[Member]:
        """Those members that can be written at all."""
        return list(members) if self.whole else [member for member in members if usable(member, self.productive)]

    def can_finish(self, body: Body) -> bool:
        """Does ``body`` derive any text at all?"""
        if self.whole:
            return True
        found = self.finishing.get(body)
        if found is None:
            found = self.finishing[body] = _productive(body, self.productive)
        return found

    def may_be_empty(self, body: Body) -> bool:
        """Does ``body`` derive the empty text?"""
        return _nullable(body, self.nullable)


def analyse(grammar: Grammar) -> Analysis:
    """Facts about all rules; raises `UnsatisfiableError` when the start rule derives nothing."""
    if (known := grammar.prepared) is not None:
        n_rules = len(grammar.rules)
        everything = frozenset(range(n_rules))
        return Analysis(
            grammar.rules, everything, known.nullable, known.rank, (None,) * n_rules, known.marks, whole=True,
            common=known.common, patterns=known.patterns, met_whole=known.met_whole,
        )  # fmt: skip
    rules = list(every_rule(grammar.rules))
    for index in range(len(grammar.rules)):
        rules[index] = replace(rules[index], body=_outline(rules[index].body, rules, rules[index].name))
    productive = productive_rules(rules)
    if grammar.start not in productive:
        raise UnsatisfiableError(
            f"no text satisfies this grammar: rule {rules[grammar.start].name!r} can never finish"
            f"{_cause(rules, grammar.start, productive)}",
            remedy="Give the recursion a way to end, or remove the requirement that contradicts the rest.",
        )
    nullable = _fixpoint(rules, lambda body, known: _nullable(body, known))
    lefts = [tuple(dict.fromkeys(_lefts(rule.body, nullable))) for rule in rules]
    cycles = components(lefts)
    rank = [0] * len(rules)
    component: list[frozenset[int] | None] = [None] * len(rules)
    for position, members in enumerate(reversed(cycles)):
        for member in members:
            rank[member] = position
            if len(members) > 1 or member in lefts[member]:
                component[member] = frozenset(members)
    exprs = (each.expr for rule in rules for each in terminals_of(rule.body) if each.lexer is None)
    patterns = tuple(dict.fromkeys(filter(is_expensive, exprs)))
    marks = {index: rule.mark for index, rule in enumerate(rules) if rule.mark is not None}
    return Analysis(tuple(rules), productive, nullable, tuple(rank), tuple(component), marks, patterns=patterns)


def productive_rules(rules: list[Rule] | tuple[Rule, ...]) -> frozenset[int]:
    """The rules that derive some text."""
    return _fixpoint(rules, lambda body, known: _productive(body, known))


def is_counted(body: Repetition) -> bool:
    """Will this repetition be lowered with counting nodes?"""
    return body.low > UNROLLED or (body.high is not None and body.high > UNROLLED)


def _outline(body: Body, rules: list[Rule], name: str) -> Body:
    """Move shared sub-bodies to rules of their own."""

    def own(part: Body) -> Body:
        part = _outline(part, rules, name)
        if isinstance(part, AnyTerminal | Reference):
            return part
        rules.append(Rule(name, part))
        return Reference(len(rules) - 1)

    match body:
        case Sequence(parts):
            return Sequence(tuple(_outline(part, rules, name) for part in parts))
        case Choice(options):
            return Choice(tuple(_outline(option, rules, name) for option in options))
        case Repetition():
            inner = own(body.body) if is_counted(body) else _outline(body.body, rules, name)
            separator = None if body.separator is None else _outline(body.separator, rules, name)
            return replace(body, body=inner, separator=separator)
        case DeferredMembers():
            return _outline(body.written(), rules, name)
        case Members():
            return replace(
                body,
                declared=tuple(replace(m, value=own(m.value)) for m in body.declared),
                extras=tuple(replace(m, value=own(m.value)) for m in body.extras),
                separator=own(body.separator),
            )
        case _:
            return body


def _fixpoint(rules: list[Rule] | tuple[Rule, ...], test: Callable[[Body, frozenset[int]], bool]) -> frozenset[int]:
    """The least set of rules closed under ``test``; each rule is looked at again only after one it mentions changed."""
    users: list[list[int]] = [[] for _ in rules]
    for index, rule in enumerate(rules):
        for target in set(references(rule.body)):
            users[target].append(index)
    known: set[int] = set()
    work = list(range(len(rules) - 1, -1, -1))
    queued = [True] * len(rules)
    while work:
        # By rounds: a rule that mentions thousands is looked at again once they are through, not after each.
        later: list[int] = []
        while work:
            index = work.pop()
            queued[index] = False
            if index not in known and test(rules[index].body, known):  # type: ignore[arg-type]
                known.add(index)
                for user in users[index]:
                    if not queued[user] and user not in known:
                        queued[user] = True
                        later.append(user)
        work = later[::-1]
    return frozenset(known)


def references(body: Body) -> Iterator[int]:
    """Every rule that ``body`` mentions."""
    stack: list[Body] = [body]
    while stack:
        item = stack.pop()
        match item:
            case Reference(rule):
                yield rule
            case Sequence(parts):
                stack.extend(parts)
            case Choice(options):
                stack.extend(options)
            case Repetition():
                stack.append(item.body)
                if item.separator is not None:
                    stack.append(item.separator)
            case DeferredMembers():
                stack.append(item.written())
            case Members():
                stack.append(item.separator)
                for member in (*item.declared, *item.extras):
                    stack.append(member.value)


def terminals_of(body: Body) -> Iterator[Terminal]:
    """The terminals of ``body`` that are not data."""
    stack: list[Body] = [body]
    while stack:
        item = stack.pop()
        if isinstance(item, Terminal):
            yield item
        elif isinstance(item, DeferredMembers):
            stack.append(item.written())
        elif isinstance(item, Members):
            for member in (*item.declared, *item.extras):
                stack += (member.key, member.value)
        else:
            stack.extend(_parts(item))


def _parts(body: Body) -> tuple[Body, ...]:
    """What a sequence, choice or repetition is made of."""
    match body:
        case Sequence(parts):
            return parts
        case Choice(options):
            return options
        case Repetition():
            return (body.body,)
    return ()


def usable(member: Member, known: frozenset[int]) -> bool:
    """Can this member be written at all?"""
    return _productive(member.key, known) and _productive(member.value, known)


def _productive(body: Body, known: frozenset[int]) -> bool:
    match body:
        case Terminal():
            return body.lexer is not None or inhabited(body.expr)
        case ListedTerminal() | RangedTerminal():
            return True
        case Reference(rule):
            return rule in known
        case Sequence(parts):
            return all(_productive(part, known) for part in parts)
        case Choice(options):
            return any(_productive(option, known) for option in options)
        case Repetition():
            if body.high is not None and body.high < body.low:
                return False
            if body.low == 0:
                return True
            separated = body.low == 1 or body.separator is None or _productive(body.separator, known)
            return separated and _productive(body.body, known)
        case DeferredMembers():
            return _productive(body.written(), known)
        case Members():
            declared = [usable(member, known) for member in body.declared]
            if any(member.required and not good for member, good in zip(body.declared, declared)):
                return False
            extras = any(usable(member, known) for member in body.extras)
            required = sum(member.required for member in body.declared)
            if body.goals:
                needed = fewest_to_meet([m.meets for m in body.extras if usable(m, known)], body.goals)
                if needed is None:
                    return False
                required += needed
            most = None if extras else sum(declared)
            if not _productive(body.separator, known):
                most = 1 if most is None else min(most, 1)
            enough = most is None or (body.low <= most and required <= most)
            return enough and (body.high is None or max(body.low, required) <= body.high)


def _nullable(body: Body, known: frozenset[int]) -> bool:
    match body:
        case Terminal():
            return body.lexer is None and body.expr.nullable
        case ListedTerminal() | RangedTerminal():
            return False
        case Reference(rule):
            return rule in known
        case Sequence(parts):
            return all(_nullable(part, known) for part in parts)
        case Choice(options):
            return any(_nullable(option, known) for option in options)
        case Repetition():
            if body.low == 0:
                return True
            separated = body.low == 1 or body.separator is None or _nullable(body.separator, known)
            return separated and _nullable(body.body, known)
        case DeferredMembers():
            return not any(body.required)
        case Members():
            return body.low == 0 and body.goals == 0 and not any(member.required for member in body.declared)


def _lefts(body: Body, nullable: frozenset[int]) -> list[int]:
    """The rules that may stand first in ``body``, after parts that may be empty."""
    match body:
        case Reference(rule):
            return [rule]
        case Sequence(parts):
            found: list[int] = []
            for part in parts:
                found += _lefts(part, nullable)
                if not _nullable(part, nullable):
                    break
            return found
        case Choice(options):
            return [rule for option in options for rule in _lefts(option, nullable)]
        case Repetition():
            found = _lefts(body.body, nullable)
            if body.separator is not None and _nullable(body.body, nullable):
                found += _lefts(body.separator, nullable)
            return found
        case DeferredMembers():
            return _lefts(body.written(), nullable)
        case Members():
            # Keys are terminals; one that may be empty would let its value stand first.
            return [
                rule
                for member in (*body.declared, *body.extras)
                if member.key.expr.nullable
                for rule in _lefts(member.value, nullable)
            ]
        case _:
            return []


def _cause(rules: list[Rule], start: int, productive: frozenset[int]) -> str:
    """Follow what cannot finish down to a terminal that matches nothing, if there is one."""
    seen = {start}
    stack: list[Body] = [rules[start].body]
    while stack:
        item = stack.pop()
        if _productive(item, productive):
            continue
        match item:
            case Terminal():
                return f", because {item.label or 'one of its terminals'} matches nothing"
            case Reference(rule):
                if rule not in seen:
                    seen.add(rule)
                    stack.append(rules[rule].body)
            case DeferredMembers():
                stack.append(item.written())
            case Members():
                stack.extend(m.value for m in item.declared if m.required)
                stack.extend(m.key for m in item.declared if m.required)
            case _:
                stack.extend(_parts(item))
    return ""
