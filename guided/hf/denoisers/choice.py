"""`denoiser_for`: which denoiser a model of transformers is, by its configuration."""

from __future__ import annotations

from typing import Any

from guided.diffusion import Denoiser
from guided.errors import UnsupportedError
from guided.hf.denoisers.block_diffusion import BlockDiffusion
from guided.hf.denoisers.causal_prompt import CausalPrompt
from guided.hf.denoisers.mask_filling import MaskFilling
from guided.hf.loading import LoadedModel, end_ids

__all__ = ["denoiser_for", "is_denoiser"]

SHIFTED = {"llada": False, "Dream": True, "dream": True, "a2d-qwen3": False, "a2d-llama": False, "a2d-qwen2": False}
"""Masked models of remote code by ``model_type``, and whether their output at a place is about the next one: as their
own generation code reads it (ML-GSAI/LLaDA ``generate.py``; DreamLM/Dream ``generation_utils.py``; dLLM's A2D)."""

CAUSAL_PROMPT = "causal_prompt_denoiser"
"""The key in the configuration of a model that `CausalPrompt` is for; its ``mask_token_id`` is then there too."""


def is_denoiser(model: Any) -> bool:
    """Whether `denoiser_for` takes it: a denoiser, or a model whose configuration is that of one."""
    if isinstance(model, LoadedModel):
        model = model.model
    return isinstance(model, Denoiser) or _kind(model) is not None


def denoiser_for(model: Any, tokenizer: Any = None) -> Denoiser:
    """The denoiser of a `LoadedModel`, or of a model of transformers and its tokenizer; a denoiser stays as it is.

    Raises `UnsupportedError` for a model that is none, and for one without a mask token.
    """
    if isinstance(model, LoadedModel):
        model, tokenizer = model.model, tokenizer or model.tokenizer
    if isinstance(model, Denoiser):
        return model
    kind = _kind(model)
    if kind is None:
        raise UnsupportedError(
            f"{type(model).__name__} is no denoiser",
            remedy="Pass a masked or block-diffusion model, or wrap it: guided.hf.denoisers.MaskFilling.",
        )
    config = model.config
    ends = _ends(model, tokenizer)
    text = config.get_text_config()
    pad = getattr(tokenizer, "pad_token_id", None) if tokenizer is not None else text.pad_token_id
    if kind is BlockDiffusion:
        return BlockDiffusion(model, eos_ids=ends, pad_id=pad)
    mask_id = getattr(tokenizer, "mask_token_id", None)
    if mask_id is None:
        mask_id = getattr(config, "mask_token_id", None)
    longest = getattr(text, "max_position_embeddings", None) or getattr(text, "max_sequence_length", None)
    if kind is CausalPrompt and mask_id is not None:
        window = getattr(config, "canvas_length", None)
        return CausalPrompt(model, mask_id=mask_id, eos_ids=ends, longest=longest, pad_id=pad, window=window)
    masked_lm = type(model).__name__.endswith("ForMaskedLM")
    separator = getattr(tokenizer, "sep_token_id", None)
    if config.model_type in ("roberta", "xlm-roberta", "camembert") and longest is not None:
        longest -= int(text.pad_token_id or 0) + 1  # Their positions begin after the padding's.
    return MaskFilling(
        model,
        mask_id=mask_id,
        eos_ids=ends,
        pad_id=pad,
        longest=longest,
        shifted=SHIFTED.get(config.model_type, False),
        after=(separator,) if masked_lm and separator is not None else (),
    )


def _ends(model: Any, tokenizer: Any) -> list[int]:
    """What ends a text; BERT's tokenizers have only a separator."""
    if tokenizer is None:
        end = model.config.get_text_config().eos_token_id
        return [] if end is None else [end] if isinstance(end, int) else list(end)
    found = end_ids(model, tokenizer)
    separator = getattr(tokenizer, "sep_token_id", None)
    return found or ([] if separator is None else [int(separator)])


def _kind(model: Any) -> type | None:
    config = getattr(model, "config", None)
    name = getattr(config, "model_type", None)
    if config is None or name is None:
        return None
    if getattr(config, CAUSAL_PROMPT, False):
        return CausalPrompt
    if name == "diffusion_gemma":
        return BlockDiffusion
    return MaskFilling if type(model).__name__.endswith("ForMaskedLM") or name in SHIFTED else None
