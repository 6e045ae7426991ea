"""`Tracks`: the texts of an engine's step, which go on by kernels alone for as long as these know all that matters.

A row of a step has a line of numbers (`guided.kernels.masking.tracks`) and its mask.  A token that was sampled is noted
there, which is all that is done between two passes of the model; the next step takes the tokens of all rows.  Behind a
pass every Python object is a wait for memory, so a row that goes on by kernels has hardly any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import RLock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided.constraint.constraint import Constraint
from guided.constraint.effects.shared_rows import KeptRow, with_address
from guided.constraint.end_tokens import EndTokens
from guided.constraint.engine.plans import Back, Track
from guided.constraint.stepping import BRIEF, MOMENT
from guided.errors import GuidedError
from guided.kernels.data.addresses import REPLACED
from guided.kernels.masking import tracks as kernels
from guided.kernels.masking.tracks import Left, Mode
from guided.serving.matcher import Matcher

__all__ = ["FREE", "Entry", "Place", "Tracks", "entry", "tokens_of"]

FREE = 0
"""The line of rows without constraint."""

ROUNDS = 4
"""How often kernels go on with what they asked for: most ask once."""


class Entry(NamedTuple):
    """All that a line holds of a text that comes to it: any thread may find it, and that of the tracks writes it."""

    matcher: Matcher
    constraint: Constraint | None
    """Whose kernels may go on."""
    numbers: memoryview
    """``int64[FIELDS]``"""
    names: bytes
    ends: KeptRow
    """The row of ends of text that kernels look at."""
    mask: KeptRow | None
    back: Back | None


def entry(matcher: Matcher, mask: KeptRow | None) -> Entry:
    """What there is to write where a text stands now, with its mask if that is known."""
    constraint = matcher.constraint
    numbers = np.zeros(kernels.FIELDS, np.int64).data
    numbers[kernels.TOKEN], numbers[kernels.MODE] = kernels.UNKNOWN, Mode.OUTSIDE
    ends = with_address(EndTokens.of(constraint.vocabulary).row)
    numbers[kernels.ENDS], numbers[kernels.WORDS] = ends[0], len(ends[1])
    movable: Constraint | None = None
    if isinstance(constraint, Constraint) and matcher.most_tokens is None:
        movable = constraint
        for i, number in enumerate(constraint.track_parts, kernels.TABLE):
            numbers[i] = number
    track: Track | None = None
    if mask is not None:
        numbers[kernels.TOKEN], numbers[kernels.SEEN] = kernels.NOTHING, REPLACED.last
        track = None if movable is None else movable.track(matcher.state)
    names = b"" if track is None else _written(numbers, 0, track, matcher)
    return Entry(matcher, movable, numbers, names, ends, mask, None if track is None else track.back)


def _written(numbers: memoryview, at: int, track: Track, matcher: Matcher) -> bytes:
    """Write where a text stands to its line, which begins there; what comes to be in the line's names."""
    loops = 1 if matcher.loops else -1
    used, name = track.used, track.name
    containers = track.depth, track.arrays, track.names
    for i, number in enumerate((track.mode, track.own, loops, *containers, len(used), len(name), track.is_free, 0)):
        numbers[at + kernels.MODE + i] = number
    return used.ljust(kernels.NAME_AT, b"\0") + name if name else used


def tokens_of(given_back: bytes) -> list[int]:
    """The tokens of `Tracks.give_back`."""
    tokens: list[int] = (np.frombuffer(given_back, np.int64) & kernels.ENDED - 1).tolist()
    return tokens


