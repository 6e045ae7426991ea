"""`check_language_model`: the contract of `guided.lm.LanguageModel`, held by asking the same things in different ways.

Every score that a batch gives after forking, rolling back, joining or drafting must be the score that the model gives
to the same tokens when it reads them alone from the start.  It knows no probabilities: whether they are the right ones
is for a comparison with another implementation to say.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch

from guided.errors import GuidedError, UnsupportedError
from guided.lm.model import NOTHING, LanguageModel, Needs, Scores, Sequences, Tree

__all__ = ["check_language_model"]

SINGLE = 1e-4
"""Agreement asked of float32 scores, as a part of the range of the scores they are compared with."""

DOUBLE = 1e-12
"""Of float64 scores."""


def check_language_model(
    model: LanguageModel,
    *,
    prompts: Sequence[Sequence[int]] | None = None,
    seed: int = 0,
    steps: int = 40,
    rows: int = 6,
    length: int = 24,
    needs: Sequence[Needs] | None = None,
    tolerance: float | None = None,
) -> None:
    """Hold the contract along ``steps`` random operations on up to ``rows`` rows of up to ``length`` tokens each.

    Checked after every operation: the number of rows and their tokens; the scores given for appended tokens and draft
    nodes, and `last`, against the model started afresh on those tokens alone; that what was handed out before has not
    changed, and that writing into it changes nothing.  Besides: equal prompts are computed once, rows with nothing to
    append cost nothing, ids that do not exist and operations that cannot be are refused with a `GuidedError`.

    ``prompts`` are random unless given, ``needs`` all kinds that the model can serve.  ``tolerance`` is by default 1e-4
    for float32 and 1e-12 for float64, as a part of the range of the scores.  Raises `AssertionError` with the
    operations that lead there.

    >>> from guided.lm import TableModel
    >>> from guided.testing import check_language_model
    >>> check_language_model(TableModel.random(0), steps=8, rows=2, length=6)  # says nothing: all is well
    """
    for number, needed in enumerate(_kinds(model) if needs is None else needs):
        check = _Check(model, random.Random(f"{seed} {number}"), needed, prompts, rows, length, tolerance)
        check.start()
        for _ in range(steps):
            check.step()
    check_refusals(model, prompts)
    check_sharing(model, prompts)


def _kinds(model: LanguageModel) -> list[Needs]:
    """Plain scores, and everything the model offers besides, alone or together."""
    can = model.can
    layers = tuple(dict.fromkeys((0, can.layers // 2, -2, -1))) if can.layers else ()
    kinds = [NOTHING]
    if layers or can.hidden:
        kinds.append(Needs(layers=layers, hidden=can.hidden))
    if can.masked_heads:
        kinds += [Needs(masked_heads=((0, 0),)), Needs(masked_heads=((0, 0),), masked_prompt=False)]
    return kinds


def _prompt(model: LanguageModel, rnd: random.Random) -> tuple[int, ...]:
    return tuple(rnd.randrange(model.width) for _ in range(rnd.randint(1, 5)))


class _Row:
    """What a row should be: its prompt, and what was appended."""

    def __init__(self, prompt: tuple[int, ...], added: tuple[int, ...] = ()) -> None:
        self.prompt = prompt
        self.added = added

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.prompt + self.added


class _Check:
    """Random operations on one batch, each compared with fresh starts."""

    def __init__(
        self,
        model: LanguageModel,
        rnd: random.Random,
        needs: Needs,
        prompts: Sequence[Sequence[int]] | None,
        rows: int,
        length: int,
        tolerance: float | None,
    ) -> None:
        self.model = model
        self.rnd = rnd
        self.needs = needs
        self.prompts = [tuple(prompt) for prompt in prompts] if prompts else None
        self.max_rows = rows
        self.length = length
        self.tolerance = tolerance
        self.history: list[str] = []
        self.rows: list[_Row] = []
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...]], Scores] = {}
        self.handed_out: list[tuple[Scores, torch.Tensor]] = []

    def start(self) -> None:
        """Begin with a few prompts, one of them twice."""
        prompts = [self.new_prompt() for _ in range(self.rnd.randint(1, 3))]
        prompts.append(prompts[0])
        self.history.append(f"start({prompts})")
        self.sequences: Sequences = self.model.start(prompts, self.needs)
        self.rows = [_Row(prompt) for prompt in prompts]
        self.agree()

    def step(self) -> None:
        """One random operation, and all comparisons after it."""
        operations: list[Callable[[], None]] = [self.extend, self.extend, self.select, self.crop, self.join]
        if self.model.can.tree:
            operations += [self.tree, self.tree]
        self.rnd.choice(operations)()
        self.agree()

    def new_prompt(self) -> tuple[int, ...]:
        return self.rnd.choice(self.prompts) if self.prompts else _prompt(self.model, self.rnd)

    def some_tokens(self, row: _Row, most: int) -> tuple[int, ...]:
        """Random tokens that fit; often those that another row would get, so that rows grow alike."""
        room = max(0, self.length - len(row.added))
        count = min(room, self.rnd.choice((0, 1, 1, 1, 2, most)))
        few = self.rnd.random() < 0.5
        return tuple(self.rnd.randrange(min(2, self.model.width) if few else self.model.width) for _ in range(count))

    def extend(self) -> None:
        added = [self.some_tokens(row, 4) for row in self.rows]
        self.history.append(f"extend({added})")
        found = self.sequences.extend(added)
        self.hold(len(found) == len(self.rows), "extend gives one Scores for each row")
        for number, (row, new) in enumerate(zip(self.rows, added, strict=True)):
            scores = found[number]
            self.hold(len(scores) == len(new), f"row {number} got {len(scores)} scores for {len(new)} tokens")
            for at in range(len(new)):
                self.same(scores, at, row, new[: at + 1], f"token {at} that row {number} got")
            row.added += new
            self.hand_out(scores)

    def select(self) -> None:
        count = self.rnd.randint(1, self.max_rows)
        rows = [self.rnd.randrange(len(self.rows)) for _ in range(count)]
        if self.rnd.random() < 0.3:
            rows = list(range(len(self.rows)))
            self.rnd.shuffle(rows)
        self.history.append(f"select({rows})")
        self.sequences.select(rows)
        self.rows = [_Row(self.rows[row].prompt, self.rows[row].added) for row in rows]

    def crop(self) -> None:
        into_prompt = not self.model.can.encoder and self.rnd.random() < 0.2
        lengths = []
        for row in self.rows:
            least = max(1, len(row.prompt) - 1) if into_prompt else len(row.prompt)
            lengths.append(self.rnd.randint(least, len(row.tokens)) if self.rnd.random() < 0.7 else len(row.tokens))
        if self.needs.own_prompts:
            # A shorter prompt would be another one: what was read without the mask stays so.
            lengths = [max(length, len(row.prompt)) for length, row in zip(lengths, self.rows, strict=True)]
        self.history.append(f"crop({lengths})")
        self.sequences.crop(lengths)
        for row, length in zip(self.rows, lengths, strict=True):
            row.prompt, row.added = (
                row.tokens[:length][: len(row.prompt)],
                row.added[: max(0, length - len(row.prompt))],
            )

    def join(self) -> None:
        if len(self.rows) >= self.max_rows:
            return
        prompts = [self.new_prompt() for _ in range(self.rnd.randint(1, 2))]
        if not self.model.can.encoder and self.rnd.random() < 0.5 and self.prompts is None:
            prompts[0] = self.rows[0].tokens[: self.length]
        self.history.append(f"join({prompts})")
        self.sequences.join(prompts)
        self.rows += [_Row(prompt) for prompt in prompts]

    def tree(self) -> None:
        trees = [self.some_tree(row) for row in self.rows]
        self.history.append(f"extend_tree({trees})")
        found = self.sequences.extend_tree(trees)
        self.hold(len(self.sequences) == len(self.rows), "extend_tree appends nothing")
        for number, (row, tree) in enumerate(zip(self.rows, trees, strict=True)):
            scores = found[number]
            self.hold(len(scores) == len(tree), f"row {number} got {len(scores)} scores for {len(tree)} nodes")
            for node in range(len(tree)):
                path = tuple(tree.tokens[at] for at in tree.path(node))
                self.same(scores, node, row, path, f"node {node} of the tree of row {number}")
            self.hand_out(scores)
        if self.rnd.random() < 0.2:
            return  # the next operation drops the trees
        ends = [self.rnd.randrange(-1, len(tree)) for tree in trees]
        paths = [tree.path(end) for tree, end in zip(trees, ends, strict=True)]
        self.history.append(f"keep({paths})")
        self.sequences.keep(paths)
        for row, tree, path in zip(self.rows, trees, paths, strict=True):
            row.added += tuple(tree.tokens[node] for node in path)

    def some_tree(self, row: _Row) -> Tree:
        count = min(max(0, self.length - len(row.added)), self.rnd.choice((0, 1, 3, 6)))
        chain = self.rnd.random() < 0.3
        parents = tuple(node - 1 if chain else self.rnd.randrange(-1, node) for node in range(count))
        few = min(3, self.model.width) if self.rnd.random() < 0.5 else self.model.width
        return Tree(tuple(self.rnd.randrange(few) for _ in range(count)), parents)

    def agree(self) -> None:
        """The rows are what they should be, and `last` is what a fresh start says."""
        self.hold(len(self.sequences) == len(self.rows), f"{len(self.sequences)} rows, expected {len(self.rows)}")
        for number, row in enumerate(self.rows):
            found = self.sequences.tokens(number)
            self.hold(tuple(found) == row.tokens, f"row {number} is {found}, expected {row.tokens}")
        if self.rnd.random() < 0.3:
            return  # what is not asked for must not be needed either
        last = self.sequences.last
        self.hold(len(last) == len(self.rows), f"last has {len(last)} positions for {len(self.rows)} rows")
        for number, row in enumerate(self.rows):
            self.same(last, number, row, (), f"last of row {number}")
        self.hand_out(last)

    def hand_out(self, scores: Scores) -> None:
        """Remember what was handed out, look whether earlier ones have changed, and spoil one of them."""
        self.handed_out.append((scores, scores.logits.clone()))
        for earlier, copy in self.handed_out:
            self.hold(bool(torch.equal(earlier.logits, copy)), "scores that were handed out have changed")
        if len(self.handed_out) > 4:
            spoiled, _ = self.handed_out.pop(self.rnd.randrange(4))
            spoiled.logits.fill_(1e9)

    def fresh(self, row: _Row, more: tuple[int, ...]) -> Scores:
        """What the model says when it is started on the row's tokens alone."""
        key = (row.prompt, row.added + more)
        found = self.known.get(key)
        if found is None:
            own = self.model.can.encoder or self.needs.own_prompts
            sequences = self.model.start([row.prompt if own else sum(key, ())], self.needs)
            if own and key[1]:
                sequences.extend([key[1]])
            found = self.known[key] = sequences.last
        return found

    def same(self, scores: Scores, at: int, row: _Row, more: tuple[int, ...], what: str) -> None:
        expected = self.fresh(row, more)
        pairs = [("logits", scores.logits, expected.logits)]
        pairs += [(f"layer {layer}", scores.layers[layer], expected.layers[layer]) for layer in self.needs.layers]
        if self.needs.hidden:
            self.hold(scores.hidden is not None, "hidden states were asked for")
            assert scores.hidden is not None and expected.hidden is not None
            pairs.append(("hidden state", scores.hidden, expected.hidden))
        for name, values, wanted in pairs:
            self.hold(values.dtype in (torch.float32, torch.float64), f"the {name} of {what} are {values.dtype}")
            one, other = values[at], wanted[0]
            finite = other.isfinite()
            self.hold(bool(torch.equal(one.isfinite(), finite)), f"the {name} of {what}: other ids are impossible")
            if not bool(finite.any()):
                continue
            one, other = one[finite], other[finite]
            limit = self.tolerance or (DOUBLE if values.dtype == torch.float64 else SINGLE)
            limit *= max(1.0, float(other.max() - other.min()))
            apart = float((one - other).abs().max())
            self.hold(apart <= limit, f"the {name} of {what} differ by {apart:.2g} from those of a fresh start")

    def hold(self, true: bool, what: str) -> None:
        if not true:
            raise AssertionError(f"{what}\n  needs {self.needs}\n  after " + "\n        ".join(self.history))


