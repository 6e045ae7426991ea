"""Models and drafts that do not fit: refused by name with the alternatives, or in chains with a note."""

from __future__ import annotations

import pytest
import torch
from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM, MambaConfig, MambaForCausalLM

import guided
from guided.draft import (
    Branching,
    Chain,
    Drafting,
    Fixed,
    Model,
    OtherVocabulary,
    PromptLookup,
    auto,
    chain,
    intersected,
    speculate,
)
from guided.errors import UnsupportedError, VocabularyError
from guided.hf import LoadedModel, TransformersModel, generate
from guided.hf.front.own_loop import ChainsOnly
from guided.hf.speculation import draft_generate
from guided.infer import smc


@pytest.fixture(scope="module")
def mamba(tokenizer):
    torch.manual_seed(0)
    config = MambaConfig(vocab_size=320, hidden_size=16, num_hidden_layers=1, state_size=4, eos_token_id=2)
    return LoadedModel("mamba", MambaForCausalLM(config).eval(), tokenizer)


@pytest.fixture(scope="module")
def words(vocabulary):
    return guided.compile(guided.choice(["yes", "no", "maybe", "the cat"]), vocabulary)


def test_a_state_space_model_drafts_in_chains_and_says_so(mamba, words):
    plain = generate(mamba, "the cat", words, do_sample=False, max_new_tokens=6)
    with pytest.warns(ChainsOnly, match="MambaForCausalLM takes no draft trees"):
        drafted = generate(mamba, "the cat", words, do_sample=False, draft=auto(), max_new_tokens=6)
    assert (drafted.text, drafted.drafts.trees) == (plain.text, False)


def test_beneath_it_drafts_are_chains_whose_passes_are_counted(mamba, tokenizer, words):
    """The law is kept; drafts that are right save passes, and those that are wrong are not made to look like a gain."""

    class Wrong:
        """Drafts one token over and over."""

        def draft(self, chance, contexts):
            return [chain([71] * context.budget) for context in contexts]

        def learn(self, observed):
            pass

        def leave(self, rows):
            pass

    model = TransformersModel(mamba)
    prompts = [tokenizer(text)["input_ids"] for text in ("the cat sat on the", "yes no yes no yes")]
    plain, _ = speculate(0, model, prompts, [words, None], greedy=True, max_tokens=8)
    for drafter in (Wrong(), PromptLookup()):
        before = model.calls.passes
        drafted, counts = speculate(
            0, model, prompts, [words, None], drafter, greedy=True, max_tokens=8, policy=Fixed(3)
        )
        assert drafted == plain
        assert not counts.trees
        assert (counts.passes >= 7) == isinstance(drafter, Wrong)
        assert counts.passes <= model.calls.passes - before
    own, shared = (smc(1, model, prompts[0], words, n=4, max_tokens=6, draft=draft) for draft in (None, auto()))
    assert [one.tokens for one in own] == [one.tokens for one in shared]


def test_a_model_without_trees_drafts_in_chains_and_says_so(t5, llama, tokenizer, words):
    loaded = LoadedModel("t5", t5, tokenizer)
    plain = generate(loaded, "the cat the cat", words, max_new_tokens=6, do_sample=False)
    with pytest.warns(ChainsOnly, match="T5ForConditionalGeneration takes no draft trees"):
        drafted = generate(
            loaded,
            "the cat the cat",
            words,
            max_new_tokens=6,
            do_sample=False,
            draft=Drafting(PromptLookup(), Fixed(4)),
        )
    assert (drafted.text, drafted.drafts.trees) == (plain.text, False)
    assert generate(LoadedModel("llama", llama, tokenizer), "yes", words, draft=auto(), max_new_tokens=6).drafts.trees


def test_a_draft_that_needs_trees_of_a_model_without(mamba, t5, tokenizer):
    for model in (TransformersModel(mamba), TransformersModel(t5, tokenizer)):
        with pytest.raises(UnsupportedError, match=r"takes no trees.*guided\.draft\.Chain"):
            Model(model, Branching((2, 1)))
        Model(model, Chain(2))


def test_a_draft_of_another_vocabulary(llama, tokenizer, vocabulary, words):
    target = LoadedModel("llama", llama, tokenizer)
    torch.manual_seed(0)
    config = GPTBigCodeConfig(vocab_size=40, n_positions=64, n_embd=16, n_layer=1, n_head=2)
    other = TransformersModel(GPTBigCodeForCausalLM(config).eval(), eos_ids=[0])
    with pytest.raises(VocabularyError, match=r"ids are not the target's.*OtherVocabulary"):
        Model(other, target=TransformersModel(target.model))
    strange = guided.Vocabulary.from_tokens([None, *(f"\u4e00{n}\u4e00".encode() for n in range(39))], eos_ids=[0])
    for refused in (
        lambda: OtherVocabulary(other, strange, vocabulary),
        lambda: intersected(other, strange, vocabulary),
    ):
        with pytest.raises(VocabularyError, match=r"no token in common.*guided\.draft\.auto"):
            refused()
    letters = guided.Vocabulary.from_tokens(
        [None, *(bytes([97 + n % 26]) * (1 + n // 26) for n in range(39))], eos_ids=[0]
    )
    plain = generate(target, "the cat", words, max_new_tokens=6, do_sample=False)
    for drafter in (
        OtherVocabulary(other, letters, vocabulary),
        Model(intersected(other, letters, vocabulary, width=352)),
    ):
        drafted = generate(
            target, "the cat", words, max_new_tokens=6, do_sample=False, draft=Drafting(drafter, Fixed(3))
        )
        assert drafted.text == plain.text


def test_kinds_of_caches(llama, tokenizer, words):
    """Static ones ask for what there is anyway; those that hold other numbers are refused, and not passed over."""
    loaded = LoadedModel("llama", llama, tokenizer)
    plain = generate(loaded, "the cat", words, max_new_tokens=6, do_sample=False)
    for kind in ("static", "dynamic"):
        options = {"max_new_tokens": 6, "do_sample": False, "cache_implementation": kind}
        assert generate(loaded, "the cat", words, draft=auto(), **options).text == plain.text
        ids = torch.tensor([tokenizer("the cat")["input_ids"]])
        found = llama.generate(ids, custom_generate=draft_generate(words), pad_token_id=0, **options)
        assert tuple(found[0, ids.shape[1] :].tolist())[: len(plain.token_ids)] == plain.token_ids
    for kind in ("offloaded", "offloaded_static"):
        with pytest.raises(UnsupportedError, match=rf"cache_implementation='{kind}'.*change nothing here"):
            generate(loaded, "the cat", words, draft=auto(), max_new_tokens=6, cache_implementation=kind)
