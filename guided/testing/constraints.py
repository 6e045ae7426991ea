"""The contracts of a constraint as a function that any implementation can be run through.

`check_constraint` asks a constraint the same things in different ways, along random texts of its language, and raises
`AssertionError` with the path to the first contradiction.  It knows no grammar: whether the language is the right one
is for an oracle to say.  Works on everything that has the interface `guided.constraint.protocol.Constrains`.
"""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.protocol import Constrains, JudgesTokens
from guided.special_bytes import SENTINEL, special_bytes

__all__ = ["brute_force_mask", "check_constraint"]

_FORCED = 64
"""Forced bytes whose 255 rivals are tried, from each state."""

_SAMPLED = 192
"""Ids tried on a state that is not searched in full: half of them allowed ones, as far as there are any."""

_LONGEST_END = 4096
"""Tokens that a walk to the nearest end may take; a constraint whose nearest end is farther is not followed there."""


def brute_force_mask(constraint: Constrains, state: int) -> NDArray[np.uint32]:
    """The mask of ``state``, ``uint32[n_words]``, made by advancing every id; the definition that masks must meet.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([b"yes", b"no", b"y", None], eos_ids=[3])
    >>> brute_force_mask(guided.compile(guided.choice(["yes", "no"]), vocabulary), 2)  # after "y" no token is "es"
    array([3], dtype=uint32)
    """
    alive = np.fromiter((constraint.advance(state, t) != 0 for t in range(constraint.vocabulary.size)), np.bool_)
    return tokenset.of_flags(alive)


def check_constraint(
    constraint: Constrains,
    *,
    seed: int = 0,
    walks: int = 20,
    length: int = 40,
    full_states: int | None = None,
    threads: int = 2,
    pickled: bool = True,
) -> None:
    """Hold the contracts on the states of ``walks`` random texts of up to ``length`` tokens.

    On every state met: the mask's bits are exactly the ids that `advance` accepts, and that `JudgesTokens.takes` does
    where there is one; end-of-text ids are allowed exactly where the text may end, ids without text never; the nearest
    end is reached in the promised number of tokens, under a mask that never runs empty; forced bytes have no
    alternative; bytes and tokens lead to the same future, but for longer tokens that bytes may begin where a grammar
    limits tokens.  After the walks: every state still says what it said, ``threads`` threads asking at once hear the
    same, and so does a pickled copy (``pickled=False`` leaves that out).

    On the first ``full_states`` states (None: all) every id is advanced, on the others a sample; an advance costs some
    microseconds and a vocabulary may have 128,000 ids.  Raises `AssertionError` with the tokens that lead there.

    >>> import guided
    >>> from guided.testing import check_constraint
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> check_constraint(guided.compile(guided.regex("a?b"), letters), walks=2, threads=1)  # says nothing: all is well
    """
    check = _Check(constraint, random.Random(seed), full_states)
    for _ in range(walks):
        check.walk(length)
    check.again(constraint)
    if threads > 1:
        check.threads(constraint, threads)
    if pickled:
        copy = pickle.loads(pickle.dumps(constraint))
        check.replay(copy)
        if threads > 1:
            check.threads(pickle.loads(pickle.dumps(constraint)), threads)


@dataclass(frozen=True)
class _Seen:
    """What a state said when it was first met, and how to get there."""

    path: tuple[int, ...]
    state: int
    mask: NDArray[np.uint32]
    accepting: bool


