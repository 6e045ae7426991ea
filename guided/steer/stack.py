"""`Stack`: steerers in the order in which they speak.

The order matters, and is the caller's: each steerer gets what the one before returned as its ``logits``.  Auxiliary
logits are those of the plain models, whoever speaks first.  What runs the models is `guided.steer.steered`, and
`guided.hf.steering` for `transformers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from guided.errors import GuidedError
from guided.lm.given import language_model
from guided.lm.model import LanguageModel
from guided.steer.declaration import Steerer
from guided.steer.pair import ModelPair
from guided.steer.steered import SteeredModel

__all__ = ["Stack", "Steering"]


@dataclass(frozen=True, init=False)
class Stack:
    """Steerers in order; a stack in a stack stands for its steerers.

    ``Stack([a, b]).over(model)`` is a `LanguageModel` whose next-token logits are ``b(a(logits))``.  An empty stack
    changes nothing.  A `ModelPair` (`EntropyAdaptive`, `FastAndSlow`), which is no function of logits, may be the
    first: the others then steer the model of two that it makes.  Raises `GuidedError` for what is no steerer, and for a
    pair that is not the first.

    >>> import numpy as np
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Product
    >>> model = TableModel(lambda tokens: np.log([0.5, 0.5]), width=2)
    >>> other = TableModel(lambda tokens: np.log([0.2, 0.8]), width=2)
    >>> next_logits(Stack([Product([other], [1, 1])]).over(model), [[0]]).softmax(-1)
    tensor([[0.2000, 0.8000]], dtype=torch.float64)
    """

    steerers: tuple[Steerer, ...]
    adaptive: ModelPair | None
    """What makes a model of two before the others steer it."""

    def __init__(self, steerers: Iterable[Steerer | Stack | ModelPair] = ()) -> None:
        try:
            given = list(steerers)
        except TypeError:
            raise GuidedError(
                f"{steerers!r} is not a sequence of steerers", where="Stack", remedy="Pass [Contrastive(...)], a list."
            ) from None
        flat: list[Steerer] = []
        adaptive: ModelPair | None = None
        for number, each in enumerate(given):
            first = each.adaptive if isinstance(each, Stack) else each if isinstance(each, ModelPair) else None
            if first is not None:
                if flat or adaptive is not None:
                    raise GuidedError(
                        f"{type(first).__name__} is not the first",
                        where=f"number {number} of a Stack",
                        remedy="Put it first: it makes a model of two, which the others then steer.",
                    )
                adaptive = first
            if isinstance(each, Stack):
                flat += each.steerers
            elif isinstance(each, Steerer) and not isinstance(each, type):
                flat.append(each)
            elif first is None:
                raise GuidedError(
                    f"{each!r} is no steerer",
                    where=f"number {number} of a Stack",
                    remedy="Pass objects such as Contrastive(...).",
                )
        object.__setattr__(self, "steerers", tuple(flat))
        object.__setattr__(self, "adaptive", adaptive)

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return bool(self.steerers) or self.adaptive is not None

    def over(self, model: LanguageModel, *, same_tokenizer: bool = False) -> LanguageModel:
        """The model steered by this stack, itself a `LanguageModel`.

        Raises `UnsupportedError` for what a steerer needs and a model cannot give, `VocabularyError` where the models
        do not score the same ids.  ``same_tokenizer=True`` says that models whose numbers of scores differ do share
        their ids, and only pad their matrices differently; ids that one of them lacks are then excluded.
        """
        model = language_model(model)
        if self.adaptive is not None:
            model = self.adaptive.over(model, same_tokenizer=same_tokenizer)
            if not self.steerers:
                return model
        return SteeredModel(model, self.steerers, same_tokenizer=same_tokenizer)


Steering: TypeAlias = "Stack | Steerer | ModelPair | Iterable[Steerer | Stack | ModelPair]"
"""What ``steer=`` takes."""
