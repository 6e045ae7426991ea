"""Budget masks of queries: texts end in time, and what would have ended in time is allowed."""

from __future__ import annotations

import random
import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.attributed import AttributedConstraint, budgets
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.states import At
from guided.grammar.sql import Column, DatabaseSchema, Table
from guided.grammar.sql.query.language import query_language
from guided.vocab.spelled import spell
from tests.amounts import ALL, crossed, each, some
from tests.unit.constraint.attributed.test_masks import DIALECTS, PIECES
from tests.unit.grammar.sql.query.random_queries import begun, read

SCHEMA = DatabaseSchema(
    (
        Table("singer", (Column("singer_id", "integer"), Column("name", "text"), Column("age", "integer"))),
        Table("concert", (Column("concert_id", "integer"), Column("name", "text"), Column("order date", "date"))),
    )
)
QUERY = (
    "SELECT T1.name, COALESCE(T2.name, 'missing') AS second_name, CASE WHEN T1.age > 1000 THEN 'old' ELSE 'young' END "
    "FROM singer AS T1 JOIN concert AS T2 ON T1.singer_id = T2.concert_id WHERE T1.name LIKE 'Jo%' ORDER BY T1.age"
)
SPACED = [b" " + piece.encode() for piece in PIECES if piece.isalpha()]
VOCABULARIES = {"pieces": [piece.encode() for piece in each(dict.fromkeys(PIECES), 3)], "words": SPACED, "bytes": []}


def vocabulary_of(name: str) -> guided.Vocabulary:
    tokens = [bytes([byte]) for byte in range(256)] + list(dict.fromkeys(VOCABULARIES[name]))
    return guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])


def greedy(vocabulary: guided.Vocabulary, text: bytes) -> list[int]:
    """The longest tokens from the left."""
    ids = {vocabulary.token_bytes(token): token for token in range(vocabulary.size)}
    found = []
    while text:
        longest = next(text[:size] for size in range(40, 0, -1) if text[:size] in ids and text[:size])
        found.append(ids[longest])
        text = text[len(longest) :]
    return found


@pytest.mark.parametrize("dialect", each(DIALECTS, 2))
def test_a_query_that_just_fits_keeps_its_names_and_strings(dialect: str) -> None:
    vocabulary = vocabulary_of("pieces")
    constraint = AttributedConstraint(query_language(replace(SCHEMA, dialect=dialect)), vocabulary)
    tokens = greedy(vocabulary, QUERY.encode())
    row = np.zeros(vocabulary.n_words, np.uint32)
    state = constraint.start
    for place, token in enumerate(tokens):
        if place % (5 if ALL else 15) == 2:
            constraint.fill_budget_mask(state, row, len(tokens) - place + 1 + 20)
            assert tokenset.contains(row, token), (place, vocabulary.token_bytes(token))
        state = constraint.advance(state, token)
    assert constraint.is_accepting(state)


def test_a_dead_end_is_an_error_of_its_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """There should be none; where there is, a batch goes on without the row."""
    vocabulary = vocabulary_of("bytes")
    constraint = AttributedConstraint(query_language(SCHEMA), vocabulary)
    dead, alive = constraint.advance_bytes(constraint.start, b"SELECT "), constraint.start
    row_of = constraint._rows.row
    nothing = np.zeros(vocabulary.n_words, np.uint32)
    at_dead = constraint._states.value(dead)
    monkeypatch.setattr(constraint._rows, "row", lambda at: nothing if at is at_dead else row_of(at))
    masks = np.ones((2, vocabulary.n_words), np.uint32)
    late: list[int] = []
    guided.fill_masks(constraint, [dead, alive], masks, budgets=200, unfinishable=late)
    assert late == [0] and not masks[0].any() and masks[1].any()


@pytest.mark.parametrize(("name", "dialect"), crossed(VOCABULARIES, DIALECTS, share=9))
def test_texts_end_within_their_budget(name: str, dialect: str) -> None:
    vocabulary = vocabulary_of(name)
    constraint = AttributedConstraint(query_language(replace(SCHEMA, dialect=dialect)), vocabulary)
    row, plain = np.zeros((2, vocabulary.n_words), np.uint32)
    narrowed = 0
    for seed in range(some(24, 36)):
        rng = random.Random(seed)
        left = rng.choice([12, 20, 30]) if seed else 12
        state = constraint.start
        while state != constraint.end:
            constraint.fill_budget_mask(state, row, left)
            constraint.fill_mask(state, plain)
            assert not (row & ~plain).any()
            narrowed += int((row != plain).any())
            token = rng.choice(tokenset.ids(plain).tolist())
            # One that is taken without a mask leads to an end in time as well.
            if not constraint.takes(state, token, left):
                token = rng.choice(tokenset.ids(row).tolist())
            state = constraint.advance(state, token)
            left -= 1
            assert state and left >= 0
    assert narrowed


@pytest.mark.parametrize("forward", [True, False])
def test_a_name_that_ends_with_a_blank_goes_on(forward: bool) -> None:
    # MySQL has none such.  As the name of a source that nothing can introduce it had no end within 100,000 steps.
    language = query_language(replace(SCHEMA, dialect="mysql"), forward=forward)
    at = read(language, language.start, "SELECT `not known ")
    assert at is not None
    assert language.step(at, ord("`")) is not None and not language.may_be_over(language.step(at, ord("`")))
    end = language.end(at)
    assert end is not None and end.startswith(b"a`")
    assert language.closing.steps < 2_000


