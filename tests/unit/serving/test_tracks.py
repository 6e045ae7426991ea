"""`Tracks` against matchers that take one token at a time: the masks, the states, and what comes back to Python."""

import json
import random
from itertools import cycle

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.effects.shared_rows import with_address
from guided.kernels.data.addresses import REPLACED
from guided.kernels.masking.tracks import MOST, MOST_NAME, NOTHING, Mode
from guided.serving import Matcher
from guided.serving.tracks import Tracks, entry, tokens_of
from tests.amounts import some

PIECES = [
    b'{"', b'": "', b'", "', b'"}', b'": {"', b'": [', b'", ["', b"]}", b"}}", b'"], "', b', "', b": ", b'"a"', b'\\"', b"\\",
    b"\\u00", b"ab", b"abc", b"true", b"12", b'ab"', b"\xc3\xa9", b"{}", b"[]", b', "b"', b"}, {", b'x\\n"', b'":',
    b'":"', b'","', b'":{"', b'""', b'"":', b'ab": "', b'"a":', b'{"a":', b'"": {"', b'"' * 22, b'", "a": ', b'\\""',
]  # fmt: skip
VOCABULARY = guided.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), *PIECES, None], eos_ids=[256 + len(PIECES)]
)
END = VOCABULARY.eos_ids[0]
WORDS = VOCABULARY.n_words

SCHEMAS = [
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "string"}, "abc": {"type": "object"}}, "required": ["abc"]},
    {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}}},
    {"type": "array", "uniqueItems": True, "items": {"type": "object"}},
    {"type": "object", "properties": {"list": {"type": "array", "uniqueItems": True}}},
    {"type": "object", "patternProperties": {"^a": {"type": "integer"}}},
    {"type": "object", "propertyNames": {"maxLength": 2}, "additionalProperties": {"type": ["string", "object"]}},
    {"type": "object", "properties": {"a": {"type": "object", "propertyNames": {"pattern": "^(a|ab|abc)$"}}}},
    {
        "type": "object",
        "properties": {"a": {"type": "array", "uniqueItems": True, "items": {"type": ["string", "array"]}}, "ab": True},
        "additionalProperties": {"type": ["string", "object"]},
    },
    {
        "type": "array",
        "items": {"type": "object", "propertyNames": {"maxLength": 3}, "properties": {"ab": {"uniqueItems": True}}},
    },
    {"type": "object", "patternProperties": {"^[ab]{1,12}$": True}, "additionalProperties": False, "minProperties": 1},
    {"type": "object", "patternProperties": {"^[a-z0-9]{1,3}$": {"type": "null"}}, "additionalProperties": False},
    {
        "type": "object",
        "patternProperties": {"^[abc]{1,9}$": {"type": ["string", "object"], "maxProperties": 3}, "^[0-9]{4,9}$": True},
        "properties": {"a": {"type": "array", "uniqueItems": True}, "abc": {"type": "string"}},
        "additionalProperties": False,
    },
    {"type": "object", "properties": {"a": {"enum": ["ab", "abc"]}}, "additionalProperties": False},
    {
        "anyOf": [
            {"type": "object", "properties": {"a": {"type": "object"}, "": {"enum": ["a"]}}},
            {"type": "object", "properties": {"ab": True}, "additionalProperties": {"type": ["string", "object"]}},
        ]
    },
]


def constraints():
    return [
        *(guided.compile(guided.json_schema(schema), VOCABULARY) for schema in SCHEMAS),
        guided.compile(guided.regex('("[ab]*"|[0-9]+ )*'), VOCABULARY),
    ]


def first_mask(matcher):
    row = np.empty(WORDS, np.uint32)
    matcher.fill(row)
    return with_address(row)


def taken(tracks, places, matchers, out):
    """Take the tokens of all, masks to ``out``; Python takes what kernels leave.  How many of them did those take?"""
    n = sum(place.noted >= 0 for place in places)
    by_line = {place.line: (place, matcher) for place, matcher in zip(places, matchers, strict=True)}
    left = tracks.go_on()
    for line in left:
        place, matcher = by_line[line]
        place.leave()
        if place.noted >= 0:
            assert matcher.accept(place.noted)
        place.enter(first_mask(matcher))
    tracks.copy(out)
    return n - len(left)


def likely(rng, row):
    """A token of a mask, of letters and structure more often than others."""
    allowed = [token for token in tokenset.ids(row).tolist() if token != END]
    liked = [token for token in allowed if token >= 256 or chr(token) in 'ab"{}[],: 1']
    return rng.choice(liked if liked and rng.random() < 0.95 else allowed) if allowed else None


