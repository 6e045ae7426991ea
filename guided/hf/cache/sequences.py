"""`CachedSequences`: the growing rows of a Transformers model with a cache that rolls back; equal prefixes run once.

Rows are pointers to slots (`guided.hf.cache.slots`); this file turns what callers do to rows into works, works into
passes, and passes into scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
import torch

from guided.errors import GuidedError
from guided.hf.cache.scored import RowScores, ScoreStore
from guided.hf.cache.shared_prefixes import Segment, waves
from guided.hf.cache.slots import Holder, Prompt, Slots, Work
from guided.hf.network import Caching, Encoded, Network
from guided.lm import Needs, Prefixes, Scores, Tree
from guided.lm.rows import checked_ids, checked_path, one_each

__all__ = ["CachedSequences"]

PASS_POSITIONS = 4096
"""Positions of one pass; longer work is cut into pieces, to bound the memory of activations."""

PASS_WORTH = 64
"""Positions that cost as much as a pass besides: a row whose state takes one token at a time is read again, at once
with its new tokens, rather than have a pass for each of them, where it is no longer than so many for each."""

LONGEST_WAY = 32
"""Tokens after a state that are read along with new ones, pass by pass, before they get a pass and a state of their
own: drafts that are refused leave a row with no state but that of the round before."""

MANY_PREFIXES = 1 << 15
"""Prefixes from which on those of rows that are gone are forgotten: some 8 MB, a few ms now and then."""


class CachedSequences:
    """`guided.lm.Sequences` of a network whose cache can be rolled back."""

    def __init__(self, network: Network, needs: Needs, prompts: Sequence[Sequence[int]]) -> None:
        self._network = network
        self._needs = needs
        self._prefixes = Prefixes()
        self._slots = Slots(network, self._prefixes)
        self._scores = ScoreStore(network.no_scores(needs))
        self._rows: list[Holder] = []
        self._prompts: dict[tuple[int, ...], Prompt] = {}
        self._shared_root = self._prefixes.root()
        self._trees: list[tuple[Tree, list[int]]] | None = None
        self._earlier: list[Holder] = []
        """States that rows had before several tokens were appended at once, some of which may be rolled back."""
        self._most_prefixes = MANY_PREFIXES
        self.join(prompts)

    def __len__(self) -> int:
        return len(self._rows)

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens, prompt included; cost proportional to their number."""
        holder = self._rows[row]
        tokens = self._prefixes.tokens(holder.prefix)
        return holder.prompt.tokens + tokens[holder.prompt.skip :] if holder.prompt.skip else tokens

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row; costs a pass over the last tokens of rows rolled back far."""
        missing = {row.prefix: row for row in self._rows if row.prefix not in self._scores}
        if missing:
            self._trees = None
            self._score_again(list(missing.values()))
        return self._scores.take([row.prefix for row in self._rows])

    def extend(self, tokens: Sequence[Sequence[int]]) -> RowScores:
        """Append tokens to each row; scores after each of them."""
        added = [checked_ids(new, self._network.width) for new in one_each(tokens, len(self))]
        self._trees = None
        works: dict[tuple[int, tuple[int, ...]], Work] = {}
        idle: list[Holder] = []
        for number, (row, new) in enumerate(zip(self._rows, added, strict=True)):
            if not new:
                idle.append(row)
                continue
            work = works.get((row.prefix, new))
            if work is None:
                work = works[row.prefix, new] = Work(row.prefix, row.slot, row.prompt, list(new))
            work.rows.append(number)
        paths = [self._prefixes.after(row.prefix, new) for row, new in zip(self._rows, added, strict=True)]
        self._scores.keep(row.prefix for row in idle)
        self._grow(list(works.values()), idle)
        self._settle(works.values())
        return RowScores([self._scores.entries(path) for path in paths], self._scores.empty)

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        chosen = [self._rows[range(len(self))[row]] for row in rows]
        self._rows = [Holder(row.prefix, row.slot, row.prompt) for row in chosen]
        self._trees = None

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens.  Raises `GuidedError` for a length that the row does not have."""
        depths: list[int] = []
        fixed = any(each.from_prompt_end for each in self._needs.added)
        for row, length in zip(self._rows, one_each(lengths, len(self)), strict=True):
            ahead = len(row.prompt.tokens) - row.prompt.skip if row.prompt.skip else 0
            depth, least = int(length) - ahead, row.prompt.skip or (row.prompt.depth if fixed else 1)
            if not least <= depth <= self._prefixes.depth(row.prefix):
                raise GuidedError(
                    f"a row of {self._prefixes.depth(row.prefix) + ahead} tokens cannot be cropped to {length}",
                    remedy=f"Keep at least {least + ahead}.",
                )
            depths.append(depth)
        for row, depth in zip(self._rows, depths, strict=True):
            row.prefix = self._prefixes.cut(row.prefix, depth)
        self._trees = None

    def extend_tree(self, trees: Sequence[Tree]) -> RowScores:
        """Scores of every node of a tree for each row; appends nothing."""
        self._network.require_trees()
        for tree in one_each(trees, len(self)):
            checked_ids(tree.tokens, self._network.width + self._network.abilities.prompt_tokens)
        works: dict[tuple[int, Tree], Work] = {}
        idle: list[Holder] = []
        for number, (row, tree) in enumerate(zip(self._rows, trees, strict=True)):
            if not len(tree):
                idle.append(row)
                continue
            work = works.setdefault((row.prefix, tree), Work(row.prefix, row.slot, row.prompt, list(tree.tokens)))
            work.rows.append(number)
        self._scores.keep(row.prefix for row in self._rows)
        nodes = {(prefix, tree): self._nodes(prefix, tree) for prefix, tree in works}
        for part in self._parts(list(works.values())):
            self._slots.arrange(part, [*idle, *(work for work in works.values() if work not in part)])
            keys = sorted((key for key, work in works.items() if work in part), key=lambda key: works[key].slot)
            self._tree_pass([works[key] for key in keys], [tree for _, tree in keys], [nodes[key] for key in keys])
        self._settle(works.values())
        self._trees = [
            (tree, nodes[row.prefix, tree] if len(tree) else []) for row, tree in zip(self._rows, trees, strict=True)
        ]
        return RowScores([self._scores.entries(found) for _, found in self._trees], self._scores.empty)

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree; costs copies of columns, no pass.

        Raises `GuidedError` where no tree was scored.
        """
        if self._trees is None:
            raise GuidedError("there is no tree to keep a path of", remedy="Call extend_tree first.")
        trees = self._trees
        chosen = [checked_path(tree, path) for (tree, _), path in zip(trees, one_each(paths, len(self)), strict=True)]
        works: dict[tuple[int, tuple[int, ...]], Work] = {}
        idle: list[Holder] = []
        for number, (row, path) in enumerate(zip(self._rows, chosen, strict=True)):
            if not path:
                idle.append(row)
                continue
            work = works.setdefault((row.slot, path), Work(row.prefix, row.slot, row.prompt))
            work.rows.append(number)
        widest = max((len(tree) for tree, _ in trees), default=0)
        self._slots.arrange(list(works.values()), idle, together=False, beyond=widest)
        self._slots.compact(list(works.values()), [path for _, path in works])
        for (_, path), work in works.items():
            _, nodes = trees[work.rows[0]]
            work.prefix = self._slots.content[work.slot] = nodes[path[-1]]
        self._settle(works.values())
        self._trees = None

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end.  Raises `GuidedError` for an empty prompt."""
        texts = [checked_ids(prompt, self._network.width) for prompt in prompts]
        if not all(texts):
            raise GuidedError(
                f"prompt {texts.index(())} is empty",
                remedy="Begin with the tokenizer's beginning-of-text id, or with any other.",
            )
        self._trees = None
        self._scores.keep(row.prefix for row in self._rows)
        if len(self._prefixes) > self._most_prefixes:
            self._forget()
        distinct = list(dict.fromkeys(texts))
        for text in distinct:
            if text not in self._prompts:
                self._prompts[text] = self._new_prompt(text)
        join = self._join_encoded if self._network.architecture.encodes else self._join_plain
        ends = join([self._prompts[text] for text in distinct])
        for text in texts:
            end = ends[text]
            self._rows.append(Holder(end.prefix, end.slot, end.prompt))

    def _forget(self) -> None:
        """Forget the tokens of rows that are gone, where batches go on for ever."""
        prompts = {row.prompt for row in self._rows} | {prompt for prompt in self._slots.prompts if prompt is not None}
        kept = [self._shared_root, *self._slots.prefixes]
        kept += [row.prefix for row in self._rows] + [prompt.root for prompt in prompts]
        numbers = self._prefixes.forget(kept)
        self._shared_root = numbers[self._shared_root]
        for row in self._rows:
            row.prefix = numbers[row.prefix]
        for prompt in prompts:
            prompt.root = numbers[prompt.root]
        self._prompts = {text: prompt for text, prompt in self._prompts.items() if prompt in prompts}
        self._earlier = []
        self._slots.renumber(numbers)
        self._scores.renumber(numbers)
        self._most_prefixes = max(MANY_PREFIXES, 2 * len(self._prefixes))

    def _new_prompt(self, text: tuple[int, ...]) -> Prompt:
        network, needs = self._network, self._needs
        if network.architecture.encodes:
            start = len(network.decoder_start)
            return Prompt(text, self._prefixes.root(), start, start)
        return Prompt(text, self._prefixes.root() if needs.own_prompts else self._shared_root, 0, len(text))

    def _join_plain(self, prompts: Sequence[Prompt]) -> dict[tuple[int, ...], Holder]:
        """Compute prompts, each from the longest beginning that some slot holds, shared beginnings first."""
        ends: dict[tuple[int, ...], Holder] = {}
        segments: list[Segment[Work]] = []
        held = self._slots.beginnings()
        for prompt in prompts:
            text = prompt.tokens
            path = [prompt.root, *self._prefixes.after(prompt.root, text)]
            if path[-1] in held and path[-1] in self._scores:
                ends[text] = Holder(path[-1], held[path[-1]], prompt)
                continue
            depth = next((at for at in range(len(text) - 1, 0, -1) if path[at] in held), 0)
            if self._slots.exact:
                depth = 0  # a state is continued one token at a time; reading a prompt at once is quicker
            end = ends[text] = Work(path[depth], held[path[depth]] if depth else -1, prompt)
            segments.append(Segment(text[depth:], text if self._slots.exact else end.prefix, end))
        known = [*self._rows, *ends.values()]
        shared: list[Holder] = []
        for wave in waves(segments):
            works: list[Work] = []
            for segment in wave:
                work = segment.item
                if work is None:  # what several prompts begin with
                    below = segment.below
                    assert below is not None
                    work = segment.item = Work(below.prefix, below.slot, below.prompt)
                    shared.append(work)
                work.tokens = list(segment.tokens)
                if segment.parent is not None and segment.parent.item is not None:
                    work.prefix, work.slot = segment.parent.item.prefix, segment.parent.item.slot
                works.append(work)
            idle = [holder for holder in (*known, *shared) if holder not in works]
            self._grow(works, idle, last_only=True)
        return ends

    def _join_encoded(self, prompts: Sequence[Prompt]) -> dict[tuple[int, ...], Holder]:
        """Encode prompts that no slot knows, and read the decoder's start tokens after each."""
        works: list[Work] = []
        for prompt in prompts:
            slot = self._slots.prompts.index(prompt) if prompt in self._slots.prompts else -1
            works.append(Work(prompt.root, slot, prompt, list(self._network.decoder_start)))
        known = [work for work in works if work.slot >= 0]
        new = sorted((work for work in works if work.slot < 0), key=lambda work: len(work.prompt.tokens))
        self._grow(known, self._rows, last_only=True)
        while new:
            size = max(1, PASS_POSITIONS // len(new[-1].prompt.tokens))
            part, new = new[-size:], new[:-size]
            encoded = self._network.encode([work.prompt.tokens for work in part])
            self._slots.append(part)
            self._pass(part, [work.tokens for work in part], True, encoded=encoded)
        return {work.prompt.tokens: work for work in works}

    def _settle(self, works: Iterable[Work]) -> None:
        """Hand the prefixes and slots of works to their rows."""
        for work in works:
            for number in work.rows:
                self._rows[number].prefix, self._rows[number].slot = work.prefix, work.slot

    def _grow(
        self, works: Sequence[Work], idle: Sequence[Holder], *, last_only: bool = False, rewrite: bool = False
    ) -> None:
        """Append its tokens to each work, whose prefix and slot are the new ones afterwards."""
        if self._slots.exact:
            idle = [*idle, *self._from_states(works, idle)]
        for part in self._parts(works):
            others: list[Holder] = [*idle, *(work for work in works if work not in part)]
            left = {id(work): work.tokens for work in part}
            while part:
                self._slots.arrange(part, others, rewrite=rewrite)
                part.sort(key=lambda work: work.slot)
                size = max(1, PASS_POSITIONS // len(part))
                if self._slots.exact:
                    # Not every model takes a state together with several tokens, nor one read in pieces.
                    alone = self._network.caching is Caching.STATES and self._prefixes.depth(part[0].prefix)
                    size = 1 if alone else len(part[0].tokens)
                self._pass(part, [left[id(work)][:size] for work in part], last_only, left=left, rewrite=rewrite)
                left = {id(work): left[id(work)][size:] for work in part}
                others += [work for work in part if not left[id(work)]]
                part = [work for work in part if left[id(work)]]

    def _from_states(self, works: Sequence[Work], idle: Sequence[Holder]) -> list[Holder]:
        """Let works begin where there is a state; the states that are to be kept beside them for later."""
        pieces = self._network.caching is Caching.PIECES
        depth, earlier = self._prefixes.depth, self._earlier
        self._slots.check([*works, *earlier])
        behind: dict[int, tuple[Work, list[Work]]] = {}
        for work in works:
            at = depth(work.prefix)
            # A prompt that is read with the text beyond it: one pass for all, where tokens would take one each.
            if not pieces and len(work.tokens) > 1 and at + len(work.tokens) <= PASS_WORTH * len(work.tokens):
                work.slot = -1
            if work.slot >= 0 or not at:
                continue
            tokens = self._prefixes.tokens(work.prefix)
            begun = self._state_before(work.prefix) if pieces else None
            if pieces and begun is None and len(work.tokens) > 1:
                start = Work(work.prompt.root, -1, work.prompt, list(tokens))
                start.unasked = at
                behind.setdefault(work.prefix, (start, []))[1].append(work)
                continue
            work.unasked = at
            work.tokens = [*tokens[0 if begun is None else depth(begun.prefix) :], *work.tokens]
            work.prefix = work.prompt.root if begun is None else begun.prefix
            work.slot = -1 if begun is None else begun.slot
        if behind:
            self._earlier = []
            others: list[Holder] = [*idle, *earlier, *(work for work in works if work.slot >= 0)]
            self._grow([start for start, _ in behind.values()], others, last_only=True)
            for start, waiting in behind.values():
                for work in waiting:
                    work.slot = start.slot
        self._earlier = [
            Holder(work.prefix, work.slot, work.prompt)
            for work in works
            if pieces and work.slot >= 0 and len(work.tokens) > 1
        ]
        return self._earlier

    def _state_before(self, prefix: int) -> Holder | None:
        """The last of the earlier states on the way to a prefix, not too far before it."""
        known = {holder.prefix: holder for holder in self._earlier if holder.slot >= 0}
        for _ in range(LONGEST_WAY):
            if prefix in known or not known:
                break
            prefix = self._prefixes.parent(prefix)
        return known.get(prefix)

    def _parts(self, works: Sequence[Work]) -> list[list[Work]]:
        """The works that may share passes."""
        aligned = self._network.caching is not Caching.RAGGED
        exact = self._slots.exact

        def key(work: Work) -> tuple[bool, int, int]:
            depth = self._prefixes.depth(work.prefix) if aligned else 0
            return self._masks_heads(work), depth, len(work.tokens) if exact else 0

        return [list(part) for _, part in groupby(sorted(works, key=key), key)]

    def _masks_heads(self, work: Work) -> bool:
        """Whether heads are masked for the next token of a work."""
        needs = self._needs
        beyond = self._prefixes.depth(work.prefix) >= work.prompt.depth
        return bool(needs.masked_heads) and (needs.masked_prompt or beyond)

    def _score_again(self, rows: Sequence[Holder]) -> None:
        """Run the last tokens of rows once more, in slots that hold them already."""
        waiting = [
            Work(self._prefixes.parent(row.prefix), row.slot, row.prompt, [self._prefixes.token(row.prefix)])
            for row in rows
        ]
        if self._slots.exact:
            for work in waiting:
                work.slot = -1
            self._grow(waiting, self._rows)
            slots = {work.prefix: work.slot for work in waiting}
            for row in self._rows:
                row.slot = slots.get(row.prefix, row.slot)
            return
        while waiting:
            # Rows of different lengths may share a slot, and a slot is one row of a pass.
            by_slot = {work.slot: work for work in reversed(waiting)}
            works = list(by_slot.values())
            waiting = [work for work in waiting if work not in works]
            self._grow(works, [*self._rows, *waiting], rewrite=True)

    def _pass(
        self,
        works: Sequence[Work],
        pieces: Sequence[Sequence[int]],
        last_only: bool,
        *,
        left: dict[int, list[int]] | None = None,
        rewrite: bool = False,
        encoded: Encoded | None = None,
    ) -> None:
        """One pass over a piece of what is left of each work; the works stand next to each other."""
        past = [self._prefixes.depth(work.prefix) for work in works]
        width = max(map(len, pieces))
        wanted: list[tuple[int, int]] = []
        found: list[int] = []
        paths = [self._prefixes.after(work.prefix, piece) for work, piece in zip(works, pieces, strict=True)]
        for number, (work, path) in enumerate(zip(works, paths, strict=True)):
            ends = left is None or len(left[id(work)]) == len(path)
            columns = list(range(len(path) - 1 if last_only else 0, len(path) if ends or not last_only else 0))
            columns = [column for column in columns if self._prefixes.depth(path[column]) > work.unasked]
            wanted += [(number, column) for column in columns]
            found += [path[column] for column in columns]
        positions = [
            [p + min(step, len(piece) - 1) for step in range(width)] for p, piece in zip(past, pieces, strict=True)
        ]
        if not rewrite:
            self._slots.truncate(works)
        scores = self._run(works, pieces, positions, past, None, wanted, encoded)
        for work, path in zip(works, paths, strict=True):
            work.prefix = path[-1]
            if not rewrite:
                self._slots.content[work.slot] = work.prefix
        self._scores.add(found, scores)

    def _nodes(self, prefix: int, tree: Tree) -> list[int]:
        """The prefixes of a tree's nodes."""
        found: list[int] = []
        for token, parent in zip(tree.tokens, tree.parents, strict=True):
            found.append(self._prefixes.child(found[parent] if parent >= 0 else prefix, int(token)))
        return found

    def _tree_pass(self, works: Sequence[Work], trees: Sequence[Tree], nodes: Sequence[list[int]]) -> None:
        """One pass over all nodes of the trees."""
        past = [self._prefixes.depth(work.prefix) for work in works]
        width = max(map(len, trees))
        positions: list[list[int]] = []
        sees = torch.eye(width, dtype=torch.bool).repeat(len(works), 1, 1)
        for number, (start, tree) in enumerate(zip(past, trees, strict=True)):
            row = [start] * width
            for node, parent in enumerate(tree.parents):
                if parent >= 0:
                    row[node] = row[parent] + 1
                    sees[number, node] |= sees[number, parent]
            positions.append(row)
        chains = all(parent == node - 1 for tree in trees for node, parent in enumerate(tree.parents))
        wanted = [(number, node) for number, tree in enumerate(trees) for node in range(len(tree))]
        ancestors = None if chains else sees.to(self._network.device)
        self._slots.truncate(works)
        scores = self._run(works, [tree.tokens for tree in trees], positions, past, ancestors, wanted, None)
        self._scores.add([node for found in nodes for node in found], scores)

    def _run(
        self,
        works: Sequence[Work],
        pieces: Sequence[Sequence[int]],
        positions: list[list[int]],
        past: list[int],
        ancestors: torch.Tensor | None,
        wanted: list[tuple[int, int]],
        encoded: Encoded | None,
    ) -> Scores:
        """Aim the cache at the works' slots and run the model; ``ancestors`` says which new tokens see which."""
        network, cache, slots = self._network, self._slots.cache, self._slots
        width, longest, first = max(map(len, pieces)), max(past), works[0].slot
        # A recording has a mask always, where the model's own code needs none for rows that are as long as each other.
        even = min(past) == longest and (network.traced is None or bool(network.traced.refused))
        network.require_room(max(map(max, positions)) + 1)
        mask = columns = None
        with torch.inference_mode():
            cache.reserve(len(slots.content), longest + width)
            if not even:
                columns = network.given(np.array(past, np.int64)[:, None] + np.arange(width))
            if not even or ancestors is not None:
                mask = network.mask(past, width, positions, ancestors)
            cache.aim(first, len(works), longest, columns)
            if cache.cross:
                lengths = tuple(len(work.prompt.tokens) for work in works)
                if encoded is None:
                    encoded = Encoded(lengths, max(lengths), None)
                cache.reserve_cross(len(slots.content), encoded.width)
                cache.aim_cross(first, len(works), encoded.width, fresh=encoded.states is not None)
        tokens = [[*piece, *[piece[-1]] * (width - len(piece))] for piece in pieces]
        network.calls.passes += 1
        network.calls.rows += len(works)
        network.calls.positions += sum(map(len, pieces))
        return network.run_cached(
            cache, tokens, positions, mask, wanted, self._needs, self._masks_heads(works[0]), encoded,
            [work.prompt.depth for work in works],
        )  # fmt: skip
