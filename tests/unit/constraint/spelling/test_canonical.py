"""Canonical constraints, forced tokens and healed prompts against the tokenizer's own tokens of every text."""

from __future__ import annotations

import gc
import pickle
import random
import weakref
from functools import cache

import numpy as np
import pytest

import guided
from guided.constraint.spelling.canonical import canonical
from guided.constraint.spelling.forcing import forced_tokens
from guided.constraint.spelling.healing import heal
from tests import vocabularies
from tests.amounts import ALL, crossed, mostly_slow, some
from tests.twin.byte_pairs import PATTERNS, shuffled, train, vocabulary_of, with_whole_chunks

WHOLE = ["Ġcatalog", "banandana", "abab", "ĠĠĠĠ", "!?!", "isnt", "catcat"]


@cache
def tokenizer_of(kind: str):
    if kind == "nasty":
        return with_whole_chunks(shuffled(train("llama3"), 7), WHOLE)
    if kind == "whole":
        return with_whole_chunks(train("llama3"), WHOLE)
    return train(kind)


KINDS = [*PATTERNS, "whole", "nasty"]

LANGUAGES = {
    "words": guided.choice(["cat", "cats", "catalog", " catalog", "catcat", "banana", "banandana", "bananas", "isn't"]),
    "spaces": guided.regex(r"( {0,5}|\n?\t?)(a|1|!)?( |\n){0,3}(b|''s|2)?"),
    "numbers": guided.regex(r"[12]{0,5}(,1)?"),
    "quotes": guided.regex(r"('(s|ve|va|l|ll|S|)|!\?!?){0,2}x?"),
    "unicode": guided.regex(r"(中|文|é|😀|a){1,3}"),
    "runs": guided.regex(r"(aa|ab|ba){1,3}"),
}


@cache
def compiled(kind: str, language: str):
    return guided.compile(LANGUAGES[language], vocabulary_of(tokenizer_of(kind)))


@cache
def texts_of(language: str) -> tuple[str, ...]:
    """Every text, by walking single characters over a vocabulary of bytes."""
    vocabulary = vocabularies.of_bytes()
    constraint = guided.compile(LANGUAGES[language], vocabulary)
    found, stack = [], [(constraint.start, b"")]
    while stack:
        state, text = stack.pop()
        if constraint.is_accepting(state):
            found.append(text.decode())
        for byte in range(256):
            if after := constraint.advance(state, byte):
                stack.append((after, text + bytes([byte])))
    return tuple(sorted(found))


