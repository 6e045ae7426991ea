"""Training rows of a masked denoiser: prompts read causally, and noised copies of their answers that see both ways.

A copy is the last token of its prompt and a canvas, the answer with end tokens to some length.  It sees its prompt, and
all of itself.  Prompts see no canvas, so copies of one answer, and questions about one context, share their prompt.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "train_nano"))

from corpus import FAMILIAR_WORDS_UNTIL, Task, tasks

__all__ = ["ROW_LENGTH", "Batch", "Noised", "batches", "encode"]

ROW_LENGTH = 384
POOL = 96
COPIES = 2
"""Noised copies of each answer: the second has the noise that the first has not, so their losses vary together less."""
LEAST_NOISE = 0.1
"""The share of masks below which the weight of a masked token, one over that share, rises no more."""
TAIL_WEIGHT = 0.2
"""Of end tokens after the first: easy, and there are many."""
BLOCK_SHARE = 0.35
"""Copies whose noise is that of decoding from left to right: known up to a place, some noise, all masked after it."""
BLOCK_LENGTH = 32
MOST_TAIL = 96


@dataclass(frozen=True)
class Encoded:
    """A task as tokens; per token its pair (0: context), copy (0: prompt), position, target (-1: none) and weight."""

    tokens: np.ndarray
    pair: np.ndarray
    copy: np.ndarray
    position: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    answered: int
    """Answer tokens, the first end token counted, over all copies."""


@dataclass(frozen=True)
class Batch:
    """``tokens``, ``positions`` and the task (-1: none), pair and copy of each, ``[B, T]``; flat indices ``predicting``
    of ``targets``; their ``weights``; and how many ``tasks`` these are, a tensor of one."""

    tokens: torch.Tensor
    positions: torch.Tensor
    task: torch.Tensor
    pair: torch.Tensor
    copy: torch.Tensor
    predicting: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor
    tasks: torch.Tensor

    def to(self, device: torch.device) -> Batch:
        """The batch on a device, its integers as wide as indices are; between processes they are narrow."""
        parts = [getattr(self, one.name).to(device) for one in fields(self)]
        return Batch(*(part if part.is_floating_point() else part.long() for part in parts))

    def mask(self) -> torch.Tensor:
        """Who sees whom, ``bool[B, 1, T, T]``: made where the batch is, because it is 300 times as large."""
        same_task = self.task[:, :, None] == self.task[:, None, :]
        same_pair = self.pair[:, :, None] == self.pair[:, None, :]
        earlier = torch.ones(ROW_LENGTH, ROW_LENGTH, dtype=torch.bool, device=self.task.device).tril()
        of_prompt = (self.copy[:, None, :] == 0) & ((self.pair[:, None, :] == 0) | same_pair) & earlier
        of_copy = (self.copy[:, None, :] > 0) & same_pair & (self.copy[:, :, None] == self.copy[:, None, :])
        return (same_task & (of_prompt | of_copy))[:, None]


class Noised(torch.utils.data.IterableDataset[Batch]):
    """Batches without end; every worker of a loader has a stream of its own."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, rows: int, mask_id: int, seed: int, step: int, seen: int
    ) -> None:
        """``seen`` tasks were used up in ``step`` steps: what follows is another stream, from that spread on."""
        self.tokenizer, self.rows, self.mask_id = tokenizer, rows, mask_id
        self.seed, self.step, self.seen = seed, step, seen

    def __iter__(self) -> Iterator[Batch]:
        torch.set_num_threads(1)
        worker = torch.utils.data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        seed = int(np.random.SeedSequence([self.seed, self.step, number]).generate_state(1)[0])
        stream = tasks(seed, start=FAMILIAR_WORDS_UNTIL + self.seen // workers)
        return batches(stream, self.tokenizer, self.rows, self.mask_id, seed)


def _masked(rng: np.random.Generator, length: int, share: float) -> np.ndarray:
    """Which positions of a canvas are masked, at least one of them."""
    masked = np.zeros(length, bool)
    if rng.random() < BLOCK_SHARE:
        start = int(rng.integers(length))
        masked[start:] = rng.random(length - start) < share
        masked[start + BLOCK_LENGTH :] = True
    else:
        masked = rng.random(length) < share
    if not masked.any():
        masked[rng.integers(length)] = True
    return masked


def _tail(rng: np.random.Generator) -> int:
    """How many end tokens follow the first: mostly few, sometimes many."""
    return int(rng.integers(MOST_TAIL)) if rng.random() < 0.15 else min(int(rng.exponential(12)), MOST_TAIL)


def encode(
    tokenizer: PreTrainedTokenizerFast, task: Task, rng: np.random.Generator, mask_id: int, limit: int = ROW_LENGTH
) -> Encoded | None:
    """The task in tokens, with as many noised answers as ``limit`` tokens hold; None where not one fits."""
    texts = [task.context, *(text for pair in task.pairs for text in pair)]
    pieces = tokenizer(texts, add_special_tokens=False)["input_ids"]
    context = pieces[0]
    tokens, pair, copy = list(context), [0] * len(context), [0] * len(context)
    position, target, weight = list(range(len(context))), [-1] * len(context), [0.0] * len(context)
    answered = 0
    for index in range(len(task.pairs)):
        query, answer = pieces[2 * index + 1], [*pieces[2 * index + 2], tokenizer.eos_token_id]
        before = len(context) + len(query) - 1
        share, added = rng.random(), False
        for number in range(COPIES):
            canvas = np.array([*answer, *[tokenizer.eos_token_id] * _tail(rng)])
            needed = len(canvas) + 1 + (0 if added else len(query) - 1)
            if len(tokens) + needed > limit:
                break
            if not added:
                tokens += query[:-1]
                pair += [index + 1] * (len(query) - 1)
                copy += [0] * (len(query) - 1)
                position += range(len(context), before)
                target += [-1] * (len(query) - 1)
                weight += [0.0] * (len(query) - 1)
                added = True
            masked = _masked(rng, len(canvas), (share + number / COPIES) % 1.0)
            each = np.where(masked, 1 / max(LEAST_NOISE, masked.mean()), 0.0)
            each[len(answer) :] *= TAIL_WEIGHT
            tokens += [query[-1], *np.where(masked, mask_id, canvas)]
            pair += [index + 1] * (len(canvas) + 1)
            copy += [number + 1] * (len(canvas) + 1)
            position += range(before, before + len(canvas) + 1)
            target += [*np.where(masked, canvas, -1), -1]
            weight += [*each, 0.0]
            answered += len(answer)
    if not answered:
        return None
    return Encoded(*map(np.array, (tokens, pair, copy, position, target, weight)), answered)


def batches(
    stream: Iterator[Task], tokenizer: PreTrainedTokenizerFast, rows: int, mask_id: int, seed: int
) -> Iterator[Batch]:
    """Endless batches of ``rows`` packed rows: of the tasks looked at, the longest that still fits goes in."""
    rng = np.random.default_rng(seed)
    pool: list[Encoded] = []
    while True:
        filled: list[list[Encoded]] = []
        for _ in range(rows):
            while len(pool) < POOL:
                if (encoded := encode(tokenizer, next(stream), rng, mask_id)) is not None:
                    pool.append(encoded)
            row, room = [pool.pop(0)], ROW_LENGTH
            room -= len(row[0].tokens)
            while fitting := [task for task in pool if len(task.tokens) <= room]:
                best = max(fitting, key=lambda task: len(task.tokens))
                pool = [task for task in pool if task is not best]
                row.append(best)
                room -= len(best.tokens)
            filled.append(row)
        yield _assembled(filled, tokenizer.pad_token_id)


def _assembled(filled: list[list[Encoded]], pad: int) -> Batch:
    shape = (len(filled), ROW_LENGTH)
    tokens, positions = np.full(shape, pad), np.zeros(shape, np.int64)
    task_of, pair_of, copy_of = np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    target, weight = np.full(shape, -1), np.zeros(shape, np.float32)
    for index, row in enumerate(filled):
        start = 0
        for number, task in enumerate(row):
            part = slice(start, start + len(task.tokens))
            tokens[index, part], positions[index, part] = task.tokens, task.position
            task_of[index, part], pair_of[index, part], copy_of[index, part] = number, task.pair, task.copy
            target[index, part], weight[index, part] = task.target, task.weight
            start += len(task.tokens)
    row_of, column_of = np.nonzero(target >= 0)
    answered = sum(task.answered for row in filled for task in row)
    grids = (torch.from_numpy(each.astype(np.int16)) for each in (tokens, positions, task_of, pair_of, copy_of))
    return Batch(
        *grids,
        torch.from_numpy((row_of * ROW_LENGTH + column_of).astype(np.int32)),
        torch.from_numpy(target[row_of, column_of].astype(np.int16)),
        torch.from_numpy(weight[row_of, column_of] / np.float32(answered)),
        torch.tensor(sum(map(len, filled))),
    )
