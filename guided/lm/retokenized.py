"""`retokenized`: a token model read in the tokens of another vocabulary, so that models of two tokenizers can be mixed.

The score of a token is the log-probability that the text goes on with its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from guided.errors import GuidedError
from guided.lm.bytes import BEAM, END, ByteModel
from guided.lm.lattice import LatticeState, TokenLattice
from guided.lm.model import NOTHING, Abilities, Calls, LanguageModel, Needs, Scores, check_needs
from guided.lm.prefix_rows import PrefixSequences
from guided.lm.rows import checked_ids
from guided.vocab import Vocabulary
from guided.vocab.trie import build_trie

__all__ = ["RetokenizedModel", "retokenized"]


class RetokenizedModel:
    """A language model over ``target``'s ids with the text probabilities of another token model.

    The logit of a token is log P(text goes on with the token's bytes | text so far), that of an end-of-text id
    log P(text ends here).  They are not normalised, because a text has many tokenisations and a short token shares the
    probability of the longer ones that begin with it; but along any token sequence they add up to the log-probability
    that a text begins with its bytes, and with the end to that of the text.  That is what a product with a model over
    ``target`` asks for.  Ids without text have -inf; where a prompt or a text holds some all the same (marks of a chat,
    say), the model reads what is around them, since its own marks are others.

    Every prefix of every token is a question to the model, so subtrees below ``threshold`` (probability given the text
    so far) are not looked into: their tokens get -inf.  0 is exact.  Raises `GuidedError` where ``threshold`` is not
    from 0 to below 1.

    >>> import guided
    >>> from guided.lm import TableModel, next_logits, retokenized
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> pairs = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
    >>> twin = retokenized(TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2]), letters, pairs, threshold=0.0)
    >>> next_logits(twin, [[]]).exp().numpy().round(2).tolist()  # P(text goes on with "a", "b", "ab", ends)
    [[0.6, 0.3, 0.18, 0.1]]
    """

    def __init__(self, view: ByteModel, target: Vocabulary, threshold: float) -> None:
        if not 0 <= threshold < 1:
            raise GuidedError(f"threshold is {threshold}", remedy="It must be from 0 to below 1.")
        self.view = view
        self.target = target
        self.threshold = threshold
        self.width = target.size
        self.eos_ids = frozenset(target.eos_ids)
        self.can = Abilities(crop=True, tree=True)
        self.calls = Calls()
        self.trie = target.trie if not target.has_special else build_trie(target.data, target.offsets)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> RetokenizedSequences:
        """Sequences that begin with these tokens of ``target``, which may be none."""
        check_needs(needs, self.can, "a retokenized model")
        return RetokenizedSequences(self, prompts)


class RetokenizedSequences(PrefixSequences):
    """The rows of a `RetokenizedModel`; `guided.lm.Sequences`."""

    def __init__(self, model: RetokenizedModel, prompts: Sequence[Sequence[int]]) -> None:
        super().__init__(model.width)
        self._model = model
        self._lattice: TokenLattice = model.view.lattice()
        self._states: dict[int, LatticeState | None] = {self._root: self._lattice.start}
        self._logits: dict[int, NDArray[np.float64]] = {}
        self._openings: set[int] = set()
        """What prompts begin with before any text: a beginning-of-text id, which in some vocabularies is the end's."""
        self.join(prompts)

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        for prompt in prompts:
            prefix = self._root
            for token in checked_ids(prompt, self._width):
                if self._model.target.token_bytes(token):
                    break
                prefix = self._prefixes.child(prefix, token)
                self._openings.add(prefix)
        super().join(prompts)

    def _learn(self, prefixes: Sequence[int]) -> None:
        new = [prefix for prefix in dict.fromkeys(prefixes) if prefix not in self._logits]
        for prefix in sorted(new, key=self._prefixes.depth):
            state = self._states[prefix] = self._state(prefix)
            self._logits[prefix] = self._after_end() if state is None else self._walked(state)
        calls = self._model.calls
        calls.passes += bool(new)
        calls.rows += len(new)
        calls.positions += len(new)

    def _forget(self, wanted: set[int]) -> None:
        known = self._states.items()
        self._states = {prefix: state for prefix, state in known if prefix in wanted or prefix == self._root}
        self._logits = {prefix: logits for prefix, logits in self._logits.items() if prefix in wanted}

    def _scores(self, prefixes: Sequence[int]) -> Scores:
        rows = [self._logits[prefix] for prefix in prefixes]
        width = self._model.width
        return Scores(torch.from_numpy(np.stack(rows)) if rows else torch.zeros((0, width), dtype=torch.float64))

    def _state(self, prefix: int) -> LatticeState | None:
        """The state after the bytes of a token sequence, None after its end."""
        tokens: list[int] = []
        while prefix not in self._states and prefix not in self._openings:
            tokens.append(self._prefixes.token(prefix))
            prefix = self._prefixes.parent(prefix)
        state = self._lattice.start if prefix in self._openings else self._states[prefix]
        for token in reversed(tokens):
            if token in self._model.eos_ids or state is None:
                state = None
                continue
            text = self._model.target.token_bytes(token)
            for byte in text or b"":
                (state,) = self._lattice.advance([(state, byte)])
        return state

    def _walked(self, start: LatticeState) -> NDArray[np.float64]:
        """The scores of all tokens after a state: one pass for each length of the tokens' prefixes."""
        trie = self._model.trie
        logits = np.full(self._model.width, -np.inf)
        logits[list(self._model.eos_ids)] = start.log_next[END]
        least = -np.inf if self._model.threshold == 0 else float(np.log(self._model.threshold))
        frontier: list[tuple[int, LatticeState, float]] = [(0, start, 0.0)]
        while frontier:
            moves: list[tuple[LatticeState, int]] = []
            reached: list[tuple[int, float]] = []
            for node, state, logprob in frontier:
                child = node + 1
                while child < trie.end[node]:
                    byte = int(trie.byte[child])
                    through = logprob + float(state.log_next[byte])
                    if through > -np.inf and through >= least:
                        logits[trie.token_ids[trie.token_offset[child] : trie.token_offset[child + 1]]] = through
                        if trie.end[child] > child + 1:
                            moves.append((state, byte))
                            reached.append((child, through))
                    child = int(trie.end[child])
            states = self._lattice.advance(moves) if moves else []
            frontier = [(node, state, logprob) for (node, logprob), state in zip(reached, states, strict=True)]
        logits.flags.writeable = False
        return logits

    def _after_end(self) -> NDArray[np.float64]:
        row = np.full(self._model.width, -np.inf)
        row[list(self._model.eos_ids)] = 0.0
        return row


def retokenized(
    model: LanguageModel,
    vocabulary: Vocabulary,
    target: Vocabulary,
    *,
    beam: int | None = BEAM,
    prune: float = 0.0,
    threshold: float = 1e-4,
    context: Sequence[int] = (),
) -> RetokenizedModel:
    """The model, whose tokens are ``vocabulary``'s, as a model over ``target``'s; see `RetokenizedModel`, `ByteModel`.

    ``context`` are tokens of ``vocabulary`` before all text.  Exact with ``beam=None`` and ``threshold=0``.

    >>> import guided
    >>> from guided.lm import TableModel, next_logits, retokenized
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> pairs = guided.Vocabulary.from_tokens([b"ab", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> twin = retokenized(model, letters, pairs, beam=None, threshold=0.0)
    >>> next_logits(twin, [[], [0]]).exp().numpy().round(2).tolist()
    [[0.18, 0.3, 0.1], [0.18, 0.3, 0.1]]
    """
    view = ByteModel(model, vocabulary, beam=beam, prune=prune, context=context)
    return RetokenizedModel(view, target, threshold)