@pytest.mark.parametrize("seed", range(some(6)))
def test_rows_are_those_of_matchers_one_by_one(seed):
    rng = random.Random(seed)
    owners = constraints()
    matchers = [Matcher(owner) for owner, _ in zip(cycle(owners), range(2 * len(owners)))]
    twins = [matcher.fork() for matcher in matchers]
    tracks = Tracks(len(matchers), WORDS)
    places = [tracks.take(entry(matcher, first_mask(matcher))) for matcher in matchers]
    tracks.seat([each.line for each in places])
    rows = np.zeros((len(places), WORDS), np.uint32)
    taken(tracks, places, matchers, rows)
    by_kernels = total = 0
    for _ in range(2 * MOST):
        for i, (place, matcher, twin) in enumerate(zip(places, matchers, twins, strict=True)):
            token = likely(rng, rows[i])
            if token is None:
                # The text has to end: another begins in its place.
                matcher.note_all(tokens_of(tracks.give_back(place)))
                assert matcher.state == twin.state
                matchers[i] = Matcher(matcher.constraint)
                twins[i] = matchers[i].fork()
                places[i] = tracks.take(entry(matchers[i], None))
                tracks.seat([each.line for each in places])
                continue
            if rng.random() < 0.02:
                place.leave()
                assert matcher.state == twin.state and matcher.n_tokens == twin.n_tokens
                back = rng.randrange(min(matcher.n_tokens, 3) + 1)
                for each in (matcher, twin):
                    each.rollback(back)
                assert matcher.state == twin.state
                place.enter(first_mask(matcher))
                continue
            assert place.note(token) and not place.note(token) and place.noted == token
            assert twin.accept(token)
        standing = sum(place.noted >= 0 for place in places)
        by_kernels += taken(tracks, places, matchers, rows)
        total += standing
        for row, twin in zip(rows, twins, strict=True):
            assert row.tolist() == first_mask(twin)[1].tolist()
    for place, matcher, twin in zip(places, matchers, twins, strict=True):
        place.leave()
        assert matcher.state == twin.state and matcher.n_tokens == twin.n_tokens
    assert by_kernels > total / 3


def test_what_no_mask_has_is_not_noted_and_ends_are_not():
    constraint = guided.compile(guided.regex("ab?"), VOCABULARY)
    matcher = Matcher(constraint)
    tracks = Tracks(1, WORDS + 2)
    place = tracks.take(entry(matcher, first_mask(matcher)))
    tracks.seat([place.line])
    assert place.noted == NOTHING
    assert not any(map(place.note, (ord("b"), -1, 32 * (WORDS + 2), 32 * WORDS)))
    assert place.note(ord("a"))
    out = np.full((1, WORDS + 2), 7, np.uint32)
    assert tracks.go_on() == []
    tracks.copy(out)
    assert tokenset.ids(out[0, :WORDS]).tolist() == [ord("b"), END] and not out[0, WORDS:].any()
    assert not place.note(END)


@pytest.mark.parametrize("held", [True, False])
def test_what_another_thread_holds_is_left_to_python(held):
    from threading import Thread

    constraint = guided.compile(guided.regex("ab?"), VOCABULARY)
    matcher = Matcher(constraint)
    tracks = Tracks(1, WORDS)
    place = tracks.take(entry(matcher, first_mask(matcher)))
    tracks.seat([place.line])
    assert place.note(ord("a"))
    found = []
    if held:
        assert constraint.hold_free()
    one = Thread(target=lambda: found.append(tracks.go_on()))
    one.start()
    one.join()
    if held:
        constraint.end_step()
    assert found == [[place.line] if held else []]


def test_more_tokens_than_are_kept_come_back_to_python():
    constraint = guided.compile(guided.json_schema({"type": "string"}), VOCABULARY)
    matcher = Matcher(constraint)
    matcher.accept(ord('"'))
    tracks = Tracks(1, WORDS)
    place = tracks.take(entry(matcher, first_mask(matcher)))
    tracks.seat([place.line])
    left = []
    for _ in range(MOST + 1):
        assert place.note(ord("a"))
        left.append(tracks.go_on())
    assert left[:-1] == [[]] * MOST and left[-1] == [place.line]
    place.leave()
    assert matcher.n_tokens == 1 + MOST and place.noted == ord("a")