def test_literals_of_a_form_and_names_that_are_too_long_are_told_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, tokens within a JSON literal took a minute under a budget, and names that cannot fit half a second."""
    judged: list[At] = []
    fits_in = AttributedLanguage.fits

    def counted(self: AttributedLanguage, at: At, limit: int) -> bool:
        judged.append(at)
        return fits_in(self, at, limit)

    monkeypatch.setattr(AttributedLanguage, "fits", counted)
    texts = {(chr(one) + chr(other)).encode() for one in range(97, 123) for other in range(97, 123)}
    tokens = [bytes([byte]) for byte in range(256)] + sorted(texts)
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    schema = DatabaseSchema((Table("t", (Column("a", "integer"), Column("j", "jsonb"))),), "postgresql")
    row = np.zeros(vocabulary.n_words, np.uint32)
    for text, budget, fits in (
        (b"SELECT a FROM t WHERE j @> '{\"k", 60, True),
        (b"SELECT not_known_and_long_enough_to_be_written_once_or_twice", 40, False),
    ):
        constraint = AttributedConstraint(query_language(schema), vocabulary)
        state = constraint.advance_bytes(constraint.start, text)
        judged.clear()
        with nullcontext() if fits else pytest.raises(guided.LimitError):
            constraint.fill_budget_mask(state, row, budget)
        assert len(judged) < 100
        if fits:
            assert all(tokenset.contains(row, tokens.index(one)) for one in texts)


def test_a_mask_does_not_depend_on_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    # So few that most masks come to the bound, behind which no more ends are searched for.
    monkeypatch.setattr(budgets, "_STEPS_OF_MASK", 400)
    vocabulary = vocabulary_of("pieces")
    schema = replace(SCHEMA, dialect="postgresql")
    constraint = AttributedConstraint(query_language(schema), vocabulary)
    tokens = greedy(vocabulary, QUERY.encode())
    row, alone = np.zeros((2, vocabulary.n_words), np.uint32)
    state = constraint.start
    compared = each((16, 30), 2)
    for place, token in enumerate(tokens[: compared[-1] + 1]):
        budget = len(tokens) - place + 12
        if place % 2 == 0:
            constraint.fill_budget_mask(state, row, budget)
        if place in compared:
            other = AttributedConstraint(query_language(schema), vocabulary)
            text = b"".join(vocabulary.token_bytes(each) or b"" for each in tokens[:place])
            other.fill_budget_mask(other.advance_bytes(other.start, text), alone, budget)
            assert tokenset.ids(row ^ alone).tolist() == []
        state = constraint.advance(state, token)


def test_what_is_enough_behind_all_tokens_is_enough_behind_each() -> None:
    """Along random texts, over tokens that hold several lexemes of such; behind each token there is an end."""
    told = 0
    for seed in range(some(24, 12)):
        rng = random.Random(seed)
        language = query_language(
            replace(SCHEMA, dialect=("sqlite", "mysql", "postgresql", "duckdb")[seed % 4]), forward=bool(seed % 3)
        )
        texts = [
            begun(rng, language, 30, rare=rng.random() < 0.5)[0].replace(" ", rng.choice(["", " "])) for _ in range(8)
        ]
        pieces = {text[at : at + rng.randint(2, 24)].encode() for text in texts for at in range(0, len(text), 4)}
        crafted = {b"(select * from singer union select ", b"),(", b"((((", b"))))", b", age)", b"with a as (select "}
        # Half of them have each word as one token, as tokenizers have.
        words = {word.encode() for text in texts for word in re.findall(r" ?\w+", text)} if seed % 2 else set()
        tokens = [bytes([byte]) for byte in range(256)] + sorted(
            piece for piece in pieces | crafted | words | set(VOCABULARIES["words"]) if len(piece) > 1
        )
        vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
        constraint = AttributedConstraint(language, vocabulary)
        row = np.zeros(vocabulary.n_words, np.uint32)
        for _ in range(2):
            state = constraint.start
            for byte in begun(rng, language, rng.choice([5, 12, 25]))[0].encode():
                if rng.random() < 0.08:
                    constraint.fill_mask(state, row)
                    at = constraint._states.value(state)
                    enough = constraint._budgets.enough(at)
                    if enough is not None:
                        told += 1
                        ids = [token for token in tokenset.ids(row).tolist() if token < len(tokens)]
                        for token in {*ids[-20:], *rng.sample(ids, min(20, len(ids)))}:
                            after = constraint._rows.after(at, token)
                            assert after is not None
                            end = spell(vocabulary, language.rest(after))
                            assert len(end) <= enough, (at.reading, at.text, tokens[token])
                state = constraint.advance(state, byte)
                assert state
    assert told > some(72, 12)


def test_far_from_the_budget_a_mask_is_the_plain_one_and_no_place_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vocabulary = vocabulary_of("words")
    constraint = AttributedConstraint(query_language(SCHEMA), vocabulary)
    monkeypatch.setattr(constraint._budgets, "prepare", lambda _: pytest.fail("a place is looked at"))
    row, plain = np.zeros((2, vocabulary.n_words), np.uint32)
    state = constraint.start
    for byte in QUERY.encode():
        constraint.fill_budget_mask(state, row, 900)
        constraint.fill_mask(state, plain)
        assert (row == plain).all()
        state = constraint.advance(state, byte)
