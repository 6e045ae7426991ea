"""`SharedExit`: a model cut in two, whose first blocks draft and whose other blocks verify what was drafted.

LayerSkip (Elhoushi et al., 2024, arXiv 2404.16710) and Kangaroo (Liu et al., 2024, arXiv 2404.18911) draft by an exit
after some blocks, and verify from there on: what the draft computed is not computed again, and keys and values of the
first blocks are held once.  Here `SharedExit.target` is a language model that scores as the whole one does, and
`SharedExit.drafter` drafts with its first blocks.  Reconstructed from the papers' texts.

The other blocks are a model of their own, whose ids stand for states: id ``width + i`` is the i-th state that the first
blocks gave, and the ids below are states of texts of one token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from guided.draft.drafter import Context, Observed
from guided.draft.heads.from_heads import likeliest
from guided.draft.proposal import Proposal, chain
from guided.errors import UnsupportedError
from guided.hf.adapted_exit import AdaptedExit
from guided.hf.language_model import Caching, TransformersModel
from guided.hf.skipped_layers import SkippedLayers, twin_of
from guided.infer.chance import Chance
from guided.lm import NOTHING, Abilities, Calls, Needs, Scores, Sequences, Tree, check_needs
from guided.lm.rows import checked_ids, one_each

__all__ = ["SharedExit"]

MANY_IDS = 1 << 40
NEAR = 1e-3
"""How far the scores of a model cut in two may be from the whole one's, relative to the largest: other kernels round
otherwise, and what is added to states between two blocks moves them by far more."""


class SharedExit:
    """The whole model as `target`, and as its draft the first ``blocks``, with an adapter behind them if one is given.

    Raises `UnsupportedError` where the first blocks' output is not all that the others read (embedded positions, as
    GPT-2 adds them), which is tried out, and for models whose rows do not share passes whatever their length.
    """

    def __init__(self, layers: SkippedLayers, blocks: int, adapter: AdaptedExit | None = None) -> None:
        whole = layers.model
        if adapter is not None and adapter.blocks != blocks:
            raise UnsupportedError(
                f"the adapter stands after {adapter.blocks} blocks", remedy=f"Share {adapter.blocks} blocks."
            )
        if whole.caching is not Caching.RAGGED or not 1 <= blocks < layers.blocks:
            raise UnsupportedError(
                f"{type(whole.model).__name__} cannot be cut after {blocks} of its {layers.blocks} blocks",
                remedy="Draft with guided.draft.EarlyExit.",
            )
        self.blocks = blocks
        self.others = layers.blocks - blocks
        self.lower = layers.first(blocks) if adapter is None else adapter.model
        network = twin_of(whole.model, range(blocks, layers.blocks), set())
        self.states = _States(network.get_input_embeddings().weight)
        network.set_input_embeddings(self.states)
        self.upper = TransformersModel(network, eos_ids=whole.eos_ids, caching=whole.caching)
        self.target = _Target(self, whole)
        self.running: _Rows | None = None
        """The rows of the target's last run."""
        self._check(whole)

    def drafter(self, longest: int = 8, confidence: float = 0.6) -> _Drafter:
        """Drafts lines by rule, which end before a token that the exit holds less likely than ``confidence``."""
        return _Drafter(self, longest, confidence)

    def _check(self, whole: TransformersModel) -> None:
        ids = [[index % whole.width for index in (5, 6, 7, 5, 8)]]
        found, wanted = self.target.start(ids).last.logits, whole.start(ids).last.logits
        if not torch.allclose(found, wanted, atol=NEAR * float(wanted.abs().max()), rtol=0.0):
            raise UnsupportedError(
                f"the blocks of {type(whole.model).__name__} read more than the output of those before",
                remedy="Draft with guided.draft.EarlyExit, which computes the first blocks twice.",
            )


class _States(nn.Module):
    """Stands where the embedding does, and gives the states that are shown to it."""

    n_prompt_tokens = MANY_IDS

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = weight
        self.first: dict[int, torch.Tensor] = {}
        self.later = weight.new_zeros((1, weight.shape[1]))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """``[..., d]``."""
        width = self.weight.shape[0]
        found = self.later[(ids - width).clamp(min=0)]
        for at in (ids < width).nonzero():
            # A text of one token; when the model is looked at without any, zeros.
            place = tuple(at.tolist())
            state = self.first.get(int(ids[place]))
            found[place] = 0.0 if state is None else state
        return found


