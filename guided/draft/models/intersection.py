"""`intersected`: a model of another tokenizer, read on the tokens that both vocabularies have.

TLI (token-level intersection; Timor et al., 2025, arXiv 2502.05202).  Its distribution over the target's ids is its
own, restricted to tokens of equal bytes and normalised again; so `guided.draft.Model` of it draws from what it names,
and verification keeps the target's law.  The text so far is read in the other's tokens: a prompt as the other tokenizer
splits it, and later tokens one by one, as the same token where there is one and split otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch

from guided.errors import GuidedError, VocabularyError
from guided.lm.given import language_model
from guided.lm.model import NOTHING, Abilities, Calls, LanguageModel, Needs, Scores, Sequences, Tree, check_needs
from guided.lm.rows import checked_ids, checked_path, one_each
from guided.vocab import Vocabulary, vocabulary_of
from guided.vocab.encoding import Encode, TextEncoder, byte_fallbacks

__all__ = ["IntersectedModel", "intersected"]


class IntersectedModel:
    """A language model over ``target``'s ids that scores those which ``own`` has as well, and end-of-text ids.

    All other ids have -inf.  Special tokens are shown to the model by their names, and those without a twin are not.
    An end-of-text id of the target that is none there has the score of the model's best one.  Raises `VocabularyError`
    where the vocabularies have no token in common.

    >>> import guided
    >>> from guided import draft
    >>> from guided.lm import TableModel, next_logits
    >>> own = guided.Vocabulary.from_tokens([b"b", b"a", None], eos_ids=[2])
    >>> target = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
    >>> twin = draft.intersected(TableModel.of({}, otherwise=[0.2, 0.7, 0.1], eos_ids=[2]), own, target)
    >>> next_logits(twin, [[2]]).exp().numpy().round(2).tolist()  # "ab" is none of the model's
    [[0.7, 0.2, 0.0, 0.1]]
    """

    def __init__(
        self, model: LanguageModel, own: TextEncoder, target: Vocabulary, width: int | None, encode: Encode
    ) -> None:
        self.model = model
        self.width = target.size if width is None else width
        self.eos_ids = frozenset(target.eos_ids)
        self.can = Abilities(crop=model.can.crop, tree=model.can.tree)
        self.own, self.target, self.encode, self.beginning = own.vocabulary, target, encode, own.beginning
        texts = _twins(self.own, model.width, target, self.width)
        if not texts:
            raise VocabularyError(
                "the draft's vocabulary and the target's have no token in common",
                remedy="Draft with another model, or with guided.draft.auto, which needs none.",
            )
        self.shared = len(texts)
        """How many tokens of text both vocabularies have."""
        names = self.own.special_tokens
        special = {t: names[name] for name, t in target.special_tokens.items() if name in names}
        if self.own == target:
            special |= {t: t for t in self.eos_ids}
        scored = texts | {t: twin for t, twin in special.items() if t in self.eos_ids and twin in model.eos_ids}
        other_ends = sorted(self.eos_ids - scored.keys())
        self.twin = scored | special
        """The other's id for tokens of text, special tokens of the same name, and end-of-text ids."""
        if model.eos_ids:
            self.twin |= dict.fromkeys(other_ends, min(model.eos_ids))
        self._scored, self._theirs = torch.tensor(list(scored)), torch.tensor(list(scored.values()))
        self._ends = torch.tensor(other_ends, dtype=torch.long)
        self._own_ends = torch.tensor(sorted(model.eos_ids), dtype=torch.long)

    @property
    def calls(self) -> Calls:
        """The model's counters."""
        return self.model.calls

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> _IntersectedSequences:
        """Sequences that begin with these tokens of ``target``; a prompt without text is refused by most models."""
        check_needs(needs, self.can, "an intersected model")
        return _IntersectedSequences(self, prompts)

    def pieces(self, token: int) -> list[int]:
        """A target token in the other's tokens."""
        if token in self.twin:
            return [self.twin[token]]
        data = self._bytes(token)
        return list(self.encode(data)) if data else []

    def _bytes(self, token: int) -> bytes | None:
        return self.target.token_bytes(token) if token < self.target.size else None

    def read(self, tokens: Sequence[int]) -> list[int]:
        """A prompt in the other's tokens: texts as it splits them, and special tokens between them by name.

        Where the prompt's first special token has no twin there, it is what the other tokenizer begins texts with.
        """
        if self.own == self.target:
            return list(tokens)
        found: list[int] = []
        for is_text, run in groupby(tokens, key=lambda token: self._bytes(token) is not None):
            some = list(run)
            found += self._text(some) if is_text else [piece for token in some for piece in self.pieces(token)]
        unknown = bool(tokens) and self._bytes(tokens[0]) is None and not self.pieces(tokens[0])
        return [*self.beginning, *found] if unknown else found

    def _text(self, tokens: Sequence[int]) -> list[int]:
        """Tokens of text; one by one where they do not come out as the same bytes."""
        text = b"".join(self._bytes(token) or b"" for token in tokens)
        found = list(self.encode(text))
        if b"".join(self.own.token_bytes(token) or b"" for token in found) == text:
            return found
        return [piece for token in tokens for piece in self.pieces(token)]

    def scores(self, scores: Scores) -> Scores:
        """The model's scores on the target's ids."""
        logits = scores.logits
        found = logits.new_full((*logits.shape[:-1], self.width), -torch.inf)
        device = logits.device
        found[..., self._scored.to(device)] = logits[..., self._theirs.to(device)]
        if self._own_ends.numel():
            best = logits[..., self._own_ends.to(device)].amax(-1, keepdim=True)
            found[..., self._ends.to(device)] = best.expand(*logits.shape[:-1], self._ends.numel())
        return Scores(found)


