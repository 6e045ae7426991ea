"""`Matcher` against the constraint that it holds, stepped by hand."""

import random

import numpy as np
import pytest

import guided
from guided.serving import Matcher, fill_rows
from guided.serving.matcher import step
from tests.amounts import some

WORDS = [b"a", b"b", b"ab", b"{", b"}", b'"', b":", b"1", b"12", b"\xc3", b"\xa9", b"\xc3\xa9", b"e", None]
VOCABULARY = guided.Vocabulary.from_tokens(WORDS, eos_ids=[13])


def constraint_of(pattern: str) -> guided.Constraint:
    return guided.compile(guided.regex(pattern), VOCABULARY)


def matcher_of(pattern: str, most_tokens: int | None = None) -> Matcher:
    return Matcher(constraint_of(pattern), most_tokens)


def allowed(matcher: Matcher) -> list[int]:
    row = np.full(1, 0xFFFFFFFF, np.uint32)
    matcher.fill(row)
    return [token for token in range(32) if row[0] >> token & 1]


@pytest.mark.parametrize("seed", range(some(40)))
def test_random_operations_are_those_of_a_list_of_tokens(seed):
    rng = random.Random(seed)
    constraint = constraint_of("(ab|a1*é?b){0,4}")
    matcher, twin, others = Matcher(constraint), [], []
    for _ in range(60):
        tokens = [rng.randrange(14) for _ in range(rng.randrange(4))]
        state = constraint.start
        for token in twin:
            state = constraint.advance(state, token)
        assert (matcher.state, matcher.n_tokens, matcher.is_over) == (state, len(twin), state == constraint.end)
        assert matcher.is_whole == constraint.is_accepting(state)
        assert allowed(matcher) == [token for token in range(14) if constraint.advance(state, token)]
        steps = [state]
        for token in tokens:
            steps.append(constraint.advance(steps[-1], token) if steps[-1] else 0)
        n = sum(map(bool, steps[1:]))
        assert matcher.validate(tokens) == n
        what = rng.randrange(4)
        if what == 0:
            assert matcher.accept_all(tokens) == (n == len(tokens))
            twin += tokens if n == len(tokens) else []
        elif what == 1 and tokens:
            assert matcher.accept(tokens[0]) == (n > 0)
            twin += tokens[: min(n, 1)]
        elif what == 2:
            back = rng.randrange(len(twin) + 1) if twin else 0
            matcher.rollback(back)
            del twin[len(twin) - back :]
        else:
            others.append((matcher.fork(), list(twin)))
    for other, tokens in others:
        assert other.n_tokens == len(tokens)
        again = Matcher(constraint)
        assert again.accept_all(tokens) and again.state == other.state
    matcher.reset()
    assert (matcher.state, matcher.n_tokens) == (constraint.start, 0)


def test_more_than_was_accepted_cannot_be_taken_back():
    matcher = matcher_of("ab")
    assert matcher.accept(0)
    for n in (2, -1):
        with pytest.raises(ValueError, match="1 were accepted"):
            matcher.rollback(n)
    assert matcher.n_tokens == 1


def test_after_the_end_only_the_end_may_come():
    matcher = matcher_of("a")
    assert matcher.accept_all([0, 13]) and matcher.is_over and matcher.is_whole
    assert allowed(matcher) == [13]
    assert not matcher.accept(0) and matcher.accept(13)


def test_ids_that_no_vocabulary_has_are_not_allowed():
    matcher = matcher_of("a*")
    assert not any(map(matcher.accept, (-1, 14, 1 << 40)))


def test_a_budget_makes_texts_whole_in_time():
    matcher = matcher_of("(ab)*", most_tokens=4)
    while not matcher.is_over:
        assert matcher.accept(min(allowed(matcher)))
    assert matcher.n_tokens <= 4
    with pytest.raises(guided.LimitError, match="token"):
        matcher_of("(ab1){9}", most_tokens=10)


def test_a_text_that_should_have_been_over_may_only_end():
    matcher = matcher_of("(ab)*", most_tokens=2)
    assert matcher.accept_all([0, 1, 0]) and matcher.budget == 0
    assert allowed(matcher) == [13]


def test_forced_text_ends_in_a_whole_character():
    assert matcher_of("aé[12]").forced_text() == "aé"
    assert matcher_of("aé|aê").forced_text() == "a"
    assert matcher_of("a|b").forced_text() == ""


