"""`Frontier`: the growing hypotheses of a search, their model rows and masks; every strategy expands through it.

A hypothesis is a `Node` linked to its parent.  Each `Frontier.expand` is one pass of the model for all nodes given to
it, and one mask each, under which every text still ends within the limit of tokens.  Nothing here chooses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.lm.given import language_model
from guided.lm.model import LanguageModel, Sequences

__all__ = ["Choices", "Frontier", "Frontiers", "Node"]


class Node:
    """A hypothesis while it grows: one token after its parent; the root has none.  Compared by identity."""

    __slots__ = ("_make", "_state", "extra", "length", "parent", "score", "token")

    def __init__(
        self,
        parent: Node | None,
        token: int,
        score: float,
        state: int | None = None,
        make: Callable[[], int] | None = None,
        extra: Any = None,
    ) -> None:
        self.parent = parent
        self.token = token
        self.score = score
        """The sum of the tokens' log-probabilities."""
        self.length: int = 0 if parent is None else parent.length + 1
        self.extra = extra
        """What a strategy remembers of the hypothesis."""
        self._state = state
        self._make = make

    @property
    def state(self) -> int:
        """The constraint's state; found when first asked for, since most candidates are dropped before."""
        if self._state is None:
            assert self._make is not None
            self._state = self._make()
            self._make = None
        return self._state

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens, prompt left out."""
        found = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            found.append(node.token)
            node = node.parent
        return tuple(reversed(found))


@dataclass(frozen=True, eq=False)
class Choices:
    """What can follow a node."""

    node: Node
    logprobs: NDArray[np.float64]
    """``float64[vocabulary.size]``: the model's log-probabilities, whatever the mask says."""
    tokens: NDArray[np.int64]
    """The allowed tokens that do not end the text and have a probability, ascending."""
    end: float
    """The log-probability that the text ends here, all end-of-text ids together; minus infinity if it may not."""
    end_token: int
    """The likeliest end-of-text id."""
    advance: Callable[[int, int], int] = field(repr=False)

    def best(self, n: int, handicap: NDArray[np.float64] | None = None) -> list[int]:
        """The ``n`` allowed tokens of highest log-probability (less ``handicap``), best first, smaller ids first."""
        values = self.logprobs[self.tokens]
        if handicap is not None:
            values = values - handicap[self.tokens]
        if n < values.size:
            # All that reach the n-th value, so that equal ones are chosen by id and not by the partition.
            reach = np.flatnonzero(values >= np.partition(values, values.size - n)[values.size - n])
        else:
            reach = np.arange(values.size)
        order = reach[np.argsort(-values[reach], kind="stable")[:n]]
        found: list[int] = self.tokens[order].tolist()
        return found

    def allows(self, token: int) -> bool:
        """True for an allowed token that does not end the text."""
        place = int(self.tokens.searchsorted(token))
        return place < self.tokens.size and int(self.tokens[place]) == token

    def child(self, token: int, extra: Any = None) -> Node:
        """The node of an allowed token."""
        make = partial(_advance, self.advance, self.node, token)
        return Node(self.node, token, self.node.score + float(self.logprobs[token]), make=make, extra=extra)

    def ended(self, extra: Any = None) -> Node | None:
        """The node of the whole text, None where it may not end."""
        if self.end == -math.inf:
            return None
        return Node(self.node, self.end_token, self.node.score + self.end, state=0, extra=extra)


def _advance(advance: Callable[[int, int], int], node: Node, token: int) -> int:
    return advance(node.state, token)


