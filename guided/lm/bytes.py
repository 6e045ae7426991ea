"""`ByteModel`: a token model as a language model over bytes, the common ground on which tokenizers can be mixed.

Ids 0 to 255 are the bytes, 256 is the end of the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from guided.lm.lattice import END, LatticeState, TokenLattice
from guided.lm.model import NOTHING, Abilities, Calls, LanguageModel, Needs, Scores, check_needs
from guided.lm.prefix_rows import PrefixSequences
from guided.vocab import Vocabulary

__all__ = ["BEAM", "END", "ByteModel", "ByteSequences", "byte_vocabulary"]

BEAM = 8
"""Hypotheses kept by default: other tokenisations of a text than the few best have little probability."""


class ByteModel:
    """The next byte's probabilities of a token model: the sum over all ways to write the text in tokens.

    Exact with ``beam=None``, whose cost grows with the number of tokenisations; with a beam of n, the n most probable
    hypotheses are kept after each byte, and prefix probabilities are lower bounds.  ``prune`` drops hypotheses below
    that share of the total.  ``context`` are token ids before all text, usually a tokenised prompt; models of
    transformers need at least one.  Prompts are bytes and are read like generated ones: a byte is a step of the model,
    so put what need not be bytes into ``context``.

    A byte of probability 0 (-inf) cannot be appended: `UnsatisfiableError`.  What follows the end is padding, whatever
    it is, and only the end has probability then.  ``calls`` counts steps and bytes; the token model counts its own.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.vocab import Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
    >>> table = TableModel.of({}, otherwise=[0.4, 0.3, 0.2, 0.1], eos_ids=[3])
    >>> view = ByteModel(table, vocabulary, beam=None)
    >>> next_logits(view, [b"a"]).exp()[0, [97, 98, 256]]  # "a" is the token, or the beginning of "ab"
    tensor([0.4000, 0.5333, 0.0667], dtype=torch.float64)
    """

    width = 257
    eos_ids = frozenset({END})
    can = Abilities(crop=True, tree=True)

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        *,
        beam: int | None = BEAM,
        prune: float = 0.0,
        context: Sequence[int] = (),
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.calls = Calls()
        self._options = (beam, prune, tuple(context))
        self.lattice()  # so that wrong options fail here

    def lattice(self) -> TokenLattice:
        """A new lattice with rows of the token model of its own."""
        beam, prune, context = self._options
        return TokenLattice(self.model, self.vocabulary, beam, prune, context)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> ByteSequences:
        """Sequences that begin with these bytes (``bytes`` will do), which may be empty."""
        check_needs(needs, self.can, "the byte view of a model")
        return ByteSequences(self, prompts)


class ByteSequences(PrefixSequences):
    """The rows of a `ByteModel`; `guided.lm.Sequences`."""

    def __init__(self, model: ByteModel, prompts: Sequence[Sequence[int]]) -> None:
        super().__init__(model.width)
        self._calls = model.calls
        self._lattice = model.lattice()
        self._states: dict[int, LatticeState | None] = {self._root: self._lattice.start}
        self.join(prompts)

    def log_prefix(self, row: int) -> float:
        """Log-probability that a text begins with the row's bytes, with a beam a lower bound.

        Of a row that has ended it is the log-probability of the text.
        """
        prefix = at = self._rows[row]
        while at != self._root:
            if self._prefixes.token(at) == END:
                prefix = self._prefixes.parent(at)
            at = self._prefixes.parent(at)
        ended = prefix != self._rows[row]
        self._learn([prefix])
        state = self._states[prefix]
        assert state is not None
        return state.log_prefix + (float(state.log_next[END]) if ended else 0.0)

    def state(self, row: int) -> LatticeState | None:
        """The hypotheses behind a row, None after the end."""
        self._learn([self._rows[row]])
        return self._states[self._rows[row]]

    def _learn(self, prefixes: Sequence[int]) -> None:
        """From the longest known beginnings, one byte of all of them at a time."""
        missing: set[int] = set()
        for prefix in prefixes:
            while prefix not in self._states and prefix not in missing:
                missing.add(prefix)
                prefix = self._prefixes.parent(prefix)
        by_depth: dict[int, list[int]] = {}
        for prefix in sorted(missing):
            by_depth.setdefault(self._prefixes.depth(prefix), []).append(prefix)
        needed = set(prefixes)
        for depth in sorted(by_depth):
            self._advance(by_depth[depth])
            # States on the way are let go as soon as the next byte is read, and their token histories with them.
            for prefix in by_depth.get(depth - 1, ()):
                if prefix not in needed:
                    del self._states[prefix]

    def _advance(self, prefixes: Sequence[int]) -> None:
        """The states of prefixes whose parents' states are known."""
        moves: list[tuple[LatticeState, int]] = []
        moved: list[int] = []
        for prefix in prefixes:
            state, byte = self._states[self._prefixes.parent(prefix)], self._prefixes.token(prefix)
            if byte == END or state is None:
                self._states[prefix] = None
            else:
                moves.append((state, byte))
                moved.append(prefix)
        if moves:
            self._states.update(zip(moved, self._lattice.advance(moves), strict=True))
        self._calls.passes += 1
        self._calls.rows += len(prefixes)
        self._calls.positions += len(prefixes)

    def _forget(self, wanted: set[int]) -> None:
        known = self._states.items()
        self._states = {prefix: state for prefix, state in known if prefix in wanted or prefix == self._root}

    def _scores(self, prefixes: Sequence[int]) -> Scores:
        rows = [_AFTER_END if (state := self._states[prefix]) is None else state.log_next for prefix in prefixes]
        return Scores(torch.from_numpy(np.stack(rows)) if rows else torch.zeros((0, END + 1), dtype=torch.float64))


def _only_the_end() -> NDArray[np.float64]:
    row = np.full(257, -np.inf)
    row[END] = 0.0
    return row


_AFTER_END = _only_the_end()


def byte_vocabulary() -> Vocabulary:
    """The vocabulary of byte models: 256 single bytes and the end of text, for constraints on them.

    >>> vocabulary = byte_vocabulary()
    >>> vocabulary.size, vocabulary.token_bytes(97), vocabulary.eos_ids
    (257, b'a', (256,))
    """
    return Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[END])
