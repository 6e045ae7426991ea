"""Masks under a token budget where names must not repeat."""

import numpy as np

import guided
from guided import tokenset


def test_a_mask_is_the_same_when_it_is_asked_for_first():
    """Tokens that begin names are judged by masks of their own, once for a state, which write to the same row."""
    from transformers import AutoTokenizer

    from guided.nano import MODEL_PATH

    vocabulary = guided.Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(MODEL_PATH))
    some = {"type": "object", "patternProperties": {"[alow]": {"type": "array"}}, "required": ["allow"]}
    schema = {"type": "object", "properties": {"key": {"type": "string"}, "acl": some}, "required": ["key", "acl"]}
    grammar = guided.json_schema(schema)
    first, again = (np.zeros(vocabulary.n_words, np.uint32) for _ in range(2))
    sizes = set()
    for budget in range(10, 40):
        fresh = guided.Constraint(grammar, vocabulary)
        state = fresh.advance_bytes(fresh.start, b'{"bronze":2, "')
        if budget <= fresh.shortest_completion(state):
            continue
        fresh.fill_budget_mask(state, first, budget)
        fresh.fill_budget_mask(state, again, budget)
        assert np.array_equal(first, again), budget
        sizes.add(int(tokenset.count(first)))
        for token in tokenset.ids(first)[::97].tolist():
            after = fresh.advance(state, token)
            fresh.fill_budget_mask(after, again, budget - 1)
    assert len(sizes) > 3
