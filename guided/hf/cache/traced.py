"""`TracedPasses`: a pass over the rows of a cache as one operation, while which other threads have the interpreter.

By the model's own code a pass of a small model is some hundred operations, each of which gives the interpreter up and
asks for it again.  Beside threads that fill masks or compile grammars it waits for them each time, and cores that are
free stay so.  `torch.jit.trace` records the operations of one pass; the recording makes the same ones and asks for the
interpreter once.  Nothing is fused or reordered, so its scores are the same to the bit.

A recording is kept only of a model that never looks at a value to go on, and only once passes of other shapes than the
recorded one have given the same bits.  What it does not know, the model's own code does: hooks, layers read early,
encoders, states.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.cache_utils import Cache, CacheLayerMixin

from guided.hf.architecture import Architecture
from guided.hf.cache.row_layers import RowLayer
from guided.hf.forward import Pass, run_pass, turn
from guided.lm import NOTHING

__all__ = ["TracedPasses"]

COMPARED = 3
"""Passes of different shapes that are made twice and compared before the recording is trusted."""


class _Given(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """A layer whose keys and values, columns for the new ones included, are arguments of the pass."""

    is_croppable = True

    def __init__(
        self, buffers: tuple[torch.Tensor, torch.Tensor], first: int, width: int, columns: torch.Tensor
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys, self.values = (each[first : first + columns.shape[0], :, :width] for each in buffers)
        self._columns = columns
        self._rows = torch.arange(columns.shape[0])[:, None]
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """There is nothing to allocate."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the new states; return all."""
        assert self.keys is not None and self.values is not None
        self.keys[self._rows, :, self._columns] = key_states.transpose(1, 2)
        self.values[self._rows, :, self._columns] = value_states.transpose(1, 2)
        return self.keys, self.values

    def get_mask_sizes(self, query_length: int | torch.Tensor) -> tuple[int, int]:
        """As `RowLayer`."""
        assert self.keys is not None
        return self.keys.shape[2], 0

    def get_seq_length(self) -> int:
        """As `RowLayer`."""
        assert self.keys is not None
        return self.keys.shape[2] - self._columns.shape[1]

    def get_max_length(self) -> int:
        """No limit."""
        return -1

    def get_max_cache_shape(self) -> int:
        """What older releases call it."""
        return -1


class _Recorded(nn.Module):
    """A pass whose arguments are all tensors."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.model = architecture.model
        self._architecture = architecture

    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor,
        columns: torch.Tensor,
        wanted: torch.Tensor,
        before: torch.Tensor,
        *stored: torch.Tensor,
    ) -> torch.Tensor:
        """The scores at the wanted (row, column) pairs; ``stored`` are the buffers of keys and values, layer by layer.

        The first slot of the pass is the length of ``before``: a recording knows no other numbers than lengths.
        """
        first, width = before.shape[0], mask.shape[-1]
        layers: list[Any] = [
            _Given(buffers, first, width, columns) for buffers in zip(stored[::2], stored[1::2], strict=True)
        ]
        inputs: dict[str, Any] = {
            "input_ids": ids, "attention_mask": mask, self._architecture.cache_name: Cache(layers=layers),
            "use_cache": True,
        }  # fmt: skip
        if self._architecture.takes_positions:
            inputs["position_ids"] = positions
        return run_pass(self._architecture, None, Pass(inputs, wanted[:, 0], wanted[:, 1], NOTHING, False)).logits


class TracedPasses:
    """Recordings of a model's passes, made when they are first asked for, and whether they may be used.

    Passes over one new token a row have a recording of their own, as models have ways of their own for them.
    """

    _known: ClassVar[weakref.WeakKeyDictionary[nn.Module, dict[Any, TracedPasses]]] = weakref.WeakKeyDictionary()

    @classmethod
    def of(cls, model: Any) -> TracedPasses:
        """Those of a model as it is now, whoever wraps it."""
        kind = (getattr(model.config, "_attn_implementation", None), model.dtype, model.device)
        return cls._known.setdefault(model, {}).setdefault(kind, TracedPasses(model))

    def __init__(self, model: nn.Module) -> None:
        self._recordings = {single: _Recording() for single in (True, False)}
        # Not the model: it is the key that all this lives by.
        self._hooks = [hooks for part in model.modules() for hooks in (part._forward_hooks, part._forward_pre_hooks)]

    @property
    def trusted(self) -> tuple[bool, bool]:
        """Whether passes over one token a row go without the model's own code, and those over several."""
        return self._recordings[True].is_trusted, self._recordings[False].is_trusted

    @property
    def refused(self) -> str:
        """Why the model's own code makes passes, one token a row or more; empty as long as it need not."""
        return self._recordings[True].refused or self._recordings[False].refused

    def run(
        self,
        architecture: Architecture,
        layers: Sequence[Any],
        ids: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor,
        columns: torch.Tensor,
        wanted: torch.Tensor,
        begin: Callable[[], None] | None,
    ) -> torch.Tensor | None:
        """The scores at ``wanted``, ``int64[k, 2]``, whose keys and values are stored then; None where it cannot.

        ``columns`` say where the new tokens go, and all layers must have room for them, as `RowCache` has.
        ``begin`` is called when nothing is left to do but the recorded operations, and not where there are none.
        """
        recording = self._recordings[ids.shape[1] == 1]
        if recording.refused or any(type(layer) is not RowLayer or layer.stored is None for layer in layers):
            return None
        with turn(architecture.model), torch.inference_mode():
            if any(self._hooks):
                return None
            # Whole buffers, and not a view for each: an object of a tensor that goes gives the interpreter up.
            stored = [states for layer in layers for states in layer.buffers(columns.shape[1])]
            before = _nothing(layers[0].place.first)
            return recording.scores(architecture, (ids, positions, mask, columns, wanted, before, *stored), begin)


