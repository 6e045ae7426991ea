"""`PromptTokens`: a few trained embeddings that a model reads behind a text to say what comes further on (PPD).

The training half of parallel prompt decoding (Chen et al., 2024, arXiv 2405.18628); drafting by them is
`guided.draft.ParallelPrompts`.  The model itself is not changed: prompt tokens are ids that only the draft trees of
`PromptTokens.model` may hold.  Reconstructed from the paper's text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from guided.draft.heads.from_heads import RANKS
from guided.draft.heads.losses import DISCOUNT, DraftLoss, draft_losses
from guided.draft.heads.parallel_prompts import ParallelPrompts
from guided.errors import GuidedError, UnsupportedError
from guided.hf.language_model import TransformersModel
from guided.hf.skipped_layers import SkippedLayers, twin_of
from guided.lm.training import descend

__all__ = ["PromptTokens"]


class PromptTokens:
    """``n`` prompt tokens of a model, which begin as the mean of its embeddings, each moved a little.

    ``model`` reads the same weights, and prompt tokens as the ids from its width on.  Raises `UnsupportedError` for
    models that score no trees of drafts, encoder-decoder models, and models spread over devices.
    """

    def __init__(self, whole: TransformersModel, n: int = 3) -> None:
        if n < 1:
            raise GuidedError(f"{n} prompt tokens say nothing", remedy="Take one or more.")
        if not whole.can.tree:
            raise UnsupportedError(
                f"{type(whole.model).__name__} scores no trees, in which prompt tokens stand",
                remedy="Draft with guided.draft.auto.",
            )
        network = twin_of(whole.model, range(SkippedLayers(whole).blocks), set())
        for module in network.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    # Another parameter on the same numbers: what is said of its gradient is not said of the model's.
                    module._parameters[name] = nn.Parameter(parameter.detach(), requires_grad=False)
        self.embeddings = _WithPrompts(network.get_input_embeddings(), whole.width, n)
        network.set_input_embeddings(self.embeddings)
        self.model = TransformersModel(network, whole.tokenizer, eos_ids=whole.eos_ids, caching=whole.caching)
        self.accuracies: tuple[tuple[float, ...], ...] = ()

    @property
    def n(self) -> int:
        """How many there are."""
        return self.embeddings.n_prompt_tokens

    def drafter(self) -> ParallelPrompts:
        """Drafts for `model`, which is then the target."""
        return ParallelPrompts(self.accuracies) if self.accuracies else ParallelPrompts.uncalibrated(self.n)

    def fit(
        self,
        prompts: Sequence[Sequence[int]],
        texts: Sequence[Sequence[int]],
        *,
        places: int = 8,
        loss: DraftLoss = DraftLoss.FORWARD_KL,
        epochs: float = 2.0,
        batch: int = 8,
        rate: float = 1e-2,
        seed: int = 0,
        done: Callable[[int, float], bool] | None = None,
    ) -> float:
        """Train the embeddings on texts after their prompts; the last averaged loss.

        Behind ``places`` random tokens of each text all prompt tokens are read in one pass with it, and what the model
        says after them is made like what it says where they stand for (distillation from itself).  Raises `GuidedError`
        without texts that are long enough.
        """
        rows = self._rows(prompts, texts)
        generator = torch.Generator().manual_seed(seed)

        def loss_of(chosen: list[int]) -> torch.Tensor:
            total = self.embeddings.prompts.new_zeros(())
            for number in chosen:
                text, begin = rows[number]
                # The first token of the text has the end of the prompt before it.
                ends = torch.arange(begin, len(text) - self.n)
                ends = ends[torch.randperm(len(ends), generator=generator)[:places]].sort().values
                said, own = self._said(text, ends)
                for j in range(self.n):
                    target = own[ends + j + 1].detach()
                    tokens = torch.tensor(text)[ends + j + 1].to(said.device)
                    total = total + DISCOUNT**j * draft_losses(loss, said[:, j], target, tokens).mean() / len(chosen)
            return total

        return descend(
            self.embeddings, len(rows), loss_of, epochs=epochs, batch=min(batch, len(rows)), rate=rate,
            betas=(0.9, 0.95), decay=0.0, rising=0.05, memory=0.98, seed=seed, done=done,
        )  # fmt: skip

    def calibrate(self, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]) -> None:
        """Measure how often the best, second best, ... token after each prompt token is the model's own best there."""
        counts, seen = torch.zeros(self.n, RANKS), 0
        for text, begin in self._rows(prompts, texts):
            ends = torch.arange(begin, len(text) - self.n)
            with torch.inference_mode():
                said, own = self._said(text, ends)
            seen += len(ends)
            for j in range(self.n):
                ranked = said[:, j].topk(min(RANKS, said.shape[-1]), dim=-1).indices
                counts[j, : ranked.shape[1]] += (ranked == own[ends + j + 1].argmax(-1)[:, None]).sum(0).cpu()
        self.accuracies = tuple(tuple(round(float(c), 5) for c in each) for each in counts / max(1, seen))

    def save(self, path: Path | str) -> None:
        """Write embeddings and accuracies into one safetensors file."""
        from safetensors.torch import save_file

        found = {"prompts": self.embeddings.prompts.detach().cpu().contiguous()}
        if self.accuracies:
            found["accuracies"] = torch.tensor(self.accuracies)
        save_file(found, str(path))

    def load(self, path: Path | str) -> None:
        """Take what `save` wrote.  Raises `GuidedError` for prompt tokens of another model, or another number."""
        from safetensors.torch import load_file

        found, own = load_file(str(path)), self.embeddings.prompts
        if "prompts" not in found or found["prompts"].shape != own.shape:
            raise GuidedError(f"{path} has no {self.n} prompt tokens of this model", remedy="Train some: fit.")
        own.detach().copy_(found["prompts"])
        self.accuracies = tuple(tuple(map(float, each)) for each in found.get("accuracies", torch.zeros(0, 0)))

    def _rows(self, prompts: Sequence[Sequence[int]], texts: Sequence[Sequence[int]]) -> list[tuple[list[int], int]]:
        """Whole texts, and how long their prompts are; those too short for all prompt tokens are left out."""
        if len(prompts) != len(texts):
            raise GuidedError(
                f"{len(prompts)} prompts have {len(texts)} texts", remedy="Give one text for each prompt."
            )
        rows = [([*p, *t], len(p)) for p, t in zip(prompts, texts, strict=True) if p and len(t) > self.n]
        if not rows:
            raise GuidedError(
                "there are no texts to learn from", remedy=f"Give texts of more than {self.n} tokens, and prompts."
            )
        return rows

    def _said(self, text: Sequence[int], ends: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The scores ``[len(ends), n, V]`` after prompt tokens behind the first ``ends`` tokens, and the text's own.

        Of the latter, ``[len(text), V]``, row i is what is said after the first i tokens; row 0 means nothing.
        """
        network: Any = self.model._network
        n, m, device = len(text), len(ends), network.device
        place = torch.arange(self.n).repeat(m)
        end = ends.repeat_interleave(self.n)
        own = torch.arange(n)
        sees = torch.zeros(n + m * self.n, n + m * self.n, dtype=torch.bool)
        sees[:n, :n] = own[None] <= own[:, None]
        sees[n:, :n] = own[None] < end[:, None]
        sees[n:, n:] = (end[None] == end[:, None]) & (place[None] <= place[:, None])
        positions = torch.cat([own, end + place])
        ids = torch.tensor([*text, *(self.model.width + place).tolist()], device=device)
        masks = network.mask([0], len(ids), [positions.tolist()], sees[None].to(device))
        inputs: dict[str, Any] = {"input_ids": ids[None], "attention_mask": masks, "use_cache": False}
        if network.architecture.takes_positions:
            inputs["position_ids"] = positions[None].to(device)
        logits: torch.Tensor = self.model.model(**inputs).logits[0].float()
        return logits[n:].reshape(m, self.n, -1), torch.cat([logits[:1], logits[:n]])


class _WithPrompts(nn.Module):
    """An embedding that also knows the ids from ``first`` on."""

    def __init__(self, inner: nn.Module, first: int, n: int) -> None:
        super().__init__()
        self.inner = inner
        self.first = first
        self.n_prompt_tokens = n
        weight = self.weight
        generator = torch.Generator().manual_seed(0)
        own = weight.detach().float()
        moved = 0.1 * own.std() * torch.randn((n, own.shape[1]), generator=generator).to(own.device)
        self.prompts = nn.Parameter(own.mean(0) + moved)

    @property
    def weight(self) -> torch.Tensor:
        """The model's own embeddings."""
        return self.inner.get_parameter("weight")

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """``[..., d]``."""
        prompted = ids >= self.first
        states: torch.Tensor = self.inner(ids.masked_fill(prompted, 0))
        if not prompted.any():
            return states
        added = self.prompts.to(states.dtype)[(ids - self.first).clamp(min=0)]
        return torch.where(prompted[..., None], added, states)
