"""A steered model is a `LanguageModel` again: every branch's rows are kept in step with the sequences.

Samplers, searches and drafts therefore compose with steering without knowing it.  What is computed at a position is
`guided.steer.plan`'s; this file only moves rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from guided.errors import GuidedError, UnsupportedError
from guided.lm.model import NOTHING, Abilities, Calls, LanguageModel, Needs, Scores, Tree, check_needs
from guided.steer.declaration import Steerer, Tokens
from guided.steer.layout import Place
from guided.steer.plan import Plan, look_in
from guided.steer.rows import BranchRows, joined, taken

__all__ = ["SteeredModel", "SteeredSequences"]


class SteeredModel:
    """A model and the steerers of a stack; made by `Stack.over`.

    Its layers and hidden states, where asked for, are the plain model's.  Draft trees are scored in one pass unless a
    steerer looks ahead, which needs one candidate after the other; then `extend` takes tokens one at a time, too.
    Where some branch reads another prompt, ``can.encoder`` is True: a longer prompt is then not the same as a longer
    text.
    """

    def __init__(self, model: LanguageModel, steerers: Sequence[Steerer], *, same_tokenizer: bool = False) -> None:
        self.plan = Plan(model, steerers, same_tokenizer=same_tokenizer)
        models = [model, *self.plan.others]
        self.can = replace(
            model.can,
            crop=all(each.can.crop for each in models),
            tree=not self.plan.looks_ahead and all(each.can.tree for each in models),
            encoder=self.plan.reads_prompt_end or any(each.can.encoder for each in models),
            prompt_tokens=0,
        )

    @property
    def width(self) -> int:
        """Number of ids scored: the plain model's."""
        return self.plan.model.width

    @property
    def eos_ids(self) -> frozenset[int]:
        """The ids that end a text: the plain model's, since the end is decided once."""
        return self.plan.model.eos_ids

    @property
    def tokenizer(self) -> object | None:
        """The plain model's tokenizer, where it has one."""
        return getattr(self.plan.model, "tokenizer", None)

    @property
    def calls(self) -> Calls:
        """What all models of the stack have computed so far, added up, other callers' work included."""
        total = Calls()
        for model in (self.plan.model, *self.plan.others):
            calls = model.calls
            total.passes += calls.passes
            total.rows += calls.rows
            total.positions += calls.positions
            total.moved += calls.moved
        return total

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> SteeredSequences:
        """Sequences that begin with these prompts."""
        check_needs(needs, self.can, "the steered model")
        return SteeredSequences(self, prompts, needs)


