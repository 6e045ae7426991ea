"""Langevin proposals: soft texts that follow the gradient of an energy with noise, and become texts under a grammar.

COLD (Qin et al. 2022, arXiv 2202.11705) moves logits of tokens, MuCoLa (Kumar et al. 2022, arXiv 2205.12558) token
embeddings, which are set to the nearest token's after each step.  Both are reconstructed from the papers' outlines:
energies are theirs in kind (the model's cross-entropy, and any differentiable function of soft tokens, such as
`Keywords`), the schedule of the noise is ours, and so is that the constraint decides what a soft text may become: it is
written token by token from what the grammar allows, so every proposal is a text of the language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, UnsupportedError
from guided.hf.forward import turn
from guided.hf.language_model import TransformersModel
from guided.lm import language_model
from guided.search.result import Found, Hypothesis, SearchCost, data_of
from guided.steer.formulas.combining import candidates
from guided.steer.masking import Masked, mask_and_ends

__all__ = ["Keywords", "Soft", "SoftTexts", "langevin_search"]

Energy = Callable[[torch.Tensor], torch.Tensor]
"""From the probabilities of tokens ``[n, t, V]`` to a number each, ``[n]``, that is to be small; differentiable."""

SURE = 0.9
"""The probability that a soft text begins with for each drawn token: one that is surer has no gradient to move by."""


class Soft(Enum):
    """What moves."""

    LOGITS = "logits"
    """COLD: a row of logits for each position."""
    EMBEDDINGS = "embeddings"
    """MuCoLa: a token embedding for each position, the nearest token's after each step."""


@dataclass(frozen=True)
class Keywords:
    """An energy: minus the sum over phrases of the log-probability that it stands somewhere in the soft text.

    Somewhere is the sum over places, which is what COLD's similarity of n-grams is in kind.  Raises `GuidedError`
    without phrases, and for an empty one.
    """

    phrases: tuple[tuple[int, ...], ...]
    """Each a sequence of ids."""

    def __post_init__(self) -> None:
        if not self.phrases or not all(self.phrases):
            raise GuidedError("a phrase has no tokens", where="Keywords", remedy="Pass at least one id each.")

    def __call__(self, soft: torch.Tensor) -> torch.Tensor:
        """The energies; a phrase that is longer than the text costs as much as one that is nowhere."""
        least = torch.finfo(soft.dtype).tiny
        logs = soft.clamp(min=least).log()
        total = soft.new_zeros(len(soft))
        for phrase in self.phrases:
            places = soft.shape[1] - len(phrase) + 1
            if places < 1:
                total = total - math.log(least)
                continue
            steps = [logs[:, at : at + places, token] for at, token in enumerate(phrase)]
            total = total - torch.logsumexp(torch.stack(steps).sum(dim=0), dim=-1).clamp(min=math.log(least))
        return total


class SoftTexts:
    """The energy of soft texts behind a prompt: the model's cross-entropy, plus ``weight`` times the given energy.

    Of a text (every row all on one token) it is minus the model's log-probability, plus that.  Raises
    `UnsupportedError` for encoder-decoder models.
    """

    def __init__(self, model: TransformersModel, prompt: Sequence[int], energy: Energy | None, weight: float) -> None:
        network = model.model
        if network.config.is_encoder_decoder:
            raise UnsupportedError("soft texts are a decoder's inputs", remedy="Use a decoder-only model.")
        self.network = network
        self.energy, self.weight = energy, weight
        self.passes = self.positions = 0
        with torch.no_grad():
            table = network.get_input_embeddings()
            every = torch.arange(model.width, device=table.weight.device)
            # Through the module: some scale what their matrix holds.
            self.embeddings: torch.Tensor = table(every)
            self._prompt = self.embeddings[torch.tensor(list(prompt), device=every.device)]

    def fluency(self, soft: torch.Tensor, inputs: torch.Tensor | None = None) -> torch.Tensor:
        """The cross-entropy ``[n]`` of probabilities ``[n, t, V]``; ``inputs`` are embeddings for the model instead."""
        rows = soft.to(self.embeddings.dtype) @ self.embeddings if inputs is None else inputs
        given = torch.cat([self._prompt.expand(len(soft), -1, -1), rows[:, :-1]], dim=1)
        with turn(self.network):
            logits = self.network(inputs_embeds=given, use_cache=False).logits
        self.passes += 1
        self.positions += given.shape[0] * given.shape[1]
        logs = torch.log_softmax(logits[:, -soft.shape[1] :].to(soft.dtype), dim=-1)
        return -(soft * logs).sum(dim=(1, 2))

    def of(self, soft: torch.Tensor, inputs: torch.Tensor | None = None) -> torch.Tensor:
        """The energies ``[n]``."""
        total = self.fluency(soft, inputs)
        return total if self.energy is None else total + self.weight * self.energy(soft)


