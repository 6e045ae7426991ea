"""Medusa and Hydra heads on a model of transformers: the matrices that they share with it, and the packaged ones."""

from __future__ import annotations

from pathlib import Path

from guided.draft.from_heads import Heads
from guided.draft.heads import Base, DraftHeads
from guided.draft.load_heads import load_heads
from guided.errors import UnsupportedError
from guided.hf.language_model import TransformersModel
from guided.nano import DRAFTS_PATH

__all__ = ["base_of", "nano_heads"]


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
    return Heads(_packaged(kind, base_of(model)))


def _packaged(kind: str, base: Base) -> DraftHeads:
    path: Path = DRAFTS_PATH / f"{kind}.safetensors"
    return load_heads(path, base)
