"""Token rows for training: several tasks a row, and a mask under which no task sees another.

The pairs of one task share its context and see only that: with the positions continuing from the context for each of
them, every pair gets the very hidden states it would get in a prompt of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from corpus import Task
from transformers import PreTrainedTokenizerFast

__all__ = ["ROW_LENGTH", "Batch", "Rows", "assembled", "batches", "encode", "packed"]

ROW_LENGTH = 384
POOL = 96
"""Tasks looked at when a row is filled: the longest that still fits goes in, so that few places stay empty."""


@dataclass(frozen=True)
class Encoded:
    """A task as tokens; per token its pair (0: context) and its position, and whether it is part of an answer."""

    tokens: np.ndarray
    pair: np.ndarray
    position: np.ndarray
    answer: np.ndarray


@dataclass(frozen=True)
class Rows:
    """Packed rows as small integers, int16[B, T], as processes send them: of every place its token, its position, the
    number of its task in the row (-1: none) and of its pair in the task (0: context); ``answer`` bool[B, T]."""

    tokens: np.ndarray
    positions: np.ndarray
    task_of: np.ndarray
    pair_of: np.ndarray
    answer: np.ndarray
    tasks: int


@dataclass(frozen=True)
class Batch:
    """``tokens``, ``positions`` int64[B, T]; ``mask`` bool[B, 1, T, T]; flat indices ``predicting`` of ``targets``."""

    tokens: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    predicting: torch.Tensor
    targets: torch.Tensor
    tasks: int


def encode(tokenizer: PreTrainedTokenizerFast, task: Task, limit: int = ROW_LENGTH) -> Encoded | None:
    """The task in tokens, with as many of its pairs as ``limit`` tokens hold; None where not even one fits."""
    texts = [task.context, *(text for pair in task.pairs for text in pair)]
    pieces = tokenizer(texts, add_special_tokens=False)["input_ids"]
    context = pieces[0]
    tokens, pair, position, answer = (
        list(context),
        [0] * len(context),
        list(range(len(context))),
        [False] * len(context),
    )
    for index in range(len(task.pairs)):
        query, reply = pieces[2 * index + 1], [*pieces[2 * index + 2], tokenizer.eos_token_id]
        if len(tokens) + len(query) + len(reply) > limit:
            break
        tokens += query + reply
        pair += [index + 1] * (len(query) + len(reply))
        position += range(len(context), len(context) + len(query) + len(reply))
        answer += [False] * len(query) + [True] * len(reply)
    if True not in answer:
        return None
    return Encoded(np.array(tokens), np.array(pair), np.array(position), np.array(answer))


def packed(stream: Iterator[Task], tokenizer: PreTrainedTokenizerFast, rows: int) -> Iterator[Rows]:
    """Endless batches of ``rows`` packed rows."""
    pool: list[Encoded] = []
    while True:
        filled: list[list[Encoded]] = []
        for _ in range(rows):
            while len(pool) < POOL:
                if (encoded := encode(tokenizer, next(stream))) is not None:
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


def batches(stream: Iterator[Task], tokenizer: PreTrainedTokenizerFast, rows: int) -> Iterator[Batch]:
    """The same as a model takes them."""
    return map(assembled, packed(stream, tokenizer, rows))


def _laid_out(filled: list[list[Encoded]], pad: int) -> Rows:
    shape = (len(filled), ROW_LENGTH)
    tokens, positions = np.full(shape, pad, np.int16), np.zeros(shape, np.int16)
    task_of, pair_of = np.full(shape, -1, np.int16), np.zeros(shape, np.int16)
    answer = np.zeros(shape, bool)
    for index, row in enumerate(filled):
        start = 0
        for number, task in enumerate(row):
            part = slice(start, start + len(task.tokens))
            tokens[index, part], positions[index, part] = task.tokens, task.position
            task_of[index, part], pair_of[index, part], answer[index, part] = number, task.pair, task.answer
            start += len(task.tokens)
    return Rows(tokens, positions, task_of, pair_of, answer, sum(map(len, filled)))


def assembled(rows: Rows, device: torch.device | str = "cpu") -> Batch:
    """The rows with their mask, on a device."""
    tokens, positions, task_of, pair_of, answer = (
        torch.from_numpy(array).to(device)
        for array in (rows.tokens, rows.positions, rows.task_of, rows.pair_of, rows.answer)
    )
    same_task = task_of[:, :, None] == task_of[:, None, :]
    visible = (pair_of[:, None, :] == 0) | (pair_of[:, :, None] == pair_of[:, None, :])
    causal = torch.ones(ROW_LENGTH, ROW_LENGTH, dtype=torch.bool, device=device).tril()
    row_of, column_of = answer.nonzero(as_tuple=True)
    tokens = tokens.long()
    return Batch(
        tokens,
        positions.long(),
        (same_task & visible & causal)[:, None],
        row_of * ROW_LENGTH + column_of - 1,
        tokens[row_of, column_of],
        rows.tasks,
    )
