"""Batches of whole texts, the shapes of the models, and the training loop that all experts share."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from review_corpus import Text
from rich.progress import track
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

__all__ = ["LARGE", "SMALL", "TINY", "Batch", "Shape", "batches", "export", "fit", "language_loss", "new_model"]

IGNORED = -100
POOL = 16
"""Batches that are filled together, from texts sorted by length, so that little is padding."""
WARM_UP, DECAY_FROM = 0.02, 0.5
"""The rate rises over the first share of the steps, is constant up to the second, then falls linearly to zero."""


@dataclass(frozen=True)
class Shape:
    """The size of a Llama."""

    width: int
    blocks: int
    heads: int
    inner: int


LARGE = Shape(width=96, blocks=4, heads=4, inner=224)
"""The model that is steered: half a million parameters."""
SMALL = Shape(width=64, blocks=2, heads=2, inner=160)
"""The experts and the reward models: about a third of it."""
TINY = Shape(width=32, blocks=1, heads=2, inner=64)
"""The amateur: a tenth, and too shallow for a fact, which takes the hotel and the kind of question together."""


@dataclass(frozen=True)
class Batch:
    """``tokens`` int64[B, T], padded on the right; ``targets`` the tokens after each, `IGNORED` behind the end."""

    tokens: torch.Tensor
    targets: torch.Tensor
    texts: tuple[Text, ...]


def new_model(shape: Shape, tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """A Llama with random weights."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=shape.width,
            intermediate_size=shape.inner,
            num_hidden_layers=shape.blocks,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            max_position_embeddings=512,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            attn_implementation="sdpa",
        )
    )


def batches(texts: Iterator[Text], tokenizer: PreTrainedTokenizerFast, rows: int, seed: int) -> Iterator[Batch]:
    """Endless batches of ``rows`` texts of similar length, each text with its end."""
    rnd = random.Random(seed)
    while True:
        pool = list(itertools.islice(texts, rows * POOL))
        encoded = tokenizer([text.text for text in pool], add_special_tokens=False)["input_ids"]
        order = sorted(range(len(pool)), key=lambda number: len(encoded[number]))
        parts = [order[start : start + rows] for start in range(0, len(order), rows)]
        rnd.shuffle(parts)
        for part in parts:
            width = max(len(encoded[number]) for number in part)
            tokens = torch.full((rows, width), tokenizer.pad_token_id)
            targets = torch.full((rows, width), IGNORED)
            for row, number in enumerate(part):
                ids = encoded[number]
                tokens[row, : len(ids)] = torch.tensor(ids)
                targets[row, : len(ids)] = torch.tensor([*ids[1:], tokenizer.eos_token_id])
            yield Batch(tokens, targets, tuple(pool[number] for number in part))


def language_loss(model: LlamaForCausalLM) -> Callable[[Batch], torch.Tensor]:
    """Cross-entropy of the next token."""

    def loss(batch: Batch) -> torch.Tensor:
        logits = model(input_ids=batch.tokens, use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)

    return loss


def fit(
    module: torch.nn.Module,
    loss_of: Callable[[Batch], torch.Tensor],
    stream: Iterator[Batch],
    *,
    steps: int,
    name: str,
    matrix_rate: float = 6e-3,
    vector_rate: float = 4e-3,
) -> float:
    """Train in place: Muon for matrices inside the blocks, AdamW for the rest; the averaged loss at the end."""
    named = [(key, value) for key, value in module.named_parameters() if value.requires_grad]
    matrices = [value for key, value in named if value.ndim == 2 and ".layers." in key]
    others = [value for key, value in named if not (value.ndim == 2 and ".layers." in key)]
    optimisers: list[tuple[torch.optim.Optimizer, float]] = [
        (torch.optim.AdamW(others, lr=vector_rate, betas=(0.9, 0.98), weight_decay=0.0), vector_rate)
    ]
    if matrices:
        muon = torch.optim.Muon(matrices, lr=matrix_rate, weight_decay=0.02, adjust_lr_fn="match_rms_adamw")
        optimisers.append((muon, matrix_rate))
    averaged = float("nan")
    module.train()
    for step in track(range(steps), description=f"{name:12}"):
        progress = step / steps
        factor = min((step + 1) / max(WARM_UP * steps, 1), 1.0, (1 - progress) / (1 - DECAY_FROM))
        for optimiser, peak in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = peak * factor
        loss = loss_of(next(stream))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        for optimiser, _ in optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        averaged = loss.item() if step == 0 else 0.98 * averaged + 0.02 * loss.item()
    module.eval()
    return averaged


def export(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """The float16 model and its tokenizer in the form that ``from_pretrained`` reads; the model stays as it is."""
    half = LlamaForCausalLM(model.config)
    half.load_state_dict(model.state_dict())
    half.generation_config.eos_token_id = tokenizer.eos_token_id
    half.generation_config.pad_token_id = tokenizer.pad_token_id
    half.half().save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
