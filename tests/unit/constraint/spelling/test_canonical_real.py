"""Forced tokens and canonical masks with real tokenizers, on schemas and documents from MaskBench."""

from __future__ import annotations

import gzip
import json
import random

import numpy as np
import pytest
from tokenizers import Tokenizer

import guided
from guided.constraint.spelling.canonical import canonical

TOKENIZERS = ["gpt2", pytest.param("llama3", marks=pytest.mark.slow), pytest.param("qwen2.5", marks=pytest.mark.slow)]
PROMPTS = ["", "The answer: ", "x", "Result\n", "  ", 'a {"', "12"]


@pytest.fixture(scope="module")
def documents(data):
    path = data / "maskbench-dev.jsonl.gz"
    if not path.is_file():
        pytest.skip("no MaskBench data")
    found = []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            valid = [test["data"] for test in row["tests"] if test["valid"]]
            if valid and len(json.dumps(valid[0])) < 300:
                found.append((row["schema"], valid[0]))
            if len(found) == 60:
                break
    return found


def tokenizer_and_vocabulary(data, name):
    path = data / "tokenizers" / name / "tokenizer.json"
    if not path.is_file():
        pytest.skip(f"no tokenizer {name}")
    tokenizer = Tokenizer.from_file(str(path))
    return tokenizer, guided.Vocabulary.from_tokenizer(tokenizer, eos_ids=[tokenizer.get_vocab_size() - 1])


def encode(tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def compiled(documents, vocabulary, whitespace):
    for schema, value in documents:
        constraint = guided.compile(guided.json_schema(schema, whitespace=whitespace), vocabulary)
        separators = (",", ":") if whitespace == "compact" else None
        text = json.dumps(value, ensure_ascii=False, separators=separators)
        if constraint.advance_bytes(constraint.start, text.encode()):
            yield constraint, text


@pytest.mark.slow
@pytest.mark.parametrize("name", TOKENIZERS)
def test_texts_go_on_with_their_forced_tokens(data, documents, name):
    tokenizer, vocabulary = tokenizer_and_vocabulary(data, name)
    rng = random.Random(0)
    n_forced = n_documents = 0
    for constraint, text in compiled(documents[:30], vocabulary, "compact"):
        prompt = rng.choice(PROMPTS)
        before = encode(tokenizer, prompt)
        ids = encode(tokenizer, prompt + text)
        if ids[: len(before)] != before:
            continue
        n_documents += 1
        state = constraint.start
        for at in range(len(before), len(ids)):
            forced = constraint.forced_tokens(state, tokenizer, ids[:at])
            assert forced == ids[at : at + len(forced)], (text, at)
            n_forced += len(forced)
            state = constraint.advance(state, ids[at])
    assert n_documents > 8 and n_forced > 100


@pytest.mark.parametrize("name", TOKENIZERS)
def test_canonical_masks_allow_the_tokenizers_tokens_and_generate_no_others(data, documents, name):
    tokenizer, vocabulary = tokenizer_and_vocabulary(data, name)
    rng = random.Random(1)
    row = np.zeros(vocabulary.n_words, np.uint32)
    n_documents = 0
    for constraint, text in compiled(documents, vocabulary, None):
        try:
            own = canonical(constraint, tokenizer)
        except guided.UnsupportedError as error:
            assert "undeclared names" in str(error)
            continue
        n_documents += 1
        ids = encode(tokenizer, text)
        state = own.start
        for token in ids:
            own.fill_mask(state, row)
            assert int(row[token >> 5]) >> (token & 31) & 1, text
            state = own.advance(state, token)
        assert own.is_accepting(state)
        state, tokens, budget = own.start, [], own.shortest_completion(own.start) + 12
        while state != own.end:
            own.fill_budget_mask(state, row, budget - len(tokens))
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            tokens.append(rng.choice(allowed))
            state = own.advance(state, tokens[-1])
        text = b"".join(vocabulary.token_bytes(token) for token in tokens[:-1]).decode()
        assert encode(tokenizer, text) == tokens[:-1]
        if n_documents == 5:
            break
    assert n_documents
