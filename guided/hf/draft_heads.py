"""Drafts made for a model of transformers: matrices that heads share with it, and what is packaged for guided-nano."""

from __future__ import annotations

from pathlib import Path

from guided.draft.heads.draft_heads import Base
from guided.draft.heads.eagle import Eagle
from guided.draft.heads.feature_heads import FeatureHead
from guided.draft.heads.from_heads import Heads
from guided.draft.heads.load_heads import load_heads
from guided.draft.heads.load_published import load_published
from guided.draft.heads.prefixed import Prefixed, PrefixedHeads
from guided.draft.models.acceptance_head import AcceptanceHead
from guided.errors import UnsupportedError, VocabularyError
from guided.hf.language_model import TransformersModel
from guided.nano import DRAFTS_PATH

__all__ = ["base_of", "nano_eagle", "nano_heads", "nano_small", "nano_stopping_head", "published_heads"]


def base_of(model: TransformersModel) -> Base:
    """The embedding and output matrices of a model; `UnsupportedError` where they are not of one width."""
    embeddings = getattr(model.model.get_input_embeddings(), "weight", None)
    unembeddings = getattr(model.model.get_output_embeddings(), "weight", None)
    if embeddings is None or unembeddings is None or embeddings.shape != unembeddings.shape:
        raise UnsupportedError(
            f"{type(model.model).__name__} has no embedding and output matrices of one size, which draft heads share",
            remedy="Draft with guided.draft.auto, which needs none.",
        )
    return Base(embeddings.detach(), unembeddings.detach())


def nano_heads(model: TransformersModel, kind: str = "hydra") -> Heads:
    """A drafter by the packaged heads of guided-nano, ``"medusa"`` or ``"hydra"``; for that model only."""
    return Heads(load_heads(DRAFTS_PATH / f"{kind}.safetensors", base_of(model)))


def nano_eagle(model: TransformersModel) -> Eagle:
    """A drafter by the packaged EAGLE head of guided-nano; for that model only."""
    drafter = published_heads(model, DRAFTS_PATH / "eagle")
    assert isinstance(drafter, Eagle)
    return drafter


def nano_small(model: TransformersModel) -> TransformersModel:
    """The packaged draft model of guided-nano, a sixth of its size, on its device and for its end-of-text ids.

    Raises `VocabularyError` for another model.
    """
    from transformers import AutoModelForCausalLM

    whole = model.model
    small = AutoModelForCausalLM.from_pretrained(DRAFTS_PATH / "small", dtype=whole.dtype)
    if small.config.vocab_size != model.width:
        raise VocabularyError(
            f"guided-nano's draft model scores {small.config.vocab_size} ids, and this model {model.width}",
            remedy="Use it with guided-nano only: load('nano').",
        )
    return TransformersModel(small.to(whole.device).eval(), model.tokenizer, eos_ids=model.eos_ids)


def nano_stopping_head() -> AcceptanceHead:
    """The packaged head that stops guided-nano's draft model before refusals: `guided.draft.HeadStopped`."""
    return AcceptanceHead.load(DRAFTS_PATH / "stopping.safetensors")


def published_heads(model: TransformersModel, folder: Path | str) -> Heads | Eagle | Prefixed:
    """A drafter by heads of a published checkpoint for this model: Medusa, Hydra, EAGLE-1 to 3 or ReDrafter.

    See `guided.draft.load_published` for the layouts and errors.
    """
    config = model.model.config.get_text_config().to_dict()
    heads = load_published(folder, base_of(model), layers=model.can.blocks or None, model=config)
    if isinstance(heads, PrefixedHeads):
        return Prefixed(heads)
    return Eagle(heads) if isinstance(heads, FeatureHead) else Heads(heads)
