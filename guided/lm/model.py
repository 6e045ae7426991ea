"""The interface between language models and everything that decodes with them: protocols, requests and results.

A `LanguageModel` is started on prompts and gives `Sequences`: a batch of growing token sequences with whatever caches
they need.  Samplers, searches and drafts know nothing else, and a steered or transformed model is a `LanguageModel`
again.  Nothing here computes a score; `guided.testing.check_language_model` holds what is promised here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch

from guided.errors import GuidedError, UnsupportedError

__all__ = [
    "NOTHING",
    "Abilities",
    "Added",
    "Calls",
    "LanguageModel",
    "Needs",
    "Scores",
    "Sequences",
    "Tree",
    "check_needs",
    "next_logits",
]


@dataclass(frozen=True, eq=False)
class Added:
    """Vectors that are added to the output of a block while the model runs; equal to nothing but itself.

    Raises `GuidedError` for vectors that are neither one nor one for each position, or not finite.

    >>> import torch
    >>> import guided.hf
    >>> from guided.lm import Added, Needs, language_model
    >>> model = language_model(guided.hf.load())
    >>> width = model.start([[5]], Needs(hidden=True)).last.hidden.shape[-1]
    >>> vector = Added(torch.ones(width), block=2)
    >>> plain, pushed = (model.start([[5, 6]], needs).last.logits for needs in (Needs(), Needs(added=(vector,))))
    >>> bool((plain != pushed).any())
    True
    """

    vectors: torch.Tensor
    """``[d]``: added at every token; ``[m, d]``: each at its position, the first ``m`` of the text, prompt included."""
    block: int
    """0 the input of the first block, i the output of the i-th, up to `Abilities.blocks`."""
    from_prompt_end: bool = False
    """Only from the prompt's last token on, an encoder-decoder model's last start token."""

    def __post_init__(self) -> None:
        vectors = self.vectors
        if not (isinstance(vectors, torch.Tensor) and vectors.dim() in (1, 2) and bool(vectors.isfinite().all())):
            raise GuidedError(
                "what is added to a block's output is neither a finite vector nor one for each position",
                where="Added",
                remedy="Pass a tensor [d] or [m, d].",
            )


@dataclass(frozen=True)
class Needs:
    """What a caller wants of each position besides the next-token logits.

    >>> from guided.lm import Needs, TableModel
    >>> model = TableModel(lambda tokens: [0.0, 1.0], width=2, layers=[lambda tokens: [1.0, 0.0]])
    >>> scores = model.start([[0]], Needs(layers=(0,))).last
    >>> scores.layers[0].tolist(), scores.logits.tolist()
    ([[1.0, 0.0]], [[0.0, 1.0]])
    """

    layers: tuple[int, ...] = ()
    """Logits read early, from the output of these blocks: 0 is the embedding, i the i-th block, ``Abilities.layers``
    the last one, whose logits are the model's own; negative numbers count from the end, -1 is the last one."""
    final_norm: bool = True
    """Whether the model's final normalisation is applied before the head when a layer is read early.  True is the usual
    logit lens; False is what the official DoLa code does, which applies the head to the raw block output."""
    hidden: bool = False
    """The hidden state that the head reads, for each new position."""
    blocks: tuple[int, ...] = ()
    """With ``hidden``: the raw outputs of these blocks side by side are given instead, 1 being the first block and 0
    its input; what EAGLE-3's heads read."""
    masked_heads: tuple[tuple[int, int], ...] = ()
    """(block, head) pairs whose output is zeroed; blocks and heads count from 0, in the decoder's self-attention."""
    masked_prompt: bool = True
    """Whether ``masked_heads`` also holds while prompts are read (`start`, `join`).  With False only tokens appended
    later are computed without the heads, and what they see of the prompt is the whole model's, as DeCoRe does."""

    added: tuple[Added, ...] = ()
    """Vectors added to the outputs of blocks; all that is read of these and later blocks then has them in it."""

    @property
    def own_prompts(self) -> bool:
        """Whether equal tokens are not the same after a longer prompt."""
        return bool(self.masked_heads and not self.masked_prompt) or any(each.from_prompt_end for each in self.added)


NOTHING = Needs()
"""Next-token logits only."""


