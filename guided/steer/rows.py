"""All branches of one model: one `Sequences` that holds a row for each of their prompts beside every sequence.

So branches that differ in their prompt alone share each forward pass, and whatever happens to the sequences (they grow,
fork, roll back, leave, enter) happens to all branches at once.  Which branch goes where is `guided.steer.layout`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from guided.errors import GuidedError
from guided.lm.model import LanguageModel, Needs, Scores, Sequences, Tree
from guided.steer.declaration import Prompt, Tokens

__all__ = ["BranchRows", "Run", "joined"]


@dataclass(frozen=True, eq=False)
class Run:
    """What one `BranchRows` runs: a model, its prompts, what is wanted, and which prompts keep their hidden states."""

    model: LanguageModel
    prompts: tuple[Prompt, ...]
    needs: Needs
    history: frozenset[int] = frozenset()


def joined(parts: Sequence[Scores]) -> Scores:
    """Scores of consecutive positions as one; at least one part."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return Scores(
        torch.cat([part.logits for part in parts]),
        {layer: torch.cat([part.layers[layer] for part in parts]) for layer in first.layers},
        None if first.hidden is None else torch.cat([part.hidden for part in parts if part.hidden is not None]),
    )


def taken(scores: Scores, rows: Sequence[int] | slice) -> Scores:
    """The scores of some positions."""
    return Scores(
        scores.logits[rows],
        {layer: values[rows] for layer, values in scores.layers.items()},
        None if scores.hidden is None else scores.hidden[rows],
    )


