"""Masks of queries against the tokens tried one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.attributed import AttributedConstraint
from guided.constraint.compile import LIVELY
from guided.grammar.attributed.threads import Lexeme, LexemeKind
from guided.grammar.attributed.watched import Watched
from guided.grammar.sql import Column, DatabaseSchema, Table
from guided.grammar.sql.query.language import query_language
from tests.amounts import ALL, crossed, each, some
from tests.unit.grammar.sql.query.random_queries import begun

SCHEMA = DatabaseSchema(
    (
        Table("singer", (Column("singer_id"), Column("name"), Column("country"), Column("age"))),
        Table("concert", (Column("concert_id"), Column("name"), Column("order date"))),
    )
)
WORDS = """SELECT select FROM from WHERE JOIN ON AS AND GROUP BY ORDER name age country singer concert concert_id order date
count sum max is IS NOT NULL foo fo o x T1 t1 LIMIT """.split()  # noqa: SIM905
PIECES = [
    *WORDS, *(f" {word}" for word in WORDS), *(f"{word}," for word in WORDS), *(f"{word})" for word in WORDS),
    *(f".{word}" for word in WORDS), *(f"({word}" for word in WORDS), *(f"{word} = " for word in WORDS),
    "', '", "' AND ", "it''s", "'", "''", "'a'", '"', '")', '" = ', 'name"', 'foo" ', "é", "\xe9 '", "  ", "\n", "\n  ",
    "1", "12", " 1", "1,", "1)", "= 1", "==", "<=", "<>", "--", "/*", "));", ");", "count(*)", "(*)", " * ", ".*", "a.b",
    "name.", "T1.", "x y", "a, b", "_" * 40, "a" * 70, "0x", "xF", "0xE+", "E-", "e5", "[", "]", " [", "].[", "[name]",
    "[n", ",]", "c ,]", "[]", "]]", "[[", "[c", "[(",
]  # fmt: skip
DIALECTS = ["sqlite", "mysql", "postgresql", "duckdb"]
TEXTS = [
    'SELECT T1.name , count(*) AS "n x" FROM singer AS T1 JOIN concert ON T1.name = concert.name WHERE T1.age > 1',
    "SELECT foo FROM (SELECT name AS foo FROM singer WHERE name = 'it''s é' OR country = \"x\") AS y LIMIT 12",
    "SELECT [name] FROM concert AS [c ,]WHERE 0xE+`order date` IS NOT NULL ORDER BY [c ,].[name]",
]


FORGOTTEN = b"SELECT T1.name FROM singer AS T1 WHERE T1.age IS NULL "


@pytest.fixture(scope="module")
def vocabulary() -> guided.Vocabulary:
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in dict.fromkeys(PIECES)]
    return guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])


@pytest.mark.parametrize("forward", [True, False])
def test_masks_are_the_tokens_that_can_be_read(forward: bool, vocabulary: guided.Vocabulary) -> None:
    language = query_language(SCHEMA, forward=forward)
    constraint = AttributedConstraint(language, vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    places = 0
    for text in TEXTS if forward else TEXTS[::2]:
        state = constraint.start
        for place, byte in enumerate(text.encode()):
            if ALL or place % 4 == 0:
                constraint.fill_mask(state, row)
                for token in range(vocabulary.size):
                    allowed = bool(row[token >> 5] >> (token & 31) & 1)
                    assert allowed is (constraint.advance(state, token) != 0), (text, state, token)
            places += 1
            state = constraint.advance(state, byte)
            assert state
        assert constraint.is_accepting(state)
    assert places == sum(map(len, map(str.encode, TEXTS if forward else TEXTS[::2])))


@pytest.mark.parametrize(
    "text", each(["WITH {0}(c) AS (WITH {1}", "WITH a({0}, {1}", 'WITH a("{0}{0}{0}{0}oo", "{0}{0}{0}{0}{2}'], 3)
)
def test_masks_of_names_that_are_taken_and_cannot_grow(text: str) -> None:
    """Names of all the bytes that they may have: no token makes one that is taken, and none is allowed behind which
    nothing may come."""
    pieces = [b"o", b"oo", b"ooo", b"oof", b"fo", b"o(", b"oo, ", b"o, o", b'oo"']
    tokens = [bytes([byte]) for byte in range(256)] + pieces[1:]
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    constraint = AttributedConstraint(query_language(SCHEMA), vocabulary)
    row, later = (np.zeros(vocabulary.n_words, np.uint32) for _ in range(2))
    name = "foo" * 21
    state = constraint.advance_bytes(constraint.start, text.format(name, name[:-3], "").encode())
    for byte in b"foo"[:2]:
        constraint.fill_mask(state, row)
        for token in range(vocabulary.size):
            after = constraint.advance(state, token)
            assert bool(row[token >> 5] >> (token & 31) & 1) is (after != 0), (state, token)
            if after:
                constraint.fill_mask(after, later)
                assert later.any(), token
        state = constraint.advance(state, byte)
        assert state
    assert constraint.advance(state, ord("o")) == 0 or text.endswith("{2}")


def test_a_large_budget_takes_the_plain_mask(vocabulary: guided.Vocabulary) -> None:
    constraint = AttributedConstraint(query_language(SCHEMA), vocabulary)
    row, plain = np.zeros((2, vocabulary.n_words), np.uint32)
    state = constraint.start
    for byte in TEXTS[0].encode():
        constraint.fill_budget_mask(state, row, 4096)
        constraint.fill_mask(state, plain)
        # A name of more than `LONG_RUN` bytes in one token does not count as one that fits.
        missing = {vocabulary.token_bytes(token) for token in tokenset.ids(row ^ plain).tolist()}
        assert missing <= {b"_" * 40, b"a" * 70}
        state = constraint.advance(state, byte)


@pytest.mark.parametrize("forward", [True, False])
def test_no_name_of_mysql_ends_with_a_blank(forward: bool) -> None:
    pieces = [b" `.", b" `,", b" ` ", b"x `.", b" ``", b" `)", b" ` FROM", b"a `(", b"a `. ", "\U0001d11e".encode()]
    tokens = [*(bytes([byte]) for byte in range(256)), *pieces]
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    constraint = AttributedConstraint(query_language(replace(SCHEMA, dialect="mysql"), forward=forward), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    for text in (b"SELECT `ab", b"WITH `ab", b"SELECT name AS `ab", b"SELECT 1 FROM (SELECT name AS `x"):
        state = constraint.advance_bytes(constraint.start, text)
        constraint.fill_mask(state, row)
        for token in range(vocabulary.size):
            assert tokenset.contains(row, token) is (constraint.advance(state, token) != 0), (text, tokens[token])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_states_stay_what_they_are_when_all_is_forgotten(dialect: str, vocabulary: guided.Vocabulary) -> None:
    constraint = AttributedConstraint(query_language(replace(SCHEMA, dialect=dialect)), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    states, masks = [constraint.start], []
    for byte in FORGOTTEN:
        constraint.fill_mask(states[-1], row)
        masks.append(row.copy())
        states.append(constraint.advance(states[-1], byte))
        assert states[-1]
    constraint.forget()
    for state, mask in reversed([*zip(states[:-1], masks, strict=True)]):
        constraint.fill_mask(state, row)
        assert (row == mask).all()
        constraint.fill_budget_mask(state, row, 200)
    # The last is read again, and found to be the one of the same text.
    assert constraint.is_accepting(states[-1])
    assert constraint.advance_bytes(constraint.start, FORGOTTEN) == states[-1]


def test_few_constraints_keep_what_they_have_found(vocabulary: guided.Vocabulary) -> None:
    row = np.zeros(vocabulary.n_words, np.uint32)
    made = []
    for number in range(LIVELY + 2):
        schema = DatabaseSchema((Table(f"t{number}", (Column("a"),)),))
        constraint = guided.compile(guided.sql(schema), vocabulary)
        assert isinstance(constraint, AttributedConstraint)
        constraint.fill_mask(constraint.start, row)
        made.append((constraint, constraint.language, row.copy()))
    assert [one.language is not language for one, language, _ in made] == [True, True, *[False] * LIVELY]
    for one, _, mask in made:
        one.fill_mask(one.start, row)
        assert (row == mask).all()


def test_a_refusal_says_what_was_expected(vocabulary: guided.Vocabulary) -> None:
    constraint = AttributedConstraint(query_language(SCHEMA, forward=False), vocabulary)
    state = constraint.advance_bytes(constraint.start, b"SELECT name FROM ")
    said = constraint.explain(state, vocabulary.size - 4)
    assert "a table" in said


def test_a_short_end_is_an_end(vocabulary: guided.Vocabulary) -> None:
    constraint = AttributedConstraint(query_language(SCHEMA), vocabulary)
    state = constraint.advance_bytes(constraint.start, b"SELECT T1.name, x.foo, bar FROM")
    end = constraint.shortest_text(state)
    assert constraint.is_accepting(constraint.advance_bytes(state, end))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_exponents_may_have_a_sign(dialect: str, vocabulary: guided.Vocabulary) -> None:
    constraint = AttributedConstraint(query_language(replace(SCHEMA, dialect=dialect)), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    constraint.fill_mask(constraint.advance_bytes(constraint.start, b"SELECT 1.5E"), row)
    assert {vocabulary.token_bytes(token)[:1] for token in tokenset.ids(row).tolist()} == {
        *map(bytes, zip(b"0123456789+-"))
    }


@pytest.mark.parametrize(("seed", "dialect"), crossed(range(3), DIALECTS, share=9))
def test_masks_of_random_queries_over_random_vocabularies(seed: int, dialect: str) -> None:
    """Tokens are pieces of queries, so that most of them hold several lexemes."""
    rng = random.Random(seed)
    language = query_language(replace(SCHEMA, dialect=dialect), forward=bool(seed % 2))
    texts = [begun(rng, language, 30)[0].replace(" ", rng.choice(["", " ", "\n "])) for _ in range(some(12, 6))]
    pieces = {text[at : at + rng.randint(2, 9)] for text in texts for at in range(0, len(text), 4)}
    tokens = [bytes([byte]) for byte in range(256)] + sorted(piece.encode() for piece in pieces if len(piece) > 1)
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    constraint = AttributedConstraint(language, vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    several, texts_read = 0, 0
    # Some queries have few tokens that go over several lexemes.
    while texts_read < some(3, 9) or (several <= some(50, 15) and texts_read < 12):
        texts_read += 1
        state = constraint.start
        for byte in begun(rng, language, 25)[0].encode():
            if rng.random() < 0.3:
                constraint.fill_mask(state, row)
                found = {token for token in range(vocabulary.size) if constraint.advance(state, token)}
                assert set(tokenset.ids(row).tolist()) == found
                several += sum(len(tokens[token]) > 4 for token in found if token < len(tokens))
            state = constraint.advance(state, byte)
            assert state
    assert several > some(50, 15)


def test_how_soon_a_text_can_end_shrinks_along_its_end_and_is_bounded(vocabulary: guided.Vocabulary) -> None:
    language = query_language(SCHEMA)
    # What a language found before is forgotten again and again.
    language._rests.most = 3
    constraint = AttributedConstraint(language, vocabulary)
    random_walk = random.Random(4)
    for _ in range(some(40, 20)):
        state = constraint.start
        for _ in range(random_walk.randrange(12)):
            row = np.empty(vocabulary.n_words, np.uint32)
            constraint.fill_mask(state, row)
            after = constraint.advance(state, random_walk.choice(tokenset.ids(row).tolist()))
            state = state if after == constraint.end else after
        assert constraint.shortest_completion(state) <= constraint.completion_bound(state)
        while (left := constraint.shortest_completion(state)) > 0:
            constraint.fill_budget_mask(state, row, left + 1)
            nearer = [constraint.shortest_completion(constraint.advance(state, each)) for each in tokenset.ids(row)]
            assert min(nearer) <= left - 1
            state = constraint.advance(state, tokenset.ids(row)[int(np.argmin(nearer))])
        assert constraint.is_accepting(state)
    assert constraint.completion_bound(constraint.end) == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whether_a_place_is_there_is_told_without_making_it(dialect: str) -> None:
    """At places of random texts, of all signs and words that the lexis knows and of two names."""
    language = query_language(replace(SCHEMA, dialect=dialect), forward=False)
    threads, found = language.threads, [0, 0]
    for seed in range(some(40)):
        rng = random.Random(seed)
        place = language.resolved(begun(rng, language, rng.choice([3, 10, 25]), rare=seed % 2 == 1)[1])
        assert place is not None
        lexemes = [Lexeme(LexemeKind.SIGN, sign) for sign in (*sorted(place.signs), ";", "==")]
        words = [*sorted(place.keywords.members)[:60], "name", "foo"]
        lexemes += [Lexeme(kind, word, word) for word in words for kind in (LexemeKind.WORD, LexemeKind.QUOTED)]
        lexemes += [Lexeme(LexemeKind.NUMBER, "0"), Lexeme(LexemeKind.STRING, "")]
        # Asked first, so that the place behind is not known yet.
        told = [threads.lead_on(threads.reached(place, lexeme, False)) for lexeme in lexemes]
        made = [threads.after(place, lexeme, False) is not None for lexeme in lexemes]
        assert told == made
        found[0] += made.count(False)
        found[1] += made.count(True)
    assert min(found) > 20


@pytest.mark.parametrize(("seed", "dialect"), crossed(range(4), DIALECTS[:2], share=4))
def test_rows_that_are_remembered_are_those_that_would_be_found(
    seed: int, dialect: str, vocabulary: guided.Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Along random texts, against a constraint that has no memory; what is said to be read is all that is."""
    monkeypatch.setattr(Watched, "ask", _checked(Watched.ask))
    rng = random.Random(seed)
    language = query_language(replace(SCHEMA, dialect=dialect), forward=bool(seed % 2))
    fast, slow = (AttributedConstraint(language, vocabulary) for _ in range(2))
    found = [0]
    monkeypatch.setattr(slow._rows, "behind", lambda *_: None)
    recall = fast._rows.memory.recall

    def counted(*args: Any) -> Any:
        part = recall(*args)
        found[0] += part is not None
        return part

    monkeypatch.setattr(fast._rows.memory, "recall", counted)
    monkeypatch.setattr(fast._rows.memory, "is_worth", lambda _: True)
    row, other = (np.zeros(vocabulary.n_words, np.uint32) for _ in range(2))
    for _ in range(count := some(240, 16)):
        text = begun(rng, language, rng.choice([4, 12, 25]), rare=rng.random() < 0.3)[0].encode()
        state = slow_state = fast.start
        for byte in text:
            if rng.random() < 0.4:
                fast.fill_mask(state, row)
                slow.fill_mask(slow_state, other)
                assert (row == other).all(), text
            state, slow_state = fast.advance(state, byte), slow.advance(slow_state, byte)
            assert state and slow_state
    assert found[0] > 3 * count


def _checked(ask: Callable[..., Any]) -> Callable[..., Any]:
    """`Watched.ask`, but that looks at what is read besides."""

    def checked(self: Any, key: Any, find: Any, direct: Any, fields: frozenset[str], spare: int = 0) -> Any:
        if self._real.__class__ is not Watched and not self._changes:
            read: set[str] = set()
            direct(_Reader(self._real, read))
            assert read <= fields, key
        return ask(self, key, find, direct, fields, spare)

    return checked


class _Reader:
    """An attribute that notes which fields are read of it."""

    def __init__(self, real: Any, read: set[str]) -> None:
        self.__dict__ = {"_real": real, "_read": read}

    def __getattr__(self, name: str) -> Any:
        kind = type(self._real)
        if name in kind._fields:
            self._read.add(name)
            return getattr(self._real, name)
        found = kind.__dict__[name]
        return found.fget(self) if isinstance(found, property) else partial(found, self)

    def _replace(self, **values: Any) -> Any:
        made = _Reader(self._real, self._read)
        made.__dict__.update({name: value for name, value in self.__dict__.items() if name not in values})
        made.__dict__.update(values)
        return made
