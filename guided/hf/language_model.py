"""`TransformersModel`: a causal or encoder-decoder model of transformers behind `guided.lm.LanguageModel`.

This file is the face; `network` prepares passes, `sequences` and `slots` hold the rows and their cache, `recomputed`
serves models without a usable cache, `probe` decides between them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import count, islice
from typing import Any

from transformers import PreTrainedModel

from guided.errors import GuidedError, UnsupportedError
from guided.hf.cache.recomputed import RecomputedSequences
from guided.hf.cache.sequences import CachedSequences
from guided.hf.cache.traced import TracedPasses
from guided.hf.denoisers.choice import is_denoiser
from guided.hf.front.encoding import beginning_of_text
from guided.hf.loading import LoadedModel, decoder_start_ids, end_ids
from guided.hf.network import Caching, Network
from guided.hf.probe import find_caching
from guided.lm import NOTHING, Abilities, Calls, LanguageModel, Needs, Sequences, check_needs, retokenized

__all__ = ["Caching", "TransformersModel", "check_tokenizer", "in_tokens_of", "model_and_ends", "wrapped"]


class TransformersModel:
    """A language model of transformers with a cache that forks, rolls back and computes equal prefixes once.

    ``model`` is a causal or encoder-decoder model with a head, in eval mode, or a `LoadedModel`.  An encoder-decoder
    model's prompts go to its encoder, and `tokens` of a row is the prompt and what was appended; the decoder's start
    tokens (``decoder_start``, by default the configuration's) are not part of it.  ``eos_ids`` are by default the
    tokenizer's and generation configuration's.

    The model's attention must be ``sdpa`` or ``eager`` for rows of different lengths to share a pass and for trees.
    How the batch is cached is found out on first use by a few short passes; ``caching`` skips them.  Passes of one
    model take turns, so several threads may use it, each with its own sequences.  Raises `UnsupportedError` for a
    denoiser.

    >>> import guided.hf
    >>> from guided.lm import next_logits
    >>> loaded = guided.hf.load()
    >>> model = guided.hf.TransformersModel(loaded)
    >>> rows = model.start([loaded.tokenizer.encode("Answer:")] * 2)
    >>> _ = rows.extend([[5], [6, 7]])
    >>> model.calls.passes, len(rows.tokens(1)) - len(rows.tokens(0))
    (2, 1)
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
        if is_denoiser(model):
            raise UnsupportedError(
                f"{type(model).__name__} is a denoiser here, which fills canvases and scores no next token",
                remedy="Call guided.generate without sampler, search, draft and steering, or load a causal model.",
            )
        self.model = model
        self.tokenizer = tokenizer
        self._network = Network(model, decoder_start_ids(model, decoder_start), caching or find_caching)
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

    def trace(self) -> None:
        """Have passes that threads work beside made as one operation each, where the model allows it.

        On processors, and where rows have lengths of their own; costs a few short passes, once a model, which must then
        keep its parts.  See `guided.hf.cache.traced`.
        """
        network = self._network
        if network.traced is not None or network.device.type != "cpu" or self.caching is not Caching.RAGGED:
            return
        network.traced = TracedPasses.of(self.model)
        if not (network.traced.refused or all(network.traced.trusted)):
            # From all over the vocabulary: what stands for padding is often nothing but zeros.
            ids = (number * _SPREAD % self.width for number in count(1))
            rows = self.start([list(islice(ids, length)) for length in (1, 2, 3)])
            for new in (1, 2, 1, 3):
                rows.extend([list(islice(ids, new)) for _ in range(3)])
            rows.select([0, 2])
            for new in (1, 2):
                rows.extend([list(islice(ids, new)) for _ in range(2)])

    def before_passes(self, call: Callable[[], None]) -> None:
        """Have ``call`` called in each pass from now on, when all is laid out and the model begins.

        Other threads have the interpreter from then on, where passes are traced: who has something for them had better
        wait till then.  There is one such call, whoever makes the passes.
        """
        self._network.before_passes = call

    def __repr__(self) -> str:
        return f"TransformersModel({type(self.model).__name__}, width={self.width})"


_SPREAD = 40_507
"""A prime near the golden ratio's share of 2 ** 16, by which multiples are spread evenly."""


def in_tokens_of(loaded: LoadedModel, other: LoadedModel) -> LanguageModel:
    """Another model as one over the ids of ``loaded``: as it is where they have one tokenizer, else read by its bytes.

    Before all text it reads what its own tokenizer begins texts with.
    """
    model = wrapped(other)
    if other.tokenizer.get_vocab() == loaded.tokenizer.get_vocab():
        return model
    context = beginning_of_text(other.tokenizer)
    return retokenized(model, other.vocabulary, loaded.vocabulary, context=context)


def model_and_ends(model: Any, tokenizer: Any) -> tuple[LanguageModel, Any, list[int] | None]:
    """A model as users pass it behind the interface, its tokenizer if there is any, and the ids that end a text.

    Raises `GuidedError` for a model of transformers without a tokenizer.
    """
    if isinstance(model, LoadedModel):
        tokenizer = model.tokenizer if tokenizer is None else tokenizer
        model = model.model
    if isinstance(model, LanguageModel):
        tokenizer = getattr(model, "tokenizer", None) if tokenizer is None else tokenizer
        return model, tokenizer, sorted(model.eos_ids) or None
    check_tokenizer(model, tokenizer)
    return wrapped(model, tokenizer), tokenizer, end_ids(model, tokenizer)


def check_tokenizer(model: Any, tokenizer: Any) -> None:
    """Raise an error for the name of a model, and for a model without its tokenizer."""
    if isinstance(model, str):
        raise TypeError("model is a name: load it once with guided.hf.load(name) and pass the result")
    if tokenizer is None:
        raise GuidedError(
            "a model of transformers comes without its tokenizer",
            remedy="Pass tokenizer=, or load both with guided.hf.load(name).",
        )


_WRAPPED: weakref.WeakValueDictionary[int, TransformersModel] = weakref.WeakValueDictionary()
"""By the identity of a model, which cannot be another's while what wraps it lives."""


def wrapped(model: Any, tokenizer: Any = None, eos_ids: Iterable[int] | None = None) -> TransformersModel:
    """A model of transformers as `guided.lm.language_model` gives it: the same object while it is in use.

    Tokenizer and ``eos_ids`` are those of the last one that named them.  Raises `TypeError` for a model's name,
    `GuidedError` for what is no model.
    """
    if isinstance(model, str):
        raise TypeError("model is a name: load it once with guided.hf.load(name) and pass the result")
    bare = model
    if isinstance(model, LoadedModel):
        bare, tokenizer = model.model, tokenizer or model.tokenizer
    if not isinstance(bare, PreTrainedModel):
        raise GuidedError(
            f"{type(model).__name__} is no language model",
            remedy="Pass a model of transformers, what guided.hf.load gives, or any guided.lm.LanguageModel.",
        )
    found = _WRAPPED.get(id(bare))
    renamed = tokenizer is not None and found is not None and found.tokenizer is not tokenizer
    if found is None or renamed or eos_ids is not None:
        found = _WRAPPED[id(bare)] = TransformersModel(model, tokenizer, eos_ids=eos_ids)
    return found


def _end_ids(model: Any, tokenizer: Any) -> list[int]:
    """The tokenizer's and the model's end-of-text ids; without a tokenizer the model's alone."""
    if tokenizer is not None:
        return end_ids(model, tokenizer) or []
    declared = getattr(model.generation_config, "eos_token_id", None)
    if declared is None:
        declared = model.config.get_text_config(decoder=True).eos_token_id
    return [] if declared is None else [int(declared)] if isinstance(declared, int) else [int(end) for end in declared]