class Tracks:
    """So many rows at most, each as wide as the engine's; for one thread."""

    def __init__(self, rows: int, words: int) -> None:
        self._lines = np.zeros((rows + 1, kernels.FIELDS), np.int64)
        self._lines[:, kernels.TOKEN] = kernels.NOTHING
        self._masks = np.zeros((rows + 1, words), np.uint32)
        self._masks[FREE] = ~np.uint32(0)
        # With one more, for that which is noted.
        self._tokens = np.zeros((rows + 1, kernels.MOST + 1), np.int64)
        self._names = np.zeros((rows + 1, kernels.POOL), np.uint8)
        self._left = np.zeros((rows + 1, 2), np.int64)
        self._order = np.zeros(0, np.int64)
        self.note: Callable[[int, int], bool] = partial(kernels.note, self._lines, self._masks)
        """Note the token that is sampled from a line's mask; False for what it does not allow, and for ends of text."""
        # An entry, or a slice, of these costs a third of an array's.
        self.numbers = self._lines.reshape(-1).data
        self._left_numbers = self._left.reshape(-1).data
        self._token_numbers = self._tokens.reshape(-1).data
        self._name_bytes = self._names.reshape(-1).data
        self._mask_words = self._masks.reshape(-1).data
        self._constraints: list[Constraint | None] = [None] * (rows + 1)
        """Whose kernels may go on, by line."""
        self._locks: list[RLock | None] = [None] * (rows + 1)
        """What is held while they do."""
        self._backs: list[Back | None] = [None] * (rows + 1)
        self._ends: list[KeptRow | None] = [None] * (rows + 1)
        """The rows of ends of text that kernels look at, by line."""
        self._unused = list(range(rows, FREE, -1))
        self._is_seated = False
        """Are rows where they were when masks were copied last?"""
        self._has_changed = True

    def take(self, text: Entry) -> Place:
        """A line for a text."""
        line = self._unused.pop()
        constraint = text.constraint
        self._constraints[line] = constraint
        self._locks[line] = None if constraint is None else constraint.lock
        self._ends[line], self._backs[line] = text.ends, text.back
        at = line * kernels.FIELDS
        self.numbers[at : at + kernels.FIELDS] = text.numbers
        self._write_names(line, text.names)
        if text.mask is not None:
            self.show(line, text.mask)
        return Place(self, line, text.matcher)

    def _write_names(self, line: int, names: bytes) -> None:
        at = line * kernels.POOL
        self._name_bytes[at : at + len(names)] = names

    def give_back(self, place: Place) -> bytes:
        """Let a line go: the tokens, the noted one as well, of which its matcher does not know, for `tokens_of`."""
        line, at, begin = place.line, place.line * kernels.FIELDS, place.line * (kernels.MOST + 1)
        numbers = self.numbers
        n = 0 if numbers[at + kernels.MODE] == Mode.OUTSIDE else numbers[at + kernels.N_TOKENS]
        if numbers[at] >= 0:
            self._token_numbers[begin + n] = numbers[at]
            n += 1
        numbers[at], numbers[at + kernels.MODE] = kernels.UNKNOWN, Mode.OUTSIDE
        self._constraints[line] = self._locks[line] = None
        self._unused.append(line)
        return self._token_numbers[begin : begin + n].tobytes()

    def seat(self, lines: Sequence[int]) -> None:
        """From now on rows are of these lines, in this order; `FREE`: without constraint."""
        self._order = np.array(lines, np.int64)
        self._is_seated = False

    def go_on(self) -> list[int]:
        """Take all noted tokens that kernels can take, with the masks behind them: the lines that are left."""
        n = kernels.stay(self._lines, self._order, self._tokens, self._names, self._left)
        if not n:
            return []
        self._has_changed = True
        others: list[int] = []
        for _ in range(ROUNDS):
            left = self._moved(n)
            again = self._provided(left, others) if left else []
            n = len(again)
            if not n:
                return others
            self._left[:n, 0] = again
            self._left[:n, 1] = 0
        return others + again

    def _moved(self, n: int) -> list[list[int]]:
        """Have kernels go on in the first ``n`` lines that are left: those left then, each with what there is to do."""
        left, locks = self._left_numbers, self._locks
        held: list[RLock] = []
        try:
            for i in range(0, 2 * n, 2):
                lock = locks[left[i]]
                if lock is not None and lock.acquire(False):
                    held.append(lock)
                    left[i + 1] = 1
            n = kernels.go_on(
                self._lines, self._left, n, self._tokens, self._names, self._masks, MOMENT, BRIEF, REPLACED.last
            )
        finally:
            for lock in held:
                lock.release()
        found: list[list[int]] = self._left[:n].tolist() if n else []
        return found

    def _provided(self, left: list[list[int]], others: list[int]) -> list[int]:
        """Have what kernels asked for: the lines in which they may go on.  Those that are Python's join the others."""
        again: list[int] = []
        for line, todo in left:
            constraint = self._constraints[line]
            try:
                if todo == Left.STEP or constraint is None:
                    others.append(line)
                elif todo == Left.STALE:
                    self.numbers[line * kernels.FIELDS + kernels.SEEN] = REPLACED.last
                    constraint.renew()
                    again.append(line)
                elif constraint.provide():
                    again.append(line)
                elif todo == Left.MASK:
                    at = line * kernels.FIELDS
                    self.show(line, constraint.kept_row(self.numbers[at + kernels.OWN]))
                    self.numbers[at] = kernels.NOTHING
                else:
                    others.append(line)
            except GuidedError:
                # Python comes to the same limit, for this text alone.
                others.append(line)
        return again

    def show(self, line: int, mask: KeptRow) -> None:
        """Write a line's mask."""
        self._has_changed = True
        self.numbers[line * kernels.FIELDS + kernels.CHANGED] = 1
        words, width = mask[1], self._masks.shape[1]
        at = line * width
        self._mask_words[at : at + words.size] = words.data
        if words.size < width:
            self._masks[line, words.size :] = 0

    def copy(self, out: NDArray[np.uint32]) -> None:
        """Copy the masks that have changed to the first rows of ``out``, to which nobody else writes."""
        if self._has_changed or not self._is_seated:
            kernels.copy_changed(self._lines, self._order, self._masks, out, not self._is_seated)
            self._is_seated, self._has_changed = True, False


