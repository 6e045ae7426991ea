"""`Network`: a model of transformers with everything about it that was found out by running it once.

How its batch may be cached is decided by numbers, not by a list of model names: a few short sequences are run plainly
and through the cache, and the first way whose scores agree is taken.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf.architecture import Architecture, MaskKind
from guided.hf.cache.row_cache import RowCache
from guided.hf.cache.traced import TracedPasses
from guided.hf.forward import Pass, run_pass
from guided.lm import NOTHING, Abilities, Calls, Needs, Scores

__all__ = ["Caching", "Encoded", "Network"]

_CACHING: weakref.WeakKeyDictionary[Any, dict[Any, Caching]] = weakref.WeakKeyDictionary()
"""What passes have shown of models, for as long as they live: `guided.generate` is called in loops with one."""
_FINAL_NORMS: weakref.WeakKeyDictionary[Any, nn.Module | None] = weakref.WeakKeyDictionary()


class Caching(Enum):
    """How the rows of a batch share passes, best first.

    >>> import guided.hf
    >>> from guided.hf import Caching
    >>> from guided.lm import language_model
    >>> language_model(guided.hf.load()).caching is Caching.RAGGED
    True
    """

    RAGGED = "rows of any length share a pass"
    ALIGNED = "rows of equal length share a pass"
    PIECES = "rows of equal length share a pass, several tokens continue a state, and a row goes back to an earlier one"
    STATES = "rows of equal length share a pass, and a row that was rolled back is read again"
    NONE = "no usable cache: every pass reads whole rows"


@dataclass(frozen=True)
class Encoded:
    """What the encoder says about some rows' prompts: states padded on the right, and the length of each."""

    lengths: tuple[int, ...]
    width: int
    states: torch.Tensor | None
    """``[n, width, d]`` when they are to be read for the first time; None once the cache holds them."""