def langevin_search(
    model: Any,
    prompt: Sequence[int],
    constraint: Constrains,
    *,
    energy: Energy | None = None,
    weight: float = 1.0,
    soft: Soft = Soft.LOGITS,
    chains: int = 8,
    length: int = 16,
    steps: int = 50,
    step_size: float = 1.0,
    noise: float = 0.5,
    top_k: int = 10,
    every: int = 10,
    n_best: int = 1,
    max_tokens: int = 256,
    seed: int | np.random.Generator | None = None,
) -> Found:
    """The ``n_best`` texts of the language, of those that ``chains`` soft texts become, by log-probability less energy.

    Each chain begins at a text that the model draws under the grammar, of which the first ``length`` positions are
    soft, and makes ``steps`` steps ``y - step_size grad E(y) + N(0, noise_t)``, the noise falling from ``noise`` to a
    hundredth of it.  After each ``every`` steps, and at the end, it becomes a text: of the ``top_k`` tokens that the
    model finds likeliest of the allowed ones the one that the soft text does, and behind ``length`` positions the
    likeliest.  What a chain begins at counts as a text, too, so nothing is lost by looking; with ``steps=0`` this is
    the best of ``chains`` draws.

    ``score`` is the log-probability over all ids, ``rank_score`` that less ``weight`` times ``energy`` of the text.
    ``model`` is a `LoadedModel`, a decoder of transformers, or one behind `TransformersModel`; a step costs it a pass
    forward and back over prompt and soft text.  Not a sampler: nothing says with what probability a text is proposed.
    Raises `UnsupportedError` for other models, `GuidedError` for numbers below what they may be, `LimitError` where the
    language has no text of ``max_tokens`` tokens.
    """
    if min(chains, length, every, top_k, n_best, max_tokens) < 1 or steps < 0 or step_size <= 0 or noise < 0:
        raise GuidedError(
            f"chains={chains}, length={length}, every={every}, top_k={top_k}, n_best={n_best}, steps={steps},"
            f" step_size={step_size}, noise={noise}",
            where="langevin_search",
            remedy="Pass counts of at least 1, a positive step_size, and a noise that is not negative.",
        )
    ready = language_model(model)
    if not isinstance(ready, TransformersModel):
        raise UnsupportedError(
            f"{type(ready).__name__} has no gradients", where="langevin_search", remedy="Pass a model of transformers."
        )
    rng = np.random.default_rng(seed)
    texts = SoftTexts(ready, prompt, energy, weight)
    writer = _Writer(ready, prompt, constraint, max_tokens)
    found = writer.drawn(rng, chains)
    state = _begun([text[:length] for text, _ in found], min(length, max_tokens), texts, soft)
    generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
    for step in range(steps):
        level = noise * 0.01 ** (step / max(steps - 1, 1))
        state = _moved(state, texts, soft, step_size, level, generator)
        if (step + 1) % every == 0 or step + 1 == steps:
            found += writer.written(_preferences(state, texts, soft), top_k)
    best: dict[tuple[int, ...], Hypothesis] = {}
    for tokens, score in found:
        if tokens not in best:
            worth = score - (weight * _energy_of(tokens, texts) if energy is not None else 0.0)
            best[tokens] = Hypothesis(tokens, data_of(constraint.vocabulary, tokens), score, worth)
    ranked = sorted(best.values(), key=lambda each: (-each.rank_score, len(each.tokens), each.tokens))
    cost = SearchCost(texts.passes + writer.passes, texts.positions + writer.rows)
    return Found(tuple(ranked[:n_best]), cost)


def _begun(drawn: Sequence[Sequence[int]], length: int, texts: SoftTexts, soft: Soft) -> torch.Tensor:
    """Soft texts that stand at drawn ones; behind their ends they know nothing, or repeat the last token."""
    width = len(texts.embeddings)
    kind = torch.float64 if texts.embeddings.dtype == torch.float64 else torch.float32
    logits = torch.zeros(len(drawn), length, width, dtype=kind, device=texts.embeddings.device)
    for row, tokens in zip(logits, drawn, strict=True):
        for place in range(length):
            if place < len(tokens):
                row[place, tokens[place]] = math.log(SURE / (1 - SURE) * (width - 1))
    if soft is Soft.LOGITS:
        return logits
    filled = [[*tokens, *[tokens[-1]] * (length - len(tokens))] for tokens in drawn]
    return texts.embeddings[torch.tensor(filled, device=logits.device)].to(kind)


