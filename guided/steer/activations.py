"""Activation steering: vectors added to what blocks give, made of texts that do and do not show what is wanted.

`Activations` is the steerer; `contrastive_vector` and `prompt_vectors` make what it adds, as CAA and ActAdd do.  The
model runs once more with the vectors in it; `Activations.over` is the model with the vectors alone, in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from guided.errors import GuidedError, UnsupportedError
from guided.lm.given import language_model
from guided.lm.model import NOTHING, Abilities, Added, LanguageModel, Needs, Sequences, check_needs
from guided.lm.wrapped import WrappedModel
from guided.steer.declaration import AsGiven, Branch, Declaration, Seen
from guided.steer.fields import Checked, checked_number
from guided.steer.formulas.activations import activation_difference

__all__ = ["Activations", "contrastive_vector", "prompt_vectors"]


@dataclass(frozen=True, eq=False)
class Activations(Checked):
    """The model with vectors added to the outputs of blocks: `activation_difference`.

    Published strengths of contrastive vectors: -2 to 2 times their own length, in a middle block.  Raises `GuidedError`
    where nothing is added.

    >>> import guided.hf
    >>> from guided.lm import language_model, next_logits
    >>> from guided.steer import Activations, Stack, contrastive_vector
    >>> model = language_model(guided.hf.load())
    >>> ids = model.tokenizer.encode
    >>> digits = contrastive_vector(model, [ids("1 2 3 4")], [ids("a b c d")], block=3, strength=2.0)
    >>> def preference(over):  # for a number to a word
    ...     logits = next_logits(over, [ids("The answer: ")])[0]
    ...     return float(logits[ids("5")[0]] - logits[ids("the")[0]])
    >>> preference(Stack([Activations((digits,))]).over(model)) > preference(model) + 1
    True
    """

    added: tuple[Added, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.added:
            raise GuidedError(
                "no vector is added", where="Activations", remedy="Pass (contrastive_vector(...),), a tuple."
            )

    def declare(self, model: LanguageModel) -> Declaration:
        """The model as it is, and with the vectors in it."""
        return Declaration((Branch(), Branch(None, AsGiven(), Needs(added=self.added))))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """What the vectors change, added."""
        plain, changed = seen.branches
        return activation_difference(logits, plain.logits, changed.logits)

    def over(self, model: LanguageModel) -> LanguageModel:
        """The model with the vectors in it, in one pass: what a stack of this alone says.

        A stack over it steers the changed model.  Raises `UnsupportedError` where the model's blocks cannot be changed.
        """
        model = language_model(model)
        check_needs(Needs(added=self.added), model.can, "the model")
        return _Changed(model, self.added)


class _Changed(WrappedModel):
    """A `LanguageModel` that asks another one for vectors in its blocks, whatever else is asked of it."""

    def __init__(self, model: LanguageModel, added: tuple[Added, ...]) -> None:
        super().__init__(model)
        self._added = added

    @property
    def can(self) -> Abilities:
        # A longer prompt is not the same as a longer text where vectors begin at its end.
        behind = any(each.from_prompt_end for each in self._added)
        return replace(self.model.can, encoder=self.model.can.encoder or behind)

    @property
    def tokenizer(self) -> object | None:
        return getattr(self.model, "tokenizer", None)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> Sequences:
        return self.model.start(prompts, replace(needs, added=(*needs.added, *self._added)))


def contrastive_vector(
    model: LanguageModel,
    positive: Sequence[Sequence[int]],
    negative: Sequence[Sequence[int]],
    *,
    block: int,
    strength: float = 1.0,
    everywhere: bool = False,
) -> Added:
    """The difference of means of a block's output after texts that show what is wanted and texts that do not.

    Contrastive activation addition (Rimsky et al. 2023, arXiv 2312.06681, section 2): the mean over pairs of ``h(x+) -
    h(x-)``.  It is read after the last token of each text, and added from the prompt's last token on, as in the
    authors' code.  (They end texts with the letter of an answer, and read there.)  With ``everywhere`` it is added to
    the whole prompt, too.  Texts are ids; of paired texts there are as many on each side, but the mean does not need
    pairs.

    Raises `GuidedError` without texts, `UnsupportedError` for a model whose blocks cannot be read.

    >>> import guided.hf
    >>> from guided.lm import language_model
    >>> from guided.steer import contrastive_vector
    >>> model = language_model(guided.hf.load())
    >>> ids = model.tokenizer.encode
    >>> added = contrastive_vector(model, [ids("1 2 3 4")], [ids("a b c d")], block=4)  # numbers rather than words
    >>> added.block, tuple(added.vectors.shape), added.from_prompt_end
    (4, (256,), True)
    """
    model = _readable(model, block)
    checked_number("strength", strength, of="contrastive_vector")
    means = [_last_states(model, texts, block).mean(dim=0) for texts in (positive, negative)]
    return Added(strength * (means[0] - means[1]), block, from_prompt_end=not everywhere)


def prompt_vectors(
    model: LanguageModel,
    wanted: Sequence[int],
    unwanted: Sequence[int],
    *,
    block: int,
    strength: float = 1.0,
    padding: int | None = None,
) -> Added:
    """The differences of a block's outputs between two prompts, token by token, added to the first tokens of a text.

    Activation addition (ActAdd; Turner et al. 2023, arXiv 2308.10248, algorithm 1): ``c (h+ - h-)`` added to the front
    of the residual stream, ``c`` from 1 to 15 there.  ``block`` counts what the authors call the stream before layer
    ``block``.  The shorter prompt is filled up with ``padding`` on the right, a token for a space there.  Raises
    `GuidedError` for prompts of other lengths without it, `UnsupportedError` for a model whose blocks cannot be read.

    >>> import guided.hf
    >>> from guided.lm import language_model
    >>> from guided.steer import prompt_vectors
    >>> model = language_model(guided.hf.load())
    >>> ids = model.tokenizer.encode
    >>> added = prompt_vectors(model, ids("Love"), ids("Hate it"), block=2, strength=5.0, padding=ids(" ")[0])
    >>> added.vectors.shape[0] == max(len(ids("Love")), len(ids("Hate it")))  # one vector for each place of the prompt
    True
    """
    model = _readable(model, block)
    checked_number("strength", strength, of="prompt_vectors")
    pair = [list(wanted), list(unwanted)]
    longest = max(map(len, pair))
    if not min(map(len, pair)) or (padding is None and len(pair[0]) != len(pair[1])):
        raise GuidedError(
            f"the two prompts have {len(pair[0])} and {len(pair[1])} tokens",
            where="prompt_vectors",
            remedy="Pass padding=, the id of a space, for prompts of different lengths, and at least one token each.",
        )
    pair = [tokens + [padding or 0] * (longest - len(tokens)) for tokens in pair]
    sequences = model.start([tokens[:1] for tokens in pair], Needs(hidden=True, blocks=(block,)))
    first = sequences.last.hidden
    rest = sequences.extend([tokens[1:] for tokens in pair])
    assert first is not None
    states = [
        first[row : row + 1] if after.hidden is None else torch.cat([first[row : row + 1], after.hidden])
        for row, after in enumerate(rest)
    ]
    return Added(strength * (states[0] - states[1]), block)


def _readable(model: LanguageModel, block: int) -> LanguageModel:
    """The model, whose block can be read; raises `UnsupportedError` otherwise, and for prompts of an encoder's."""
    model = language_model(model)
    if model.can.encoder:
        raise UnsupportedError(
            "vectors are read from the blocks of a causal model, and this one reads its prompt apart",
            where="activation steering",
            remedy="Pass Added(vector, block) with a vector of your own.",
        )
    check_needs(Needs(hidden=True, blocks=(block,)), model.can, "the model")
    return model


def _last_states(model: LanguageModel, texts: Sequence[Sequence[int]], block: int) -> torch.Tensor:
    """A block's output at the last token of each text, ``[n, d]``."""
    if not len(texts):
        raise GuidedError("there are no texts on one side", where="contrastive_vector", remedy="Pass at least one.")
    found = model.start(texts, Needs(hidden=True, blocks=(block,))).last.hidden
    assert found is not None
    return found
