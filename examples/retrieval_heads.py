"""Find the attention heads that copy from the prompt, for DeCoRe: `DeCoRe(heads)`, or ``--steer decore:head=...``.

    python examples/retrieval_heads.py                          the packaged model
    python examples/retrieval_heads.py PATH_OR_NAME --top 20    any causal model of transformers

A head's score is how often, when a token of a hidden sentence is repeated, the head attends most to that very token in
the hidden sentence (Wu et al. 2024, arXiv 2404.15574).  The model is made to repeat the sentence (its tokens are given,
not generated), so one pass for each sample is enough and small models can be looked at, too.  At the end the heads are
switched off, and as many random ones for comparison: retrieval heads should cost the repetition more.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from guided.hf.language_model import TransformersModel
from guided.lm import Needs
from guided.nano import MODEL_PATH

FILLER = (
    "The train was late again and nobody knew why.",
    "She bought bread, milk and a newspaper on the way home.",
    "In the evening the wind turned and it began to rain.",
    "The committee met twice and decided nothing.",
    "Old maps show a river where the market is today.",
    "He repaired the clock, but it still lost ten minutes a day.",
    "The library opens at nine, except on Mondays.",
    "Nobody had watered the plants for weeks.",
)
NAMES = ("Nina", "Omar", "Ida", "Pavel", "Ruth", "Kenji", "Lucia", "Anders")
THINGS = ("key", "letter", "lamp", "violin", "passport", "notebook", "compass", "medal")
PLACES = ("under the stairs", "behind the mirror", "in the blue box", "on the third shelf", "inside the piano")


def sample(rnd: random.Random, n_sentences: int) -> tuple[str, str, str]:
    """Text before the hidden sentence, the sentence, and what stands between it and its repetition."""
    needle = f" {rnd.choice(NAMES)} hid the {rnd.choice(THINGS)} {rnd.choice(PLACES)} in {rnd.randint(1900, 1999)}."
    filler = [rnd.choice(FILLER) for _ in range(n_sentences)]
    at = rnd.randint(1, n_sentences - 1)
    return " ".join(filler[:at]), needle, " " + " ".join(filler[at:])


def encoded(tokenizer, rnd: random.Random, n_sentences: int) -> tuple[list[int], range, range]:
    """Ids of a sample, and where the hidden sentence and its repetition are."""
    before, needle, after = (
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in sample(rnd, n_sentences)
    )
    start = len(before)
    again = start + len(needle) + len(after)
    return before + needle + after + needle, range(start, start + len(needle)), range(again, again + len(needle))


@torch.no_grad()
def scores(model, samples: list[tuple[list[int], range, range]]) -> torch.Tensor:
    """For each block and head, the share of repeated tokens that it attends to most: ``[blocks, heads]``."""
    hits = None
    n_tokens = 0
    for ids, needle, repeated in samples:
        attentions = model(torch.tensor([ids]), output_attentions=True, use_cache=False).attentions
        if hits is None:
            hits = torch.zeros(len(attentions), attentions[0].shape[1])
        tokens = torch.tensor(ids)
        for position in repeated[1:]:  # the first is not announced by the one before it
            for block, attention in enumerate(attentions):
                most = attention[0, :, position - 1].argmax(-1)
                inside = (most >= needle.start) & (most < needle.stop)
                hits[block] += (inside & (tokens[most] == tokens[position])).float().cpu()
            n_tokens += 1
    assert hits is not None
    return hits / n_tokens


def repeating(model: TransformersModel, samples: list[tuple[list[int], range, range]], heads=()) -> float:
    """Mean log-probability of the repeated sentence's tokens, with some heads switched off."""
    total, count = 0.0, 0
    for ids, _, repeated in samples:
        sequences = model.start([ids[: repeated.start]], Needs(masked_heads=tuple(heads)))
        logits = torch.cat([sequences.last.logits, sequences.extend([ids[repeated.start : -1]])[0].logits])
        after = torch.tensor(ids[repeated.start :])
        total += float(torch.log_softmax(logits, -1).gather(-1, after[:, None])[1:].sum())
        count += len(after) - 1
    return total / count


def main() -> None:
    parser = argparse.ArgumentParser(description="Find retrieval heads.")
    parser.add_argument("model", nargs="?", default=str(MODEL_PATH), help="a folder or a name on the hub")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--sentences", type=int, default=10, help="sentences around the hidden one (10)")
    parser.add_argument("--top", type=int, default=4, help="heads to report (4)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    rnd = random.Random(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForCausalLM.from_pretrained(options.model, attn_implementation="eager").eval()
    samples = [encoded(tokenizer, rnd, options.sentences) for _ in range(2 * options.samples)]
    found, held_out = samples[: options.samples], samples[options.samples :]
    table = scores(model, found)
    order = table.flatten().argsort(descending=True).tolist()
    heads = [divmod(number, table.shape[1]) for number in order]
    print(f"{Path(options.model).name}: {table.numel()} heads, {options.samples} samples")
    for block, head in heads[: options.top]:
        print(f"  block {block:3} head {head:3}  attends to the token to repeat in {table[block, head]:6.1%} of steps")
    top = heads[: options.top]
    others = rnd.sample(heads[len(heads) // 2 :], options.top)
    steered = TransformersModel(model, tokenizer)
    print("mean log-probability of the repetition, on other samples:")
    print(f"  all heads on              {repeating(steered, held_out):8.3f}")
    print(f"  without these heads       {repeating(steered, held_out, top):8.3f}")
    print(f"  without as many others    {repeating(steered, held_out, others):8.3f}")
    print("--steer decore:" + ",".join(f"head={block}.{head}" for block, head in top))


if __name__ == "__main__":
    main()
