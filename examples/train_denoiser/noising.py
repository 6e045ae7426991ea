"""Training rows of a masked denoiser: prompts read causally, and noised copies of their answers that see both ways.

A copy is the last token of its prompt and a canvas, the answer with end tokens to some length.  It sees its prompt, and
all of itself.  Prompts see no canvas, so copies of one answer, and questions about one context, share their prompt.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "train_nano"))

from corpus import FAMILIAR_WORDS_UNTIL, Task, tasks

__all__ = ["ROW_LENGTH", "Batch", "Rows", "assembled", "chunk", "chunk_of", "encode", "packed"]

ROW_LENGTH = 384
POOL = 96
ROWS_OF_A_CHUNK = 1_280
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
class Rows:
    """Packed rows as small integers, as processes send them, int16[B, T]: of every place its token, its position, its
    task in the row (-1: none), pair and copy; flat indices ``predicting`` of ``targets``; their ``weights``."""

    tokens: np.ndarray
    positions: np.ndarray
    task: np.ndarray
    pair: np.ndarray
    copy: np.ndarray
    predicting: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    n_tasks: int


@dataclass(frozen=True)
class Batch:
    """Rows as a model takes them; ``mask`` bool[B, 1, T, T] says who sees whom."""

    tokens: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    predicting: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor


def assembled(rows: Rows, device: torch.device) -> Batch:
    """The rows with their mask, on a device: made there because it is 300 times as large."""
    tokens, positions, task, pair, copy, predicting, targets = (
        torch.from_numpy(array).to(device).long()
        for array in (rows.tokens, rows.positions, rows.task, rows.pair, rows.copy, rows.predicting, rows.targets)
    )
    same_task = task[:, :, None] == task[:, None, :]
    same_pair = pair[:, :, None] == pair[:, None, :]
    earlier = torch.ones(ROW_LENGTH, ROW_LENGTH, dtype=torch.bool, device=device).tril()
    of_prompt = (copy[:, None, :] == 0) & ((pair[:, None, :] == 0) | same_pair) & earlier
    of_copy = (copy[:, None, :] > 0) & same_pair & (copy[:, :, None] == copy[:, None, :])
    mask = (same_task & (of_prompt | of_copy))[:, None]
    return Batch(tokens, positions, mask, predicting, targets, torch.from_numpy(rows.weights).to(device))


def chunk_of(rows: int) -> int:
    """The steps of a chunk: many tasks for each of those that are looked at and left over at its end."""
    return max(1, ROWS_OF_A_CHUNK // rows)


def chunk(tokenizer: PreTrainedTokenizerFast, mask_id: int, seed: int, rows: int, first: int) -> list[Rows]:
    """The rows of the steps from ``first``, of a stream of their own that has its full spread."""
    stream = tasks(f"{seed}/{first}", start=FAMILIAR_WORDS_UNTIL)
    return list(islice(packed(stream, tokenizer, rows, mask_id, (seed, first)), chunk_of(rows)))


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


def packed(
    stream: Iterator[Task], tokenizer: PreTrainedTokenizerFast, rows: int, mask_id: int, seed: tuple[int, ...]
) -> Iterator[Rows]:
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
        yield _laid_out(filled, tokenizer.pad_token_id)


def _laid_out(filled: list[list[Encoded]], pad: int) -> Rows:
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
    grids = (each.astype(np.int16) for each in (tokens, positions, task_of, pair_of, copy_of))
    return Rows(
        *grids,
        (row_of * ROW_LENGTH + column_of).astype(np.int32),
        target[row_of, column_of].astype(np.int16),
        weight[row_of, column_of] / np.float32(answered),
        sum(map(len, filled)),
    )
