r"""Patterns with assertions anywhere, as finite automata: exact for look-around both ways, nested and looped.

The pattern is compiled to a small program whose guards are functions from *what stands to the left* to a language of
*what may stand to the right*:

* what stands to the left is a `Context`: the last character's kind, and for each look-behind ``(?<=X)`` the states of
  an automaton for ``any* X`` that runs along from the start of the text (inner look-behinds before outer ones).  It is
  a function of the text read so far, so it is carried along, never guessed;
* what may stand to the right is an obligation: a regular language that the remaining text must be in.  A look-ahead
  ``(?=X)`` adds ``X any*`` to it, a negative one its complement, and every character takes its derivative.  Obligations
  are intersections of derivatives of finitely many languages, so there are finitely many.

A state is (place in the program, rest of the current plain piece, obligation, context).  A look-ahead with assertions
inside is the same construction over its own program, begun in the context at hand.  A thread of a look-behind carries
an obligation of its own, which the place that asks for the look-behind takes over.

Everything works on *atoms*: the coarsest classes of characters that the pattern cannot tell apart, one byte value
each, so that the derivatives of `guided.grammar.regular` serve as the automata.  The finished automaton becomes
right-linear equations in the encoding asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from guided.errors import LimitError
from guided.grammar.regex.atoms import Atoms
from guided.grammar.regex.plain import contains_assertions, lower_plain
from guided.grammar.regex.syntax import (
    Alternatives,
    Anchor,
    At,
    Concatenation,
    Look,
    Node,
    Quantified,
    WordBoundary,
)
from guided.grammar.regex.unicode_sets import LINE_FEED
from guided.grammar.regular.characters import Encoding
from guided.grammar.regular.derivative import remainder
from guided.grammar.regular.expr import (
    ALL,
    EMPTY,
    EPSILON,
    Expr,
    Kind,
    alternation,
    byte_set,
    complement,
    concat,
    equations,
    intersection,
)

MAX_STEPS = 30_000
"""Automaton states and contexts for one pattern, each counted with the operands of its obligation or its threads.

Measured: 30,000 take 0.1 to 7 s; ``^(?:(?!foo|bar|baz).){0,500}$`` needs 4,500.
"""
PLACES_PER_STEP = 16
"""Places of the program that are passed without reading and cost about as much as one step."""
MAX_INSTRUCTIONS = 20_000
"""Program length, which counted repeats of bodies with assertions multiply."""

Thread: TypeAlias = "tuple[int, Expr, Expr]"
"""``(where to go on, rest of the current plain piece, obligation)``."""
Tracker: TypeAlias = "tuple[frozenset[Thread], Expr]"
"""The threads of one look-behind, and the language to the right under which it holds here."""
Context: TypeAlias = "tuple[object, ...]"
"""``(kind of the last character or None at the start, tracker, tracker, ...)``."""
State: TypeAlias = "tuple[int, Expr, Expr, Context]"
Condition: TypeAlias = "Callable[[Context], Expr]"


def solve(node: Node, encoding: Encoding) -> Expr:
    """The texts that ``node`` matches from end to end, written in ``encoding``; raises `LimitError`."""
    atoms = Atoms(node)
    automaton = _Automaton(atoms)
    start = automaton.compile(node, automaton.end)
    return automaton.language(
        start, automaton.start(len(automaton.trackers)), lambda mask: encoding.characters(atoms.ranges(mask))
    )


def _looks_left(node: Node) -> bool:
    """Does any assertion in the tree depend on what stands before the match?"""
    stack = [node]
    while stack:
        item = stack.pop()
        match item:
            case Concatenation(parts) | Alternatives(parts):
                stack.extend(parts)
            case Quantified(body=body) | Look(body=body, ahead=True):
                stack.append(body)
            case Look() | WordBoundary() | At(Anchor.TEXT_START) | At(Anchor.LINE_START):
                return True
    return False


@dataclass(frozen=True, slots=True)
class _Piece:
    """Read a string of a plain language, then go on."""

    language: Expr
    following: int


@dataclass(slots=True)
class _Fork:
    """Go on at any of these places; a loop fills them in later."""

    targets: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Guard:
    """Go on if the rest of the text is in the language that the condition gives for this context."""

    condition: Condition
    following: int


@dataclass(frozen=True, slots=True)
class _Accept:
    """A match ends here: of the whole text (``end``) or of an assertion's body, after which anything may follow."""

    end: bool


