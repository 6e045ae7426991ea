"""`TransformersModel`: a causal or encoder-decoder model of transformers behind `guided.lm.LanguageModel`.

This file is the face; `network` prepares passes, `sequences` and `slots` hold the rows and their cache, `recomputed`
serves models without a usable cache, `probe` decides between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from guided.hf.loading import LoadedModel, decoder_start_ids, end_ids
from guided.hf.network import Caching, Network
from guided.hf.recomputed import RecomputedSequences
from guided.hf.sequences import CachedSequences
from guided.lm import NOTHING, Abilities, Calls, Needs, Sequences, check_needs

__all__ = ["Caching", "TransformersModel"]


class TransformersModel:
    """A language model of transformers with a cache that forks, rolls back and computes equal prefixes once.

    ``model`` is a causal or encoder-decoder model with a head, in eval mode, or a `LoadedModel`.  An encoder-decoder
    model's prompts go to its encoder, and `tokens` of a row is the prompt and what was appended; the decoder's start
    tokens (``decoder_start``, by default the configuration's) are not part of it.  ``eos_ids`` are by default the
    tokenizer's and generation configuration's.

    The model's attention must be ``sdpa`` or ``eager`` for rows of different lengths to share a pass and for trees.
    How the batch is cached is found out on first use by a few short passes; ``caching`` skips them.  Passes of one
    model take turns, so several threads may use it, each with its own sequences.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        eos_ids: Iterable[int] | None = None,
        decoder_start: Sequence[int] | None = None,
        caching: Caching | None = None,
    ) -> None:
        if isinstance(model, LoadedModel):
            tokenizer = model.tokenizer if tokenizer is None else tokenizer
            model = model.model
        self.model = model
        self.tokenizer = tokenizer
        self._network = Network(model, decoder_start_ids(model, decoder_start), caching)
        self._eos_ids = frozenset(_end_ids(model, tokenizer) if eos_ids is None else map(int, eos_ids))

    @property
    def width(self) -> int:
        """Number of ids scored: the rows of the model's output embedding."""
        return self._network.width

    @property
    def eos_ids(self) -> frozenset[int]:
        """The ids that end a text."""
        return self._eos_ids

    @property
    def can(self) -> Abilities:
        """What the model can do besides; found out on first use."""
        return self._network.abilities

    @property
    def caching(self) -> Caching:
        """How rows share passes; found out on first use."""
        return self._network.caching

    @property
    def calls(self) -> Calls:
        """Counters of the work done so far, the encoder's passes included."""
        return self._network.calls

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> Sequences:
        """Sequences that begin with these prompts, none of them empty; a prompt given twice is computed once."""
        check_needs(needs, self.can, self._network.architecture.name)
        if self.caching is Caching.NONE:
            return RecomputedSequences(self._network, needs, prompts)
        return CachedSequences(self._network, needs, prompts)

    def __repr__(self) -> str:
        return f"TransformersModel({type(self.model).__name__}, width={self.width})"


def _end_ids(model: Any, tokenizer: Any) -> list[int]:
    """The tokenizer's and the model's end-of-text ids; without a tokenizer the model's alone."""
    if tokenizer is not None:
        return end_ids(model, tokenizer) or []
    declared = getattr(model.generation_config, "eos_token_id", None)
    if declared is None:
        declared = model.config.get_text_config(decoder=True).eos_token_id
    return [] if declared is None else [int(declared)] if isinstance(declared, int) else [int(end) for end in declared]