class _Check:
    """The states met so far, and the questions asked of each new one."""

    def __init__(self, constraint: Constrains, rnd: random.Random, full_states: int | None) -> None:
        self.constraint = constraint
        self.vocabulary = constraint.vocabulary
        self.rnd = rnd
        self.full_left = full_states
        self.seen: dict[int, _Seen] = {}
        self.eos = tokenset.of_ids(self.vocabulary.eos_ids, self.vocabulary.n_words)
        lengths = np.diff(self.vocabulary.spelling.offsets)
        self.without_text = tokenset.of_flags(lengths == 0) & ~self.eos
        self.with_text = np.flatnonzero(lengths > 0)

    def walk(self, length: int) -> None:
        """One random text: at times any allowed token, at times one on a short way to the end."""
        state = self.constraint.start
        path: tuple[int, ...] = ()
        for _ in range(length):
            seen = self.visit(state, path)
            allowed = self.choices(seen)
            token = int(allowed[self.rnd.randrange(allowed.size)])
            if token in self.vocabulary.eos_ids:
                break
            path = (*path, token)
            state = self.constraint.advance(state, token)
        self.finish(state, path)

    def choices(self, seen: _Seen) -> NDArray[np.int64]:
        if self.rnd.random() < 0.5:
            return tokenset.ids(seen.mask)
        row = np.empty_like(seen.mask)
        budget = self.constraint.shortest_completion(seen.state) + 1 + self.rnd.choice((0, 0, 1, 3))
        self.constraint.fill_budget_mask(seen.state, row, budget)
        return tokenset.ids(row)

    def visit(self, state: int, path: tuple[int, ...]) -> _Seen:
        """Ask a state everything, the first time it is met."""
        found = self.seen.get(state)
        if found is not None:
            return found
        self.hold(type(state) is int and state != 0, "a live state is an int that is not 0", path)
        mask = self.mask(self.constraint, state, path)
        accepting = self.constraint.is_accepting(state)
        seen = self.seen[state] = _Seen(path, state, mask, accepting)
        self.masks_match(seen)
        self.judged_matches(seen)
        self.bytes_match(seen)
        self.forced_matches(seen)
        return seen

    def mask(self, constraint: Constrains, state: int, path: tuple[int, ...]) -> NDArray[np.uint32]:
        """The mask, filled over two different backgrounds."""
        row = np.zeros(self.vocabulary.n_words, np.uint32)
        other = np.full_like(row, 0xFFFFFFFF)
        constraint.fill_mask(state, row)
        constraint.fill_mask(state, other)
        self.hold(bool((row == other).all()), "fill_mask leaves old bits in the row, or changes its answer", path)
        spare = tokenset.ids(row)
        self.hold(not spare.size or int(spare[-1]) < self.vocabulary.size, "spare bits of the row are set", path)
        return row

    def masks_match(self, seen: _Seen) -> None:
        state, mask = seen.state, seen.mask
        self.hold(bool(mask.any()), "a dead end: the mask is empty", seen.path)
        expected = self.eos if seen.accepting else np.zeros_like(self.eos)
        says = "may" if seen.accepting else "may not"
        self.hold(
            bool(((mask & self.eos) == expected).all()), f"the text {says} end here, end-of-text bits differ", seen.path
        )
        self.hold(not (mask & self.without_text).any(), "an id without text is allowed", seen.path)
        if self.full_left is None or self.full_left > 0:
            self.full_left = None if self.full_left is None else self.full_left - 1
            different = tokenset.ids(brute_force_mask(self.constraint, state) ^ mask).tolist()
        else:
            different = [
                t for t in self.sample(mask) if (self.constraint.advance(state, t) != 0) != tokenset.contains(mask, t)
            ]
        for token in different:
            says = "allows" if tokenset.contains(mask, token) else "forbids"
            self.hold(False, f"the mask {says} {self.name(token)}, advance says otherwise", seen.path)

    def judged_matches(self, seen: _Seen) -> None:
        """Where tokens are judged one by one, that is what the mask says; what fits a budget has an end that does."""
        if not isinstance(self.constraint, JudgesTokens):
            return
        budget = self.constraint.shortest_completion(seen.state) + 1 + self.rnd.choice((0, 1, 8, 64))
        for token in self.sample(seen.mask):
            allowed = tokenset.contains(seen.mask, token)
            says = f"takes {'refuses' if allowed else 'allows'} {self.name(token)}, the mask says otherwise"
            self.hold(self.constraint.takes(seen.state, token) is allowed, says, seen.path)
            in_time = self.constraint.takes(seen.state, token, budget)
            self.hold((in_time is not False) is allowed, says, seen.path)
            if in_time and token not in self.vocabulary.eos_ids:
                needed = self.constraint.shortest_completion(self.constraint.advance(seen.state, token))
                late = f"{self.name(token)} is taken under a budget of {budget}, and its end takes {needed} tokens"
                self.hold(needed + 2 <= budget, late, seen.path)

    def sample(self, mask: NDArray[np.uint32]) -> list[int]:
        allowed = tokenset.ids(mask).tolist()
        some = self.rnd.sample(allowed, min(len(allowed), _SAMPLED // 2))
        return some + [self.rnd.randrange(self.vocabulary.size) for _ in range(_SAMPLED // 2)]

    def bytes_match(self, seen: _Seen) -> None:
        """A few tokens against their bytes, at once and one by one."""
        allowed = np.intersect1d(tokenset.ids(seen.mask), self.with_text).tolist()
        tokens = self.rnd.sample(allowed, min(3, len(allowed)))
        if self.with_text.size:
            tokens += [int(self.with_text[self.rnd.randrange(self.with_text.size)]) for _ in range(3)]
        self.hold(self.constraint.advance_bytes(seen.state, b"") == seen.state, "no bytes change the state", seen.path)
        for token in tokens:
            data = self.vocabulary.spelled(token) or b""
            by_token = self.constraint.advance(seen.state, token)
            at_once = self.constraint.advance_bytes(seen.state, data)
            one_by_one = seen.state
            for piece in self.pieces(data):
                if one_by_one:
                    one_by_one = self.constraint.advance_bytes(one_by_one, piece)
            for how, state in (("at once", at_once), ("one by one", one_by_one)):
                message = f"{self.name(token)} by advance and by its bytes {how} differ"
                # Where tokens are counted, bytes may begin a longer token.
                longer = not by_token and getattr(self.constraint, "counts_tokens", False)
                self.hold(longer or (by_token != 0) == (state != 0), message, seen.path)
                if by_token and state != by_token:
                    same = self.mask(self.constraint, by_token, seen.path) == self.mask(
                        self.constraint, state, seen.path
                    )
                    ends = self.constraint.is_accepting(by_token) == self.constraint.is_accepting(state)
                    self.hold(bool(same.all()) and ends, message, seen.path)

    def forced_matches(self, seen: _Seen) -> None:
        """Every forced byte is the only one; where nothing is forced, there is a choice or an end."""
        state = seen.state
        forced = self.constraint.forced(state)
        self.hold(not (forced and seen.accepting), "bytes are forced where the text may end", seen.path)
        for count, piece in enumerate(self.pieces(forced)[:_FORCED]):
            alive = self.live_pieces(state)
            where = f"forced byte {count} of {forced[:_FORCED]!r}"
            self.hold(alive == [piece], f"{where}: possible are {alive!r}", seen.path)
            self.hold(not self.constraint.is_accepting(state), f"{where}: the text may end before it", seen.path)
            state = self.constraint.advance_bytes(state, piece)
        if not forced and not seen.accepting:
            self.hold(len(self.live_pieces(state)) > 1, "one byte alone can come next, but it is not forced", seen.path)

    def pieces(self, data: bytes) -> list[bytes]:
        """The single bytes of a text, and its special tokens, which come whole or not at all."""
        if not self.vocabulary.has_special:
            return [bytes([byte]) for byte in data]
        pieces: list[bytes] = []
        for number, part in enumerate(data.split(SENTINEL)):
            pieces += [SENTINEL + part + SENTINEL] if number % 2 else [bytes([byte]) for byte in part]
        return pieces

    def live_pieces(self, state: int) -> list[bytes]:
        """The bytes and special tokens that can come next."""
        pieces = [bytes([byte]) for byte in range(256)] + list(map(special_bytes, self.vocabulary.special_tokens))
        return [piece for piece in pieces if self.constraint.advance_bytes(state, piece)]

    def finish(self, state: int, path: tuple[int, ...]) -> None:
        """Reach an end in the promised number of tokens, at each step by any token of the budgeted mask."""
        needed = self.constraint.shortest_completion(state)
        if needed > _LONGEST_END:
            return
        row = np.empty_like(self.eos)
        for left in range(needed, -1, -1):
            seen = self.visit(state, path)
            self.constraint.fill_budget_mask(state, row, left + 1)
            self.hold(bool(row.any()), f"a dead end: nothing fits in {left + 1} tokens", path)
            self.hold(not (row & ~seen.mask).any(), "the budgeted mask allows what the mask forbids", path)
            allowed = tokenset.ids(row)
            token = int(allowed[self.rnd.randrange(allowed.size)])
            if token in self.vocabulary.eos_ids:
                self.ended(state, token, path)
                return
            path = (*path, token)
            state = self.constraint.advance(state, token)
        self.hold(False, f"no end after {needed} tokens, though shortest_completion promised it", path)

    def ended(self, state: int, token: int, path: tuple[int, ...]) -> None:
        after = self.constraint.advance(state, token)
        self.hold(after == self.constraint.end, "an end-of-text id leads to `end`", path)
        mask = self.mask(self.constraint, after, (*path, token))
        self.hold(bool((mask == self.eos).all()), "only end-of-text ids are allowed after the end", (*path, token))
        self.hold(self.constraint.is_accepting(after), "the end is accepting", (*path, token))

    def again(self, constraint: Constrains) -> None:
        """Every state says what it said before everything else was asked."""
        states = list(self.seen.values())
        random.Random(len(states)).shuffle(states)
        for seen in states:
            self.compare(constraint, seen.state, seen)

    def replay(self, constraint: Constrains) -> None:
        """Another object for the same language says the same along the same texts."""
        for seen in self.seen.values():
            state = constraint.start
            for token in seen.path:
                state = constraint.advance(state, token)
                self.hold(state != 0, "a copy refuses this text", seen.path)
            self.compare(constraint, state, seen)

    def threads(self, constraint: Constrains, count: int) -> None:
        """Several threads at once, each in its own order, replay everything."""
        failures: list[BaseException] = []

        def ask(states: Iterable[_Seen]) -> None:
            try:
                for seen in states:
                    state = constraint.start
                    for token in seen.path:
                        state = constraint.advance(state, token)
                    self.compare(constraint, state, seen)
            except BaseException as error:  # handed to the caller's thread
                failures.append(error)

        workers = []
        for number in range(count):
            states = list(self.seen.values())
            random.Random(number).shuffle(states)
            workers.append(threading.Thread(target=ask, args=(states,)))
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if failures:
            raise failures[0]

    def compare(self, constraint: Constrains, state: int, seen: _Seen) -> None:
        row = self.mask(constraint, state, seen.path)
        different = tokenset.ids(row ^ seen.mask)
        if different.size:
            self.hold(False, f"the mask has changed its mind about {self.name(int(different[0]))}", seen.path)
        self.hold(constraint.is_accepting(state) == seen.accepting, "is_accepting has changed its mind", seen.path)

    def name(self, token: int) -> str:
        return f"token {token} ({self.vocabulary.spelled(token)!r})"

    def hold(self, true: bool, what: str, path: tuple[int, ...]) -> None:
        if not true:
            text = b"".join(self.vocabulary.spelled(token) or b"" for token in path)
            raise AssertionError(f"{what}\n  after {text!r}\n  tokens {list(path)}\n  of {self.constraint!r}")