@dataclass
class _Row:
    tokens: list[int]
    ids: list[int]
    """Of the states after each of them."""
    ahead: list[int] = field(default_factory=list)
    """Drafted tokens that the first blocks have read behind them."""
    ahead_ids: list[int] = field(default_factory=list)

    def copy(self) -> _Row:
        return _Row(list(self.tokens), list(self.ids), list(self.ahead), list(self.ahead_ids))


class _Target:
    """The whole model; its rows take lines of drafts."""

    def __init__(self, exit_: SharedExit, whole: TransformersModel) -> None:
        self._exit = exit_
        self.width = whole.width
        self.eos_ids = whole.eos_ids
        self.tokenizer = whole.tokenizer
        self.can = Abilities(crop=True, tree=False, hidden=True, tied_embeddings=whole.can.tied_embeddings)

    @property
    def calls(self) -> Calls:
        """Of the blocks after the exit."""
        return self._exit.upper.calls

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> _Rows:
        """Sequences that begin with these prompts, none of them empty."""
        check_needs(needs, self.can, "a model that shares its first blocks with its draft")
        rows = _Rows(self._exit, self.width, needs)
        rows.join(prompts)
        self._exit.running = rows
        return rows


class _Rows:
    """Rows of both halves; those of the first blocks may be ahead of the others by what is being drafted."""

    def __init__(self, exit_: SharedExit, width: int, needs: Needs) -> None:
        self._exit = exit_
        self._width = width
        self._first: dict[int, torch.Tensor] = {}
        self._later = exit_.states.weight.new_zeros((64, exit_.states.weight.shape[1]))
        self._known: dict[tuple[int, int], int] = {}
        """By the id of the state before and the token, the id of the state after it."""
        self._rows: list[_Row] = []
        self._lower: Sequences = exit_.lower.start([], Needs(hidden=True, blocks=(exit_.blocks,)))
        self._upper: Sequences = exit_.upper.start([], needs)

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens, without what is being drafted."""
        return tuple(self._rows[row].tokens)

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        self._show()
        return self._upper.last

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        texts = [checked_ids(prompt, self._width) for prompt in prompts]
        n = len(self._rows)
        self._lower.join([text[:1] for text in texts])
        hidden = self._lower.last.hidden
        for i, text in enumerate(texts):
            assert hidden is not None
            self._first[text[0]] = hidden[n + i].to(self._later.dtype)
        self._show()
        self._upper.join([text[:1] for text in texts])
        self._rows += [_Row([text[0]], [text[0]]) for text in texts]
        if any(len(text) > 1 for text in texts):
            self.extend([*([] for _ in range(n)), *(text[1:] for text in texts)])

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        """Append tokens; the first blocks read only what they have not read as a draft."""
        added = [checked_ids(new, self._width) for new in one_each(tokens, len(self))]
        shared = [_common(row.ahead, new) for row, new in zip(self._rows, added, strict=True)]
        if any(len(row.ahead) > n for row, n in zip(self._rows, shared, strict=True)):
            self._lower.crop([len(row.tokens) + n for row, n in zip(self._rows, shared, strict=True)])
        for row, n in zip(self._rows, shared, strict=True):
            del row.ahead[n:], row.ahead_ids[n:]
        self._read([new[n:] for new, n in zip(added, shared, strict=True)])
        trees = [Tree(tuple(row.ahead_ids), tuple(range(-1, len(row.ahead_ids) - 1))) for row in self._rows]
        self._show()
        scores = list(self._upper.extend_tree(trees))
        self._upper.keep([tuple(range(len(tree))) for tree in trees])
        for row in self._rows:
            row.tokens += row.ahead
            row.ids += row.ahead_ids
            row.ahead, row.ahead_ids = [], []
        return scores

    def read_ahead(self, tokens: Sequence[Sequence[int]]) -> list[torch.Tensor | None]:
        """Let the first blocks read drafted tokens behind rows; the exit's scores ``[V]`` after the last of each."""
        return self._read(tokens)

    def _read(self, tokens: Sequence[Sequence[int]]) -> list[torch.Tensor | None]:
        found: list[torch.Tensor | None] = [None] * len(self._rows)
        if not any(tokens):
            return found
        for i, (row, new, scores) in enumerate(zip(self._rows, tokens, self._lower.extend(tokens), strict=True)):
            at = (row.ahead_ids or row.ids)[-1]
            for n, token in enumerate(new):
                assert scores.hidden is not None
                at = self._state(at, token, scores.hidden[n])
                row.ahead.append(token)
                row.ahead_ids.append(at)
            if new:
                found[i] = scores.logits[-1]
        return found

    def _state(self, before: int, token: int, hidden: torch.Tensor) -> int:
        """The id of the state after a token; rows of equal tokens share it."""
        number = self._known.setdefault((before, token), len(self._known))
        if number == len(self._known) - 1:
            if number >= len(self._later):
                self._later = torch.cat([self._later, torch.zeros_like(self._later)])
            self._later[number] = hidden
        return self._width + number

    def _show(self) -> None:
        self._exit.states.first, self._exit.states.later = self._first, self._later

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        self._lower.select(rows)
        self._upper.select(rows)
        self._rows = [self._rows[row].copy() for row in rows]

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll rows back, in both halves."""
        self._lower.crop(lengths)
        self._upper.crop(lengths)
        for row, length in zip(self._rows, lengths, strict=True):
            del row.tokens[length:], row.ids[length:]
            row.ahead, row.ahead_ids = [], []

    def extend_tree(self, trees: Sequence[Tree]) -> Sequence[Scores]:
        """Refused: drafts of the first blocks are lines."""
        raise UnsupportedError("a model that shares its first blocks takes no trees", remedy="Draft lines.")

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Refused, as `extend_tree` is."""
        self.extend_tree([])


