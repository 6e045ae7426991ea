"""`generate` with healed prompts and canonical tokens: what comes out is what the tokenizer makes of the whole."""

from __future__ import annotations

import pytest
import torch

import guided
from guided.hf import LoadedModel, generate
from tests.amounts import crossed
from tests.twin.earley import accepts

PROMPTS = ["the ca", "[1, 2", "yes no", 'a "', "the cat sat on "]


@pytest.fixture
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


def only_compiled(constraints):
    if not isinstance(constraints["answer"], guided.Constraint):
        pytest.skip("text can be put before a compiled grammar only")


@pytest.mark.parametrize(("heal", "name"), crossed([False, True], ["nested", "record", "answer"]))
def test_canonical_tokens(constraints, loaded, tokenizer, name, heal):
    if heal:
        only_compiled(constraints)
    torch.manual_seed(1)
    refused = 0
    for prompt in PROMPTS:
        try:
            results = generate(
                loaded, prompt, constraints[name], heal=heal, canonical=True, do_sample=True, num_return_sequences=3,
                max_new_tokens=60,
            )  # fmt: skip
        except guided.UnsatisfiableError:
            refused += 1
            continue
        for result in results:
            assert result.finished and accepts(constraints[name].grammar, result.text.encode())
            whole = tokenizer.encode(prompt + result.text)
            n = len(result.token_ids)
            assert whole[len(whole) - n :] == list(result.token_ids), (prompt, result)
    # A healed prompt can always be continued.
    assert refused <= (not heal)


def test_a_healed_prompt_is_generated_again(constraints, loaded, tokenizer, monkeypatch):
    only_compiled(constraints)
    seen = []
    original = loaded.model.generate

    def spy(**options):
        seen.append(options["input_ids"][0].tolist())
        return original(**options)

    monkeypatch.setattr(loaded.model, "generate", spy)
    result = generate(loaded, "the cat sat", constraints["answer"], heal=True, max_new_tokens=30, do_sample=False)
    assert tokenizer.encode("the cat sat")[: len(seen[0])] == seen[0]
    assert len(seen[0]) < len(tokenizer.encode("the cat sat"))
    assert accepts(constraints["answer"].grammar, result.text.encode())
    vocabulary = constraints["answer"].vocabulary
    text = b"".join(vocabulary.token_bytes(token) for token in [*seen[0], *result.token_ids])
    assert text == b"the cat sat" + result.text.encode()


def test_each_prompt_of_a_batch_has_its_own_joint(constraints, loaded):
    only_compiled(constraints)
    names = ["nested", "record", "answer"]
    grammars = [constraints[name] for name in names]
    options = {"heal": True, "canonical": True, "do_sample": False, "max_new_tokens": 60}
    together = generate(loaded, PROMPTS[:3], grammars, **options)
    assert together == [generate(loaded, p, g, **options) for p, g in zip(PROMPTS, grammars, strict=False)]
    one = generate(loaded, PROMPTS[:2], grammars[0], **options)
    assert one == [generate(loaded, p, grammars[0], **options) for p in PROMPTS[:2]]


def test_encoder_decoder_prompts_are_not_healed(constraints, t5, tokenizer):
    with pytest.raises(guided.UnsupportedError, match="decoder-only"):
        generate(t5, "the cat", constraints["answer"], tokenizer=tokenizer, heal=True)
    result = generate(t5, "the cat", constraints["answer"], tokenizer=tokenizer, canonical=True, max_new_tokens=20)
    assert list(result.token_ids) == tokenizer.encode(result.text)
