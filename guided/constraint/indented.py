"""Texts of a grammar with indentation: what Lark's `Indenter` does, beside the compiled grammar of marks.

The automaton reads the text, and marks where the indenter would put tokens between: which ones, the columns of the
lines tell that are still open.  A state is the automaton's with these columns, the brackets that are open, and where
in the match of a new line the text is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from guided.automata.endings.lexemes import Lexemes
from guided.automata.endings.obligations import Owed, Work
from guided.automata.lexer.ordered import OrderedState, lexer_of, start_state
from guided.constraint.constraint import Constraint
from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint, TokenTree, name_bytes
from guided.errors import UnsupportedError
from guided.grammar.ir import Grammar
from guided.grammar.lexing import CLOSE, DEDENT, INDENT, INSIDE, NEWLINE, OPEN, Indentation
from guided.kernels.data.layout import DEAD
from guided.special_bytes import SENTINEL, special_bytes
from guided.vocab.vocabulary import Vocabulary

__all__ = ["IndentedConstraint"]

MOST_STEPS = 100_000
"""Steps of deciding whether matches have ended at new lines, 20 us each.  Python's grammar takes 41,000."""
_LINE_FEED, _SPACE, _TAB = 10, 32, 9


def _bytes(state: OrderedState | None) -> set[int]:
    """The bytes on its edges."""
    return set() if state is None else {byte for low, high, _ in state.edges() for byte in range(low, high + 1)}


class Place(NamedTuple):
    """Where a text is; ``inside`` is the state of the new line's match, 0 elsewhere, ``column`` that of its last line,
    -1 before the first; ``inner`` has read the mark of a new line that is being read."""

    inner: int
    stack: tuple[int, ...]
    level: int
    inside: int
    column: int


class _Branch:
    """Tokens by their bytes."""

    __slots__ = ("below", "tokens")

    def __init__(self) -> None:
        self.below: dict[int, _Branch] = {}
        self.tokens: list[int] = []


