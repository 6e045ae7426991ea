"""`TokenLattice`: all ways in which a token model can have written a text so far, and the next byte's probabilities.

After the bytes x, a hypothesis is a token history and a place inside the next token (a node of the vocabulary's trie)
whose bytes together are x.  Its weight is the history's probability times that of all tokens below the node, so the
weights add up to the probability that a text begins with x: every token sequence that covers x counts once, by the
token that covers x's last byte.  Where a token can end, the sum over "it ends here" is taken, not one of both chosen.

Method: Phan et al., Exact Byte-Level Probabilities from Tokenized Language Models, 2024 (arXiv 2410.09303), over all
tokenisations instead of the tokenizer's own, with a beam.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.errors import GuidedError, UnsatisfiableError, VocabularyError
from guided.lm.model import LanguageModel, Scores
from guided.vocab import Vocabulary
from guided.vocab.trie import Trie, build_trie

__all__ = ["END", "History", "Hypothesis", "LatticeState", "TokenLattice"]

END = 256
"""The id of the end of text among the next bytes."""


@dataclass(frozen=True, eq=False)
class History:
    """Tokens that were written for certain, and the distribution of the next one."""

    tokens: tuple[int, ...]
    """Without the context."""
    masses: NDArray[np.float64]
    """``float64[m]``: probabilities of the tokens with text, in the order of the trie."""
    begins: NDArray[np.float64]
    """``float64[257]``: probability that the next token begins with each byte, and that the text ends."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A history of log-probability ``logprob``, and a node inside its next token."""

    history: History
    logprob: float
    node: int
    mass: float
    """Probability of the tokens at and below the node, after the history."""

    @property
    def logw(self) -> float:
        """Log-probability of the history and a next token that begins so."""
        return self.logprob + math.log(self.mass)


@dataclass(frozen=True, eq=False)
class LatticeState:
    """What is known after some bytes."""

    hypotheses: tuple[Hypothesis, ...]
    complete: tuple[tuple[History, float], ...]
    """Histories whose bytes are all bytes so far, with their log-probabilities: a token may just have ended."""
    log_next: NDArray[np.float64]
    """``float64[257]``: log-probabilities of the next byte, and at `END` of the end of the text; they sum to 1."""
    log_prefix: float
    """Log-probability that a text begins with the bytes so far; with a beam a lower bound."""


