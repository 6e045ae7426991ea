"""What all tokens of a vocabulary do from one lexer state, computed once and shared by every grammar.

An effect is a row of tokens that stay inside the terminal, and the tries of what is left of those that leave it.
Most are walked, once per vocabulary and language.  Three kinds are derived from walks that others share:

* a bounded run of a character class (``maxLength``) is the unbounded run less the tokens that are too long, since a
  token's length in characters does not depend on the bound;
* where finitely many words are left out of a language that has no end, the tokens that stay inside are that language's,
  and only where it may close is looked at;
* and where a pattern goes on with a run that all of it is made of (``.+:.+``, ``[^/]+``), of the run.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.distances import bound_widest
from guided.automata.lexer.endless import is_endless
from guided.automata.lexer.runs import (
    Run,
    may_be_longer,
    run_of,
    run_with_pattern,
    within_reach,
    without_words,
)
from guided.automata.lexer.states import StateTable
from guided.automata.lexer.traits import Reading, begins, is_wide, terminal
from guided.constraint.effects.characters_left import CharactersLeft
from guided.constraint.effects.effect_store import EffectStore
from guided.constraint.effects.prices_inside import PricesInside
from guided.constraint.effects.run_lengths import RunLengths
from guided.constraint.effects.surveys import NEAR, Paths, Survey, Surveys
from guided.constraint.effects.token_tries import TokenTries
from guided.constraint.engine.prices import TerminalPrices
from guided.grammar.regular.any_text import is_within
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.derivative import possible_edges
from guided.grammar.regular.expr import Expr, Kind, alternation, json_string, repeat
from guided.kernels.data.layout import FAR, WALKED
from guided.kernels.masking.masks import ENOUGH
from guided.vocab.vocabulary import Vocabulary

SMALL_RANGE = 2048
"""Nodes of a range that are walked in some 5 us from a state that leads back to itself."""

_ANY_STRING = json_string(Utf8().text), json_string(Utf8().text, canonical=True)
"""In every spelling, and in the canonical one."""


LEAST_CORE = 8
"""The part of a vocabulary, one in so many, that a state must be come to with, to be worth sharing: 20,000 nodes."""


@dataclass(frozen=True)
class _Core:
    """What lexers have in common in a range: the marks of its nodes, how many of them are inside, an effect, exits."""

    marks: NDArray[np.uint8]
    n_nodes: int
    effect: int
    exits: list[tuple[int, int, int, int]]


@dataclass(frozen=True)
class _Strings:
    """What tokens do in strings that differ in where they close only."""

    inside: int
    """The row of tokens that stay inside."""
    exits: NDArray[np.int32]
    """The nodes where the string may close, as of a survey."""
    paths: Paths
    ended: dict[bytes, tuple[NDArray[np.int32], list[tuple[int, int, int, int]]]]
    """By which of these nodes a string closes at: the tokens that end there, and the tries of what is left behind."""


class TokenEffects:
    """The effects of one vocabulary over one state table; grows, never forgets what a constraint may refer to."""

    _all: ClassVar[weakref.WeakKeyDictionary[Vocabulary, TokenEffects]] = weakref.WeakKeyDictionary()
    _swap: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> TokenEffects:
        """The effects of a vocabulary, over the current shared state table."""
        with cls._swap:
            found = cls._all.get(vocabulary)
            states = StateTable.shared()
            if found is None or found.states is not states:
                found = cls._all[vocabulary] = TokenEffects(vocabulary, states)
            return found

    def __init__(self, vocabulary: Vocabulary, states: StateTable) -> None:
        self.lock = threading.RLock()
        self.states = states
        self.prices = TerminalPrices(states)
        self.tries = TokenTries(vocabulary)
        self.store = EffectStore(vocabulary.n_words)
        self.root = self.tries.root
        self._surveys = Surveys(states, self.tries, self.store)
        self._left = CharactersLeft(states)
        self._prices = PricesInside(vocabulary, self._surveys)
        self._bounded_effects: dict[tuple[int, int, int, int, int, int], int] = {}
        self._lengths: dict[tuple[int, int, int, int, int, bool], RunLengths] = {}
        self._counts: dict[tuple[int, int, int], Survey] = {}
        """Of runs of any characters, within which others lie: how many characters tokens have."""
        self._nearer: dict[tuple[int, int, int], int] = {}
        """Effects of states that others have but for bounds out of reach."""
        self._unbounded: dict[Expr, Expr] = {}
        """Languages without bounds out of reach."""
        self._plain: dict[Expr, bool] = {}
        """Whether it is plain of sequences that they have no such bounds."""
        self._walked: set[int] = set()
        """States whose effects are not derived from others."""
        self._cores: dict[tuple[int, int, int], _Core] = {}
        """By range and state what lexers share."""
        self._core_states: dict[int, int] = {}
        self._others_known: dict[tuple[int, int, int], _Strings] = {}
        self.any_strings = tuple(self.states.add(language) for language in _ANY_STRING)
        """The states between two characters of a string that takes any."""
        self._count_characters()

    def _count_characters(self) -> None:
        """Count the characters of tokens in any string, which every bound on a length needs: 10 ms, before a mask.

        For Llama-3, that is, and 4 MB: half of it for strings in every spelling, half for those in the canonical one.
        What is enough behind each token is listed as well, which budgets that end within a string ask: 6 ms.
        """
        for any_string in self.any_strings:
            found = self._surveys.survey(1, self.root, any_string, any_string)
            assert found is not None
            self._counts[1, self.root, any_string] = found
            within = (1, self.root, any_string, any_string, 0, False)
            self._lengths[within] = RunLengths(found, 0, None, self.store, self.tries)
            self._list_near(1, self.root, any_string)

    @property
    def n_bytes(self) -> int:
        """Memory held, beyond the vocabulary's own."""
        return sum(array.nbytes for array in self.tries.arrays) - 5 * self.root + self.store.n_bytes

    def need(self, low: int, high: int, state: int) -> None:
        """Make the effect of a trie range and state known to the kernels."""
        with self.lock:
            if self.store.find(low, high, state) >= 0:
                # Another constraint asked as well, before it was made.
                return
            # A run without a bound is read without a step: all of a small range, in less time than deriving takes.
            small = high - low <= SMALL_RANGE and self.states.arrays.loops[state] > 1
            if not small and state not in self._walked:
                if self._derived(low, high, state):
                    return
                self._walked.add(state)
            found = self._surveys.stays(low, high, state, near=self._near(low, high, state))
            if found is None:
                # Its tokens come to owe something: they are walked with the parser.
                self.store.add(low, high, state, np.zeros(0, np.int32), [], WALKED)
            else:
                self.store.add(low, high, state, found.kept, self.tries.exit_ranges(found.exits), found.mask)

    def need_near(self, low: int, high: int, state: int) -> None:
        """Make known what is enough behind the tokens that stay inside, of a state whose effect is known.

        First only how far any may be, if structure tells: mostly that is not too far, and no more is asked.
        """
        with self.lock:
            if self.states.arrays.widest[state] < 0:
                bound_widest(self.states, state)
                if self.states.arrays.widest[state] < FAR:
                    return
            self._list_near(low, high, state)

    def _list_near(self, low: int, high: int, state: int) -> None:
        """List what is enough behind each."""
        like = self._as_far(state)
        found = self.store.find(low, high, like | ENOUGH)
        if found < 0:
            listed = self._prices.listed(low, high, like)
            if listed is None:
                # As with its effect, tokens are walked with the parser.
                found = self.store.add(low, high, like | ENOUGH, np.zeros(0, np.int32), [], WALKED)
            else:
                found = self.store.add(low, high, like | ENOUGH, listed, [])
        if like != state:
            self.store.alias(low, high, state | ENOUGH, found)

    def _as_far(self, state: int) -> int:
        """A state from which what stays inside of ``state`` is as far from the end, and that others share."""
        arrays = self.states.arrays
        # A bound from above makes no way longer that it leaves.
        if arrays.bound[state] > 0:
            return int(arrays.boundless[state])
        key = self.states.key(state)
        run = run_of(key) if isinstance(key, Expr) else None
        # A token that stays inside has begun a character, and it finishes one that was begun.
        begun = 1 if run is not None and run.prefix is None else 0
        if run is None or run.high is None or run.low > begun or not run.is_counted_by_home:
            return state
        return self.states.add(run.unbounded)

    def need_core(self, low: int, high: int, state: int, key: int, asked_as: Callable[[int], int]) -> None:
        """Make known what the tokens of a range do from a lexer's state, apart by what the parser is asked about them.

        Where most of them lead to one state, what it has in common with other lexers is found once for all of them.
        ``asked_as`` says as a small number what the parser is asked about tokens that end in a state.  ``key`` is the
        state, with `ENOUGH` where they are priced as well.
        """
        with self.lock:
            core = self._core_of(state)
            if not core:
                self._add_apart(low, high, key, state, 0, np.zeros(high - low, np.uint8), asked_as)
                return
            place = (low, high, core | key & ENOUGH)
            shared = self._cores.get(place)
            marks, n_nodes = self._surveys.mark(low, high, state, core, None if shared is None else shared.marks)
            if shared is not None and 2 * n_nodes < shared.n_nodes:
                # It has little in common with them.
                marks, n_nodes = self._surveys.mark(low, high, state, core, None)
            if shared is None or not np.array_equal(marks, shared.marks):
                effect, exits = self._add_apart(low, high, -1, 0, core, marks, asked_as)
                is_common = shared is None or 2 * n_nodes >= shared.n_nodes
                shared = _Core(marks, n_nodes, effect, exits)
                if is_common:
                    self._cores[place] = shared
            self._add_apart(low, high, key, state, core, marks, asked_as, shared)

    def _add_apart(
        self, low: int, high: int, key: int, begin: int, core: int, marks: NDArray[np.uint8],
        asked_as: Callable[[int], int], shared: _Core | None = None,
    ) -> tuple[int, list[tuple[int, int, int, int]]]:  # fmt: skip
        """Keep what `survey` finds, and what is known of the ``shared`` core: the effect and its exits."""
        found = self._surveys.core(low, high, begin, core, marks)
        ends = np.flatnonzero(np.bincount(found.places, minlength=1))
        kinds = np.zeros(int(ends.max(initial=0)) + 1, np.int16)
        kinds[ends] = [asked_as(end) for end in ends.tolist()]
        of_token = kinds[found.places]
        order = np.argsort(of_token, kind="stable")
        of_token, kept = of_token[order], found.kept[order]
        firsts = np.flatnonzero(np.diff(of_token, prepend=-1)).tolist()
        exits = self.tries.exit_ranges(found.exits, self._bytes_under)
        more, all_exits = (-1, exits) if shared is None else (shared.effect, exits + shared.exits)
        examples = dict(zip(kinds[ends].tolist(), ends.tolist(), strict=True))
        for first, stop in pairwise([*firsts[1:], kept.size] if firsts else []):
            more = self.store.add(
                low, high, -1, kept[first:stop], [], ends_in=examples[int(of_token[first])], more=more
            )
        stop = firsts[1] if len(firsts) > 1 else kept.size
        ends_in = examples[int(of_token[0])] if kept.size else begin or core
        return self.store.add(low, high, key, kept[:stop], all_exits, ends_in=ends_in, more=more), exits

    def _core_of(self, state: int) -> int:
        """The state that most tokens lead to: of words that are no keyword, inside a string or comment; 0: none is."""
        found = self._core_states.get(state)
        if found is None:
            edges = self.states.edges(state)
            self.states.expand_all([target for _, _, target in edges])
            weights: Counter[int] = Counter()
            for low, high, target in edges:
                for first, last, behind in self.states.edges(target):
                    weights[behind] += int(self.tries.pair_weights[low : high + 1, first : last + 1].sum())
            found, weight = weights.most_common(1)[0] if weights else (0, 0)
            if LEAST_CORE * weight < int(self.tries.pair_weights.sum()):
                found = 0
            self._core_states[state] = found
        return found

    def _bytes_under(self, obligation: int) -> NDArray[np.uint8]:
        """``uint8[256]``: 1 for each byte that does not violate an obligation at once."""
        allowed = np.ones(256, np.uint8)
        for low, high, target in self.states.edges(obligation):
            if self.states.arrays.tag[target] >= 0:
                allowed[low : high + 1] = 0
        return allowed

    def _derived(self, low: int, high: int, state: int) -> bool:
        """Make an effect known that follows from others; False where the state is walked, whatever the range."""
        parts = self.states.parts
        members = parts.members(state)
        within = parts.within_one(state) if len(members) > 1 else None
        near = self._within_reach(state, members if within is None else [within])
        if near != state:
            # No token comes near the bounds that are left out, so it is as if there were none.
            same = self._nearer.get((low, high, near), -1)
            if same < 0:
                if self.store.find(low, high, near) < 0:
                    self.need(low, high, near)
                same = self._nearer[low, high, near] = self.store.find(low, high, near)
            if same >= 0:
                self.store.alias(low, high, state, same)
                return True
        key: object = None
        if self.states.keys[state] is not None or (len(members) == 1 and _may_be_run(members[0][0])):
            key = self.states.key(state)
        if key is None and within is not None:
            key = terminal(*within)
        if isinstance(key, Expr):
            patterned = run_with_pattern(key)
            if patterned is not None and (not patterned[0].low or may_be_longer(patterned[1])):
                return self._bounded(low, high, state, *patterned)
            run = run_of(key)
            # After one character a run without a bound leads back to itself, and is not walked character by character.
            if run is not None and (run.low > 1 or run.high is not None) and run.is_counted_by_home:
                return self._bounded(low, high, state, run)
            if key.kind is Kind.JSON_STRING:
                content, canonical = cast("tuple[Expr, bool]", key.parts)
                others = without_words(content)
                like = json_string(others, canonical=canonical)
                if others is not content and is_endless(others) and self._like(low, high, state, like):
                    return True
        around = _run_around(members)
        return around is not None and self._like(low, high, state, around)

    def _near(self, low: int, high: int, state: int) -> int:
        """The state without the bounds that only long tokens come near, its effect known; 0 if there are none."""
        if low != 1 or high != self.tries.root:
            return 0
        members = self.states.parts.members(state)
        near = [
            within_reach(content, NEAR) if content.kind is Kind.CONCAT and not self._has_no_bounds(content) else content
            for content, _ in members
        ]
        other = self._without(state, members, near)
        if other == state:
            return 0
        if self.store.find(low, high, other) < 0:
            self.need(low, high, other)
        return other

    def _within_reach(self, state: int, members: list[Reading]) -> int:
        """The state without the bounds in its parts that no token comes near; itself if there are none."""
        return self._without(state, members, [self._without_far_bounds(content) for content, _ in members])

    def _without(self, state: int, members: list[Reading], near: list[Expr]) -> int:
        """The state of which the parts are ``near``; itself where these are the same."""
        if all(content is same for (content, _), same in zip(members, near, strict=True)):
            return state
        return self.states.add(terminal(alternation(near) if len(near) > 1 else near[0], members[0][1]))

    def _without_far_bounds(self, content: Expr) -> Expr:
        """A language without the bounds in it that no token comes near; remembered, since states share their parts."""
        found = self._unbounded.get(content)
        if found is None:
            found = content
            if not self._has_no_bounds(content):
                found = within_reach(content, self.tries.longest)
            self._unbounded[content] = found
        return found

    def _has_no_bounds(self, content: Expr) -> bool:
        """Is it plain that a language has no bounds but near ones?  Remembered of each rest, too."""
        known = self._plain
        rests: list[Expr] = []
        while content not in known and content.kind is Kind.CONCAT:
            rests.append(content)
            content = cast(Expr, content.parts[1])
        found = known.get(content)
        if found is None:
            found = known[content] = not self._may_be_bounded(content)
        for rest in reversed(rests):
            found = known[rest] = found and not self._may_be_bounded(cast(Expr, rest.parts[0]))
        return found

    def _may_be_bounded(self, item: Expr) -> bool:
        if item.kind is Kind.REPEAT:
            _, low, high = cast("tuple[Expr, int, int | None]", item.parts)
            return high is not None or low > self.tries.longest
        return item.kind in (Kind.CONCAT, Kind.INTERSECTION)

    def _like(self, low: int, high: int, state: int, other: Expr) -> bool:
        """Make known the effect of a string's state that differs from another only in where the string closes.

        False where tokens come to owe something.
        """
        found = self._others(low, high, other)
        if found is None:
            return False
        closing = self._surveys.closing(state, found.paths)
        if closing is None:
            return False
        # Few states close at nodes of their own: mostly those of a pattern do at all of them, or at none.
        key = closing.tobytes()
        ended = found.ended.get(key)
        if ended is None:
            kept = found.exits[closing]
            ended = found.ended[key] = self.tries.tokens_at(kept[:, 0]), self.tries.exit_ranges(kept)
        self.store.add(low, high, state, *ended, mask=found.inside)
        return True

    def _others(self, low: int, high: int, other: Expr) -> _Strings | None:
        """What tokens do in the string ``other``; None where they owe."""
        key = (low, high, self.states.add(other))
        found = self._others_known.get(key)
        if found is None:
            walked = self._surveys.stays(*key, apart=True)
            if walked is None:
                return None
            exits = walked.exits.copy()
            inside = self.store.row(walked.kept) if walked.mask < 0 else walked.mask
            paths = self._surveys.paths(low, np.ascontiguousarray(exits[:, 0]))
            found = self._others_known[key] = _Strings(inside, exits, paths, {})
        return found

    def _bounded(self, low: int, high: int, state: int, run: Run, pattern: Expr | None = None) -> bool:
        """Make known the effect of a run with bounds, beside a pattern perhaps; False where tokens come to owe."""
        most = -1 if run.high is None or run.high > self.tries.longest else run.high
        least = min(run.low, self.tries.longest + 1)
        unbounded = self.states.add(run.unbounded)
        also = 0 if pattern is None else self.states.add(pattern)
        # With a pattern a far bound matters too: what is left must be enough for the pattern's end.
        bound = run.high if also and run.high is not None else most
        key = (low, high, unbounded, also, least, bound)
        same = self._bounded_effects.get(key)
        if same is not None:
            self.store.alias(low, high, state, same)
            return True
        home = self.states.add(run.home)
        # With a pattern and a bound, a token must leave room for the pattern's end.
        within = (low, high, unbounded, home, also, also > 0 and bound >= 0)
        lengths = self._lengths.get(within)
        if lengths is None:
            # The characters of a token are as many in any string, so a walk of one of them counts for others.
            around, any_string = unbounded, self.states.add(_ANY_STRING[bool(run.canonical)])
            if (low, high, any_string) in self._counts and run.canonical is not None and run.prefix is None:
                around = home = any_string
            found = self._counts.get((low, high, around))
            if found is None:
                found = self._surveys.survey(low, high, around, home)
                assert found is not None
                if also or around == any_string:
                    self._counts[low, high, around] = found
            left = None
            if also or around != unbounded:
                ends = self._surveys.ends(low, high, also or unbounded)
                if ends is None:
                    return False
                found = found.of(ends)
                left = self._left.of_tokens(ends.places) if within[-1] else None
            lengths = RunLengths(found, 0 if run.prefix is None else 1, left, self.store, self.tries)
            self._lengths[within] = lengths
        self._bounded_effects[key] = lengths.add(low, high, state, least, most, bound)
        return True


def _run_around(members: list[Reading]) -> Expr | None:
    """The string of a run that a state's texts lie in, and all of whose texts lead on from it.

    So it is where one part begins with the run, as ``.*:`` does, and no part has a character that is not in it.
    """
    for content, mode in members:
        head = begins(content)[0]
        if not mode or head.kind is not Kind.REPEAT:
            continue
        body, _, most = cast("tuple[Expr, int, int | None]", head.parts)
        if most is None and is_wide(body):
            run = repeat(body)
            if all(is_within(other, run, possible_edges) for other, _ in members):
                return terminal(run, mode)
    return None


def _may_be_run(content: Expr) -> bool:
    """May the effect of a language be derived from a run?  Of a long sequence only if it is closed."""
    if content.kind is not Kind.CONCAT:
        return True
    tail = cast(Expr, content.parts[1])
    if tail.kind is Kind.CONCAT:
        tail = cast(Expr, tail.parts[1])
    return tail.kind in (Kind.REPEAT, Kind.LITERAL)