def check_refusals(model: LanguageModel, prompts: Sequence[Sequence[int]] | None = None) -> None:
    """What cannot be done is refused with a `GuidedError`, and leaves the rows as they were."""
    prompt = tuple(prompts[0]) if prompts else (0,)
    sequences = model.start([prompt])
    attempts: list[tuple[str, Callable[[], object]]] = [
        ("an id that does not exist", lambda: sequences.extend([[model.width]])),
        ("a negative id", lambda: sequences.extend([[-1]])),
        ("tokens for two rows of one", lambda: sequences.extend([[0], [0]])),
        ("a crop to more tokens than there are", lambda: sequences.crop([len(prompt) + 1])),
        ("a path without a tree", lambda: sequences.keep([[0]])),
        ("a prompt with an id that does not exist", lambda: model.start([[model.width]])),
        ("a layer that does not exist", lambda: model.start([prompt], Needs(layers=(model.can.layers + 1,)))),
    ]
    if not model.can.tree:
        attempts.append(("a tree", lambda: sequences.extend_tree([Tree((0,), (-1,))])))
    if not model.can.masked_heads:
        attempts.append(("masked heads", lambda: model.start([prompt], Needs(masked_heads=((0, 0),)))))
    for what, attempt in attempts:
        try:
            attempt()
        except (GuidedError, UnsupportedError):
            assert sequences.tokens(0) == prompt, f"{what} was refused, but the row changed"
        else:
            raise AssertionError(f"{what} is not refused")
    try:
        sequences.select([1])
    except (GuidedError, IndexError):
        pass
    else:
        raise AssertionError("a row that does not exist can be selected")


def check_sharing(model: LanguageModel, prompts: Sequence[Sequence[int]] | None = None) -> None:
    """Equal prefixes are computed once, and rows with nothing to append cost nothing."""
    prompt = tuple(prompts[0]) if prompts else (0, 1 % model.width, 0)

    def spent(work: Callable[[], object]) -> tuple[int, int]:
        before = model.calls.passes, model.calls.positions
        work()
        return model.calls.passes - before[0], model.calls.positions - before[1]

    alone = spent(lambda: model.start([prompt]))
    together = spent(lambda: model.start([prompt] * 8))
    assert together == alone, f"a prompt given eight times costs {together} (passes, positions), once {alone}"
    sequences = model.start([prompt] * 8)
    passes, _ = spent(lambda: sequences.extend([[0]] * 8))
    assert passes == 1, f"extending eight equal rows took {passes} passes"
    none = spent(lambda: sequences.extend([[]] * 8))
    assert none == (0, 0), f"extending by nothing costs {none}"
    if model.can.crop:
        _, one = spent(lambda: sequences.extend([[0]] + [[]] * 7))
        assert one == 1, f"one token in one of eight rows costs {one} positions"