class _IntersectedSequences:
    """Rows in the target's tokens over rows of the model in its own; a token is none, one or several of those."""

    def __init__(self, model: IntersectedModel, prompts: Sequence[Sequence[int]]) -> None:
        self._model = model
        self._tokens: list[list[int]] = []
        self._lengths: list[list[int]] = []
        """For each row the length in the model's tokens after each token beyond the prompt, the prompt's first."""
        self._prompt: list[int] = []
        self._inner: Sequences = model.model.start([])
        self._trees: list[tuple[Tree, list[int]]] | None = None
        self.join(prompts)

    def __len__(self) -> int:
        return len(self._tokens)

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens, prompt included."""
        return tuple(self._tokens[row])

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        return self._model.scores(self._inner.last)

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        """Append tokens to each row; scores after each of them."""
        added = [checked_ids(new, self._model.width) for new in one_each(tokens, len(self))]
        pieces = [[self._model.pieces(token) for token in new] for new in added]
        before = self._inner.last if any(p and not p[0] for p in pieces) else None
        scores = self._inner.extend([[own for piece in row for own in piece] for row in pieces])
        found: list[Scores] = []
        for row, new in enumerate(added):
            ends, end = [], -1
            for piece in pieces[row]:
                end += len(piece)
                ends.append(end)
                self._lengths[row].append(self._lengths[row][-1] + len(piece))
            self._tokens[row] += new
            found.append(self._model.scores(_picked(scores[row], ends, before, row)))
        self._trees = None
        return found

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        chosen = [range(len(self))[row] for row in rows]
        self._inner.select(chosen)
        self._tokens = [list(self._tokens[row]) for row in chosen]
        self._lengths = [list(self._lengths[row]) for row in chosen]
        self._prompt = [self._prompt[row] for row in chosen]
        self._trees = None

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens; a prompt that is cut into is read again."""
        wanted = [int(length) for length in one_each(lengths, len(self))]
        for row, length in enumerate(wanted):
            if not 0 <= length <= len(self._tokens[row]):
                raise GuidedError(f"a row of {len(self._tokens[row])} tokens cannot be cropped to {length}")
        short = [row for row, length in enumerate(wanted) if length < self._prompt[row]]
        own = [
            self._lengths[row][length - self._prompt[row]] if row not in short else self._lengths[row][0]
            for row, length in enumerate(wanted)
        ]
        self._inner.crop(own)
        for row, length in enumerate(wanted):
            self._tokens[row] = self._tokens[row][:length]
            self._lengths[row] = self._lengths[row][: max(length - self._prompt[row], 0) + 1]
        if short:
            n = len(self)
            self.join([self._tokens[row] for row in short])
            self.select([n + short.index(row) if row in short else row for row in range(n)])
        self._trees = None

    def extend_tree(self, trees: Sequence[Tree]) -> list[Scores]:
        """Scores of every node of a tree for each row; appends nothing."""
        inner: list[Tree] = []
        places: list[list[int]] = []
        for tree in one_each(trees, len(self)):
            tokens: list[int] = []
            parents: list[int] = []
            ends: list[int] = []
            for token, parent in zip(checked_ids(tree.tokens, self._model.width), tree.parents, strict=True):
                at = ends[parent] if parent >= 0 else -1
                for piece in self._model.pieces(token):
                    tokens.append(piece)
                    parents.append(at)
                    at = len(tokens) - 1
                ends.append(at)
            inner.append(Tree(tuple(tokens), tuple(parents)))
            places.append(ends)
        before = self._inner.last if any(end < 0 for ends in places for end in ends) else None
        scores = self._inner.extend_tree(inner)
        self._trees = list(zip(trees, places, strict=True))
        return [self._model.scores(_picked(scores[row], ends, before, row)) for row, ends in enumerate(places)]

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree."""
        if self._trees is None:
            raise GuidedError("there is no tree to keep a path of", remedy="Call extend_tree first.")
        inner: list[list[int]] = []
        for row, ((tree, ends), path) in enumerate(zip(self._trees, one_each(paths, len(self)), strict=True)):
            own: list[int] = []
            for node in checked_path(tree, path):
                pieces = self._model.pieces(tree.tokens[node])
                own += range(ends[node] - len(pieces) + 1, ends[node] + 1)
                self._lengths[row].append(self._lengths[row][-1] + len(pieces))
                self._tokens[row].append(tree.tokens[node])
            inner.append(own)
        self._inner.keep(inner)
        self._trees = None

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        new = [checked_ids(prompt, self._model.width) for prompt in prompts]
        own = [self._model.read(prompt) for prompt in new]
        self._inner.join(own)
        self._tokens += [list(prompt) for prompt in new]
        self._lengths += [[len(read)] for read in own]
        self._prompt += [len(prompt) for prompt in new]
        self._trees = None


def _picked(scores: Scores, places: Sequence[int], before: Scores | None, row: int) -> Scores:
    """The scores at places; -1 is what the row's last token said before."""
    if before is None:
        return Scores(scores.logits[torch.tensor(places, dtype=torch.long, device=scores.logits.device)])
    parts = [scores.logits[place] if place >= 0 else before.logits[row] for place in places]
    return Scores(torch.stack(parts) if parts else scores.logits[:0])