class Frontier:
    """One search's rows of the model, one prompt.

    Raises `GuidedError` for ``max_tokens`` below 1, and for a vocabulary without end-of-text ids that the model scores.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompt: Sequence[int],
        constraint: Constrains,
        max_tokens: int,
        extra: Any = None,
        *,
        sequences: Sequences | None = None,
    ) -> None:
        """``sequences`` is the model started on the prompt, where others share it (`Frontiers`)."""
        if max_tokens < 1:
            raise GuidedError(f"max_tokens is {max_tokens}", remedy="Allow at least 1 token: the end of the text.")
        model = language_model(model)
        self.constraint = constraint
        self.vocabulary = constraint.vocabulary
        self.max_tokens = max_tokens
        self.eos = np.array(
            [token for token in self.vocabulary.eos_ids if token < min(self.vocabulary.size, model.width)], np.int64
        )
        if not self.eos.size:
            raise GuidedError(
                "the vocabulary has no end-of-text id that the model scores", remedy="Give the vocabulary eos_ids."
            )
        self._model = model
        self._passes, self._positions = model.calls.passes, model.calls.positions
        self._sequences = model.start([list(prompt)]) if sequences is None else sequences
        self.prompt_passes = model.calls.passes - self._passes
        self.prompt_rows = model.calls.positions - self._positions
        self.root = Node(None, -1, 0.0, state=constraint.start, extra=extra)
        self._rows = {self.root: 0}
        self._bits = np.zeros(self.vocabulary.n_words, np.uint32)

    @property
    def passes(self) -> int:
        """Forward passes so far, that over the prompt left out."""
        return self._model.calls.passes - self._passes - self.prompt_passes

    @property
    def rows(self) -> int:
        """Positions computed so far, the prompt left out, equal prefixes once."""
        return self._model.calls.positions - self._positions - self.prompt_rows

    def expand(self, nodes: Sequence[Node], keep: Sequence[Node] = ()) -> list[Choices]:
        """What follows each node: one pass.

        Each is the root or a child of a node that has a row; afterwards these nodes and ``keep`` have rows, no others.
        Raises `LimitError` where the shortest text of the language is longer than the limit.
        """
        if not nodes:
            return []
        if nodes == [self.root]:
            logits = self._sequences.last.logits
        else:
            held = [node for node in dict.fromkeys(keep) if node not in set(nodes)]
            self._sequences.select([self._rows[node] for node in held] + [self._rows[_parent(node)] for node in nodes])
            scores = self._sequences.extend([[] for _ in held] + [[node.token] for node in nodes])
            self._rows = {node: row for row, node in enumerate((*held, *nodes))}
            logits = torch.stack([scored.logits[-1] for scored in scores[len(held) :]])
        return [self._choices(node, row) for node, row in zip(nodes, self._logprobs(logits), strict=True)]

    def phrase_logprobs(self, questions: Sequence[tuple[Choices, Sequence[int]]]) -> list[float]:
        """The log-probability that each phrase comes next, whatever the grammar says, after a node with a row.

        At most one pass, which leaves the rows as they were; none where every phrase is one token.
        """
        values = [float(choices.logprobs[phrase[0]]) for choices, phrase in questions]
        longer = [place for place, (_, phrase) in enumerate(questions) if len(phrase) > 1]
        if longer:
            held = len(self._sequences)
            self._sequences.select([*range(held), *(self._rows[questions[place][0].node] for place in longer)])
            pieces: list[Sequence[int]] = [[] for _ in range(held)]
            scores = self._sequences.extend([*pieces, *(list(questions[place][1][:-1]) for place in longer)])
            self._sequences.select(range(held))
            for place, scored in zip(longer, scores[held:], strict=True):
                rest = self._logprobs(scored.logits)
                values[place] += sum(
                    float(row[token]) for row, token in zip(rest, questions[place][1][1:], strict=True)
                )
        return values

    def _logprobs(self, logits: torch.Tensor) -> NDArray[np.float64]:
        values: NDArray[np.float64] = torch.log_softmax(logits.double(), -1).cpu().numpy()
        if np.isnan(values).any():
            raise GuidedError(
                "the model's scores of the next token are not numbers",
                remedy="NaN or plus infinity came out of the model or of a steering step: look there.",
            )
        missing = self.vocabulary.size - values.shape[1]
        # Rounding must not make a hypothesis likelier by a token: best-first search and bounds rely on it.
        values = np.minimum(values[:, : self.vocabulary.size], 0.0)
        return values if missing <= 0 else np.pad(values, ((0, 0), (0, missing)), constant_values=-math.inf)

    def _choices(self, node: Node, logprobs: NDArray[np.float64]) -> Choices:
        self.constraint.fill_budget_mask(node.state, self._bits, self.max_tokens - node.length)
        allowed = tokenset.flags(self._bits, self.vocabulary.size)
        may_end = bool(allowed[self.eos].any())
        allowed[self.eos] = False
        tokens = np.flatnonzero(allowed & (logprobs > -math.inf))
        ends = logprobs[self.eos]
        end = float(np.logaddexp.reduce(ends)) if may_end else -math.inf
        return Choices(
            node, logprobs, tokens, min(end, 0.0), int(self.eos[int(ends.argmax())]), self.constraint.advance
        )


class Frontiers:
    """The frontiers of several prompts, whose nodes are expanded in one pass for all.

    Raises as `Frontier`, and `GuidedError` for another number of constraints than prompts, or no prompt.
    """

    def __init__(
        self, model: LanguageModel, prompts: Sequence[Sequence[int]], constraints: Sequence[Constrains], max_tokens: int
    ) -> None:
        if not prompts or len(prompts) != len(constraints):
            raise GuidedError(
                f"{len(constraints)} constraints for {len(prompts)} prompts", remedy="Give one for each prompt."
            )
        model = language_model(model)
        self._sequences = model.start([list(prompt) for prompt in prompts])
        self.each = [
            Frontier(model, prompt, constraint, max_tokens, sequences=self._sequences)
            for prompt, constraint in zip(prompts, constraints, strict=True)
        ]
        self._rows = {frontier.root: row for row, frontier in enumerate(self.each)}

    def expand(self, nodes: Sequence[Sequence[Node]]) -> list[list[Choices]]:
        """What follows each node of each prompt: one pass.  Each is a root, or a child of a node that has a row."""
        flat = [node for of_one in nodes for node in of_one]
        new = [node not in self._rows for node in flat]
        self._sequences.select(
            [self._rows[_parent(node) if grown else node] for node, grown in zip(flat, new, strict=True)]
        )
        if any(new):
            self._sequences.extend([[node.token] if grown else [] for node, grown in zip(flat, new, strict=True)])
        self._rows = {node: row for row, node in enumerate(flat)}
        logits = self._sequences.last.logits
        found: list[list[Choices]] = []
        start = 0
        for frontier, of_one in zip(self.each, nodes, strict=True):
            values = frontier._logprobs(logits[start : start + len(of_one)]) if of_one else ()
            found.append([frontier._choices(node, row) for node, row in zip(of_one, values, strict=True)])
            start += len(of_one)
        return found


def _parent(node: Node) -> Node:
    assert node.parent is not None
    return node.parent
