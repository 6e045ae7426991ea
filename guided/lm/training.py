"""`descend`: the loop of trainers that draw whole texts, whatever they minimise."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

__all__ = ["descend"]


def descend(
    network: nn.Module,
    n: int,
    loss_of: Callable[[list[int]], torch.Tensor],
    *,
    epochs: float,
    batch: int,
    rate: float,
    betas: tuple[float, float],
    decay: float,
    rising: float,
    memory: float,
    seed: int,
    done: Callable[[int, float], bool] | None,
) -> float:
    """Train the parameters of a network by AdamW; the last averaged loss, of which each step keeps ``memory``.

    ``loss_of`` is given ``batch`` numbers below ``n``, every one once before any comes again.  The rate rises over the
    share ``rising`` of the steps, and falls linearly to 0 over all.  ``done`` is told each step and its loss, and stops
    the training by returning True.
    """
    network.train()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, betas=betas, weight_decay=decay)
    total = max(1, round(epochs * n / batch))
    order: list[int] = []
    averaged = 0.0
    for step in range(total):
        while len(order) < batch:
            order += torch.randperm(n, generator=generator).tolist()
        chosen, order = order[:batch], order[batch:]
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / (rising * total + 1), 1.0 - step / total)
        found = loss_of(chosen)
        optimizer.zero_grad(set_to_none=True)
        found.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        averaged = found.item() if step == 0 else memory * averaged + (1.0 - memory) * found.item()
        if done is not None and done(step, averaged):
            break
    network.eval()
    return averaged
