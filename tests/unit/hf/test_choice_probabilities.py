"""`guided.hf.choices` on small models of transformers: against sums over single passes, whatever way the model is given."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import transformers

import guided
from guided.errors import GuidedError, UnsupportedError
from guided.hf import load
from guided.hf.choices import choice_probabilities
from guided.hf.language_model import TransformersModel
from guided.lm import TableModel
from tests.tolerances import PASSES, SINGLE

TEXTS = ["no", "yes", "maybe"]


@pytest.fixture(scope="module")
def nano():
    return load("nano")


def brute_force(loaded, prompt, texts):
    """Sums over all token strings that spell each text, each read by itself."""
    vocabulary = loaded.vocabulary
    ids = loaded.tokenizer(prompt)["input_ids"]
    pieces = [(token, data) for token, data in enumerate(vocabulary.tokens) if data]

    def spellings(data):
        if not data:
            yield ()
        for token, piece in pieces:
            if data.startswith(piece):
                yield from ((token, *rest) for rest in spellings(data[len(piece) :]))

    sums = {}
    for text in texts:
        logs = []
        for tokens in spellings(text.encode()):
            with torch.no_grad():
                logits = loaded.model(torch.tensor([[*ids, *tokens]])).logits[0, len(ids) - 1 :].double()
            rows = torch.log_softmax(logits, -1)
            chain = sum(float(rows[i, token]) for i, token in enumerate(tokens))
            logs += [chain + float(rows[-1, end]) for end in vocabulary.eos_ids]
        sums[text] = math.fsum(map(math.exp, logs))
    return sums


def test_a_packaged_model(nano):
    prompt = "Question: is it raining? Answer: "
    found = choice_probabilities(nano, prompt, guided.choice(TEXTS[:2]))
    sums = brute_force(nano, prompt, TEXTS[:2])
    total = math.fsum(sums.values())
    assert dict(found) == pytest.approx({text: value / total for text, value in sums.items()}, rel=PASSES)
    assert math.fsum(found.values()) == pytest.approx(1)
    assert found.log_ml == pytest.approx(math.log(total), abs=PASSES)
    # However the model is given.
    wrapped = TransformersModel(nano)
    ids = nano.tokenizer(prompt)["input_ids"]
    constraint = guided.compile(guided.choice(TEXTS[:2]), nano.vocabulary)
    for model, text, grammar, options in [
        (nano.model, prompt, guided.choice(TEXTS[:2]), {"tokenizer": nano.tokenizer}),
        (wrapped, prompt, guided.choice(TEXTS[:2]), {}),
        (wrapped, ids, constraint, {"batch": 1}),
    ]:
        again = choice_probabilities(model, text, grammar, **options)
        assert dict(again) == pytest.approx(dict(found), rel=PASSES)
    part = choice_probabilities(nano, prompt, guided.choice(TEXTS[:2]), mass=0.9)
    assert 0 < part.unseen <= 0.1 and part.best == found.best


@pytest.fixture(scope="module")
def bytes_model():
    """A GPT-2 without training over a byte-level tokenizer with a few merges."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("n", "o"), ("y", "e"), ("ye", "s"), ("m", "a")]
    words = [*letters, *map("".join, merges), "<end>"]
    backend = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(words), n_embd=16, n_layer=2, n_head=2, n_positions=64, eos_token_id=len(words) - 1
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    model.generation_config.eos_token_id = len(words) - 1
    return model, tokenizer


def test_the_tokenizers_own_spelling(bytes_model):
    model, tokenizer = bytes_model
    found = choice_probabilities(model, "say it", guided.choice(TEXTS), tokenizer=tokenizer, canonical=True)
    before = tokenizer("say it")["input_ids"]
    weights = {}
    for text in TEXTS:
        ids = [*before, *tokenizer(text)["input_ids"], tokenizer.eos_token_id]
        with torch.no_grad():
            rows = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
        weights[text] = math.exp(sum(float(rows[i - 1, ids[i]]) for i in range(len(before), len(ids))))
    total = math.fsum(weights.values())
    assert dict(found.canonical) == pytest.approx({text: w / total for text, w in weights.items()}, rel=SINGLE)
    # "yes" is ye-s, yes, y-e-s; "maybe" begins with ma or m-a.
    assert dict(found.tokenisations) == {"no": 2, "yes": 3, "maybe": 2}
    assert any(abs(found[text] - found.canonical[text]) > 1e-6 for text in TEXTS)


def test_what_cannot_be_answered(nano):
    with pytest.raises(UnsupportedError, match="infinite"):
        choice_probabilities(nano, "x", guided.regex("a+"))
    with pytest.raises(TypeError, match=r"guided\.hf\.load"):
        choice_probabilities("nano", "x", guided.choice(TEXTS))
    with pytest.raises(GuidedError, match="tokenizer"):
        choice_probabilities(nano.model, "x", guided.choice(TEXTS))
    table = TableModel.random(0, width=3, eos_ids=[2])
    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    with pytest.raises(GuidedError, match="token ids"):
        choice_probabilities(table, "a", guided.choice(["a", "b"]), tokenizer=vocabulary)
    found = choice_probabilities(table, [0], guided.choice(["a", "b"]), tokenizer=vocabulary)
    shares = [math.exp(table.logprobs((0,))[token] + table.logprobs((0, token))[2]) for token in (0, 1)]
    assert [found["a"], found["b"]] == pytest.approx([share / sum(shares) for share in shares])
    assert all(a >= b for a, b in itertools.pairwise(found.values()))