@dataclass(frozen=True)
class Scores:
    """What a model says after each of k tokens; belongs to the caller, who may write into the tensors.

    >>> from guided.lm import Needs, TableModel
    >>> model = TableModel(lambda tokens: [0.0, 1.0], width=2, hidden=lambda tokens: [float(tokens[-1]), 2.0])
    >>> scores = model.start([[0], [1]], Needs(hidden=True)).last
    >>> scores.logits.tolist(), scores.hidden.tolist()
    ([[0.0, 1.0], [0.0, 1.0]], [[0.0, 2.0], [1.0, 2.0]])
    """

    logits: torch.Tensor
    """``[k, width]``, float32 or float64, on the model's device: raw scores of the next token, not normalised."""
    layers: Mapping[int, torch.Tensor] = field(default_factory=dict)
    """For each of ``Needs.layers``, by the number it was asked by: ``[k, width]`` like ``logits``."""
    hidden: torch.Tensor | None = None
    """``[k, d]`` in the dtype of ``logits`` if it was asked for; wider where `Needs.blocks` were."""

    def __len__(self) -> int:
        return int(self.logits.shape[0])


@dataclass(frozen=True)
class Tree:
    """Draft tokens after one row: node i is ``tokens[i]`` after node ``parents[i]``, or after the row where that is -1.

    Parents come before children: ``parents[i] < i``.

    Raises `GuidedError` for another number of parents than tokens, and for a parent that is no earlier node.

    >>> Tree((5, 6, 7), (-1, 0, 0)).path(2)
    (0, 2)
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.parents):
            raise GuidedError(
                f"a tree of {len(self.tokens)} tokens has {len(self.parents)} parents",
                remedy="Give each node a parent.",
            )
        for node, parent in enumerate(self.parents):
            if not -1 <= parent < node:
                raise GuidedError(
                    f"the parent of node {node} is {parent}", remedy="Number parents before children; -1 is the row."
                )

    def __len__(self) -> int:
        return len(self.tokens)

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the row's first new token to ``node``, which is -1 for the row itself."""
        found: list[int] = []
        while node >= 0:
            found.append(node)
            node = self.parents[node]
        return tuple(reversed(found))


@dataclass(frozen=True)
class Abilities:
    """What a model can do besides scoring the next token.

    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: [0.0, 0.0], width=2, hidden=lambda tokens: [1.0])
    >>> model.can.hidden, model.can.layers, model.can.masked_heads
    (True, 0, False)
    """

    crop: bool = True
    """Rows can be rolled back at no cost.  Where it is False `crop` computes the rows again."""
    tree: bool = True
    """A tree of drafts is scored in one pass.  Where it is False `extend_tree` raises `UnsupportedError`."""
    layers: int = 0
    """Number of blocks that can be read early, 0 where none can."""
    hidden: bool = False
    """`Needs.hidden` can be served."""
    blocks: int = 0
    """Number of blocks whose raw outputs can be had by `Needs.blocks` and changed by `Needs.added`, 0 for none."""
    masked_heads: bool = False
    """`Needs.masked_heads` can be served."""
    encoder: bool = False
    """An encoder reads the prompt: a longer prompt is then not the same as a longer sequence."""
    tied_embeddings: bool = False
    """The input and the output embeddings are one matrix: logits read at layer 0 repeat the input."""
    prompt_tokens: int = 0
    """Ids from ``width`` on that a draft tree may hold and no text: prompt tokens, which are read and never written."""


@dataclass
class Calls:
    """What a model has computed so far, over all its sequences; callers read differences.

    >>> from guided.lm import TableModel, next_logits
    >>> model = TableModel.of({}, otherwise=[0.5, 0.5])
    >>> _ = next_logits(model, [[0], [1], [1]])
    >>> model.calls.rows  # equal prompts are computed once
    2
    """

    passes: int = 0
    """Forward passes."""
    rows: int = 0
    """Rows of those passes, each distinct prefix once."""
    positions: int = 0
    """Token positions computed, padding left out."""
    moved: int = 0
    """Cache rows copied because a sequence forked or its place in the batch was needed."""


