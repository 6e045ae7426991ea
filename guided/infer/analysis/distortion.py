"""How far masking bends a model along one sequence: the probability that the mask took away before each token.

The kept mass ``Z_t`` is the model's probability of all tokens that the constraint allows at t.  Masked sampling divides
by it and forgets it; the product over a sequence is the importance weight that corrects the sample, so its logarithm
is shown here token by token, byte by byte and, for JSON, field by field.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.html import card, facts, marked, number, share
from guided.infer.distribution import distributions_of
from guided.infer.potentials.potential import Potential, as_potential
from guided.infer.weights import log_one_minus_exp, log_sum_exp
from guided.lm.given import language_model
from guided.lm.model import LanguageModel
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Distortion", "TokenDistortion", "distortion", "distortions"]


@dataclass(frozen=True)
class TokenDistortion:
    """One token of a sequence, under the model and under the mask.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> first = infer.distortion(model, [0], language, [1, 2]).tokens[0]
    >>> first.data, round(first.removed, 2), round(first.log_prob, 2), round(first.log_masked, 2)
    (b'b', 0.1, -1.2, -1.1)
    """

    token: int
    data: bytes
    """The token's bytes; empty for an end-of-text id."""
    log_prob: float
    """The model's log-probability of the token."""
    log_kept: float
    """The logarithm of the model's probability of all allowed tokens there."""
    log_likeliest: float
    """The model's log-probability of the token that it likes best there, allowed or not."""
    likeliest: int
    """That token."""

    @property
    def removed(self) -> float:
        """The probability that the mask took away, between 0 and 1."""
        return math.exp(log_one_minus_exp(min(self.log_kept, 0.0)))

    @property
    def log_masked(self) -> float:
        """The token's log-probability under the mask."""
        return self.log_prob - self.log_kept


@dataclass(frozen=True)
class Distortion:
    """All tokens of one sequence.  In a notebook each is the redder the more the mask took away before it.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> found = infer.distortion(model, [0], language, [0, 1, 2])  # "ab" and the end
    >>> [round(token.removed, 2) for token in found.tokens], round(found.log_weight, 2)
    ([0.1, 0.7, 0.9], -3.61)
    >>> round(found.log_masked + found.log_weight - found.log_prob, 6)
    0.0
    """

    tokens: tuple[TokenDistortion, ...]

    def _repr_html_(self) -> str:
        return card(
            "Distortion by the mask",
            self.marked(),
            facts((("log weight, nats", number(self.log_weight)), ("log probability, nats", number(self.log_prob)))),
        )

    def marked(self) -> str:
        """The text as HTML: each token as red as the share of probability that the mask took away before it."""
        return marked(
            (
                each.data.decode("utf-8", errors="backslashreplace") or "\N{WHITE SQUARE}",
                each.removed,
                f"id {each.token}, probability {share(math.exp(each.log_prob))}; the mask took {share(each.removed)}",
            )
            for each in self.tokens
        )

    @property
    def data(self) -> bytes:
        """The bytes of the sequence."""
        return b"".join(each.data for each in self.tokens)

    @property
    def log_prob(self) -> float:
        """The model's log-probability of the sequence."""
        return math.fsum(each.log_prob for each in self.tokens)

    @property
    def log_weight(self) -> float:
        """The logarithm of the importance weight: the sum of `TokenDistortion.log_kept`."""
        return math.fsum(each.log_kept for each in self.tokens)

    @property
    def log_masked(self) -> float:
        """The log-probability with which masked sampling draws the sequence."""
        return math.fsum(each.log_masked for each in self.tokens)

    @property
    def per_byte(self) -> NDArray[np.float64]:
        """``float64[len(data)]``: each token's ``log_kept`` in equal parts over its bytes.

        Tokens without bytes, such as the end of the text, are left out: the sum is `log_weight` less theirs.
        """
        parts = [np.full(len(each.data), each.log_kept / len(each.data)) for each in self.tokens if each.data]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def per_field(self) -> dict[str, float]:
        """The sum of `per_byte` over each value of a JSON text, by JSON pointer, in order of appearance.

        A container's sum has those of its members in it; ``""`` is the whole value.  Raises `TextError` where the text
        is not whole JSON.
        """
        from guided.infer.analysis.fields import spans_of

        running = np.concatenate([np.zeros(1), np.cumsum(self.per_byte)])
        return {pointer: float(running[end] - running[start]) for pointer, (start, end) in spans_of(self.data).items()}


def distortion(
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    tokens: Sequence[int],
) -> Distortion:
    """What masking does along one sequence: `distortions` of one.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> found = infer.distortion(model, [0], language, [0, 1, 2])
    >>> found.data, [round(token.removed, 2) for token in found.tokens]  # what the mask took away before each
    (b'ab', [0.1, 0.7, 0.9])
    """
    return distortions(model, prompt, potential, [tokens])[0]


def distortions(
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    sequences: Sequence[Sequence[int]],
) -> list[Distortion]:
    """What masking does along each sequence of generated token ids, with or without an end-of-text id at the end.

    One forward pass reads all of them.  Raises `GuidedError` for a token that the potential or the model does not
    allow where it stands.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> [found.data for found in infer.distortions(model, [0], language, [[1, 2], [0, 1, 2]])]
    [b'b', b'ab']
    """
    goal = as_potential(potential)
    if not sequences:
        return []
    rows = language_model(model).start([prompt])
    first = rows.last.logits
    rows.select([0] * len(sequences))
    # The scores after the last token of a sequence say nothing about it.
    bodies = [tuple(int(token) for token in tokens)[:-1] for tokens in sequences]
    scores = rows.extend(bodies) if any(bodies) else [None] * len(sequences)
    found = []
    for tokens, body, answer in zip(sequences, bodies, scores, strict=True):
        import torch

        logits = first if answer is None or not body else torch.cat([first, answer.logits])
        found.append(_along(goal, logits, [int(token) for token in tokens]))
    return found


def _along(potential: Potential[Any], logits: Any, tokens: Sequence[int]) -> Distortion:
    vocabulary: Vocabulary = potential.vocabulary
    state = potential.start()
    out = []
    for place, (token, distribution) in enumerate(zip(tokens, distributions_of(logits, vocabulary.size), strict=False)):
        weights = potential.logw_next_at(state)
        log_probs = distribution.logprobs
        where = f"token {place} of the sequence, {token}"
        if not 0 <= token < vocabulary.size or weights[token] == -math.inf:
            raise GuidedError(
                f"{potential!r} does not allow this token here",
                where=where,
                remedy="Pass the generated ids alone, without the prompt, and the constraint they were drawn under.",
            )
        if log_probs[token] == -math.inf:
            raise GuidedError("the model gives this token the probability 0", where=where)
        likeliest = int(log_probs.argmax())
        out.append(
            TokenDistortion(
                token,
                vocabulary.token_bytes(token) or b"",
                float(log_probs[token]),
                log_sum_exp(log_probs + weights),
                float(log_probs[likeliest]),
                likeliest,
            )
        )
        state, _ = potential.step(state, token)
    return Distortion(tuple(out))
