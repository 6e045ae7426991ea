"""`OtherVocabulary`: drafts by a model with another tokenizer, through the text that both can write.

SLEM (Timor et al., 2025, arXiv 2502.05202): the other model goes on from the text in its own tokens, and what it writes
is split by the target's tokenizer.  That is a draft by rule, so the law is kept however texts are split.  To draw from
the other model in the target's tokens instead, draft with `guided.lm.retokenized` of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guided.draft.drafter import Context, Observed
from guided.draft.models.model import Model
from guided.draft.models.shapes import Chain
from guided.draft.proposal import Proposal, chain
from guided.errors import VocabularyError
from guided.infer.chance import Chance
from guided.lm.given import language_model
from guided.lm.model import LanguageModel
from guided.vocab import Vocabulary
from guided.vocab.encoding import Encode, TextEncoder

__all__ = ["OtherVocabulary"]


class OtherVocabulary:
    """Writes some text greedily with another model, and drafts it in the target's tokens.

    ``own`` is the other model's tokenizer, ``target`` the target's: texts are split as they split them.  A `Vocabulary`
    in place of either knows no splitting, so that tokens are then the longest first, which a model follows less well;
    that of ``own`` is also known where the model has its tokenizer.  ``encode_own`` and ``encode_target`` split bytes
    otherwise.  ``pieces`` is the most of its tokens that the other model writes in a round.  Of special tokens it is
    shown those that its own tokenizer puts before every text.  Raises `VocabularyError` where the vocabularies have no
    token in common.

    >>> import numpy as np
    >>> import guided
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> own = guided.Vocabulary.from_tokens([b"abc", b"a", None], eos_ids=[2])  # a model that writes words
    >>> target = guided.Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_ids=[3])
    >>> words = TableModel.of({}, otherwise=[0.9, 0.05, 0.05], eos_ids=[2])
    >>> drafter = draft.OtherVocabulary(words, own, target, pieces=2)
    >>> _, counts = draft.speculate(0, model, [[0, 1, 2]], [None], drafter, greedy=True, max_tokens=14)
    >>> counts.passes < 14
    True
    """

    def __init__(
        self,
        model: LanguageModel,
        own: Any,
        target: Any,
        *,
        encode_own: Encode | None = None,
        encode_target: Encode | None = None,
        pieces: int = 8,
    ) -> None:
        model = language_model(model)
        reading = TextEncoder(own, getattr(model, "tokenizer", None))
        writing = TextEncoder(target)
        self.own, self.target, self.pieces = reading.vocabulary, writing.vocabulary, pieces
        if not set(filter(None, self.own.tokens)) & set(filter(None, self.target.tokens)):
            raise VocabularyError(
                "the draft's vocabulary and the target's have no token in common",
                remedy="Draft with another model, or with guided.draft.auto, which needs none.",
            )
        self._beginning = list(reading.beginning)
        self._encode_own: Encode = encode_own or reading
        self._encode_target: Encode = encode_target or writing
        self._model = Model(model, Chain(pieces), by_rule=True)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """A chain a row."""
        found = [Proposal() for _ in contexts]
        asked: list[tuple[int, Context]] = []
        for i, context in enumerate(contexts):
            text = _bytes(self.target, context.tokens)
            tokens = list(self._encode_own(text))
            # Text that cannot be written in the other's tokens would be continued in the middle.
            if tokens and _bytes(self.own, tokens) == text:
                asked.append((i, Context(context.row, [*self._beginning, *tokens], 1, None, 0, self.pieces)))
        if asked:
            for (i, _), proposal in zip(asked, self._model.draft(chance, [c for _, c in asked]), strict=True):
                written: list[int] = []
                for token in proposal.tree.tokens:
                    if token >= self.own.size or not self.own.token_bytes(token):
                        break
                    written.append(token)
                found[i] = chain(list(self._encode_target(_bytes(self.own, written)))[: contexts[i].longest])
        return found

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing: the other model reads the text when a draft is wanted."""

    def leave(self, rows: Sequence[int]) -> None:
        """Take rows out of the other model's cache."""
        self._model.leave(rows)


def _bytes(vocabulary: Vocabulary, tokens: Sequence[int]) -> bytes:
    return b"".join(vocabulary.token_bytes(token) or b"" for token in tokens if token < vocabulary.size)
