"""Surveys of token tries, against reading each token by itself."""

from __future__ import annotations

import random

import numpy as np
import pytest

import guided
from guided.automata.lexer.spelling import move, place_of
from guided.automata.lexer.states import StateTable
from guided.constraint.effects.characters_left import CharactersLeft
from guided.constraint.effects.effect_store import EffectStore
from guided.constraint.effects.surveys import Stays, Surveys
from guided.constraint.effects.token_tries import TokenTries
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular.expr import alternation, complement, concat, intersection, json_string, literal
from guided.kernels.data.layout import MATCHED
from guided.kernels.masking.effects import DENSE
from tests import vocabularies
from tests.amounts import mostly_slow

PIECES = [
    b"a", b"b", b"Z", b"7", b"-", b".", b" ", b"\n", b'"', b"\\", b"\\n", b"\\u00", b"e9", b"\\ud83d", b"\\ude00",
    "é".encode(), "ഀ".encode(), "\u2028".encode(), "\u2029".encode(), "😀".encode(),
    b"\xc3", b"\xa9", b"\xe2", b"\xe2\x80", b"\x80", b"\xa8", b"\xf0\x9f", b"\x98\x80", b"\xff", b"\xc0",
]  # fmt: skip
PATTERNS = [
    "(?s:.*)",
    "[^\n]*",
    "[a-z]*",
    "[a-zé.]*",
    r"[^\u2028]*",
    "[^a]*",
    r"\w*",
    "[a-z0-9-]*",
    "[ab]{0,3}",
    ".*ab.*",
    "([^a]|a+[^ab])*",
    ".*a.{7}",
]
ALIKE = [
    "[a-z0-9]+(-[a-z0-9]+)*", r"([\w.]+-)*\w{2,}", "(?!ab|b-)[^7]*", ".*(Z7|a-b).*", "[^.]{1,4}(\\.[^.]{1,3})*", "a*b*-*(.b)*",
    r"(\S+ )*\S{1,3}", "([^é]|é[^a])*", "[😀a-z]*b?", "(a|b7?){3,9}[^b]*",
]  # fmt: skip
BESIDE = ["(?s:.*)", ".*b.*", "([a-z]+-)*[a-z0-9]*", "[^.]{1,4}(?s:.*)", "a?[^b]*"]


def vocabulary(seed: random.Random, size: int = 700, often: int = 1) -> guided.Vocabulary:
    pieces = PIECES + (often - 1) * PIECES[:7]
    return vocabularies.of_tokens(sorted(vocabularies.random_tokens(seed, pieces, size, 5)))


def read_tokens(table, tries, places, home, low=1, high=0):
    """``{token: count}`` and exits ``(node, count)`` as `survey` says, token by token."""
    kept: dict[int, int] = {}
    exits: set[tuple[int, int]] = set()
    arrays = tries.arrays

    def walk(node: int, end: int, places: list[int], count: int) -> None:
        while node < end:
            after = [move(table, place, int(arrays.byte[node])) for place in places]
            if all(after):
                here = count + (after[0] == home)
                state = after[0] & 0xFFFFFFFF
                table.expand(state)
                ends = all(table.arrays.tag[place & 0xFFFFFFFF] >= 0 for place in after)
                inside = not ends or table.arrays.count[state] > 0
                if ends:
                    exits.add((node, here))
                for token in arrays.token_ids[arrays.token_offset[node] : arrays.token_offset[node + 1]].tolist():
                    kept[token] = (here + (after[0] != home)) if inside else -1 - here
                if inside:
                    walk(node + 1, int(arrays.end[node]), after, here)
            node = int(arrays.end[node])

    walk(low, high or tries.root, places, 0)
    return kept, exits


def tokens_of(store, found):
    if found.mask < 0:
        return set(found.kept.tolist())
    row = store.arrays.masks[found.mask]
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


@pytest.mark.parametrize("number", mostly_slow(range(6), 2))
def test_surveys_note_what_each_token_does(number):
    seed, table = random.Random(number), StateTable()
    words = vocabulary(seed)
    tries = TokenTries(words)
    surveys = Surveys(table, tries, EffectStore(words.n_words))
    root = tries.root
    for pattern in PATTERNS:
        content = pattern_language(pattern)
        for canonical in (False, True):
            state = table.add(json_string(content, canonical=canonical))
            other = table.add(json_string(pattern_language(seed.choice(BESIDE)), canonical=canonical))
            for home in (0, state, other):
                found = surveys.survey(1, root, state, home)
                assert found is not None
                kept, exits = read_tokens(table, tries, [place_of(table, state)], home or -1)
                assert dict(zip(found.kept.tolist(), found.count.tolist(), strict=True)) == kept
                assert {(row[0], row[3]) for row in found.exits.tolist()} == exits
                assert len(found.kept) == len(kept)
                assert all(tag == 0 for tag in found.exits[:, 1])