class _Drafter:
    """Lines by the first blocks, for rows of the target's last run."""

    lines = True

    def __init__(self, exit_: SharedExit, longest: int, confidence: float) -> None:
        self._exit = exit_
        self.longest = longest
        self.confidence = confidence

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """One pass of the first blocks for each token of the lines, for all rows together."""
        rows = self._exit.running
        if rows is None:
            return [Proposal() for _ in contexts]
        places = self._places(rows, contexts)
        lines: dict[int, list[int]] = {place: [] for place in places}
        states = {place: context.state for place, context in places.items()}
        tokens: dict[int, Sequence[int]] = {
            place: context.tokens[len(context.tokens) - context.n_unseen :] for place, context in places.items()
        }
        while tokens:
            said = rows.read_ahead([tokens.get(place, ()) for place in range(len(rows))])
            going: dict[int, Sequence[int]] = {}
            for place in tokens:
                context, logits, line = places[place], said[place], lines[place]
                assert logits is not None
                best = likeliest(logits, context, states[place], len(line), 1)
                if not best or best[0][1] < self.confidence:
                    continue
                token = best[0][0]
                states[place] = context.row_masks.advance(states[place], token)
                if not states[place]:
                    continue
                line.append(token)
                ended = context.constraint is not None and states[place] == context.constraint.end
                if not ended and len(line) < min(self.longest, context.longest):
                    going[place] = [token]
            tokens = going
        found = {context.row: chain(lines[place]) for place, context in places.items()}
        return [found.get(context.row, Proposal()) for context in contexts]

    def _places(self, rows: _Rows, contexts: Sequence[Context]) -> dict[int, Context]:
        """For each row of the run that is drafted for its context: rows are told by their texts."""
        found: dict[int, Context] = {}
        texts = [rows.tokens(row) for row in range(len(rows))]
        for context in contexts:
            read = tuple(context.tokens[: len(context.tokens) - context.n_unseen])
            place = next((i for i, text in enumerate(texts) if text == read and i not in found), None)
            if place is not None and context.longest > 0:
                found[place] = context
        return found

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing: the rows know what was read."""

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""


def _common(ahead: Sequence[int], tokens: Sequence[int]) -> int:
    n = 0
    while n < min(len(ahead), len(tokens)) and ahead[n] == tokens[n]:
        n += 1
    return n