class IndentedLanguage:
    """A `LiveLanguage`."""

    def __init__(self, constraint: Constraint, reader: Indentation) -> None:
        self.constraint = constraint
        self.reader = reader
        self._marks = {name: special_bytes(name) for name in (NEWLINE, INSIDE, INDENT, DEDENT, OPEN, CLOSE)}
        self._fed: dict[tuple[int, bytes], int] = {}
        self._rests: dict[Place, bytes] = {}
        self._going_on: dict[int, bool] = {}
        self._number()
        self.start = Place(constraint.start, (0,), 0, 0, -1)
        self._special = (
            {SENTINEL[0]}
            | {text[-1] for text in (*reader.opens, *reader.closes)}
            | {byte for byte in range(256) if self._first.after(byte) is not None}
        )
        self._looked_at: list[_Branch] = []
        self._row_without = np.zeros(0, np.uint32)
        self.rest(self.start)

    def __repr__(self) -> str:
        return repr(self.constraint.grammar)

    def _number(self) -> None:
        """Number the states of the new line's match, and find from each the way to the beginning of a line."""
        self._first = start_state((self.reader.newline,), (0,))
        self._states: list[OrderedState] = [self._first]
        self._numbers = {id(self._first): 0}
        for state in self._states:
            for _, _, target in state.edges():
                if id(target) not in self._numbers:
                    self._numbers[id(target)] = len(self._states)
                    self._states.append(target)
        for state in self._states[1:]:
            for exit in state.exits[:1]:
                if len(state.exits) > 1 or _bytes(exit.obligation) != _bytes(state):
                    raise UnsupportedError(
                        f"the match of {self.reader.newline.name} is not always the longest",
                        remedy="Leave out what is lazy or optional at its end.",
                    )
        self._ways = [self._way(state) for state in self._states]

    def _way(self, state: OrderedState) -> bytes:
        """The shortest text that ends the match with the beginning of a line, where any number of spaces may follow."""
        queue = [(state, b"")]
        seen = {id(state)}
        for at, text in queue:
            for low, high, target in at.edges():
                if low <= _LINE_FEED <= high and self._is_fresh(target):
                    return text + b"\n"
                if id(target) not in seen:
                    seen.add(id(target))
                    queue.append((target, text + bytes([low])))
        raise UnsupportedError(
            f"{self.reader.newline.name} does not take the spaces behind a new line",
            remedy="Let it end with any number of them, as /\\r?\\n[\\t ]*/ does.",
        )

    def _is_fresh(self, state: OrderedState) -> bool:
        seen = set()
        at: OrderedState | None = state
        while at is not None and at.exits and id(at) not in seen:
            seen.add(id(at))
            at = at.after(_SPACE)
        return at is not None and id(at) in seen

    def _feed(self, inner: int, data: bytes) -> int:
        key = (inner, data)
        found = self._fed.get(key)
        if found is None:
            found = self._fed[key] = self.constraint._machine.advance(inner, data)
        return found

    def step(self, at: Place, byte: int) -> Place | None:
        """The place after one byte."""
        if at.inside:
            state = self._states[at.inside].after(byte)
            if state is not None:
                return at._replace(inside=self._numbers[id(state)], column=self._column(at, byte))
            ended = self._ended(at)
            return None if ended is None or byte in self._nl_bytes() else self.step(ended, byte)
        if byte == 0xFF:
            return None
        state = self._first.after(byte)
        if state is not None:
            inner = self._feed(at.inner, self._marks[INSIDE if at.level else NEWLINE])
            if inner != DEAD:
                begun = at._replace(inner=inner, inside=self._numbers[id(state)])
                return begun._replace(column=self._column(begun, byte))
        inner = self._feed(at.inner, bytes([byte]))
        if inner == DEAD:
            return None
        if byte in self._special:
            marked = self._feed(inner, self._marks[OPEN])
            if marked != DEAD:
                return at._replace(inner=marked, level=at.level + 1)
            marked = self._feed(inner, self._marks[CLOSE])
            if marked != DEAD:
                return at._replace(inner=marked, level=at.level - 1) if at.level else None
        return at._replace(inner=inner)

    def _nl_bytes(self) -> set[int]:
        return {byte for low, high, _ in self._first.edges() for byte in range(low, high + 1)}

    def _column(self, at: Place, byte: int) -> int:
        if at.level:
            return -1
        if byte == _LINE_FEED:
            return 0
        if at.column < 0:
            return -1
        return at.column + {_SPACE: 1, _TAB: self.reader.tab_length}.get(byte, 0)

    def _ended(self, at: Place) -> Place | None:
        """The place behind the match of a new line that ends here."""
        if not self._states[at.inside].exits:
            return None
        plain = at._replace(inside=0, column=-1)
        if at.level:
            return plain
        if at.column < 0:
            return None
        inner, stack = at.inner, at.stack
        if at.column > stack[-1]:
            inner = self._feed(inner, self._marks[INDENT])
            stack = (*stack, at.column)
        while at.column < stack[-1]:
            inner = self._feed(inner, self._marks[DEDENT])
            stack = stack[:-1]
        if inner == DEAD or stack[-1] != at.column:
            return None
        ended = plain._replace(inner=inner, stack=stack)
        return ended if self._goes_on(inner) or self.may_end(ended) else None

    def _goes_on(self, inner: int) -> bool:
        """May something be read here that is no change of indentation, for which it is too late behind the new line?"""
        found = self._going_on.get(inner)
        if found is None:
            # A grammar with a lexer has no checker of its own.
            machine, terminals = cast(ConstraintMachine, self.constraint._machine), self.constraint.grammar.terminals
            stacks, ignored = machine.stacks, self.constraint.grammar.ignore
            assert stacks is not None
            found = self._going_on[inner] = any(
                terminals[tag].name not in (INDENT, DEDENT) and stacks.accepts(stack, tag)
                for _, continuation, _ in machine.threads(inner)
                for stack in [machine._stack(continuation)]
                for tag in stacks.tables.accepts[stack[-1]]
                if tag not in ignored
            )
        return found

    def following(self, at: Place) -> Sequence[int]:
        """The bytes that may come."""
        return [byte for byte in range(255) if self.step(at, byte) is not None]

    def may_end(self, at: Place) -> bool:
        """Is the text in the language?"""
        ended = self._ended(at) if at.inside else at
        if ended is None:
            return False
        inner = ended.inner
        for _ in ended.stack[1:]:
            inner = self._feed(inner, self._marks[DEDENT])
        return inner != DEAD and self.constraint.is_accepting(inner)

    def rest(self, at: Place) -> bytes:
        """A text that completes it: what the grammar of marks takes for the shortest.

        What is left is remembered for every state on the way, so each byte brings the end nearer.
        """
        found = self._rests.get(at)
        if found is None:
            text = self._translated(at)
            state, way = at, []
            for place, byte in enumerate(text):
                known = self._rests.get(state)
                if known is not None and len(known) <= len(text) - place:
                    text = text[:place] + known
                    break
                way.append(state)
                after = self.step(state, byte)
                if after is None:
                    raise AssertionError(f"{text!r} is no way to the end from {at}")
                state = after
            else:
                if not self.may_end(state):
                    raise AssertionError(f"{text!r} does not end from {at}")
                way.append(state)
            for place, state in enumerate(way):
                self._rests[state] = text[place:]
            # If the way visits the place again, what is left then is enough.
            found = self._rests[at]
        return found

    def _translated(self, at: Place) -> bytes:
        if self.may_end(at):
            return b""
        text = self.constraint.shortest_text(at.inner)
        for name in (OPEN, CLOSE):
            text = text.replace(self._marks[name], b"")
        out = b""
        stack = at.stack
        if at.inside:
            if at.level:
                out = self._ways[at.inside]
            else:
                text = self._marks[NEWLINE] + text
        newline, indent, dedent = (self._marks[name] for name in (NEWLINE, INDENT, DEDENT))
        began = at.inside and not at.level
        pieces = text.split(newline)
        out += pieces[0]
        for piece in pieces[1:]:
            while piece.startswith(dedent):
                piece, stack = piece[len(dedent) :], stack[:-1]
            if piece.startswith(indent):
                piece, stack = piece[len(indent) :], (*stack, stack[-1] + 1)
            out += (self._ways[at.inside] if began else self._ways[0]) + b" " * stack[-1] + piece
            began = False
        return out

    def row(self, at: Place, tree: TokenTree) -> NDArray[np.uint32] | None:
        """The inner mask for tokens of one line without brackets; the others are read."""
        if at.inside:
            return None
        if not self._looked_at:
            self._look(tree)
        row = np.zeros(tree.vocabulary.n_words, np.uint32)
        self.constraint.fill_mask(at.inner, row)
        row &= self._row_without
        found: list[int] = []
        work = [(at, branch) for branch in self._looked_at]
        while work:
            state, branch = work.pop()
            for byte, below in branch.below.items():
                after = self.step(state, byte)
                if after is not None:
                    found += below.tokens
                    work.append((after, below))
        return row | tree.row(found)

    def _look(self, tree: TokenTree) -> None:
        """Find the tokens that may hold a bracket or a new line, as a trie; all others are the inner mask's."""
        vocabulary, root = tree.vocabulary, _Branch()
        special = frozenset(self._special)
        marked = list(vocabulary.eos_ids)
        for token in range(vocabulary.size):
            text = vocabulary.token_bytes(token)
            if text and not special.isdisjoint(text):
                marked.append(token)
                branch = root
                for byte in text:
                    branch = branch.below.setdefault(byte, _Branch())
                branch.tokens.append(token)
        self._row_without = ~tree.row(marked)
        self._looked_at = [root]

    def unfinished(self, at: Place, tree: TokenTree, limit: int) -> Iterable[int] | None:
        """Any may be."""
        return None

    def expected(self, at: Place) -> str:
        """Some of the bytes that may come."""
        return name_bytes(self.following(at))


