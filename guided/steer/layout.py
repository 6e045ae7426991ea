"""Which branch runs where: declarations merged into as few forward passes as possible, and checked before any runs.

Branches of one model that differ in their prompt alone become rows of one batch; the same branch declared twice is one
row; other models, and runs with attention heads off, have batches of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from guided.errors import GuidedError, UnsupportedError, VocabularyError
from guided.lm.given import same_model
from guided.lm.model import LanguageModel, Needs, check_needs
from guided.steer.declaration import AsGiven, Branch, Declaration, Prompt
from guided.steer.rows import Run, with_hidden

__all__ = ["Layout", "Place", "arrange", "check_abilities", "check_vocabulary"]


@dataclass(frozen=True)
class Place:
    """Where a branch is: the number of its run and of its prompt there."""

    run: int
    prompt: int


@dataclass(frozen=True)
class Layout:
    """The runs of a stack over a model, and where each declared branch finds its scores."""

    runs: tuple[Run, ...]
    base: Place | None
    """The steered model's own row; None where its logits come from elsewhere."""
    branches: tuple[tuple[Place, ...], ...]
    """For each steerer its branches, in order."""
    ahead: tuple[Place | None, ...]
    """For each steerer the branch whose hidden states it reads: one token ahead, or of all tokens so far."""

    @property
    def looks_ahead(self) -> bool:
        """Whether some steerer reads hidden states that are known for the end of a row only."""
        return any(place is not None for place in self.ahead)


@dataclass
class _Draft:
    """A run while branches are added to it."""

    model: LanguageModel
    needs: Needs
    prompts: list[Prompt]
    history: set[int]

    def takes(self, model: LanguageModel, needs: Needs) -> bool:
        same_heads = self.needs.masked_heads == needs.masked_heads and (
            not needs.masked_heads or self.needs.masked_prompt == needs.masked_prompt
        )
        same_norm = not (self.needs.layers and needs.layers) or self.needs.final_norm == needs.final_norm
        return self.model is model and self.needs.added == needs.added and same_heads and same_norm

    def add(self, prompt: Prompt, needs: Needs, history: bool) -> int:
        final_norm = needs.final_norm if needs.layers else self.needs.final_norm
        layers = tuple(dict.fromkeys(self.needs.layers + needs.layers))
        self.needs = replace(self.needs, layers=layers, final_norm=final_norm, hidden=self.needs.hidden or needs.hidden)
        if prompt not in self.prompts:
            self.prompts.append(prompt)
        number = self.prompts.index(prompt)
        if history:
            self.history.add(number)
        return number


def arrange(
    model: LanguageModel, declarations: Sequence[Declaration], needs: Needs, *, with_base: bool = True
) -> Layout:
    """Merge the declarations of a stack over ``model``, which itself is asked for ``needs``.

    ``with_base=False`` leaves the model's own row out, unless a steerer declares it.
    """
    if needs.blocks:
        raise UnsupportedError(
            "a steered model does not give the outputs of its blocks",
            remedy="Draft for it with heads on the hidden state, or without heads.",
        )
    if needs.added:
        raise UnsupportedError(
            "nothing is added to the blocks of a model that is steered already",
            remedy="Put the vectors first: Stack([...]).over(Activations(...).over(model)).",
        )
    drafts: list[_Draft] = []

    def place(branch: Branch, history: bool = False) -> Place:
        whose = model if branch.model is None or same_model(branch.model, model) else branch.model
        for number, draft in enumerate(drafts):
            if draft.takes(whose, branch.needs):
                return Place(number, draft.add(branch.prompt, branch.needs, history))
        drafts.append(_Draft(whose, replace(branch.needs, layers=(), hidden=False), [], set()))
        return Place(len(drafts) - 1, drafts[-1].add(branch.prompt, branch.needs, history))

    base = place(Branch(None, AsGiven(), needs)) if with_base else None
    branches: list[tuple[Place, ...]] = []
    ahead: list[Place | None] = []
    for declaration in declarations:
        branches.append(tuple(place(branch) for branch in declaration.branches))
        wanted = declaration.candidates
        if wanted is None or wanted.watched is None:
            ahead.append(None)
            continue
        looked = replace(wanted.watched, needs=with_hidden(wanted.watched.needs))
        ahead.append(place(looked, wanted.history or wanted.ahead is None))
    runs = tuple(Run(draft.model, tuple(draft.prompts), draft.needs, frozenset(draft.history)) for draft in drafts)
    return Layout(runs, base, tuple(branches), tuple(ahead))


def check_vocabulary(model: LanguageModel, other: LanguageModel, where: str, *, same_tokenizer: bool = False) -> None:
    """Raise `VocabularyError` if ``other`` does not score the ids of ``model``.

    Compared are the end-of-text ids and the tokenizers where both models have theirs, or else the widths; with
    ``same_tokenizer`` widths may differ as well, which then is padding of the models' matrices.
    """
    for each in (model, other):
        if not isinstance(each, LanguageModel):
            raise GuidedError(
                f"{type(each).__name__} is no LanguageModel",
                where=where,
                remedy="Wrap a model of transformers: guided.hf.TransformersModel(model, tokenizer).",
            )
    if other is model:
        return
    remedy = "Use models of one tokenizer, or wrap the other one with guided.lm.retokenized."
    ours, theirs = _table(model), _table(other)
    if ours is not None and theirs is not None and ours != theirs:
        raise VocabularyError("the two models' tokenizers give different ids", where=where, remedy=remedy)
    if model.eos_ids and other.eos_ids and not model.eos_ids & other.eos_ids:
        raise VocabularyError(
            f"one model ends a text with {sorted(model.eos_ids)}, the other with {sorted(other.eos_ids)}",
            where=where,
            remedy=remedy,
        )
    same_tokenizer |= ours is not None and theirs is not None
    if model.width != other.width and not same_tokenizer:
        raise VocabularyError(
            f"one model scores {model.width} ids, the other {other.width}",
            where=where,
            remedy=f"{remedy} If it is one tokenizer and only the padding of the matrices differs, pass"
            " same_tokenizer=True.",
        )


def _table(model: LanguageModel) -> object | None:
    """The tokens and their ids, of a model that has its tokenizer."""
    tokenizer = getattr(model, "tokenizer", None)
    table = getattr(tokenizer, "get_vocab", None)
    found: object | None = None if table is None else table()
    return found


def check_abilities(model: LanguageModel, declaration: Declaration, where: str) -> None:
    """Raise `UnsupportedError` for what a model cannot give; ``where`` names the steerer."""
    asked = [(branch.model, branch.needs) for branch in declaration.branches]
    if declaration.candidates is not None and declaration.candidates.watched is not None:
        asked.append((declaration.candidates.watched.model, with_hidden(declaration.candidates.watched.needs)))
    for other, needs in asked:
        try:
            check_needs(needs, (other or model).can, "the model" if other is None else "its other model")
        except GuidedError as error:
            raise type(error)(error.what, where=where, remedy=error.remedy) from None