def _twins(own: Vocabulary, own_width: int, target: Vocabulary, width: int) -> dict[int, int]:
    """The target's tokens of text to those of equal bytes, each to one of its own.

    Where several tokens are the same bytes, what tokenizers write is a twin of what they write, and a byte token
    (``<0x2C>`` beside ``,``) of a byte token: as twins of one token they would share its probability.
    """

    def by_bytes(vocabulary: Vocabulary, below: int) -> dict[bytes, list[int]]:
        fallbacks = byte_fallbacks(vocabulary)
        found: dict[bytes, list[int]] = {}
        for token, data in enumerate(vocabulary.tokens[:below]):
            if data:
                found.setdefault(data, []).append(token)
        return {data: sorted(ids, key=lambda token: (token in fallbacks, token)) for data, ids in found.items()}

    theirs = by_bytes(own, own_width)
    return {
        ours: twin
        for data, ids in by_bytes(target, width).items()
        for ours, twin in zip(ids, theirs.get(data, ()), strict=False)
    }


def intersected(
    model: LanguageModel,
    own: Any,
    target: Any,
    *,
    encode: Encode | None = None,
    width: int | None = None,
) -> IntersectedModel:
    """The model, whose tokens are ``own``'s, on the tokens that it shares with ``target``.

    Both are tokenizers or vocabularies.  Prompts are split as the model's tokenizer does: ``own``, or its
    ``tokenizer``, or ``encode``; without any, the longest token first.  ``width`` is the target model's where it scores
    more ids than the vocabulary has.  Raises `VocabularyError` where no token is shared.

    >>> import numpy as np
    >>> import guided
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> own = guided.Vocabulary.from_tokens([b"c", b"b", b"a", None], eos_ids=[3])
    >>> target = guided.Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_ids=[3])
    >>> small = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] - 1) % 3], width=4, eos_ids=[3])  # c b a: 0 1 2
    >>> drafter = draft.Model(draft.intersected(small, own, target), draft.Chain(4), by_rule=True)
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=15)
    >>> counts.passes
    3
    """
    model = language_model(model)
    reading = TextEncoder(own, getattr(model, "tokenizer", None))
    return IntersectedModel(model, reading, vocabulary_of(target), width, encode or reading)