def test_rows_of_a_batch_are_as_wide_as_the_engine_wants():
    matchers = [matcher_of("a"), matcher_of("b+"), matcher_of("ab", most_tokens=3)]
    assert matchers[1].accept(1)
    for dtype in (np.int32, np.uint32):
        rows = np.full((3, 3), -1, np.int32).view(dtype)
        fill_rows(matchers, rows)
        assert rows.tolist() == [[1, 0, 0], [1 << 1 | 1 << 13, 0, 0], [1 | 1 << 2, 0, 0]]
    with pytest.raises(guided.VocabularyError, match="narrow"):
        fill_rows(matchers, np.zeros((3, 0), np.int32))


def test_one_row_is_filled_as_rows_of_a_batch_are():
    for pattern, most, tokens in (("a", None, []), ("b+", 4, [1]), ("(ab)*", 2, [0, 1, 0])):
        matcher = matcher_of(pattern, most_tokens=most)
        assert matcher.accept_all(tokens)
        for dtype in (np.int32, np.uint32):
            rows = np.full((2, 3), -1, np.int32).view(dtype)
            matcher.fill(rows[0])
            fill_rows([matcher], rows[1:])
            assert rows[0].tolist() == rows[1].tolist()
    with pytest.raises(guided.VocabularyError, match="narrow"):
        matcher.fill(np.zeros(0, np.int32))


NAMED = guided.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b'{"', b'": ', b"ab", b'", "', b"12", b'": "', None], eos_ids=[262]
)


@pytest.mark.parametrize("seed", range(some(24)))
def test_steps_of_a_batch_inside_names_and_strings_are_those_one_by_one(seed):
    """Where a token changes neither mask nor automaton the state is worked out later: when it is asked for."""
    rng = random.Random(seed)
    schemas = [
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"ab": {"type": "string"}}, "additionalProperties": {"type": "object"}},
        {"type": "array", "items": {"type": "string", "pattern": "^[a-b]*$"}, "uniqueItems": True},
    ]
    constraints = [guided.compile(guided.json_schema(schema), NAMED) for schema in schemas]
    # The same few letters, so that names come to those that are there.
    wanted = [*range(256, 260), 261, 262, *b'ab" ,:{}[]\\']
    matchers = [Matcher(constraint) for constraint in constraints * 2]
    twins = [[] for _ in matchers]
    stayed = 0
    for _ in range(60):
        tokens = []
        for matcher, twin in zip(matchers, twins, strict=True):
            state = matcher.constraint.start
            for token in twin:
                state = matcher.constraint.advance(state, token)
            row = np.zeros(NAMED.n_words, np.uint32)
            matcher.constraint.fill_mask(state, row)
            own = [token for token in wanted if row[token >> 5] >> (token & 31) & 1]
            letters = [token for token in own if token in (258, 97, 98)]
            tokens.append(rng.choice(letters if letters and rng.random() < 0.9 else own))
        for matcher, twin, token, kept in zip(matchers, twins, tokens, step(matchers, tokens), strict=True):
            before = matcher.constraint.start
            for each in twin:
                before = matcher.constraint.advance(before, each)
            after = matcher.constraint.advance(before, token)
            row = np.zeros(NAMED.n_words, np.uint32)
            matcher.constraint.fill_mask(after, row)
            if kept is None:
                assert matcher.accept(token)
            else:
                assert (kept[1] == row).all()
                stayed += not isinstance(matcher._states[-1], int)
            twin.append(token)
            assert matcher.n_tokens == len(twin)
            if rng.random() < 0.1:
                n = rng.randrange(min(len(twin), 5))
                matcher.rollback(n)
                del twin[len(twin) - n :]
            if rng.random() < 0.2:
                state = matcher.constraint.start
                for each in twin:
                    state = matcher.constraint.advance(state, each)
                assert matcher.fork().state == matcher.state == state
    assert stayed > 2


def test_a_limit_that_one_text_meets_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas: list[dict[str, object]] = [{"type": "object", "title": "one"}, {"type": "object", "title": "other"}]
    matchers = [Matcher(guided.Constraint(guided.json_schema(schema), NAMED)) for schema in schemas]
    limited, free = matchers
    for matcher in matchers:
        assert matcher.accept_all(b'{"a": 1, "b')

    def raising(state: int, side: object) -> bool:
        raise guided.LimitError("it was not decided", remedy="None.")

    monkeypatch.setattr(limited.constraint._machine, "goes_on", raising)
    masks = step(matchers, [ord("c")] * 2)
    assert masks[0] is None and masks[1] is not None
    assert (limited.n_tokens, free.n_tokens) == (11, 12)
    with pytest.raises(guided.LimitError):
        limited.accept(ord("c"))