def _check_decided(grammar: Grammar) -> None:
    """Raise `UnsupportedError` where at a new line or bracket it is open which match the lexer prefers.

    There the grammar of marks reads a mark, where the text goes on otherwise: what an earlier match owes would be
    forgiven.  So every obligation is followed, beside all terminals that the parser lets come after the match, to
    where a new line or bracket may stand.
    """
    terminals, tables, reader = grammar.terminals, grammar.tables, grammar.indentation
    assert tables is not None and reader is not None
    begins = _bytes(start_state((reader.newline,), (0,)))
    lexer = lexer_of(tuple(terminals))
    starts = [lexer.start(order) for order in tables.accepts]
    states = dict.fromkeys(starts)
    for state in (queue := list(states)):
        if state.exits and not begins.isdisjoint(_bytes(state)):
            raise _undecided(f"terminal {terminals[state.tag].name} may go on with what begins a new line")
        new = dict.fromkeys(target for _, _, target in state.edges() if target not in states)
        states |= new
        queue += new
    after: dict[int, set[int]] = {}
    for row in tables.shift:
        for terminal, place in row.items():
            after.setdefault(terminal, set()).add(place)
    # A parser's state, and what is owed where its next terminal begins.
    lexemes = Lexemes(Work(MOST_STEPS))
    work: list[tuple[int, Owed]] = [(place, None) for place in range(len(starts))]
    seen = set(work)
    for place, owed in work:
        for tag, left in lexemes.exits(starts[place], owed):
            if left is None:
                continue
            name = terminals[tag].name
            if not begins.isdisjoint(_bytes(left)):
                raise _undecided(f"whether terminal {name} has ended may be unknown at a new line")
            if any(_read(left, text) is not None for text in (*reader.opens, *reader.closes)):
                raise _undecided(f"whether terminal {name} has ended may be unknown behind a bracket")
            for then in (place,) if tag in grammar.ignore else after.get(tag, ()):
                if (then, left) not in seen:
                    seen.add((then, left))
                    work.append((then, left))


def _read(owed: OrderedState, text: bytes) -> OrderedState | None:
    """What is still owed behind a text."""
    at: OrderedState | None = owed
    for byte in text:
        at = at.after(byte) if at is not None else None
    return at


def _undecided(what: str) -> UnsupportedError:
    return UnsupportedError(what, remedy="Let the terminal end where its match is sure to, without what looks ahead.")


class IndentedConstraint(LiveConstraint):
    """A grammar that stands behind an indenter, compiled for a vocabulary."""

    language: IndentedLanguage

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        _check_decided(grammar)
        assert grammar.indentation is not None
        marked = Constraint(replace(grammar, indentation=None), vocabulary, limits)
        super().__init__(IndentedLanguage(marked, grammar.indentation), vocabulary, limits)
        self.grammar = grammar

    def __reduce__(self) -> tuple[Any, ...]:
        return (IndentedConstraint, (self.grammar, self.vocabulary, self.limits))

    def __repr__(self) -> str:
        return f"<IndentedConstraint {self.grammar!r} over {self.vocabulary!r}>"

    def shortest_completion(self, state: int) -> int:
        """Tokens to the nearest end that was found, the end-of-text token not counted; always achievable."""
        from guided.vocab.spelled import spell

        # Not by the state: a nearer end may be found later.
        return len(spell(self.vocabulary, self.shortest_text(state)))
