"""Which attention heads of the model of reviews carry a context's value into the answer, for DeCoRe.

A head's score is how often, where the answer's value is next, it attends most to that value in the context: the
retrieval score of Wu et al. 2024 (arXiv 2404.15574), as ``examples/retrieval_heads.py`` has it for any model, on the
contexts that this one knows.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from guided.nano.experts.prompts import question
from guided.nano.experts.world import ATTRIBUTES, NEW, is_held_out_context

__all__ = ["retrieval_heads"]

SAMPLES = 200
LISTED = 8


@torch.no_grad()
def retrieval_heads(model: Any, tokenizer: Any, seed: int) -> list[tuple[tuple[int, int], float]]:
    """The best heads with their scores; ``model`` gives its attentions (``attn_implementation="eager"``)."""
    rnd = random.Random(seed)
    hits: torch.Tensor | None = None
    n_samples = 0
    while n_samples < SAMPLES:
        hotel, attribute = rnd.choice(NEW), rnd.choice(ATTRIBUTES)
        value = rnd.choice(attribute.values)
        if is_held_out_context(hotel, attribute, value):
            continue
        asked = question(hotel, attribute, rnd.randrange(len(attribute.wordings)), value)
        said = attribute.answer.format(hotel=hotel, value=value)
        ids = tokenizer(f"{asked} {said.split(value)[0].rstrip()}", return_tensors="pt")["input_ids"]
        (told,) = tokenizer(f" {value}")["input_ids"]
        at = ids[0].tolist().index(told)
        attentions = model(ids, output_attentions=True, use_cache=False).attentions
        most = torch.stack([attention[0, :, -1].argmax(-1) for attention in attentions])
        found = (most == at).float()
        hits = found if hits is None else hits + found
        n_samples += 1
    assert hits is not None
    scores = hits / n_samples
    best = scores.flatten().argsort(descending=True)[:LISTED].tolist()
    return [(divmod(number, scores.shape[1]), float(scores.flatten()[number])) for number in best]
