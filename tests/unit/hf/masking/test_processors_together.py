"""Other processors beside the grammar's: texts of the language, or an error that names who left nothing."""

from __future__ import annotations

import pytest
import torch
from transformers import LogitsProcessor, NoRepeatNGramLogitsProcessor, SuppressTokensLogitsProcessor

import guided
from guided.errors import GuidedError
from guided.hf import GuidedLogitsProcessor, LoadedModel, generate
from tests.amounts import each

PROMPT = "the cat"


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


class Raised(LogitsProcessor):
    """Prefers one token, whatever was forbidden before."""

    def __init__(self, token):
        self.token = token

    def __call__(self, input_ids, scores):
        scores = scores.clone()
        scores[:, self.token] = 50.0
        return scores


def own(loaded, processors, **options):
    """The texts of a user's own ``model.generate``."""
    ids = torch.tensor([loaded.tokenizer.encode(PROMPT)])
    out = loaded.model.generate(
        ids, attention_mask=torch.ones_like(ids), logits_processor=processors,
        **{"max_new_tokens": 16, "do_sample": False, "pad_token_id": 0, **options},
    )  # fmt: skip
    return [loaded.tokenizer.decode(row[ids.shape[1] :], skip_special_tokens=True) for row in out]


def ids_of(loaded, text):
    return loaded.tokenizer(text, add_special_tokens=False)["input_ids"]


HOW = {
    "greedy": {},
    "sampled": {"do_sample": True, "top_k": 5, "temperature": 0.7},
    "beams": {"num_beams": 3},
    "lookup": {"prompt_lookup_num_tokens": 3},
}


def conflicts(loaded):
    """Options of transformers that leave nothing of ``(ab){4}`` sooner or later, and the class that each makes."""
    return {
        "no_repeat_ngram_size": (1, "NoRepeatNGram"),
        "suppress_tokens": (ids_of(loaded, "b") + ids_of(loaded, "ba") + ids_of(loaded, "bab"), "SuppressTokens"),
        "bad_words_ids": ([[token] for token in range(3, len(loaded.tokenizer))], "NoBadWords"),
        "min_new_tokens": (15, "MinNewTokensLength"),
    }


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["no_repeat_ngram_size", "suppress_tokens", "bad_words_ids", "min_new_tokens"])
def test_what_leaves_nothing_is_named(loaded, vocabulary, name, how):
    value, kind = conflicts(loaded)[name]
    constraint = guided.compile(guided.regex("(ab){4}"), vocabulary)
    with pytest.raises(GuidedError, match=kind) as found:
        generate(loaded, PROMPT, constraint, max_new_tokens=16, **{name: value, **HOW[how]})
    assert name in found.value.remedy
    with pytest.raises(GuidedError, match=kind):
        own(loaded, [GuidedLogitsProcessor(constraint, max_new_tokens=16)], **{name: value, **HOW[how]})


@pytest.mark.parametrize("how", each(HOW, 2))
@pytest.mark.parametrize("first", [True, False])
def test_the_order_given_does_not_matter(loaded, vocabulary, first, how):
    """A user's own processors, before the grammar's and after it."""
    constraint = guided.compile(guided.regex("(ab){4}"), vocabulary)
    processor = GuidedLogitsProcessor(constraint, max_new_tokens=16)

    def listed(other):
        return [processor, other] if first else [other, processor]

    with pytest.raises(GuidedError, match="NoRepeatNGram"):
        own(loaded, listed(NoRepeatNGramLogitsProcessor(1)), **HOW[how])
    loud = Raised(ids_of(loaded, "!")[0])
    assert set(own(loaded, listed(loud), **HOW[how])) == {"abababab"}


@pytest.mark.parametrize("how", HOW)
def test_what_leaves_something_is_no_error(loaded, vocabulary, how):
    constraint = guided.compile(guided.regex("[a-c]{4}|d{6}"), vocabulary)
    [text] = own(loaded, [GuidedLogitsProcessor(constraint, max_new_tokens=16), SuppressTokensLogitsProcessor(
        [token for token in range(len(loaded.tokenizer)) if set(loaded.tokenizer.decode([token])) & set("abc")]
    )], **HOW[how])  # fmt: skip
    assert text == "dddddd"
    made = generate(loaded, PROMPT, constraint, max_new_tokens=16, no_repeat_ngram_size=3, n=3, seed=1)
    assert all(one.finished for one in made)


def test_beams_may_die_while_others_live(loaded, vocabulary):
    constraint = guided.compile(guided.choice(["aa", "ab", "ba"]), vocabulary)
    made = generate(loaded, PROMPT, constraint, max_new_tokens=8, num_beams=3, no_repeat_ngram_size=1)
    assert made.finished and made.text in ("ab", "ba")


def test_rows_of_a_batch_that_have_ended_need_no_token(loaded, vocabulary):
    constraint = guided.compile(guided.choice(["a", "bcdcecfcg"]), vocabulary)
    short, long = (
        guided.compile(guided.choice(["a"]), vocabulary),
        guided.compile(guided.choice(["yes no may"]), vocabulary),
    )
    made = generate(loaded, [PROMPT, PROMPT], [short, long], max_new_tokens=16, no_repeat_ngram_size=2)
    assert [one.text for one in made] == ["a", "yes no may"]
    assert constraint is not short


def test_only_temperature_and_truncation_need_no_second_mask(loaded, vocabulary, monkeypatch):
    from guided.hf.masking import last_mask

    monkeypatch.setattr(last_mask.LastMask, "__call__", lambda *_: pytest.fail("nothing to mask again"))
    constraint = guided.compile(guided.regex("[a-c]{4}"), vocabulary)
    made = generate(loaded, PROMPT, constraint, do_sample=True, temperature=0.8, top_k=3, top_p=0.9, max_new_tokens=16)
    assert made.finished


def test_what_a_draft_is_verified_under_is_named_too(loaded, vocabulary):
    constraint = guided.compile(guided.regex("(ab){4}"), vocabulary)
    for options in ({}, {"do_sample": True, "top_k": 0}):
        with pytest.raises(GuidedError, match="NoRepeatNGram"):
            generate(
                loaded,
                PROMPT,
                constraint,
                draft=guided.draft.auto(),
                no_repeat_ngram_size=1,
                max_new_tokens=16,
                **options,
            )
