"""`RecomputedSequences`: rows of a model whose cache cannot be forked and rolled back; each pass reads whole rows.

For state-space and hybrid models, whose state after a text says nothing about its beginnings, and for anything else
that `guided.hf.probe` found no cache for.  Equal rows still run once, and known scores are not computed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from guided.errors import GuidedError, UnsupportedError
from guided.hf.cache.scored import RowScores, ScoreStore
from guided.hf.network import Network
from guided.lm import Needs, Prefixes, Scores, Tree
from guided.lm.rows import checked_ids, one_each

__all__ = ["RecomputedSequences"]

PASS_POSITIONS = 4096
"""Positions of one pass: rows are grouped to stay below, a single long row may exceed it."""


class RecomputedSequences:
    """`guided.lm.Sequences` without a cache; a step costs as much as reading the whole row."""

    def __init__(self, network: Network, needs: Needs, prompts: Sequence[Sequence[int]]) -> None:
        self._network = network
        self._needs = needs
        self._prefixes = Prefixes()
        self._scores = ScoreStore(network.no_scores(needs))
        self._roots: dict[tuple[int, ...], int] = {}
        self._rows: list[tuple[tuple[int, ...], int]] = []
        self.join(prompts)

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens, prompt included."""
        prompt, prefix = self._rows[row]
        return prompt + self._prefixes.tokens(prefix)[self._ahead(prompt) :]

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        self._score([(prompt, [prefix]) for prompt, prefix in self._rows])
        return self._scores.take([prefix for _, prefix in self._rows])

    def extend(self, tokens: Sequence[Sequence[int]]) -> RowScores:
        """Append tokens to each row; scores after each of them."""
        added = [checked_ids(new, self._network.width) for new in one_each(tokens, len(self))]
        paths = [self._prefixes.after(prefix, new) for (_, prefix), new in zip(self._rows, added, strict=True)]
        self._scores.keep(prefix for _, prefix in self._rows)
        self._score([(prompt, path) for (prompt, _), path in zip(self._rows, paths, strict=True)])
        self._rows = [
            (prompt, path[-1] if path else prefix) for (prompt, prefix), path in zip(self._rows, paths, strict=True)
        ]
        return RowScores([self._scores.entries(path) for path in paths], self._scores.empty)

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        self._rows = [self._rows[range(len(self))[row]] for row in rows]

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens.  Raises `GuidedError` for a length that the row does not have."""
        cut: list[tuple[tuple[int, ...], int]] = []
        for (prompt, prefix), length in zip(self._rows, one_each(lengths, len(self)), strict=True):
            whole = len(prompt) + self._prefixes.depth(prefix) - self._ahead(prompt)
            least = len(prompt) if self._network.architecture.encodes or self._needs.own_prompts else 1
            if not least <= length <= whole:
                raise GuidedError(
                    f"a row of {whole} tokens cannot be cropped to {length}", remedy=f"Keep at least {least}."
                )
            shorter = prompt[:length]
            if len(shorter) < len(prompt):
                cut.append((shorter, self._begin(shorter)))
            else:
                cut.append((prompt, self._prefixes.cut(prefix, int(length) - len(prompt) + self._ahead(prompt))))
        self._rows = cut

    def extend_tree(self, trees: Sequence[Tree]) -> RowScores:
        """Refused."""
        raise UnsupportedError(
            f"{self._network.architecture.name} cannot score a tree of drafts in one pass",
            remedy="Check model.can.tree, and draft chains with extend and crop.",
        )

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Refused: there is never a tree."""
        raise GuidedError("there is no tree to keep a path of", remedy="Check model.can.tree.")

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end.  Raises `GuidedError` for an empty prompt."""
        texts = [checked_ids(prompt, self._network.width) for prompt in prompts]
        if not all(texts):
            raise GuidedError(
                f"prompt {texts.index(())} is empty",
                remedy="Begin with the tokenizer's beginning-of-text id, or with any other.",
            )
        new = [(text, self._begin(text)) for text in texts]
        self._scores.keep(prefix for _, prefix in self._rows)
        self._score([(prompt, [prefix]) for prompt, prefix in new])
        self._rows += new

    def _begin(self, text: tuple[int, ...]) -> int:
        """The prefix after a prompt: its tokens, or the decoder's start tokens."""
        encodes = self._network.architecture.encodes
        own = text if encodes or self._needs.own_prompts else ()
        root = self._roots.get(own)
        if root is None:
            root = self._roots[own] = self._prefixes.root()
        return self._prefixes.after(root, self._network.decoder_start if encodes else text)[-1]

    def _ahead(self, prompt: tuple[int, ...]) -> int:
        """Tokens of the prefix that come before what was appended."""
        return len(self._network.decoder_start) if self._network.architecture.encodes else len(prompt)

    def _score(self, asked: Sequence[tuple[tuple[int, ...], Sequence[int]]]) -> None:
        """Make the scores of prefixes known, given with their prompts; those of one entry lie on one path."""
        wanted: dict[int, tuple[tuple[int, ...], set[int]]] = {}
        for prompt, path in asked:
            missing = {prefix for prefix in path if prefix not in self._scores}
            if missing:
                end = max(missing, key=self._prefixes.depth)
                wanted.setdefault(end, (prompt, set()))[1].update(missing)
        ends = sorted(wanted, key=self._prefixes.depth)
        while ends:
            size = max(1, PASS_POSITIONS // self._prefixes.depth(ends[-1]))
            part, ends = ends[-size:], ends[:-size]
            self._run([(end, *wanted[end]) for end in part])

    def _run(self, part: Sequence[tuple[int, tuple[int, ...], set[int]]]) -> None:
        network = self._network
        texts = [list(self._prefixes.tokens(end)) for end, _, _ in part]
        width = max(map(len, texts))
        places: list[tuple[int, int]] = []
        found: list[int] = []
        for number, (_, _, missing) in enumerate(part):
            for prefix in missing:
                places.append((number, self._prefixes.depth(prefix) - 1))
                found.append(prefix)
        network.require_room(width)
        network.calls.passes += 1
        network.calls.rows += len(part)
        network.calls.positions += sum(map(len, texts))
        prompts = [prompt for _, prompt, _ in part] if network.architecture.encodes else None
        padded = [[*text, *[text[-1]] * (width - len(text))] for text in texts]
        lengths = [len(prompt) if prompts is None else len(network.decoder_start) for _, prompt, _ in part]
        self._scores.add(found, network.run_plain(padded, places, self._needs, prompts, lengths))
