"""Networks as denoisers: each adapter beside the network called by hand, on tiny random weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from guided.diffusion import Canvas, Denoiser, Noise, blank
from guided.errors import GuidedError, UnsupportedError
from guided.hf.denoisers import BlockDiffusion, CausalPrompt, MaskFilling, denoiser_for, is_denoiser
from guided.hf.loading import LoadedModel
from tests.tolerances import PASSES

WIDTH, MASK = 40, 39


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=WIDTH, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, initializer_range=0.3, eos_token_id=1, pad_token_id=0, causal_prompt_denoiser=True, mask_token_id=MASK,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def bert():
    torch.manual_seed(2)
    config = BertConfig(
        vocab_size=WIDTH, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    return BertForMaskedLM(config).eval()


@pytest.fixture(scope="module")
def gemma():
    try:
        from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion
    except ImportError:
        pytest.skip("this transformers has no DiffusionGemma")
    torch.manual_seed(3)
    text = {
        "vocab_size": 30, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "head_dim": 8,
        "num_attention_heads": 2, "num_key_value_heads": 1, "num_global_key_value_heads": 1, "global_head_dim": 8,
        "num_experts": 2, "top_k_experts": 1, "moe_intermediate_size": 8, "max_position_embeddings": 64,
        "sliding_window": 32, "layer_types": ["sliding_attention", "full_attention"],
    }  # fmt: skip
    vision = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 8}
    return DiffusionGemmaForBlockDiffusion(
        DiffusionGemmaConfig(text_config=text, vision_config=vision, canvas_length=6)
    ).eval()


def by_hand(model, canvas):
    """The scores of a causal-prompt network in one pass, without a cache: its mask written out."""
    ids = torch.tensor([[*canvas.prompt, *canvas.tokens.tolist()]])
    n, first = ids.shape[1], len(canvas.prompt) - 1
    seen = torch.ones(n, n, dtype=torch.bool).tril()
    seen[first:, first:] = True
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=seen[None, None], use_cache=False).logits[0, first:-1].numpy()
    logits[:, MASK] = -np.inf
    return logits


def test_a_causal_prompt_with_its_cache_is_one_pass_without(llama):
    denoiser = denoiser_for(llama)
    assert isinstance(denoiser, CausalPrompt) and isinstance(denoiser, Denoiser) and denoiser.mask_id == MASK
    prompts = [(4,), (4, 5, 6, 7, 8), (4, 5, 6), (9, 9)]
    canvases = [blank(denoiser, prompt, 7, {2: 11, 5: 3}) for prompt in prompts]
    for _ in range(2):
        found = denoiser.scores(canvases)
        for row, canvas in zip(found, canvases, strict=True):
            np.testing.assert_allclose(row, by_hand(llama, canvas), atol=PASSES)
    assert denoiser.passes == 2
    assert denoiser.read == 4 + 2 + 1  # All but the last token of each prompt, once.


def test_a_prompt_that_grows_is_read_where_it_grew(llama):
    denoiser = denoiser_for(llama)
    denoiser.scores([blank(denoiser, range(2, 12), 4)])
    longer = blank(denoiser, range(2, 16), 4)
    found = denoiser.scores([longer])
    assert denoiser.read == 9 + 4
    np.testing.assert_allclose(found[0], by_hand(llama, longer), atol=PASSES)


@pytest.mark.parametrize("shifted", [False, True])
def test_mask_filling_scores_each_position(bert, shifted):
    denoiser = MaskFilling(bert, mask_id=MASK, shifted=shifted, after=(5,), longest=64)
    canvases = [blank(denoiser, prompt, 5, {1: 8}) for prompt in ((3, 4), (3, 4, 6), (7, 7))]
    found = denoiser.scores(canvases)
    assert denoiser.passes == 2 and denoiser.longest == 63
    for row, canvas in zip(found, canvases, strict=True):
        with torch.inference_mode():
            logits = bert(torch.tensor([[*canvas.prompt, *canvas.tokens.tolist(), 5]])).logits[0].numpy()
        start = len(canvas.prompt) - shifted
        np.testing.assert_allclose(row[:, :MASK], logits[start : start + 5, :MASK], atol=PASSES)
    assert (found[..., MASK] == -np.inf).all()


def test_block_diffusion_scores_each_position(gemma):
    denoiser = denoiser_for(gemma)
    assert isinstance(denoiser, BlockDiffusion) and denoiser.noise is Noise.UNIFORM and denoiser.mask_id is None
    rng = np.random.default_rng(1)
    canvases = [blank(denoiser, prompt, 6, chance=rng) for prompt in ((3, 4), (3, 4, 6), (7, 7))]
    found = denoiser.scores(canvases)
    for row, canvas in zip(found, canvases, strict=True):
        with torch.inference_mode():
            logits = gemma(
                input_ids=torch.tensor([canvas.prompt]), decoder_input_ids=torch.tensor(canvas.tokens)[None]
            ).logits
        np.testing.assert_allclose(row, logits[0].numpy(), atol=PASSES)
    with pytest.raises(GuidedError, match="blocks of 6"):
        denoiser.scores([blank(denoiser, (3,), 5)])


def test_what_is_a_denoiser(llama, bert, gemma):
    assert all(map(is_denoiser, (llama, bert, gemma, denoiser_for(gemma), LoadedModel("x", llama, None))))
    plain = LlamaForCausalLM(LlamaConfig(**{**llama.config.to_dict(), "causal_prompt_denoiser": False}))
    assert not is_denoiser(plain)
    with pytest.raises(UnsupportedError, match="LlamaForCausalLM is no denoiser"):
        denoiser_for(plain)


def test_a_masked_model_without_a_mask_token_is_refused(bert):
    with pytest.raises(UnsupportedError, match="no mask token"):
        denoiser_for(bert)


def test_no_prompt_and_too_long_ones_are_refused(llama, gemma):
    for model, canvas in ((llama, Canvas([MASK], [False])), (gemma, Canvas([3] * 6, [False] * 6))):
        with pytest.raises(GuidedError, match="at least one token"):
            denoiser_for(model).scores([canvas])
    with pytest.raises(GuidedError, match="reads at most 64"):
        blank(denoiser_for(llama), range(60), 5)
