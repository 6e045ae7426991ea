"""`language_model`: what users pass as a model, as a `LanguageModel`.

Models of transformers are known to `guided.hf` alone, which is above this package and loaded when one comes.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch

from guided.lm.model import LanguageModel

__all__ = ["language_model", "same_model"]


def language_model(model: Any, tokenizer: Any = None) -> LanguageModel:
    """The model itself, or a model of transformers (bare, or from `guided.hf.load`) behind the interface.

    The same object as long as that one is in use, so that one model given twice is one model.  Raises `GuidedError` for
    anything else.

    >>> import guided.hf
    >>> from guided.lm import language_model
    >>> loaded = guided.hf.load()
    >>> model = language_model(loaded)
    >>> model.width, model is language_model(loaded)
    (2048, True)
    """
    if isinstance(model, LanguageModel):
        return model
    made: LanguageModel = importlib.import_module("guided.hf.language_model").wrapped(model, tokenizer)
    return made


def same_model(left: LanguageModel, right: LanguageModel) -> bool:
    """Whether two models give the same scores for being one, or two faces of one network."""
    network = getattr(left, "model", None)
    return left is right or (isinstance(network, torch.nn.Module) and network is getattr(right, "model", None))
