"""What methods are built from: the model to steer, the packaged experts in its tokens, and prompts as ids."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from guided.errors import UnsupportedError
from guided.eval.steering.prompts import SteeringPrompt
from guided.eval.steering.writing import Tokens
from guided.hf import LoadedModel, TransformersModel, load
from guided.hf.language_model import in_tokens_of
from guided.lm import LanguageModel
from guided.nano.experts import HEADS_PATH, REWARD_HEAD_PATH, SCORER_PATH, Expert
from guided.steer import PrefixScorer

__all__ = ["Kit", "Told"]


@dataclass(frozen=True)
class Told:
    """The prompt that stands for another in a table."""

    table: tuple[tuple[Tokens, Tokens], ...]

    def __call__(self, prompt: Tokens) -> Tokens:
        """The other one."""
        return dict(self.table)[tuple(prompt)]


class Kit:
    """A loaded model and, each loaded when it is first asked for, the experts beside it.

    Experts of another tokenizer are read through their bytes: they score tokens, but have no layers or hidden states.
    """

    def __init__(self, loaded: LoadedModel, on_stage: Callable[[str], None] | None = None) -> None:
        self.loaded = loaded
        self.base = TransformersModel(loaded)
        self._report = on_stage or (lambda stage: None)
        self._experts: dict[Expert, LanguageModel] = {}

    @cached_property
    def own(self) -> bool:
        """Whether the model to steer is the packaged one of reviews."""
        own = Expert.REVIEWS
        return self.loaded.name == own.name_to_load or Path(self.loaded.name).resolve() == own.path.resolve()

    def needs_own(self, what: str) -> None:
        """Raise `UnsupportedError` unless the model is the packaged one, which alone ``what`` fits."""
        if not self.own:
            raise UnsupportedError(
                f"{what} is of the packaged model of reviews", remedy="Run this method without --model."
            )

    def expert(self, which: Expert) -> LanguageModel:
        """A packaged model over the ids of the one to steer."""
        if which not in self._experts:
            self._report(which.value)
            other = load(which.path, device=str(self.loaded.model.device), local_files_only=True)
            self._experts[which] = in_tokens_of(self.loaded, other)
        return self._experts[which]

    @cached_property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """Retrieval heads of the packaged model, best first."""
        return tuple((int(block), int(head)) for block, head in json.loads(HEADS_PATH.read_text("utf-8")))

    @cached_property
    def reward_head(self) -> PrefixScorer:
        """The head of the causal reward model."""
        return self._head(REWARD_HEAD_PATH)

    @cached_property
    def scorer(self) -> PrefixScorer:
        """The prefix scorer, another head of the causal reward model."""
        return self._head(SCORER_PATH)

    def _head(self, path: Path) -> PrefixScorer:
        from safetensors.torch import load_file

        state = load_file(path)
        head = PrefixScorer(state["head.weight"].shape[1])
        head.load_state_dict(state)
        return head.requires_grad_(False).eval().to(self.loaded.model.device)

    def ids(self, text: str) -> Tokens:
        """The tokens of a text, as the model's tokenizer begins a prompt."""
        return tuple(self.loaded.tokenizer(text)["input_ids"])

    def plain_ids(self, text: str) -> Tokens:
        """The tokens of a text with nothing added."""
        return tuple(self.loaded.tokenizer(text, add_special_tokens=False)["input_ids"])

    def text(self, tokens: Sequence[int]) -> str:
        """The text of generated tokens, special ones left out."""
        decoded: Any = self.loaded.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return str(decoded)

    def told(self, prompts: Sequence[SteeringPrompt], variant: str) -> Told:
        """The branch prompt that reads a variant in place of each of these prompts."""
        return Told(tuple((self.ids(prompt.text), self.ids(prompt.variants[variant])) for prompt in prompts))
