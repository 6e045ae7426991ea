"""Speculation inside transformers' `generate`: the tokens of its own greedy search under the same grammar."""

from __future__ import annotations

import pytest

from guided.draft import Chosen, Drafting, Fixed, PromptLookup, Recycling
from guided.errors import GuidedError, UnsupportedError
from guided.hf.draft_measurement import PLAIN, TRANSFORMERS_LOOKUP, measure_drafts
from guided.hf.loading import LoadedModel
from guided.hf.processor import GuidedLogitsProcessor
from guided.hf.speculation import draft_generate
from tests.unit.hf.conftest import generated, text_of

BUDGET = 24


def plain(model, ids, mask, constraints):
    processor = GuidedLogitsProcessor(constraints, max_new_tokens=BUDGET)
    return model.generate(
        ids, attention_mask=mask, do_sample=False, max_new_tokens=BUDGET, logits_processor=[processor]
    )


@pytest.mark.parametrize("draft", [None, Drafting(Chosen(PromptLookup(), Recycling()), Fixed(6))])
def test_greedy_batches_with_a_grammar_each(draft, llama, tokenizer, constraints):
    given = tokenizer(['["a", "b", [1, 22', "yes no"], return_tensors="pt", padding=True)
    chosen = [constraints["nested"], constraints["record"]]
    decode = draft_generate(chosen, draft)
    for _ in range(2):
        out = llama.generate(**given, do_sample=False, max_new_tokens=BUDGET, custom_generate=decode)
        theirs = plain(llama, given["input_ids"], given["attention_mask"], chosen)
        start = given["input_ids"].shape[1]
        for row in range(2):
            assert generated(out[row], start, {2}) == generated(theirs[row], start, {2})
    assert decode.statistics.tokens == sum(len(text.tokens) for text in decode.results)


def test_samples_are_in_the_language(llama, tokenizer, vocabulary, constraints):
    given = tokenizer(["yes"], return_tensors="pt")
    decode = draft_generate(constraints["record"], seed=0)
    out = llama.generate(
        **given, do_sample=True, temperature=1.5, top_k=0, num_return_sequences=4, max_new_tokens=40,
        custom_generate=decode,
    )  # fmt: skip
    assert out.shape[0] == 4
    constraint = constraints["record"]
    for row in out:
        tokens = generated(row, given["input_ids"].shape[1], {2})[:-1]
        assert constraint.is_accepting(constraint.advance_bytes(constraint.start, text_of(vocabulary, tokens)))


def test_what_cannot_be_done_is_refused(llama, tokenizer, constraints):
    given = tokenizer(["yes"], return_tensors="pt")
    decode = draft_generate(constraints["record"])
    with pytest.raises(UnsupportedError):
        llama.generate(**given, num_beams=2, max_new_tokens=BUDGET, custom_generate=decode)
    with pytest.raises(GuidedError, match="1 prompts have 2"):
        llama.generate(**given, max_new_tokens=BUDGET, do_sample=False, custom_generate=draft_generate([None, None]))


def test_measurement_counts_passes(llama, tokenizer, constraints):
    loaded = LoadedModel("tiny", llama, tokenizer)
    prompts = [tokenizer(text)["input_ids"] for text in ("[1, 22, 333]", "yes no")]
    told = []
    lines = {
        line.name: line
        for line in measure_drafts(
            loaded, prompts, [constraints["record"]] * 2, {"lookup": Drafting(PromptLookup(), Fixed(8))},
            max_tokens=BUDGET, done=told.append,
        )
    }  # fmt: skip
    assert told == [1, 2]
    assert len({line.tokens for line in lines.values()}) == 1
    assert all(line.different == 0 and line.texts == 2 for line in lines.values())
    assert lines["transformers"].passes == lines["transformers"].tokens - 2
    assert lines[PLAIN].passes <= lines["transformers"].passes
    assert lines["lookup"].passes <= lines[PLAIN].passes
    assert lines["lookup"].drafted >= lines["lookup"].accepted
    assert lines[TRANSFORMERS_LOOKUP].acceptance is None