def ids_of(row: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def sentences(constraint) -> set[tuple[int, ...]]:
    """Every sequence of tokens that the masks allow up to the end; fails at a dead end."""
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    found, stack = set(), [(constraint.start, ())]
    while stack:
        state, tokens = stack.pop()
        constraint.fill_mask(state, row)
        allowed = ids_of(row)
        assert allowed, f"a dead end after {tokens}"
        assert (0 in allowed) == constraint.is_accepting(state)
        for token in allowed:
            after = constraint.advance(state, token)
            assert after
            if token == 0:
                found.add(tokens)
            else:
                stack.append((after, (*tokens, token)))
    return found


@pytest.mark.parametrize(
    ("kind", "language"), crossed(["gpt2", "nasty", "qwen", "llama3", "whole"], LANGUAGES, share=10)
)
def test_the_sentences_are_the_tokenizers_own(kind, language):
    tokenizer = tokenizer_of(kind)
    constraint = canonical(compiled(kind, language), tokenizer)
    expected = {tuple(tokenizer.encode(text).ids) for text in texts_of(language)}
    assert len(expected) == len(texts_of(language))
    assert sentences(constraint) == expected


PROMPTS = ["x", "the cat", "so ", "so  ", "a\n", "a \n ", "1", "12", "'", " '", "l'", "!", "ban", "ab", "naïve é"]


@pytest.mark.parametrize("kind", mostly_slow(["gpt2", "nasty", "llama3", "qwen", "whole"], 1))
def test_after_a_prompt_they_are_the_tokenizers_own_of_the_whole(kind):
    tokenizer = tokenizer_of(kind)
    n_prompts = 0
    for place, prompt in enumerate(PROMPTS):
        before = tokenizer.encode(prompt).ids
        for language in [*LANGUAGES][0 if ALL else place % 3 :: 1 if ALL else 3]:
            whole = [tokenizer.encode(prompt + text).ids for text in texts_of(language)]
            expected = {tuple(ids[len(before) :]) for ids in whole if ids[: len(before)] == before}
            if not expected:
                with pytest.raises(guided.UnsatisfiableError, match="prompt"):
                    canonical(compiled(kind, language), tokenizer, before=before)
                continue
            n_prompts += 1
            constraint = canonical(compiled(kind, language), tokenizer, before=before)
            assert sentences(constraint) == expected, (prompt, language)
    assert n_prompts > some(60, 8)


@pytest.mark.parametrize("kind", mostly_slow(["qwen", "nasty", "gpt2", "llama3", "whole"], 1))
def test_forced_tokens_are_those_that_all_continuations_share(kind):
    tokenizer = tokenizer_of(kind)
    rng = random.Random(0)
    n_forced = 0
    for language in LANGUAGES:
        constraint = compiled(kind, language)
        for prompt in ["", "x", "so ", "1", "l'"]:
            before = tokenizer.encode(prompt).ids
            whole = [tokenizer.encode(prompt + text).ids for text in texts_of(language)]
            whole = [ids for ids in whole if ids[: len(before)] == before]
            for ids in rng.sample(whole, min(len(whole), 12)):
                state = constraint.start
                for at in range(len(before), len(ids) + 1):
                    same = [other[at:] for other in whole if other[:at] == ids[:at]]
                    shared = _common(same)
                    found = forced_tokens(constraint, state, tokenizer, ids[:at])
                    assert found == shared[: len(found)], (prompt, ids, at)
                    # All of them, as far as the bytes are forced for whatever stands before.
                    size = len(constraint.forced(state))
                    certain = [t for i, t in enumerate(shared) if _size(constraint, shared[: i + 1]) <= size]
                    assert len(found) >= len(certain)
                    n_forced += len(found)
                    if at < len(ids):
                        state = constraint.advance(state, ids[at])
    assert n_forced > 20


def _size(constraint, tokens) -> int:
    return sum(len(constraint.vocabulary.token_bytes(token)) for token in tokens)


def _common(sequences) -> list[int]:
    shared = []
    for column in zip(*sequences, strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return shared


@pytest.mark.parametrize("kind", mostly_slow(["whole", "gpt2", "llama3", "qwen", "nasty"], 1))
def test_healed_prompts_leave_what_no_text_can_change(kind):
    tokenizer = tokenizer_of(kind)
    removed = 0
    for prompt in PROMPTS:
        ids = tokenizer.encode("the " + prompt).ids
        for language in LANGUAGES:
            constraint = compiled(kind, language)
            healed = heal(ids, tokenizer, constraint)
            keep = list(healed.prompt_ids)
            assert keep == ids[: len(keep)] and keep
            vocabulary = constraint.vocabulary
            assert b"".join(vocabulary.token_bytes(token) for token in ids[len(keep) :]) == healed.removed
            removed += bool(healed.removed)
            for text in texts_of(language):
                data = healed.removed + text.encode()
                state = healed.constraint.advance_bytes(healed.constraint.start, data)
                assert state and healed.constraint.is_accepting(state)
                if len(keep) > 1:
                    assert tokenizer.encode("the " + prompt + text).ids[: len(keep)] == keep
            if len(keep) > 1:
                canonical(healed.constraint, tokenizer, before=keep)
    assert removed > 20


def test_healing_with_a_tokenizer_that_is_only_a_vocabulary():
    tokens = [b"h", b"t", b"p", b":", b"/", b"http", b"://", b"http:/", b" ", b"a", None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[10])
    constraint = guided.compile(guided.regex("//a+"), vocabulary)
    healed = heal([8, 5, 3], object(), constraint)
    assert healed.prompt_ids == (8,) and healed.removed == b"http:"
    healed = heal([8, 9, 3], object(), constraint)
    assert healed.prompt_ids == (8, 9) and healed.removed == b":"
    row = np.zeros(1, np.uint32)
    healed.constraint.fill_mask(healed.constraint.start, row)
    assert ids_of(row) == [3, 6]
    healed = heal([8, 9], object(), constraint)
    assert healed.prompt_ids == (8, 9) and healed.constraint is constraint
    healed = heal([8, 5, 10, 3], object(), constraint)  # what has no text stays, with all before it
    assert healed.prompt_ids == (8, 5, 10) and healed.removed == b":"
    healed = heal([5, 3], object(), constraint)  # and so does the first token
    assert healed.prompt_ids == (5,) and healed.removed == b":"
    copy = pickle.loads(pickle.dumps(heal([8, 5, 3], object(), constraint).constraint))
    assert copy.advance_bytes(copy.start, b"http://a") and not copy.advance_bytes(copy.start, b"a")


@pytest.mark.parametrize("kind", ["llama3", "nasty"])
def test_budgets_end_every_text_in_time(kind):
    tokenizer = tokenizer_of(kind)
    rng = random.Random(3)
    grammar = guided.regex(r"""\[("[^"\\\x00-\x1f]*"|\d{1,12}|true|null| {0,9}| catalog(, )?)*\]""")
    constraint = canonical(guided.compile(grammar, vocabulary_of(tokenizer)), tokenizer)
    row, plain = np.zeros((2, constraint.vocabulary.n_words), np.uint32)
    for _ in range(some(40, 8)):
        state, tokens = constraint.start, []
        budget = constraint.shortest_completion(state) + 1 + rng.choice([0, 1, 5, 20])
        with pytest.raises(guided.LimitError, match="max_new_tokens"):
            constraint.fill_budget_mask(state, row, constraint.shortest_completion(state))
        while state != constraint.end:
            constraint.fill_budget_mask(state, row, budget - len(tokens))
            constraint.fill_mask(state, plain)
            assert row.any() and not (row & ~plain).any()
            token = rng.choice(ids_of(row))
            tokens.append(token)
            state = constraint.advance(state, token)
            assert state
        text = b"".join(constraint.vocabulary.token_bytes(token) for token in tokens[:-1]).decode()
        assert tokenizer.encode(text).ids == tokens[:-1] and len(tokens) <= budget


def test_masks_are_what_advance_accepts():
    tokenizer = tokenizer_of("nasty")
    constraint = canonical(compiled("nasty", "quotes"), tokenizer)
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    seen, queue = {constraint.start}, [constraint.start]
    for state in queue:
        constraint.fill_mask(state, row)
        alive = [token for token in range(constraint.vocabulary.size) if constraint.advance(state, token)]
        assert alive == ids_of(row)
        for after in (constraint.advance(state, token) for token in alive):
            if after not in seen:
                seen.add(after)
                queue.append(after)
    assert len(seen) > 10


def test_copies_and_batches_say_the_same():
    constraint = canonical(compiled("whole", "words"), tokenizer_of("whole"))
    copy = pickle.loads(pickle.dumps(constraint))
    assert sentences(copy) == sentences(constraint)
    rows = np.zeros((2, constraint.vocabulary.n_words), np.uint32)
    guided.fill_masks(
        [constraint, compiled("whole", "words")], [constraint.start, compiled("whole", "words").start], rows
    )
    assert rows[0].any() and not (rows[0] & ~rows[1]).any()


def test_bytes_alone_say_too_little():
    constraint = canonical(compiled("llama3", "words"), tokenizer_of("llama3"))
    assert constraint.advance_bytes(constraint.start, b"") == constraint.start
    with pytest.raises(guided.UnsupportedError, match="tokens"):
        constraint.advance_bytes(constraint.start, b"c")


def test_nothing_is_forced_with_a_tokenizer_that_is_not_understood():
    constraint = compiled("llama3", "words")
    assert constraint.forced_tokens(constraint.advance_bytes(constraint.start, b"catalo"), object(), []) == []


def test_what_is_remembered_for_forced_tokens_keeps_no_constraint_alive():
    tokenizer = tokenizer_of("llama3")
    constraint = guided.Constraint(guided.choice([" catalogue", " cat"]), vocabulary_of(tokenizer))
    assert constraint.forced_tokens(constraint.start, tokenizer, tokenizer.encode("the").ids)
    seen = weakref.ref(constraint)
    del constraint
    gc.collect()
    assert seen() is None


def test_grammars_without_a_canonical_form_are_refused():
    vocabulary = vocabulary_of(tokenizer_of("llama3"))
    checked = guided.compile(guided.json_schema({"type": "array", "uniqueItems": True}), vocabulary)
    with pytest.raises(guided.UnsupportedError, match="uniqueItems"):
        canonical(checked, tokenizer_of("llama3"))


def test_looks_that_meet_too_many_states_end_in_an_error():
    vocabulary = vocabulary_of(tokenizer_of("llama3"))
    limits = guided.Limits(search_states=20)
    words = [f"{letter}q{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    constraint = guided.Constraint(guided.choice(words), vocabulary, limits)
    with pytest.raises(guided.LimitError, match="search_states"):
        canonical(constraint, tokenizer_of("llama3"))
