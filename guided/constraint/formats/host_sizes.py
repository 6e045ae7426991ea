"""For many tokens at once: does a label of a host name become too long in its encoded form?  As `idna_names` has it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from guided.grammar.formats.idna_characters import characters
from guided.grammar.formats.idna_labels import DEAD, Kind, labels
from guided.grammar.formats.idna_names import MOST_IN_LABEL, MOST_IN_NAME, HostName


def too_long(name: HostName, codes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows of code points make a label too long, and which others have to be looked at one by one.

    ``codes`` are padded with -1; the automaton allows them all behind ``name``, in whose label they stay.  Looked at
    one by one are those in which the label may not end somewhere, so that more than its length counts there.
    """
    table, of, accepts = _arrays()
    most = min(MOST_IN_LABEL, MOST_IN_NAME - name.before)
    fails, unclear = np.zeros(len(codes), np.bool_), np.zeros(len(codes), np.bool_)
    label = np.asarray([ord(letter) for letter in name.label], np.int64)
    states = np.full(len(codes), name.state, np.int64)
    before = octets_of(label[None])[0] if label.size else 0
    if before >= most:
        return ~fails, unclear
    active = np.arange(len(codes))
    for at in range(codes.shape[1]):
        active = active[codes[active, at] >= 0]
        if not active.size:
            break
        states[active] = table[states[active], of[codes[active, at]]]
        unclear[active[~accepts[states[active]]]] = True
        prefixes, inverse = np.unique(codes[active, : at + 1], axis=0, return_inverse=True)
        texts = np.concatenate([np.broadcast_to(label, (len(prefixes), label.size)), prefixes], axis=1)
        sizes = octets_of(texts)[inverse.reshape(-1)]
        last = codes.shape[1] == at + 1
        goes_on = np.zeros(active.size, np.bool_) if last else codes[active, at + 1] >= 0
        # Where a letter follows there must be room for it before it is read.
        bad = (sizes > most) | (goes_on & (sizes >= most))
        fails[active[bad]] = True
        active = active[~bad]
    return fails & ~unclear, unclear


@lru_cache(maxsize=1)
def _arrays() -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.bool_]]:
    table = labels(Kind.HOST)
    rows = np.asarray([*table.rows, (DEAD,) * len(table.rows[0])], np.int64)
    return rows, np.frombuffer(characters().of, np.uint8), np.asarray([*table.accepts, False], np.bool_)


def octets_of(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """`idna_names.octets` of labels of equal length, given as rows of code points."""
    n_rows, length = codes.shape
    order = np.argsort(codes * 256 + np.arange(length), axis=1)
    codes = np.take_along_axis(codes, order, axis=1)
    basic = (codes < 0x80).sum(axis=1)
    sizes = 4 + basic + (basic > 0)
    at, place, bias = np.full(n_rows, 0x80), np.zeros(n_rows, np.int64), np.full(n_rows, 72)
    # RFC 3492, section 6.2: characters are inserted in the order of their code points, each behind the last or around.
    for handled in range(length):
        above = codes[:, handled] >= 0x80
        if not above.any():
            continue
        behind = (order[:, :handled] < order[:, handled : handled + 1]).sum(axis=1)
        delta = np.where(above, (codes[:, handled] - at) * (handled + 1) + behind - place, 0)
        sizes += np.where(above, _digits(delta, bias), 0)
        bias = np.where(above, _adapted(delta, handled, basic), bias)
        at = np.where(above, codes[:, handled], at)
        place = np.where(above, behind + 1, place)
    found: NDArray[np.int64] = np.where(basic == length, length, sizes)
    return found


def _digits(values: NDArray[np.int64], bias: NDArray[np.int64]) -> NDArray[np.int64]:
    count = np.ones_like(values)
    values = values.copy()
    place = 36
    while True:
        threshold = np.clip(place - bias, 1, 26)
        more = values >= threshold
        if not more.any():
            return count
        count += more
        # What has ended stays below every threshold.
        values = np.where(more, (values - threshold) // (36 - threshold), -1)
        place += 36


def _adapted(delta: NDArray[np.int64], handled: int, basic: NDArray[np.int64]) -> NDArray[np.int64]:
    delta = np.where(basic == handled, delta // 700, delta // 2)
    delta += delta // (handled + 1)
    bias = np.zeros_like(delta)
    while (large := delta > 455).any():
        delta = np.where(large, delta // 35, delta)
        bias += 36 * large
    found: NDArray[np.int64] = bias + 36 * delta // (delta + 38)
    return found