class Place:
    """The line of one text."""

    __slots__ = ("_at", "_matcher", "_tracks", "line")

    def __init__(self, tracks: Tracks, line: int, matcher: Matcher) -> None:
        self._tracks = tracks
        self.line = line
        self._matcher = matcher
        self._at = line * kernels.FIELDS

    def note(self, token: int) -> bool:
        """As `Tracks.note`."""
        return self._tracks.note(self.line, token)

    @property
    def noted(self) -> int:
        """The token that is noted, or `kernels.NOTHING`, or `kernels.UNKNOWN` where the mask is not known."""
        return self._tracks.numbers[self._at]

    def forget(self) -> None:
        """The mask is another now, and no token noted."""
        self._tracks.numbers[self._at] = kernels.UNKNOWN

    def leave(self) -> None:
        """Have the matcher know the text up to the token that is noted; from here on Python moves it."""
        tracks, at = self._tracks, self._at
        numbers = tracks.numbers
        if numbers[at + kernels.MODE] == Mode.OUTSIDE:
            return
        n = numbers[at + kernels.N_TOKENS]
        if n:
            numbers[at + kernels.N_TOKENS] = 0
            taken = tracks._tokens[self.line, :n]
            own, back = numbers[at + kernels.OWN], tracks._backs[self.line]
            if back is not None and numbers[at + kernels.MODE] != Mode.IDLE:
                own = back(own, taken.tolist())
            self._matcher.go_on((taken & kernels.ENDED - 1).tolist(), own)
        numbers[at + kernels.MODE] = Mode.OUTSIDE

    def enter(self, mask: KeptRow | None, moves: bool = True) -> None:
        """The mask of the next token, if it is known; and kernels may move the text where they know what matters."""
        tracks, at = self._tracks, self._at
        numbers = tracks.numbers
        numbers[at] = kernels.UNKNOWN
        numbers[at + kernels.MODE] = Mode.OUTSIDE
        if mask is None:
            return
        tracks.show(self.line, mask)
        if not moves:
            return
        numbers[at] = kernels.NOTHING
        constraint = tracks._constraints[self.line]
        numbers[at + kernels.SEEN] = REPLACED.last
        track = None if constraint is None else constraint.track(self._matcher.state)
        if track is None:
            return
        tracks._backs[self.line] = track.back
        names = _written(numbers, at, track, self._matcher)
        tracks._write_names(self.line, names)