class TokenLattice:
    """The states of one token model over the bytes of its vocabulary.

    Each step asks the model about the histories that became complete, in one pass for all states advanced together.
    Ids without text that do not end it (special tokens, padding) are taken out of every distribution and the rest
    renormalised, since they are in no text.  Raises `VocabularyError` where model and vocabulary do not belong
    together, `GuidedError` where ``beam`` or ``prune`` is out of range.
    """

    def __init__(
        self, model: LanguageModel, vocabulary: Vocabulary, beam: int | None, prune: float, context: Sequence[int]
    ) -> None:
        if vocabulary.size > model.width and np.diff(vocabulary.offsets)[model.width :].any():
            raise VocabularyError(
                f"the model scores {model.width} ids, but the vocabulary has text beyond",
                remedy="Use the tokenizer that belongs to this model.",
            )
        if not model.eos_ids.isdisjoint(np.flatnonzero(np.diff(vocabulary.offsets)).tolist()):
            raise VocabularyError(
                "an id that ends the text for the model is text in the vocabulary",
                remedy="Give the same eos_ids to both.",
            )
        if beam is not None and beam < 1:
            raise GuidedError(f"beam is {beam}", remedy="Keep at least one hypothesis, or None for all.")
        if not 0 <= prune < 1:
            raise GuidedError(f"prune is {prune}", remedy="It must be from 0 to below 1.")
        self._beam = beam
        self._prune = prune
        self._trie = vocabulary.trie if not vocabulary.has_special else build_trie(vocabulary.data, vocabulary.offsets)
        self._children = _Children(self._trie)
        self._text_ids = self._trie.token_ids.astype(np.int64)
        ends = sorted({end for end in (*model.eos_ids, *vocabulary.eos_ids) if end < model.width})
        self._end_ids = np.array(ends, np.int64)
        self._context = tuple(context)
        self._rows = model.start([self._context])
        first = self._history((), self._rows.last, 0)
        self._live: list[weakref.ref[History]] = [weakref.ref(first)]
        self._known: weakref.WeakValueDictionary[tuple[int, ...], History] = weakref.WeakValueDictionary()
        self.start = self._state((), ((first, 0.0),), 0.0)
        """The state after no bytes."""

    def advance(self, moves: Sequence[tuple[LatticeState, int]]) -> list[LatticeState]:
        """The states after one more byte each, in one pass of the model.

        Raises `UnsatisfiableError` where the model gives the byte probability 0.
        """
        survivors = [self._moved(state, byte) for state, byte in moves]
        ending: dict[tuple[int, ...], tuple[History, int]] = {}
        for hypotheses in survivors:
            for hypothesis in hypotheses:
                for token in self._tokens_at(hypothesis.node):
                    ending.setdefault((*hypothesis.history.tokens, token), (hypothesis.history, token))
        found = self._extended(ending)
        states: list[LatticeState] = []
        for hypotheses in survivors:
            complete: list[tuple[History, float]] = []
            for hypothesis in hypotheses:
                first = int(self._trie.token_offset[hypothesis.node])
                for place, token in enumerate(self._tokens_at(hypothesis.node), first):
                    mass = float(hypothesis.history.masses[place])
                    if mass > 0:
                        longer = found[(*hypothesis.history.tokens, token)]
                        complete.append((longer, hypothesis.logprob + math.log(mass)))
            states.append(self._state(hypotheses, tuple(complete), _log_sum([h.logw for h in hypotheses])))
        return states

    def _tokens_at(self, node: int) -> list[int]:
        trie = self._trie
        tokens: list[int] = trie.token_ids[trie.token_offset[node] : trie.token_offset[node + 1]].tolist()
        return tokens

    def _moved(self, state: LatticeState, byte: int) -> tuple[Hypothesis, ...]:
        """The hypotheses of a state that agree with one more byte, the best of them."""
        found = [self._below(h.history, h.logprob, h.node, byte) for h in state.hypotheses]
        found += [self._below(history, logprob, 0, byte) for history, logprob in state.complete]
        alive = [hypothesis for hypothesis in found if hypothesis is not None]
        if not alive:
            raise UnsatisfiableError(
                f"the model gives byte {byte} probability 0 after this text",
                remedy="Append bytes whose log-probability is above -inf.",
            )
        alive.sort(key=lambda hypothesis: -hypothesis.logw)
        kept = alive[: self._beam]
        if self._prune:
            least = _log_sum([hypothesis.logw for hypothesis in alive]) + math.log(self._prune)
            kept = [hypothesis for hypothesis in kept if hypothesis.logw >= least] or kept[:1]
        if len(kept) < len(alive) and not any(self._tokens_at(hypothesis.node) for hypothesis in kept):
            # Without a place where a token may end, only the kept tokens' own bytes could follow.
            kept += [hypothesis for hypothesis in alive if self._tokens_at(hypothesis.node)][:1]
        return tuple(kept)

    def _below(self, history: History, logprob: float, node: int, byte: int) -> Hypothesis | None:
        child = self._children.below(node, byte)
        if child < 0:
            return None
        trie = self._trie
        mass = float(history.masses[trie.token_offset[child] : trie.token_offset[trie.end[child]]].sum())
        return Hypothesis(history, logprob, child, mass) if mass > 0 else None

    def _extended(self, ending: dict[tuple[int, ...], tuple[History, int]]) -> dict[tuple[int, ...], History]:
        """The histories one token longer, those not known yet by one pass."""
        found = {tokens: known for tokens in ending if (known := self._known.get(tokens)) is not None}
        new = [tokens for tokens in ending if tokens not in found]
        if not new:
            return found
        alive = [(row, history) for row, link in enumerate(self._live) if (history := link()) is not None]
        row_of = {id(history): row for row, history in alive}
        self._rows.select([row for row, _ in alive] + [row_of[id(ending[tokens][0])] for tokens in new])
        scores = self._rows.extend([[] for _ in alive] + [[ending[tokens][1]] for tokens in new])
        for number, tokens in enumerate(new, len(alive)):
            found[tokens] = self._known[tokens] = self._history(tokens, scores[number], 0)
        self._live = [weakref.ref(history) for _, history in alive] + [weakref.ref(found[tokens]) for tokens in new]
        return found

    def _history(self, tokens: tuple[int, ...], scores: Scores, at: int) -> History:
        logits = scores.logits[at].double().cpu().numpy()
        text, ends = logits[self._text_ids], logits[self._end_ids]
        high = max(text.max(initial=-np.inf), ends.max(initial=-np.inf))
        if not np.isfinite(high):
            raise UnsatisfiableError(
                f"after the tokens {(*self._context, *tokens)[-8:]} the model allows neither text nor its end",
                remedy="Check the model's scores.",
            )
        masses, ending = np.exp(text - high), float(np.exp(ends - high).sum())
        total = float(masses.sum()) + ending
        masses /= total
        masses.flags.writeable = False
        begins = np.zeros(257)
        begins[END] = ending / total
        self._children.add_masses(0, masses, 1.0, begins)
        return History(tokens, masses, begins)

    def _state(
        self, hypotheses: tuple[Hypothesis, ...], complete: tuple[tuple[History, float], ...], log_prefix: float
    ) -> LatticeState:
        high = max([h.logprob for h in hypotheses] + [logprob for _, logprob in complete])
        total = np.zeros(257)
        for h in hypotheses:
            self._children.add_masses(h.node, h.history.masses, math.exp(h.logprob - high), total)
        for history, logprob in complete:
            total += math.exp(logprob - high) * history.begins
        with np.errstate(divide="ignore"):
            log_next = np.log(total / total.sum())
        log_next.flags.writeable = False
        return LatticeState(hypotheses, complete, log_next, log_prefix)


