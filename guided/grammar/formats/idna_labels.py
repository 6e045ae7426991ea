"""Names of labels under IDNA 2008 as an automaton over characters: everything about them that is regular.

That is: which characters there may be and in what context (RFC 5892), where hyphens and combining marks stand (RFC
5891, section 4.2.3), and the rule on directions (RFC 5893), which looks at all labels of a name.  Not here are lengths,
Unicode's normal form, and what encoded labels (``xn--``) stand for: see `idna_names`.

States are numbers; characters come as their classes of `idna_characters`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from guided.grammar.formats.idna_characters import Character, characters

DEAD = -1
_BEHIND = {"\u05f3": "Hebrew", "\u05f4": "Hebrew", "\u200d": "virama"}
"""What must stand before some characters."""


class Direction(IntEnum):
    """What the labels so far say of the direction of those that follow."""

    OPEN = 0
    """Nothing: all of them meet the rule on directions, and none is written from right to left."""
    BOUND = 1
    """Some label is written from right to left, so all must meet the rule."""
    LEFT_TO_RIGHT = 2
    """Some label does not meet the rule, so none may be written from right to left."""


class Kind(IntEnum):
    """What names are made of."""

    HOST = 0
    """Host names: any of the full stops, and encoded labels, which may stand for any label."""
    PLAIN = 1
    """The same without encoded labels."""
    MAIL = 2
    """Domains of mail (RFC 6531): U+002E alone, and any labels of ASCII (RFC 5321)."""


class _Label(NamedTuple):
    """What the rest of a name depends on, in a label; ``at`` 0: no character of it was read."""

    names: Direction
    at: int = 0
    """Characters read, 4 for more."""
    prefix: int = 0
    """How much of ``xn--`` was read."""
    third: bool = False
    """The third character was a hyphen, and nothing was read since."""
    only_ascii: bool = False
    only_lower: bool = False
    """There was a character above ASCII."""
    last: str = ""
    """Of the last character: ``-``, ``l``, ``Hebrew``, ``virama`` or nothing."""
    text: str = ""
    """``left`` or ``right``, or what has no direction: ``none``."""
    ends: bool = False
    """As to its direction the label may end here."""
    numbers: str = ""
    """Digits seen in a label from right to left: ``AN`` or ``EN``."""
    joins: bool = False
    """Something that joins to the right was read, behind it transparent characters only."""
    needs: str = ""
    """What must come next: ``l``, ``Greek``, or what ``joins``, behind transparent characters."""
    dots: int = 0
    """Of katakana middle dots: 1, there was one and no letter yet that it may stand with; 2, there is such a letter."""


class _Encoded(NamedTuple):
    """In an encoded label."""

    names: Direction
    ends: bool


_State = _Label | _Encoded


def _ended(state: _State) -> _Label | None:
    """The place behind a label that ends here; None where none does."""
    if isinstance(state, _Encoded):
        return _Label(state.names) if state.ends else None
    if not state.at or state.last == "-" or state.needs or state.dots == 1:
        return None
    if state.text == "right":
        return _Label(Direction.BOUND) if state.ends else None
    if state.ends:
        return _Label(state.names)
    return None if state.names is Direction.BOUND else _Label(Direction.LEFT_TO_RIGHT)


def _step(state: _State, letter: Character, kind: Kind) -> _State | None:
    if letter.special == ".":
        return _ended(state) if letter.is_ascii or kind is not Kind.MAIL else None
    if isinstance(state, _Encoded):
        return _Encoded(state.names, letter.special != "-") if letter.is_ascii else None
    directed = _directed(state, letter)
    if directed is None:
        return None
    if state.only_lower if letter.is_upper else state.only_ascii and not letter.is_ascii:
        return None
    only_ascii, only_lower = state.only_ascii or letter.is_upper, state.only_lower or not letter.is_ascii
    prefix, third = 0, False
    if letter.special == "-":
        if not state.at:
            return None
        third = state.at == 2
        prefix = 3 if state.prefix == 2 else 0
        if state.third:
            if state.prefix == 3 and not state.only_lower and kind is Kind.HOST:
                return _Encoded(state.names, False)
            if kind is not Kind.MAIL or state.only_lower:
                return None
            only_ascii = True
    elif state.at == 0:
        prefix = int(letter.special in ("x", "X"))
    elif state.at == 1:
        prefix = 2 if state.prefix and letter.special in ("n", "N") else 0
    context = _in_context(state, letter)
    if context is None:
        return None
    text, ends, numbers = directed
    last, joins, needs, dots = context
    at = min(state.at + 1, 4)
    return _Label(state.names, at, prefix, third, only_ascii, only_lower, last, text, ends, numbers, joins, needs, dots)


def _in_context(state: _Label, letter: Character) -> tuple[str, bool, str, int] | None:
    """What the rules on context want to know behind a character: appendix A of RFC 5892, and on marks.

    As in `_Label`: the last character, whether one joins, what must come next, and the middle dots.
    """
    special, joining = letter.special, letter.joining
    needs = state.needs
    if letter.is_mark and not state.at:
        return None
    if (needs == "l" and special != "l") or (needs == "Greek" and letter.script != "Greek"):
        return None
    if needs == "joins":
        if joining in ("R", "D"):
            needs = ""
        elif joining != "T":
            return None
    else:
        needs = ""
    if special == "\xb7":
        if state.last != "l":
            return None
        needs = "l"
    elif special == "\u0375":
        needs = "Greek"
    elif special in _BEHIND and state.last != _BEHIND[special]:
        return None
    elif special == "\u200c" and state.last != "virama":
        if not state.joins:
            return None
        needs = "joins"
    last = special if special in ("-", "l") else "virama" if letter.is_virama else ""
    if letter.script == "Hebrew":
        last = "Hebrew"
    dots = 2 if letter.script == "Kana" else 1 if special == "\u30fb" and not state.dots else state.dots
    joins = state.joins if joining == "T" else joining in ("L", "D")
    return last, joins, needs, dots


def _directed(state: _Label, letter: Character) -> tuple[str, bool, str] | None:
    """The rule on directions, RFC 5893, section 2: ``text``, ``ends`` and ``numbers`` behind a character.

    Digits of two kinds (appendix A.8 and A.9) never meet under it.
    """
    bidi, text, numbers = letter.bidi, state.text, state.numbers
    if not state.at:
        if bidi == "L":
            return "left", True, numbers
        if bidi == "R":
            return None if state.names is Direction.LEFT_TO_RIGHT else ("right", True, numbers)
        return None if bidi == "AN" or state.names is Direction.BOUND else ("none", state.ends, numbers)
    if text != "right":
        if bidi in ("R", "AN"):
            return None
        return text, text == "left" and (bidi in ("L", "EN") or (bidi == "NSM" and state.ends)), numbers
    if bidi == "L":
        return None
    if bidi in ("AN", "EN"):
        return None if numbers not in ("", bidi) else (text, True, bidi)
    return text, bidi == "R" or (bidi == "NSM" and state.ends), numbers


class Labels(NamedTuple):
    """A deterministic automaton, the least of its language; every state leads to an end."""

    rows: tuple[tuple[int, ...], ...]
    """By state and class of characters: the state after it, or `DEAD`."""
    accepts: tuple[bool, ...]
    starts: tuple[int, ...]
    """Where a label begins, by `Direction` of those before."""


@lru_cache(maxsize=3)
def labels(kind: Kind) -> Labels:
    """The automaton of names of one kind."""
    classes = characters().classes
    starts: list[_State] = [_Label(direction) for direction in Direction]
    numbers: dict[_State, int] = {state: number for number, state in enumerate(starts)}
    states = list(starts)
    rows: list[list[int]] = []
    for state in states:
        row = [DEAD]
        for letter in classes[1:]:
            after = _step(state, letter, kind)
            if after is not None and after not in numbers:
                numbers[after] = len(states)
                states.append(after)
            row.append(DEAD if after is None else numbers[after])
        rows.append(row)
    accepts = [_ended(state) is not None for state in states]
    _prune(rows, accepts)
    block = _blocks(rows, accepts)
    kept = dict.fromkeys(block)
    order = {number: at for at, number in enumerate(kept)}
    first = {number: state for state, number in reversed(list(enumerate(block)))}
    return Labels(
        tuple(tuple(DEAD if to == DEAD else order[block[to]] for to in rows[first[number]]) for number in kept),
        tuple(accepts[first[number]] for number in kept),
        tuple(order[block[at]] for at in range(len(starts))),
    )


def _prune(rows: list[list[int]], accepts: list[bool]) -> None:
    """Leave out the ways that lead to no end."""
    before: list[set[int]] = [set() for _ in rows]
    for state, row in enumerate(rows):
        for target in row:
            if target != DEAD:
                before[target].add(state)
    alive = {state for state, ends in enumerate(accepts) if ends}
    work = list(alive)
    while work:
        for state in before[work.pop()] - alive:
            alive.add(state)
            work.append(state)
    for row in rows:
        row[:] = [target if target in alive else DEAD for target in row]


def _blocks(rows: list[list[int]], accepts: list[bool]) -> list[int]:
    """For each state the number of those that it is equal to (Moore's algorithm)."""
    block = [int(ends) for ends in accepts]
    count = len(set(block))
    while True:
        keys: dict[tuple[int, ...], int] = {}
        block = [keys.setdefault((block[state], *_targets(row, block)), len(keys)) for state, row in enumerate(rows)]
        if len(keys) == count:
            return block
        count = len(keys)


def _targets(row: Iterable[int], block: list[int]) -> Iterable[int]:
    return (DEAD if target == DEAD else block[target] for target in row)
