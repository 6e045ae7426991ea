"""DeAL: beam search whose hypotheses are ranked by their probability and by a heuristic of where they lead.

A search over a `LanguageModel` and a heuristic on texts, not a function of logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from guided.constraint.protocol import Constrains
from guided.lm.model import LanguageModel, Sequences
from guided.steer.blocks import Value, values_of
from guided.steer.declaration import Tokens
from guided.steer.fields import checked_count, checked_number
from guided.steer.formulas.combining import candidates, log_probabilities
from guided.steer.masking import Masked, mask_and_ends

__all__ = ["Hypothesis", "deal"]


@dataclass(frozen=True)
class Hypothesis:
    """A text found by `deal`.

    >>> from guided.lm import TableModel
    >>> from guided.steer import deal
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> best = deal(model, [0], lambda texts: [float(text.count(1)) for text in texts], max_new_tokens=2)[0]
    >>> best.tokens, round(best.log_probability, 2), round(best.score, 2)
    ((1, 1), -2.41, -0.41)
    """

    tokens: Tokens
    """The generated tokens, the end-of-text id included if it ended."""
    log_probability: float
    """Natural logarithm of the model's probability of them."""
    score: float
    """Log-probability plus weighted heuristic, by which it was ranked last."""


def deal(
    model: LanguageModel,
    prompt: Sequence[int],
    heuristic: Value,
    *,
    n_beams: int = 4,
    top_k: int = 8,
    look_ahead: int = 8,
    weight: float = 1.0,
    max_new_tokens: int = 64,
    constraint: Constrains | None = None,
) -> list[Hypothesis]:
    """Decoding-time alignment, Huang et al. 2024, arXiv 2402.06147: beams ranked by ``log p + weight h(roll-out)``.

    Each hypothesis is continued by its ``top_k`` likeliest tokens; after each the model writes ``look_ahead`` more
    tokens greedily, and ``heuristic`` judges the whole text.  The best ``n_beams`` stay, without their roll-outs; a
    finished text stays while its score is good enough.  Returned best first.  ``weight=0`` is beam search, for which
    ``top_k >= n_beams`` considers every continuation that could matter, and runs no roll-outs.  Raises `RewardError`.

    Under a ``constraint`` hypotheses and roll-outs take allowed tokens only, and all texts end within
    ``max_new_tokens`` (the end-of-text token counts), roll-outs too; log-probabilities stay the model's own, over all
    ids.

    >>> from guided.lm import TableModel
    >>> from guided.steer import deal
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> def ones(texts):
    ...     return [float(text.count(1)) for text in texts]
    >>> for weight in (0.0, 2.0):
    ...     print(deal(model, [0], ones, weight=weight, look_ahead=1, max_new_tokens=4)[0].tokens)
    (0, 0, 0, 0)
    (1, 1, 1, 1)
    """
    for name, number in (("n_beams", n_beams), ("top_k", top_k), ("max_new_tokens", max_new_tokens)):
        checked_count(name, number, of="deal")
    checked_count("look_ahead", look_ahead, least=0, of="deal")
    checked_number("weight", weight, of="deal")
    masked, ends = mask_and_ends(model, constraint, max_new_tokens)
    given = tuple(int(token) for token in prompt)
    sequences = model.start([given])
    beams = [Hypothesis((), 0.0, 0.0)]
    for _ in range(max_new_tokens):
        running = [number for number, beam in enumerate(beams) if not _over(beam.tokens, ends)]
        if not running:
            break
        logprobs = log_probabilities(sequences.last.logits)
        if masked is not None:
            logprobs = masked.excluded(logprobs, [beams[number].tokens for number in running])
        ids = candidates(logprobs, top_k)
        new: list[Hypothesis] = []
        owners: list[int] = []
        for row, number in enumerate(running):
            for token in ids[row].tolist():
                gained = float(logprobs[row, token])
                if gained > float("-inf"):
                    total = beams[number].log_probability + gained
                    new.append(Hypothesis((*beams[number].tokens, token), total, total))
                    owners.append(row)
        finished = [beam for beam in beams if _over(beam.tokens, ends)]
        sequences.select(owners)
        sequences.extend([beam.tokens[-1:] for beam in new])
        if weight:
            new = _judged(sequences, new, given, ends, masked, heuristic, look_ahead, weight)
        pool = [(beam, -1) for beam in finished] + [(beam, row) for row, beam in enumerate(new)]
        pool.sort(key=lambda entry: -entry[0].score)
        pool = pool[:n_beams]
        beams = [beam for beam, _ in pool]
        sequences.select([row for beam, row in pool if row >= 0 and not _over(beam.tokens, ends)])
    return beams


def _over(tokens: Sequence[int], ends: AbstractSet[int]) -> bool:
    return bool(tokens) and tokens[-1] in ends


def _judged(
    sequences: Sequences,
    beams: Sequence[Hypothesis],
    prompt: Tokens,
    ends: AbstractSet[int],
    masked: Masked | None,
    heuristic: Value,
    look_ahead: int,
    weight: float,
) -> list[Hypothesis]:
    """The hypotheses with the heuristic of their greedy roll-outs; the sequences are left as they were."""
    texts = [list(beam.tokens) for beam in beams]
    for _ in range(look_ahead):
        # Masks make every text end within the limit; a roll-out without one may look beyond it.
        going = [not _over(text, ends) for text in texts]
        if not any(going):
            break
        logits = sequences.last.logits
        if masked is not None:
            logits = masked.excluded(logits, [tuple(text) for text in texts])
        chosen = candidates(logits, 1)[:, 0].tolist()
        step = [[token] if goes else [] for token, goes in zip(chosen, going, strict=True)]
        sequences.extend(step)
        for text, more in zip(texts, step, strict=True):
            text += more
    values = values_of(heuristic, [prompt + tuple(text) for text in texts], len(prompt))
    sequences.crop([len(prompt) + len(beam.tokens) for beam in beams])
    return [
        Hypothesis(beam.tokens, beam.log_probability, beam.log_probability + weight * value)
        for beam, value in zip(beams, values, strict=True)
    ]