@lru_cache(maxsize=256)
def _nothing(length: int) -> torch.Tensor:
    """A tensor of a length that holds nothing."""
    return torch.empty((length, 0))


class _Recording:
    """One recording, and the passes that it was compared with."""

    def __init__(self) -> None:
        self.refused = ""
        self._module: Any = None
        self._shapes: set[tuple[int, ...]] = set()

    @property
    def is_trusted(self) -> bool:
        """Were enough passes the same?"""
        return not self.refused and len(self._shapes) >= COMPARED

    def scores(
        self, architecture: Architecture, given: tuple[torch.Tensor, ...], begin: Callable[[], None] | None
    ) -> torch.Tensor | None:
        """Those of a pass; None where there can be no recording."""
        if self._module is None and not self._record(_Recorded(architecture), given):
            return None
        if begin is not None:
            begin()
        found: torch.Tensor = self._module(*given)
        if self.is_trusted:
            return found
        own: torch.Tensor = _Recorded(architecture)(*given)
        ids, mask = given[0], given[2]
        if not torch.equal(own, found):
            self.refused = f"scores of {ids.shape[0]} rows of {ids.shape[1]} tokens are not the same"
        self._shapes.add((*ids.shape, mask.shape[-1]))
        return own

    def _record(self, recorded: _Recorded, given: tuple[torch.Tensor, ...]) -> bool:
        """Make the recording; False, and why, where that cannot be."""
        try:
            with _Reading() as reading:
                recorded(*given)
            if reading.found:
                self.refused = f"it goes by what {', '.join(sorted(reading.found))} finds"
                return False
            with warnings.catch_warnings():
                # It is deprecated, and it warns where a model looks at a shape: those that change are compared.
                warnings.simplefilter("ignore")
                # Arguments are written to, so it may not be run again to be compared with itself.
                self._module = torch.jit.trace(recorded.eval(), given, check_trace=False)  # type: ignore[no-untyped-call]
        except Exception as error:  # What a model does that cannot be recorded is told in any kind of error.
            self.refused = f"{type(error).__name__}: {error}"
        return not self.refused


class _Reading(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operations by which Python, or a shape, comes to depend on the values of a tensor."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        packet, kwargs = func.overloadpacket, kwargs or {}
        tags = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & set(func.tags)
        by_places = packet is torch.ops.aten.index and all(each is None or each.dtype == torch.long for each in args[1])
        # A list or an array of a tensor asks for its signs first, and is no operation itself.
        if (tags and not by_places) or packet is torch.ops.aten.resolve_neg:
            self.found.add(str(packet))
        with self:  # In inference mode operations come before they are taken apart.
            found = func.decompose(*args, **kwargs)
        return func(*args, **kwargs) if found is NotImplemented else found
