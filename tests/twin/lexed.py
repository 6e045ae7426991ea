"""The slow, obvious twin of the engine for grammars with a lexer: follows every thread, character by character.

A thread is a lexer state, a parser state and what it still owes (`guided.automata.lexer.ordered`).  The LALR parser is a plain
stack; the Earley parser is a chart whose columns are values.  Only `guided.automata.lexer.ordered` is shared with the engine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from guided.automata.lexer.ordered import OrderedLexer, OrderedState, combine
from guided.grammar.ir import Body, Choice, Grammar, Lexing, Members, Reference, Repetition, Rule, Sequence, Terminal
from guided.grammar.regular.expr import Expr, literal
from tests.twin.earley import productions


class LalrParser:
    """Stacks of LALR states; None: a syntax error."""

    def __init__(self, grammar: Grammar) -> None:
        self.tables = grammar.tables
        self.start = (self.tables.start,)

    def candidates(self, stack):
        return self.tables.accepts[stack[-1]]

    def merged(self, stacks):
        return stacks

    def feed(self, stack, terminal):
        stack = list(stack)
        while True:
            state = stack[-1]
            if terminal in self.tables.shift[state]:
                return (*stack, self.tables.shift[state][terminal])
            if terminal not in self.tables.reduce[state]:
                return None
            name, length = self.tables.rules[self.tables.reduce[state][terminal]]
            if length:
                del stack[-length:]
            stack.append(self.tables.goto[stack[-1]][name])
            if terminal == self.tables.end and stack[-1] == self.tables.final:
                return tuple(stack)

    def accepts(self, stack):
        return self.feed(stack, self.tables.end) is not None


class Column:
    """An Earley set as a value: items ``(name, right, dot, origin)``, origin None being the column itself."""

    def __init__(self, items) -> None:
        self.items = items


class EarleyParser:
    """Charts of interned columns over terminals."""

    def __init__(self, grammar: Grammar) -> None:
        marks = [literal(b"%d" % index) for index in range(len(grammar.terminals))]
        self.number = {mark: index for index, mark in enumerate(marks)}
        rules = tuple(Rule(rule.name, _marked(rule.body, marks)) for rule in grammar.rules)
        self.table, self.root = productions(replace(grammar, rules=rules, lexing=Lexing.NONE, terminals=()))
        self.columns: dict[frozenset, Column] = {}
        # The text as a whole is rule -1, which begins in a column before the first.
        self.start = self._column({(-1, (self.root,), 0, Column(frozenset()))})
        self.feed = lru_cache(maxsize=None)(self._feed)

    def _column(self, kernel) -> Column | None:
        items: set = set()
        empty: set[int] = set()
        work = list(kernel)
        while work:
            item = work.pop()
            if item in items:
                continue
            items.add(item)
            name, right, dot, origin = item
            if dot == len(right):
                if origin is None:
                    empty.add(name)
                for other in list(items) if origin is None else origin.items:
                    if other[2] < len(other[1]) and other[1][other[2]] == name:
                        base = other[3] if origin is None or other[3] is not None else origin
                        work.append((other[0], other[1], other[2] + 1, base))
            elif isinstance(right[dot], int):
                work.extend((right[dot], option, 0, None) for option in self.table.rules[right[dot]])
                if right[dot] in empty:
                    work.append((name, right, dot + 1, origin))
        # Finished items have done their work, and forgetting them makes more columns equal.
        items = {item for item in items if item[2] < len(item[1]) or item[0] == -1}
        if not items:
            return None
        return self.columns.setdefault(frozenset(items), Column(items))

    def merged(self, columns):
        """Columns at one position of the text are one column; without this, ambiguity multiplies."""
        items = frozenset(item for column in columns for item in column.items)
        return {self.columns.setdefault(items, Column(items))}

    def candidates(self, column):
        return sorted(
            {self.number[right[dot]] for _, right, dot, _ in column.items
             if dot < len(right) and isinstance(right[dot], Expr)}
        )  # fmt: skip

    def _feed(self, column, terminal):
        kernel = {
            (name, right, dot + 1, column if origin is None else origin)
            for name, right, dot, origin in column.items
            if dot < len(right) and isinstance(right[dot], Expr) and self.number[right[dot]] == terminal
        }
        return self._column(kernel)

    def accepts(self, column):
        return any(name == -1 and dot == 1 for name, _, dot, _ in column.items)


def _marked(body: Body, marks) -> Body:
    if isinstance(body, Terminal):
        return Terminal(marks[body.lexer], body.label)
    if isinstance(body, Reference):
        return body
    if isinstance(body, Sequence):
        return Sequence(tuple(_marked(part, marks) for part in body.parts))
    if isinstance(body, Choice):
        return Choice(tuple(_marked(option, marks) for option in body.options))
    if isinstance(body, Repetition):
        separator = None if body.separator is None else _marked(body.separator, marks)
        return Repetition(_marked(body.body, marks), body.low, body.high, separator)
    assert not isinstance(body, Members)
    raise AssertionError(body)


class LexedRecogniser:
    """Does the grammar accept a whole text?"""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.contextual = grammar.lexing is Lexing.CONTEXTUAL
        self.lexer = OrderedLexer(grammar.terminals)
        self.parser = LalrParser(grammar) if self.contextual else EarleyParser(grammar)
        self.ignore = set(grammar.ignore)

    def _starts(self, parse, memory) -> list[OrderedState]:
        if self.contextual:
            return [self.lexer.start(self.parser.candidates(parse), memory)]
        return [self.lexer.start((i,), memory) for i in sorted({*self.parser.candidates(parse), *self.ignore})]

    def accepts(self, text: str) -> bool:
        if self.parser.start is None:
            return False
        between = {(self.parser.start, None, self.lexer.initial_memory)}
        inside: set = set()
        for byte in text.encode():
            for parse, owed, memory in between:
                inside |= {(start, parse, owed) for start in self._starts(parse, memory)}
            between = set()
            advanced = set()
            for lexeme, parse, owed in inside:
                after = lexeme.after(byte)
                if after is None:
                    continue
                if owed is not None:
                    owed = owed.after(byte)
                    if owed is not None and owed.violated:
                        continue
                advanced.add((after, parse, owed))
                for exit in after.exits:
                    obligations = [o for o in (owed, exit.obligation) if o is not None]
                    total = combine(obligations) if obligations else None
                    following = parse if exit.tag in self.ignore else self.parser.feed(parse, exit.tag)
                    if following is not None:
                        between.add((following, total, after.memory))
            inside = advanced
            places: dict = {}
            for parse, owed, memory in between:
                places.setdefault((owed, memory), set()).add(parse)
            between = {(parse, *place) for place, parses in places.items() for parse in self.parser.merged(parses)}
            if not inside and not between:
                return False
        return any(
            (owed is None or not owed.violated_at_end) and self.parser.accepts(parse) for parse, owed, _ in between
        )