class Sequences(Protocol):
    """A batch of growing token sequences with their caches; mutable, owned by one run, not safe for threads.

    Rows with equal tokens are computed once.  What is returned belongs to the caller: it is never written to again, nor
    shared between rows.

    >>> from guided.lm import TableModel
    >>> rows = TableModel.of({}, otherwise=[0.5, 0.5]).start([[0, 1], [1]])
    >>> _ = rows.extend([[1], [0, 0]])
    >>> rows.select([1, 1])  # the second row forks, the first is gone
    >>> rows.crop([2, 3])
    >>> [rows.tokens(row) for row in range(len(rows))]
    [(1, 0), (1, 0, 0)]
    """

    def __len__(self) -> int:
        """Number of rows."""

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens: its prompt as given to `start` or `join`, and all that was appended."""

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row, ``[len(self), ...]``; a new copy each time."""

    def extend(self, tokens: Sequence[Sequence[int]]) -> Sequence[Scores]:
        """Append tokens to each row, none to some if need be, in one forward pass.

        Gives for each row the scores after each of its new tokens.  Rows with no tokens cost nothing.
        """

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``: repeated rows fork, those left out leave the batch.

        Only caches that change move, and only when the rows that shared them grow apart.
        """

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to its first ``lengths[i]`` tokens, prompt included, at least one, at most all.

        An encoder's prompt cannot be cropped, nor one behind whose end vectors are added.
        """

    def extend_tree(self, trees: Sequence[Tree]) -> Sequence[Scores]:
        """Score every node of one draft tree a row in one pass, appending nothing; `keep` then says what stays.

        Any other change of the rows drops the trees.
        """

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree, from a child of the row downwards; empty: none."""

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""


@runtime_checkable
class LanguageModel(Protocol):
    """Scores of the next token after any sequence of tokens.

    >>> from guided.lm import LanguageModel, TableModel
    >>> model: LanguageModel = TableModel.of({(0,): [0.9, 0.1]}, otherwise=[0.5, 0.5])
    >>> rows = model.start([[0], [1]])
    >>> rows.last.logits.exp().numpy().round(2).tolist()
    [[0.9, 0.1], [0.5, 0.5]]
    >>> rows.extend([[1], []])[0].logits.exp().tolist()  # the first row has one more token
    [[0.5, 0.5]]
    """

    @property
    def width(self) -> int:
        """Number of ids scored; may exceed the tokenizer's."""

    @property
    def eos_ids(self) -> frozenset[int]:
        """The ids that end a text."""

    @property
    def can(self) -> Abilities:
        """What the model can do besides."""

    @property
    def calls(self) -> Calls:
        """Counters of the work done so far."""

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> Sequences:
        """Sequences that begin with these prompts, one row each; equal prompts and prefixes are computed once.

        Raises `UnsupportedError` for needs that the model cannot serve, `GuidedError` for ids that it does not have.
        """


def check_needs(needs: Needs, can: Abilities, model: str) -> None:
    """Raise `UnsupportedError` if a model with these abilities cannot serve the needs; ``model`` names it.

    >>> from guided.errors import UnsupportedError
    >>> from guided.lm import Abilities, Needs, check_needs
    >>> check_needs(Needs(hidden=True), Abilities(hidden=True), "my model")  # nothing to say
    >>> try:
    ...     check_needs(Needs(hidden=True), Abilities(), "my model")
    ... except UnsupportedError as error:
    ...     print(str(error).splitlines()[0])
    my model gives no hidden states. Use a method without hidden states.
    """
    if needs.layers and not can.layers:
        raise UnsupportedError(
            f"the layers of {model} cannot be read early", remedy="Use a method without early exits."
        )
    for layer in needs.layers:
        if not -can.layers - 1 <= layer <= can.layers:
            raise UnsupportedError(
                f"{model} has no layer {layer}", remedy=f"Ask for 0 (the embedding) to {can.layers} (the last block)."
            )
    if needs.hidden and not can.hidden:
        raise UnsupportedError(f"{model} gives no hidden states", remedy="Use a method without hidden states.")
    if needs.blocks and not (needs.hidden and all(0 <= block <= can.blocks for block in needs.blocks) and can.blocks):
        raise UnsupportedError(
            f"{model} does not give the outputs of its blocks {needs.blocks}",
            remedy=f"Ask for hidden=True and 0 to {can.blocks}." if can.blocks else "Use heads on the hidden state.",
        )
    for each in needs.added:
        if not 0 <= each.block <= can.blocks or not can.blocks:
            raise UnsupportedError(
                f"nothing can be added to the output of block {each.block} of {model}",
                remedy=f"Ask for 0 to {can.blocks}." if can.blocks else "Use a method on logits.",
            )
    if needs.masked_heads and not can.masked_heads:
        raise UnsupportedError(
            f"the attention heads of {model} cannot be masked", remedy="Use a method without masked heads."
        )


def next_logits(
    model: LanguageModel, prefixes: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]] | None = None
) -> torch.Tensor:
    """The next-token logits after each prefix, ``[n, width]``, for questions that are asked once.

    ``prompts`` are what `start` gets where that differs from the text so far: for encoder-decoder models, whose
    prefixes are then those of the decoder.  Cost: one forward pass over all distinct prefixes.

    >>> from guided.lm import TableModel, next_logits
    >>> model = TableModel.of({(0,): [0.75, 0.25]}, otherwise=[0.5, 0.5])
    >>> next_logits(model, [[0], [0, 1]]).exp().numpy().round(2).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    if prompts is None:
        return model.start(prefixes).last.logits
    sequences = model.start(prompts)
    sequences.extend(prefixes)
    return sequences.last.logits