class BranchRows:
    """The rows of one `Run`: row ``i * len(prompts) + j`` is sequence ``i`` under prompt ``j``."""

    def __init__(self, run: Run, prompts: Sequence[Tokens]) -> None:
        self.run = run
        self._each = len(run.prompts)
        self._offsets: list[int] = []  # how much longer a branch's row is than its sequence
        self._same: list[bool] = []  # whether the branch reads the prompt as given
        self._given: list[int] = []  # the prompt's length
        self._history: list[_History | None] = []
        self._tried: _Tried | None = None
        first, rest = self._split(prompts)
        self._sequences: Sequences = run.model.start(first, run.needs)
        self._read(rest)

    def tokens(self, row: int, prompt: int) -> Tokens:
        """The tokens of one row under one prompt."""
        return self._sequences.tokens(row * self._each + prompt)

    def last(self, rows: Sequence[int]) -> list[Scores]:
        """For each prompt, the scores after the last token of these rows."""
        every = self._sequences.last
        return [taken(every, [row * self._each + prompt for row in rows]) for prompt in range(self._each)]

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        """Append tokens to each sequence; for each prompt the scores of all new positions, sequence by sequence.

        At least one token in all.
        """
        flat = [row for row in tokens for _ in range(self._each)]
        kept = self._kept(flat)
        answers = list(self._sequences.extend(flat)) if kept is None else kept
        self._tried = None
        self._note(answers)
        return self._of_prompts(answers)

    def extend_tree(self, trees: Sequence[Tree]) -> list[Scores]:
        """Score a draft tree for each sequence; for each prompt the scores of all nodes, sequence by sequence.

        Nothing where all trees are empty, which `keep` may follow as well.
        """
        self._tried = None
        flat = [tree for tree in trees for _ in range(self._each)]
        answers = list(self._sequences.extend_tree(flat))
        return self._of_prompts(answers) if any(trees) else []

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append a path of each sequence's tree."""
        self._sequences.keep([path for path in paths for _ in range(self._each)])

    def ahead(self, rows: Sequence[int], prompt: int, candidates: torch.Tensor) -> torch.Tensor:
        """The hidden states ``[m, k, d]`` of these rows after each of their candidates ``[m, k]``; appends nothing."""
        ids = candidates.tolist()
        flat: list[list[int]] = [[] for _ in range(len(self._offsets))]
        for row, tokens in zip(rows, ids, strict=True):
            flat[row * self._each + prompt] = tokens
        if self.run.model.can.tree:
            answers = list(self._sequences.extend_tree([Tree(tuple(tokens), (-1,) * len(tokens)) for tokens in flat]))
            self._tried = _Tried(flat, answers)
        else:
            answers = self._forked(flat)
        found = [answers[row * self._each + prompt].hidden for row in rows]
        return torch.stack([hidden for hidden in found if hidden is not None])

    def history(self, rows: Sequence[int], prompt: int) -> tuple[torch.Tensor, ...]:
        """The hidden states ``[t, d]`` of all tokens of these rows so far; views, not to be written to."""
        kept = [self._history[row * self._each + prompt] for row in rows]
        return tuple(each.states for each in kept if each is not None)

    def select(self, rows: Sequence[int]) -> None:
        """Sequence i becomes the old sequence ``rows[i]``."""
        flat = [row * self._each + prompt for row in rows for prompt in range(self._each)]
        self._sequences.select(flat)
        seen: set[int] = set()
        history: list[_History | None] = []
        for row in flat:
            kept = self._history[row]
            history.append(kept.copy() if kept is not None and row in seen else kept)
            seen.add(row)
        self._history = history
        self._offsets = [self._offsets[row] for row in flat]
        self._same = [self._same[row] for row in flat]
        self._given = [self._given[row] for row in flat]
        self._tried = None

    def check_crop(self, lengths: Sequence[int]) -> None:
        """Raise `GuidedError` where `crop` would go back into a prompt that a branch does not read."""
        flat = [length for length in lengths for _ in range(self._each)]
        for length, given, same in zip(flat, self._given, self._same, strict=True):
            if length < given and not same:
                raise GuidedError(
                    f"a sequence cannot be rolled back to {length} tokens, into its prompt of {given}: a branch of its"
                    " steering reads another prompt",
                    where="guided.steer",
                    remedy="Start again from the shorter prompt.",
                )

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each sequence back to its first ``lengths[i]`` tokens, counted as the steered model counts them."""
        flat = [length for length in lengths for _ in range(self._each)]
        own = [length + offset for length, offset in zip(flat, self._offsets, strict=True)]
        self._sequences.crop(own)
        for kept, length in zip(self._history, own, strict=True):
            if kept is not None:
                kept.crop(length)
        self._tried = None

    def join(self, prompts: Sequence[Tokens]) -> None:
        """New sequences enter at the end."""
        before = len(self._offsets)
        first, rest = self._split(prompts)
        self._sequences.join(first)
        self._tried = None
        self._read(rest, before)

    def _split(self, prompts: Sequence[Tokens]) -> tuple[list[Tokens], list[Tokens]]:
        """Each branch's prompt in two parts: what `start` gets, and what must be appended so that it is all seen."""
        first: list[Tokens] = []
        rest: list[Tokens] = []
        watched = self.run.history and not self.run.model.can.encoder
        for prompt in prompts:
            for rewrite in self.run.prompts:
                own = tuple(int(token) for token in rewrite(prompt))
                self._offsets.append(len(own) - len(prompt))
                self._same.append(own == prompt and not any(each.from_prompt_end for each in self.run.needs.added))
                self._given.append(len(prompt))
                cut = 1 if watched else len(own)
                first.append(own[:cut])
                rest.append(own[cut:])
        return first, rest

    def _read(self, rest: list[Tokens], before: int = 0) -> None:
        """Append what `_split` put off, and begin the new rows' histories."""
        if not self.run.history:
            self._history += [None] * len(rest)
            return
        hidden = self._sequences.last.hidden
        assert hidden is not None
        for row in range(before, before + len(rest)):
            watched = row % self._each in self.run.history
            self._history.append(_History(hidden[row : row + 1]) if watched else None)
        if any(rest):
            nothing: list[Tokens] = [()] * before
            self._note(list(self._sequences.extend(nothing + rest)))

    def _note(self, answers: Sequence[Scores]) -> None:
        for kept, scores in zip(self._history, answers, strict=True):
            if kept is not None and len(scores):
                assert scores.hidden is not None
                kept.add(scores.hidden)

    def _of_prompts(self, answers: list[Scores]) -> list[Scores]:
        parts = [[scores for scores in answers[prompt :: self._each] if len(scores)] for prompt in range(self._each)]
        return [joined(part) for part in parts]

    def _kept(self, flat: Sequence[Sequence[int]]) -> list[Scores] | None:
        """The scores after tokens that were all looked ahead to, which are then kept, not computed again."""
        tried = self._tried
        if tried is None:
            return None
        nodes: list[int] = []
        for tokens, known in zip(flat, tried.tokens, strict=True):
            if len(tokens) != 1 or tokens[0] not in known:
                return None
            nodes.append(known.index(tokens[0]))
        self._sequences.keep([[node] for node in nodes])
        return [taken(scores, slice(node, node + 1)) for scores, node in zip(tried.answers, nodes, strict=True)]

    def _forked(self, flat: Sequence[Sequence[int]]) -> list[Scores]:
        """One token ahead by forking rows, for models that score no trees."""
        owners = [row for row, tokens in enumerate(flat) for _ in tokens]
        self._sequences.select([*range(len(flat)), *owners])
        tokens: list[list[int]] = [[] for _ in flat]
        tokens += [[token] for row in flat for token in row]
        answers = list(self._sequences.extend(tokens))[len(flat) :]
        self._sequences.select(range(len(flat)))
        empty = taken(answers[0], slice(0, 0))
        found: list[Scores] = []
        at = 0
        for row in flat:
            found.append(joined(answers[at : at + len(row)]) if row else empty)
            at += len(row)
        return found


@dataclass(frozen=True)
class _Tried:
    """The candidates last looked ahead to, for each row, and what was found."""

    tokens: list[list[int]]
    answers: list[Scores]


class _History:
    """The hidden states of one row's tokens, in a buffer that doubles."""

    def __init__(self, states: torch.Tensor) -> None:
        self._buffer = states.clone()
        self._length = len(states)

    @property
    def states(self) -> torch.Tensor:
        return self._buffer[: self._length]

    def add(self, states: torch.Tensor) -> None:
        length = self._length + len(states)
        if length > len(self._buffer):
            grown = self._buffer.new_empty((2 * length, self._buffer.shape[1]))
            grown[: self._length] = self.states
            self._buffer = grown
        self._buffer[self._length : length] = states
        self._length = length

    def crop(self, length: int) -> None:
        self._length = min(self._length, length)

    def copy(self) -> _History:
        return _History(self.states)


def with_hidden(needs: Needs) -> Needs:
    """These needs and the hidden state."""
    return needs if needs.hidden else replace(needs, hidden=True)