def places_of(table, tries, place):
    """``{token: place}`` in which each token ends that can be read."""
    found: dict[int, int] = {}
    arrays = tries.arrays

    def walk(node: int, end: int, place: int) -> None:
        while node < end:
            after = move(table, place, int(arrays.byte[node]))
            if after:
                for token in arrays.token_ids[arrays.token_offset[node] : arrays.token_offset[node + 1]].tolist():
                    found[token] = after
                walk(node + 1, int(arrays.end[node]), after)
            node = int(arrays.end[node])

    walk(1, tries.root, place)
    return found


@pytest.mark.parametrize("number", mostly_slow(range(6), 2))
def test_characters_are_counted_by_the_walk_of_any_string(number):
    seed, table = random.Random(number), StateTable()
    words = vocabulary(seed)
    tries = TokenTries(words)
    surveys, characters = Surveys(table, tries, EffectStore(words.n_words)), CharactersLeft(table)
    root = tries.root
    for canonical in (False, True):
        around = table.add(json_string(pattern_language("(?s:.*)"), canonical=canonical))
        counted = surveys.survey(1, root, around, around)
        assert counted is not None
        for pattern in [*PATTERNS, *BESIDE]:
            state = table.add(json_string(pattern_language(pattern), canonical=canonical))
            ends = surveys.ends(1, root, state)
            assert ends is not None
            expected = places_of(table, tries, place_of(table, state))
            assert sorted(ends.kept.tolist()) == sorted(expected)
            for token, left in zip(ends.kept.tolist(), characters.of_tokens(ends.places).tolist(), strict=True):
                assert left == characters.of_place(expected[token] & 0xFFFFFFFF, expected[token] >> 32)
            kept, exits = read_tokens(table, tries, [place_of(table, around), place_of(table, state)], around)
            found = counted.of(ends)
            assert dict(zip(found.kept.tolist(), found.count.tolist(), strict=True)) == kept
            assert {(row[0], row[3]) for row in found.exits.tolist()} == exits


def test_surveys_outside_of_strings_count_alike():
    table, seed = StateTable(), random.Random(9)
    words = vocabulary(seed)
    tries = TokenTries(words)
    surveys = Surveys(table, tries, EffectStore(words.n_words))
    for pattern in PATTERNS:
        for close in (b"", b";", b'"'):
            state = table.add(concat(pattern_language(pattern), literal(close)))
            if state == MATCHED:
                continue
            for home in (0, state):
                found = surveys.survey(1, tries.root, state, home)
                assert found is not None
                kept, exits = read_tokens(table, tries, [place_of(table, state)], home or -1)
                assert dict(zip(found.kept.tolist(), found.count.tolist(), strict=True)) == kept
                assert {(row[0], row[3]) for row in found.exits.tolist()} == exits


def checked_stays(surveys, table, tries, store, state):
    """What stays from a state; the same tokens as byte by byte, and the exits that have something below."""
    kept, exits = read_tokens(table, tries, [place_of(table, state)], -1)
    found = surveys.stays(1, tries.root, state)
    assert found is not None
    assert tokens_of(store, found) == set(kept)
    below = [(node, 0) for node, _ in exits if int(tries.arrays.end[node]) > node + 1]
    assert sorted((row[0], row[1]) for row in found.exits.tolist()) == sorted(below)
    return found


@pytest.mark.parametrize("number", mostly_slow(range(3), 1))
def test_tokens_that_stay_are_listed_or_set_in_a_row_whatever_was_in_it(number):
    seed, table = random.Random(number), StateTable()
    words = vocabulary(seed, 4000, often=12)
    tries, store = TokenTries(words), EffectStore(words.n_words)
    surveys = Surveys(table, tries, store)
    ways = {"listed": 0, "few of all": 0, "most of all": 0}
    for pattern in [*PATTERNS, "[^a]*b?", r"([a-z0-9.é]|-\w)*", "[^Z7]*"]:
        content = pattern_language(pattern)
        for state in (table.add(json_string(content)), table.add(concat(content, literal(b";")))):
            found = checked_stays(surveys, table, tries, store, state)
            n_kept = len(tokens_of(store, found))
            if found.mask < 0:
                assert found.kept.size == n_kept <= DENSE
                ways["listed"] += 1
            else:
                ways["most of all" if 2 * n_kept >= words.size - 1 else "few of all"] += 1
    assert min(ways.values()) >= 3


WITHOUT = [
    "ab",
    "a-b",
    "é",
    "aé",
    "7.",
    "ab7Z",
    "b\u2028",
    "a\n",
    'a"b',
    "😀",
    "-😀",
    "a",
    "Z|7",
    "a[^b]b",
    "(ab|b-)7",
    "a{3}",
]


