"""One forward pass of a model of transformers, from tensors of ids to the scores at the positions that were asked for.

The head reads only those positions: a hook on the decoder narrows its output before the model's own code goes on with
it, so whatever a model does to its logits (scaling, soft caps, biases) is done, and layers read early go the same way.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from guided.errors import GuidedError
from guided.hf.architecture import Architecture
from guided.hf.turns import Turns
from guided.lm import Needs, Scores

__all__ = ["Pass", "run_pass", "turn"]

# Hooks belong to the module, so passes of one module take turns, whoever wrapped it, in the order of asking.
_LOCKS: weakref.WeakKeyDictionary[nn.Module, Turns] = weakref.WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


@dataclass
class Pass:
    """What goes into a pass."""

    inputs: dict[str, Any]
    """Arguments of the model's ``forward``."""
    rows: torch.Tensor
    """``int64[k]``: with ``columns``, the positions whose scores are asked for."""
    columns: torch.Tensor
    """``int64[k]``."""
    needs: Needs
    mask_heads: bool
    """Whether `Needs.masked_heads` holds in this pass."""
    added: Sequence[torch.Tensor] = ()
    """For each of `Needs.added` what it adds at each token of the pass, ``[rows, columns, d]``."""


def run_pass(architecture: Architecture, final_norm: nn.Module | None, asked: Pass) -> Scores:
    """Run the model and give the scores of the k positions, under inference mode: copy before handing them out."""
    needs = asked.needs
    n_layers = architecture.n_layers
    numbers = {layer: layer if layer >= 0 else layer + n_layers + 1 for layer in needs.layers}
    early = sorted({number for number in numbers.values() if number < n_layers})
    captured: dict[int, torch.Tensor] = {}
    hidden: list[torch.Tensor] = []

    def narrow(module: nn.Module, args: Any, output: Any) -> Any:
        last = output[0]
        rows, columns = asked.rows.to(last.device), asked.columns.to(last.device)
        wanted = last[rows, columns]
        if needs.blocks:
            parts = [captured[number].to(last.device)[rows, columns] for number in needs.blocks]
            hidden.append(torch.cat(parts, dim=-1))
        else:
            hidden.append(wanted)
        for number in early:
            states = captured[number].to(last.device)[rows, columns]
            if needs.final_norm and final_norm is not None:
                states = final_norm(states)
            wanted = torch.cat([wanted, states])
        if isinstance(output, tuple):
            return (wanted[None], *output[1:])
        output.last_hidden_state = wanted[None]
        return output

    with turn(architecture.model), torch.inference_mode(), ExitStack() as hooks:
        for each, amounts in zip(needs.added, asked.added, strict=True):
            hooks.enter_context(_added(architecture, each.block, amounts))
        for number in {*early, *needs.blocks}:
            hooks.enter_context(_captured(architecture, number, captured))
        if asked.mask_heads:
            hooks.enter_context(_masked_heads(architecture, needs.masked_heads))
        hook = architecture.decoder.register_forward_hook(narrow)
        hooks.callback(hook.remove)
        logits = architecture.model(**asked.inputs, return_dict=True).logits[0]
        if logits.dtype not in (torch.float32, torch.float64):
            logits = logits.float()
        k = asked.rows.numel()
        parts = {number: logits[k * (at + 1) : k * (at + 2)] for at, number in enumerate(early)}
        layers = {layer: parts.get(number, logits[:k]) for layer, number in numbers.items()}
        return Scores(logits[:k], layers, hidden[0].to(logits.dtype) if needs.hidden else None)


@contextmanager
def turn(model: nn.Module) -> Iterator[None]:
    """The right to run a model while nobody else has hooks in it."""
    with _LOCKS_LOCK:
        lock = _LOCKS.setdefault(model, Turns())
    with lock:
        yield


@contextmanager
def _captured(architecture: Architecture, number: int, into: dict[int, torch.Tensor]) -> Iterator[None]:
    """Keep what block ``number`` gives, or what the first block is given where that is 0."""
    assert architecture.blocks is not None

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        into[0] = args[0] if args else kwargs["hidden_states"]

    def after(module: nn.Module, args: Any, output: Any) -> None:
        into[number] = output[0] if isinstance(output, tuple) else output

    if number == 0:
        hook = architecture.blocks[0].register_forward_pre_hook(before, with_kwargs=True)
    else:
        hook = architecture.blocks[number - 1].register_forward_hook(after)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def _added(architecture: Architecture, number: int, amounts: torch.Tensor) -> Iterator[None]:
    """Add to what block ``number`` gives, or to what the first block is given where that is 0."""
    assert architecture.blocks is not None

    def more(states: torch.Tensor) -> torch.Tensor:
        return states + amounts.to(states.device, states.dtype)

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if args:
            return (more(args[0]), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": more(kwargs["hidden_states"])}

    def after(module: nn.Module, args: Any, output: Any) -> Any:
        return (more(output[0]), *output[1:]) if isinstance(output, tuple) else more(output)

    if number == 0:
        hook = architecture.blocks[0].register_forward_pre_hook(before, with_kwargs=True)
    else:
        hook = architecture.blocks[number - 1].register_forward_hook(after)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def _masked_heads(architecture: Architecture, heads: Sequence[tuple[int, int]]) -> Iterator[None]:
    """Zero what these heads hand to the output projection of their block."""
    parts = architecture.head_outputs
    assert parts is not None
    by_block: dict[int, list[int]] = {}
    for block, head in heads:
        if not 0 <= block < len(parts) or not 0 <= head < parts[block][1]:
            raise GuidedError(
                f"{architecture.name} has no attention head ({block}, {head})",
                remedy=f"Blocks are 0 to {len(parts) - 1}, heads of the first block 0 to {parts[0][1] - 1}.",
            )
        by_block.setdefault(block, []).append(head)

    def zero(of_block: list[int], width: int) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...]]:
        def hook(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            states = args[0].clone()
            for head in of_block:
                states[..., head * width : (head + 1) * width] = 0
            return (states, *args[1:])

        return hook

    with ExitStack() as hooks:
        for block, of_block in by_block.items():
            projection, _, width = parts[block]
            hooks.callback(projection.register_forward_pre_hook(zero(of_block, width)).remove)
        yield