class _Automaton:
    def __init__(self, atoms: Atoms) -> None:
        self.atoms = atoms
        self.program: list[_Piece | _Fork | _Guard | _Accept] = []
        self.end = self._emit(_Accept(end=True))
        self.anywhere = self._emit(_Accept(end=False))
        self.trackers: list[int] = []
        self.left_sets: list[int] = []  # masks of atoms that conditions ask the last character about
        self.asks_left = False
        self._conditions: dict[Node, Condition] = {}
        self._languages: dict[tuple[int, Context], Expr] = {}
        self._steps: dict[tuple[Context, int], Context] = {}
        self._moves: dict[State, tuple[dict[State, int], dict[Expr, int]]] = {}
        self._nodes: dict[State, Expr] = {}
        self._work = 0
        self._remainders: dict[tuple[Expr, int], Expr | None] = {}

    # Compilation

    def _emit(self, instruction: _Piece | _Fork | _Guard | _Accept) -> int:
        self.program.append(instruction)
        if len(self.program) > MAX_INSTRUCTIONS:
            raise LimitError(
                f"the counted repeats around assertions in this pattern unfold to more than {MAX_INSTRUCTIONS} steps",
                remedy="Lower the counts, or move the assertion out of the repeat.",
            )
        return len(self.program) - 1

    def compile(self, node: Node, following: int) -> int:
        """Where to begin so that a match of ``node`` leads to ``following``."""
        if not contains_assertions(node):
            return self._emit(_Piece(lower_plain(node, self.atoms), following))
        match node:
            case Concatenation(parts):
                for part in reversed(parts):
                    following = self.compile(part, following)
                return following
            case Alternatives(options):
                return self._emit(_Fork([self.compile(option, following) for option in options]))
            case Quantified(body, low, high):
                if high is None:
                    # A round that reads nothing returns to the same fork with more obligations: it adds no text.
                    loop = _Fork([following])
                    entry = self._emit(loop)
                    loop.targets.append(self.compile(body, entry))
                else:
                    entry = following
                    for _ in range(high - low):
                        entry = self._emit(_Fork([following, self.compile(body, entry)]))
                for _ in range(low):
                    entry = self.compile(body, entry)
                return entry
            case _:
                condition = self._conditions.get(node)
                if condition is None:
                    condition = self._conditions[node] = self._condition(node)
                return self._emit(_Guard(condition, following))

    def _condition(self, node: Node) -> Condition:
        feed = self.atoms.characters(LINE_FEED) if isinstance(node, At) else EMPTY
        match node:
            case At(Anchor.TEXT_START):
                self.asks_left = True
                return lambda context: ALL if context[0] is None else EMPTY
            case At(Anchor.LINE_START):
                line = self._left_set(self.atoms.mask(LINE_FEED))
                return lambda context: ALL if context[0] is None or _kind(context, line) else EMPTY
            case At(Anchor.TEXT_END):
                return lambda context: EPSILON
            case At(Anchor.LINE_END):
                before_feed = alternation((EPSILON, concat(feed, ALL)))
                return lambda context: before_feed
            case At(Anchor.TEXT_END_OR_FINAL_NEWLINE):
                final = alternation((EPSILON, feed))
                return lambda context: final
            case WordBoundary():
                return self._boundary(node)
            case Look(body, True, negative):
                return self._ahead(body, negative)
            case Look(body, False, negative):
                start = self.compile(body, self.anywhere)
                place = len(self.trackers) + 1
                self.trackers.append(start)

                def holds(context: Context) -> Expr:
                    value: Expr = context[place][1]  # type: ignore[index]
                    return complement(value) if negative else value

                return holds
            case _:
                raise AssertionError(f"{type(node).__name__} is no assertion")

    def _left_set(self, mask: int) -> int:
        self.asks_left = True
        if mask not in self.left_sets:
            self.left_sets.append(mask)
        return self.left_sets.index(mask)

    def _boundary(self, node: WordBoundary) -> Condition:
        word = self._left_set(self.atoms.mask(node.word))
        word_next = concat(self.atoms.characters(node.word), ALL)
        other_next = complement(word_next)
        not_the_end = complement(EPSILON)

        def holds(context: Context) -> Expr:
            before = _kind(context, word)
            language = word_next if before == node.negative else other_next
            if node.negative and not node.in_empty_text and context[0] is None:
                language = intersection((language, not_the_end))
            return language

        return holds

    def _ahead(self, body: Node, negative: bool) -> Condition:
        if not contains_assertions(body):
            fixed = concat(lower_plain(body, self.atoms), ALL)
            fixed = complement(fixed) if negative else fixed
            return lambda context: fixed
        start = self.compile(body, self.anywhere)
        # Only look-behinds inside the body matter to it, and those have their trackers by now.
        needed = len(self.trackers) + 1 if _looks_left(body) else 0

        def holds(context: Context) -> Expr:
            key = (start, context[:needed])
            found = self._languages.get(key)
            if found is None:
                found = self._languages[key] = self.language(start, context[:needed])
            return complement(found) if negative else found

        return holds

    # Contexts

    def start(self, trackers: int) -> Context:
        """The context before the first character, for the first so many look-behinds."""
        context: Context = (None if self.asks_left else (),)
        for start in self.trackers[:trackers]:
            context = (*context, self._tracker(self._closure(start, ALL, context)))
        return context

    @staticmethod
    def _tracker(found: tuple[set[Thread], set[Expr]]) -> Tracker:
        threads, accepted = found
        free = {(place, rest) for place, rest, obligation in threads if obligation is ALL}
        kept = (t for t in threads if t[2] is ALL or (t[0], t[1]) not in free)
        return frozenset(kept), alternation(accepted)

    def step(self, context: Context, atom: int) -> Context:
        """The context after one more character."""
        if not context:
            return context
        key = (context, atom)
        found = self._steps.get(key)
        if found is None:
            self._count(1 + sum(len(tracker[0]) for tracker in context[1:]))  # type: ignore[index,misc]
            kinds = tuple(mask >> atom & 1 == 1 for mask in self.left_sets) if self.asks_left else ()
            found = (kinds,)
            for start, tracker in zip(self.trackers, context[1:]):
                threads, accepted = self._closure(start, ALL, found)
                for place, rest, obligation in tracker[0]:  # type: ignore[index]
                    self._advance(place, rest, obligation, atom, found, threads, accepted)
                found = (*found, self._tracker((threads, accepted)))
            self._steps[key] = found
        return found

    # Threads

    def _after(self, language: Expr, atom: int) -> Expr | None:
        # Obligations that cannot be met are found by `_explore`; asking each one would search the same states again.
        key = (language, atom)
        if key not in self._remainders:
            self._remainders[key] = remainder(language, atom)
        return self._remainders[key]

    def _closure(self, place: int, obligation: Expr, context: Context) -> tuple[set[Thread], set[Expr]]:
        """Where a thread gets without reading: pieces to read, and obligations with which a match ends here."""
        threads: set[Thread] = set()
        accepted: set[Expr] = set()
        seen: set[tuple[int, Expr]] = set()
        stack = [(place, obligation)]
        while stack:
            item = stack.pop()
            if item in seen:
                continue
            seen.add(item)
            place, obligation = item
            instruction = self.program[place]
            if isinstance(instruction, _Piece):
                if instruction.language.nullable:
                    stack.append((instruction.following, obligation))
                if instruction.language is not EPSILON and instruction.language is not EMPTY:
                    threads.add((instruction.following, instruction.language, obligation))
            elif isinstance(instruction, _Fork):
                stack.extend((target, obligation) for target in instruction.targets)
            elif isinstance(instruction, _Guard):
                bound = intersection((obligation, instruction.condition(context)))
                if bound is not EMPTY:
                    stack.append((instruction.following, bound))
            elif not instruction.end:
                accepted.add(obligation)
            elif obligation.nullable:
                accepted.add(EPSILON)
        self._count(len(seen) // PLACES_PER_STEP)
        return threads, accepted

    def _advance(
        self,
        place: int,
        rest: Expr,
        obligation: Expr,
        atom: int,
        after: Context,
        threads: set[Thread],
        accepted: set[Expr],
    ) -> None:
        """Let one thread read ``atom``; adds what it becomes in the context ``after``."""
        left = self._after(obligation, atom)
        tail = self._after(rest, atom) if left is not None else None
        if left is None or tail is None:
            return
        if tail is not EPSILON:
            threads.add((place, tail, left))
        if tail.nullable:
            more, ends = self._closure(place, left, after)
            threads |= more
            accepted |= ends

    # Languages

    def language(self, place: int, context: Context, characters: Callable[[int], Expr] | None = None) -> Expr:
        """What may follow at ``place`` in ``context``, over atoms unless ``characters`` spells their masks in bytes."""
        threads, accepted = self._closure(place, ALL, context)
        roots = [(*thread, context) for thread in threads]
        live = self._explore(roots)
        nodes = self._nodes if characters is None else {}
        fresh = [state for state in live if state not in nodes]
        spell = characters or byte_set

        def build(unknowns: Iterable[Expr]) -> list[Expr]:
            nodes.update(zip(fresh, unknowns, strict=True))
            result = []
            for state in fresh:
                targets, ends = self._moves[state]
                parts = [concat(spell(mask), nodes[target]) for target, mask in targets.items() if target in nodes]
                parts.extend(concat(spell(mask), ending) for ending, mask in ends.items())
                result.append(alternation(parts))
            return result

        equations([False] * len(fresh), build, decided=characters is not None)
        return alternation([*accepted, *(nodes[root] for root in roots if root in nodes)])

    def _explore(self, roots: list[State]) -> list[State]:
        """All states reachable from the roots that can still end; fills in their moves."""
        order = list(dict.fromkeys(roots))
        reached = set(order)
        for state in order:
            moves = self._moves.get(state)
            if moves is None:
                moves = self._moves[state] = self._move(state)
            for target in moves[0]:
                if target not in reached:
                    reached.add(target)
                    order.append(target)
        sources: dict[State, list[State]] = {}
        stack = []
        for state in order:
            targets, ends = self._moves[state]
            for target in targets:
                sources.setdefault(target, []).append(state)
            if ends:
                stack.append(state)
        live = set(stack)
        while stack:
            for source in sources.get(stack.pop(), ()):
                if source not in live:
                    live.add(source)
                    stack.append(source)
        return [state for state in order if state in live]

    def _move(self, state: State) -> tuple[dict[State, int], dict[Expr, int]]:
        """The states after one character, with the atoms that lead there, and the same for what follows the match."""
        place, rest, obligation, context = state
        self._count(len(obligation.parts) if obligation.kind is Kind.INTERSECTION else 1)
        targets: dict[State, int] = {}
        ends: dict[Expr, int] = {}
        for atom in range(self.atoms.count):
            if self._after(rest, atom) is None or self._after(obligation, atom) is None:
                continue
            after = self.step(context, atom)
            threads: set[Thread] = set()
            accepted: set[Expr] = set()
            self._advance(place, rest, obligation, atom, after, threads, accepted)
            for thread in threads:
                target = (*thread, after)
                targets[target] = targets.get(target, 0) | 1 << atom
            for ending in accepted:
                ends[ending] = ends.get(ending, 0) | 1 << atom
        return targets, ends

    def _count(self, steps: int) -> None:
        self._work += steps
        if self._work > MAX_STEPS:
            raise LimitError(
                f"the assertions of this pattern need more than {MAX_STEPS} automaton steps",
                remedy="Use fewer or shorter look-arounds, or lower the counts of the repeats around them.",
            )


def _kind(context: Context, index: int) -> bool:
    """Is the last character in the set with this index?  There is none at the start of the text."""
    kinds = context[0]
    return kinds is not None and bool(kinds[index])  # type: ignore[index]