@pytest.mark.parametrize("number", mostly_slow(range(4), 1))
def test_texts_that_must_not_hold_something_are_refused_exactly_where_they_do(number):
    seed, table = random.Random(number), StateTable()
    words = vocabulary(seed, 4000, often=6)
    tries, store = TokenTries(words), EffectStore(words.n_words)
    surveys = Surveys(table, tries, store)
    anything = pattern_language("(?s:.*)")
    for _ in range(12):
        holding = [concat(anything, pattern_language(word), anything) for word in seed.sample(WITHOUT, 2)]
        content = intersection((anything, *map(complement, holding)))
        if seed.random() < 0.3:
            content = alternation((content, concat(pattern_language("[ab]*"), literal(b"!"))))
        for state in {table.add(json_string(content, canonical=canonical)) for canonical in (False, True)}:
            # What is not known counts as refused, so the first walk and the next may keep the same in other ways.
            for _ in range(2):
                checked_stays(surveys, table, tries, store, state)


@pytest.mark.parametrize("number", mostly_slow(range(8), 3))
def test_tokens_that_stay_are_told_from_those_of_another_state(number, monkeypatch):
    seed, table = random.Random(number), StateTable()
    words = vocabulary(seed, 3000, often=1 + number % 4 * 4)
    tries, store = TokenTries(words), EffectStore(words.n_words)
    walk = Surveys(table, tries, store)
    surveys = Surveys(table, tries, store)
    told = []
    write = surveys.write_from_similar
    monkeypatch.setattr(
        surveys, "write_from_similar", lambda state, near=0: told.append(write(state, near)) or told[-1]
    )
    for pattern in seed.sample([*PATTERNS, *ALIKE], 14):
        content = pattern_language(pattern)
        begin = table.add(json_string(content, canonical=seed.random() < 0.3))
        if seed.random() < 0.3:
            begin = table.add(concat(content, literal(seed.choice((b";", b'"')))))
        states = [begin]
        for _ in range(9):
            # Some state not far from those before.
            place = place_of(table, seed.choice(states))
            for byte in seed.choice(PIECES):
                place = move(table, place, byte) if place else 0
            state = place & 0xFFFFFFFF
            if state > MATCHED and place == state and table.edges(state) and not table.arrays.owes[state]:
                states.append(state)
        for state in states:
            found = surveys.stays(1, tries.root, state)
            code = walk._walk(1, tries.root, state, store.next_row())
            if found is None:
                assert code < 0
                continue
            mask = store.take_row() if code >> 32 > DENSE else -1
            alone = Stays(mask, walk._kept[: code >> 32], walk._exit_rows[: code & 0xFFFFFFFF])
            assert tokens_of(store, found) == tokens_of(store, alone)
            assert found.exits.tolist() == alone.exits.tolist()
            if seed.random() < 0.2:
                kept, exits = read_tokens(table, tries, [place_of(table, state)], -1)
                assert tokens_of(store, found) == set(kept)
                below = {node for node, _ in exits if tries.arrays.end[node] > node + 1}
                assert set(found.exits[:, 0].tolist()) == below
    assert sum(code is not None for code in told) > 2


def test_tokens_that_stay_are_told_of_what_is_left_of_tokens():
    table, seed = StateTable(), random.Random(5)
    words = vocabulary(seed, 4000, often=12)
    tries, store = TokenTries(words), EffectStore(words.n_words)
    surveys = Surveys(table, tries, store)
    # All that is left behind any node: more nodes than the tokens' own, and tokens at several of them.
    low, high = tries.merge(
        np.flatnonzero(tries.arrays.end[1 : tries.root] > np.arange(2, tries.root + 1)).astype(np.int32) + 1
    )
    for pattern in PATTERNS:
        state = table.add(concat(pattern_language(pattern), literal(b";")))
        kept, _ = read_tokens(table, tries, [place_of(table, state)], -1, low, high)
        found = surveys.stays(low, high, state)
        assert found is not None
        assert tokens_of(store, found) == set(kept)


@pytest.mark.parametrize("number", mostly_slow(range(3), 1))
def test_strings_close_where_each_node_is_read(number):
    seed, table = random.Random(number), StateTable()
    words = vocabulary(seed, 3000, often=3)
    tries = TokenTries(words)
    surveys = Surveys(table, tries, EffectStore(words.n_words))
    found = surveys.survey(1, tries.root, table.add(json_string(pattern_language("(?s:.*)"))))
    assert found is not None
    nodes = np.ascontiguousarray(found.exits[:, 0])
    assert nodes.size > 30
    for some in (nodes, nodes[::3].copy(), nodes[-1:], nodes[:0]):
        paths = surveys.paths(1, some)
        for pattern in PATTERNS:
            for canonical in (False, True):
                state = table.add(json_string(pattern_language(pattern), canonical=canonical))
                _, exits = read_tokens(table, tries, [place_of(table, state)], -1)
                closes = surveys.closing(state, paths)
                assert closes is not None
                assert set(some[closes].tolist()) == {node for node, _ in exits} & set(some.tolist())
