"""Trains the packaged experts from nothing but seeds: about twelve minutes of one core, each of them a stage.

    python examples/train_experts/train_experts.py --out runs/experts

A stage whose result is in ``--out`` is not run again, so an interrupted run goes on where it was; delete a folder to
train it anew.  What stands in the package (``guided/nano/experts/weights``) is what this writes.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from expert_card import write_card
from fitting import IGNORED, LARGE, SMALL, TINY, Batch, batches, export, fit, language_loss, new_model
from heads import retrieval_heads
from nano_amateur import train_nano_amateur
from review_corpus import Text, reviews, stream
from review_tokenizer import build_tokenizer
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast

from guided.hf.language_model import TransformersModel
from guided.nano.experts import Expert
from guided.steer.rewards.scorer import Example, PrefixScorer, train_scorer

__all__ = ["train"]

SEED = 0
ROWS = 64
STEPS = {
    Expert.REVIEWS: 1300,
    Expert.AMATEUR: 400,
    Expert.SMALL: 1500,
    Expert.POSITIVE: 400,
    Expert.NEGATIVE: 400,
    Expert.REWARD: 600,
    Expert.TOKEN_REWARD: 800,
}
SCORED_TEXTS = 600


class Run:
    """A folder of results with the log of what was measured."""

    def __init__(self, out: Path) -> None:
        self.out = out
        out.mkdir(parents=True, exist_ok=True)
        self.log_path = out / "training.json"
        self.log = json.loads(self.log_path.read_text("utf-8")) if self.log_path.exists() else {}
        if not (out / "tokenizer").exists():
            build_tokenizer(SEED).save_pretrained(str(out / "tokenizer"))
        self.tokenizer: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(str(out / "tokenizer"))

    def stage(self, name: str, result: Path, work: Callable[[], dict[str, float]]) -> None:
        """Do the work unless its result is there, and note its processor time."""
        if result.exists() and name in self.log:
            return
        began = time.process_time()
        facts = work()
        self.log[name] = {**facts, "seconds": round(time.process_time() - began, 1)}
        self.log_path.write_text(json.dumps(self.log, indent=2) + "\n", "utf-8")

    def load(self, expert: Expert) -> LlamaForCausalLM:
        """What an earlier stage wrote, in float32."""
        return AutoModelForCausalLM.from_pretrained(str(self.out / expert.value), dtype=torch.float32).eval()


def _labelled(texts: Iterator[Text], praises: bool) -> Iterator[Text]:
    return (text for text in texts if text.praises is praises)


def _language_model(run: Run, expert: Expert, model: LlamaForCausalLM, texts: Iterator[Text], slower: float = 1.0):
    def work() -> dict[str, float]:
        loss = fit(
            model,
            language_loss(model),
            batches(texts, run.tokenizer, ROWS, SEED),
            steps=STEPS[expert],
            name=expert.value,
            matrix_rate=6e-3 * slower,
            vector_rate=4e-3 * slower,
        )
        export(model, run.tokenizer, run.out / expert.value)
        return {"steps": STEPS[expert], "texts": STEPS[expert] * ROWS, "loss": round(loss, 4)}

    run.stage(expert.value, run.out / expert.value, work)


def _labels(batch: Batch) -> torch.Tensor:
    """``[B, 1]``: 1 for texts that praise."""
    return torch.tensor([[float(bool(text.praises))] for text in batch.texts])


def _reward(run: Run) -> None:
    """A head on every prefix: what the whole text will turn out to be (RAD's and FUDGE's training)."""

    def work() -> dict[str, float]:
        model = run.load(Expert.SMALL)
        torch.manual_seed(SEED)
        both = torch.nn.ModuleDict({"model": model, "head": PrefixScorer(SMALL.width)})

        def loss(batch: Batch) -> torch.Tensor:
            hidden = model.model(input_ids=batch.tokens, use_cache=False).last_hidden_state
            odds = both["head"](hidden.flatten(0, 1)).view(hidden.shape[:2])
            losses = torch.nn.functional.binary_cross_entropy_with_logits(
                odds, _labels(batch).expand_as(odds), reduction="none"
            )
            return losses[batch.targets != IGNORED].mean()

        texts = batches(reviews(SEED + 4), run.tokenizer, ROWS, SEED)
        steps = STEPS[Expert.REWARD]
        value = fit(both, loss, texts, steps=steps, name="reward", matrix_rate=3e-3, vector_rate=2e-3)
        export(model, run.tokenizer, run.out / Expert.REWARD.value)
        save_file(both["head"].state_dict(), str(run.out / "reward-head.safetensors"))
        return {"steps": steps, "texts": steps * ROWS, "loss": round(value, 4)}

    run.stage(Expert.REWARD.value, run.out / "reward-head.safetensors", work)


def _token_reward(run: Run) -> None:
    """Logits that are log-odds: the one of the token that follows is taught the text's label (ARM's training).

    The matrix of the head begins at zero and is not the embedding's, so a token that never follows stays at the
    reward that its low-rank neighbours have.
    """

    def work() -> dict[str, float]:
        small = run.load(Expert.SMALL)
        config = copy.deepcopy(small.config)
        config.tie_word_embeddings = False
        model = LlamaForCausalLM(config)
        model.model.load_state_dict(small.model.state_dict())
        torch.nn.init.zeros_(model.lm_head.weight)

        def loss(batch: Batch) -> torch.Tensor:
            odds = model(input_ids=batch.tokens, use_cache=False).logits
            there = batch.targets != IGNORED
            taken = odds[there].gather(-1, batch.targets[there][:, None])[:, 0]
            return torch.nn.functional.binary_cross_entropy_with_logits(
                taken, _labels(batch).expand(there.shape)[there]
            )

        texts = batches(reviews(SEED + 5), run.tokenizer, ROWS, SEED)
        steps = STEPS[Expert.TOKEN_REWARD]
        value = fit(model, loss, texts, steps=steps, name="token-reward", matrix_rate=3e-3, vector_rate=2e-3)
        export(model, run.tokenizer, run.out / Expert.TOKEN_REWARD.value)
        return {"steps": steps, "texts": steps * ROWS, "loss": round(value, 4)}

    run.stage(Expert.TOKEN_REWARD.value, run.out / Expert.TOKEN_REWARD.value, work)


def _scorer(run: Run) -> None:
    """A prefix scorer on the reward model's hidden states, by `guided.steer.train_scorer`.

    Not on those of the model that is steered: what a linear head reads there is the next token, and it did not tell
    praise from complaint better than a coin.
    """

    def work() -> dict[str, float]:
        model = TransformersModel(run.load(Expert.REWARD), run.tokenizer)
        texts = reviews(SEED + 6)
        found = [next(texts) for _ in range(SCORED_TEXTS)]
        examples = [
            Example((*run.tokenizer(text.text)["input_ids"], run.tokenizer.eos_token_id), 1.0 if text.praises else -1.0)
            for text in found
        ]
        scorer = train_scorer(model, examples, steps=300, seed=SEED)
        save_file(scorer.state_dict(), str(run.out / "scorer.safetensors"))
        return {"texts": SCORED_TEXTS}

    run.stage("scorer", run.out / "scorer.safetensors", work)


def _heads(run: Run) -> None:
    def work() -> dict[str, float]:
        model = AutoModelForCausalLM.from_pretrained(
            str(run.out / Expert.REVIEWS.value), dtype=torch.float32, attn_implementation="eager"
        ).eval()
        found = retrieval_heads(model, run.tokenizer, seed=SEED)
        (run.out / "heads.json").write_text(json.dumps([list(head) for head, _ in found]) + "\n", "utf-8")
        return {"best": round(found[0][1], 3), "last": round(found[-1][1], 3)}

    run.stage("heads", run.out / "heads.json", work)


def train(out: Path) -> None:
    """All stages."""
    run = Run(out)
    _language_model(run, Expert.REVIEWS, new_model(LARGE, run.tokenizer, SEED), stream(SEED + 1))
    _language_model(run, Expert.SMALL, new_model(SMALL, run.tokenizer, SEED), stream(SEED + 2))
    _language_model(run, Expert.AMATEUR, new_model(TINY, run.tokenizer, SEED), stream(SEED + 7))
    for expert, praises in ((Expert.POSITIVE, True), (Expert.NEGATIVE, False)):
        _language_model(run, expert, run.load(Expert.SMALL), _labelled(reviews(SEED + 3), praises), slower=0.3)
    _reward(run)
    _token_reward(run)
    _scorer(run)
    _heads(run)
    run.stage(
        Expert.NANO_AMATEUR.value,
        out / Expert.NANO_AMATEUR.value,
        lambda: train_nano_amateur(out / Expert.NANO_AMATEUR.value),
    )
    write_card(out)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results, one model a folder")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train(arguments.out)


if __name__ == "__main__":
    main()