class _Children:
    """The children of trie nodes, by byte and with their ranges of tokens; made when first asked for."""

    def __init__(self, trie: Trie) -> None:
        self._trie = trie
        self._known: dict[int, tuple[dict[int, int], NDArray[np.int64], NDArray[np.int64], int]] = {}

    def _of(self, node: int) -> tuple[dict[int, int], NDArray[np.int64], NDArray[np.int64], int]:
        found = self._known.get(node)
        if found is None:
            trie, child, nodes = self._trie, node + 1, []
            stop = int(trie.end[node])
            while child < stop:
                nodes.append(child)
                child = int(trie.end[child])
            codes = trie.byte[nodes].astype(np.int64) if nodes else np.zeros(0, np.int64)
            starts = trie.token_offset[nodes].astype(np.int64) if nodes else np.zeros(0, np.int64)
            by_byte = dict(zip(codes.tolist(), nodes, strict=True))
            found = self._known[node] = (by_byte, codes, starts, int(trie.token_offset[stop]))
        return found

    def below(self, node: int, byte: int) -> int:
        """The child of a node by a byte, -1 if there is none."""
        return self._of(node)[0].get(byte, -1)

    def add_masses(self, node: int, masses: NDArray[np.float64], factor: float, into: NDArray[np.float64]) -> None:
        """Add to ``into[byte]`` the probability of the tokens below each child, times ``factor``."""
        _, codes, starts, stop = self._of(node)
        if codes.size:
            # Sums over ranges, not differences of running sums: small probabilities keep their digits.
            into[codes] += factor * np.add.reduceat(masses[starts[0] : stop], starts - starts[0])


def _log_sum(values: Sequence[float]) -> float:
    high = max(values)
    return high + math.log(math.fsum(math.exp(value - high) for value in values))
