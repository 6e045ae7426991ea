"""`TableModel`: a language model that is a function of the tokens so far, in float64, for tests and enumerations.

Exact and deterministic: the same prefix has the same scores to the last bit, whatever was asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from guided.errors import GuidedError
from guided.lm.model import NOTHING, Abilities, Calls, Needs, Scores, Tree, check_needs
from guided.lm.rows import checked_ids, checked_path, one_each

__all__ = ["TableModel", "TableSequences"]

Tokens = tuple[int, ...]

MEMO = 1 << 16
"""Prefixes whose scores are remembered; the oldest are then computed again."""


class TableModel:
    """A language model given by a pure function from the tokens so far to the scores of the next one.

    ``logprobs(tokens)`` gives ``width`` numbers, natural logarithms; -inf is allowed, NaN, +inf and nothing but -inf
    are not, and they are passed on as they are, normalised or not.  ``layers``, ``hidden`` and ``masked`` serve the
    needs of those names: a function for the embedding and for each block but the last one, whose scores are
    ``logprobs``; the hidden state; and the scores when a set of heads is masked.  Of ``prompt_tokens`` the functions
    are given the ids from ``width`` on.

    Raises `GuidedError` for end-of-text ids that it does not score.

    >>> model = TableModel(lambda tokens: np.log([0.5, 0.25, 0.25]), width=3, eos_ids=[2])
    >>> model.start([[0]]).last.logits.exp()
    tensor([[0.5000, 0.2500, 0.2500]], dtype=torch.float64)
    """

    def __init__(
        self,
        logprobs: Callable[[Tokens], ArrayLike],
        *,
        width: int,
        eos_ids: Iterable[int] = (),
        layers: Sequence[Callable[[Tokens], ArrayLike]] = (),
        hidden: Callable[[Tokens], ArrayLike] | None = None,
        masked: Callable[[Tokens, frozenset[tuple[int, int]]], ArrayLike] | None = None,
        prompt_tokens: int = 0,
    ) -> None:
        self.width = int(width)
        self.eos_ids = frozenset(int(end) for end in eos_ids)
        outside = [end for end in self.eos_ids if not 0 <= end < self.width]
        if outside:
            raise GuidedError(f"the end-of-text ids {sorted(outside)} are not in range({width})")
        self.can = Abilities(
            crop=True, tree=True, layers=len(layers), hidden=hidden is not None, masked_heads=masked is not None,
            prompt_tokens=prompt_tokens,
        )  # fmt: skip
        self.calls = Calls()
        self._logprobs = logprobs
        self._layers = tuple(layers)
        self._hidden = hidden
        self._masked = masked
        self._memo: dict[tuple[Tokens, frozenset[tuple[int, int]]], NDArray[np.float64]] = {}

    @classmethod
    def random(
        cls,
        seed: int,
        *,
        width: int = 4,
        eos_ids: Iterable[int] | None = None,
        scale: float = 1.5,
        order: int | None = None,
    ) -> TableModel:
        """A random model: for each prefix its own normal logits of standard deviation ``scale``, normalised.

        With ``order`` only the last so many tokens matter.  The last id ends a text unless ``eos_ids`` says otherwise.
        """

        def logits(tokens: Tokens) -> NDArray[np.float64]:
            seen = tokens if order is None else tokens[max(len(tokens) - order, 0) :]
            values = scale * np.random.default_rng([seed, width, *seen]).standard_normal(width)
            return normalised(values)

        return cls(logits, width=width, eos_ids=[width - 1] if eos_ids is None else eos_ids)

    @classmethod
    def of(
        cls,
        probabilities: Mapping[Tokens, ArrayLike],
        *,
        otherwise: ArrayLike | None = None,
        eos_ids: Iterable[int] = (),
    ) -> TableModel:
        """A model from the probabilities of the next token after each prefix; ``otherwise`` after all others.

        Raises `GuidedError` for numbers that do not sum to 1 within 1e-9, and, when it is asked, for a prefix without.
        """
        rows = {tuple(tokens): _log_of(row) for tokens, row in probabilities.items()}
        rest = None if otherwise is None else _log_of(otherwise)
        some = [*rows.values(), *([] if rest is None else [rest])]
        if not some or len({row.size for row in some}) > 1:
            raise GuidedError(
                "a table needs rows, all of the same width", remedy="Give each prefix a number for each id."
            )

        def logprobs(tokens: Tokens) -> NDArray[np.float64]:
            row = rows.get(tokens, rest)
            if row is None:
                raise GuidedError(f"the table has no row for {tokens}", remedy="Add it, or pass otherwise=.")
            return row

        return cls(logprobs, width=some[0].size, eos_ids=eos_ids)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> TableSequences:
        """Sequences that begin with these prompts, which may be empty."""
        check_needs(needs, self.can, "this table model")
        return TableSequences(self, needs, prompts)

    def logprobs(self, tokens: Sequence[int], masked: Iterable[tuple[int, int]] = ()) -> NDArray[np.float64]:
        """The scores after these tokens, ``float64[width]``, read-only."""
        key = (tuple(int(token) for token in tokens), frozenset(masked))
        found = self._memo.get(key)
        if found is None:
            if key[1] and self._masked is not None:
                values = self._masked(key[0], key[1])
            else:
                values = self._logprobs(key[0])
            found = self._checked(values, key[0])
            while len(self._memo) >= MEMO:
                del self._memo[next(iter(self._memo))]
            self._memo[key] = found
        return found

    def layer(self, tokens: Tokens, layer: int) -> NDArray[np.float64]:
        """The scores read from a layer, counted from 0 or from the end."""
        number = layer if layer >= 0 else layer + self.can.layers + 1
        return (
            self.logprobs(tokens) if number == self.can.layers else self._checked(self._layers[number](tokens), tokens)
        )

    def hidden(self, tokens: Tokens) -> NDArray[np.float64]:
        """The hidden state after these tokens."""
        assert self._hidden is not None
        return np.array(self._hidden(tokens), np.float64)

    def _checked(self, values: ArrayLike, tokens: Tokens) -> NDArray[np.float64]:
        row = np.array(values, np.float64)
        if row.shape != (self.width,) or np.isnan(row).any() or not np.isfinite(row.max()):
            raise GuidedError(
                f"the table's answer after {tokens} is not {self.width} logarithms, at least one of them finite",
                remedy="Return natural logarithms of probabilities, -inf for 0.",
            )
        row.flags.writeable = False
        return row


class TableSequences:
    """The rows of a `TableModel`; `guided.lm.model.Sequences`."""

    def __init__(self, model: TableModel, needs: Needs, prompts: Sequence[Sequence[int]]) -> None:
        self._model = model
        self._needs = needs
        self._rows: list[Tokens] = []
        self._prompts: list[int] = []
        self._trees: list[Tree] | None = None
        self.join(prompts)

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self, row: int) -> Tokens:
        """The row's tokens, prompt included."""
        return self._rows[row]

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        return self._scores([(row, prompt) for row, prompt in zip(self._rows, self._prompts, strict=True)])

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        """Append tokens to each row; scores after each of them."""
        added = [checked_ids(row, self._model.width) for row in one_each(tokens, len(self))]
        self._count(
            [row + new[: n + 1] for row, new in zip(self._rows, added) for n in range(len(new))], bool(any(added))
        )
        found = [
            self._scores([(row + new[: n + 1], prompt) for n in range(len(new))])
            for row, new, prompt in zip(self._rows, added, self._prompts, strict=True)
        ]
        self._rows = [row + new for row, new in zip(self._rows, added, strict=True)]
        self._trees = None
        return found

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        chosen = [range(len(self))[row] for row in rows]
        self._rows = [self._rows[row] for row in chosen]
        self._prompts = [self._prompts[row] for row in chosen]
        self._trees = None

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens.  Raises `GuidedError` for a length that the row does not have."""
        for row, length in zip(self._rows, one_each(lengths, len(self)), strict=True):
            if not 0 <= length <= len(row):
                raise GuidedError(f"a row of {len(row)} tokens cannot be cropped to {length}")
        self._rows = [row[:length] for row, length in zip(self._rows, lengths, strict=True)]
        self._trees = None

    def extend_tree(self, trees: Sequence[Tree]) -> list[Scores]:
        """Scores of every node of a tree for each row; appends nothing."""
        texts: list[list[Tokens]] = []
        for row, tree in zip(self._rows, one_each(trees, len(self)), strict=True):
            ids = checked_ids(tree.tokens, self._model.width + self._model.can.prompt_tokens)
            texts.append([row + tuple(ids[node] for node in tree.path(end)) for end in range(len(tree))])
        self._count([text for of_row in texts for text in of_row], any(texts))
        self._trees = list(trees)
        return [
            self._scores([(text, prompt) for text in of_row])
            for of_row, prompt in zip(texts, self._prompts, strict=True)
        ]

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree.  Raises `GuidedError` where no tree was scored."""
        if self._trees is None:
            raise GuidedError("there is no tree to keep a path of", remedy="Call extend_tree first.")
        added: list[Tokens] = []
        for tree, path in zip(self._trees, one_each(paths, len(self)), strict=True):
            nodes = checked_path(tree, path)
            added.append(tuple(tree.tokens[node] for node in nodes))
        self._rows = [row + new for row, new in zip(self._rows, added, strict=True)]
        self._trees = None

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        new = [checked_ids(prompt, self._model.width) for prompt in prompts]
        self._count([row[:n] for row in new for n in range(1, len(row) + 1)], bool(new))
        self._rows += new
        self._prompts += [len(row) for row in new]
        self._trees = None

    def _count(self, texts: Sequence[Tokens], any_work: bool) -> None:
        """Count a pass over these prefixes, each once."""
        calls, distinct = self._model.calls, set(texts)
        parents = {text[:-1] for text in distinct}
        calls.passes += any_work
        calls.rows += len(distinct - parents)
        calls.positions += len(distinct)

    def _scores(self, texts: Sequence[tuple[Tokens, int]]) -> Scores:
        """Scores after each text, given with the length of its prompt."""
        needs, model = self._needs, self._model

        def stacked(rows: list[NDArray[np.float64]], width: int) -> torch.Tensor:
            return torch.from_numpy(np.stack(rows) if rows else np.zeros((0, width)))

        masked = [
            () if len(text) <= prompt and not needs.masked_prompt else needs.masked_heads for text, prompt in texts
        ]
        logits = [model.logprobs(text, heads) for (text, _), heads in zip(texts, masked, strict=True)]
        layers = {
            layer: stacked([model.layer(text, layer) for text, _ in texts], model.width) for layer in needs.layers
        }
        hidden = None
        if needs.hidden:
            width = 0 if texts else len(model.hidden(()))
            hidden = stacked([model.hidden(text) for text, _ in texts], width)
        return Scores(stacked(logits, model.width), layers, hidden)


def normalised(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-probabilities of these logits, float64."""
    high = logits.max()
    values: NDArray[np.float64] = logits - (high + np.log(np.exp(logits - high).sum()))
    return values


def _log_of(probabilities: ArrayLike) -> NDArray[np.float64]:
    row = np.array(probabilities, np.float64)
    if row.ndim != 1 or not (row >= 0).all() or abs(row.sum() - 1) > 1e-9:
        raise GuidedError(f"{row.tolist()} are not probabilities that sum to 1")
    with np.errstate(divide="ignore"):
        logarithms: NDArray[np.float64] = np.log(row)
    return logarithms