class SteeredSequences:
    """The rows of a steered model and of all its branches; `guided.lm.model.Sequences`."""

    def __init__(self, model: SteeredModel, prompts: Sequence[Sequence[int]], needs: Needs) -> None:
        self._plan = model.plan
        self._can: Abilities = model.can
        self._needs = needs
        self._layout = model.plan.layout(needs)
        given = [_ids(prompt) for prompt in prompts]
        self._runs = [BranchRows(run, given) for run in self._layout.runs]
        self._prompts = [len(prompt) for prompt in given]
        self._lengths = list(self._prompts)
        self._numbers = list(range(len(given)))
        self._n_numbers = len(given)
        self._last: Scores | None = None

    def __len__(self) -> int:
        return len(self._prompts)

    @property
    def _base(self) -> Place:
        assert self._layout.base is not None
        return self._layout.base

    def tokens(self, row: int) -> Tokens:
        """The row's tokens, as the steered model has them."""
        row = range(len(self))[row]
        return self._runs[self._base.run].tokens(row, self._base.prompt)

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        if self._last is None:
            self._last = self._at_end(range(len(self)))
        return _copied(self._last)

    def extend(self, tokens: Sequence[Sequence[int]]) -> list[Scores]:
        """Append tokens to each row; scores after each of them.

        Where a reward or a model raises, the rows are rolled back to what they were.
        """
        added = self._checked(tokens)
        if not any(added):
            return [self._nothing() for _ in added]
        steps: list[list[Scores]] = [[] for _ in added]
        try:
            if self._plan.looks_ahead:
                # The candidates of a position are known when its logits are, and trees hang on the last token only.
                for number in range(max(map(len, added))):
                    self._step([row[number : number + 1] for row in added], steps)
            else:
                self._step(added, steps)
        except BaseException:
            for run in self._runs:
                run.crop(self._lengths)
            raise
        self._lengths = [length + len(new) for length, new in zip(self._lengths, added, strict=True)]
        found = [joined(parts) if parts else self._nothing() for parts in steps]
        self._update_last(found)
        return found

    def extend_tree(self, trees: Sequence[Tree]) -> list[Scores]:
        """Scores of every node of a tree for each row; appends nothing.

        Raises `UnsupportedError` where a model scores no trees or a steerer looks ahead.
        """
        if not self._can.tree:
            raise UnsupportedError(
                "this stack scores no draft trees: a model of it cannot, or a steerer looks ahead",
                where="guided.steer",
                remedy="Draft single sequences, which extend() scores and crop() rolls back.",
            )
        answers = [run.extend_tree(trees) for run in self._runs]
        if not any(trees):
            return [self._nothing() for _ in trees]
        texts: tuple[Tokens, ...] = ()
        if self._plan.reads_text:
            texts = tuple(
                self.tokens(row) + tuple(tree.tokens[node] for node in tree.path(end))
                for row, tree in enumerate(trees)
                for end in range(len(tree))
            )
        owners = [row for row, tree in enumerate(trees) for _ in range(len(tree))]
        return self._shared_out(self._scored(answers, texts, owners), [len(tree) for tree in trees])

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree."""
        for run in self._runs:
            run.keep(paths)
        self._lengths = [length + len(path) for length, path in zip(self._lengths, paths, strict=True)]
        if any(len(path) for path in paths):
            self._last = None

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        chosen = [range(len(self))[row] for row in rows]
        for run in self._runs:
            run.select(chosen)
        self._prompts = [self._prompts[row] for row in chosen]
        self._lengths = [self._lengths[row] for row in chosen]
        self._numbers = [self._numbers[row] for row in chosen]
        if self._last is not None:
            self._last = taken(self._last, chosen)

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens; into the prompt only where no branch reads another one.

        Raises `GuidedError` for another number of entries than rows, and for a length that the row does not have.
        """
        if len(lengths) != len(self):
            raise GuidedError(f"{len(lengths)} entries for {len(self)} rows", remedy="Give one for each row.")
        for length, known in zip(lengths, self._lengths, strict=True):
            if not 0 <= length <= known:
                raise GuidedError(f"a row of {known} tokens cannot be cropped to {length}")
        for run in self._runs:
            run.check_crop(lengths)
        for run in self._runs:
            run.crop(lengths)
        self._lengths = list(lengths)
        self._last = None

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        given = [_ids(prompt) for prompt in prompts]
        before = len(self)
        for number, run in enumerate(self._runs):
            try:
                run.join(given)
            except BaseException:
                # Whoever has no memory for more rows goes on with those that are there.
                for joined_run in self._runs[:number]:
                    joined_run.select(range(before))
                raise
        self._prompts += [len(prompt) for prompt in given]
        self._lengths += [len(prompt) for prompt in given]
        self._numbers += range(self._n_numbers, self._n_numbers + len(given))
        self._n_numbers += len(given)
        if self._last is not None and given:
            self._last = joined([self._last, self._at_end(range(before, len(self)))])

    def _checked(self, tokens: Sequence[Sequence[int]]) -> list[Tokens]:
        """The tokens of each row as ids that every model has, so that no model is asked before another refuses."""
        if len(tokens) != len(self):
            raise GuidedError(f"{len(tokens)} entries for {len(self)} rows", remedy="Give one for each row.")
        added = [_ids(row) for row in tokens]
        outside = [token for row in added for token in row if not 0 <= token < self._plan.shared_width]
        if outside:
            raise GuidedError(f"the ids {outside[:5]} are not in range({self._plan.shared_width})")
        return added

    def _step(self, added: Sequence[Tokens], steps: list[list[Scores]]) -> None:
        """Append some tokens, at least one, and add what is found to each row's list."""
        before = [self.tokens(row) if self._plan.reads_text else () for row in range(len(self))]
        answers = [run.extend(added) for run in self._runs]
        texts: tuple[Tokens, ...] = ()
        if self._plan.reads_text:
            texts = tuple(old + new[: n + 1] for old, new in zip(before, added) for n in range(len(new)))
        scores = self._scored(answers, texts, [row for row, new in enumerate(added) for _ in new])
        for parts, part in zip(steps, self._shared_out(scores, [len(new) for new in added]), strict=True):
            if len(part):
                parts.append(part)

    def _at_end(self, rows: Sequence[int]) -> Scores:
        """Scores after the last tokens of some rows."""
        if not len(rows):
            return self._nothing()
        answers = [run.last(rows) for run in self._runs]
        texts = tuple(self.tokens(row) for row in rows) if self._plan.reads_text else ()
        return self._scored(answers, texts, rows)

    def _scored(
        self,
        answers: Sequence[Sequence[Scores]],
        texts: tuple[Tokens, ...],
        owners: Sequence[int],
    ) -> Scores:
        """The steered scores of positions, each a text of its owner among the rows."""
        plain = answers[self._base.run][self._base.prompt]
        lengths = tuple(self._prompts[row] for row in owners) if texts else ()
        numbers = tuple(self._numbers[row] for row in owners)
        look = look_in(self._runs, owners)
        logits = self._plan.steer(plain.logits, self._layout, answers, texts, lengths, look, numbers)
        return Scores(
            logits,
            {layer: plain.layers[layer] for layer in self._needs.layers},
            plain.hidden if self._needs.hidden else None,
        )

    def _update_last(self, found: Sequence[Scores]) -> None:
        """Keep what was found after each row's last token, if all rows are known."""
        ends = [taken(scores, slice(len(scores) - 1, None)) if len(scores) else None for scores in found]
        parts: list[Scores] = []
        for row, end in enumerate(ends):
            if end is not None:
                parts.append(end)
            elif self._last is not None:
                parts.append(taken(self._last, slice(row, row + 1)))
            else:
                return
        self._last = _copied(parts[0]) if len(parts) == 1 else joined(parts)

    def _shared_out(self, scores: Scores, counts: Sequence[int]) -> list[Scores]:
        found: list[Scores] = []
        at = 0
        for count in counts:
            found.append(taken(scores, slice(at, at + count)))
            at += count
        return found

    def _nothing(self) -> Scores:
        """Scores of no positions."""
        every = self._runs[self._base.run].last(())[self._base.prompt]
        return Scores(
            every.logits,
            {layer: every.layers[layer] for layer in self._needs.layers},
            every.hidden if self._needs.hidden else None,
        )


def _copied(scores: Scores) -> Scores:
    return Scores(
        scores.logits.clone(),
        {layer: values.clone() for layer, values in scores.layers.items()},
        None if scores.hidden is None else scores.hidden.clone(),
    )


def _ids(tokens: Sequence[int]) -> Tokens:
    return tuple(int(token) for token in tokens)