class Network:
    """Inputs of a model of transformers made from plain lists, and its scores."""

    def __init__(
        self, model: Any, decoder_start: tuple[int, ...], caching: Caching | Callable[[Network], Caching]
    ) -> None:
        self.model = model
        self.decoder_start = decoder_start
        self.architecture = Architecture(model)
        self.calls = Calls()
        self._wanted_caching = caching
        self.traced: TracedPasses | None = None
        """What makes passes that nothing but scores is asked of, if anything does."""
        self.before_passes: Callable[[], None] | None = None
        """What is called whenever all is laid out for a pass."""

    @cached_property
    def width(self) -> int:
        """Ids scored."""
        head = self.model.get_output_embeddings()
        weight = getattr(head, "weight", None)
        return int(self.architecture.config.vocab_size if weight is None else weight.shape[0])

    @cached_property
    def device(self) -> torch.device:
        """Where ids go and scores come from."""
        found: torch.device = self.model.get_input_embeddings().weight.device
        return found

    @cached_property
    def dtype(self) -> torch.dtype:
        """The model's own number type."""
        found: torch.dtype = self.model.get_input_embeddings().weight.dtype
        return found

    @cached_property
    def caching(self) -> Caching:
        """What was given, or what the function that was given finds: once a model, whoever wraps it."""
        if isinstance(self._wanted_caching, Caching):
            return self._wanted_caching
        known = _CACHING.setdefault(self.model, {})
        # What a model can be told to change without being another object.
        kind = (getattr(self.model.config, "_attn_implementation", None), self.dtype, self.device, self.decoder_start)
        if kind not in known:
            known[kind] = self._wanted_caching(self)
        return known[kind]

    @cached_property
    def final_norm(self) -> nn.Module | None:
        """The normalisation before the head; None where it was not found.  Found once a model, as `caching` is."""
        if self.model not in _FINAL_NORMS:
            _FINAL_NORMS[self.model] = self._find_final_norm()
        return _FINAL_NORMS[self.model]

    def _find_final_norm(self) -> nn.Module | None:
        ids = torch.zeros((1, 2), dtype=torch.long, device=self.device)
        inputs: dict[str, Any] = {"input_ids": ids, "use_cache": False}
        if self.architecture.encodes:
            inputs["decoder_input_ids"] = ids
        with torch.inference_mode():
            return self.architecture.find_final_norm(lambda: self.model(**inputs))

    @cached_property
    def abilities(self) -> Abilities:
        """What sequences of this model can do."""
        cached = self.caching in (Caching.RAGGED, Caching.ALIGNED)
        return Abilities(
            crop=cached,
            tree=self.caching is Caching.RAGGED,
            layers=self.architecture.n_layers if self.final_norm is not None else 0,
            hidden=True,
            blocks=0 if self.architecture.blocks is None else self.architecture.n_layers,
            masked_heads=cached and self.architecture.head_outputs is not None,
            encoder=self.architecture.encodes,
            tied_embeddings=self.architecture.ties_embeddings,
            prompt_tokens=self._n_prompt_tokens if self.caching is Caching.RAGGED else 0,
        )

    @property
    def _n_prompt_tokens(self) -> int:
        """Ids from `width` on that the embedding knows besides, see `guided.hf.prompt_tokens`."""
        return int(getattr(self.model.get_input_embeddings(), "n_prompt_tokens", 0))

    @property
    def keeps_states(self) -> bool:
        """Does the cache say nothing about the beginnings of a text?"""
        return self.caching in (Caching.PIECES, Caching.STATES)

    def new_cache(self) -> RowCache:
        """An empty cache for this model."""
        kinds = self.architecture.layer_kinds
        assert kinds is not None
        return RowCache(kinds, self.architecture.encodes)

    def no_scores(self, needs: Needs) -> Scores:
        """Scores of no position, with the widths and types of this model's."""
        kind = torch.float64 if self.dtype == torch.float64 else torch.float32

        def empty(width: int) -> torch.Tensor:
            return torch.zeros((0, width), dtype=kind, device=self.device)

        width = self.architecture.config.hidden_size * max(1, len(needs.blocks))
        hidden = empty(width) if needs.hidden else None
        return Scores(empty(self.width), {layer: empty(self.width) for layer in needs.layers}, hidden)

    def require_trees(self) -> None:
        """Raise `UnsupportedError` if this model cannot score trees."""
        if self.caching is not Caching.RAGGED:
            raise UnsupportedError(
                f"{self.architecture.name} cannot score a tree of drafts in one pass",
                remedy="Check model.can.tree, and draft chains with extend and crop.",
            )

    def require_room(self, length: int) -> None:
        """Raise `LimitError` where the model has no position for the last of so many tokens."""
        limit = self.architecture.position_limit
        if limit is not None and length > limit:
            raise LimitError(
                f"{self.architecture.name} has positions for {limit} tokens, and a row would have {length}",
                remedy="Shorten the prompt, or generate less.",
            )

    def encode(self, prompts: list[tuple[int, ...]]) -> Encoded:
        """Run the encoder on prompts."""
        width = max(map(len, prompts))
        ids = self._ids([[*prompt, *[prompt[-1]] * (width - len(prompt))] for prompt in prompts])
        lengths = tuple(map(len, prompts))
        with torch.inference_mode():
            encoder = self.model.get_encoder()
            states = encoder(input_ids=ids, attention_mask=self._shown(lengths, width), return_dict=True)[0]
        self.calls.passes += 1
        self.calls.rows += len(prompts)
        self.calls.positions += sum(lengths)
        return Encoded(lengths, width, states)

    def run_cached(
        self,
        cache: RowCache,
        tokens: list[list[int]],
        positions: list[list[int]],
        mask: torch.Tensor | dict[str, torch.Tensor] | None,
        wanted: list[tuple[int, int]],
        needs: Needs,
        mask_heads: bool,
        encoded: Encoded | None,
        prompts: Sequence[int],
    ) -> Scores:
        """A pass over new tokens, one list a row of the cache, all as long (padded); ``wanted`` are (row, column).

        ``prompts`` are the lengths of the rows' prompts, an encoder-decoder model's start tokens.
        """
        ids = self._ids(tokens)
        if self.traced is not None and needs == NOTHING and isinstance(mask, torch.Tensor) and encoded is None:
            columns = cache.place.columns
            if columns is not None and not self.model.training:
                at, where = self.given(np.array(wanted, np.int64).reshape(-1, 2)), self._ids(positions)
                begin = self.before_passes
                found = self.traced.run(self.architecture, cache.layers, ids, where, mask, columns, at, begin)
                if found is not None:
                    return Scores(found, {}, None)
        inputs: dict[str, Any] = {self.architecture.cache_name: cache.given, "use_cache": True}
        if encoded is None:
            inputs["input_ids"] = ids
            inputs["attention_mask"] = self._all_shown(tokens, cache.place.past) if mask is None else mask
            if self.architecture.takes_positions:
                inputs["position_ids"] = self._ids(positions)
        else:
            inputs["decoder_input_ids"] = ids
            inputs["attention_mask"] = self._shown(encoded.lengths, encoded.width)
            states = encoded.states
            if states is None:  # Only its shape is looked at: the cache has keys and values.
                states = torch.zeros(1, 1, 1, dtype=self.dtype, device=self.device)
                states = states.expand(len(tokens), encoded.width, self.architecture.config.hidden_size)
            inputs["encoder_outputs"] = BaseModelOutput(last_hidden_state=states)
        return self._run(inputs, wanted, needs, mask_heads, self._added(needs, positions, prompts))

    def run_plain(
        self,
        tokens: list[list[int]],
        wanted: list[tuple[int, int]],
        needs: Needs = NOTHING,
        prompts: list[tuple[int, ...]] | None = None,
        lengths: Sequence[int] = (),
    ) -> Scores:
        """A pass over whole rows without any cache, padded on the right, which a causal model does not look at.

        ``prompts`` are an encoder's; ``lengths`` those of the rows' prompts, where vectors are added behind them.
        """
        inputs: dict[str, Any] = {"use_cache": False}
        if prompts is None:
            inputs["input_ids"] = self._ids(tokens)
            inputs["attention_mask"] = self._all_shown(tokens, 0)
        else:
            encoded = self.encode(prompts)
            inputs["decoder_input_ids"] = self._ids(tokens)
            inputs["attention_mask"] = self._shown(encoded.lengths, encoded.width)
            inputs["encoder_outputs"] = BaseModelOutput(last_hidden_state=encoded.states)
        positions = [list(range(len(row))) for row in tokens]
        return self._run(inputs, wanted, needs, bool(needs.masked_heads), self._added(needs, positions, lengths))

    def _added(self, needs: Needs, positions: list[list[int]], prompts: Sequence[int]) -> list[torch.Tensor]:
        """What each of `Needs.added` adds at each token of a pass, by its position."""
        if not needs.added:
            return []
        at = self._ids(positions)
        found: list[torch.Tensor] = []
        for each in needs.added:
            vectors = each.vectors.to(self.device, self.dtype)
            width = self.architecture.config.hidden_size
            if vectors.shape[-1] != width:
                raise GuidedError(
                    f"a vector of {vectors.shape[-1]} numbers is added to states of {width}",
                    where=self.architecture.name,
                    remedy="Make vectors with the model that is steered.",
                )
            amounts = vectors.expand(*at.shape, -1) if vectors.dim() == 1 else vectors[at.clamp(max=len(vectors) - 1)]
            shown = torch.ones_like(at, dtype=torch.bool) if vectors.dim() == 1 else at < len(vectors)
            if each.from_prompt_end:
                shown = shown & (at >= self._ids([[length - 1] for length in prompts]))
            found.append(amounts * shown[..., None])
        return found

    def _run(
        self,
        inputs: dict[str, Any],
        wanted: list[tuple[int, int]],
        needs: Needs,
        mask_heads: bool,
        added: Sequence[torch.Tensor],
    ) -> Scores:
        places = torch.tensor(wanted, dtype=torch.long, device=self.device).reshape(-1, 2)
        was_training = self.model.training
        if was_training:
            raise GuidedError(
                f"the {self.architecture.name} is in training mode, where dropout makes its scores random",
                remedy="Call model.eval() first.",
            )
        norm = self.final_norm if needs.layers else None
        if self.before_passes is not None:
            self.before_passes()
        return run_pass(self.architecture, norm, Pass(inputs, places[:, 0], places[:, 1], needs, mask_heads, added))

    def mask(
        self, past: list[int], new: int, depths: list[list[int]], ancestors: torch.Tensor | None
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        """Which columns each new token sees, for rows with ``past`` tokens before them.

        ``ancestors`` (``bool[rows, new, new]``) says which new tokens see which, and ``depths`` their positions;
        without it each sees those before it.
        """
        kinds = self.architecture.mask_kinds or (MaskKind("full_attention"),)
        width = max(past) + new
        positions: Any
        at: Any
        allowed: Any
        if ancestors is None:
            positions = np.array(past, np.int64)[:, None] + np.arange(new)
            at = np.arange(width)[None, None, :]
            allowed = at <= positions[:, :, None]
        else:
            before = torch.tensor(past, device=self.device)[:, None, None]
            column = torch.arange(width, device=self.device)[None, None, :]
            own = column - before  # the new token that a column holds, negative for old ones
            positions = torch.tensor(depths, device=self.device)
            inside = (own >= 0) & (own < new)
            index = own.clamp(0, new - 1).expand(len(past), new, width)
            allowed = torch.where(inside, ancestors.gather(2, index), own < 0)
            at = torch.where(inside[:, 0], positions.gather(1, index[:, 0]), column[:, 0])[:, None, :]
        masks: dict[str, torch.Tensor] = {}
        for kind in kinds:
            shown = allowed
            if kind.window is not None:
                shown = shown & (at > positions[:, :, None] - kind.window)
            if kind.chunk is not None:
                shown = shown & (at // kind.chunk == positions[:, :, None] // kind.chunk)
            whole = shown[:, None]
            masks[kind.name] = self._as_given(whole if ancestors is not None else self.given(whole))
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _as_given(self, shown: torch.Tensor) -> torch.Tensor:
        """The mask as the attention implementation takes it: truth values, or what is added to the weights."""
        if self.model.config._attn_implementation == "sdpa":
            return shown
        least = torch.finfo(self.dtype).min
        return torch.zeros(shown.shape, dtype=self.dtype, device=self.device).masked_fill_(~shown, least)

    def _all_shown(self, tokens: list[list[int]], past: int) -> torch.Tensor | None:
        """A mask that hides nothing, for the sake of models that take a padding id at an end for padding."""
        pad = getattr(self.architecture.config, "pad_token_id", None)
        kinds = self.architecture.layer_kinds or ()
        if any(kind.n_states for kind in kinds):  # such layers multiply by it what is new, and take no wider one
            return None
        if pad is None or all(pad not in (row[0], row[-1]) for row in tokens):
            return None
        return torch.ones((len(tokens), past + len(tokens[0])), dtype=torch.long, device=self.device)

    def _shown(self, lengths: tuple[int, ...], width: int) -> torch.Tensor:
        column = torch.arange(width, device=self.device)
        return (column[None] < torch.tensor(lengths, device=self.device)[:, None]).long()

    def _ids(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        return self.given(np.array(rows, np.int64))

    def given(self, values: NDArray[Any]) -> torch.Tensor:
        """An array as a tensor where the model is.

        Each operation on tensors gives the interpreter up, and so does each of them that is dropped.  With other
        threads at work whoever lays a pass out with tensors waits for them every time.
        """
        found = torch.from_numpy(values)
        return found if self.device.type == "cpu" else found.to(self.device)