def test_names_are_followed():
    constraint = guided.compile(guided.json_schema({"type": "object"}), VOCABULARY)
    modes = []
    for text in ("{", '{"', '{"x', '{"x":', '{"x":"', '{"x":"\\', '{"x":{', '{"x":1,"', '{"x":1,"y', '{"a":1,"', "{}"):
        state = constraint.advance_bytes(constraint.start, text.encode())
        track = constraint.track(state)
        modes.append(None if track is None else track.mode)
    assert modes == [
        Mode.IDLE, Mode.NAME, Mode.NAME, Mode.BETWEEN, Mode.STRING, Mode.ESCAPE, Mode.BETWEEN, Mode.NAME, Mode.NAME,
        Mode.NAME, Mode.IDLE,
    ]  # fmt: skip
    assert constraint.track(constraint.end) is None and constraint.track(0) is None


def an_object():
    """A text that is any object, seated alone: its matcher, tracks, place and row, and a twin of the matcher."""
    matcher = Matcher(guided.compile(guided.json_schema({"type": "object"}), VOCABULARY))
    tracks = Tracks(1, WORDS)
    place = tracks.take(entry(matcher, first_mask(matcher)))
    tracks.seat([place.line])
    return matcher, tracks, place, np.zeros((1, WORDS), np.uint32), matcher.fork()


def test_kernels_refuse_names_that_repeat():
    matcher, tracks, place, rows, twin = an_object()
    pieces = [
        b'{"', b"ab", b'":"', b'","', b"a", b'": "', b'", "', b'"', b":", b'""', b', "', b"b", b'":{"', b"a", b'":', b"[]",
        b', "b"', b":", b"{}", b"}", b', "', b"abc",
    ]  # fmt: skip
    n_repeated = 0
    for piece in pieces:
        token = piece[0] if len(piece) == 1 else 256 + PIECES.index(piece)
        assert place.note(token) and twin.accept(token)
        assert taken(tracks, [place], [matcher], rows) == 1, piece
        assert rows[0].tolist() == first_mask(twin)[1].tolist()
        n_repeated += (
            matcher.constraint._automaton.mask(twin.constraint._machine.split(twin.state)[0]).tolist()
            != rows[0].tolist()
        )
    assert n_repeated > 3
    place.leave()
    assert matcher.state == twin.state


def test_a_name_that_is_too_long_to_keep_goes_on_by_kernels_until_it_ends():
    matcher, tracks, place, rows, twin = an_object()
    long = [b"abc"] * (MOST_NAME // 3 + 9)
    by_python = []
    for piece in [b'{"', b"ab", b'":', b'"a"', b', "', *long, b'":', b'"a"', b', "', *long]:
        token = 256 + PIECES.index(piece)
        assert place.note(token) and twin.accept(token)
        by_python.append(not taken(tracks, [place], [matcher], rows))
        assert rows[0].tolist() == first_mask(twin)[1].tolist()
    # From the first quotation mark behind it on Python has to see what it is.
    assert not any(by_python[: 5 + len(long)]) and by_python[5 + len(long)]
    assert not tokenset.contains(rows[0], ord('"'))
    place.leave()
    assert matcher.state == twin.state and matcher.n_tokens == twin.n_tokens


def test_a_deep_text_is_left_to_python():
    constraint = guided.compile(guided.json_schema({"type": "object"}), VOCABULARY)
    matcher = Matcher(constraint)
    assert matcher.accept_bytes(b'{"x":' + b"[" * 50)
    tracks = Tracks(1, WORDS)
    place = tracks.take(entry(matcher, first_mask(matcher)))
    tracks.seat([place.line])
    twin = matcher.fork()
    n_left = 0
    rows = np.zeros((1, WORDS), np.uint32)
    for token in [*(b"[" * 30), *(b"]" * 30), *b",", *json.dumps({"q": {"r": [1, "]"]}}).encode()]:
        assert place.note(token) and twin.accept(token)
        n_left += 1 - taken(tracks, [place], [matcher], rows)
        assert rows[0].tolist() == first_mask(twin)[1].tolist()
    assert 30 < n_left < 70
    place.leave()
    assert matcher.state == twin.state


def test_kernels_see_arrays_that_another_constraint_had_replaced():
    constraint = guided.compile(guided.json_schema({"type": "string"}), VOCABULARY)
    matcher = Matcher(constraint)
    matcher.accept(ord('"'))
    tracks = Tracks(1, WORDS)
    place = tracks.take(entry(matcher, first_mask(matcher)))
    tracks.seat([place.line])
    automaton = constraint._automaton
    automaton.states.reserve_states(automaton.states.arrays.first.shape[0])
    assert automaton._seen != REPLACED.last
    assert place.note(0xE4)
    rows = np.zeros((1, WORDS), np.uint32)
    assert taken(tracks, [place], [matcher], rows) == 1 and automaton._seen == REPLACED.last
    place.leave()
    assert rows[0].tolist() == first_mask(matcher)[1].tolist()
