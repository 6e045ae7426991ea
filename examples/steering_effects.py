"""What steering does, seen on the packaged experts: the same prompt written on by a model, and by that model steered.

    python examples/steering_effects.py [--seed 3]

Reviews of made-up hotels, for which the package has a model, a praising and a complaining expert, and reward models.
`guided eval steering` measures every method on held-out prompts; here one looks at a few texts.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from guided.hf import TransformersModel, load
from guided.lm import LanguageModel
from guided.nano.experts import REWARD_HEAD_PATH, Expert
from guided.nano.experts.prompts import instruction, opening
from guided.steer import FUDGE, ClassifierFree, DExperts, ModelReward, PrefixScorer, Replaced, Stack


def written(model: LanguageModel, tokenizer, prompt: str, seed: int, max_new_tokens: int = 40) -> str:
    """The prompt and what the model draws after it."""
    rng = np.random.default_rng(seed)
    sequences = model.start([tokenizer(prompt)["input_ids"]])
    for _ in range(max_new_tokens):
        chances = torch.softmax(sequences.last.logits[0].double(), -1).numpy()
        token = int(rng.choice(len(chances), p=chances / chances.sum()))
        if token in model.eos_ids:
            break
        sequences.extend([[token]])
    return tokenizer.decode(sequences.tokens(0))


def reward_head() -> PrefixScorer:
    """The head of the causal reward model: log-odds that a text will praise."""
    from safetensors.torch import load_file

    state = load_file(REWARD_HEAD_PATH)
    head = PrefixScorer(state["head.weight"].shape[1])
    head.load_state_dict(state)
    return head.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--hotel", default="Willow")
    arguments = parser.parse_args()
    loaded = {expert: load(expert.path) for expert in Expert if expert is not Expert.NANO_AMATEUR}
    models = {expert: TransformersModel(one) for expert, one in loaded.items()}
    tokenizer = loaded[Expert.REVIEWS].tokenizer
    base = models[Expert.REVIEWS]
    prompt = instruction(arguments.hotel) + opening("four", "July")
    bad = Replaced(tokenizer(instruction(arguments.hotel, "bad") + opening("four", "July"))["input_ids"])
    head = reward_head()
    reward = ModelReward(lambda hidden: torch.nn.functional.logsigmoid(head(hidden)), models[Expert.REWARD])
    stacks = {
        "the model": Stack(),
        "DExperts, praise": Stack([DExperts(models[Expert.POSITIVE], models[Expert.NEGATIVE])]),
        "DExperts, complaints": Stack([DExperts(models[Expert.NEGATIVE], models[Expert.POSITIVE])]),
        "a negative prompt": Stack([ClassifierFree(3.0, bad)]),
        "FUDGE": Stack([FUDGE(reward, strength=3.0)]),
        "both experts and a reward": Stack(
            [DExperts(models[Expert.POSITIVE], models[Expert.NEGATIVE], alpha=1.0), FUDGE(reward)]
        ),
    }
    for name, stack in stacks.items():
        text = written(stack.over(base), tokenizer, prompt, arguments.seed)
        print(f"--- {name}\n{text.removeprefix(prompt).strip()}\n")


if __name__ == "__main__":
    main()