def _probabilities(state: torch.Tensor, texts: SoftTexts, soft: Soft) -> torch.Tensor:
    """The probabilities of tokens: of embeddings by their distances, in units of those between tokens."""
    return torch.softmax(_preferences(state, texts, soft), dim=-1)


def _preferences(state: torch.Tensor, texts: SoftTexts, soft: Soft) -> torch.Tensor:
    """What a soft text prefers at each position, ``[n, t, V]``."""
    if soft is Soft.LOGITS:
        return state
    table = texts.embeddings.to(state.dtype)
    squares = (state**2).sum(-1, keepdim=True) - 2 * state @ table.T + (table**2).sum(-1)
    return -squares / (table.var(dim=0).sum() * 0.1)


def _moved(
    state: torch.Tensor, texts: SoftTexts, soft: Soft, step_size: float, level: float, generator: torch.Generator
) -> torch.Tensor:
    """One step of Langevin dynamics; embeddings then become those of the nearest tokens."""
    with torch.enable_grad():
        moving = state.detach().clone().requires_grad_(True)
        inputs = moving.to(texts.embeddings.dtype) if soft is Soft.EMBEDDINGS else None
        energies = texts.of(_probabilities(moving, texts, soft), inputs)
        (gradient,) = torch.autograd.grad(energies.sum(), moving)
    drawn = torch.randn(state.shape, generator=generator, dtype=state.dtype).to(state.device)
    moved = state - step_size * gradient + level * drawn
    if soft is Soft.LOGITS:
        return moved
    return texts.embeddings[_preferences(moved, texts, soft).argmax(dim=-1)].to(state.dtype)


def _energy_of(tokens: Sequence[int], texts: SoftTexts) -> float:
    """The energy of a text."""
    assert texts.energy is not None
    one = torch.nn.functional.one_hot(torch.tensor([list(tokens)]), len(texts.embeddings))
    with torch.no_grad():
        return float(texts.energy(one.to(texts.embeddings.device, torch.float64))[0])


class _Writer:
    """Writes texts of a language behind a prompt, several side by side."""

    def __init__(
        self, model: TransformersModel, prompt: Sequence[int], constraint: Constrains, max_tokens: int
    ) -> None:
        masked, self._ends = mask_and_ends(model, constraint, max_tokens)
        assert isinstance(masked, Masked)
        self._masked, self._model, self._most = masked, model, max_tokens
        self._prompt = tuple(int(token) for token in prompt)
        self.passes = self.rows = 0

    def drawn(self, rng: np.random.Generator, n: int) -> list[tuple[tuple[int, ...], float]]:
        """Texts drawn under the mask, and their log-probabilities over all ids."""

        def draw(logits: torch.Tensor, place: int) -> list[int]:
            found = []
            for row in torch.softmax(logits.double(), dim=-1).cpu().numpy():
                sums = np.cumsum(row)
                found.append(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")))
            return found

        return self._write(n, draw)

    def written(self, preferences: torch.Tensor, top_k: int) -> list[tuple[tuple[int, ...], float]]:
        """The texts that soft ones become."""

        def choose(logits: torch.Tensor, place: int) -> list[int]:
            likeliest = candidates(logits, top_k)
            if place >= preferences.shape[1]:
                chosen: list[int] = likeliest[:, 0].tolist()
                return chosen
            wanted = preferences[:, place].gather(-1, likeliest)
            allowed = torch.isfinite(logits.gather(-1, likeliest))
            places = torch.where(allowed, wanted, -math.inf).argmax(dim=-1, keepdim=True)
            chosen = likeliest.gather(-1, places)[:, 0].tolist()
            return chosen

        return self._write(len(preferences), choose)

    def _write(self, n: int, choose: Callable[[torch.Tensor, int], list[int]]) -> list[tuple[tuple[int, ...], float]]:
        sequences = self._model.start([self._prompt] * n)
        texts: list[tuple[int, ...]] = [()] * n
        scores = [0.0] * n
        for place in range(self._most):
            over = [bool(text) and text[-1] in self._ends for text in texts]
            if all(over):
                break
            logits = sequences.last.logits
            own = torch.log_softmax(logits.double(), dim=-1)
            # A text that is over is asked nothing more; its row stands for a beginning, which has a next token.
            allowed = self._masked.excluded(logits, [() if done else text for text, done in zip(texts, over)])
            chosen = choose(allowed, place)
            for row, token in enumerate(chosen):
                if not over[row]:
                    texts[row] += (token,)
                    scores[row] += float(own[row, token])
            sequences.extend([[] if done else [token] for token, done in zip(chosen, over)])
            self.passes += 1
            self.rows += sum(not done for done in over)
        return list(zip(texts, scores))
